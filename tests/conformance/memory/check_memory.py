# SPDX-License-Identifier: Apache-2.0
"""Graphs that are larger than a device, or than all devices together, run all the same, with the right results.

check_memory.py GANTRY [--write FOLDER]

Every graph runs on memories cut down by --max-memory, as it is and in checking mode, and must give NumPy's bytes and
those of one device with memory enough. --write saves the graphs instead.
"""
import json
import pathlib
import subprocess
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


def activations():
    """Forward, then backward over what forward left: a[i] is made from a[i-1], and read again last to first."""
    g = graph("activations",
              {"x": f32(["rows"], init=0), "a": f32(["n"], split="parts"), "g": f32(["rows"], init=0, output=True)},
              [{"id": "first", "kernel": "scale", "args": {"a": 0.5, "x": "x", "y": "a[0]"}},
               {"id": "forward[i]", "for": {"i": "1:parts"}, "kernel": "scale", "args": {"a": 1.5, "x": "a[i-1]", "y": "a[i]"}},
               {"id": "backward[i]", "for": {"i": "parts"}, "kernel": "saxpy",
                "args": {"a": 0.25, "x": "a[parts-1-i]", "y": "g"}}])
    x, grad = rng.random(ROWS, np.float32), rng.random(ROWS, np.float32)
    a = [np.float32(0.5) * x]
    for _ in range(1, PARTS):
        a.append(np.float32(1.5) * a[-1])
    want = grad
    for i in range(PARTS):
        want = (np.float32(0.25) * a[PARTS - 1 - i] + want).astype(np.float32)
    return g, {"x": x, "g": grad}, {"g": want}


RANKS = 4


def gathers():
    """Each layer's weights lie in parts on all devices, are gathered once, and read on the way there and back."""
    d = "for"
    g = graph("gathers",
              {"w": f32(["n"], **{"class": "state", "init": 0, "split": "parts * ranks"}),
               "f": f32(["ranks * n"], split="parts * ranks"),
               "y": f32(["ranks * rows"], init=0, split="ranks", output=True)},
              [{d: {"i": "parts"}, "nodes": [
                  {"id": "gather[i]", "collective": "all_gather",
                   "in": [{d: {"k": "ranks"}, "ref": "w[i * ranks + k]"}],
                   "out": [{d: {"k": "ranks"}, "ref": "f[i * ranks + k]"}]},
                  {"id": "there[i,k]", d: {"k": "ranks"}, "on": "k", "kernel": "saxpy", "cost": {"time_us": 50},
                   "args": {"a": 0.5, "x": "f[i * ranks + k]", "y": "y[k]"}}]},
               {d: {"i": "parts"}, "nodes": [
                   {"id": "back[i,k]", d: {"k": "ranks"}, "on": "k", "kernel": "saxpy", "cost": {"time_us": 50},
                    "args": {"a": -0.25, "x": "f[(parts - 1 - i) * ranks + k]", "y": "y[k]"}}]}])
    g["params"]["ranks"] = RANKS
    w, y = rng.random(PARTS * ROWS, np.float32), rng.random(RANKS * ROWS, np.float32)
    want = y.reshape(RANKS, ROWS)
    for a, order in ((0.5, range(PARTS)), (-0.25, reversed(range(PARTS)))):
        for i in order:
            want = (np.float32(a) * w[i * ROWS:(i + 1) * ROWS] + want).astype(np.float32)
    return g, {"w": w, "y": y}, {"y": want.reshape(-1)}


def shards(kind, parts):
    """The same without collectives: every device reads all of a layer, as one region or part by part, there and back.
    States are changed at the end, each shard on its own device; constants and states that nothing changes live where it is
    best."""
    d = "for"
    whole = [f"w[i * ranks + {k}]" for k in range(RANKS)] if parts else ["w[i * ranks:i * ranks + ranks]"]
    back = [w.replace("i *", "(parts - 1 - i) *") for w in whole]

    def reads(of, name, i, a):
        size = "rows" if parts else "ranks * rows"
        return [{"id": f"{name}{n}[i,k]", d: {"k": "ranks"}, "on": "k", "kernel": "saxpy", "cost": {"time_us": 200},
                 "args": {"a": a, "x": x, "y": f"y{{k * ranks * rows + {n if parts else 0} * rows:"
                                               f"k * ranks * rows + {n if parts else 0} * rows + {size}}}"}}
                for n, x in enumerate(of)]

    nodes = [{d: {"i": "parts"}, "nodes": reads(whole, "there", "i", 0.5)}, {d: {"i": "parts"}, "nodes": reads(back, "back", "i", -0.25)}]
    if kind == "changed":
        nodes.append({d: {"i": "parts"}, "nodes": [{"id": "change[i,k]", d: {"k": "ranks"}, "on": "k", "kernel": "saxpy",
                                                    "args": {"a": 2.0, "x": "d", "y": "w[i * ranks + k]"}}]})
    g = graph("shards",
              {"w": f32(["ranks * n"], **{"class": "const" if kind == "const" else "state", "init": 0, "split": "parts * ranks"}),
               "d": f32(["rows"], init=0), "y": f32(["ranks * ranks * rows"], init=0, output=True)}, nodes)
    g["params"]["ranks"] = RANKS
    if kind != "changed":
        del g["buffers"]["d"]
    w, y = rng.random(RANKS * PARTS * ROWS, np.float32), rng.random(RANKS * RANKS * ROWS, np.float32)
    change = rng.random(ROWS, np.float32)
    layers, want = w.reshape(PARTS, RANKS, ROWS).copy(), y
    for _ in range(STARTS):
        want = y.reshape(RANKS, RANKS, ROWS)
        for a, order in ((0.5, range(PARTS)), (-0.25, reversed(range(PARTS)))):
            for i in order:
                want = (np.float32(a) * layers[i] + want).astype(np.float32)
        if kind == "changed":
            layers = (np.float32(2) * change + layers).astype(np.float32)
    inputs = {"w": w, "y": y} if kind != "changed" else {"w": w, "y": y, "d": change}
    return g, inputs, {"y": want.reshape(-1)}


def check_shards(command, kind, parts, links="all"):
    """Room for a third of what a device reads: rows that the others have come from there, by collectives, again and
    again, and hardly anything to host memory and back. Links may be missing; where copies do not disturb each other, they do
    it. A search may find copies that take as long and move fewer bytes."""
    g, inputs, want = shards(kind, parts)
    limit = 8 * MIB
    with tempfile.TemporaryDirectory() as folder:
        path, machine = pathlib.Path(folder) / "graph.json", pathlib.Path(folder) / "machine.json"
        path.write_text(json.dumps(g))
        machine.write_text(json.dumps(peers(links)))
        arguments = ["--machine", machine, "--max-memory", ",".join(f"d{i}={limit}" for i in range(RANKS)), "--effort", 1]
        kinds, peaks, report = count(command, path, arguments)
        found = [run(command, path, inputs, {"y": None}, [*arguments, "--backend", "host", "--iterations", STARTS, *more])[0]
                 for more in ([], ["--check"])]
    good = max(peaks.values()) <= limit and not kinds.get("evict", 0)
    if links == "apart":
        good = good and not kinds.get("collective", 0) and kinds["fetch"] > 0
    else:
        good = good and kinds["collective"] > PARTS and 10 * kinds.get("fetch", 0) < kinds["collective"]
    good = good and all(np.array_equal(f["y"], want["y"]) for f in found)
    print(f"{'ok' if good else 'WRONG'}: shards, {kind}, {'by parts' if parts else 'whole'}, links {links}, {RANKS} x {limit / MIB:g} MiB: "
          f"{kinds}, {report['makespan_us']:.0f} us")
    return good


def peers(links="all"):
    """Devices that reach each other faster than host memory; in a ring those opposite do not."""
    ids = [f"m{i}" for i in range(RANKS)]
    to = {i: [j for j in ids if j != i] for i in ids}
    if links == "ring":
        to = {ids[i]: [ids[i - 1], ids[(i + 1) % RANKS]] for i in range(RANKS)}
    return {"gantry_machine": 1, "name": "peers",
            "memories": [{"id": "host", "capacity": "1GiB"}] + [{"id": i, "capacity": "1GiB"} for i in ids],
            "devices": [{"id": f"d{i}", "kind": "cpu", "type": "cpu", "memory": ids[i], "gflops": {"f32": 1000},
                         "bandwidth_gbs": 100} for i in range(RANKS)],
            "routes": [{"from": "host", "to": "*", "latency_us": 1, "bandwidth_gbs": 2, "both": True},
                       *({"from": i, "to": to[i], "latency_us": 1, "bandwidth_gbs": 50} for i in ids)],
            **({"model": {"contention": "off"}} if links == "apart" else {})}


def check_gathered_again(command):
    """Gathered rows are dropped and gathered again: nothing goes to host memory and back."""
    g, inputs, want = gathers()
    limit = 2 * MIB
    with tempfile.TemporaryDirectory() as folder:
        path, machine = pathlib.Path(folder) / "graph.json", pathlib.Path(folder) / "machine.json"
        path.write_text(json.dumps(g))
        machine.write_text(json.dumps(peers()))
        arguments = ["--machine", machine, "--max-memory", ",".join(f"d{i}={limit}" for i in range(RANKS))]
        kinds, peaks, report = count(command, path, arguments)
        found = [run(command, path, inputs, {"y": None}, [*arguments, "--backend", "host", "--iterations", STARTS, *more])[0]
                 for more in ([], ["--check"])]
    good = max(peaks.values()) <= limit and report["recomputed"] > 0 and not kinds.get("evict", 0) + kinds.get("fetch", 0)
    good = good and kinds["collective"] == PARTS + report["recomputed"] and all(np.array_equal(f["y"], want["y"]) for f in found)
    print(f"{'ok' if good else 'WRONG'}: gathers, {RANKS} x {limit / MIB:g} MiB: {kinds}, {report['recomputed']} again, "
          f"{report['makespan_us']:.0f} us")
    return good


def linked(bandwidth_gbs):
    """A device whose memory takes 100 GB/s, and a link to host memory: a node that reads and writes a part takes
    as long as one part over a link of 50 GB/s."""
    return {"gantry_machine": 1, "name": "linked",
            "memories": [{"id": "host", "capacity": "1GiB"}, {"id": "m0", "capacity": "1GiB"}],
            "devices": [{"id": "d0", "kind": "cpu", "type": "cpu", "memory": "m0", "gflops": {"f32": 1000},
                         "bandwidth_gbs": 100}],
            "routes": [{"from": "*", "to": "*", "latency_us": 1, "bandwidth_gbs": bandwidth_gbs}]}


def check_again(command, bandwidth_gbs, pays):
    """With room for half of the activations: made again where that is faster than the link, and never slower for it. The
    result is the same bits as with all the memory there is, and as NumPy's."""
    g, inputs, want = activations()
    good, makespan, again = True, {}, {}
    with tempfile.TemporaryDirectory() as folder:
        path, machine = pathlib.Path(folder) / "graph.json", pathlib.Path(folder) / "machine.json"
        path.write_text(json.dumps(g))
        machine.write_text(json.dumps(linked(bandwidth_gbs)))
        for spill in ("auto", "copy"):
            arguments = ["--machine", machine, "--max-memory", f"d0={PARTS // 2 * PART}", "--spill", spill]
            kinds, peaks, report = count(command, path, arguments)
            makespan[spill], again[spill] = report["makespan_us"], report["recomputed"]
            good = good and max(peaks.values()) <= PARTS // 2 * PART and kinds["launch"] == 2 * PARTS + again[spill]
            found = [run(command, path, inputs, {"g": None}, [*arguments, "--backend", "host", *more])[0]
                     for more in ([], ["--check"])]
            found.append(run(command, path, inputs, {"g": None}, ["--machine", machine, "--backend", "host"])[0])
            good = good and all(np.array_equal(f["g"], want["g"]) for f in found)
    good = good and not again["copy"] and (again["auto"] > 0) == pays
    good = good and (makespan["auto"] < makespan["copy"] if pays else makespan["auto"] == makespan["copy"])
    print(f"{'ok' if good else 'WRONG'}: activations over {bandwidth_gbs} GB/s: {again['auto']} nodes again, "
          f"{makespan['auto']:.0f} us; by copies alone {makespan['copy']:.0f} us")
    return good


def check_ends(command):
    """Twelve states that a node of 30 us changes, one after the other, and room for six beside what is added: those that
    come and go do so beside the computing, since the first and the last one stay. So it ends when twelve nodes have run."""
    link, node = 50, 30
    g = graph("ends", {"w": f32(["n"], **{"class": "state", "init": 0, "split": "parts"}), "d": f32(["rows"])},
              [{"id": "d", "fill": {"to": "d", "value": 1.0}, "cost": {"time_us": 1}},
               {"id": "change[i]", "for": {"i": "parts"}, "kernel": "saxpy", "cost": {"time_us": node},
                "args": {"a": 2.0, "x": "d", "y": "w[i]"}}])
    with tempfile.TemporaryDirectory() as folder:
        path, machine = pathlib.Path(folder) / "graph.json", pathlib.Path(folder) / "machine.json"
        path.write_text(json.dumps(g))
        machine.write_text(json.dumps(linked(link)))
        kinds, _, report = count(command, path, ["--machine", machine, "--max-memory", f"d0={7 * PART}"])
    least = 1 + PARTS * node
    good = kinds["fetch"] > 0 and least <= report["makespan_us"] < least + PART / link / 1e3
    print(f"{'ok' if good else 'WRONG'}: ends: {kinds}, {report['makespan_us']:.1f} us, {least} of computing")
    return good


def check_off(command):
    """Refused before anything runs: node, bytes, what is large, and what to do about it."""
    g, _, _ = activations()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "graph.json"
        path.write_text(json.dumps(g))
        done = subprocess.run([command, "schedule", path, "--devices", "1", "--max-memory", "dev0=1MiB", "--spill", "off"],
                              capture_output=True, text=True, check=False)
    good = done.returncode == 4 and all(word in done.stderr for word in (
        "dev0 needs ", 'at node "forward[', "and has 1.0 MiB; largest: a[0]", "256.0 KiB", "--spill auto"))
    print(f"{'ok' if good else 'WRONG'}: --spill off: {done.stderr.strip()}")
    return good


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


def far(devices):
    """Devices that are near to each other and far from the host: what a device fetches takes longer than a step there."""
    names = range(devices)
    return {"gantry_machine": 1, "name": "far",
            "memories": [{"id": "host", "capacity": "1GiB"}] + [{"id": f"m{i}", "capacity": "1GiB"} for i in names],
            "devices": [{"id": f"dev{i}", "kind": "cpu", "type": "cpu", "memory": f"m{i}", "gflops": {"f32": 1000},
                         "bandwidth_gbs": 100} for i in names],
            "routes": [{"from": "m*", "to": "m*", "latency_us": 1, "bandwidth_gbs": 100},
                       {"from": "host", "to": "m*", "latency_us": 1, "bandwidth_gbs": 0.5},
                       {"from": "m*", "to": "host", "latency_us": 1, "bandwidth_gbs": 0.5}]}


def check(command, case, devices, limit, spills, effort, machine=None):
    g, inputs, want = case()
    name = f"{g['name']}, {devices} x {limit / MIB:g} MiB, effort {effort}" + (", host far" if machine else "")
    memory = ",".join(f"dev{i}={limit}" for i in range(devices))
    with tempfile.TemporaryDirectory() as folder:
        path, file = pathlib.Path(folder) / "graph.json", pathlib.Path(folder) / "machine.json"
        path.write_text(json.dumps(g))
        file.write_text(json.dumps(machine))
        on = ["--machine", file] if machine else ["--devices", devices]
        arguments = [*on, "--max-memory", memory, "--effort", effort]
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
        for case in (layers, barrier, weights, activations, gathers):
            g = case()[0]
            (pathlib.Path(rest[1]) / f"{g['name']}.json").write_text(json.dumps(g, indent=2) + "\n")
        return 0
    results = [check_again(command, 2, True), check_again(command, 1000, False), check_off(command),
               check_gathered_again(command), check_ends(command)]
    results += [check_shards(command, kind, parts) for kind in ("changed", "state", "const") for parts in (False, True)]
    results += [check_shards(command, "changed", parts, links) for links in ("ring", "apart") for parts in (False, True)]
    for effort in (0, 3):
        # 3 MiB of weights and a part that goes round: three times one device, and it fits four. Weights may come to one
        # device as fast as the part goes round, unless they come from afar.
        results.append(check(command, layers, 4, MIB, None, effort))
        results.append(check(command, layers, 4, MIB, False, effort, far(4)))
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
