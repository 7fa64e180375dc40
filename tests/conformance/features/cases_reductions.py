# SPDX-License-Identifier: Apache-2.0
"""Reductions over devices, and the keys that any node can have."""
import functools

from cases_nodes import CASES, Case, case, iota, out
from runner import np

EVERYWHERE = {"on": "i % devices"}
DTYPES = ["f16", "bf16", "f32", "f64", "i8", "u8", "i32", "u32", "i64", "u64"]


# ---- operators and dtypes ----

def all_ops(dtype):
    """Small whole numbers, so that every type holds every result; collectives need no kernel that knows the type."""
    integer = dtype[0] in "iu"
    x = np.arange(10) % 4 + 1
    nodes = [{"id": f"{op}", "collective": "all_reduce", "op": op, "in": [{"for": {"i": 5}, "ref": "x[i]"}], "out": [{"for": {"i": 5}, "ref": f"{op}[i]"}]}
             for op in ("sum", "min", "max", "prod")]
    nodes += [{"id": "s[i]", "for": {"i": 5}, "kernel": "reduce_sum", "args": {"x": "x[i]", "out": "total"}, **EVERYWHERE},
              {"id": "m[i]", "for": {"i": 5}, "kernel": "reduce_max", "args": {"x": "x[i]", "out": "top"}, **EVERYWHERE},
              {"id": "n[i]", "for": {"i": 5}, "kernel": "reduce_max", "args": {"x": "x[i]", "out": "fresh"}, **EVERYWHERE},
              {"id": "t[i]", "for": {"i": 5}, "kernel": "reduce_sum", "args": {"x": "x[i]", "out": "zero"}, **EVERYWHERE},
              {"id": "w[i]", "for": {"i": 5}, "kernel": "reduce_sum", "args": {"x": "x[i]", "out": "wide"}, **EVERYWHERE},
              {"id": "lows", "fill": {"to": "low", "value": -3 if dtype[0] != "u" else 0}},
              {"id": "l[i]", "for": {"i": 5}, "kernel": "reduce_max", "args": {"x": "low[i]", "out": "negative"}, **EVERYWHERE}]
    rows = x.reshape(5, 2)
    want = {op: np.tile(getattr(rows, op)(0), 5) for op in ("sum", "min", "max", "prod")}
    want |= {"total": [x.sum() + 3], "top": [7], "fresh": [4], "zero": [x.sum()], "wide": [x.sum()], "negative": [-3 if dtype[0] != "u" else 0]}
    made = Case({"x": {"dtype": dtype, "shape": [10], "split": 5, "class": "input"}, **{op: out(dtype, 10, split=5) for op in ("sum", "min", "max", "prod")},
                 "total": out(dtype, 1, init=3), "top": out(dtype, 1, init=7), "fresh": out(dtype, 1), "zero": out(dtype, 1),
                 "wide": out("i64" if integer else "f64", 1) if dtype != "f64" else out("f64", 1), "low": {"dtype": dtype, "shape": [10], "split": 5},
                 "negative": out(dtype, 1)}, nodes, inputs={"x": (dtype, x.astype(np.float32 if dtype == "bf16" else dtype_of(dtype)))})
    made.want = {name: np.asarray(a).astype(dtype_of(made.graph["buffers"][name]["dtype"])) for name, a in want.items()}
    made.no_oracle = True
    return made


def dtype_of(name):
    return {"f16": np.float16, "bf16": np.float32, "f32": np.float32, "f64": np.float64}.get(name) or np.dtype(f"{'u' if name[0] == 'u' else ''}int{name[1:]}").type


for dtype in DTYPES:
    CASES[f"reductions_of_{dtype}"] = functools.partial(all_ops, dtype)


def every_op(op, dtype, previous):
    """Contributions from all devices to overlapping rows, with and without a previous value; read between; two epochs."""
    more = {"access": {"y": op}}
    target = {"init": 5} if previous else {}
    nodes = [{"id": "a[i]", "for": {"i": 6}, "kernel": "mix", "args": {"x": "x[i]", "y": "y{i:i+5}", "a": "i"}, **more, **EVERYWHERE},
             {"id": "b[i]", "for": {"i": 3}, "kernel": "mix", "args": {"x": "x", "y": "y", "a": "-i"}, **more, "on": "(2 * i + 1) % devices"},
             {"id": "read", "kernel": "mix", "args": {"x": "y{2:4}", "y": "r{0:1}"}, "on": "1 % devices"},
             {"id": "c[i]", "for": {"i": 4}, "kernel": "mix", "args": {"x": "x[i]", "y": "y{3:9}"}, **more, **EVERYWHERE},
             {"id": "last", "kernel": "mix", "args": {"x": "y", "y": "r{1:2}"}},
             {"id": "over", "kernel": "mix", "args": {"x": "x", "y": "y{4:6}"}, "on": "2 % devices"},
             {"id": "d[i]", "for": {"i": 4}, "kernel": "mix", "args": {"x": "x[i]", "y": "y{5:8}"}, **more, **EVERYWHERE}]
    return Case({"x": iota(dtype, 13, split=6), "y": out(dtype, 10, **target), "r": out(dtype, 2)}, nodes)


for op in ("sum", "min", "max", "prod"):
    for dtype in ("i8", "u8", "i32", "u64"):
        for previous in (False, True):
            CASES[f"{op}_of_{dtype}_{'onto' if previous else 'from'}"] = functools.partial(every_op, op, dtype, previous)


@case
def sums_of_parts_then_whole():
    """Parts are contributed to, the whole, parts again; read in parts, as a whole, with a halo."""
    nodes = [{"id": "p[i]", "for": {"i": 4}, "kernel": "mix", "args": {"x": "x[i]", "y": "y[i]"}, "access": {"y": "sum"}, **EVERYWHERE},
             {"id": "w[i]", "for": {"i": 4}, "kernel": "mix", "args": {"x": "x[i]", "y": "y"}, "access": {"y": "sum"}, **EVERYWHERE},
             {"id": "q[i]", "for": {"i": 4}, "kernel": "mix", "args": {"x": "x[i]", "y": "y[3-i]~1"}, "access": {"y": "sum"}, **EVERYWHERE},
             {"id": "r[i]", "for": {"i": 4}, "kernel": "mix", "args": {"x": "y[i]~1", "y": "z[i]"}, "on": "(i + 1) % devices"},
             {"id": "s", "kernel": "mix", "args": {"x": "y", "y": "y2"}}]
    return Case({"x": iota("i32", 10, split=4), "y": out("i32", 10, split=4), "z": out("i32", 10, split=4), "y2": out("i32", 1)}, nodes)


@case
def sums_of_tiles():
    nodes = [{"for": {"k": 3}, "nodes": [{"for": {"i": 2}, "nodes": [
        {"id": "g[i,j,k]", "for": {"j": 2}, "kernel": "mix", "args": {"x": "A[i][k]", "y": "C[i][j]"}, "reads": ["B[k][j]"], "access": {"y": "sum"}, "on": "k % devices"}]}]},
        {"id": "l", "kernel": "mix", "args": {"x": "A", "y": "C[*][1]"}, "access": {"y": "sum"}, "on": "1 % devices"},
        {"id": "r", "kernel": "mix", "args": {"x": "C", "y": "r"}}]
    return Case({"A": iota("i32", 4, 6, tiles=[2, 3]), "B": iota("i32", 6, 4, tiles=[3, 2]), "C": out("i32", 4, 4, tiles=[2, 2]), "r": out("i32", 1)}, nodes)


@case
def gemm_that_sums():
    a, b = np.arange(12.).reshape(3, 4), np.arange(20.).reshape(4, 5)
    nodes = [{"id": "g[k]", "for": {"k": 2}, "kernel": "gemm", "args": {"a": "A[0][k]", "b": "B[k][0]", "c": "C"}, "access": {"c": "sum"}, "on": "k % devices"}]
    return Case({"A": iota("f64", 3, 4, tiles=[1, 2]), "B": iota("f64", 4, 5, tiles=[2, 1]), "C": out("f64", 3, 5, init=1)}, nodes, {"C": 1 + a @ b})


@case
def filled_with_the_identity():
    """A fill that says "no previous value" in pieces, on other devices, twice; and a fill that is not the identity of all rows."""
    nodes = [{"id": "f[i]", "for": {"i": 3}, "fill": {"to": "y[i]", "value": 0}, **EVERYWHERE},
             {"id": "a[i]", "for": {"i": 5}, "kernel": "mix", "args": {"x": "x[i]", "y": "y"}, "access": {"y": "sum"}, **EVERYWHERE},
             {"id": "r", "kernel": "mix", "args": {"x": "y", "y": "r{0:1}"}},
             {"id": "f2", "fill": {"to": "y{2:7}", "value": 0}, "on": "1 % devices"}, {"id": "f3", "fill": {"to": "y{4:5}", "value": 1}},
             {"id": "b[i]", "for": {"i": 5}, "kernel": "mix", "args": {"x": "x[i]", "y": "y{1:9}"}, "access": {"y": "sum"}, **EVERYWHERE},
             {"id": "p0", "fill": {"to": "p", "value": 1}}, {"id": "m0", "fill": {"to": "m", "value": 255}}, {"id": "n0", "fill": {"to": "n", "value": 0}},
             *[{"id": f"{name}[i]", "for": {"i": 5}, "kernel": "mix", "args": {"x": "x[i]", "y": name}, "access": {"y": op}, **EVERYWHERE}
               for name, op in (("p", "prod"), ("m", "min"), ("n", "max"))]]
    return Case({"x": iota("u8", 10, split=5), "y": out("u8", 9, split=3), "r": out("u8", 2, init=0), **{n: out("u8", 2) for n in "pmn"}}, nodes)


@case
def one_contribution():
    nodes = [{"id": "a", "kernel": "mix", "args": {"x": "x", "y": "y[1]"}, "access": {"y": "sum"}, "on": "1 % devices"},
             {"id": "b", "kernel": "mix", "args": {"x": "x", "y": "z[0]"}, "access": {"y": "min"}, "on": "devices - 1"}]
    return Case({"x": iota("i32", 3), "y": out("i32", 6, split=2, init=0), "z": out("i32", 6, split=2, init=9)}, nodes)


@case
def two_accumulators_of_one_node():
    nodes = [{"id": "a[i]", "for": {"i": 5}, "kernel": "mix", "args": {"x": "x[i]", "y": "y"}, "access": {"y": "sum"}, "writes": [{"max": "m"}, {"sum": "y2[i]"}, {"prod": "p"}], **EVERYWHERE}]
    return Case({"x": iota("u32", 10, split=5), "y": out("u32", 4), "m": out("u32", 2, init=1), "y2": out("u32", 10, split=5), "p": out("u32", 1)}, nodes)


@case
def sums_into_inputs():
    """An input that is contributed to: its old contents count."""
    nodes = [{"id": "a[i]", "for": {"i": 5}, "kernel": "mix", "args": {"x": "x[i]", "y": "y{i:i+6}"}, "access": {"y": "sum"}, **EVERYWHERE}]
    return Case({"x": iota("i32", 10, split=5), "y": iota("i32", 12, output=True)}, nodes, starts=2)


# ---- keys ----

@case
def after_with_apart_priority():
    nodes = [{"id": "a[i]", "for": {"i": 4}, "kernel": "mix", "args": {"x": "x[i]", "y": "y[i]"}, "priority": "i"},
             {"id": "b[i]", "for": {"i": 4}, "kernel": "mix", "args": {"x": "y[i]", "y": "z[i]"}, "with": "a[3-i]", "after": ["a[i]"]},
             {"id": "c", "kernel": "mix", "args": {"x": "x", "y": "w{0:1}"}, "after": "a[i]", "with": ["a[0]", "b[3]"]},
             {"id": "d", "kernel": "mix", "args": {"x": "x", "y": "w{1:2}"}, "after": "e", "priority": -5},
             {"id": "e", "kernel": "mix", "args": {"x": "y", "y": "w{2:3}"}, "cost": {"time_us": {"dev0": 4, "cpu": 5, "*": 6}}},
             {"id": "f", "kernel": "mix", "args": {"x": "w{1:3}", "y": "w{3:4}"}, "share": 0.25, "scratch": 4096},
             {"id": "g", "fill": {"to": "v", "value": 1}, "after": ["f", "d", "b[i]"], "cost": {"flops": 1e3, "bytes": "4 * 3"}}]
    return Case({"x": iota("i32", 9, split=4), "y": out("i32", 9, split=4), "z": out("i32", 9, split=4), "w": out("i32", 4), "v": out("i32", 2)}, nodes)


@case
def after_into_and_out_of_loops():
    nodes = [{"id": "a", "fill": {"to": "x", "value": 2}, "after": ["r[i]", "z"]},
             {"repeat": 3, "carry": {"u": "v"}, "nodes": [
                 {"id": "r[i]", "for": {"i": 3}, "kernel": "mix", "args": {"x": "u[i]", "y": "v[i]"}, "after": "y"},
                 {"id": "q", "kernel": "mix", "args": {"x": "u", "y": "w"}, "after": ["r[0]", "r[2]"]}]},
             {"id": "z", "kernel": "mix", "args": {"x": "v", "y": "t"}}, {"id": "y", "fill": {"to": "s", "value": 1}}]
    return Case({"u": iota("i32", 6, split=3), "v": out("i32", 6, split=3), "w": out("i32", 1), "x": out("i32", 1), "t": out("i32", 1), "s": out("i32", 1)}, nodes)


@case
def on_in_every_way():
    nodes = [{"id": "a", "kernel": "mix", "args": {"x": "x", "y": "y{0:1}"}, "on": 0}, {"id": "b", "kernel": "mix", "args": {"x": "x", "y": "y{1:2}"}, "on": "dev0"},
             {"id": "c", "kernel": "mix", "args": {"x": "x", "y": "y{2:3}"}, "on": "cpu"}, {"id": "d", "kernel": "mix", "args": {"x": "x", "y": "y{3:4}"}, "on": "devices - 1"},
             {"id": "e[i]", "for": {"i": 3}, "kernel": "mix", "args": {"x": "x", "y": "y{4+i:5+i}"}, "on": "i // 3"},
             {"id": "f", "copy": {"from": "y{0:2}", "to": "y{7:9}"}, "on": "1 % devices"}, {"id": "g", "fill": {"to": "y{9:10}", "value": 3}, "on": "2 % devices"},
             {"id": "h", "host": "mix", "args": {"x": "y", "y": "z"}, "on": "devices - 1"}]
    return Case({"x": iota("i32", 3), "y": out("i32", 10), "z": out("i32", 2)}, nodes)


@case
def names():
    """Any characters but brackets, commas, blanks, colon, tilde, star and quotes."""
    nodes = [{"id": "a/b.c-d #é[i]{x}", "for": {"i": 2}, "kernel": "mix", "args":
              {"x": "größe/ä.1-2+3=%$#@!&|<>?;^_`[i]", "y": "…[i]~1"}, "access": {"y": "readwrite"}}]
    return Case({"größe/ä.1-2+3=%$#@!&|<>?;^_`": iota("i32", 4, split=2), "…": out("i32", 4, split=2, init=1)}, nodes)
