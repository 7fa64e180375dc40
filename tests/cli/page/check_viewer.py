# SPDX-License-Identifier: Apache-2.0
"""The page in a browser: it opens from disk without a word in the console, shows what there is, and does what keys and mouse ask for: zoom,
move, fit, search, select, follow causes, compare. Frames of a large schedule are timed. Exit code 77: there is no browser.

check_viewer.py GANTRY SOURCE [FOLDER for pictures]
"""
import pathlib
import subprocess
import sys
import tempfile

import browser
import page


class Check:
    def __init__(self, gantry, source, folder, b):
        self.gantry, self.graphs, self.folder, self.b, self.wrong = gantry, pathlib.Path(source) / "graphs", pathlib.Path(folder), b, []

    def run(self, *words):
        done = subprocess.run([self.gantry, *map(str, words)], cwd=self.graphs, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, f"{words}: {done.stderr}"

    def expect(self, what, fine):
        if not fine:
            self.wrong.append(what)

    def open(self, name):
        self.b.open(self.folder / name)
        self.b.frame()

    def panel(self):
        return self.b.run("document.getElementById('panel').innerText")

    def span(self):
        return self.b.run("[viewer.from, viewer.to]")

    def painted(self):
        """Colours of the canvas: how many pixels are not the background's greys."""
        return self.b.run("(() => { const v = viewer.canvas.element, c = new OffscreenCanvas(v.width, v.height).getContext('2d', { willReadFrequently: true }); let n = 0;"
                          "c.drawImage(v, 0, 0); const d = c.getImageData(0, 0, v.width, v.height).data;"
                          "for (let i = 0; i < d.length; i += 4) n += Math.max(d[i], d[i + 1], d[i + 2]) - Math.min(d[i], d[i + 1], d[i + 2]) > 20; return n; })()")

    def place(self, op):
        """Where an op of the first timeline is on the screen: its middle."""
        return self.b.run(f"(() => {{ const v = viewer, box = v.canvas.element.getBoundingClientRect(), left = GUTTER, at = v.placeOf(v.parts[0], {op}, left, v.canvas.width - left);"
                          "return [box.left + (at.x + at.end) / 2, box.top + at.y + at.height / 2]; })()")

    def is_visible(self, op):
        x, y = self.place(op)
        return y < 800 and self.b.run(f"document.elementFromPoint({x}, {y}) === viewer.canvas.element")


def check_time(c):
    """Zoom at the pointer, keys, dragging, fit."""
    c.open("one.html")
    whole = c.span()
    c.expect("something is painted", c.painted() > 3000)
    x, y = c.place(0)
    c.b.mouse("mouseWheel", x, y, deltaX=0, deltaY=-400)
    c.b.frame()
    near, at = c.span(), c.b.run("(viewer.parts[0].start[0] + viewer.parts[0].end[0]) / 2")
    c.expect(f"wheel: {near} is around {at}", near[0] <= at <= near[1] and abs((near[1] - near[0]) / (whole[1] - whole[0]) - 0.368) < 0.01)
    before = c.span()
    c.b.key("w")
    c.expect("w zooms in", c.span()[1] - c.span()[0] < before[1] - before[0])
    c.b.key("s")
    c.b.key("s")
    c.expect("s zooms out", c.span()[1] - c.span()[0] > before[1] - before[0])
    c.b.key("f")
    c.expect("f fits everything", c.span() == whole)
    for _ in range(4):
        c.b.key("w")
    before = c.span()
    c.b.key("d")
    c.expect("d moves to later", c.span()[0] > before[0])
    c.b.key("a")
    c.expect("a moves back", abs(c.span()[0] - before[0]) < 1)
    c.b.drag(700, 400, 600, 400)
    c.expect("dragging to the left moves to later", c.span()[0] > before[0])
    c.b.key("f")
    c.b.run("viewer.scrollTo(1e9)")
    c.b.frame()
    c.expect("the last row can be seen", c.b.run("viewer.scroll + viewer.canvas.height - RULER >= viewer.items[viewer.items.length - 1].y") and c.painted() > 1000)
    c.b.run("viewer.scrollTo(0)")


def check_search(c):
    parts, _ = page.read(c.folder / "one.html")
    want = sum(n >= 0 and "syrk" in parts[0]["nodes"][n] for n in parts[0]["node"])
    c.b.key("/")
    for letter in "syrk":
        c.b.key(letter)
    c.expect("hits are counted", c.b.run("document.getElementById('hits').textContent") == f"{want} hits")
    c.b.key("Enter")
    c.expect("Enter selects the first hit", c.panel().startswith("syrk["))
    first = c.panel().split("\n")[0]
    c.b.key("Enter")
    c.expect("Enter selects the next", c.panel().split("\n")[0] != first)
    c.b.key("Escape")
    c.expect("Esc clears", c.b.run("viewer.selected === null && viewer.hits.length === 0 && document.activeElement !== document.getElementById('search')"))
    c.b.run("viewer.search('no such op')")
    c.expect("no hits are none", c.b.run("document.getElementById('hits').textContent") == "0 hits")
    c.b.key("n")
    c.b.key("Escape")


def check_selection(c):
    """A click on an op says what it waits for, and its chains can be followed both ways."""
    parts, _ = page.read(c.folder / "one.html")
    part = parts[0]
    op = next(i for i, k in enumerate(part["kind"]) if k == "launch" and part["waits"][i] and part["lanes"][i] and c.b.run(f"viewer.widthOf(viewer.parts[0], {i})") > 4
              and c.b.run(f"viewer.parts[0].causes.cause[{i}]") >= 0 and c.is_visible(i))
    c.b.click(*c.place(op))
    c.b.frame()
    text = c.panel()
    c.expect(f"the panel is of op {op}: {text[:60]}", text.startswith(part["nodes"][part["node"][op]]))
    c.expect("why it is not earlier", "Not earlier, since" in text and "WHY HERE AND NOT EARLIER" in text.upper())
    cause = c.b.run(f"viewer.parts[0].causes.cause[{op}]")
    c.b.key("b")
    c.expect("b goes to the cause", c.b.run("viewer.selected.op") == cause)
    c.b.key("e")
    c.expect("e goes to what it holds up", c.b.run("viewer.parts[0].causes.cause[viewer.selected.op]") == cause)
    c.b.run("document.querySelector('#panel li.op').click()")
    c.expect("a click in the panel selects", c.b.run("viewer.selected.op !== undefined"))
    c.b.key("f")
    start, end = c.b.run("[viewer.parts[0].start[viewer.selected.op], viewer.parts[0].end[viewer.selected.op]]")
    c.expect("f fits what is selected", c.span()[0] <= start and end <= c.span()[1] and c.span()[1] - c.span()[0] < c.b.run("viewer.whole"))
    c.b.key("Escape")
    box = c.b.run("viewer.parts[0].rows.memories[0].boxes[0]")
    c.b.run(f"viewer.select({{ part: viewer.parts[0], box: {box} }})")
    c.b.frame()
    c.expect("a box of memory has its bytes and users", "address" in c.panel() and "USED BY" in c.panel().upper())
    c.b.key("Escape")
    for mode in c.b.run("viewer.modes()"):
        c.b.run(f"viewer.setMode('{mode}'); viewer.showPanel()")
        c.b.frame()
        c.expect(f"colours by {mode}", "COLOURS: " + mode.upper() in c.panel().upper())
    c.b.key("?")
    c.expect("? shows the keys", c.b.run("document.getElementById('keys').open"))
    c.b.key("Escape")


def check_two(c):
    """A run's timelines and a difference: both are there, lane by lane or one after the other, and partners are linked."""
    for name, mode, word in (("run.html", "prediction error", "predicted"), ("diff.html", "difference", "first")):
        c.open(name)
        c.expect(f"{name}: two timelines", c.b.run("viewer.parts.length") == 2 and c.painted() > 2000)
        c.expect(f"{name}: its colours", mode in c.b.run("viewer.modes()"))
        rows = c.b.run("viewer.items.filter(i => i.kind === 'row' && i.row.kind === 'lane').map(i => i.row.part.index)")
        c.b.run("document.getElementById('show-beside').click()")
        c.b.frame()
        apart = c.b.run("viewer.items.filter(i => i.kind === 'row' && i.row.kind === 'lane').map(i => i.row.part.index)")
        c.expect(f"{name}: lane by lane {rows}, and apart {apart}", sorted(rows) == apart and rows != apart)
        op = c.b.run("Array.from(viewer.parts[1].start.keys()).find(i => partnerOf(viewer.parts[1], viewer.parts, i))")
        c.b.run(f"viewer.select({{ part: viewer.parts[1], op: {op} }}, true)")
        c.b.frame()
        c.expect(f"{name}: the panel has the partner", f"\n{word}\t" in c.panel())


def check_frames(c, name):
    """Of 100,000 ops: the page has 5 MB at most, and half of its frames while zooming in and moving are drawn in 16 ms, by a CPU that others use, too."""
    c.open(name)
    c.b.run("viewer.frames.length = 0")
    c.b.run("(async () => { for (let k = 0; k < 60; k++) { k < 30 ? viewer.zoom(0.75, viewer.whole * 0.4) : viewer.move(0.2); await new Promise(done => requestAnimationFrame(done)); } })()")
    frames = sorted(c.b.run("viewer.frames"))
    print(f"{name}: {c.b.run('viewer.parts[0].count')} ops, {len(frames)} frames, median {frames[len(frames) // 2]:.1f} ms, slowest {frames[-1]:.1f} ms (drawn by the CPU)")
    size, middle = (c.folder / name).stat().st_size, frames[len(frames) // 2]
    c.expect(f"{name}: {len(frames)} frames, {middle:.1f} ms", len(frames) >= 30 and middle <= 16)
    c.expect(f"{name}: {size} bytes", c.b.run("viewer.parts[0].count") >= 100_000 and size <= 5_000_000)


def check_million(c, name):
    """Of 1,000,000 ops: at every zoom the quickest of 16 frames, moved a little each, is drawn in 16 ms. A frame is as slow as what else the computer does
    makes it, and no quicker than its work takes."""
    c.open(name)
    count = c.b.run("viewer.parts[0].count")
    c.expect(f"{name}: {count} ops", count >= 1_000_000)
    for share in (1, 0.7, 0.3, 0.1, 0.01, 0.001, 0.0001):
        c.b.run(f"viewer.show(0, viewer.whole * {share}); viewer.frames.length = 0")
        c.b.run(f"(async () => {{ for (let k = 0; k < 16; k++) {{ {'viewer.move(0.02)' if share < 1 else 'viewer.draw()'}; await new Promise(done => requestAnimationFrame(done)); }} }})()")
        frames = sorted(c.b.run("viewer.frames"))
        print(f"{name}: {count} ops, {100 * share:g} % of the time in view: {len(frames)} frames, least {frames[0]:.1f} ms, median {frames[len(frames) // 2]:.1f} ms")
        c.expect(f"{name}: at {100 * share:g} % {len(frames)} frames, the quickest in {frames[0]:.1f} ms", len(frames) >= 8 and frames[0] <= 16)


def main(gantry, source, pictures=None):
    path = browser.find()
    if not path:
        print(f"skipped: no browser ({', '.join(browser.BROWSERS)}); tools/setup view installs one")
        return 77
    with tempfile.TemporaryDirectory(prefix="gantry-viewer-") as folder, browser.Browser(path) as b:
        c = Check(gantry, source, folder, b)
        one, other = ["cholesky.json", "--machine", "machines/dgx1-v100.json"], ["cholesky.json", "--machine", "machines/dgx1-v100.json", "--policy", "heft"]
        c.run("schedule", *one, "--html", c.folder / "one.html", "-o", c.folder / "a.json")
        c.run("schedule", *other, "-o", c.folder / "b.json")
        c.run("diff", c.folder / "a.json", c.folder / "b.json", "--html", c.folder / "diff.html")
        c.run("run", "jacobi.json", "--devices", 3, "--html", c.folder / "run.html")
        c.run("schedule", "../tests/bench/layered.json", "--machine", "machines/dgx1-v100.json", "--param", "layers=320", "--policy", "heft", "--effort", 0, "--html", c.folder / "many.html")
        c.run("schedule", "../tests/bench/layered.json", "--machine", "machines/dgx1-v100.json", "--param", "layers=3200", "--policy", "heft", "--effort", 0, "--html", c.folder / "million.html")
        for check in (check_time, check_search, check_selection, check_two):
            check(c)
            if pictures:
                b.picture(pathlib.Path(pictures) / f"{check.__name__}.png")
        check_frames(c, "many.html")
        check_million(c, "million.html")
        c.wrong += [f"the page said: {told}" for told in b.told]
    print("\n".join(c.wrong) or "the page does what it is asked for, and says nothing else")
    return 1 if c.wrong else 0


sys.exit(main(*sys.argv[1:]))
