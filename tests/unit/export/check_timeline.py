# SPDX-License-Identifier: Apache-2.0
"""Reads a timeline (SVG) as XML and holds its geometry: everything inside the picture, boxes of a
lane apart, labels inside their boxes and short enough for them, pictures and legend in step with the number of ops."""
import re
import sys
import xml.etree.ElementTree as ET

SVG = "{http://www.w3.org/2000/svg}"
GLYPH = 6.2  # mean width of a character of an 11 px sans-serif


def number(e, name):
    return float(e.get(name, "0"))


def check(path, ops):
    text = open(path, encoding="utf-8").read()
    root = ET.fromstring(text)
    _, _, width, height = map(float, root.get("viewBox").split())
    plot = next(e for e in root.iter(SVG + "svg") if e.get("class") == "plot")
    assert number(plot, "x") + number(plot, "width") <= width and number(plot, "height") <= height
    boxes = [e for e in plot.iter(SVG + "rect") if re.fullmatch(r"g\d+", e.get("class", ""))]
    drawn = sum(int(m.group(1).replace(",", "")) if (m := re.match(r"([\d,]+) ops, the first", b.find(SVG + "title").text)) else 1 for b in boxes)
    assert drawn == ops + 1, f"{drawn} ops drawn, {ops} and a collective's second lane expected"
    lanes = {}
    for b in boxes:
        assert number(b, "x") >= 0 and number(b, "x") + number(b, "width") <= number(plot, "width") + 0.5
        lanes.setdefault(number(b, "y"), []).append((number(b, "x"), number(b, "x") + number(b, "width")))
    for spans in lanes.values():
        for (_, end), (start, _) in zip(sorted(spans), sorted(spans)[1:]):
            assert start >= end - 0.35, f"boxes overlap: {end} > {start}"
    labels = [e for e in plot.iter(SVG + "svg") if e.get("class") == "l"]
    for label in labels:
        x, y, w = number(label, "x"), number(label, "y"), number(label, "width")
        assert any(a - 0.02 <= x and x + w <= b + 0.02 for a, b in lanes[y]), "a label outside of all boxes"
        assert 4 + GLYPH * len(label[0].text or "") <= w + 1, f"label {label[0].text!r} does not fit {w}"
    assert len(labels) <= len(boxes)
    assert len([e for e in root.iter(SVG + "path") if e.get("class") == "mem"]) == 2, "a memory line per device"
    rest = " ".join(t.text or "" for t in root.iter(SVG + "text"))
    for word in ("time in", "critical path", "memory in use", "makespan", "bound", "gap"):
        assert word in rest, word
    return len(boxes), len(labels)


print(*check(sys.argv[1], int(sys.argv[2])))
