# SPDX-License-Identifier: Apache-2.0
"""Arrays that are cut into tiles along 1 to 4 axes against NumPy, on 1 to 4 devices; both checkers on each schedule.

check_tiles.py GANTRY RECHECK [FIRST COUNT]     random graphs number FIRST to FIRST + COUNT - 1
"""
import itertools
import json
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from numpy_gantry import DTYPES, np, run  # noqa: E402


def tile(shape, tiles, index):
    """The slices of a tile: part i of axis k is [i * n // p, (i + 1) * n // p)."""
    return tuple(slice(i * n // p, (i + 1) * n // p) for n, p, i in zip(shape, tiles, index))


def named(name, index, tiles, draw):
    """A reference to a tile. Axes at the end that are not cut may be left out."""
    axes = len(index)
    while axes > 1 and tiles[axes - 1] == 1 and draw.random() < 0.5:
        axes -= 1
    return name + "".join(f"[{i}]" for i in index[:axes])


def elements(seed):
    """Maps, copies, fills and reductions, tile by tile, of arrays that begin as a file or as numbers of their elements."""
    draw = random.Random(seed)
    rank = draw.randint(1, 4)
    shape = [draw.randint(1, 9) for _ in range(rank)]
    tiles = [draw.randint(1, 3) for _ in range(rank)]
    dtype = draw.choice(["f32", "f64", "i32", "u8", "i64"])
    every = [*itertools.product(*map(range, tiles))]
    given = tiles[:]
    while len(given) > 1 and given[-1] == 1:
        given.pop()
    form = {"dtype": dtype, "shape": shape, "tiles": draw.choice([given, tiles])}
    x = np.random.default_rng(seed).integers(0, 50, shape).astype(DTYPES[dtype])
    y, z = 3 * x + DTYPES[dtype](1), np.arange(x.size).reshape(shape).astype(DTYPES[dtype])
    tops, nodes = np.zeros(tiles, DTYPES[dtype]), []
    for at in every:
        name, here = ",".join(map(str, at)), tile(shape, tiles, at)
        if x[here].size:
            tops[at] = y[here].max()
            nodes.append({"id": f"top[{name}]", "reduce": {"m": "max(y)"}, "args": {"y": named("y", at, tiles, draw), "m": named("tops", at, tiles, draw)}})
        else:
            nodes.append({"id": f"top[{name}]", "fill": {"to": named("tops", at, tiles, draw), "value": 0}})
        nodes.insert(0, {"id": f"map[{name}]", "map": {"y": "3 * x + 1"}, "args": {"x": named("x", at, tiles, draw), "y": named("y", at, tiles, draw)}})
        nodes.append({"id": f"copy[{name}]", "copy": {"from": named("x", at, tiles, draw), "to": named("c", at, tiles, draw)}})
        if draw.random() < 0.5:
            z[here] = 7
            nodes.append({"id": f"fill[{name}]", "fill": {"to": named("z", at, tiles, draw), "value": 7}})
    nodes.append({"id": "lists", "work": {}, "reads": ["y" + "".join(draw.choice(["[*]", "[0]", f"[0:{p}]"]) for p in tiles)]})
    buffers = {"x": {**form, "init": 0}, "y": {**form, "output": True}, "c": {**form, "output": True},
               "z": {**form, "init": "iota", "output": True}, "tops": {**form, "shape": tiles, "output": True}}
    return {"buffers": buffers, "nodes": nodes}, {"x": x}, {"y": y, "c": x, "z": z, "tops": tops}


# ---- schedules and results ----


def schedule_is_right(command, recheck, graph, devices, extra):
    with tempfile.TemporaryDirectory() as folder:
        file, schedule = pathlib.Path(folder) / "g.json", pathlib.Path(folder) / "s.json"
        file.write_text(json.dumps(graph))
        for words in ([command, "schedule", file, "--devices", devices, "-o", schedule, "--effort", 1, *extra],
                      [command, "check", file, schedule, "--devices", devices], [recheck, file, schedule]):
            done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=600)
            if done.returncode:
                raise RuntimeError(f"{words[:2]}: {done.stderr}{done.stdout[-400:]}")


def check(command, recheck, what, made):
    graph, inputs, want = made
    graph = {"gantry": 1, "name": what, "params": {}, **graph}
    failed = 0
    for devices in (1, 2, 3, 4):
        extra = ["--check"] if devices % 2 else ["--effort", "1"]
        try:
            schedule_is_right(command, recheck, graph, devices, [])
            runs = {**graph, "nodes": [one for one in graph["nodes"] if "work" not in one]}
            got, _ = run(command, runs, inputs, dict.fromkeys(want), ["--devices", devices, *extra])
            for name, array in want.items():
                np.testing.assert_array_equal(got[name], array, err_msg=name)
        except (AssertionError, RuntimeError) as error:
            failed += 1
            print(f"FAILED {what} on {devices} devices: {error}\n{json.dumps(graph)[:600]}")
    return failed


def main(command, recheck, first=0, count=40):
    failed = sum(check(command, recheck, f"elements {i}", elements(i)) for i in range(int(first), int(first) + int(count)))
    print(f"{count} random graphs: {failed or 'none'} failed")
    return bool(failed)


sys.exit(main(*sys.argv[1:]))
