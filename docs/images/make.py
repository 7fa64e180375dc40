#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the pictures of this folder that are of the command's own output: make.py GANTRY [NAME...]

dot-10.svg, dot-100.svg, dot-1000.svg want Graphviz; diff.png and serve.png Chromium (tools/setup view). Names without their ending
choose among them.
"""
import pathlib
import re
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(ROOT / "tests/cli/page"))
import browser  # noqa: E402

# A Cholesky factorisation of t x t tiles has t (t + 1) (t + 2) / 6 nodes: 10, 84 and 969.
TILES = {"dot-10": 3, "dot-100": 7, "dot-1000": 17}
MACHINE = ["--machine", str(ROOT / "graphs/machines/dgx1-v100.json"), "--devices", "4"]


def graph(gantry, name):
    tiles = TILES[name]
    words = [gantry, "dot", ROOT / "graphs/cholesky.json", "--param", f"nt={tiles}", "--param", f"n={tiles * 128}"]
    dot = subprocess.run(words, check=True, capture_output=True).stdout
    svg = subprocess.run(["dot", "-Tsvg"], input=dot, check=True, capture_output=True).stdout.decode()
    (HERE / f"{name}.svg").write_text(re.sub(r"<!--.*?-->\n?", "", svg, flags=re.S))


def diff(gantry, tab, folder):
    schedules = []
    for tiles in (8, 16):
        schedules.append(f"{folder}/{tiles}.json")
        subprocess.run([gantry, "schedule", ROOT / "graphs/cholesky.json", *MACHINE, "--param", "n=4096", "--param", f"nt={tiles}", "--effort", "0", "-q", "-o",
                        schedules[-1]], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([gantry, "diff", *schedules, "--html", f"{folder}/diff.html"], stdout=subprocess.DEVNULL)
    tab.open(pathlib.Path(folder, "diff.html"))
    tab.frame()
    tab.picture(HERE / "diff.png")


def serve(gantry, tab):
    words = [gantry, "serve", ROOT / "graphs/cholesky.json", *MACHINE, "--effort", "0", "-q"]
    server = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    try:
        tab.call("Page.navigate", url=server.stdout.readline().strip())
        end = time.monotonic() + 60
        while not tab.run("location.protocol === 'http:' && typeof viewer !== 'undefined' && viewer.parts.length > 0") and time.monotonic() < end:
            time.sleep(0.1)
        op = "viewer.parts[0].node.findIndex(node => node >= 0 && viewer.parts[0].nodes[node] === 'syrk[4,0]')"
        tab.run(f"viewer.select({{ part: viewer.parts[0], op: {op} }}, true)")
        tab.run("[...document.querySelectorAll('#panel button')].find(b => b.textContent === 'why on this device').click()")
        while "policy" not in tab.run("document.getElementById('panel').textContent") and time.monotonic() < end:
            time.sleep(0.1)
        tab.frame()
        tab.picture(HERE / "serve.png")
    finally:
        server.terminate()
        server.wait(20)


def main(gantry, *names):
    def wanted(name):
        return not names or name in names

    for name in filter(wanted, TILES):
        graph(gantry, name)
    if wanted("diff") or wanted("serve"):
        if not browser.find():
            print("make.py: no Chromium; tools/setup view installs one, or name pictures that need none", file=sys.stderr)
            return 1
        with tempfile.TemporaryDirectory() as folder, browser.Browser(browser.find(), 1400, 760) as tab:
            if wanted("diff"):
                diff(gantry, tab, folder)
            if wanted("serve"):
                serve(gantry, tab)
    return 0


sys.exit(main(*(sys.argv[1:] or sys.exit(__doc__))))
