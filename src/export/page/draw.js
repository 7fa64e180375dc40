// SPDX-License-Identifier: Apache-2.0
// Drawing: rows of any range of time. Ops that are two pixels wide or more are boxes; narrower ones are painted together, a pixel at a time,
// by sums that were made before, so that a frame takes as long as the screen is wide, however many ops there are.
'use strict';

const GUTTER = 150, RULER = 24, LANE = 20, MEMORY = 76, HEAD = 22, TITLE = 30;
const INK = '#1b1f24', WEAK = '#6b7480', LINE = '#e3e7eb', HOT = '#d1370b', COLD = '#0a63a8';
const FONT = 'system-ui, Helvetica, Arial, sans-serif';
const BOXES = 2500; // of a memory that are drawn one by one
const RASTER = { columns: 8192, rows: 76 }; // the picture of a memory that has more

// ---- numbers for people ----

function timeText(ps, digits = 4) {
  const units = ['ps', 'ns', '\u00b5s', 'ms', 's'];
  let value = Math.abs(ps), unit = 0;
  for (; unit < 4 && value >= 999.95; unit++) value /= 1000;
  return (ps < 0 ? '\u2212' : '') + +value.toPrecision(digits) + ' ' + units[unit];
}

function bytesText(bytes) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  for (; unit < 4 && bytes >= 1024; unit++) bytes /= 1024;
  return +bytes.toPrecision(4) + ' ' + units[unit];
}

const percentText = (part, whole) => whole > 0 ? (100 * part / whole).toFixed(part / whole < 0.0995 ? 1 : 0) + ' %' : '-';
const countText = n => n.toLocaleString('en-US');

// ---- colours ----

const rgbOf = colour => [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16));

const pixelOf = rgb => (255 << 24 | rgb[2] << 16 | rgb[1] << 8 | rgb[0]) >>> 0;

// Per class a fill, a line, and 64 steps from the background to a colour between them, as pixels.
function makePaint(classes) {
  return classes.map(one => {
    const fill = rgbOf(one.fill), line = rgbOf(one.line), shade = new Uint32Array(64);
    for (let i = 0; i < 64; i++) {
      const share = 0.2 + 0.8 * i / 63, mixed = fill.map((f, k) => Math.round(250 + (0.45 * f + 0.55 * line[k] - 250) * share));
      shade[i] = pixelOf(mixed);
    }
    return { label: one.label, fill: one.fill, line: one.line, shade: shade, pixel: { fill: pixelOf(fill), line: pixelOf(line), middle: shade[50] } };
  });
}

// ---- a row of ops ----

// Calls wide(op, x, end) for boxes, and paints the rest into `pixels`, a line of `width` pixels. The range [from, to) is `width` pixels.
function drawRow(row, paint, from, to, width, pixels, wide) {
  const scale = width / (to - from), count = row.ops.length;
  let i = search(row.reach, from, 0, count, false);
  while (i < count && row.start[i] < to) {
    const x = (row.start[i] - from) * scale, end = (row.end[i] - from) * scale;
    if (end - x >= 2) {
      wide(row.ops[i], x, end, row.classes[i]);
      i++;
      continue;
    }
    const column = Math.max(0, Math.floor(x)), edge = from + (column + 1) / scale;
    let next = i + 1;
    let step = 1; // the next pixel's ops are near: twice as far each time, then between the last two
    while (next + step < count && row.start[next + step] < edge) step *= 2;
    next = search(row.start, edge, next, Math.min(next + step, count), true);
    if (next - 1 > i && (row.end[next - 1] - row.start[next - 1]) * scale >= 2) next--;
    const share = Math.min(1, (row.busy[next] - row.busy[i]) * scale);
    if (column < width) pixels[column] = paint[classAt(row, i, next)].shade[Math.round(63 * share)];
    i = next;
  }
}

// ---- a memory ----

// All of a memory's boxes as one picture, made when it is first wanted.
function rasterOf(row, paint) {
  const part = row.part;
  if (row.raster && row.rasterPaint === paint) return row.raster;
  const { columns, rows } = RASTER, canvas = new OffscreenCanvas(columns, rows);
  const context = canvas.getContext('2d'), image = context.createImageData(columns, rows), pixels = new Uint32Array(image.data.buffer);
  for (const box of row.boxes) {
    const x = Math.floor(part.lives.from[box] / part.makespan * columns), last = Math.min(columns - 1, Math.ceil(part.lives.to[box] / part.makespan * columns) - 1);
    const bottom = rows - 1 - Math.floor(part.instances.offset[box] / row.top * rows);
    const top = rows - Math.ceil((part.instances.offset[box] + part.instances.bytes[box]) / row.top * rows);
    const colour = paint[boxClass(part, box)].shade[40];
    for (let y = Math.max(0, Math.min(top, bottom)); y <= bottom; y++) pixels.fill(colour, y * columns + Math.max(0, Math.min(x, last)), y * columns + last + 1);
  }
  context.putImageData(image, 0, 0);
  row.raster = canvas.transferToImageBitmap();
  row.rasterPaint = paint;
  return row.raster;
}

const boxClass = (part, box) => part.lives.op[box] < 0 ? 0 : part.column[part.lives.op[box]];

function boxShape(row, box, from, scale, height) {
  const part = row.part, x = (part.lives.from[box] - from) * scale, y = height * (1 - (part.instances.offset[box] + part.instances.bytes[box]) / row.top);
  return { x: x, y: y, width: Math.max((part.lives.to[box] - part.lives.from[box]) * scale, 0.5), height: Math.max(height * part.instances.bytes[box] / row.top, 1.5) };
}

// A frame and what is in it; a box that is too small for that in one colour.
function paintBox(pixels, width, height, shape, paint, thin) {
  const x = Math.max(0, Math.floor(shape.x)), end = Math.min(width, Math.max(x + 1, Math.round(shape.x + shape.width)));
  const y = Math.max(0, Math.floor(shape.y)), foot = Math.min(height, Math.max(y + 1, Math.round(shape.y + shape.height)));
  const framed = shape.width > 4 * thin && foot - y > 3 * thin;
  for (let line = y; line < foot; line++) {
    const edge = !framed || line < y + thin || line >= foot - thin, colour = framed ? paint.pixel.line : paint.pixel.middle;
    if (edge) pixels.fill(colour, line * width + x, line * width + end);
    else {
      pixels.fill(paint.pixel.fill, line * width + x, line * width + end);
      if (shape.x >= 0) pixels.fill(colour, line * width + x, line * width + Math.min(x + thin, end));
      if (shape.x + shape.width <= width) pixels.fill(colour, line * width + Math.max(x, end - thin), line * width + end);
    }
  }
}

// ---- the axis ----

function tickStep(span, most) {
  const power = Math.pow(10, Math.floor(Math.log10(span / most)));
  return [1, 2, 5, 10].map(step => step * power).find(step => span / step <= most);
}

function tickText(ps, step) {
  const units = ['ps', 'ns', '\u00b5s', 'ms', 's'];
  let unit = 0, size = 1;
  for (; unit < 4 && ps >= 1000 * size; unit++) size *= 1000;
  if (ps === 0) return '0';
  const decimals = Math.max(0, Math.min(6, -Math.floor(Math.log10(step / size) + 1e-9)));
  return (ps / size).toFixed(decimals) + ' ' + units[unit];
}

// A name that does not fit: copies are told by their colour, and ops of one kernel apart by their index.
function shorten(text, fits) {
  const index = text.search(/[[{#]/);
  if (text.length <= fits) return text;
  if (text.startsWith('copy ')) return shorten(text.slice(5).replace(/ \S+ -> \S+$/, ''), fits);
  if (index > 0 && text.length - index <= fits) return text.slice(index);
  return fits > 3 ? text.slice(0, fits - 2) + '\u2026' : '';
}

// ---- the canvas ----

class Canvas {
  constructor(element) {
    this.element = element;
    this.context = element.getContext('2d', { alpha: false });
    this.strip = document.createElement('canvas');
    this.labels = [];
  }
  // Takes on the size that the page gives the element.
  resize() {
    const box = this.element.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
    this.width = Math.max(1, Math.floor(box.width));
    this.height = Math.max(1, Math.floor(box.height));
    this.ratio = ratio;
    const width = Math.round(this.width * ratio), height = Math.round(this.height * ratio);
    if (this.element.width !== width || this.element.height !== height) {
      this.element.width = width;
      this.element.height = height;
    }
  }
  // Lines of pixels, one for each row that is to be drawn; kept from frame to frame.
  begin(rows, width) {
    if (!this.image || this.image.width !== width || this.image.height < rows) {
      this.image = new ImageData(width, Math.max(rows, 8));
      this.pixels = new Uint32Array(this.image.data.buffer);
      this.strip.width = width;
      this.strip.height = this.image.height;
    }
    this.pixels.fill(0, 0, rows * width);
    this.labels.length = 0;
    this.context.setTransform(1, 0, 0, 1, 0, 0);
  }
  // Rows of ops: [{row, y, height}], all lengths in pixels of the canvas. Boxes are drawn over what is painted together.
  drawRows(rows, paint, from, to, left, width) {
    const c = this.context, boxes = paint.map(() => []);
    this.begin(rows.length, width);
    rows.forEach((at, i) => {
      let free = 0; // ops of a link overlap, and one name is enough
      drawRow(at.row, paint, from, to, width, this.pixels.subarray(i * width, (i + 1) * width), (op, x, end, of) => {
        const begin = Math.max(x, -2), stop = Math.min(end, width + 2);
        boxes[of].push(left + begin, at.y, stop - begin, at.height);
        const seen = Math.max(begin, 0), room = stop - seen;
        if (room > 26 * this.ratio && at.height >= 14 * this.ratio && seen >= free - 1)
          this.labels.push({ part: at.row.part, op: op, x: left + seen, y: at.y + at.height / 2, width: room });
        free = Math.max(free, stop);
      });
    });
    this.strip.getContext('2d').putImageData(this.image, 0, 0, 0, 0, width, rows.length);
    c.imageSmoothingEnabled = false;
    rows.forEach((at, i) => c.drawImage(this.strip, 0, i, width, 1, left, at.y, width, at.height));
    paint.forEach((one, of) => this.drawBoxes(boxes[of], one));
  }
  drawBoxes(boxes, paint) {
    const c = this.context, thin = Math.max(1, Math.round(this.ratio));
    c.fillStyle = paint.line;
    for (let i = 0; i < boxes.length; i += 4) c.fillRect(boxes[i], boxes[i + 1], Math.max(boxes[i + 2] - 0.5, 1), boxes[i + 3]);
    c.fillStyle = paint.fill;
    for (let i = 0; i < boxes.length; i += 4)
      if (boxes[i + 2] > 3 * thin) c.fillRect(boxes[i] + thin, boxes[i + 1] + thin, boxes[i + 2] - 0.5 - 2 * thin, boxes[i + 3] - 2 * thin);
  }
  drawLabels() {
    const c = this.context, size = 11 * this.ratio, glyph = 0.6 * size;
    c.font = size + 'px ' + FONT;
    c.textBaseline = 'middle';
    c.fillStyle = INK;
    for (const label of this.labels) {
      const shown = shorten(opText(label.part, label.op), Math.floor((label.width - 8 * this.ratio) / glyph));
      if (shown) c.fillText(shown, label.x + 4 * this.ratio, label.y + 0.5 * this.ratio);
    }
  }
  // Boxes are many and small, so they are painted as pixels.
  drawMemory(at, paint, from, to, left, width) {
    const row = at.row, part = row.part, scale = width / (to - from), height = at.height;
    const first = search(row.reach, from, 0, row.boxes.length, false), last = search(row.start, to, first, row.boxes.length, true);
    if (last - first > BOXES) {
      const raster = rasterOf(row, paint);
      this.context.imageSmoothingEnabled = false;
      this.context.drawImage(raster, from / part.makespan * raster.width, 0, (to - from) / part.makespan * raster.width, raster.height, left, at.y, width, height);
      return;
    }
    if (!this.plate || this.plate.width !== width || this.plate.height !== height) this.plate = new ImageData(width, height);
    const pixels = new Uint32Array(this.plate.data.buffer);
    pixels.fill(0xfffcfbfa);
    for (let i = first; i < last; i++) {
      const box = row.boxes[i], shape = boxShape(row, box, from, scale, height), one = paint[boxClass(part, box)];
      if (shape.x + shape.width >= 0 && shape.x < width) paintBox(pixels, width, height, shape, one, Math.max(1, Math.round(this.ratio)));
    }
    this.context.putImageData(this.plate, left, at.y);
  }
}
