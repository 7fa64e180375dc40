// SPDX-License-Identifier: Apache-2.0
// The page: what is shown, what is selected, and what keys, mouse and panel do with it. Names get into the page as text only.
'use strict';

const $ = id => document.getElementById(id);

function element(name, attributes, ...children) {
  const e = Object.assign(document.createElement(name), attributes);
  e.append(...children.filter(child => child !== null));
  return e;
}

const IDLE_COLOURS = {
  copy: '#e0a030', collective: '#3f9d63', 'another device': '#7f6bb5', memory: '#c5533a', host: '#b8a500', overhead: '#9aa3ad', 'nothing left': '#dfe3e8',
};

const namesOf = (parts, namesIn) => [...new Set(parts.flatMap(namesIn))];

class Viewer {
  constructor(parts) {
    this.options = { links: true, memories: true, beside: true };
    this.canvas = new Canvas($('view'));
    this.map = new Canvas($('map'));
    this.frames = [];
    this.changes = noChanges(); // what the server is asked for
    this.told = ''; // and what it refused
    this.take(parts);
  }
  // Shows these timelines in place of others.
  take(parts) {
    this.parts = parts;
    this.whole = Math.max(1, ...parts.map(part => part.makespan));
    this.from = 0;
    this.to = this.whole;
    this.scroll = 0;
    this.selected = null; // { part, op } or { part, box }
    this.chain = { back: [], forward: [], count: 0 };
    this.hits = [];
    this.hit = -1;
    $('hits').textContent = '';
    $('mode').replaceChildren(...this.modes().map(name => element('option', { textContent: name, value: name })));
    $('beside-label').hidden = parts.length === 1;
    $('show-beside').checked = this.options.beside;
    $('headline').textContent = parts.map(part => (parts.length > 1 ? part.title + ' ' : 'makespan ') + timeText(part.makespan)).join(' \u00b7 ') + ' \u00b7 ' + countText(parts[0].count) + ' ops \u00b7 ' + parts[0].machine;
    this.setMode(this.modes()[0]);
    this.prepare();
  }

  // ---- what is shown ----

  modes() {
    const modes = ['kernel', 'critical path'];
    if (this.parts.some(part => part.predicted)) modes.push('prediction error');
    if (this.parts.some(part => part.match)) {
      modes.unshift('difference');
      modes.push('time against the first');
    }
    return modes;
  }
  setMode(mode) {
    this.mode = mode;
    for (const part of this.parts) {
      part.column = classColumn(part, this.parts, mode);
      part.paint = makePaint(classesOf(this.parts, mode) || part.groups);
      for (const row of [...part.rows.lanes, ...part.rows.links]) makeLevels(row, part.column);
    }
    this.mapDrawn = false;
    this.layout();
  }
  // Pictures of memories with many boxes, one after the other while nothing else is to be done.
  prepare() {
    const rows = this.parts.flatMap(part => part.rows.memories).filter(row => row.boxes.length > BOXES);
    const next = () => {
      if (!rows.length) return;
      const row = rows.pop();
      rasterOf(row, row.part.paint);
      setTimeout(next, 30);
    };
    setTimeout(next, 200);
  }
  // Rows from top to bottom: a title for each part, then devices with their lanes, links, memories.
  layout() {
    const items = [], beside = this.options.beside && this.parts.length > 1;
    let y = 0;
    const add = (kind, height, more) => {
      items.push({ kind: kind, y: y, height: height, ...more });
      y += height;
    };
    // Devices of the same name, and lanes of the same name below each other.
    const addLanes = parts => namesOf(parts, part => part.devices.map(device => device.id)).forEach(id => {
      const rows = parts.flatMap(part => part.rows.lanes.filter(row => part.devices[part.lanes[row.lane].device].id === id));
      const busy = parts.map(part => part.devices.findIndex(device => device.id === id)).map((d, p) => d < 0 ? '-' : percentText(parts[p].idle[d].busy, parts[p].makespan));
      if (rows.length) add('head', HEAD, { part: parts[0], text: id, note: busy.join(' / ') + ' busy' });
      for (const label of new Set(rows.map(row => row.label))) {
        const group = rows.filter(row => row.label === label);
        group.forEach((row, i) => add('row', LANE, { row: row, text: i ? '' : label, gap: i + 1 < group.length ? 1 : 3 }));
      }
    });
    const addRest = part => {
      if (this.options.links && part.rows.links.length) {
        add('head', HEAD, { part: part, text: 'links', note: '' });
        for (const row of part.rows.links) add('row', LANE, { row: row, text: row.label, gap: 3 });
      }
      if (this.options.memories && part.rows.memories.length) {
        add('head', HEAD, { part: part, text: 'memory', note: 'addresses from bottom to top' });
        for (const row of part.rows.memories) add('memory', MEMORY, { row: row, text: row.label, gap: 5 });
      }
    };
    const title = part => add('title', TITLE, { part: part, text: part.title, note: timeText(part.makespan) + ' \u00b7 ' + part.policy + ' on ' + part.machine });
    if (beside) {
      add('title', TITLE, { part: this.parts[0], text: this.parts.map(part => part.title).join(' above '), note: this.parts.map(part => timeText(part.makespan)).join(' / ') });
      addLanes(this.parts);
      for (const part of this.parts) {
        if (!(part.rows.links.length && this.options.links) && !(part.rows.memories.length && this.options.memories)) continue;
        title(part);
        addRest(part);
      }
    } else {
      for (const part of this.parts) {
        if (this.parts.length > 1) title(part);
        addLanes([part]);
        addRest(part);
      }
    }
    this.items = items;
    this.bottom = y + 12;
    this.where = new Map(); // of each part: y of its lanes, for arrows
    for (const part of this.parts) this.where.set(part, new Map());
    for (const item of items) if (item.kind === 'row' && item.row.kind === 'lane') this.where.get(item.row.part).set(item.row.lane, item);
    this.draw();
  }
  show(from, to) {
    const least = Math.min(this.whole, 1000), span = Math.min(this.whole, Math.max(to - from, least));
    this.from = Math.max(0, Math.min(from, this.whole - span));
    this.to = this.from + span;
    this.draw();
  }
  zoom(factor, at = (this.from + this.to) / 2) {
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }
  move(share) {
    const by = share * (this.to - this.from);
    this.show(this.from + by, this.to + by);
  }
  scrollTo(y) {
    this.scroll = Math.max(0, Math.min(y, this.bottom - (this.canvas.height - RULER)));
    this.draw();
  }
  fit() {
    const { selected } = this, span = this.to - this.from;
    if (!selected) return this.show(0, this.whole);
    const [from, to] = selected.op === undefined ? [selected.part.lives.from[selected.box], selected.part.lives.to[selected.box]] : [selected.part.start[selected.op], selected.part.end[selected.op]];
    const wanted = Math.max(4 * (to - from), 1000);
    if (Math.abs(span - Math.min(wanted, this.whole)) < 0.01 * span) return this.show(0, this.whole);
    return this.show((from + to - wanted) / 2, (from + to + wanted) / 2);
  }

  // ---- frames ----

  draw() {
    if (this.waiting) return;
    this.waiting = true;
    requestAnimationFrame(() => {
      this.waiting = false;
      this.drawNow();
    });
  }
  drawNow() {
    const begin = performance.now();
    this.canvas.resize();
    this.scroll = Math.max(0, Math.min(this.scroll, this.bottom - (this.canvas.height - RULER)));
    this.drawView();
    this.drawMap();
    this.frames.push(performance.now() - begin);
    if (this.frames.length > 500) this.frames.shift();
  }
  // What of the view is visible, in pixels of the canvas.
  visible() {
    const { ratio, height } = this.canvas, from = this.scroll, to = this.scroll + height - RULER;
    return this.items.filter(item => item.y + item.height > from && item.y < to)
      .map(item => ({ ...item, y: Math.round((item.y - this.scroll + RULER) * ratio), height: Math.round((item.height - (item.gap || 0)) * ratio) }));
  }
  drawView() {
    const canvas = this.canvas, c = canvas.context, ratio = canvas.ratio, items = this.visible();
    const left = Math.round(GUTTER * ratio), width = Math.max(1, Math.round(canvas.width * ratio) - left);
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.fillStyle = '#fff';
    c.fillRect(0, 0, canvas.element.width, canvas.element.height);
    this.drawGrid(left, width);
    for (const item of items) {
      c.fillStyle = item.kind === 'row' && item.row.part !== this.parts[0] ? '#e9eff6' : '#f4f6f8';
      if (item.kind === 'row') c.fillRect(left, item.y, width, item.height);
    }
    for (const part of this.parts) {
      canvas.drawRows(items.filter(item => item.kind === 'row' && item.row.part === part), part.paint, this.from, this.to, left, width);
      canvas.drawLabels();
    }
    for (const item of items) if (item.kind === 'memory') canvas.drawMemory(item, item.row.part.paint, this.from, this.to, left, width);
    this.drawMarks(items, left, width);
    this.drawGutter(items, left);
    this.drawRuler(left, width);
  }
  drawGrid(left, width) {
    const c = this.canvas.context, span = this.to - this.from, step = tickStep(span, Math.max(2, width / this.canvas.ratio / 110));
    c.fillStyle = LINE;
    for (let t = Math.ceil(this.from / step) * step; t <= this.to; t += step) c.fillRect(Math.round(left + (t - this.from) / span * width), 0, 1, this.canvas.element.height);
    for (const part of this.parts) {
      c.fillStyle = '#b4bcc5';
      if (part.makespan <= this.to) c.fillRect(Math.round(left + (part.makespan - this.from) / span * width), 0, this.canvas.ratio, this.canvas.element.height);
    }
  }
  drawRuler(left, width) {
    const c = this.canvas.context, ratio = this.canvas.ratio, span = this.to - this.from, step = tickStep(span, Math.max(2, width / ratio / 110));
    c.fillStyle = '#fff';
    c.fillRect(0, 0, left + width, RULER * ratio - 1);
    c.fillStyle = '#d5dae0';
    c.fillRect(0, RULER * ratio - 1, left + width, 1);
    c.fillStyle = WEAK;
    c.font = 11 * ratio + 'px ' + FONT;
    c.textBaseline = 'middle';
    for (let t = Math.ceil(this.from / step) * step; t <= this.to; t += step) {
      const x = left + (t - this.from) / span * width;
      c.textAlign = x > left + width - 30 * ratio ? 'right' : x < left + 20 * ratio ? 'left' : 'center';
      c.fillText(tickText(Math.round(t), step), x, RULER * ratio / 2);
    }
    c.textAlign = 'left';
    c.fillText(timeText(span, 3) + ' shown', 10 * ratio, RULER * ratio / 2);
  }
  drawGutter(items, left) {
    const c = this.canvas.context, ratio = this.canvas.ratio;
    c.fillStyle = '#fff';
    c.fillRect(0, RULER * ratio, left, this.canvas.element.height);
    c.textBaseline = 'middle';
    const text = (words, x, y, style, colour, most) => {
      c.font = style + 'px ' + FONT;
      c.fillStyle = colour;
      const fits = Math.floor(most / (0.56 * parseFloat(style.match(/[\d.]+$/))));
      c.fillText(words.length <= fits ? words : words.slice(0, Math.max(1, fits - 1)) + '\u2026', x, y);
      return x + c.measureText(words).width;
    };
    for (const item of items) {
      const middle = item.y + item.height / 2;
      if (item.kind === 'title') {
        c.fillStyle = '#eef1f4';
        c.fillRect(0, item.y + 4 * ratio, this.canvas.element.width, item.height - 6 * ratio);
        const end = text(item.text, 10 * ratio, middle + ratio, '600 ' + 13 * ratio, INK, 900 * ratio);
        text(item.note, end + 14 * ratio, middle + ratio, '' + 12 * ratio, WEAK, 1500 * ratio);
      } else if (item.kind === 'head') {
        const end = text(item.text, 10 * ratio, middle + 2 * ratio, '600 ' + 12 * ratio, INK, left - 20 * ratio);
        text(item.note, Math.min(end + 8 * ratio, left), middle + 2 * ratio, '' + 11 * ratio, WEAK, 400 * ratio);
      } else {
        text(item.text, 20 * ratio, item.kind === 'memory' ? item.y + 10 * ratio : middle, '' + 11 * ratio, '#3c444d', left - 28 * ratio);
        if (item.kind === 'memory') text(bytesText(item.row.top) + ' slab', 20 * ratio, item.y + 26 * ratio, '' + 11 * ratio, WEAK, left - 28 * ratio);
      }
    }
  }

  // ---- what is marked ----

  placeOf(part, op, left, width) {
    const item = this.where.get(part).get(part.lane[part.laneFirst[op]]), ratio = this.canvas.ratio, span = this.to - this.from;
    if (!item || part.laneFirst[op] === part.laneFirst[op + 1]) return null;
    const x = left + (part.start[op] - this.from) / span * width, end = left + (part.end[op] - this.from) / span * width;
    return { x: x, end: Math.max(end, x + 1), y: (item.y - this.scroll + RULER) * ratio, height: (item.height - (item.gap || 0)) * ratio };
  }
  widthOf(part, op) {
    return (part.end[op] - part.start[op]) / (this.to - this.from) * this.canvas.width;
  }
  drawMarks(items, left, width) {
    const c = this.canvas.context, ratio = this.canvas.ratio;
    c.save();
    c.beginPath();
    c.rect(left, RULER * ratio, width, this.canvas.element.height);
    c.clip();
    if (this.hits.length) this.outline(this.hits.map(hit => [hit.part, hit.op]), INK, 1.5, left, width);
    if (this.mode === 'difference') this.drawMoves(left, width);
    const { selected } = this;
    if (selected && selected.op !== undefined) {
      this.drawPath(selected.part, [...this.chain.back.slice().reverse(), selected.op], HOT, left, width);
      this.drawPath(selected.part, [selected.op, ...this.chain.forward], COLD, left, width);
      const partner = partnerOf(selected.part, this.parts, selected.op);
      this.outline([[selected.part, selected.op]], INK, 2.5, left, width);
      if (partner) this.link([selected.part, selected.op], [partner.part, partner.op], INK, left, width);
    } else if (selected) {
      const at = items.find(item => item.kind === 'memory' && item.row.part === selected.part && item.row.memory === selected.part.instances.memory[selected.box]);
      const shape = at && boxShape(at.row, selected.box, this.from, width / (this.to - this.from), at.height);
      c.strokeStyle = INK;
      c.lineWidth = 2 * ratio;
      if (at) c.strokeRect(left + shape.x, at.y + shape.y, shape.width, shape.height);
    }
    c.restore();
  }
  outline(ops, colour, thick, left, width) {
    const c = this.canvas.context, ratio = this.canvas.ratio;
    let before = -9;
    c.strokeStyle = colour;
    c.lineWidth = thick * ratio;
    for (const [part, op] of ops) {
      if (part.end[op] < this.from || part.start[op] > this.to) continue;
      const at = this.placeOf(part, op, left, width);
      if (!at || (at.x - before < 1 && at.end - at.x < 2)) continue; // one of many in a pixel is enough
      before = at.x;
      c.strokeRect(Math.max(at.x, left - 9), at.y, Math.min(at.end, left + width + 9) - Math.max(at.x, left - 9), at.height);
    }
  }
  // Ops of a chain and the lines from the end of each to the start of the next.
  drawPath(part, ops, colour, left, width) {
    const c = this.canvas.context;
    this.outline(ops.map(op => [part, op]), colour, 2, left, width);
    c.beginPath();
    c.strokeStyle = colour;
    c.lineWidth = 1.5 * this.canvas.ratio;
    for (let i = 1, drawn = 0; i < ops.length && drawn < 2000; i++) {
      if (part.start[ops[i]] < this.from || part.end[ops[i - 1]] > this.to) continue;
      const a = this.placeOf(part, ops[i - 1], left, width), b = this.placeOf(part, ops[i], left, width);
      if (!a || !b || a.y === b.y) continue;
      const [y, to] = a.y < b.y ? [a.y + a.height, b.y] : [a.y, b.y + b.height];
      c.moveTo(a.end, y);
      c.bezierCurveTo(a.end, (y + to) / 2, b.x, (y + to) / 2, b.x, to);
      drawn++;
    }
    c.stroke();
  }
  link(one, other, colour, left, width) {
    const c = this.canvas.context, a = this.placeOf(...one, left, width), b = this.placeOf(...other, left, width);
    if (!a || !b) return;
    const [y, to] = a.y < b.y ? [a.y + a.height, b.y] : [a.y, b.y + b.height];
    this.outline([other], colour, 2, left, width);
    c.beginPath();
    c.strokeStyle = colour;
    c.lineWidth = 1.5 * this.canvas.ratio;
    c.setLineDash([4 * this.canvas.ratio, 3 * this.canvas.ratio]);
    c.moveTo((a.x + a.end) / 2, y);
    c.lineTo((b.x + b.end) / 2, to);
    c.stroke();
    c.setLineDash([]);
  }
  // From where it was to where it is, for what moved, as long as they can be told apart.
  drawMoves(left, width) {
    const c = this.canvas.context, part = this.parts.find(one => one.match);
    if (!part.moves) part.moves = Array.from(part.column.keys()).filter(op => part.column[op] === 1 && part.node[op] >= 0);
    const seen = at => at && at.x < left + width && at.end > left && at.y > 0 && at.y < this.canvas.element.height;
    const shown = part.moves.filter(op => part.start[op] <= this.to && part.end[op] >= this.from && this.widthOf(part, op) > 12);
    if (shown.length > 400) return;
    c.beginPath();
    c.strokeStyle = '#b86e00';
    c.globalAlpha = 0.55;
    c.lineWidth = this.canvas.ratio;
    for (const op of shown) {
      const a = this.placeOf(this.parts[0], part.match[op], left, width), b = this.placeOf(part, op, left, width);
      if (!seen(a) || !seen(b)) continue;
      c.moveTo((a.x + a.end) / 2, a.y + a.height / 2);
      c.lineTo((b.x + b.end) / 2, b.y + b.height / 2);
    }
    c.stroke();
    c.globalAlpha = 1;
  }

  // ---- the map: all of the time ----

  drawMap() {
    const map = this.map, rows = this.parts.flatMap(part => part.rows.lanes), line = Math.max(1, Math.min(5, Math.floor(70 / Math.max(1, rows.length))));
    const shown = rows.slice(0, 90), height = shown.length * line + (this.parts.length - 1) * 4 + 6;
    if (map.element.style.height !== height + 'px') {
      map.element.style.height = height + 'px';
      this.mapDrawn = false;
      this.draw();
    }
    map.resize();
    const c = map.context, ratio = map.ratio, left = Math.round(GUTTER * ratio), width = Math.max(1, Math.round(map.width * ratio) - left);
    if (!this.mapDrawn || this.mapWidth !== map.element.width) {
      c.setTransform(1, 0, 0, 1, 0, 0);
      c.fillStyle = '#fff';
      c.fillRect(0, 0, map.element.width, map.element.height);
      let y = 3;
      for (const part of this.parts) {
        const mine = shown.filter(row => row.part === part);
        map.drawRows(mine.map((row, i) => ({ row: row, y: Math.round((y + i * line) * ratio), height: Math.round(line * ratio) })), part.paint, 0, this.whole, left, width);
        y += mine.length * line + 4;
      }
      this.mapImage = document.createElement('canvas');
      this.mapImage.width = map.element.width;
      this.mapImage.height = map.element.height;
      this.mapImage.getContext('2d').drawImage(map.element, 0, 0);
      this.mapDrawn = true;
      this.mapWidth = map.element.width;
    }
    c.drawImage(this.mapImage, 0, 0);
    const x = left + this.from / this.whole * width, end = left + this.to / this.whole * width;
    c.fillStyle = 'rgb(200 206 213 / 60%)';
    c.fillRect(left, 0, x - left, map.element.height);
    c.fillRect(end, 0, left + width - end, map.element.height);
    c.strokeStyle = COLD;
    c.lineWidth = ratio;
    c.strokeRect(x + 0.5, 0.5, Math.max(2, end - x - 1), map.element.height - 1);
  }

  // ---- finding and selecting ----

  timeAt(x) {
    return this.from + (x - GUTTER) / Math.max(1, this.canvas.width - GUTTER) * (this.to - this.from);
  }
  // What is at a place of the view: { part, op } or { part, box }; null.
  at(x, y) {
    const item = this.items.find(one => y - RULER + this.scroll >= one.y && y - RULER + this.scroll < one.y + one.height);
    if (!item || !item.row || x < GUTTER || y < RULER) return null;
    const row = item.row, part = row.part, time = this.timeAt(x), near = 3 * (this.to - this.from) / this.canvas.width;
    if (item.kind === 'memory') return this.boxAt(item, time, y - RULER + this.scroll - item.y);
    let best = null, distance = near;
    for (let i = search(row.reach, time - near, 0, row.ops.length, false); i < row.ops.length && row.start[i] <= time + near; i++) {
      const op = row.ops[i], away = Math.max(row.start[i] - time, time - part.end[op], 0);
      if (away < distance || (away === 0 && distance === 0)) [best, distance] = [op, away];
      if (i - 2000 > search(row.reach, time - near, 0, row.ops.length, false)) break;
    }
    return best === null ? null : { part: part, op: best };
  }
  boxAt(item, time, y) {
    const row = item.row, part = row.part, height = item.height - item.gap, near = (this.to - this.from) / this.canvas.width;
    const address = (1 - y / height) * row.top, slack = row.top / height;
    let best = null;
    for (let i = search(row.reach, time - near, 0, row.boxes.length, false); i < row.boxes.length && row.start[i] <= time + near; i++) {
      const box = row.boxes[i], offset = part.instances.offset[box];
      if (part.lives.to[box] >= time - near && address >= offset - slack && address <= offset + part.instances.bytes[box] + slack) best = box;
    }
    return best === null ? null : { part: part, box: best };
  }
  select(selected, reveal = false) {
    this.selected = selected;
    this.told = '';
    const chain = selected && selected.op !== undefined;
    const forward = chain ? chainForward(selected.part, selected.op) : { path: [], count: 0 };
    this.chain = { back: chain ? chainBack(selected.part, selected.op) : [], forward: forward.path, count: forward.count };
    if (chain && reveal) this.reveal(selected.part, selected.op);
    this.showPanel();
    this.draw();
  }
  // Brings an op into view, at the zoom that there is unless it is too narrow to be seen.
  reveal(part, op) {
    const item = this.where.get(part).get(part.lane[part.laneFirst[op]]), middle = (part.start[op] + part.end[op]) / 2;
    let span = this.to - this.from;
    if ((part.end[op] - part.start[op]) / span < 0.004) span = Math.max(100 * (part.end[op] - part.start[op]), 1000);
    if (part.start[op] < this.from || part.end[op] > this.to || span !== this.to - this.from) this.show(middle - span / 2, middle + span / 2);
    if (item && (item.y < this.scroll || item.y + item.height > this.scroll + this.canvas.height - RULER)) this.scrollTo(item.y - (this.canvas.height - RULER) / 3);
  }
  search(words) {
    this.hits = words ? this.parts.flatMap(part => findOps(part, words).map(op => ({ part: part, op: op }))) : [];
    this.hit = -1;
    $('hits').textContent = words ? countText(this.hits.length) + (this.hits.length === 1 ? ' hit' : ' hits') : '';
    this.draw();
  }
  nextHit(by) {
    if (!this.hits.length) return;
    this.hit = this.hit < 0 ? (by > 0 ? 0 : this.hits.length - 1) : (this.hit + by + this.hits.length) % this.hits.length;
    $('hits').textContent = countText(this.hit + 1) + ' of ' + countText(this.hits.length);
    this.select(this.hits[this.hit], true);
  }
  clear() {
    $('search').value = '';
    this.search('');
    this.select(null);
  }

  // ---- the panel ----

  showPanel() {
    const { selected } = this;
    $('panel').replaceChildren(...(!selected ? this.overview() : selected.op !== undefined ? this.details(selected.part, selected.op) : this.boxDetails(selected.part, selected.box)));
    $('panel').scrollTop = 0;
  }
  table(rows) {
    return element('table', {}, ...rows.filter(row => row && row[1] !== '').map(([name, text]) => element('tr', {}, element('td', { textContent: name }), element('td', { className: 'wide', textContent: text }))));
  }
  opItem(part, op, note) {
    const paint = part.paint[part.column[op]], box = element('span', { className: 'box' });
    box.style.background = paint.fill;
    box.style.borderColor = paint.line;
    return element('li', { className: 'op', onclick: () => this.select({ part: part, op: op }, true), title: opText(part, op) }, element('span', { className: 'text' }, box, opText(part, op)),
      element('span', { className: 'note', textContent: note }));
  }
  opList(part, ops, note, most = 60) {
    const list = element('ol', {}, ...ops.slice(0, most).map((op, i) => this.opItem(part, op, note(op, i))));
    return ops.length > most ? [list, element('p', { className: 'weak', textContent: '\u2026 and ' + countText(ops.length - most) + ' more' })] : [list];
  }
  heading(text) {
    return element('h3', { textContent: text });
  }
  overview() {
    const several = this.parts.length > 1;
    return this.parts.flatMap(part => [
      element('h2', { textContent: several ? part.title : part.graph }),
      this.table([['makespan', timeText(part.makespan)], part.bound ? ['bound', timeText(part.bound) + ', gap ' + percentText(part.makespan - part.bound, part.bound)] : null,
        part.predicted && part.predicted.makespan ? ['predicted', timeText(part.predicted.makespan) + ', \u00d7' + (part.makespan / part.predicted.makespan).toFixed(3)] : null,
        ['graph', part.graph], ['machine', part.machine], ['policy', part.policy], ['ops', countText(part.count)]]),
      this.heading('devices: busy, and idle why'),
      ...part.devices.flatMap((device, d) => part.idle[d].ops ? this.deviceBar(part, device, d) : []),
    ]).concat(this.changes.move.size + this.changes.route.size ? [this.heading('what if'), ...this.changeList()] : [], this.idleLegend(), this.legend());
  }
  deviceBar(part, device, d) {
    const at = part.idle[d], bar = element('div', { className: 'bar' });
    const piece = (time, colour, title) => {
      const i = element('i', { title: title + ': ' + timeText(time) + ', ' + percentText(time, part.makespan) });
      i.style.width = 100 * time / this.whole + '%';
      i.style.background = colour;
      bar.append(i);
    };
    piece(at.busy, '#4a7fb5', 'busy');
    for (const kind of IDLE) if (at.idle[kind] > 0) piece(at.idle[kind], IDLE_COLOURS[kind], IDLE_TEXT[kind]);
    return [element('div', { className: 'device' }, element('span', { textContent: device.id }), element('span', { textContent: percentText(at.busy, part.makespan) + ' busy, ' + timeText(part.makespan - at.busy, 3) + ' idle' })), bar];
  }
  key(fill, line, text) {
    const box = element('span', { className: 'box' });
    box.style.background = fill;
    box.style.borderColor = line;
    return element('div', {}, box, text);
  }
  idleLegend() {
    const used = IDLE.filter(kind => this.parts.some(part => part.idle.some(at => at.ops && at.idle[kind] > 0)));
    return [this.heading('idle'), this.key('#4a7fb5', '#4a7fb5', 'busy'), ...used.map(kind => this.key(IDLE_COLOURS[kind], IDLE_COLOURS[kind], IDLE_TEXT[kind]))];
  }
  legend() {
    const seen = new Map();
    for (const part of this.parts) {
      const used = new Set(part.column);
      part.paint.forEach((paint, of) => used.has(of) && seen.set(paint.label, paint));
    }
    return [this.heading('colours: ' + this.mode), ...[...seen.values()].map(paint => this.key(paint.fill, paint.line, paint.label))];
  }
  whyText(part, op) {
    const { cause, why, slack } = part.causes;
    if (part.start[op] <= 0) return 'It begins at once.';
    if (cause[op] < 0) return 'It waits for nothing; it begins ' + timeText(slack[op]) + ' after the start.';
    const what = why[op] === WHY.MEMORY ? 'its memory was in use by' : why[op] === WHY.LANE ? 'its lane was busy with' : why[op] === WHY.ENGINE ? (isCopy(part.kind[op]) ? 'the copy engines of its device were busy with' : 'its device was busy with') :
      why[op] === WHY.ORDER ? 'it must come after' : 'it reads what comes from';
    return 'Not earlier, since ' + what + ' ' + opText(part, cause[op]) + ' until ' + timeText(part.end[cause[op]], 6) +
      (slack[op] > 0 ? '; it begins ' + timeText(slack[op]) + ' after that.' : slack[op] < 0 ? '; it began ' + timeText(-slack[op]) + ' before that end was noted.' : '.');
  }
  details(part, op) {
    const kind = part.kinds[part.kind[op]], took = part.end[op] - part.start[op], lanes = Array.from(part.lane.subarray(part.laneFirst[op], part.laneFirst[op + 1]));
    const partner = partnerOf(part, this.parts, op), waits = waitsOf(part, op), held = Array.from(heldBy(part, op));
    const uses = [];
    for (let k = part.useFirst[op]; k < part.useFirst[op + 1] && uses.length < 12; k++)
      uses.push([['', 'reads', 'writes', 'reads, writes', 'adds to', 'min into', 'max into', 'times into'][part.use.mode[k]], useText(part, k) + ' in ' + memoryOf(part, k)]);
    const at = lanes.map(lane => part.devices[part.lanes[lane].device].id + ', ' + part.lanes[lane].label);
    return [
      element('h2', { textContent: opText(part, op) }),
      this.table([['kind', kind + (this.parts.length > 1 ? ', ' + part.title : '')], ['where', at.slice(0, 6).join('; ') + (at.length > 6 ? '; \u2026' : '')], ['begins', timeText(part.start[op], 7)], ['ends', timeText(part.end[op], 7)],
        ['takes', timeText(took) + (!part.predicted && part.alone[op] > 0 && part.alone[op] < took * 0.999 ? ' (alone ' + timeText(part.alone[op]) + ')' : '')],
        part.bytes[op] ? ['bytes', bytesText(part.bytes[op]) + (took > 0 ? ', ' + (part.bytes[op] / took * 1000).toPrecision(3) + ' GB/s' : '')] : null,
        partner ? [partner.part.title, timeText(partner.part.end[partner.op] - partner.part.start[partner.op]) + ' on ' + (placeText(partner.part, partner.op) || '-') + ', begins ' + timeText(partner.part.start[partner.op], 6)] : null,
        part.predicted ? ['error', '\u00d7' + errorOf(part, op).toFixed(3) + ' of what was predicted'] : null, part.critical[op] ? ['', 'on the critical path'] : null, ...uses]),
      this.heading('why here and not earlier'),
      element('p', { textContent: this.whyText(part, op) }),
      ...this.askWhy(part, op),
      ...(waits.length > 1 ? [element('p', { className: 'weak', textContent: 'All it waits for, the last to end first:' }), ...this.opList(part, waits.map(wait => wait.op), (_, i) => WHY_TEXT[waits[i].why], 12)] : []),
      ...this.askWhatIf(part, op),
      this.heading('causes, back to the start: ' + countText(this.chain.back.length)),
      ...this.opList(part, this.chain.back, cause => timeText(part.end[cause] - part.start[cause], 3)),
      this.heading('holds up: ' + countText(held.length) + ' directly, ' + countText(this.chain.count) + ' in all'),
      ...this.opList(part, held, next => timeText(part.start[next], 4), 20),
    ];
  }

  // ---- asking the server ----

  // A button for why the node is on its device: what --explain says.
  askWhy(part, op) {
    if (!isServed() || part !== this.parts[0] || part.node[op] < 0) return [];
    const text = element('pre', { hidden: true }), show = told => {
      text.textContent = told;
      text.hidden = false;
    };
    const ask = () => askServer('why', { node: part.nodes[part.node[op]] }).then(show, error => show(error.message));
    return [element('button', { textContent: 'why on this device', onclick: ask }), text];
  }
  // Another device for a node; other figures for the link of a copy.
  askWhatIf(part, op) {
    const pair = pairOf(part, op), node = part.node[op] < 0 ? null : part.nodes[part.node[op]];
    if (!isServed() || (node === null && pair === null)) return [];
    return [this.heading('what if'), ...(node !== null ? this.moveForm(part, op, node) : []), ...(pair !== null ? this.routeForm(pair) : []), ...this.changeList()];
  }
  moveForm(part, op, node) {
    const devices = element('select', {}, ...part.devices.map(device => element('option', { textContent: device.id, value: device.id })));
    devices.value = this.changes.move.get(node) || placeText(part, op);
    return [element('div', {}, 'it were on ', devices, ' ', element('button', { textContent: 'move', onclick: () => this.change('move', node, devices.value) }))];
  }
  routeForm(pair) {
    const gbs = element('input', { size: 7 }), latency = element('input', { size: 7 });
    const change = () => {
      const { rate, wrong } = readRate(gbs.value, latency.value);
      if (rate) return this.change('route', pair, rate);
      this.told = wrong;
      return this.showPanel();
    };
    return [element('div', {}, pair.replace(':', ' \u2192 ') + ' had ', gbs, ' GB/s, latency ', latency, ' us ', element('button', { textContent: 'change', onclick: change }))];
  }
  // What has been changed, each with a way back, and what was refused.
  changeList() {
    const words = changeWords(this.changes), keys = kind => [...this.changes[kind].keys()];
    const item = (kind, i) => element('li', {}, element('span', { className: 'text', textContent: kind + ' ' + words[kind][i] }), element('button', { textContent: 'undo', onclick: () => this.change(kind, keys(kind)[i], null) }));
    const items = ['move', 'route'].flatMap(kind => keys(kind).map((_, i) => item(kind, i)));
    return [...(this.told ? [element('p', { className: 'wrong', textContent: this.told })] : []), ...(items.length ? [element('ol', { className: 'changes' }, ...items)] : [])];
  }
  // Asks for all changes so far and this one; one that is refused is forgotten. `value` null: as it was.
  async change(kind, key, value) {
    const wanted = { move: new Map(this.changes.move), route: new Map(this.changes.route) };
    if (value === null) wanted[kind].delete(key);
    else wanted[kind].set(key, value);
    try {
      const any = wanted.move.size + wanted.route.size > 0;
      const page = any ? await askServer('what-if', changeWords(wanted)) : await (await fetch('.')).text();
      const { selected } = this, first = selected && selected.part === this.parts[0], parts = makeModel(readPage(bytesOfBase64(dataOf(page))));
      this.changes = wanted;
      this.told = '';
      this.take(parts);
      this.select(first ? { ...selected, part: parts[0] } : null);
    } catch (error) {
      this.told = error.message;
      this.showPanel();
    }
  }
  boxDetails(part, box) {
    const at = part.instances, lives = part.lives, users = [];
    for (let i = 0; i < part.count; i++)
      for (let k = part.useFirst[i]; k < part.useFirst[i + 1]; k++) if (part.use.instance[k] === box && users[users.length - 1] !== i) users.push(i);
    return [
      element('h2', { textContent: boxText(part, box) }),
      this.table([['memory', part.memories[at.memory[box]].id], ['address', countText(at.offset[box]) + ' to ' + countText(at.offset[box] + at.bytes[box])], ['bytes', bytesText(at.bytes[box])],
        ['in use', timeText(lives.from[box], 6) + ' to ' + timeText(lives.to[box], 6)], ['role', ['data', 'accumulator', 'kept from start to start', 'external'][at.role[box]]]]),
      this.heading('used by ' + countText(users.length)),
      ...this.opList(part, users, op => timeText(part.start[op], 4)),
    ];
  }
}

// ---- keys and mouse ----

function listenToKeys(viewer) {
  const keys = {
    w: () => viewer.zoom(0.7), s: () => viewer.zoom(1 / 0.7), a: () => viewer.move(-0.15), d: () => viewer.move(0.15), ArrowLeft: () => viewer.move(-0.15), ArrowRight: () => viewer.move(0.15),
    ArrowUp: () => viewer.scrollTo(viewer.scroll - 60), ArrowDown: () => viewer.scrollTo(viewer.scroll + 60), f: () => viewer.fit(), n: () => viewer.nextHit(1), N: () => viewer.nextHit(-1),
    '/': () => $('search').focus(), '?': () => $('keys').showModal(), Escape: () => viewer.clear(),
    b: () => viewer.chain.back.length && viewer.select({ part: viewer.selected.part, op: viewer.chain.back[0] }, true),
    e: () => viewer.chain.forward.length && viewer.select({ part: viewer.selected.part, op: viewer.chain.forward[0] }, true),
  };
  addEventListener('keydown', event => {
    const typing = event.target === $('search');
    if (event.ctrlKey || event.metaKey || event.altKey || $('keys').open || event.target.closest?.('#panel input, #panel select')) return;
    if (typing && event.key === 'Enter') viewer.nextHit(event.shiftKey ? -1 : 1);
    if (typing && event.key === 'Escape') $('search').blur();
    if ((typing && event.key !== 'Escape') || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
}

function listenToMouse(viewer) {
  const view = $('view'), tip = $('tip');
  let drag = null;
  view.addEventListener('wheel', event => {
    event.preventDefault();
    if (event.shiftKey) viewer.scrollTo(viewer.scroll + (event.deltaY || event.deltaX));
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) viewer.move(event.deltaX / 1000);
    else viewer.zoom(Math.exp(event.deltaY / 400), viewer.timeAt(event.offsetX));
  }, { passive: false });
  view.addEventListener('pointerdown', event => {
    view.setPointerCapture(event.pointerId);
    drag = { x: event.offsetX, y: event.offsetY, from: viewer.from, to: viewer.to, scroll: viewer.scroll, range: event.shiftKey, moved: false };
  });
  view.addEventListener('pointermove', event => {
    if (drag) {
      const dx = event.offsetX - drag.x, dy = event.offsetY - drag.y, per = (drag.to - drag.from) / Math.max(1, viewer.canvas.width - GUTTER);
      drag.moved = drag.moved || Math.abs(dx) + Math.abs(dy) > 3;
      if (!drag.moved || drag.range) return;
      view.classList.add('moving');
      tip.hidden = true;
      viewer.show(drag.from - dx * per, drag.to - dx * per);
      viewer.scrollTo(drag.scroll - dy);
      return;
    }
    const found = viewer.at(event.offsetX, event.offsetY);
    tip.hidden = !found;
    if (!found) return;
    tip.textContent = found.op === undefined ? boxText(found.part, found.box) + '\n' + bytesText(found.part.instances.bytes[found.box]) :
      opText(found.part, found.op) + '\n' + timeText(found.part.end[found.op] - found.part.start[found.op]) + ' from ' + timeText(found.part.start[found.op], 6);
    tip.style.left = Math.min(event.clientX + 14, innerWidth - 300) + 'px';
    tip.style.top = Math.min(event.clientY + 16, innerHeight - 60) + 'px';
  });
  view.addEventListener('pointerup', event => {
    view.classList.remove('moving');
    if (drag && !drag.moved) viewer.select(viewer.at(event.offsetX, event.offsetY));
    if (drag && drag.moved && drag.range) {
      const [from, to] = [viewer.timeAt(drag.x), viewer.timeAt(event.offsetX)].sort((a, b) => a - b);
      viewer.show(from, to);
    }
    drag = null;
  });
  view.addEventListener('pointerleave', () => { tip.hidden = true; });
}

// The map: a click or drag puts the middle of the view there.
function listenToMap(viewer) {
  const map = $('map');
  const centre = event => {
    const share = (event.offsetX - GUTTER) / Math.max(1, viewer.map.width - GUTTER), half = (viewer.to - viewer.from) / 2;
    viewer.show(share * viewer.whole - half, share * viewer.whole + half);
  };
  map.addEventListener('pointerdown', event => {
    map.setPointerCapture(event.pointerId);
    centre(event);
  });
  map.addEventListener('pointermove', event => { if (event.buttons & 1) centre(event); });
}

function listenToTools(viewer) {
  const search = $('search'), mode = $('mode');
  search.addEventListener('input', () => viewer.search(search.value.trim()));
  mode.addEventListener('change', () => {
    viewer.setMode(mode.value);
    viewer.showPanel();
    $('view').focus();
  });
  for (const name of Object.keys(viewer.options))
    $('show-' + name).addEventListener('change', event => {
      viewer.options[name] = event.target.checked;
      viewer.layout();
    });
  $('fit').onclick = () => viewer.fit();
  $('help').onclick = () => $('keys').showModal();
  addEventListener('resize', () => viewer.draw());
}

function begin() {
  const parts = makeModel(readPage(bytesOfBase64($('data').textContent)));
  $('data').remove();
  const viewer = window.viewer = new Viewer(parts);
  $('name').textContent = parts[0].graph;
  listenToKeys(viewer);
  listenToMouse(viewer);
  listenToMap(viewer);
  listenToTools(viewer);
  viewer.showPanel();
}

if (typeof document !== 'undefined') begin();
