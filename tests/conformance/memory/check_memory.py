# SPDX-License-Identifier: Apache-2.0
"""Graphs that are larger than a device, or than all devices together, run all the same, with the right results.

check_memory.py GANTRY [--write FOLDER]

Every graph runs on memories cut down by --max-memory, as it is and in checking mode, and must give NumPy's bytes and
those of one device with memory enough. --write saves the graphs instead.
"""
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from numpy_gantry import gantry, np, run  # noqa: E402

rng = np.random.default_rng(7)
MIB = 1 << 20
PART = MIB // 4  # bytes of a part
ROWS = PART // 4  # of f32
PARTS = 12  # 3 MiB
STARTS = 3  # of a run: state goes on from one to the next


def graph(name, buffers, nodes):
    return {"gantry": 1, "name": name, "params": {"n": PARTS * ROWS, "rows": ROWS, "parts": PARTS},
            "buffers": buffers, "nodes": nodes}


def f32(shape, **more):
    return {"dtype": "f32", "shape": shape, **more}


def layers():
    """A chain through constants: whoever has a layer's weights runs it. The chain alone would stay on one device."""
    g = graph("layers",
              {"w": f32(["n"], **{"class": "const", "init": 0, "split": "parts"}),
               "h": f32(["rows"], init=0, output=True)},
              [{"id": "layer[i]", "for": {"i": "parts"}, "kernel": "saxpy", "args": {"a": 0.5, "x": "w[i]", "y": "h"}}])
    w, h = rng.random(PARTS * ROWS, np.float32), rng.random(ROWS, np.float32)
    want = h
    for i in range(PARTS):
        want = (np.float32(0.5) * w[i * ROWS:(i + 1) * ROWS] + want).astype(np.float32)
    return g, {"w": w, "h": h}, {"h": want}


def barrier():
    """All of y is made before any of it is used: in between it must be somewhere."""
    g = graph("barrier",
              {"x": f32(["n", 1], init=0, split="parts"), "y": f32(["n", 1], split="parts"),
               "total": f32([1], init=0), "z": f32(["n", 1], split="parts", output=True)},
              [{"id": "make[i]", "for": {"i": "parts"}, "kernel": "scale", "args": {"a": 3.0, "x": "x[i]", "y": "y[i]"}},
               {"id": "sum[i]", "for": {"i": "parts"}, "kernel": "reduce_sum", "args": {"x": "y[i]", "out": "total"}},
               {"id": "use[i]", "for": {"i": "parts"}, "kernel": "bias_add",
                "args": {"x": "y[i]", "b": "total", "y": "z[i]"}}])
    x = rng.integers(0, 2, (PARTS * ROWS, 1)).astype(np.float32)
    y = 3 * x
    return g, {"x": x}, {"z": (y + y.sum(dtype=np.float64).astype(np.float32)).astype(np.float32)}


def weights():
    """State that is updated in two passes: it persists, and is too much to stay."""
    g = graph("weights",
              {"w": f32(["n"], **{"class": "state", "init": 0, "split": "parts", "output": True}),
               "d": f32(["rows"], init=0)},
              [{"id": "first[i]", "for": {"i": "parts"}, "kernel": "saxpy", "args": {"a": 2.0, "x": "d", "y": "w[i]"}},
               {"id": "second[i]", "for": {"i": "parts"}, "kernel": "saxpy", "args": {"a": 0.25, "x": "d", "y": "w[i]"}}])
    w, d = rng.random(PARTS * ROWS, np.float32), rng.random(ROWS, np.float32)
    want = w.reshape(PARTS, ROWS)
    for _ in range(STARTS):
        want = (np.float32(2) * d + want).astype(np.float32)
        want = (np.float32(0.25) * d + want).astype(np.float32)
    return g, {"w": w, "d": d}, {"w": want.reshape(-1)}


def count(command, path, arguments):
    """Kinds of ops of the schedule, and the most that a device's memory holds."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "s.json"
        report = json.loads(gantry(command, "schedule", path, "--json", "-o", file, *arguments))
        kinds = {}
        for op in json.loads(file.read_text())["ops"]:
            kinds[op["kind"]] = kinds.get(op["kind"], 0) + 1
    peaks = report["peak_bytes"]
    return kinds, {name: peaks[name] for name in peaks if name != "host"}, report


def check(command, case, devices, limit, spills, effort):
    g, inputs, want = case()
    name = f"{g['name']}, {devices} x {limit / MIB:g} MiB, effort {effort}"
    memory = ",".join(f"dev{i}={limit}" for i in range(devices))
    arguments = ["--devices", devices, "--max-memory", memory, "--effort", effort]
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "graph.json"
        path.write_text(json.dumps(g))
        kinds, peaks, report = count(command, path, arguments)
        outputs = {n: None for n in want}
        found = [run(command, path, inputs, outputs, [*arguments, "--backend", "host", "--iterations", STARTS, *more])[0]
                 for more in ([], ["--check"])]
        found.append(run(command, path, inputs, outputs, ["--devices", 1, "--backend", "host", "--iterations", STARTS])[0])
    good = max(peaks.values()) <= limit
    good = good and (spills is None or spills == (kinds.get("evict", 0) + kinds.get("fetch", 0) > 0))
    for results in found:
        for n, array in want.items():
            good = good and np.array_equal(results[n].reshape(array.shape), array)
    print(f"{'ok' if good else 'WRONG'}: {name}: policy {report['policy']}, {report['makespan_us']:.0f} us, "
          f"{kinds.get('copy', 0)} copies, {kinds.get('evict', 0)} evictions, {kinds.get('fetch', 0)} fetches, "
          f"peak {max(peaks.values()) / MIB:.2f} MiB")
    return good


def main(command, *rest):
    if rest[:1] == ("--write",):
        for case in (layers, barrier, weights):
            g = case()[0]
            (pathlib.Path(rest[1]) / f"{g['name']}.json").write_text(json.dumps(g, indent=2) + "\n")
        return 0
    results = []
    for effort in (0, 3):
        # 3 MiB of weights and a part that goes round: three times one device, and it fits four.
        results.append(check(command, layers, 4, MIB, False, effort))
        # 1.5 times all devices together: by spilling.
        results.append(check(command, layers, 2, MIB, True, effort))
        results.append(check(command, barrier, 2, MIB, True, effort))
        results.append(check(command, barrier, 1, 2 * MIB, True, effort))
        results.append(check(command, weights, 2, MIB, True, effort))
        # Room for the parts of one op and no more.
        results.append(check(command, barrier, 1, 2 * PART + 4096, True, effort))
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
