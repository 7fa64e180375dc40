// SPDX-License-Identifier: Apache-2.0
// What follows from the columns: names of ops, why each begins when it does, what it holds up, why devices are idle, and the rows that are
// drawn with what drawing any range of them fast needs.
'use strict';

const WHY = { NOTHING: 0, DATA: 1, ORDER: 2, MEMORY: 3, LANE: 4, ENGINE: 5 };
const WHY_TEXT = ['nothing', 'data', 'an order', 'memory to be free', 'its lane', 'its device'];
const IDLE = ['copy', 'collective', 'another device', 'memory', 'host', 'overhead', 'nothing left'];
const IDLE_TEXT = {
  copy: 'waits for a copy', collective: 'waits for a collective', 'another device': 'waits for work of another device',
  memory: 'waits for memory to be free', host: 'waits for a call of the host', overhead: 'nothing it waits for is running',
  'nothing left': 'has nothing left to do',
};

const isCopy = kind => kind === KIND.COPY || kind === KIND.EVICT || kind === KIND.FETCH;

// ---- names ----

const useText = (part, use) => part.regions.name[part.use.region[use]];
const boxText = (part, box) => part.regions.name[part.instances.region[box]];

const memoryOf = (part, use) => part.memories[part.instances.memory[part.use.instance[use]]].id;

function opText(part, op) {
  const use = part.useFirst[op], last = part.useFirst[op + 1] - 1, word = part.word[op] ? part.words[part.word[op] - 1] : '';
  if (part.node[op] >= 0)
    return part.nodes[part.node[op]] + (part.iteration[op] ? ' (iteration ' + part.iteration[op] + ')' : '') + (part.repeat[op] ? ' again' : '');
  if (last < use) return part.kinds[part.kind[op]];
  if (part.kind[op] === KIND.COLLECTIVE) return word + ' ' + useText(part, last);
  if (part.kind[op] === KIND.FILL) return word + ' identity ' + useText(part, use) + ' ' + memoryOf(part, use);
  return part.kinds[part.kind[op]] + ' ' + useText(part, use) + ' ' + memoryOf(part, use) + ' -> ' + memoryOf(part, use + 1);
}

const deviceOf = (part, op) => part.laneFirst[op] < part.laneFirst[op + 1] ? part.lanes[part.lane[part.laneFirst[op]]].device : -1;

// ---- causes ----

// Copies of a device share its copy engines, and what it computes shares the device. Collectives have neither.
const hasEngine = (part, op) => deviceOf(part, op) >= 0 && part.kind[op] !== KIND.COLLECTIVE;
const engineOf = (part, op) => 2 * deviceOf(part, op) + (isCopy(part.kind[op]) ? 1 : 0);

// The first op of an engine that ended at a time: what one that begins just then, and waited for nothing else, has waited for. By time and
// engine, sorted by time.
function findEnds(part) {
  const engines = Array.from({ length: 2 * part.devices.length }, () => []);
  for (let i = 0; i < part.count; i++) if (hasEngine(part, i) && part.end[i] > part.start[i]) engines[engineOf(part, i)].push(i);
  return engines.map(ops => ops.sort((a, b) => part.end[a] - part.end[b] || a - b)).map(ops => ({ ops: ops, end: Float64Array.from(ops, op => part.end[op]) }));
}

function endedThen(part, ends, op) {
  const engine = ends[engineOf(part, op)], at = search(engine.end, part.start[op], 0, engine.end.length, true);
  return at < engine.ops.length && engine.end[at] === part.start[op] ? engine.ops[at] : -1;
}

// Of all that an op waits for, what ends last: `cause` of each op, or -1, `why` it is one, and `slack`, from its end to the op's start.
function findCauses(part) {
  const cause = new Int32Array(part.count).fill(-1), why = new Uint8Array(part.count), slack = new Float64Array(part.count);
  const last = new Int32Array(part.lanes.length).fill(-1);
  const before = new Int32Array(part.lane.length).fill(-1); // per entry of `lane`: the op before in that lane
  const ends = part.predicted ? null : findEnds(part);
  for (let i = 0; i < part.count; i++) {
    let best = -1, reason = WHY.NOTHING;
    for (let k = part.waitFirst[i]; k < part.waitFirst[i + 1]; k++) {
      const from = part.wait.from[k];
      if (best < 0 || part.end[from] > part.end[best] || (part.end[from] === part.end[best] && from < best)) {
        best = from;
        reason = WHY.DATA + part.wait.reason[k];
      }
    }
    for (let k = part.laneFirst[i]; k < part.laneFirst[i + 1]; k++) {
      const from = before[k] = last[part.lane[k]];
      if (from >= 0 && !part.joined[i] && (best < 0 || part.end[from] > part.end[best])) {
        best = from;
        reason = WHY.LANE;
      }
      last[part.lane[k]] = i;
    }
    if (part.joined[i] && i > 0 && best < 0) {
      best = cause[i - 1];
      reason = why[i - 1];
    }
    if (ends && hasEngine(part, i) && part.start[i] > (best < 0 ? 0 : part.end[best])) {
      const engine = endedThen(part, ends, i);
      if (engine >= 0 && engine !== i) {
        best = engine;
        reason = WHY.ENGINE;
      }
    }
    cause[i] = best;
    why[i] = reason;
    slack[i] = part.start[i] - (best < 0 ? 0 : part.end[best]);
  }
  return { cause: cause, why: why, slack: slack, before: before };
}

// Items by a key, by counting: those of key k are order[first[k]] to order[first[k + 1] - 1], in their order. Keys below 0 are left out.
function sortByKey(keys, count) {
  const first = new Uint32Array(count + 2), order = new Uint32Array(keys.length);
  for (const key of keys) if (key >= 0) first[key + 2]++;
  for (let k = 2; k < count + 2; k++) first[k] += first[k - 1];
  for (let i = 0; i < keys.length; i++) if (keys[i] >= 0) order[first[keys[i] + 1]++] = i;
  return { first: first, order: order };
}

// Back to the start: each op and what it waited for last.
function chainBack(part, op) {
  const chain = [];
  for (let at = part.causes.cause[op]; at >= 0 && chain.length <= part.count; at = part.causes.cause[at]) chain.push(at);
  return chain;
}

function heldBy(part, op) {
  part.held = part.held || sortByKey(part.causes.cause, part.count);
  return part.held.order.subarray(part.held.first[op], part.held.first[op + 1]);
}

// Forward: of all that an op holds up, directly or by others, the path to what ends last, and how many they are.
function chainForward(part, op) {
  const all = [op];
  let end = op;
  for (let i = 0; i < all.length; i++) {
    for (const next of heldBy(part, all[i])) all.push(next);
    if (part.end[all[i]] > part.end[end]) end = all[i];
  }
  const path = [];
  for (; end !== op; end = part.causes.cause[end]) path.push(end);
  return { path: path.reverse(), count: all.length - 1 };
}

// Everything an op had to wait for, the last to end first.
function waitsOf(part, op) {
  const waits = [];
  for (let k = part.waitFirst[op]; k < part.waitFirst[op + 1]; k++) waits.push({ op: part.wait.from[k], why: WHY.DATA + part.wait.reason[k] });
  for (let k = part.laneFirst[op]; k < part.laneFirst[op + 1]; k++)
    if (part.causes.before[k] >= 0) waits.push({ op: part.causes.before[k], why: WHY.LANE });
  if (part.causes.why[op] === WHY.ENGINE) waits.push({ op: part.causes.cause[op], why: WHY.ENGINE });
  return waits.sort((a, b) => part.end[b.op] - part.end[a.op] || a.why - b.why);
}

// ---- idle time ----

function idleKind(part, op, cause, device) {
  if (part.causes.why[op] === WHY.MEMORY) return 'memory';
  if (isCopy(part.kind[cause])) return 'copy';
  if (part.kind[cause] === KIND.COLLECTIVE) return 'collective';
  if (part.kind[cause] === KIND.HOST) return 'host';
  return deviceOf(part, cause) === device ? 'overhead' : 'another device';
}

// A device computes nothing from `from` until `op` begins: goes back along the causes, and gives each the time during which it ran.
function splitGap(part, idle, device, from, op) {
  let until = part.start[op];
  while (until > from) {
    const cause = part.causes.cause[op];
    const ended = Math.max(cause < 0 ? 0 : part.end[cause], from);
    if (until > ended) idle.overhead += until - ended;
    until = Math.min(until, ended);
    if (cause < 0 || until <= from) break;
    const began = Math.min(until, Math.max(part.start[cause], from));
    idle[idleKind(part, op, cause, device)] += until - began;
    until = began;
    op = cause;
  }
}

// Per device: busy time and the idle times by what was waited for; together they are the makespan.
function findIdle(part) {
  const keys = new Int32Array(part.count);
  for (let i = 0; i < part.count; i++) keys[i] = isCopy(part.kind[i]) || part.kind[i] === KIND.COLLECTIVE ? -1 : deviceOf(part, i);
  const byDevice = sortByKey(keys, part.devices.length);
  return part.devices.map((device, d) => {
    const ops = byDevice.order.slice(byDevice.first[d], byDevice.first[d + 1]).sort((a, b) => part.start[a] - part.start[b] || a - b);
    const idle = Object.fromEntries(IDLE.map(kind => [kind, 0]));
    let until = 0, busy = 0;
    for (const op of ops) {
      if (part.start[op] > until) splitGap(part, idle, d, until, op);
      busy += Math.max(0, part.end[op] - Math.max(until, part.start[op]));
      until = Math.max(until, part.end[op]);
    }
    idle['nothing left'] = part.makespan - until;
    return { busy: busy, idle: idle, ops: ops.length };
  });
}

// ---- rows ----

// The first of the sorted `column`'s items from `low` on that is above (or, if `same`, equal to) `value`.
function search(column, value, low, high, same) {
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (column[middle] > value || (same && column[middle] === value)) high = middle;
    else low = middle + 1;
  }
  return low;
}

// Times of a row's ops, sorted, one behind the other in memory: `reach` is how far ops up to there go, `busy` the sum of their times before each.
function makeRow(part, ops) {
  const count = ops.length, row = { part: part, ops: ops, start: new Float64Array(count), end: new Float64Array(count), reach: new Float64Array(count), busy: new Float64Array(count + 1) };
  for (let i = 0; i < count; i++) {
    row.start[i] = part.start[ops[i]];
    row.end[i] = part.end[ops[i]];
    row.reach[i] = Math.max(row.end[i], i ? row.reach[i - 1] : 0);
    row.busy[i + 1] = row.busy[i] + row.end[i] - row.start[i];
  }
  return row;
}

const sortOps = (part, ops) => ops.every((op, i) => !i || part.start[ops[i - 1]] <= part.start[op]) ? ops : ops.slice().sort((a, b) => part.start[a] - part.start[b] || a - b);

function laneRows(part) {
  const keys = new Int32Array(part.lane.length), ops = new Uint32Array(part.lane.length);
  for (let i = 0; i < part.count; i++)
    for (let k = part.laneFirst[i]; k < part.laneFirst[i + 1]; k++) {
      keys[k] = part.lane[k];
      ops[k] = i;
    }
  const sorted = sortByKey(keys, part.lanes.length);
  return part.lanes.map((lane, l) => {
    const mine = sorted.order.slice(sorted.first[l], sorted.first[l + 1]).map(entry => ops[entry]);
    return Object.assign(makeRow(part, sortOps(part, mine)), { kind: 'lane', lane: l, label: lane.label });
  }).filter(row => row.ops.length);
}

// Copies from one memory to another, whatever lanes they are in.
function linkRows(part) {
  const memories = part.memories.length, keys = new Int32Array(part.count).fill(-1);
  for (let i = 0; i < part.count; i++)
    if (isCopy(part.kind[i]) && part.useFirst[i + 1] > part.useFirst[i] + 1) {
      const [from, to] = [0, 1].map(k => part.instances.memory[part.use.instance[part.useFirst[i] + k]]);
      if (from !== to) keys[i] = from * memories + to;
    }
  const sorted = sortByKey(keys, memories * memories), rows = [];
  for (let key = 0; key < memories * memories; key++) {
    const ops = sorted.order.slice(sorted.first[key], sorted.first[key + 1]);
    const label = part.memories[Math.floor(key / memories)].id + ' \u2192 ' + part.memories[key % memories].id;
    if (ops.length) rows.push(Object.assign(makeRow(part, sortOps(part, ops)), { kind: 'link', label: label }));
  }
  return rows;
}

// When each instance is in use: from the start of the first op that uses it to the end of the last; `op`: the first that does.
function findLives(part) {
  const count = part.instances.count;
  const lives = { from: new Float64Array(count).fill(Infinity), to: new Float64Array(count).fill(-1), op: new Int32Array(count).fill(-1) };
  for (let i = 0; i < part.count; i++)
    for (let k = part.useFirst[i]; k < part.useFirst[i + 1]; k++) {
      const at = part.use.instance[k];
      if (part.start[i] < lives.from[at]) lives.op[at] = i;
      lives.from[at] = Math.min(lives.from[at], part.start[i]);
      lives.to[at] = Math.max(lives.to[at], part.end[i]);
    }
  for (let i = 0; i < count; i++)
    if (part.instances.role[i] === PERSIST) {
      lives.from[i] = 0;
      lives.to[i] = part.makespan;
    }
  return lives;
}

function memoryRows(part) {
  const lives = part.lives = findLives(part), keys = new Int32Array(part.instances.count).fill(-1);
  for (let i = 0; i < part.instances.count; i++)
    if ((part.instances.space[i] === SLAB || part.instances.space[i] === STAGING) && lives.to[i] >= 0) keys[i] = part.instances.memory[i];
  const sorted = sortByKey(keys, part.memories.length);
  return part.memories.map((memory, m) => {
    const boxes = sorted.order.slice(sorted.first[m], sorted.first[m + 1]).sort((a, b) => lives.from[a] - lives.from[b] || a - b);
    const row = { part: part, kind: 'memory', memory: m, label: memory.id, boxes: boxes, top: memory.slab, ops: [] };
    row.start = Float64Array.from(boxes, box => lives.from[box]);
    row.reach = new Float64Array(boxes.length);
    boxes.forEach((box, i) => {
      row.reach[i] = Math.max(lives.to[box], i ? row.reach[i - 1] : 0);
      row.top = Math.max(row.top, part.instances.offset[box] + part.instances.bytes[box]);
    });
    return row;
  }).filter(row => row.boxes.length);
}

// ---- classes: what a colour stands for ----

const ERRORS = [0.5, 0.7, 0.87, 1 / 1.03, 1.03, 1.15, 1.4, 2]; // measured / predicted, between the classes
const ERROR_COLOURS = ['#0a4f9e', '#3b7fc4', '#84b3de', '#c3daee', '#e4e6e8', '#f6cdb9', '#ee9a78', '#d95f38', '#a92a0c'];

const grey = { fill: '#e3e6ea', line: '#9aa3ad' }, hot = { fill: '#f7b9a3', line: '#d1370b' };

function classesOf(parts, mode) {
  if (mode === 'critical path') return [{ label: 'on the critical path', ...hot }, { label: 'elsewhere', ...grey }];
  if (mode === 'prediction error' || mode === 'time against the first')
    return ERROR_COLOURS.map((colour, i) => ({
      label: i === 0 ? 'half as long or less' : i < 4 ? 'down to \u00d7' + ERRORS[i - 1].toFixed(2) : i === 4 ? (mode === 'prediction error' ? 'as predicted (3 %)' : 'as in the first (3 %), or only in one') :
        i < 8 ? 'up to \u00d7' + ERRORS[i].toFixed(2) : 'twice as long or more', fill: colour, line: i < 3 || i > 6 ? colour : '#8a929b',
    }));
  if (mode === 'difference')
    return [{ label: 'same place', ...grey }, { label: 'on another device', fill: '#ffe2ad', line: '#b86e00' }, { label: 'only here', fill: '#c6ebcf', line: '#1d7a3e' }];
  return null;
}

function classColumn(part, parts, mode) {
  if (mode === 'critical path') return part.critical.map(critical => critical ? 0 : 1);
  if (mode === 'difference') return differences(part, parts);
  if (mode !== 'prediction error' && mode !== 'time against the first') return part.group;
  const measured = part.predicted ? part : parts.find(other => other.predicted === part), ratioOf = mode === 'prediction error' ? op => measured ? errorOf(measured, op) : 1 : op => againstFirst(part, parts, op);
  return Uint8Array.from({ length: part.count }, (_, op) => errorClass(ratioOf(op)));
}

function errorClass(ratio) {
  let at = 0;
  while (at < ERRORS.length && ratio >= ERRORS[at]) at++;
  return at;
}

// How many times as long as in the first timeline an op, or the partner of one of the first, takes in the other.
function againstFirst(part, parts, op) {
  const partner = partnerOf(part, parts, op), took = (of, i) => of.end[i] - of.start[i];
  if (!partner) return 1;
  const [first, other] = part === parts[0] ? [took(part, op), took(partner.part, partner.op)] : [took(partner.part, partner.op), took(part, op)];
  return first > 0 ? other / first : 1;
}

// How many times as long as predicted an op took.
function errorOf(measured, op) {
  const predicted = measured.predicted.end[op] - measured.predicted.start[op];
  return predicted > 0 ? (measured.end[op] - measured.start[op]) / predicted : 1;
}

function partnerOf(part, parts, op) {
  if (part.predicted) return { part: part.predicted, op: op };
  const measured = parts.find(other => other.predicted === part);
  if (measured) return { part: measured, op: op };
  if (part.match) return part.match[op] < 0 ? null : { part: parts[0], op: part.match[op] };
  const other = parts.find(one => one.match);
  if (!other || part !== parts[0]) return null;
  other.back = other.back || sortByKey(other.match, part.count);
  const at = other.back.first[op];
  return at < other.back.first[op + 1] ? { part: other, op: other.back.order[at] } : null;
}

function differences(part, parts) {
  const column = new Uint8Array(part.count);
  for (let i = 0; i < part.count; i++) {
    const partner = partnerOf(part, parts, i);
    if (!partner) column[i] = 2;
    else column[i] = placeText(part, i) === placeText(partner.part, partner.op) ? 0 : 1;
  }
  return column;
}

function placeText(part, op) {
  const device = deviceOf(part, op);
  return device < 0 ? '' : part.devices[device].id;
}

// The class with most time among 16 neighbours, then among 16 of those, and so on: what a pixel with many ops is painted with.
function makeLevels(row, column) {
  row.classes = Uint8Array.from(row.ops, op => column[op]);
  let below = { of: i => row.classes[i], time: i => row.busy[i + 1] - row.busy[i], count: row.ops.length };
  row.levels = [];
  const sums = new Float64Array(256);
  while (below.count > 16) {
    const count = Math.ceil(below.count / 16), most = new Uint8Array(count), time = new Float64Array(count);
    for (let b = 0; b < count; b++) {
      const last = Math.min(16 * b + 16, below.count);
      for (let i = 16 * b; i < last; i++) sums[below.of(i)] += below.time(i);
      for (let i = 16 * b; i < last; i++) {
        const sum = sums[below.of(i)];
        if (sum >= time[b]) {
          time[b] = sum;
          most[b] = below.of(i);
        }
      }
      for (let i = 16 * b; i < last; i++) sums[below.of(i)] = 0;
    }
    row.levels.push(most);
    below = { of: i => most[i], time: i => time[i], count: count };
  }
}

// What the ops [first, last) of a row are mostly of.
function classAt(row, first, last) {
  let level = 0;
  for (let left = last - first; left >= 32 && level < row.levels.length; left /= 16) level++;
  if (level) return row.levels[level - 1][((first + last) >>> 1) >>> (4 * level)];
  let most = first;
  for (let i = first; i < last; i++) if (row.busy[i + 1] - row.busy[i] > row.busy[most + 1] - row.busy[most]) most = i;
  return row.classes[most];
}

// ---- all of it ----

function makeModel(parts) {
  for (const part of parts) {
    part.causes = findCauses(part);
    part.idle = findIdle(part);
    part.rows = { lanes: laneRows(part), links: linkRows(part), memories: memoryRows(part) };
  }
  return parts;
}

// Ops whose node, rows or kind contain the words, in the order of time: names are looked at once, not for each op.
function findOps(part, words) {
  const wanted = words.toLowerCase(), contains = name => name.toLowerCase().includes(wanted), hits = [];
  const nodes = part.nodes.map(contains), regions = part.regions.name.map(contains), kinds = part.kinds.map(contains);
  for (let i = 0; i < part.count; i++) {
    const node = part.node[i];
    if (node >= 0 ? nodes[node] : kinds[part.kind[i]] || (part.useFirst[i] < part.useFirst[i + 1] && regions[part.use.region[part.useFirst[i]]]))
      hits.push(i);
  }
  return hits.sort((a, b) => part.start[a] - part.start[b] || a - b);
}
