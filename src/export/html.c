/* SPDX-License-Identifier: Apache-2.0 */
/* The timeline in a page of its own: hover for details, wheel to zoom, drag to move. No other files, no libraries. */
#include "export/export.h"

static const char style[] =
    "<style>body{margin:0;font-family:Helvetica,Arial,sans-serif;background:#fff;color:" GY_EXPORT_INK "}"
    "p{margin:8px 12px;font-size:13px;color:#4b5560}button{font:inherit}"
    "body>svg{display:block;width:100%;height:auto}.plot{cursor:grab}</style>\n";

/* Only x is scaled: the layers of class zoom by a transform, the grid and the labels by hand, so that text keeps its
 * size. */
/* clang-format off */
static const char script[] =
    "<script>\n"
    "'use strict';\n"
    "(function () {\n"
    "  const svg = document.querySelector('svg'), plot = document.querySelector('svg.plot');\n"
    "  const width = +plot.getAttribute('width'), left = +plot.getAttribute('x');\n"
    "  const layers = plot.querySelectorAll('.zoom'), grid = plot.querySelector('#grid');\n"
    "  const labels = Array.from(plot.querySelectorAll('svg.l'), box => (\n"
    "    { box: box, x: +box.getAttribute('x'), width: +box.getAttribute('width'),\n"
    "      text: box.firstChild, name: box.firstChild.textContent }));\n"
    "  const line = grid.querySelector('line'), number = grid.querySelector('text');\n"
    "  const perPixel = +grid.dataset.whole / width;\n"
    "  let scale = 1, offset = 0;\n"
    "\n"
    "  function add(name, attributes, text) {\n"
    "    const e = document.createElementNS('http://www.w3.org/2000/svg', name);\n"
    "    for (const key in attributes) e.setAttribute(key, attributes[key]);\n"
    "    e.textContent = text;\n"
    "    grid.appendChild(e);\n"
    "  }\n"
    "  function stepOf(span) {\n"
    "    const most = Math.pow(10, Math.ceil(Math.log10(span / 10)));\n"
    "    return [most / 5, most / 2, most].find(step => Math.floor(span / step) <= 10);\n"
    "  }\n"
    "  function drawGrid() {\n"
    "    const from = -offset / scale * perPixel, span = width / scale * perPixel, step = stepOf(span);\n"
    "    const decimals = Math.max(0, -Math.floor(Math.log10(step)));\n"
    "    grid.textContent = '';\n"
    "    for (let i = Math.ceil(from / step); line && i * step <= from + span; i++) {\n"
    "      const x = (i * step - from) / perPixel * scale;\n"
    "      const anchor = x < 12 ? 'start' : x > width - 20 ? 'end' : 'middle';\n"
    "      add('line', { class: 'grid', x1: x, x2: x, y1: line.getAttribute('y1'), y2: line.getAttribute('y2') }, '');\n"
    "      add('text', { class: 'tick', x: x, y: number.getAttribute('y'), style: 'text-anchor:' + anchor },\n"
    "          (i * step).toFixed(decimals));\n"
    "    }\n"
    "  }\n"
    "  function drawLabel(l) {\n"
    "    const x = Math.max(l.x * scale + offset, 0), end = Math.min((l.x + l.width) * scale + offset, width);\n"
    "    const index = l.name.search(/[\\[{]/), fits = (end - x - 6) / 6.4;\n"
    "    l.box.setAttribute('display', fits < 2 ? 'none' : 'inline');\n"
    "    l.box.setAttribute('x', x);\n"
    "    l.box.setAttribute('width', Math.max(end - x, 0));\n"
    "    l.text.textContent = l.name.length <= fits || index < 0 ? l.name : l.name.slice(index);\n"
    "  }\n"
    "  function draw() {\n"
    "    scale = Math.min(Math.max(scale, 1), 1e6);\n"
    "    offset = Math.min(0, Math.max(offset, width - width * scale));\n"
    "    for (const l of layers) l.setAttribute('transform', 'translate(' + offset + ' 0) scale(' + scale + ' 1)');\n"
    "    labels.forEach(drawLabel);\n"
    "    drawGrid();\n"
    "  }\n"
    "  function plotX(event) {\n"
    "    const box = svg.getBoundingClientRect();\n"
    "    return (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width - left;\n"
    "  }\n"
    "  function zoom(factor, x) {\n"
    "    const before = scale;\n"
    "    scale = Math.min(Math.max(scale * factor, 1), 1e6);\n"
    "    offset = x - (x - offset) * scale / before;\n"
    "    draw();\n"
    "  }\n"
    "  function all() {\n"
    "    scale = 1;\n"
    "    offset = 0;\n"
    "    draw();\n"
    "  }\n"
    "  let drag = null;\n"
    "  svg.addEventListener('wheel', e => { e.preventDefault(); zoom(Math.exp(-e.deltaY / 400), plotX(e)); },\n"
    "                       { passive: false });\n"
    "  svg.addEventListener('pointerdown', e => { drag = plotX(e) - offset; });\n"
    "  addEventListener('pointermove', e => { if (drag !== null) { offset = plotX(e) - drag; draw(); } });\n"
    "  addEventListener('pointerup', () => { drag = null; });\n"
    "  svg.addEventListener('dblclick', all);\n"
    "  document.querySelector('#in').onclick = () => zoom(2, width / 2);\n"
    "  document.querySelector('#out').onclick = () => zoom(0.5, width / 2);\n"
    "  document.querySelector('#all').onclick = all;\n"
    "  draw();\n"
    "})();\n"
    "</script>\n";
/* clang-format on */

void gy_export_html(gy_text *to, const gy_view *view)
{
    gy_text_add(to, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/><title>");
    gy_export_xml_name(to, view->s->graph_name ? view->s->graph_name : "schedule", 80);
    gy_text_add(to, "</title>\n");
    gy_text_add(to, style);
    gy_text_add(to, "</head><body>\n");
    gy_export_svg(to, view, true);
    gy_text_add(to,
                "<p>Point at a box for details. Turn the wheel to zoom, drag to move, double-click to see everything. "
                "<button id=\"in\">zoom in</button> <button id=\"out\">zoom out</button> <button "
                "id=\"all\">everything</button></p>\n");
    gy_text_add(to, script);
    gy_text_add(to, "</body></html>\n");
}
