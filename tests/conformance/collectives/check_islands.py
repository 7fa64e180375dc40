# SPDX-License-Identifier: Apache-2.0
"""Collectives by islands on host devices, plain and in checking mode, against NumPy: nodes that ask for it, and sums of accesses.

check_islands.py GANTRY INCLUDE
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "features"))
from runner import Gantry, difference, expected, np, with_kernels  # noqa: E402

KINDS = ("all_reduce", "broadcast", "all_gather")
OPS = {"sum": lambda x: x.sum(0, dtype=x.dtype), "prod": lambda x: x.prod(0, dtype=x.dtype), "min": lambda x: x.min(0), "max": lambda x: x.max(0)}


def machine(*sizes):
    """CPU devices with memories of their own, in islands of islands of those sizes, the innermost first; one link out of each island."""
    count = int(np.prod(sizes))
    level = lambda a, b: next(k for k in range(len(sizes) + 1) if a // np.prod(sizes[:k], dtype=int) == b // np.prod(sizes[:k], dtype=int))
    resources, routes = {}, [{"from": "host", "to": "d*", "both": True, "bandwidth_gbs": 10}]
    for a in range(count):
        for b in range(count):
            if a == b:
                continue
            via = []
            for k in range(1, level(a, b)):
                size = int(np.prod(sizes[:k]))
                via += [f"out{k}.{a // size}", f"in{k}.{b // size}"]
            resources |= {name: 100 / 10 ** int(name.split(".")[0][-1]) for name in via}
            routes.append({"from": f"d{a}", "to": f"d{b}", "latency_us": 1, "bandwidth_gbs": 100 / 10 ** (level(a, b) - 1), "via": via})
    return {"gantry_machine": 1, "memories": [{"id": "host", "capacity": "8GiB"}] + [{"id": f"d{i}", "capacity": "1GiB"} for i in range(count)],
            "devices": [{"id": f"d{i}", "type": "gpu", "memory": f"d{i}", "launch_us": 1} for i in range(count)], "resources": resources, "routes": routes}


def node_graph(kind, p, n, dtype, op, place, uneven):
    cuts = [i * n // p for i in range(p + 1)] if not uneven else [i * i * n // (p * p) for i in range(p + 1)]
    whole = [f"x{{{i * n}:{(i + 1) * n}}}" for i in range(p)]
    into = [w.replace("x", "y" if not place else "x") for w in whole]
    root = p - 2
    ends = {"all_reduce": (whole, into), "broadcast": ([whole[root]], into), "all_gather": ([f"x{{{a}:{b}}}" for a, b in zip(cuts, cuts[1:])], [w.replace("x", "y") for w in whole])}
    node = {"id": "it", "collective": kind, "algorithm": "islands", "in": ends[kind][0], "out": ends[kind][1]}
    node |= {"op": op} if kind == "all_reduce" else {"root": root} if kind == "broadcast" else {}
    shared = {"dtype": dtype, "shape": [p * n], "class": "input", "output": True}
    return {"gantry": 1, "nodes": [node], "buffers": {"x": shared, "y": shared}}, root


def check_node(gantry, kind, p, n, dtype, op, place, uneven, mode):
    graph, root = node_graph(kind, p, n, dtype, op, place, uneven)
    x = (np.arange(p * n) * 7919 % 61 - 9).astype({"i32": np.int32, "f32": np.float32, "u8": np.uint8, "i64": np.int64}[dtype])
    want = {"x": x.copy(), "y": np.zeros_like(x)}
    out = want["x" if place and kind != "all_gather" else "y"].reshape(p, n)
    out[:] = OPS[op](x.reshape(p, n)) if kind == "all_reduce" else x.reshape(p, n)[root].copy() if kind == "broadcast" else x[:n]
    result = gantry.run(graph, ["--machine", "machine.json", "--backend", "host", *mode], {"x": (dtype, x), "y": (dtype, np.zeros_like(x))},
                        {name: (dtype, x.shape) for name in want})
    return result.err if result.code else difference(result.arrays, want)


def check_sum(gantry, p):
    """Every device adds to all rows, and reads all of them."""
    n = 1 << 18
    nodes = [{"id": "c[i]", "for": {"i": p}, "kernel": "mix", "args": {"x": "seed", "y": "x", "a": "i + 1"}, "access": {"y": "sum"}, "on": "i"},
             {"id": "r[i]", "for": {"i": p}, "kernel": "mix", "args": {"x": "x", "y": "y[i]"}, "on": "i"}]
    graph = with_kernels({"gantry": 1, "nodes": nodes, "buffers": {"seed": {"dtype": "i32", "shape": [3, 2], "class": "input", "init": "iota"},
                          "x": {"dtype": "i32", "shape": [n], "output": True}, "y": {"dtype": "i32", "shape": [p], "split": p, "output": True}}})
    want, buffers = expected(graph)
    words = ["--machine", "machine.json", "--policy", "heft"]
    report = gantry.words("schedule", gantry.write(graph), "--json", "--allow-code", *words).report
    how = {op["algorithm"] for op in report["collective_ops"] if op["collective"] == "all_reduce"}
    result = gantry.run(graph, [*words, "--backend", "host"], None, buffers)
    return f"goes by {how}" if how != {"islands"} else result.err if result.code else difference(result.arrays, want)


def moved_graph(kind, p, n, node):
    """Rows that one, or each, writes, and all read: by copies that are put in, or by a node."""
    ins = 1 if kind == "broadcast" else p
    work = lambda name, i, **more: {"id": f"{name}{i}", "work": {}, "cost": {"time_us": 1}, "on": f"i{i // 4}g{i % 4}", **more}
    x, y = [f"x{{{i * n // ins}:{(i + 1) * n // ins}}}" for i in range(ins)], [f"y[{i}]" if node else f"x{{0:{n}}}" for i in range(p)]
    asked = {"id": "it", "collective": kind, "in": x, "out": y, "on": [f"i{i // 4}g{i % 4}" for i in range(p)]} | ({"root": 0} if ins == 1 else {})
    return {"gantry": 1, "buffers": {"x": {"dtype": "f32", "shape": [n]}, **({"y": {"dtype": "f32", "shape": [p * n], "split": p}} if node else {}),
                                     "q": {"dtype": "f32", "shape": [p], "split": p, "output": True}},
            "nodes": [work("w", i, writes=[x[i]]) for i in range(ins)] + ([asked] if node else []) +
                     [work("r", i, reads=[y[i]], writes=[f"q[{i}]"]) for i in range(p)]}


def check_found(gantry, kind, n):
    """Copies that are put in take no longer than the node that says the same."""
    gantry.words("machine", "cluster", "--islands", "2x4", "--nic", "25", "-o", "cluster.json")
    time = []
    for node in (False, True):
        done = gantry.words("schedule", gantry.write(moved_graph(kind, 8, n, node)), "--json", "--machine", "cluster.json")
        if done.code:
            return done.err
        time.append(done.report["makespan_us"])
    return None if time[0] <= 1.01 * time[1] else f"{time[0]} us, as a node {time[1]}"


def main(command, include):
    gantry, failed, case = Gantry(command, include), 0, 0
    for sizes in ((2, 2), (3, 2), (2, 3), (2, 2, 2)):
        p = int(np.prod(sizes))
        (gantry.folder / "machine.json").write_text(json.dumps(machine(*sizes)))
        found = {f"a sum of accesses on {sizes}": check_sum(gantry, p)}
        for kind in KINDS:
            for n in (p, 37, 5003):
                case += 1
                dtype, op = (("i32", "prod"), ("f32", "sum"), ("u8", "sum"), ("i64", "min"), ("f32", "max"))[case % 5]
                words = (dtype, op, case % 2 == 0, case % 3 == 0, ["--check"] if case % 4 == 1 else [])
                found[f"{kind} of {n} on {sizes}, {words}"] = check_node(gantry, kind, p, n, *words)
        if len(sizes) == 3:
            found |= {f"{kind} of {n} among copies": check_found(gantry, kind, n) for kind in KINDS[1:] for n in (1 << 20, 1 << 24)}
        for name, problem in found.items():
            failed += bool(problem)
            print(f"FAILED {name}: {problem.strip()}" if problem else f"{name}: right")
    print(f"{gantry.runs} runs, {failed} failed")
    return 1 if failed else 0


sys.exit(main(sys.argv[1], sys.argv[2]))
