// SPDX-License-Identifier: Apache-2.0
// node model.js SOURCE PAGE: what the logic of the page makes of its data, as JSON, without a browser.
'use strict';
const fs = require('fs'), path = require('path'), vm = require('vm');

const [source, page] = process.argv.slice(2);
const text = ['data.js', 'model.js'].map(name => fs.readFileSync(path.join(source, 'src/export/page', name), 'utf8')).join('\n');
const data = /id="data">([^<]*)</.exec(fs.readFileSync(page, 'utf8'))[1];

const told = vm.runInNewContext(text + `
const numbers = column => Array.from(column);
makeModel(readPage(bytesOfBase64(data))).map((part, _, parts) => {
  let last = 0;
  for (let i = 0; i < part.count; i++) if (part.end[i] > part.end[last]) last = i;
  for (const mode of ['kernel', 'critical path', 'prediction error', 'time against the first', 'difference']) {
    if (mode === 'prediction error' && !parts.some(one => one.predicted)) continue;
    if (mode === 'time against the first' && !parts.some(one => one.match)) continue;
    part.column = classColumn(part, parts, mode);
    for (const row of part.rows.lanes) makeLevels(row, part.column);
  }
  const lane = part.rows.lanes.reduce((a, b) => a.ops.length > b.ops.length ? a : b);
  const ranges = [];
  for (let size = 1; size < lane.ops.length; size *= 3)
    for (let first = 0; first + size <= lane.ops.length; first += Math.ceil(lane.ops.length / 7)) ranges.push([first, first + size, classAt(lane, first, first + size)]);
  return {
    title: part.title, makespan: part.makespan, names: numbers(part.start).map((_, i) => opText(part, i)), idle: part.idle, devices: part.devices.map(device => device.id),
    cause: numbers(part.causes.cause), slack: numbers(part.causes.slack), critical: numbers(part.critical), last: last, back: chainBack(part, last),
    held: numbers(part.start).map((_, i) => numbers(heldBy(part, i))), all: chainForward(part, 0).count,
    rows: part.rows.lanes.map(row => ({ lane: row.lane, ops: numbers(row.ops), start: numbers(row.start), reach: numbers(row.reach), busy: numbers(row.busy) })),
    links: part.rows.links.map(row => ({ label: row.label, ops: row.ops.length })), longest: lane.lane, classes: numbers(part.column), ranges: ranges,
    lives: { from: numbers(part.lives.from), to: numbers(part.lives.to) }, hits: findOps(part, 'GEMM'),
    against: parts.some(one => one.match) ? numbers(classColumn(part, parts, 'time against the first')) : [], took: numbers(part.start).map((start, i) => part.end[i] - start),
    partner: numbers(part.start).map((_, i) => { const p = partnerOf(part, parts, i); return p ? p.op : -1; }),
  };
});`, { data: data, atob: atob, TextDecoder: TextDecoder });
process.stdout.write(JSON.stringify(told));
