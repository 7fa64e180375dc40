// SPDX-License-Identifier: Apache-2.0
// node panel.js SOURCE ADDRESS NODE DEVICE: the whole page over a document that draws nothing: presses what the panel has for asking a server, and
// prints as JSON what is shown then.
'use strict';
const fs = require('fs'), path = require('path'), vm = require('vm');

const [source, address, node, device] = process.argv.slice(2);
const text = ['data.js', 'model.js', 'ask.js', 'draw.js', 'viewer.js'].map(name => fs.readFileSync(path.join(source, 'src/export/page', name), 'utf8')).join('\n');

// Whatever is drawn is forgotten.
const context = () => new Proxy({ measureText: () => ({ width: 10 }) }, { get: (target, key) => key in target ? target[key] : () => {}, set: () => true });

class Element {
  constructor(tag) {
    Object.assign(this, { tag: tag, children: [], style: {}, classList: { add() {}, remove() {} }, width: 800, height: 600, clientWidth: 800, clientHeight: 600, textContent: '' });
    for (const nothing of ['addEventListener', 'remove', 'focus', 'setPointerCapture']) this[nothing] = () => {};
  }
  append(...children) { this.children.push(...children); }
  replaceChildren(...children) { this.children = children; }
  getContext() { return this.context = this.context || context(); }
  getBoundingClientRect() { return { left: 0, top: 0, width: 800, height: 600 }; }
  all() { return [this, ...this.children.flatMap(child => child instanceof Element ? child.all() : [])]; }
}

class Pixels {
  constructor(width, height) { Object.assign(this, { width: width, height: height, data: new Uint8ClampedArray(4 * width * height) }); }
}

const elements = {}, $ = id => elements[id] = elements[id] || new Element(id);
const page = {
  document: { getElementById: $, createElement: tag => new Element(tag) }, window: {}, location: { protocol: 'http:' }, performance: performance, devicePixelRatio: 1, innerWidth: 1000, innerHeight: 800,
  ImageData: Pixels, atob: atob, TextDecoder: TextDecoder, setTimeout: setTimeout, addEventListener: () => {}, requestAnimationFrame: draw => setImmediate(draw),
  fetch: (to, options) => fetch(new URL(to, address), options),
};
const find = wanted => $('panel').all().find(wanted), press = words => find(element => element.textContent === words).onclick();

// Until what is shown is another.
async function shows(what) {
  const before = what(), end = Date.now() + 20000;
  while (what() === before && Date.now() < end) await new Promise(done => setTimeout(done, 20));
  return what();
}

(async () => {
  $('data').textContent = /id="data">([^<]*)</.exec(await (await fetch(address)).text())[1];
  vm.runInNewContext(text, page);
  const viewer = page.window.viewer, headline = () => $('headline').textContent, told = [headline()];
  const opOf = (part, name) => Array.from(part.start.keys()).find(op => part.node[op] >= 0 && part.nodes[part.node[op]] === name);
  viewer.select({ part: viewer.parts[0], op: opOf(viewer.parts[0], node) });
  press('why on this device');
  told.push(await shows(() => find(element => element.tag === 'pre').textContent.split('\n')[0]));
  find(element => element.tag === 'select').value = device;
  press('move');
  told.push(await shows(headline));
  const later = viewer.parts[1], copy = Array.from(later.start.keys()).find(op => later.node[op] < 0);
  const enter = (...values) => $('panel').all().filter(element => element.tag === 'input').forEach((input, i) => { input.value = values[i]; });
  viewer.select({ part: later, op: copy });
  enter('-1', '');
  press('change');
  told.push(find(element => element.className === 'wrong').textContent);
  enter('', '1000');
  press('change');
  told.push(await shows(headline), $('panel').all().filter(element => element.textContent === 'undo').length);
  for (const mode of viewer.modes()) viewer.setMode(mode);
  press('undo');
  told.push(await shows(headline));
  press('undo');
  told.push(await shows(headline));
  viewer.change('move', node, 'nowhere');
  told.push(await shows(() => viewer.told), headline());
  process.stdout.write(JSON.stringify(told));
})();
