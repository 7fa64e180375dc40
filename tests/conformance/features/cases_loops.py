# SPDX-License-Identifier: Apache-2.0
"""Loops that carry, classes of buffers, and several starts."""
import functools

from cases_nodes import CASES, Case, case, iota, out
from runner import np


def step(source="u", target="v", id="step", p=3, **args):
    """target part = mix of source's parts around it and of `it`."""
    return {"id": f"{id}[i]", "for": {"i": p}, "kernel": "mix", "args": {"x": f"clamp({source}[i-1:i+2])", "y": f"{target}[i]", **args}}


def pair(n=10, p=3, **more):
    return {"u": iota("i32", n, split=p, **more.pop("u", {})), "v": out("i32", n, split=p, **more.pop("v", {})), **more}


@case
def doubling():
    """By hand: u doubles N times."""
    nodes = [{"repeat": 5, "carry": {"u": "v"}, "nodes": [{"id": "d[i]", "for": {"i": 3}, "kernel": "scale", "args": {"a": 2, "x": "u[i]", "y": "v[i]"}}]}]
    return Case(pair(u={"output": True}), nodes, {"v": 32 * np.arange(10), "u": 32 * np.arange(10)})


@case
def index_in_scalars():
    nodes = [{"repeat": 4, "carry": {"u": "v"}, "nodes": [
        {"id": "d", "kernel": "scale", "args": {"a": "it + 1", "x": "u", "y": "v"}},
        {"id": "e[i]", "for": {"i": 2}, "kernel": "scale", "args": {"a": "it * 10 + i", "x": "u{0:5}", "y": "w[i]"}}]}]
    return Case(pair(w=out("i32", 10, split=2)), nodes, {"v": 24 * np.arange(10), "w": np.concatenate([6 * 30 * np.arange(5), 6 * 31 * np.arange(5)])})


def repeated(count):
    nodes = [step(id="before", source="u", target="w"),
             {"repeat": count, "carry": {"u": "v"}, "nodes": [step(a="it"), {"id": "log", "kernel": "mix", "args": {"x": "v", "y": "log"}, "access": {"y": "sum"}}]},
             step(id="after", source="u", target="x"), {"id": "end", "kernel": "mix", "args": {"x": "v", "y": "y"}}]
    return Case(pair(u={"output": True}, v={"init": 5}, w=out("i32", 10, split=3), x=out("i32", 10, split=3), y=out("i32", 2), log=out("i32", 2, init=0)), nodes)


for count in (0, 1, 2, 3, 17):
    CASES[f"repeat_{count}"] = functools.partial(repeated, count)


@case
def whole_graph_repeated():
    return Case(pair(), [step(a="it")], repeat=6, carry={"u": "v"})


@case
def repeat_by_param():
    return Case(pair(), [{"repeat": "2 * k - 1", "carry": {"u": "v"}, "nodes": [step(a="it + k")]}], own={"k": 2}, params={"k": 3})


@case
def two_loops_over_one_pair():
    nodes = [{"repeat": 3, "carry": {"u": "v"}, "nodes": [step()]},
             {"id": "between", "kernel": "mix", "args": {"x": "w", "y": "v[2]"}, "access": {"y": "readwrite"}},
             {"repeat": 2, "carry": {"u": "v"}, "nodes": [step(id="again", a=3)]},
             {"repeat": 2, "carry": {"v": "u"}, "nodes": [step("v", "u", id="back", a=5)]}]
    return Case(pair(u={"output": True}, w=iota("i32", 3)), nodes)


@case
def two_pairs():
    """They exchange; one of them is not written in the loop's first half."""
    nodes = [{"repeat": 5, "carry": {"a": "b", "c": "d"}, "nodes": [
        {"id": "x[i]", "for": {"i": 2}, "kernel": "mix", "args": {"x": "a[i]", "y": "d[i]"}, "reads": ["c"]},
        {"id": "y[i]", "for": {"i": 2}, "kernel": "mix", "args": {"x": "c[i]", "y": "b[i]"}, "reads": ["d[i]~1"]}]}]
    two = {"split": 2}
    return Case({"a": iota("u8", 7, **two), "b": out("u8", 7, **two), "c": iota("u8", 7, **two), "d": out("u8", 7, **two)}, nodes)


@case
def carried_and_read_old():
    """next is read, written partly and accumulated into within one iteration."""
    nodes = [{"repeat": 4, "carry": {"u": "v"}, "nodes": [
        {"id": "first", "kernel": "copy", "args": {"x": "u", "y": "v"}},
        {"id": "part[i]", "for": {"i": 3}, "kernel": "mix", "args": {"x": "u[2-i]", "y": "v[i]"}, "access": {"y": "sum"}},
        {"id": "again[i]", "for": {"i": 3}, "kernel": "mix", "args": {"x": "u", "y": "v[i]"}, "access": {"y": "sum"}},
        {"id": "read", "kernel": "mix", "args": {"x": "v", "y": "w"}},
        {"id": "late", "kernel": "mix", "args": {"x": "w", "y": "v[1]"}, "access": {"y": "sum"}},
        {"id": "old", "kernel": "mix", "args": {"x": "v", "y": "u[1]"}, "access": {"y": "readwrite"}}]}]
    return Case(pair(w=out("i32", 4)), nodes)


@case
def accumulated_without_a_value():
    """next begins unwritten, so contributions are all there is."""
    nodes = [{"repeat": 4, "carry": {"u": "v"}, "nodes": [{"id": "c[i]", "for": {"i": 6}, "kernel": "mix", "args": {"x": "u", "y": "v", "a": "i"},
                                                         "access": {"y": "max"}}]}]
    return Case(pair(), nodes)


@case
def reset_by_a_fill():
    nodes = [{"repeat": 5, "carry": {"u": "v"}, "nodes": [
        {"id": "zero", "fill": {"to": "total", "value": 0}},
        step(), {"id": "sum[i]", "for": {"i": 3}, "kernel": "reduce_sum", "args": {"x": "v[i]", "out": "total"}},
        {"id": "ever[i]", "for": {"i": 3}, "kernel": "reduce_sum", "args": {"x": "v[i]", "out": "ever"}},
        {"id": "use", "kernel": "mix", "args": {"x": "total", "y": "v[0]"}, "access": {"y": "readwrite"}}]}]
    return Case(pair(total=out("i64", 1), ever=out("i64", 1, init=0)), nodes)


@case
def reset_by_another_value():
    nodes = [{"repeat": 3, "carry": {"u": "v"}, "nodes": [
        {"id": "seven", "fill": {"to": "total", "value": 7}}, step(),
        {"id": "p[i]", "for": {"i": 3}, "kernel": "mix", "args": {"x": "v[i]", "y": "total"}, "access": {"y": "prod"}},
        {"id": "use", "kernel": "mix", "args": {"x": "total", "y": "log"}, "access": {"y": "sum"}}]}]
    return Case(pair(total=out("u64", 2), log=out("u64", 1)), nodes)


@case
def carried_tiles():
    nodes = [{"repeat": 3, "carry": {"A": "B"}, "nodes": [
        {"for": {"i": 2}, "nodes": [{"id": "t[i,j]", "for": {"j": 3}, "kernel": "mix", "args": {"x": "A[i][*]", "y": "B[i][j]"}, "reads": ["A[*][j]"]}]}]}]
    t = {"tiles": [2, 3]}
    return Case({"A": iota("i32", 5, 7, **t), "B": out("i32", 5, 7, **t)}, nodes)


@case
def carried_automatic():
    auto = {"split": {"auto": 4}}
    nodes = [{"repeat": 6, "carry": {"a": "b"}, "nodes": [{"id": "k[i]", "for": {"i": 4}, "kernel": "scale", "args": {"a": 3, "x": "a[i]", "y": "b[i]"}}]}]
    return Case({"a": iota("i32", 11, **auto), "b": out("i32", 11, **auto)}, nodes, {"b": 729 * np.arange(11)})


@case
def collectives_in_a_loop():
    nodes = [{"repeat": 4, "carry": {"u": "v"}, "nodes": [
        step(p=4), {"id": "r", "collective": "all_reduce", "op": "sum", "in": [{"for": {"i": 4}, "ref": "v[i]"}], "out": [{"for": {"i": 4}, "ref": "v[i]"}]},
        {"id": "ag", "collective": "gather", "in": [{"for": {"i": 4}, "ref": "u[i]"}], "out": ["w"]}]}]
    return Case(pair(12, 4, w=out("i32", 12)), nodes)


# ---- until ----

def counted(case):
    """Values are floating, which the oracle does not know; how many iterations it took is among the outputs."""
    case.no_oracle = True
    return case


def until_small(values, limit, parts):
    """done is not 0 once the sum of squares is below the limit; count goes up by one."""
    return [{"id": "limit", "fill": {"to": "excess", "value": -limit}},
            {"id": "norm[i]", "for": {"i": parts}, "kernel": "dot", "args": {"x": f"{values}[i]", "y": f"{values}[i]", "out": "excess"}},
            {"id": "turn", "kernel": "scale", "args": {"a": -1, "x": "excess", "y": "room"}},
            {"id": "test", "kernel": "relu", "args": {"x": "room", "y": "done"}},
            {"id": "count", "kernel": "reduce_sum", "args": {"x": "one", "out": "count"}}]


FLAGS = {**{name: {"dtype": "f64", "shape": [1]} for name in ("excess", "room", "done")}, "one": {"dtype": "i32", "shape": [1], "init": 1, "class": "const"},
         "count": out("i64", 1, init=0)}


@case
def newton():
    """1 / a by x (2 - a x), looking every 2 iterations: quadratic, so the last step passes the limit by far."""
    a = {"for": {"i": 3}}
    nodes = [{"id": "seed", "fill": {"to": "x", "value": 0.125}},
             {"repeat": 50, "carry": {"x": "y"}, "until": {"buffer": "done", "every": 2}, "nodes": [
                 {"id": "t[i]", **a, "kernel": "mul", "args": {"x": "a[i]", "y": "x[i]", "z": "t[i]"}},
                 {"id": "two[i]", **a, "kernel": "copy", "args": {"x": "two[i]", "y": "u[i]"}},
                 {"id": "u[i]", **a, "kernel": "axpby", "args": {"a": -1, "b": 1, "x": "t[i]", "y": "u[i]"}},
                 {"id": "y[i]", **a, "kernel": "mul", "args": {"x": "x[i]", "y": "u[i]", "z": "y[i]"}},
                 {"id": "one[i]", **a, "kernel": "copy", "args": {"x": "ones[i]", "y": "e[i]"}},
                 {"id": "e[i]", **a, "kernel": "axpby", "args": {"a": -1, "b": 1, "x": "t[i]", "y": "e[i]"}},
                 *until_small("e", 1e-12, 3)]},
             {"id": "after[i]", **a, "kernel": "mul", "args": {"x": "x[i]", "y": "a[i]", "z": "back[i]"}}]
    v = {"dtype": "f64", "shape": [8], "split": 3}
    buffers = {"a": {**v, "init": {"iota": {"start": 1, "step": 0.5}}}, "x": {**v, "output": True}, "two": {**v, "init": 2}, "ones": {**v, "init": 1, "class": "const"},
               **{name: dict(v) for name in "tuye"}, "back": {**v, "output": True}, **FLAGS}
    given = 1 + 0.5 * np.arange(8)
    x, count = np.full(8, 0.125), 0
    for count in range(1, 51):
        t = given * x
        x = x * (2 - t)
        if count % 2 == 0 and np.sum((1 - t) ** 2) < 1e-12:
            break
    assert 4 < count < 20 and np.sum((1 - given * x) ** 2) < 1e-20
    return counted(Case(buffers, nodes, {"x": x, "back": given * x, "count": np.array([count], np.int64)}, starts=2))


@case
def shrink_then_grow():
    """A vector shrinks until its squares are small, then a second loop doubles them until they are large again."""
    a = {"for": {"i": 2}}
    nodes = [{"repeat": 1000, "carry": {"x": "y"}, "until": {"buffer": "done", "every": 3}, "nodes": [
                 {"id": "shrink[i]", **a, "kernel": "scale", "args": {"a": 0.75, "x": "x[i]", "y": "y[i]"}}, *until_small("y", 1e-3, 2)]},
             {"id": "between", "kernel": "copy", "args": {"x": "x", "y": "low"}},
             {"repeat": 40, "carry": {"x": "y"}, "nodes": [{"id": "grow[i]", **a, "kernel": "scale", "args": {"a": "it + 1", "x": "x[i]", "y": "y[i]"}}]},
             {"repeat": 7, "carry": {"y": "x"}, "nodes": [{"id": "back[i]", **a, "kernel": "scale", "args": {"a": 2, "x": "y[i]", "y": "x[i]"}}]}]
    v = {"dtype": "f64", "shape": [6], "split": 2}
    buffers = {"x": {**v, "init": {"iota": {"start": 1, "step": 1}}, "class": "state", "output": True}, "y": dict(v), "low": {**v, "output": True}, **FLAGS}
    x, total = 1.0 + np.arange(6), 0
    for _ in range(2):
        count = 0
        while count < 1000:
            count += 1
            x = 0.75 * x
            if count % 3 == 0 and np.sum(x * x) < 1e-3:
                break
        low = x.copy()
        for it in range(40):
            x = (it + 1.0) * x
        x = x * 2**7
        total = count
    return counted(Case(buffers, nodes, {"x": x, "low": low, "count": np.array([total], np.int64)}, starts=2))


# ---- classes and starts ----

@case
def state_over_starts():
    """By hand: w = 2 w + 1 in every start."""
    nodes = [{"id": "one", "fill": {"to": "one", "value": 1}}, {"id": "k[i]", "for": {"i": 3}, "kernel": "axpby", "args": {"a": 1, "b": 2, "x": "one[i]", "y": "w[i]"}}]
    return Case({"one": {"dtype": "i32", "shape": [8], "split": 3}, "w": {"dtype": "i32", "shape": [8], "split": 3, "class": "state", "init": "iota", "output": True}},
                nodes, {"w": 16 * np.arange(8) + 15}, starts=4)


@case
def carried_state_over_starts():
    nodes = [step(id="pre", source="k", target="t"), {"repeat": 3, "carry": {"u": "v"}, "nodes": [step(a="it")]}, step(id="post", target="w")]
    return Case(pair(u={"class": "state", "output": True}, t=out("i32", 10, split=3), w=out("i32", 10, split=3), k=iota("i32", 10, split=3, **{"class": "const"})),
                nodes, starts=3)


@case
def both_names_are_state():
    nodes = [{"repeat": 2, "carry": {"u": "v"}, "nodes": [step()]}, {"id": "n", "kernel": "mix", "args": {"x": "v", "y": "x"}}]
    return Case(pair(u={"class": "state", "output": True}, v={"class": "state", "init": 1}, x=out("i32", 1)), nodes, starts=3)


@case
def next_is_state():
    nodes = [{"repeat": 2, "carry": {"u": "v"}, "nodes": [{"id": "r", "kernel": "mix", "args": {"x": "u", "y": "v"}, "access": {"y": "sum"}}]}]
    return Case(pair(v={"class": "state", "init": 1}), nodes, starts=4)


@case
def state_partly_written():
    """Some rows are read only, some written on other devices than they are read on."""
    nodes = [{"id": f"k{i}", "kernel": "mix", "args": {"x": f"s[{(i + 1) % 4}]", "y": f"t[{i}]"}, "on": f"{i} % devices"} for i in range(4)]
    nodes += [{"id": "w", "kernel": "mix", "args": {"x": "t", "y": "s[2]"}, "access": {"y": "readwrite"}, "on": "1 % devices"},
              {"id": "sum[i]", "for": {"i": 4}, "kernel": "mix", "args": {"x": "t[i]", "y": "s[0]"}, "access": {"y": "sum"}, "on": "i % devices"}]
    return Case({"s": iota("i32", 9, split=4, output=True, **{"class": "state"}), "t": out("i32", 9, split=4)}, nodes, starts=3)


@case
def state_never_touched():
    nodes = [{"id": "k", "kernel": "mix", "args": {"x": "x", "y": "y"}}]
    return Case({"x": iota("i32", 4), "y": out("i32", 2), "s": iota("i32", 5, output=True, **{"class": "state"}), "c": iota("i32", 6, output=True, **{"class": "const"}),
                 "i": iota("i32", 7, output=True), "o": iota("i32", 4, 2, tiles=[2, 2], output=True)}, nodes,
                {"s": np.arange(5), "c": np.arange(6), "i": np.arange(7), "o": np.arange(8).reshape(4, 2)}, starts=2)


@case
def inputs_begin_anew():
    """An input that is written begins every start from its init or binding; so does a tiled one."""
    nodes = [{"id": "k[i]", "for": {"i": 2}, "kernel": "mix", "args": {"x": "b[i]", "y": "a[i]"}, "access": {"y": "readwrite"}},
             {"for": {"i": 2}, "nodes": [{"id": "t[i,j]", "for": {"j": 2}, "kernel": "mix", "args": {"x": "a", "y": "T[i][j]"}, "access": {"y": "readwrite"}}]},
             {"id": "s", "kernel": "mix", "args": {"x": "a", "y": "s"}, "access": {"y": "sum"}, "reads": ["T[*][0]"]}]
    bound = np.arange(15, dtype=np.int32).reshape(5, 3) * 7
    return Case({"a": iota("i32", 5, split=2, output=True), "b": {"dtype": "i32", "shape": [5], "split": 2, "class": "input"},
                 "T": {"dtype": "i32", "shape": [5, 3], "tiles": [2, 2], "class": "input", "output": True},
                 "s": {"dtype": "i32", "shape": [2], "class": "state", "init": 0, "output": True}}, nodes,
                inputs={"b": ("i32", np.arange(5, dtype=np.int32) * 3), "T": ("i32", bound)}, starts=3)


@case
def state_and_const_are_bound():
    nodes = [{"id": "k[i]", "for": {"i": 3}, "kernel": "mix", "args": {"x": "c[i]~1", "y": "s[i]"}, "access": {"y": "sum"}},
             {"id": "t", "kernel": "mix", "args": {"x": "C[1][*]", "y": "S[0][1]"}, "access": {"y": "readwrite"}}]
    return Case({"c": {"dtype": "i32", "shape": [7], "split": 3, "class": "const"}, "s": {"dtype": "i32", "shape": [7], "split": 3, "class": "state", "output": True},
                 "C": {"dtype": "i32", "shape": [3, 4], "tiles": [2, 2], "class": "const", "init": 1},
                 "S": {"dtype": "i32", "shape": [3, 4], "tiles": [2, 2], "class": "state", "init": 1, "output": True}}, nodes,
                inputs={"c": ("i32", np.arange(7, dtype=np.int32)), "s": ("i32", np.arange(7, dtype=np.int32) * 5),
                        "C": ("i32", np.arange(12, dtype=np.int32).reshape(3, 4)), "S": ("i32", 3 * np.arange(12, dtype=np.int32).reshape(3, 4))}, starts=3)


@case
def state_of_tiles():
    t = {"tiles": [2, 3]}
    nodes = [{"for": {"i": 2}, "nodes": [{"id": "t[i,j]", "for": {"j": 3}, "kernel": "mix", "args": {"x": "A[i][*]", "y": "B[i][j]"}}]},
             {"for": {"i": 2}, "nodes": [{"id": "u[i,j]", "for": {"j": 3}, "kernel": "add", "args": {"x": "B[i][j]", "y": "B[i][j]", "z": "A[i][j]"}}]}]
    return Case({"A": iota("i32", 5, 7, output=True, **t, **{"class": "state"}), "B": out("i32", 5, 7, **t)}, nodes, starts=3)


@case
def reductions_into_state():
    nodes = [{"id": "k[i]", "for": {"i": 4}, "kernel": "mix", "args": {"x": "x[i]", "y": "s"}, "access": {"y": "sum"}, "on": "i % devices"},
             {"id": "m[i]", "for": {"i": 4}, "kernel": "reduce_max", "args": {"x": "x[i]", "out": "m"}, "on": "i % devices"},
             {"id": "z", "fill": {"to": "z", "value": 0}},
             {"id": "n[i]", "for": {"i": 4}, "kernel": "reduce_sum", "args": {"x": "x[i]", "out": "z"}, "on": "i % devices"}]
    return Case({"x": iota("i64", 11, split=4), **{n: {"dtype": "i64", "shape": [1 if n != "s" else 3], "class": "state", "init": 3, "output": True} for n in "smz"}},
                nodes, {"m": np.array([10]), "z": np.array([55])}, starts=3)


# ---- found by random graphs ----

def two_states(output):
    return {"a": iota("i32", 3, output=output, **{"class": "state"}), "b": {"dtype": "i32", "shape": [3], "init": 5, "class": "state", "output": output},
            "y": out("i32", 3)}


@case
def output_that_ends_as_an_untouched_state():
    nodes = [{"repeat": 1, "carry": {"t": "b"}, "nodes": [{"id": "y", "fill": {"to": "y", "value": 1}}]}]
    return Case({"t": out("i32", 3), **two_states(False)}, nodes, {"t": [5, 5, 5]}, starts=2)


@case
def state_that_ends_as_an_untouched_state():
    nodes = [{"id": "r", "kernel": "scale", "args": {"a": 2, "x": "a", "y": "y"}}, {"repeat": 1, "carry": {"a": "b"}, "nodes": []}]
    return Case(two_states(False), nodes, {"y": [10, 10, 10]}, starts=2)


@case
def state_that_ends_as_an_old_state():
    """a ends as what b was in the first iteration; b goes on."""
    nodes = [{"id": "r", "kernel": "scale", "args": {"a": 2, "x": "a", "y": "y"}}, {"repeat": 1, "carry": {"a": "b"}, "nodes": []},
             {"repeat": 3, "carry": {"c": "b"}, "nodes": [{"id": "s", "kernel": "scale", "args": {"a": 3, "x": "c", "y": "b"}}]}]
    return Case({**two_states(True), "c": {"dtype": "i32", "shape": [3], "init": 3}}, nodes, {"a": [9, 9, 9], "b": [81, 81, 81]}, starts=3)


@case
def states_in_a_ring():
    """v and w change places in every start."""
    nodes = [{"id": "r", "kernel": "axpby", "args": {"a": 10, "b": 0, "x": "v", "y": "y"}},
             *[{"repeat": 1, "carry": {prev: next_}, "nodes": []} for prev, next_ in (("u", "v"), ("v", "w"), ("w", "u"))]]
    states = {name: {"dtype": "i32", "shape": [3], "init": k, "class": "state", "output": True} for k, name in enumerate("uvw", 1)}
    return Case({**states, "y": out("i32", 3, init=0)}, nodes, {"v": [3, 3, 3], "w": [2, 2, 2], "y": [20, 20, 20]}, starts=3)
