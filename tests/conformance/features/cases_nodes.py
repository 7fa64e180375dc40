# SPDX-License-Identifier: Apache-2.0
"""Kinds of nodes, references, cuts, params and expressions. Each case gives a graph and, where a line of NumPy says it, what
its outputs are; the oracle says so for all."""
from runner import np

CASES = {}


class Case:
    """want: output -> array, by hand. inputs: buffer -> (dtype, array). params: overrides. starts: how many."""

    def __init__(self, buffers, nodes, want=None, inputs=None, params=None, starts=1, own=None, **top):
        self.graph = {"gantry": 1, "name": "case", **top, "buffers": buffers, "nodes": nodes}
        if own:
            self.graph["params"] = own
        self.want, self.inputs, self.params, self.starts = want or {}, inputs or {}, params or {}, starts


def case(function):
    CASES[function.__name__] = function
    return function


def iota(dtype, *shape, **more):
    return {"dtype": dtype, "shape": list(shape), "init": "iota", **more}


def out(dtype, *shape, **more):
    return {"dtype": dtype, "shape": list(shape), "output": True, **more}


# ---- kinds ----

@case
def kernels_of_the_library():
    x = np.arange(12, dtype=np.int32)
    nodes = [
        {"id": "s", "kernel": "scale", "args": {"a": 3, "x": "x", "y": "y"}},
        {"id": "a", "kernel": "add", "args": {"x": "x", "y": "y", "z": "z"}},
        {"id": "m", "kernel": "mul", "args": {"x": "z", "y": "y", "z": "w"}},
        {"id": "b", "kernel": "axpby", "args": {"a": 2, "b": -1, "x": "x", "y": "z"}},
    ]
    return Case({"x": iota("i32", 12), "y": out("i32", 12), "z": out("i32", 12), "w": out("i32", 12)}, nodes,
                {"y": 3 * x, "z": 2 * x - 4 * x, "w": 12 * x * x})


@case
def copies():
    nodes = [
        {"id": "whole", "copy": {"from": "x", "to": "y"}},
        {"id": "rows", "copy": {"from": "x{2:5}", "to": "z{0:3}"}},
        {"id": "part", "copy": {"from": "x[1]", "to": "z{5:9}"}},
        {"id": "shape", "copy": {"from": "x{0:6}", "to": "m"}},  # as many elements, another shape
        {"id": "inside", "copy": {"from": "y{0:2}", "to": "y{10:12}"}},
        {"id": "gap", "fill": {"to": "z{3:5}", "value": -1}},
    ]
    y, z = np.arange(12), np.zeros(9, int)
    y[10:] = [0, 1]
    z[0:3], z[3:5], z[5:9] = [2, 3, 4], -1, np.arange(4, 8)
    return Case({"x": iota("i32", 12, split=3), "y": out("i32", 12), "z": out("i32", 9), "m": out("i32", 2, 3)}, nodes,
                {"y": y.astype(np.int32), "z": z.astype(np.int32), "m": np.arange(6, dtype=np.int32).reshape(2, 3)})


@case
def fills():
    nodes = [
        {"id": "value", "fill": {"to": "a", "value": "n / 4"}},
        {"id": "fraction", "fill": {"to": "f", "value": "1 / n"}},
        {"id": "iota[i]", "for": {"i": 3}, "fill": {"to": "b[i]", "iota": {"start": "10 * i", "step": 2}}},
        {"id": "random[i]", "for": {"i": 3}, "fill": {"to": "r[i]", "random": {"seed": 5, "low": -100, "high": 100}}},
        {"id": "wide", "fill": {"to": "w", "random": {"seed": 6, "low": 0, "high": 1e9}}},
        {"id": "real", "fill": {"to": "d", "random": {"seed": 7}}},
        {"id": "rows", "fill": {"to": "a{3:7}", "value": 9}},
    ]
    b = np.concatenate([10 * i + 2 * np.arange(4 * i, 4 * i + 4) for i in range(3)]).astype(np.int64)
    a = np.full(12, 3, np.int32)
    a[3:7] = 9
    return Case({"a": out("i32", "n"), "f": out("f32", "n"), "b": out("i64", "n", split=3), "r": out("i32", "n", 5, split=3),
                 "w": out("u64", "n"), "d": out("f64", "n", 3)}, nodes,
                {"a": a, "b": b, "f": np.full(12, 1 / 12, np.float32)}, own={"n": 12})


@case
def inits():
    return Case({"value": out("u8", 5, init=7), "iota": out("i8", 300, init="iota"), "steps": out("f64", 5, init={"iota": {"start": 1, "step": 0.5}}),
                 "noise": out("f32", 7, 3, init={"random": {"seed": 2, "low": -1, "high": 1}}), "dice": out("u8", 100, init={"random": {"low": 1, "high": 7}}),
                 "none": out("i32", 4)},
                [{"id": "n", "fill": {"to": "none", "value": 0}}],
                {"iota": np.arange(300).astype(np.int8), "steps": 1 + 0.5 * np.arange(5)})


@case
def host_functions():
    nodes = [
        {"id": "sum[i]", "for": {"i": 4}, "host": "reduce_sum", "args": {"x": "x[i]", "out": "total"}},
        {"id": "dev[i]", "for": {"i": 4}, "kernel": "scale", "args": {"a": 2, "x": "x[i]", "y": "y[i]"}},
        {"id": "mine", "host": "mix", "args": {"x": "y", "y": "z", "a": 4}},
    ]
    return Case({"x": iota("i64", 10, split=4), "y": out("i64", 10, split=4), "z": out("i64", 3), "total": out("i64", 1, init=5)}, nodes,
                {"total": np.array([50]), "y": 2 * np.arange(10)})


@case
def variadic():
    nodes = [
        {"id": "m[i]", "for": {"i": 3}, "kernel": "mix", "args": {"x": "x[i]", "y": "y[i]"},
         "reads": ["x", {"for": {"k": 3}, "if": "k != i", "ref": "x[k]"}, "z[i]", "z{0:0}"],
         "writes": [{"for": {"k": "i:i+1"}, "ref": "z[k]"}, {"sum": "total"}, {"readwrite": "w[i]"}, {"max": "top"}]},
        {"id": "wait", "kernel": "busy", "args": {"us": 1, "x": "x[0]", "y": "v"}, "reads": ["z"], "writes": ["u"]},
    ]
    nodes[1]["writes"] = [{"readwrite": "w[0]"}]
    return Case({"x": iota("u32", 9, split=3), "y": out("u32", 9, split=3), "z": out("u32", 9, init=1, split=3), "w": out("u32", 9, init=3, split=3),
                 "v": out("u32", 3), "total": out("u32", 2, init=0), "top": out("u32", 2, init=0)}, nodes)


# ---- collectives: on parts of one buffer, into another and in place ----

def ranks(name, count=3):
    return [{"for": {"i": count}, "ref": f"{name}[i]"}]


@case
def all_reduce():
    x = np.arange(12).reshape(3, 4)
    nodes = [
        {"id": "apart", "collective": "all_reduce", "op": "sum", "in": ranks("x"), "out": ranks("y")},
        {"id": "place", "collective": "all_reduce", "op": "max", "in": ranks("z"), "out": ranks("z")},
        {"id": "product", "collective": "all_reduce", "op": "prod", "in": ranks("x"), "out": ranks("p")},
        {"id": "least", "collective": "all_reduce", "op": "min", "in": ["x[0]", "y[1]", "z[2]"], "out": ["y[0]", "z[1]", "p[0]"]},
    ]
    return Case({"x": iota("i32", 12, split=3), "y": out("i32", 12, split=3), "z": out("i32", 12, split=3, init="iota"),
                 "p": out("i32", 12, split=3)}, nodes,
                {"y": np.concatenate([x[0], x.sum(0), x.sum(0)]), "z": np.concatenate([x[2], x[0], x[2]]),
                 "p": np.concatenate([x[0], x.prod(0), x.prod(0)])})


@case
def reduce_and_broadcast():
    nodes = [
        {"id": "r", "collective": "reduce", "op": "sum", "in": ranks("x"), "out": ["y[1]"], "root": 1},
        {"id": "rz", "collective": "reduce", "op": "min", "in": ranks("z"), "out": ["z[2]"], "root": 2},
        {"id": "b", "collective": "broadcast", "in": ["x[2]"], "out": ["y[0]", "y[2]"], "root": 0},
        {"id": "bz", "collective": "broadcast", "in": ["w[1]"], "out": ranks("w"), "root": 1},
    ]
    x = np.arange(12).reshape(3, 4)
    return Case({"x": iota("i64", 12, split=3), "y": out("i64", 12, split=3), "z": out("i64", 12, split=3, init="iota"),
                 "w": out("i64", 12, split=3, init="iota")}, nodes,
                {"y": np.concatenate([x[2], x.sum(0), x[2]]), "z": np.concatenate([x[0], x[1], x.min(0)]), "w": np.tile(x[1], 3)})


@case
def scatter_and_gather():
    nodes = [
        {"id": "s", "collective": "scatter", "in": ["x"], "out": ranks("y"), "root": 2},
        {"id": "g", "collective": "gather", "in": ranks("y"), "out": ["z"], "root": 0},
        {"id": "uneven", "collective": "gather", "in": ["x{0:1}", "x{5:10}", "x{3:5}"], "out": ["w"], "root": 1},
        {"id": "back", "collective": "scatter", "in": ["w"], "out": ["v{7:8}", "v{0:5}", "v{5:7}"]},
    ]
    x = np.arange(10, dtype=np.int32)
    w = np.concatenate([x[:1], x[5:], x[3:5]])
    return Case({"x": iota("i32", 10, split=3), "y": out("i32", 10, split=3), "z": out("i32", 10), "w": out("i32", 8), "v": out("i32", 8)}, nodes,
                {"y": x, "z": x, "w": w, "v": np.concatenate([w[1:6], w[6:8], w[:1]])})


@case
def all_gather_and_reduce_scatter():
    nodes = [
        {"id": "ag", "collective": "all_gather", "in": ranks("x"), "out": ranks("y")},
        {"id": "rs", "collective": "reduce_scatter", "op": "sum", "in": ranks("y"), "out": ranks("z")},
        {"id": "ag2", "collective": "all_gather", "in": ["x{0:2}", "x{5:6}", "x{1:4}"], "out": ranks("v", 3)},
    ]
    x = np.arange(6, dtype=np.int32)
    return Case({"x": iota("i32", 6, split=3), "y": out("i32", 18, split=3), "z": out("i32", 6, split=3), "v": out("i32", 18, split=3)}, nodes,
                {"y": np.tile(x, 3), "z": 3 * x, "v": np.tile([0, 1, 5, 1, 2, 3], 3).astype(np.int32)})


@case
def all_to_all():
    x = np.arange(27, dtype=np.int32).reshape(3, 3, 3)
    nodes = [{"id": "a", "collective": "all_to_all", "in": ranks("x"), "out": ranks("y")},
             {"id": "p", "collective": "all_to_all", "in": ranks("z"), "out": ranks("z")}]
    y = x.transpose(1, 0, 2).reshape(27)
    return Case({"x": iota("i32", 27, split=3), "y": out("i32", 27, split=3), "z": out("i32", 27, split=3, init="iota")}, nodes, {"y": y, "z": y})


@case
def collective_of_one():
    kinds = [("all_reduce", "sum"), ("reduce", "max"), ("broadcast", None), ("scatter", None), ("gather", None), ("all_gather", None),
             ("reduce_scatter", "min"), ("all_to_all", None)]
    nodes = [{"id": kind, "collective": kind, "in": ["x"], "out": [f"y[{k}]"], **({"op": op} if op else {})} for k, (kind, op) in enumerate(kinds)]
    return Case({"x": iota("u8", 3, 2), "y": out("u8", 24, 2, split=8)}, nodes, {"y": np.tile(np.arange(6), 8).reshape(24, 2).astype(np.uint8)})


@case
def collective_of_many():
    """More ranks than devices, and of every device's parts in turn."""
    nodes = [
        {"id": "fill[i]", "for": {"i": 9}, "fill": {"to": "x[i]", "iota": {"start": "i"}}, "on": "i % devices"},
        {"id": "r", "collective": "all_reduce", "op": "sum", "in": ranks("x", 9), "out": ranks("y", 9)},
        {"id": "t", "collective": "all_to_all", "in": ranks("y", 9), "out": ranks("x", 9)},
        {"id": "use[i]", "for": {"i": 9}, "kernel": "scale", "args": {"a": "i", "x": "x[i]", "y": "y[i]"}},
    ]
    return Case({"x": out("i32", 81, split=9), "y": out("i32", 81, split=9)}, nodes)


# ---- cuts ----

@case
def splits_that_do_not_divide():
    x = np.arange(11 * 3, dtype=np.int32).reshape(11, 3)
    nodes = [{"id": "k[i]", "for": {"i": "p"}, "kernel": "scale", "args": {"a": "i + 1", "x": "x[i]", "y": "y[i]"}},
             {"id": "m[i]", "for": {"i": "p"}, "kernel": "mix", "args": {"x": "y[i]", "y": "z[i]"}}]
    parts = np.concatenate([np.full((i + 1) * 11 // 4 - i * 11 // 4, i + 1) for i in range(4)])
    return Case({"x": iota("i32", 11, 3, split="p"), "y": out("i32", 11, 3, split="p"), "z": out("i32", 11, split="p")}, nodes,
                {"y": (x * parts[:, None]).astype(np.int32)}, own={"p": 4})


@case
def more_parts_than_rows():
    nodes = [{"id": "k[i]", "for": {"i": 7}, "kernel": "scale", "args": {"a": 2, "x": "x[i]", "y": "y[i]"}},
             {"id": "h[i]", "for": {"i": 7}, "kernel": "mix", "args": {"x": "x[i]~1", "y": "z[i]"}},
             {"id": "s[i]", "for": {"i": 7}, "kernel": "reduce_sum", "args": {"x": "y[i]", "out": "t"}},
             {"id": "c[i]", "for": {"i": 7}, "copy": {"from": "x[i]", "to": "w[i]"}},
             {"id": "f[i]", "for": {"i": 7}, "fill": {"to": "v[i]", "value": "i"}},
             {"id": "g", "collective": "gather", "in": ranks("x", 7), "out": ["u"]}]
    x = np.arange(3, dtype=np.int32)
    return Case({"x": iota("i32", 3, split=7), **{n: out("i32", 3, split=7) for n in "yzwv"}, "t": out("i32", 1), "u": out("i32", 3)}, nodes,
                {"y": 2 * x, "w": x, "u": x, "t": np.array([6], np.int32), "v": np.array([2, 4, 6], np.int32)})


@case
def empty_buffers():
    nodes = [{"id": "k", "kernel": "mix", "args": {"x": "x", "y": "y"}}, {"id": "c", "copy": {"from": "x", "to": "z"}},
             {"id": "s", "kernel": "reduce_sum", "args": {"x": "x", "out": "t"}}, {"id": "f", "fill": {"to": "z", "value": 1}},
             {"id": "w", "fill": {"to": "w", "value": 1}}]
    return Case({"x": iota("i32", "n", split=2), "y": out("i32", 2), "z": out("i32", "n"), "w": out("i32", 4, 0), "t": out("i32", 1)}, nodes,
                {"z": np.zeros(0, np.int32), "t": np.array([0], np.int32)}, own={"n": 0})


@case
def automatic_splits():
    nodes = [{"id": "k[i]", "for": {"i": 5}, "kernel": "scale", "args": {"a": 3, "x": "x[i]", "y": "y[i]"}},
             {"id": "s[i]", "for": {"i": 5}, "kernel": "reduce_sum", "args": {"x": "y[i]", "out": "t"}},
             {"id": "r", "kernel": "add", "args": {"x": "y[1:4]", "y": "x[1:4]", "z": "z[1:4]"}},
             {"id": "e", "kernel": "copy", "args": {"x": "x[0]", "y": "z[0]"}}, {"id": "l", "kernel": "copy", "args": {"x": "x[4]", "y": "z[4]"}},
             {"id": "w", "kernel": "mul", "args": {"x": "x", "y": "y", "z": "v"}}]
    x = np.arange(13)
    auto = {"split": {"auto": 5}}
    z = np.where((x >= 2) & (x < 10), 4 * x, x)
    return Case({"x": iota("i64", 13, **auto), "y": out("i64", 13, **auto), "z": out("i64", 13, **auto), "t": out("i64", 1), "v": out("i64", 13)}, nodes,
                {"y": 3 * x, "t": np.array([3 * 78]), "v": 3 * x * x, "z": z})


@case
def tiles():
    """Uneven ones, single ones, rows and columns of them, rectangles, all of them."""
    nodes = [
        {"for": {"i": 3}, "nodes": [{"id": "one[i,j]", "for": {"j": 2}, "kernel": "mix", "args": {"x": "A[i][j]", "y": "B[i][j]", "a": "10 * i + j"}}]},
        {"id": "row[i]", "for": {"i": 3}, "kernel": "mix", "args": {"x": "A[i][*]", "y": "r{i:i+1}"}},
        {"id": "column[j]", "for": {"j": 2}, "kernel": "mix", "args": {"x": "B[*][j]", "y": "c{j:j+1}"}},
        {"id": "some", "kernel": "mix", "args": {"x": "A[1:3][0:1]", "y": "B[0:2][*]"}, "access": {"y": "readwrite"}},
        {"id": "all", "kernel": "mix", "args": {"x": "A", "y": "s"}},
        {"id": "none", "kernel": "mix", "args": {"x": "A[1:1][*]", "y": "n"}},
        {"id": "more", "kernel": "mix", "args": {"x": "A[0][0]", "y": "m"}, "reads": ["B[2][*]", "B[0][1]"], "writes": ["C[2][*]"]},
        {"id": "copy[i]", "for": {"i": 2}, "copy": {"from": "A[i][*]", "to": "C[i][*]"}},
        {"id": "flat", "copy": {"from": "A[2][1]", "to": "f"}},
        {"id": "transposed", "kernel": "transpose", "args": {"x": "A[0][0]", "y": "T"}},
        {"id": "fill", "fill": {"to": "D", "value": 3}},
        {"id": "random", "fill": {"to": "E[*][*]", "random": {"low": 0, "high": 1000}}},
    ]
    a = np.arange(7 * 5, dtype=np.int32).reshape(7, 5)
    t = {"tiles": [3, 2]}
    return Case({"A": iota("i32", 7, 5, **t), "B": out("i32", 7, 5, **t), "C": out("i32", 7, 5, **t), "D": out("i32", 7, 5, **t), "E": out("i32", 7, 5, **t),
                 "r": out("i32", 3), "c": out("i32", 2), "s": out("i32", 1), "n": out("i32", 1), "m": out("i32", 1), "f": out("i32", 9), "T": out("i32", 2, 2)},
                nodes, {"f": a[4:, 2:].ravel(), "T": a[:2, :2].T.copy(), "D": np.full((7, 5), 3, np.int32)})


@case
def tiles_of_one_and_of_many():
    """One tile, one tile an element, more tiles than rows or columns."""
    nodes = [{"id": "one", "kernel": "scale", "args": {"a": 2, "x": "A", "y": "B[0][0]"}},
             {"for": {"i": 3}, "nodes": [{"id": "c[i,j]", "for": {"j": 4}, "kernel": "scale", "args": {"a": "i * j", "x": "C[i][j]", "y": "D[i][j]"}}]},
             {"for": {"i": 5}, "nodes": [{"id": "e[i,j]", "for": {"j": 3}, "kernel": "mix", "args": {"x": "E[i][j]", "y": "F[i][j]"}}]},
             {"id": "g", "collective": "gather", "in": [{"for": {"i": 3}, "ref": "C[i][1]"}], "out": ["g"]},
             {"id": "h", "collective": "all_gather", "in": ["C[0][*]", "C[2][*]"], "out": ["h[0]", "h[1]"]}]
    x = np.arange(12).reshape(3, 4)
    return Case({"A": iota("i64", 3, 4, tiles=[1, 1]), "B": out("i64", 3, 4, tiles=[1, 1]), "C": iota("i64", 3, 4, tiles=[3, 4]),
                 "D": out("i64", 3, 4, tiles=[3, 4]), "E": iota("u8", 2, 2, tiles=[5, 3]), "F": out("u8", 2, 2, tiles=[5, 3]), "g": out("i64", 3),
                 "h": out("i64", 16, split=2)},
                nodes, {"B": 2 * x, "D": x * np.outer(np.arange(3), np.arange(4)), "g": x[:, 1].copy(), "h": np.tile(np.concatenate([x[0], x[2]]), 2)})


# ---- references ----

@case
def halos():
    nodes = [{"id": "a[i]", "for": {"i": 4}, "kernel": "mix", "args": {"x": "x[i]~1", "y": "a[i]"}},
             {"id": "b[i]", "for": {"i": 4}, "kernel": "mix", "args": {"x": "x[i]~0:3", "y": "b[i]"}},
             {"id": "c[i]", "for": {"i": 4}, "kernel": "mix", "args": {"x": "a[i]~h:h+1", "y": "c[i]"}},
             {"id": "d[i]", "for": {"i": 4}, "kernel": "mix", "args": {"x": "b[i]~100", "y": "d[i]"}},
             {"id": "e[i]", "for": {"i": "1:4"}, "kernel": "mix", "args": {"x": "c[0:i]~1:0", "y": "e[i]~1:0"}},
             {"id": "e0", "fill": {"to": "e{0:1}", "value": 1}}]
    return Case({"x": iota("i32", 10, 2, split=4), **{n: out("i32", 10, split=4) for n in "abcd"}, "e": out("i32", 10, split=4)}, nodes, own={"h": 2})


@case
def jacobi_with_a_halo():
    nodes = [{"id": "a[i]", "for": {"i": 5}, "kernel": "jacobi2d", "args": {"x": "u[i]~1", "y": "v[i]"}},
             {"id": "b[i]", "for": {"i": 5}, "kernel": "jacobi2d", "args": {"x": "v[i]~1", "y": "w[i]"}}]
    u = np.arange(13 * 6, dtype=float).reshape(13, 6) ** 2

    def step(x):
        y = x.copy()
        y[1:-1, 1:-1] = 0.25 * ((x[:-2, 1:-1] + x[2:, 1:-1]) + (x[1:-1, :-2] + x[1:-1, 2:]))
        return y
    made = Case({"u": {"dtype": "f64", "shape": [13, 6], "split": 5, "class": "input"}, "v": {"dtype": "f64", "shape": [13, 6], "split": 5},
                 "w": out("f64", 13, 6, split=5)}, nodes, {"w": step(step(u))}, inputs={"u": ("f64", u)})
    made.no_oracle = True
    return made


@case
def ranges_and_clamps():
    nodes = [{"id": "inner[i]", "for": {"i": "1:4"}, "kernel": "mix", "args": {"x": "x[i-1:i+2]", "y": "a[i]"}},
             {"id": "ends[i]", "for": {"i": "0:5:4"}, "kernel": "mix", "args": {"x": "clamp(x[i-1:i+2])", "y": "a[i]"}},
             {"id": "b[i]", "for": {"i": 5}, "kernel": "mix", "args": {"x": "x[clamp(i-2:i+1)]", "y": "b[i]"}},
             {"id": "c[i]", "for": {"i": 5}, "kernel": "mix", "args": {"x": "x[clamp(i+1, 0, 4)]", "y": "c[i]"}},
             {"id": "d[i]", "for": {"i": 5}, "kernel": "mix", "args": {"x": "clamp(x[i+3])", "y": "d[i]"}},
             {"id": "k[i]", "for": {"i": 5}, "kernel": "mix", "args": {"x": "x[clamp(2*i-2)]", "y": "k[i]"}},
             {"id": "e[i]", "for": {"i": 5}, "kernel": "mix", "args": {"x": "x{2*i:2*i+3}", "y": "e{2*i:2*i+2}"}},
             {"id": "f[i]", "for": {"i": 5}, "kernel": "mix", "args": {"x": "x{clamp(2*i-3:2*i+9)}", "y": "f{clamp(2*i:2*i+9)}"}},
             {"id": "g[i]", "for": {"i": "4:-1:-1"}, "kernel": "mix", "args": {"x": "clamp(x{i*5:i*7})", "y": "g[4-i]"}},
             {"id": "h", "kernel": "mix", "args": {"x": "x[3:3]", "y": "h[2:5]"}}, {"id": "h2", "copy": {"from": "x[0:2]", "to": "h[0:2]"}}]
    return Case({"x": iota("u32", 11, split=5), **{n: out("u32", 11, split=5) for n in "abcdghk"}, "e": out("u32", 10), "f": out("u32", 11)}, nodes)


@case
def overlapping_ranges_as_reads():
    """A window slides over parts that other nodes wrote, and back."""
    nodes = [{"id": "w[i]", "for": {"i": 6}, "kernel": "mix", "args": {"x": "x[i]", "y": "y[i]", "a": "i"}},
             {"id": "r[i]", "for": {"i": 6}, "kernel": "mix", "args": {"x": "clamp(y[i-1:i+2])", "y": "z[i]"}},
             {"id": "v[i]", "for": {"i": 6}, "kernel": "mix", "args": {"x": "clamp(z{i*3-2:i*3+5})", "y": "y[i]"}, "access": {"y": "readwrite"}},
             {"id": "all", "kernel": "mix", "args": {"x": "y", "y": "z{4:9}"}, "access": {"y": "readwrite"}}]
    return Case({"x": iota("i8", 17, 3, split=6), "y": out("i8", 17, split=6), "z": out("i8", 17, split=6)}, nodes)


# ---- numbers ----

@case
def params_and_expressions():
    params = {"n": 8, "p": "n // 3", "m": "n * p - (2 + 1)", "lr": 0.5, "half": "n / 3", "neg": "-n", "big": "max(n, m, 3) % 5"}
    nodes = [{"id": "k[i,2*i+1]", "for": {"i": "p"}, "kernel": "scale", "args": {"a": "m - n * i + (n > 7 and not (p == 3))", "x": "x[p - 1 - i]", "y": "y[i]"},
              "priority": "i - 3", "cost": {"flops": "n * 1.5", "bytes": "n / 3"}, "share": "1 / 2", "scratch": "n * n"},
             {"id": "real", "kernel": "scale", "args": {"a": "lr * n / 3 + half", "x": "f", "y": "g"}},
             {"id": "neg", "fill": {"to": "z", "value": "neg + 1e1"}},
             {"id": "if", "if": "n >= 9 or p != 3", "kernel": "scale", "args": {"a": "ceil_div(n, 3) - min(big, 1)", "x": "x", "y": "w"}},
             {"id": "not", "if": "n < 9 and p == 3", "kernel": "fail", "args": {"how": 1, "x": "x", "y": "w"}}]
    return Case({"x": iota("i32", "n", split="p"), "y": out("i32", "n", split="p"), "z": out("i64", "ceil_div(n, 3)"), "w": out("i32", "2 * n / 2"),
                 "f": iota("f64", "n"), "g": out("f64", "n")}, nodes, {"z": np.full(3, 2)}, own=params)


@case
def params_overridden():
    made = params_and_expressions()
    made.params = {"n": "2 * 6", "lr": "1e-3"}
    made.want = {"z": np.full(4, -2)}
    return made


@case
def blocks_and_conditions():
    nodes = [{"for": {"i": 4}, "if": "i % 2 == 0", "nodes": [
        {"id": "a[i,j]", "for": {"j": "i:4"}, "if": "j != 2", "kernel": "mix", "args": {"x": "x[j]", "y": "y[i]", "a": "j"}, "access": {"y": "sum"}},
        {"if": "i == 2", "nodes": [{"id": "only", "fill": {"to": "z[0]", "value": 4}},
                                   {"for": {"k": "3:0:-1"}, "nodes": [{"id": "down[k]", "kernel": "mix", "args": {"x": "z[k-1]", "y": "z[k]"}}]}]}]},
        {"id": "never", "for": {"i": "4:2"}, "kernel": "fail", "args": {"how": 1, "x": "x[i]", "y": "y[i]"}},
        {"id": "never2", "if": 0, "kernel": "fail", "args": {"how": 1, "x": "x", "y": "y"}},
        {"id": "last", "after": ["never", "a[i,j]", "down[k]"], "fill": {"to": "y[3]", "value": 7}}]
    nodes.insert(0, {"id": "zero", "fill": {"to": "y", "value": 0}})
    return Case({"x": iota("i32", 12, split=4), "y": out("i32", 12, split=4), "z": {"dtype": "i32", "shape": [8], "split": 4, "output": True}},
                [nodes[0], {"id": "z0", "fill": {"to": "z", "value": 1}}, *nodes[1:]])
