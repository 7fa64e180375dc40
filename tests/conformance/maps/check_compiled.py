#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Formulas that are compiled (GANTRY_COMPILE_FORMULAS=1) give the bits of those that are carried out step by step, in maps and reductions
over all dtypes; nothing is compiled twice; and where the compiler fails, hangs, writes rubbish or is not there, or the cache cannot be
trusted, the run goes on without and says why.

check_compiled.py COMMAND"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

COMMAND = sys.argv[1]
wrong = 0
DTYPES = ["f16", "bf16", "f32", "f64", "i8", "u8", "i32", "u32", "i64"]
N = 1037  # some chunks and a rest
KERNELS = 2 * len(DTYPES) + 4


def graph():
    """Maps of every dtype that mix it with f32 and a number, one in place; sums and a minimum of them, with an axis and beside a map."""
    buffers, nodes = {}, []
    random = lambda seed, low, high: {"random": {"seed": seed, "low": low, "high": high}}  # noqa: E731
    for k, dtype in enumerate(DTYPES):
        real = dtype[0] in "fb"
        buffers[f"x{k}"] = {"dtype": dtype, "shape": [N], "init": random(k + 1, 0 if dtype[0] == "u" else -9, 9)}
        buffers[f"y{k}"] = {"dtype": dtype, "shape": [N], "output": True}
        buffers[f"t{k}"] = {"dtype": "f64", "shape": [1], "output": True}
        formula = "select(x > 2, x * x - c, sqrt(abs(x)) / (w + 3))" if real else "max(min(x * x - 7, 100), 0) + (x == 3)"
        nodes.append({"id": f"map{k}", "map": {"y": f"{dtype}({formula})"}, "args": {"x": f"x{k}", "y": f"y{k}", **({"w": "w", "c": 0.1} if real else {})}})
        nodes.append({"id": f"sum{k}", "reduce": {"t": "sum(f64(x) * 0.3)"}, "args": {"x": f"y{k}", "t": f"t{k}"}})
    buffers["w"] = {"dtype": "f32", "shape": [N], "init": random(40, 0, 1)}
    buffers["m"] = {"dtype": "f32", "shape": [61, 17], "init": random(41, -4, 4)}
    buffers["row"] = {"dtype": "f32", "shape": [17], "init": random(42, 0, 1)}
    for name, shape in (("p", [61, 17]), ("s", [61, 1]), ("least", [1, 17])):
        buffers[name] = {"dtype": "f32", "shape": shape, "output": True}
    buffers["place"] = {"dtype": "f32", "shape": [N], "init": random(43, -1, 1), "output": True, "class": "input"}
    nodes += [{"id": "spread", "map": {"p": "m * row - floor(m) + exp(row)"}, "args": {"m": "m", "row": "row", "p": "p"}},
              {"id": "rows", "reduce": {"s": "sum(square(p), 1)"}, "args": {"p": "p", "s": "s"}},
              {"id": "columns", "reduce": {"least": "min(p + 1, 0)"}, "args": {"p": "p", "least": "least"}},
              {"id": "inplace", "map": {"v": "v * v + 0.5"}, "args": {"v": "place"}}]
    return {"gantry": 1, "name": "formulas", "buffers": buffers, "nodes": nodes}


def run(path, env):
    done = subprocess.run([COMMAND, "run", path, "--devices", "1", "--no-fuse", "--json"], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **env})
    assert done.returncode == 0, (env, done.stdout, done.stderr)
    report = json.loads(done.stdout)
    return report["outputs"], report.get("formulas_compiled", 0), report.get("formulas_why")


def expect(holds, *what):
    global wrong
    if not holds:
        wrong += 1
        print("wrong:", *what)


def script(folder, name, text):
    path = folder / name
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return str(path)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        path, log, starts = folder / "graph.json", folder / "log", folder / "starts"
        path.write_text(json.dumps(graph()))
        on = {"GANTRY_COMPILE_FORMULAS": "1", "XDG_CACHE_HOME": str(folder / "cache")}
        counted = script(folder, "cc", f'echo one >> {starts}\ncase "$*" in *-shared*) echo one >> {log};; esac\nexec cc "$@"\n')
        want, none, silent = run(path, {**on, "GANTRY_COMPILE_FORMULAS": "0"})
        expect(none == 0 and silent is None and not (folder / "cache").exists(), "off: nothing is compiled or written", none, silent)
        got, compiled, why = run(path, {**on, "CC": counted})
        expect(got == want and compiled == KERNELS and why is None, "compiled:", compiled, why, {k: v for k, v in got.items() if v != want[k]})
        times = len(log.read_text().split())
        again, compiled, why = run(path, {**on, "CC": counted})
        expect(again == want and compiled == KERNELS and len(log.read_text().split()) == times, "kept: nothing is compiled twice", times, why)
        started = len(starts.read_text().split())
        run(path, {**on, "CC": counted})
        expect(len(starts.read_text().split()) - started == 2, "kept: the compiler is asked once for its macros and its version, not for each formula")
        mode = os.stat(folder / "cache" / "gantry").st_mode & 0o777
        expect(mode == 0o700, f"the cache is open to others: {mode:o}")
        expect(not list((folder / "cache" / "gantry").glob("*.tmp")), "texts are left in the cache")
        broken(folder, path, want, on)
    print("wrong" if wrong else f"{len(want)} outputs alike")
    return wrong != 0


def broken(folder, path, want, on):
    rubbish = script(folder, "rubbish", 'while [ $# -gt 0 ]; do [ "$1" = -o ] && echo rubbish > "$2"; shift; done\necho text\n')
    other = script(folder, "other", 'case "$*" in *-shared*) ;; *) exec cc "$@";; esac\nwhile [ $# -gt 0 ]; do [ "$1" = -o ] && out=$2; shift; done\n'
                   'echo "int nothing;" | cc -shared -fPIC -x c -o "$out" -\n')
    cases = {"fails": (script(folder, "fails", "echo no such machine >&2; exit 1\n"), "no such machine"),
             "is not there": (str(folder / "nowhere"), "nowhere"),
             "hangs": (script(folder, "hangs", "sleep 600\n"), "1 s"),
             "writes rubbish": (rubbish, "formulas.c"),
             "writes something else": (other, "gantry_formulas"),
             "writes nothing": (script(folder, "nothing", "exit 0\n"), "formulas.c")}
    for title, (compiler, text) in cases.items():
        cache, began = folder / f"cache {title}", time.monotonic()
        got, compiled, why = run(path, {**on, "CC": compiler.replace(" ", "\\ "), "GANTRY_COMPILE_SECONDS": "1", "XDG_CACHE_HOME": str(cache)})
        expect(got == want and compiled == 0 and why and text in why, f"a compiler that {title}:", compiled, why)
        expect(time.monotonic() - began < 30, f"a compiler that {title} costs {time.monotonic() - began:.0f} s")
    open_to_all = folder / "open" / "gantry"
    open_to_all.mkdir(parents=True)
    open_to_all.chmod(0o777)
    got, compiled, why = run(path, {**on, "XDG_CACHE_HOME": str(folder / "open")})
    expect(got == want and compiled == 0 and why, "a cache that others can write to:", compiled, why)


sys.exit(main())
