// SPDX-License-Identifier: Apache-2.0
// What a page that `gantry serve` has sent asks of it: changes in the words of the command line, and why a node is where it is.
'use strict';

const noChanges = () => ({ move: new Map(), route: new Map() });

// The words of --move and --route: the last change of a node, and of a pair of memories, counts.
function changeWords(changes) {
  return {
    move: [...changes.move].map(([node, device]) => node + '=' + device),
    route: [...changes.route].map(([pair, { gbs, latency }]) => pair + '=' + [gbs === null ? null : 'GBps=' + gbs, latency === null ? null : 'latency_us=' + latency].filter(word => word !== null).join(',')),
  };
}

// The numbers of a form, or what is wrong with them; one that is empty stays as it is.
function readRate(gbs, latency) {
  const number = text => text.trim() === '' ? null : Number(text), rate = { gbs: number(gbs), latency: number(latency) };
  if (rate.gbs === null && rate.latency === null) return { wrong: 'Give a rate in GB/s, a latency in us, or both.' };
  if (rate.gbs !== null && !(rate.gbs > 0 && rate.gbs < 1e300)) return { wrong: 'The rate must be a number of GB/s greater than 0, not "' + gbs.trim() + '".' };
  if (rate.latency !== null && !(rate.latency >= 0 && rate.latency < 1e300)) return { wrong: 'The latency must be a number of us, 0 or more, not "' + latency.trim() + '".' };
  return { rate: rate };
}

// The memories of a copy, as --route names them; null: it is no copy, or stays within one.
function pairOf(part, op) {
  if (!isCopy(part.kind[op]) || part.useFirst[op + 1] - part.useFirst[op] < 2) return null;
  const [from, to] = [0, 1].map(k => part.memories[part.instances.memory[part.use.instance[part.useFirst[op] + k]]].id);
  return from === to ? null : from + ':' + to;
}

// The data of a page in its text.
function dataOf(page) {
  const found = /<script type="text\/plain" id="data">([A-Za-z0-9+/=\s]*)<\/script>/.exec(page);
  if (!found) throw new Error('The answer is no page of Gantry.');
  return found[1];
}

const isServed = () => typeof location !== 'undefined' && location.protocol === 'http:';

// The text of the answer; an error has what the command would have said.
async function askServer(path, body) {
  const answer = await fetch(path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) }), text = await answer.text();
  if (answer.ok) return text;
  let told = text;
  try {
    told = JSON.parse(text).message;
  } catch {
    // not of the command: the server's own words
  }
  throw new Error(told);
}
