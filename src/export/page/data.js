// SPDX-License-Identifier: Apache-2.0
// Reads the columns that columns.c writes; page.h has their list. Times become picoseconds, lists of lists become one flat array and the
// index of each item's first entry, as in `laneFirst` and `lane`.
'use strict';

const KIND = { LAUNCH: 0, HOST: 1, FILL: 2, COPY: 3, COLLECTIVE: 4, EVICT: 5, FETCH: 6 };
const REUSE = 2; // of the reasons
const SLAB = 0, STAGING = 3; // of the spaces
const PERSIST = 2; // of the roles

function bytesOfBase64(text) {
  const raw = atob(text.trim()), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

class Reader {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
    this.utf8 = new TextDecoder();
  }
  number() {
    let byte = this.bytes[this.at++];
    if (byte < 128) return byte;
    let value = byte & 127;
    for (let scale = 128; ; scale *= 128) {
      byte = this.bytes[this.at++];
      if (byte === undefined) throw new Error('the data of the page ends too early');
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  }
  signed() {
    const twice = this.number();
    return twice % 2 ? -(twice + 1) / 2 : twice / 2;
  }
  text() {
    const length = this.number();
    this.at += length;
    return this.utf8.decode(this.bytes.subarray(this.at - length, this.at));
  }
  list(read) {
    const items = new Array(this.number());
    for (let i = 0; i < items.length; i++) items[i] = read();
    return items;
  }
  texts() {
    return this.list(() => this.text());
  }
  // Front-coded: how many bytes are those of the name before, and the rest.
  names() {
    let name = new Uint8Array(256);
    return this.list(() => {
      const shared = this.number(), rest = this.number();
      if (shared + rest > name.length) {
        const larger = new Uint8Array(2 * (shared + rest));
        larger.set(name);
        name = larger;
      }
      name.set(this.bytes.subarray(this.at, this.at + rest), shared);
      this.at += rest;
      return this.utf8.decode(name.subarray(0, shared + rest));
    });
  }
  column(Type, count) {
    const column = new Type(count);
    for (let i = 0; i < count; i++) column[i] = this.number();
    return column;
  }
  steps(Type, count, offset = 0) {
    const column = new Type(count);
    for (let i = 0, now = 0; i < count; i++) {
      now += this.signed();
      column[i] = now + offset;
    }
    return column;
  }
  // Mostly zeros: each is followed by how many more there are.
  sparse(Type, count) {
    const column = new Type(count);
    for (let i = 0; i < count; i++) {
      column[i] = this.number();
      if (column[i] === 0) i += this.number();
    }
    return column;
  }
  sparseSigned(count) {
    return this.sparse(Float64Array, count).map(twice => twice % 2 ? -(twice + 1) / 2 : twice / 2);
  }
  sparseSteps(count) {
    let now = 0;
    return this.sparseSigned(count).map(step => now += step);
  }
}

// A flat array that grows: how many entries all items have is known at the end.
class Growing {
  constructor(Type, count) {
    this.at = new Type(count + 16);
    this.count = 0;
  }
  push(value) {
    if (this.count === this.at.length) {
      const larger = new this.at.constructor(2 * this.count);
      larger.set(this.at);
      this.at = larger;
    }
    this.at[this.count++] = value;
  }
  end() {
    return this.at.subarray(0, this.count);
  }
}

function readPlaces(r, part) {
  part.memories = r.list(() => ({ id: r.text(), capacity: r.number(), slab: r.number() }));
  part.devices = r.list(() => ({ id: r.text(), memory: r.number() }));
  part.lanes = r.list(() => ({ device: r.number(), kind: r.number(), label: r.text() }));
  part.groups = r.list(() => ({ label: r.text(), fill: r.text(), line: r.text() }));
  part.kinds = r.texts();
  part.reasons = r.texts();
  part.nodes = r.names();
}

function readInstances(r, part) {
  const values = r.names();
  part.values = { name: values, generation: r.column(Uint32Array, values.length), rows: r.column(Float64Array, values.length) };
  const regions = r.names();
  part.regions = { name: regions, value: r.sparseSteps(regions.length), first: r.steps(Float64Array, regions.length), rows: r.sparseSteps(regions.length) };
  const count = r.number();
  const at = { count: count, region: r.steps(Uint32Array, count), memory: r.column(Uint16Array, count) };
  const places = r.column(Uint8Array, count);
  at.space = places.map(place => place % 4);
  at.role = places.map(place => place >> 2);
  at.bytes = r.sparseSteps(count);
  at.offset = r.steps(Float64Array, count);
  part.instances = at;
}

function readLanes(r, part) {
  const lane = new Growing(Uint32Array, part.count);
  part.laneFirst = new Uint32Array(part.count + 1);
  for (let i = 0; i < part.count; i++) {
    const coded = r.number();
    if (coded % 2 === 0) lane.push(coded / 2);
    else for (let left = (coded - 1) / 2; left > 0; left--) lane.push(r.number());
    part.laneFirst[i + 1] = lane.count;
  }
  part.lane = lane.end();
}

function readTimes(r, part) {
  const count = part.count, ends = new Float64Array(part.lanes.length);
  const from = new Float64Array(count);
  part.start = new Float64Array(count);
  part.end = new Float64Array(count);
  for (let i = 0; i < count; i++) from[i] = r.signed();
  for (let i = 0; i < count; i++) {
    const first = part.laneFirst[i], last = part.laneFirst[i + 1];
    part.start[i] = from[i] + (first < last ? ends[part.lane[first]] : 0);
    part.end[i] = part.start[i] + r.number();
    for (let k = first; k < last; k++) ends[part.lane[k]] = part.end[i];
  }
  part.alone = r.sparseSigned(count).map((more, i) => part.end[i] - part.start[i] + more);
  part.bytes = r.column(Float64Array, count);
}

function readUses(r, part) {
  const instance = new Growing(Uint32Array, 2 * part.count), mode = new Growing(Uint8Array, 2 * part.count);
  const region = new Growing(Uint32Array, 2 * part.count);
  part.useFirst = new Uint32Array(part.count + 1);
  for (let i = 0, before = 0; i < part.count; i++) {
    for (let left = r.number(); left > 0; left--) {
      const coded = r.number(), step = Math.floor(coded / 16), low = coded % 16;
      before += step % 2 ? -(step + 1) / 2 : step / 2;
      instance.push(before);
      mode.push(low >> 1);
      region.push(low & 1 ? part.instances.region[before] : r.number());
    }
    part.useFirst[i + 1] = instance.count;
  }
  part.use = { instance: instance.end(), mode: mode.end(), region: region.end() };
}

function readWaits(r, part) {
  const from = new Growing(Uint32Array, 2 * part.count), reason = new Growing(Uint8Array, 2 * part.count);
  part.waitFirst = new Uint32Array(part.count + 1);
  for (let i = 0; i < part.count; i++) {
    for (let left = r.number(); left > 0; left--) {
      const coded = r.number();
      from.push(i - Math.floor(coded / 4));
      reason.push(coded % 4);
    }
    part.waitFirst[i + 1] = from.count;
  }
  part.wait = { from: from.end(), reason: reason.end() };
}

function readSchedule(r, part) {
  part.graph = r.text();
  part.machine = r.text();
  part.policy = r.text();
  part.makespan = r.number();
  part.bound = r.number();
  readPlaces(r, part);
  readInstances(r, part);
  const count = part.count = r.number();
  const kinds = r.column(Uint8Array, count);
  part.kind = kinds.map(kind => kind % 8);
  part.repeat = kinds.map(kind => kind >> 3 & 1);
  part.joined = kinds.map(kind => kind >> 4 & 1);
  part.critical = kinds.map(kind => kind >> 5 & 1);
  part.group = r.column(Uint8Array, count);
  part.node = r.steps(Int32Array, count, -1);
  part.iteration = r.sparse(Uint32Array, count);
  part.word = r.sparse(Uint8Array, count);
  readLanes(r, part);
  readTimes(r, part);
  readUses(r, part);
  readWaits(r, part);
  part.words = r.texts();
}

// What was measured has everything of what was predicted but the times.
function readMeasured(r, part, base) {
  Object.assign(part, base, { title: part.title, index: part.index, predicted: base, bound: 0 });
  const start = r.steps(Float64Array, part.count), end = new Float64Array(part.count);
  part.makespan = 0;
  for (let i = 0; i < part.count; i++) {
    start[i] *= 1000;
    end[i] = start[i] + 1000 * r.number();
    part.makespan = Math.max(part.makespan, end[i]);
  }
  part.start = start;
  part.end = end;
}

function readPage(bytes) {
  const r = new Reader(bytes), parts = [];
  if (r.text() !== 'gantry 2') throw new Error('the data of the page is of another version');
  for (let left = r.number(); left > 0; left--) {
    const part = { title: r.text(), index: parts.length, predicted: null, match: null };
    const base = r.number();
    if (base) readMeasured(r, part, parts[base - 1]);
    else readSchedule(r, part);
    if (r.number()) part.match = r.steps(Int32Array, part.count, -1);
    parts.push(part);
  }
  if (r.at !== bytes.length) throw new Error('the data of the page has more bytes than it should');
  return parts;
}
