# SPDX-License-Identifier: Apache-2.0
"""All eight collectives: recognised from accesses where they should be and only there, asked for by nodes by every algorithm, run on host
devices, plain and in checking mode, against NumPy.

check_collectives.py GANTRY INCLUDE
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "features"))
from runner import Gantry, difference, expected, np, with_kernels  # noqa: E402

ROWS = 5  # bytes of a row: 20, so that parts are no multiples of anything handy
KINDS = ["all_reduce", "reduce", "broadcast", "scatter", "gather", "all_gather", "reduce_scatter", "all_to_all"]
ALGORITHMS = ["copy_engine", "ring", "tree", "recursive", "one_shot", "two_shot", "islands", "counters", "nccl"]


def rows(p):
    """Rows of x that every one of p readers finds in every part: 2 p a part."""
    return 2 * p * p


def mix(name, p, **more):
    return {"id": f"{name}[i]", "for": {"i": p}, "kernel": "mix", "on": "i % devices", **more}


# ---- what accesses mean: p parts, on p devices ----

def write_parts(p):
    return mix("w", p, args={"x": "seed", "y": "x[i]", "a": "i + 1"})


def write_whole(_):
    return {"id": "w", "kernel": "mix", "args": {"x": "seed", "y": "x"}, "on": "1 % devices"}


def contribute(p, op="sum"):
    return mix("c", p, args={"x": "seed", "y": "x", "a": "i + 1"}, access={"y": op})


def read_whole(p):
    return mix("r", p, args={"x": "x", "y": "y[i]"})


def read_once(_):
    return {"id": "r", "kernel": "mix", "args": {"x": "x", "y": "y"}, "on": "1 % devices"}


def read_part(p):
    return mix("r", p, args={"x": "x[i]", "y": "y[i]"})


def read_blocks(p, hole=False):
    """Rows 2 i and 2 i + 1 of every part; with a hole, not those of the last part for reader 0."""
    wanted = {"if": f"i + {p - 1} - k"} if hole else {}
    return mix("r", p, args={"x": "seed", "y": "y[i]"},
               reads=[{"for": {"k": p}, **wanted, "ref": f"x{{k * {2 * p} + 2 * i:k * {2 * p} + 2 * i + 2}}"}])


def read_uneven(p):
    """Reader i: rows from i i to (i + 1)(i + 1), the last one to the end."""
    return mix("r", p, args={"x": f"x{{i * i:max((i + 1) * (i + 1), (i + 1) // {p} * {rows(p)})}}", "y": "y[i]"})


def read_halos(p):
    return mix("r", p, args={"x": "x[i]~2", "y": "y[i]"})


# name -> (nodes of p, the one collective that is put in or None)
ACCESSES = {
    "broadcast": (lambda p: [write_whole(p), read_whole(p)], "broadcast"),
    "scatter": (lambda p: [write_whole(p), read_part(p)], "scatter"),
    "scatter_uneven": (lambda p: [write_whole(p), read_uneven(p)], "scatter"),
    "gather": (lambda p: [write_parts(p), read_once(p)], "gather"),
    "all_gather": (lambda p: [write_parts(p), read_whole(p)], "all_gather"),
    "reduce": (lambda p: [contribute(p), read_once(p)], "reduce"),
    "all_reduce": (lambda p: [contribute(p, "max"), read_whole(p)], "all_reduce"),
    "reduce_scatter": (lambda p: [contribute(p), read_part(p)], "reduce_scatter"),
    "reduce_scatter_uneven": (lambda p: [contribute(p, "min"), read_uneven(p)], "reduce_scatter"),
    "reduce_scatter_onto": (lambda p: [write_whole(p), contribute(p), read_part(p)], "reduce_scatter"),
    "all_to_all": (lambda p: [write_parts(p), read_blocks(p)], "all_to_all"),
    "no_all_to_all": (lambda p: [write_parts(p), read_blocks(p, hole=True)], None),
    "no_gather": (lambda p: [write_parts(p), read_halos(p)], None),
    "no_scatter": (lambda p: [write_parts(p), read_part(p)], None),
}


def graph_of(nodes, p, **more):
    buffer = {"dtype": "i32", "shape": [rows(p), ROWS], "split": p}
    return {"gantry": 1, "name": "collectives", "nodes": nodes,
            "buffers": {"seed": {"dtype": "i32", "shape": [3, 2], "class": "input", "init": "iota"}, "x": {**buffer, "output": True},
                        "y": {**buffer, "output": True}, **more}}


def put_in(report, nodes):
    """Collectives that are no nodes, and the reads and writes that go through none."""
    return [op for op in report["collective_ops"] if op["op"] not in nodes]


def check_accesses(gantry, name, p):
    nodes, kind = ACCESSES[name][0](p), ACCESSES[name][1]
    graph = with_kernels(graph_of(nodes, p))
    want, buffers = expected(graph)
    words = ["--devices", p, "--policy", "heft"]
    report = gantry.words("schedule", gantry.write(graph), "--json", "--allow-code", *words).report
    found = [op["collective"] for op in put_in(report, [])]
    if name == "reduce_scatter_onto":
        found = [k for k in found if k != "scatter"]  # of the values before
    problems = [] if found == ([kind] if kind else []) else [f"has {found}, should have {kind}"]
    problems += [f"{op['op']} has no algorithm" for op in report["collective_ops"] if op["algorithm"] not in ALGORITHMS]
    for more in ([], ["--check"], ["--policy", "round-robin", "--check"]):
        result = gantry.run(graph, [*words[:2], *(more if "--policy" in more else words[2:] + more)], None, buffers)
        problem = result.err if result.code else difference(result.arrays, want)
        problems += [problem] if problem else []
    return problems


# ---- nodes: even and uneven parts, into another buffer and in place ----

# A scatter in place would read what it writes, and is refused by the graph.
def node_of(kind, p, place, root):
    part, out = [f"x[{i}]" for i in range(p)], "x" if place else "y"
    to = [f"{out}[{i}]" for i in range(p)]
    whole, rest = f"x{{0:{rows(p)}}}", f"z{{0:{rows(p)}}}"
    each = [f"z{{{i * rows(p)}:{(i + 1) * rows(p)}}}" for i in range(p)]
    cut = [f"{out}{{{i * i}:{(i + 1) ** 2 if i + 1 < p else rows(p)}}}" for i in range(p)]
    own = [f"x{{{i * i}:{(i + 1) ** 2 if i + 1 < p else rows(p)}}}" for i in range(p)]
    ends = {"all_reduce": (part, to), "reduce": (part, [to[root]]), "broadcast": ([part[root]], to), "scatter": ([whole], [c.replace("x{", "y{") for c in cut]),
            "gather": (own, [rest]), "all_gather": (own, each), "reduce_scatter": (each, cut), "all_to_all": (part, to)}[kind]
    node = {"id": "it", "collective": kind, "in": ends[0], "out": ends[1]}
    node |= {"op": "sum"} if "reduce" in kind else {}
    return node | ({"root": root} if kind in ("reduce", "broadcast", "scatter", "gather") else {})


def in_numpy(kind, p, place, root, x, y, z):
    """What the node does to the three arrays, by itself."""
    n = rows(p)
    bounds = [*[i * i for i in range(p)], n]
    a, out = x.reshape(p, -1), (x if place else y)
    o = out.reshape(p, -1)
    if kind == "all_reduce":
        o[:] = a.sum(0)
    elif kind == "reduce":
        o[root] = a.sum(0)
    elif kind == "broadcast":
        o[:] = a[root].copy()
    elif kind == "scatter":
        y[:] = x
    elif kind == "gather":
        z[:n] = x
    elif kind == "all_gather":
        z[:] = np.tile(x, (p, 1))
    elif kind == "reduce_scatter":
        total = z.reshape(p, n, ROWS).sum(0)
        for i in range(p):
            out[bounds[i]:bounds[i + 1]] = total[bounds[i]:bounds[i + 1]]
    else:
        blocks = x.reshape(p, p, -1)
        out.reshape(p, p, -1)[:] = blocks.transpose(1, 0, 2).copy()


def start_arrays(p):
    n = rows(p) * ROWS
    return [np.arange(k * n, dtype=np.int32).reshape(-1, ROWS) % (97 - 10 * k) for k in (1, 1, p)]


def check_node(gantry, kind, p, place, seen):
    """By every algorithm; those that cannot must say so and name those that can."""
    x, y, z = start_arrays(p)
    root, problems = p - 1, []
    want = dict(zip("xyz", (x.copy(), y.copy(), z.copy())))
    in_numpy(kind, p, place, root, **want)
    shared = {"dtype": "i32", "class": "input", "output": True}
    buffers = {name: ("i32", array.shape) for name, array in want.items()}
    for algorithm in ["auto", *ALGORITHMS]:
        node = node_of(kind, p, place, root) | {"algorithm": algorithm}
        graph = {"gantry": 1, "nodes": [{"id": "s[i]", "for": {"i": p}, "kernel": "scale", "args": {"a": 1, "x": "x[i]", "y": "t[i]"}, "on": "i % devices"},
                                        node],
                 "buffers": {"x": {**shared, "shape": list(x.shape), "split": p}, "y": {**shared, "shape": list(y.shape), "split": p},
                             "z": {**shared, "shape": list(z.shape), "split": p}, "t": {"dtype": "i32", "shape": list(x.shape), "split": p}}}
        for mode in ([], ["--check"]):
            result = gantry.run(graph, ["--devices", p, *mode], {"x": ("i32", x), "y": ("i32", y), "z": ("i32", z)}, buffers)
            if result.code:
                able = re.search(r'asks for algorithm "(\w+)": (.+); here there are auto, (.+)', result.err)
                if not able or algorithm in able[3].split(", ") or algorithm == "auto":
                    problems.append(f"{algorithm}: {result.err}")
                break
            seen[kind].add(algorithm)
            problem = difference(result.arrays, want)
            problems += [f"{algorithm} {mode}: {problem}"] if problem else []
    return problems


def main(command, include):
    gantry, failed, seen = Gantry(command, include), 0, {kind: set() for kind in KINDS}
    wrong = {f"{name} on {p}": check_accesses(gantry, name, p) for name in ACCESSES for p in (4, 5)}
    wrong |= {f"node {kind}{' in place' if place else ''} on {p}": check_node(gantry, kind, p, place, seen)
              for kind in KINDS for p in (2, 3, 4) for place in (False, True)}
    for name, problems in wrong.items():
        failed += bool(problems)
        for problem in problems[:3]:
            print(f"FAILED {name}: {problem.strip()}")
    for kind in KINDS:
        print(f"{kind}: {', '.join(a for a in ALGORITHMS if a in seen[kind])}")
        failed += len(seen[kind]) < 3  # auto and two more at least
    print(f"{len(wrong)} cases, {gantry.runs} runs, {failed} failed")
    return 1 if failed else 0


sys.exit(main(sys.argv[1], sys.argv[2]))
