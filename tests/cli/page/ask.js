// SPDX-License-Identifier: Apache-2.0
// node ask.js SOURCE ADDRESS NODE DEVICE PAIR: what the page's logic makes of a server's answers, as JSON, without a browser.
'use strict';
const fs = require('fs'), path = require('path'), vm = require('vm');

const [source, address, node, device, pair] = process.argv.slice(2);
const text = ['data.js', 'model.js', 'ask.js'].map(name => fs.readFileSync(path.join(source, 'src/export/page', name), 'utf8')).join('\n');

const told = vm.runInNewContext(text + `
(async () => {
  const changes = noChanges(), rates = [['', ''], ['0', ''], ['x', ''], ['', '-1'], ['2', ''], ['', '0'], [' 3.5 ', '2']].map(([gbs, latency]) => readRate(gbs, latency));
  const first = makeModel(readPage(bytesOfBase64(dataOf(await (await fetch('.')).text()))))[0];
  const pairs = Array.from(first.start.keys()).map(op => pairOf(first, op)).filter(pair => pair !== null);
  changes.move.set(node, 'elsewhere').set(node, device);
  const moved = makeModel(readPage(bytesOfBase64(dataOf(await askServer('what-if', changeWords(changes))))));
  changes.route.set(pair, readRate('', '1000').rate);
  const later = makeModel(readPage(bytesOfBase64(dataOf(await askServer('what-if', changeWords(changes))))));
  const why = await askServer('why', { node: node });
  const refused = await askServer('why', { node: 'no such node' }).then(() => '', error => error.message);
  return {
    rates: rates, words: changeWords(changes), pairs: [...new Set(pairs)], first: first.makespan, moved: moved.map(part => part.makespan), later: later.map(part => part.makespan),
    place: placeText(moved[1], Array.from(moved[1].start.keys()).find(op => moved[1].node[op] >= 0 && moved[1].nodes[moved[1].node[op]] === node)), why: why, refused: refused,
  };
})()`, { atob: atob, TextDecoder: TextDecoder, fetch: (to, options) => fetch(new URL(to, address), options), node: node, device: device, pair: pair });
told.then(answer => process.stdout.write(JSON.stringify(answer)));
