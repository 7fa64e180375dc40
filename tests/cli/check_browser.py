# SPDX-License-Identifier: Apache-2.0
"""Names that are script or markup, in a browser: pages and pictures of a graph with such names are opened by Chromium, and
what any of them runs or loads asks a server of this test for something. The same pages with a script put in must be
seen to ask, else the test would see nothing. Exit code 77: there is no browser.

check_browser.py GANTRY
"""
import functools
import http.server
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading

import check_hostile as hostile

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# What runs says so: a script fetches, and markup loads a picture.
RUNS = [re.sub(r"alert\((\d)\)", r"fetch(`/ran?\1`)", name) for name in hostile.NAMES]
RUNS[1] = "\"><img src=/ran?2 onerror=fetch(`/ran?2`)>"
BUFFERS = [re.sub(r"alert`(\d)`", r"fetch`/ran?\1`", name) for name in hostile.BUFFERS]


class Server(http.server.ThreadingHTTPServer):
    def __init__(self, folder):
        self.asked = []
        super().__init__(("127.0.0.1", 0), functools.partial(Handler, directory=str(folder)))


class Handler(http.server.SimpleHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.path)
        super().do_GET()

    def log_message(self, *args):
        pass


def inside(body):
    return f"<!DOCTYPE html><html><head><meta charset=\"utf-8\"><title>t</title></head><body>{body}</body></html>"


def pages(folder, stem, picture, page, mark):
    """Every way in which a picture or a page gets into a browser: by itself, in a page, as a part of a page's own text.
    `mark` changes what goes one way. Returns names of pages, each with the ways that lead to what is in it."""
    ways = {"img": '<img src="{}.svg">', "object": '<object data="{}.svg" type="image/svg+xml"></object>',
            "embed": '<embed src="{}.svg" type="image/svg+xml">', "iframe": '<iframe src="{}.svg"></iframe>'}
    for way in [*ways, "svg"]:
        (folder / f"{stem}.{way}.svg").write_text(mark(picture, way))
    body = "".join(form.format(f"{stem}.{way}") for way, form in ways.items())
    inline = mark(picture[picture.index("<svg"):], "inline")
    (folder / f"{stem}.frames.html").write_text(inside(body + inline))
    opened = {f"{stem}.svg.svg": ["svg"], f"{stem}.frames.html": [*ways, "inline"]}
    if page:
        # Without its policy, by which the browser would keep to itself what a script asks for.
        page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
        (folder / f"{stem}.html").write_text(mark(page, "html"))
        opened[f"{stem}.html"] = ["html"]
    return opened


def control(text, way):
    """With a script in it, which says by which way it came."""
    return re.sub("(</svg>|</body>)(?!.*(</svg>|</body>))", f"<script>fetch('/ran?{way}')</script>\\1", text, count=1, flags=re.DOTALL)


class Browser:
    def __init__(self, path, folder, server):
        self.path, self.folder, self.server = path, folder, server

    def open(self, name):
        """What the page asked the server for, and the document as the browser understood it."""
        first = len(self.server.asked)
        url = f"http://127.0.0.1:{self.server.server_address[1]}/{name}"
        words = [self.path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
                 "--disable-background-networking", f"--user-data-dir={self.folder / 'profile'}", "--virtual-time-budget=2000", "--dump-dom", url]
        done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=120, env={**os.environ, "HOME": str(self.folder)})
        return self.server.asked[first:], done.stdout


def draw(gantry, folder):
    """(name, picture, page) of schedules, and the pictures that Graphviz makes."""
    texts = hostile.draw(gantry, folder, "evil", RUNS, BUFFERS)
    yield "timeline", texts["svg"], texts["html"]
    for kind in ("dot", "graph.dot") if shutil.which("dot") else ():
        done = subprocess.run(["dot", "-Tsvg"], input=texts[kind].encode(), capture_output=True, check=True)
        yield kind, done.stdout.decode(), None


def try_picture(browser, folder, stem, picture, page):
    wrong = []
    for name, ways in pages(folder, stem, picture, page, lambda text, way: text).items():
        asked, document = browser.open(name)
        wrong += [f"{name}: it asked for {one}" for one in asked if "ran?" in one]
        files = ["/" + name] + [f"/{stem}.{way}.svg" for way in ways if way in ("img", "object", "embed", "iframe")]
        wrong += [f"{name}: {one} was not opened" for one in files if one not in asked or "<" not in document]
    for name, ways in pages(folder, f"{stem}-control", picture, page, control).items():
        asked, _ = browser.open(name)
        # A picture in <img> never runs a script: that is the browser's rule, and there is nothing to see.
        seen, want = {one.split("?")[1] for one in asked if "ran?" in one}, {*ways} - {"img"}
        wrong += [f"{name}: a script was not seen to run by {one}" for one in want - seen]
        wrong += [f"{name}: {one} ran" for one in seen - want]
    return wrong


def try_pages(browser, folder, gantry):
    wrong, names = [], []
    for name, picture, page in draw(gantry, folder):
        names.append(name)
        wrong += try_picture(browser, folder, name, picture, page)
    return wrong + gantry.wrong, names


def main(command):
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if not path:
        print(f"skipped: no browser ({', '.join(BROWSERS)})")
        return 77
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        server = Server(folder)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        gantry = hostile.Command(str(pathlib.Path(command).resolve()), folder)
        wrong, names = try_pages(Browser(path, folder, server), folder, gantry)
        server.shutdown()
    print("\n".join(wrong[:40] + [f"{' '.join(names)}: {len(server.asked)} files asked for by {path}, {len(wrong)} wrong"]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
