# SPDX-License-Identifier: Apache-2.0
"""Graphs of other subjects than those of graphs/, written from docs/graph-format.md alone, beside NumPy: on one, two and three devices, without effort
too, dealt out in turn, and in checking mode.

check_written.py GANTRY
"""
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from numpy_gantry import gantry, np  # noqa: E402

rng = np.random.default_rng(11)
WAYS = (["--devices", "1"], ["--devices", "2", "--check"], ["--devices", "3", "--effort", "0"], ["--devices", "3", "--policy", "round-robin"])

# Two neighbours on each side along both axes, and beyond the border 0.
WAVE = r"""
#include <gantry/kernel.h>
static double at(const gantry_arg *x, int64_t i, int64_t j)
{
    if (i < 0 || j < 0 || i >= x->whole[0] || j >= x->whole[1])
        return 0;
    return ((const double *)x->data)[(i - x->axis[0].first) * x->shape[1] + j - x->axis[1].first];
}

gantry_status wave(const gantry_launch *l)
{
    static const double factor[] = { -5. / 2, 4. / 3, -1. / 12 };
    const gantry_arg *u = gantry_launch_arg(l, 0), *before = gantry_launch_arg(l, 1), *next = gantry_launch_arg(l, 2);
    for (int64_t i = 0; i < next->shape[0]; i++)
        for (int64_t j = 0; j < next->shape[1]; j++) {
            int64_t row = next->axis[0].first + i, column = next->axis[1].first + j, k = i * next->shape[1] + j;
            double sum = 2 * factor[0] * at(u, row, column);
            for (int d = 1; d <= 2; d++)
                sum += factor[d] * (at(u, row - d, column) + at(u, row + d, column) + at(u, row, column - d) + at(u, row, column + d));
            ((double *)next->data)[k] = 2 * at(u, row, column) - ((const double *)before->data)[k] + 0.1 * sum;
        }
    return GANTRY_OK;
}
"""


def buffer(dtype, *shape, **more):
    return {"dtype": dtype, "shape": list(shape), **more}


def given(dtype, *shape, **more):
    return buffer(dtype, *shape, **{"class": "input"}, **more)


def each(**index):
    return {"for": {name: count for name, count in index.items()}}


def graph(buffers, nodes, **more):
    return {"gantry": 1, "buffers": buffers, "nodes": nodes, **more}


def wave_in_tiles():
    """Of fourth order in space: tiles of several sizes with a halo of two, two fields that a loop carries."""
    n, m, steps, tiles = 23, 31, 5, [2, 3]
    cut = {"tiles": tiles}
    buffers = {"u": given("f64", n, m, **cut, output=True), "next": buffer("f64", n, m, **cut),
               "before": buffer("f64", n, m, init=0, **cut), "now": buffer("f64", n, m, **cut)}
    step = {"id": "step[i,j]", **each(j=3), "kernel": "wave", "args": {"u": "u[i][j]~2", "before": "before[i][j]", "next": "next[i][j]"}}
    keep = {"id": "keep[i,j]", **each(j=3), "kernel": "copy", "args": {"x": "u[i][j]", "y": "now[i][j]"}}
    arguments = [{"name": name, "access": how, "dtype": "f64"} for name, how in (("u", "read"), ("before", "read"), ("next", "write"))]
    form = graph(buffers, [{"repeat": steps, "carry": {"u": "next", "before": "now"}, "nodes": [{**each(i=2), "nodes": [step, keep]}]}],
                 kernels={"wave": {"host": "wave.c", "args": arguments}})
    start = u = rng.standard_normal((n, m))
    before = np.zeros((n, m))
    for _ in range(steps):
        wide = np.pad(u, 2)
        sums = sum(f * (wide[d:d + n, 2:-2] + wide[2:-2, d:d + m]) for d, f in enumerate((-1 / 12, 4 / 3, -5 / 2, 4 / 3, -1 / 12)))
        u, before = 2 * u - before + 0.1 * sums, u
    return form, {"u": start}, {"u": u}, {"wave.c": WAVE}


def shortest_ways():
    """Floyd and Warshall: of each pivot its row goes to all parts, its column is found by a row of the unit matrix."""
    n, parts = 17, 4
    lengths = rng.integers(1, 100, (n, n)).astype(np.int32)
    lengths[rng.random((n, n)) < 0.6] = 10**6
    np.fill_diagonal(lengths, 0)
    buffers = {"d": given("i32", n, n, split=parts, output=True), "unit": given("i32", n, n), "row": buffer("i32", 1, n),
               "column": buffer("i32", n, 1, split=parts)}
    form = graph(buffers, [{**each(k=n), "nodes": [
        {"id": "row[k]", "copy": {"from": "d{k:k+1}", "to": "row"}},
        {"id": "column[i,k]", **each(i=parts), "reduce": {"c": "sum(d * u, 1)"}, "args": {"d": "d[i]", "u": "unit{k:k+1}", "c": "column[i]"}},
        {"id": "relax[i,k]", **each(i=parts), "map": {"d": "i32(min(d, c + r))"}, "args": {"d": "d[i]", "c": "column[i]", "r": "row"}}]}])
    want = lengths.copy()
    for k in range(n):
        want = np.minimum(want, want[:, k:k + 1] + want[k:k + 1])
    return form, {"d": lengths, "unit": np.eye(n, dtype=np.int32)}, {"d": want}


def metropolis():
    """Steps that are taken or left by a flag, and counted."""
    n = 25
    steps, luck, start = 0.7 * rng.standard_normal((n, 3)), np.log(rng.random(n)), np.array([1.0, -2.0, 0.5])
    buffers = {"steps": given("f64", n, 3), "luck": given("f64", n), "x": given("f64", 3, output=True), "s": buffer("f64", 3), "y": buffer("f64", 3),
               "ex": buffer("f64", 1), "ey": buffer("f64", 1), "taken": buffer("u8", 1), "count": buffer("i64", 1, init=0, output=True)}
    energy = "sum(square(v) * square(v) - 2 * square(v))"
    form = graph(buffers, [{**each(k=n), "nodes": [
        {"id": "step[k]", "copy": {"from": "steps{k:k+1}", "to": "s"}},
        {"id": "there[k]", "map": {"y": "x + s"}, "args": {"x": "x", "s": "s", "y": "y"}},
        {"id": "ex[k]", "reduce": {"e": energy}, "args": {"v": "x", "e": "ex"}},
        {"id": "ey[k]", "reduce": {"e": energy}, "args": {"v": "y", "e": "ey"}},
        {"id": "flag[k]", "map": {"f": "u < a - b"}, "args": {"u": "luck{k:k+1}", "a": "ex", "b": "ey", "f": "taken"}},
        {"id": "take[k]", "when": {"buffer": "taken"}, "copy": {"from": "y", "to": "x"}},
        {"id": "count[k]", "when": {"buffer": "taken"}, "map": {"c": "c + 1"}, "args": {"c": "count"}}]}])
    x, count = start, 0
    for step, u in zip(steps, luck):
        y = x + step
        if u < (x**4 - 2 * x**2).sum() - (y**4 - 2 * y**2).sum():
            x, count = y, count + 1
    assert 0 < count < n
    return form, {"steps": steps, "luck": luck, "x": start}, {"x": x, "count": np.array([count])}


def roots_in_steps():
    """Newton's method until all roots are found, within each step of a loop that carries."""
    n, parts = 17, 2
    cut = {"split": parts}
    buffers = {"x": given("f64", n, **cut, output=True), "next": buffer("f64", n, **cut), "g": buffer("f64", n, init=1, **cut),
               "off": buffer("f64", 1, init=0), "done": buffer("u8", 1, init=0), "sweeps": buffer("i32", 1, init=0, output=True)}
    sweep = [{"id": "clear", "fill": {"to": "off", "value": 0}},
             {"id": "off[i]", **each(i=parts), "reduce": {"d": "max(abs(square(g) - x - 2))"}, "access": {"d": "max"},
              "args": {"g": "g[i]", "x": "x[i]", "d": "off"}},
             {"id": "newton[i]", **each(i=parts), "map": {"g": "0.5 * (g + (x + 2) / g)"}, "args": {"g": "g[i]", "x": "x[i]"}},
             {"id": "count", "map": {"k": "k + 1"}, "args": {"k": "sweeps"}},
             {"id": "test", "map": {"f": "d < 1e-8"}, "args": {"d": "off", "f": "done"}}]
    form = graph(buffers, [{"repeat": 4, "index": "step", "carry": {"x": "next"}, "nodes": [
        {"id": "guess[i]", **each(i=parts), "map": {"g": "x / (s + 1) + 1"}, "args": {"x": "x[i]", "g": "g[i]", "s": "step"}},
        {"repeat": 20, "index": "it", "until": {"buffer": "done", "every": 2}, "nodes": sweep},
        {"id": "next[i]", **each(i=parts), "map": {"n": "g * 1.5"}, "args": {"g": "g[i]", "n": "next[i]"}}]}])
    start = x = rng.random(n) + 1
    sweeps = 0
    for step in range(4):
        g = x / (step + 1) + 1
        for it in range(20):
            off = np.abs(g * g - x - 2).max()
            g, sweeps = 0.5 * (g + (x + 2) / g), sweeps + 1
            if it % 2 and off < 1e-8:
                break
        x = g * 1.5
    return form, {"x": start}, {"x": x, "sweeps": np.array([sweeps], np.int32)}


def chunks_of_several_sizes():
    """Collectives of whole numbers over three ranks whose chunks differ, with other roots than 0."""
    p, n = 3, 11
    x, m, w = rng.integers(-5, 6, n), rng.integers(1, 4, (p, 6)), rng.integers(-9, 9, (p, n))
    cut = {"split": p}
    buffers = {"x": given("i64", n), "s": buffer("i64", n, **cut), "g": buffer("i64", n, output=True), "m": given("i64", 6 * p, **cut, output=True),
               "w": given("i64", p * n, **cut)}
    buffers |= {name: buffer("i64", size, **cut, output=True) for name, size in (("swapped", 6 * p), ("most", n), ("all", p * n), ("copies", p * n))}

    def ranks(name):
        return [{"for": {"i": p}, "ref": f"{name}[i]"}]

    form = graph(buffers, [
        {"id": "deal", "collective": "scatter", "in": ["x"], "out": ranks("s"), "root": 1},
        {"id": "double[i]", **each(i=p), "map": {"s": "i64(s * 2 + i)"}, "args": {"s": "s[i]", "i": "i"}},
        {"id": "join", "collective": "gather", "in": ranks("s"), "out": ["g"], "root": 2},
        {"id": "swap", "collective": "all_to_all", "in": ranks("m"), "out": ranks("swapped")},
        {"id": "product", "collective": "all_reduce", "op": "prod", "in": ranks("m"), "out": ranks("m")},
        {"id": "most", "collective": "reduce_scatter", "op": "max", "in": ranks("w"), "out": ranks("most")},
        {"id": "all", "collective": "all_gather", "in": ranks("most"), "out": ranks("all")},
        {"id": "copies", "collective": "broadcast", "in": ["g"], "out": ranks("copies")}])
    g = np.concatenate([2 * part + i for i, part in enumerate(np.split(x, [n // p, 2 * n // p]))])
    return form, {"x": x, "m": m.ravel(), "w": w.ravel()}, {
        "g": g, "swapped": m.reshape(p, p, 2).swapaxes(0, 1).ravel(), "m": np.tile(m.prod(0), p), "most": w.max(0), "all": np.tile(w.max(0), p),
        "copies": np.tile(g, p)}


def graphs_within_graphs():
    """Three files within one another: parts and rows that are handed on, a loop inside, a use by a flag."""
    n = 13
    inner = graph({"x": buffer("f64", "m", init=1), "y": buffer("f64", "m", output=True), "t": buffer("f64", "m")},
                  [{"id": "square", "map": {"t": "x * x + k"}, "args": {"x": "x", "t": "t", "k": "k"}},
                   {"id": "root", "map": {"y": "sqrt(t)"}, "args": {"t": "t", "y": "y"}}], params={"m": 4, "k": 2})
    middle = graph({"a": buffer("f64", "m", init=1), "b": buffer("f64", "m", output=True), "flag": buffer("u8", 1, init=1)},
                   [{"repeat": 3, "nodes": [{"id": "in", "use": "inner.json", "with": {"x": "a", "y": "b", "m": "m", "k": "k + 1"}},
                                            {"id": "back", "copy": {"from": "b", "to": "a"}}]},
                    {"id": "more", "use": "inner.json", "when": {"buffer": "flag"}, "with": {"x": "a", "y": "b", "m": "m", "k": 10}}],
                   params={"m": 4, "k": 0})
    outer = graph({"u": buffer("f64", "m", split=3, init=1), "v": buffer("f64", "m", split=3, output=True), "flags": buffer("u8", 3, init=1)},
                  [{"id": "part[i]", **each(i=3), "use": "middle.json",
                    "with": {"a": "u[i]", "b": "v[i]", "m": "(i + 1) * m // 3 - i * m // 3", "k": "i", "flag": "flags{i:i+1}"}}], params={"m": n})
    form = graph({"u": given("f64", n, split=3, output=True), "v": buffer("f64", n, split=3, output=True), "flags": given("u8", 3)},
                 [{"id": "all[r]", **each(r=2), "use": "outer.json", "with": {"u": "u", "v": "v", "flags": "flags", "m": n}}])
    start, flags = rng.random(n), np.array([1, 0, 1], np.uint8)
    u, v = start.copy(), np.zeros(n)
    for i in [0, 1, 2] * 2:
        part = slice(i * n // 3, (i + 1) * n // 3)
        u[part] = v[part] = np.sqrt(u[part]**2 + 3 * (i + 1))
        if flags[i]:
            v[part] = np.sqrt(u[part]**2 + 10)
    files = {f"{name}.json": json.dumps(file) for name, file in (("inner", inner), ("middle", middle), ("outer", outer))}
    return form, {"u": start, "flags": flags}, {"u": u, "v": v}, files


def largest_numbers():
    """Of u64, beyond 2^63: sums wrap, and order is without sign."""
    n, parts, most = 7, 3, 2**64 - 1
    x = rng.integers(0, most, n, dtype=np.uint64, endpoint=True)
    buffers = {"x": given("u64", n, split=parts), "y": buffer("u64", n, split=parts, init=str(most), output=True),
               "sum": buffer("u64", 1, init=0, output=True), "top": buffer("u64", 1, output=True), "sorted": buffer("u64", n, output=True)}
    form = graph(buffers, [{**each(i=parts), "nodes": [
        {"id": "add[i]", "kernel": "axpby", "args": {"a": str(most), "x": "x[i]", "b": 1, "y": "y[i]"}},
        {"id": "sum[i]", "kernel": "reduce_sum", "args": {"x": "y[i]", "out": "sum"}},
        {"id": "top[i]", "kernel": "reduce_max", "args": {"x": "y[i]", "out": "top"}}]},
        {"id": "sort", "kernel": "sort", "args": {"x": "y", "y": "sorted"}}])
    y = np.uint64(most) - x  # most times x is -x
    return form, {"x": x}, {"y": y, "sum": np.array([y.sum()]), "top": np.array([y.max()]), "sorted": np.sort(y)}


def newton_in_time():
    """u' = -u^3 by implicit steps: Newton's method in each until a norm that all parts agree on is small; it carries its guess, and steps carry what it ends with."""
    n, p, steps, most = 12, 4, 5, 9
    ranks = lambda name: [{"for": {"i": p}, "ref": f"{name}[i]"}]
    buffers = {"u": given("f64", n, split=p, output=True), "count": buffer("i32", 1, init=0, output=True), "done": buffer("u8", 1)}
    buffers |= {name: buffer("f64", n, split=p) for name in ("guess", "next")} | {name: buffer("f64", p, split=p) for name in ("off", "norm")}
    newton = [{**each(i=p), "nodes": [
        {"id": "newton[i]", "map": {"y": "g - (g + dt * g * g * g - u) / (1 + 3 * dt * g * g)"},
         "args": {"g": "guess[i]", "u": "u[i]", "dt": "0.3 * (step + 1)", "y": "next[i]"}},
        {"id": "off[i]", "reduce": {"r": "sum(square(y - g))"}, "args": {"y": "next[i]", "g": "guess[i]", "r": "off[i]"}}]},
        {"id": "norm", "collective": "all_reduce", "op": "sum", "in": ranks("off"), "out": ranks("norm")},
        {"id": "count", "map": {"c": "c + 1"}, "args": {"c": "count"}},
        {"id": "done", "map": {"d": "s < 1e-9"}, "args": {"d": "done", "s": "norm[0]"}}]
    form = graph(buffers, [
        {"id": "first[i]", **each(i=p), "copy": {"from": "u[i]", "to": "guess[i]"}},
        {"repeat": steps, "index": "step", "carry": {"u": "next"}, "nodes": [
            {"repeat": most, "carry": {"guess": "next"}, "until": {"buffer": "done"}, "nodes": newton}]}])
    start = rng.random(n) * 3
    u, guess, count = start, start, 0
    for step in range(steps):
        for _ in range(most):
            dt, before = 0.3 * (step + 1), guess
            guess = before - (before + dt * before**3 - u) / (1 + 3 * dt * before**2)
            count += 1
            if np.sum((guess - before)**2) < 1e-9:
                break
        u = guess
    assert steps < count < steps * most
    return form, {"u": start}, {"u": u, "count": np.array([count], np.int32)}


def steps_that_overflow():
    """Steps of a descent: gradients of parts are summed up over all in a block that runs where none of them overflowed, in place and into another buffer."""
    n, p, steps = 6, 3, 5
    ranks = lambda name: [{"for": {"i": p}, "ref": f"{name}[i]"}]
    buffers = {"x": given("f64", p * n, split=p), "w": buffer("f64", p * n, split=p, init=0.5, output=True), "fine": buffer("u8", 1),
               "scale": buffer("f64", 1, init=1e306, output=True), "total": buffer("f64", p * n, split=p, init=7, output=True)}
    buffers |= {name: buffer("f64", p * n, split=p) for name in ("g", "mean")}
    loop = [{"id": "g[i]", **each(i=p), "map": {"g": "2 * x * scale"}, "args": {"x": "x[i]", "scale": "scale", "g": "g[i]"}},
            {"id": "fine", "reduce": {"ok": "all(g - g == 0)"}, "args": {"g": "g", "ok": "fine"}},
            {"id": "smaller", "map": {"s": "select(ok == 0, s / 1e3, s)"}, "args": {"s": "scale", "ok": "fine"}},
            {"when": {"buffer": "fine"}, "nodes": [
                {"id": "half[i]", **each(i=p), "map": {"t": "g / scale / 2"}, "args": {"t": "total[i]", "g": "g[i]", "scale": "scale"}},
                {"id": "total", "collective": "all_reduce", "op": "sum", "in": ranks("total"), "out": ranks("total")},
                {"id": "mean", "collective": "all_reduce", "op": "max", "in": ranks("total"), "out": ranks("mean")},
                {"id": "step[i]", **each(i=p), "map": {"w": "w - 0.01 * m"}, "args": {"w": "w[i]", "m": "mean[i]"}}]}]
    x = rng.random((p, n)) * 400
    w, scale, total, taken = np.full(p * n, 0.5), 1e306, np.full(p * n, 7.0), 0
    form = graph(buffers, [{"repeat": steps, "nodes": loop}])
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(steps):
            g = 2 * x * scale
            if not np.isfinite(g).all():
                scale /= 1e3
                continue
            total, taken = np.tile((g / scale / 2).sum(0), p), taken + 1
            w = w - 0.01 * total
    assert 0 < taken < steps
    return form, {"x": x.ravel()}, {"w": w, "scale": np.array([scale]), "total": total}


CASES = (wave_in_tiles, shortest_ways, metropolis, roots_in_steps, newton_in_time, steps_that_overflow, chunks_of_several_sizes, graphs_within_graphs,
         largest_numbers)


def check(command, case, arguments):
    form, inputs, want, *files = case()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for file, text in {"graph.json": json.dumps(form), **(files[0] if files else {})}.items():
            (folder / file).write_text(text)
        words = ["run", folder / "graph.json", "--allow-code", "--quiet", *arguments]
        for buffer_name, array in inputs.items():
            np.save(folder / f"in-{buffer_name}.npy", array)
            words += ["--input", f"{buffer_name}={folder}/in-{buffer_name}.npy"]
        for buffer_name in want:
            words += ["--output", f"{buffer_name}={folder}/out-{buffer_name}.npy"]
        gantry(command, *words)
        for buffer_name, array in want.items():
            got = np.load(folder / f"out-{buffer_name}.npy")
            exact = array.dtype.kind != "f"
            np.testing.assert_allclose(got, array, rtol=0 if exact else 1e-9, atol=0 if exact else 1e-9 * np.abs(array).max(),
                                       err_msg=f"{case.__name__}: {buffer_name}, {' '.join(arguments)}")


def main(command):
    for case in CASES:
        for arguments in WAYS:
            check(command, case, arguments)
    print(f"{len(CASES)} graphs in {len(WAYS)} ways")


main(sys.argv[1])
