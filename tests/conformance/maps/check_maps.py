# SPDX-License-Identifier: Apache-2.0
"""Map nodes against NumPy: random formulas over all dtypes, bit for bit, and functions of a library to some units in the last place.

check_maps.py GANTRY [SEED]
"""
import itertools
import pathlib
import random
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from numpy_gantry import DTYPES, from_bf16, np, run, to_bf16  # noqa: E402

from formulas import COMPUTED, INEXACT, INTEGERS, RANK_OF, Generator, cast, round_bf16  # noqa: E402

SIZES = [1, 255, 256, 257, 1000]


def inputs(rng, n):
    """name -> (dtype, the file's array, the values)."""
    made = {}
    for dtype in RANK_OF:
        for name, size in ((f"x_{dtype}", n), (f"one_{dtype}", 1)):
            if dtype in INTEGERS:
                info = np.iinfo(INTEGERS[dtype])
                low, high = max(info.min, -1000), min(info.max, 1000)
                array = values = rng.integers(low, high + 1, size).astype(INTEGERS[dtype])
            else:
                x = rng.uniform(-8, 8, size).astype(np.float32)
                x[rng.random(size) < 0.02] = np.inf
                x[rng.random(size) < 0.02] = 0
                array, values = x.astype(DTYPES.get(dtype, np.float32)), x.astype(DTYPES.get(dtype, np.float32))
                if dtype == "bf16":
                    array, values = ("bf16", to_bf16(x)), round_bf16(x)
            made[name] = (dtype, array, values)
    return made


def stored(dtype, value):
    """What a buffer holds of a value; None where the formula is refused."""
    rank, x = value
    if dtype in INTEGERS:
        return x.astype(INTEGERS[dtype]) if x.dtype == np.int64 else None
    return cast(dtype, (rank, x))[1].astype(DTYPES.get(dtype, np.float32))


def differ(want, got):
    want = np.broadcast_to(want, got.shape)
    return not np.array_equal(want, got, equal_nan=want.dtype.kind == "f")


def check_random(command, seed):
    draw, rng, n = random.Random(seed), np.random.default_rng(seed), SIZES[seed % len(SIZES)]
    arrays = inputs(rng, n)
    numbers = {"s": draw.choice([0.5, -2, 3, 0.1]), "t": 7}
    names = {name: (RANK_OF[dtype], values.astype(COMPUTED[RANK_OF[dtype]])) for name, (dtype, _, values) in arrays.items()}
    names.update({name: ("real number", np.float64(x)) for name, x in numbers.items()})
    buffers = {name: {"dtype": dtype, "shape": [1 if name.startswith("one") else n], "class": "input"} for name, (dtype, _, _) in arrays.items()}
    nodes, want, outputs = [], {}, {}
    while len(nodes) < 24:
        text, value = Generator(draw, names).formula(draw.randrange(1, 6))
        dtype = draw.choice(list(RANK_OF))
        expected = stored(dtype, value)
        if expected is None:
            continue
        name = f"y{len(nodes)}"
        buffers[name] = {"dtype": dtype, "shape": [n], "output": True}
        # An argument has the name of its buffer, or another one.
        used = {one for one in names if f" {one} " in "".join(c if c.isalnum() or c == "_" else " " for c in f" {text} ")}
        args = {one: numbers.get(one, one) for one in used}
        nodes.append({"id": name, "map": {"y": text}, "args": {**args, "y": name}})
        want[name], outputs[name] = (text, expected), (dtype, (n,))
    graph = {"gantry": 1, "name": "maps", "buffers": buffers, "nodes": nodes}
    got, _ = run(command, graph, {name: array for name, (_, array, _) in arrays.items()}, outputs, ["--devices", str(1 + seed % 2)])
    for name, (text, expected) in want.items():
        found = from_bf16(got[name]) if outputs[name][0] == "bf16" else got[name]
        if differ(expected, found):
            where = int(np.argmax(~((expected == found) | ((expected != expected) & (found != found)))))
            raise SystemExit(f"seed {seed}: {outputs[name][0]} = {text}: element {where} is {found[where]!r}, by NumPy "
                             f"{np.broadcast_to(expected, found.shape)[where]!r}")
    return len(nodes)


def check_functions(command):
    """Functions whose last bits no standard says."""
    n = 2000
    rng = np.random.default_rng(5)
    for dtype, ulps in (("f32", 2), ("f64", 2)):
        kind = DTYPES[dtype]
        x = rng.uniform(0.01, 5, n).astype(kind)
        nodes = [{"id": name, "map": {"y": f"{name}(x)"}, "args": {"x": "x", "y": name}} for name in INEXACT]
        nodes.append({"id": "pow", "map": {"y": "pow(x, 1.5)"}, "args": {"x": "x", "y": "pow"}})
        want = {name: np.array([f(v) for v in x.astype(float)]) for name, f in INEXACT.items()}
        want["pow"] = x.astype(float) ** 1.5
        buffers = {name: {"dtype": dtype, "shape": [n], "output": True} for name in want}
        buffers["x"] = {"dtype": dtype, "shape": [n], "class": "input"}
        got, _ = run(command, {"gantry": 1, "buffers": buffers, "nodes": nodes}, {"x": x}, dict.fromkeys(want), ["--devices", "1"])
        for name, expected in want.items():
            wrong = np.abs(got[name] - expected) > ulps * np.spacing(np.abs(expected).astype(kind))
            if wrong.any():
                raise SystemExit(f"{name} of {dtype}: {got[name][wrong][0]!r}, by math.{name} {expected[wrong][0]!r}")


def in_order(join, identity, values):
    """The order of "Reduce nodes" in docs/graph-format.md, for elements that lie side by side."""
    totals = []
    for first in range(0, len(values), 8192):
        lanes, segment = np.full(256, identity), values[first:first + 8192]
        for at in range(0, len(segment), 256):
            chunk = segment[at:at + 256]
            lanes[:len(chunk)] = join(lanes[:len(chunk)], chunk)
        while len(lanes) > 1:
            lanes = join(lanes[:len(lanes) // 2], lanes[len(lanes) // 2:])
        totals.append(lanes[0])
    return neighbours(join, totals)


def neighbours(join, totals):
    while len(totals) > 1:
        totals = [join(*totals[i:i + 2]) if i + 1 < len(totals) else totals[i] for i in range(0, len(totals), 2)]
    return totals[0]


def sum_of(values, axes):
    """values.sum over some axes, in the stated order: that of the reduced axes, among which kept ones may lie."""
    axes = sorted(axes)
    behind = range(axes[-1] + 1, values.ndim) if axes else range(values.ndim)
    before = [i for i in range(values.ndim) if i not in axes and i not in behind]
    moved = values.transpose([*before, *axes, *behind])
    outer = int(np.prod([values.shape[i] for i in before]))
    mid = int(np.prod([values.shape[i] for i in axes]))
    cube, kept = moved.reshape(outer, mid, -1), [values.shape[i] for i in (*before, *behind)]
    if cube.shape[2] == 1:
        return np.array([in_order(np.add, 0.0, row[:, 0]) for row in cube]).reshape(kept)
    totals = []
    for at in range(0, max(mid, 1), 128):
        lanes = np.zeros((8, outer, cube.shape[2]))
        for row in range(at, min(at + 128, mid)):
            lanes[row % 8] += cube[:, row]
        while len(lanes) > 1:
            lanes = lanes[:len(lanes) // 2] + lanes[len(lanes) // 2:]
        totals.append(lanes[0])
    return neighbours(np.add, totals).reshape(kept)


def check_broadcasting(command, seed):
    """Random shapes: a map whose regions have one element along some axes, and every reduction over some axes, by NumPy."""
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    shape = [draw.choice([1, 2, 3, 7, 40]) for _ in range(draw.randrange(1, 5))]
    if draw.random() < 0.3:
        shape[draw.randrange(len(shape))] = draw.choice([300, 1000])
    x = rng.integers(-9, 10, shape).astype(np.float32) / np.float32(8)
    x = x * np.float32(1.1)
    if draw.random() < 0.3:
        x[tuple(draw.randrange(n) for n in shape)] = np.nan
    first = draw.randrange(len(shape))
    last = draw.randrange(first, len(shape)) + 1
    low = [1 if first <= i < last else n for i, n in enumerate(shape)]
    low = low[draw.randrange(first, last) if first == 0 and last < len(shape) and draw.random() < 0.5 else 0:]
    b = rng.normal(0, 1, low).astype(np.float64)
    want, nodes, files, buffers = {}, [], {"x": x, "b": b}, {}
    parts = draw.choice([1, 2, 5])
    buffers["x"] = {"dtype": "f32", "shape": shape, "class": "input", "split": parts}
    buffers["b"] = {"dtype": "f64", "shape": low, "class": "input"}
    buffers["y"] = {"dtype": "f64", "shape": shape, "output": True, "split": parts}
    by_parts = len(low) < len(shape) or low[0] == 1
    each = {"for": {"i": parts}} if by_parts else {}
    nodes.append({"id": "map[i]" if by_parts else "map", **each, "map": {"y": "x * b + 1"},
                  "args": {"x": "x[i]" if by_parts else "x", "y": "y[i]" if by_parts else "y", "b": "b"}})
    want["y"] = x * b + 1
    axis = draw.randrange(len(shape))
    kept = shape[:axis] + shape[axis + 1:]
    texts = {"sum": "sum(x * x, A)", "mean": "mean(x, A)", "least": "min(x, A)", "most": "max(x, A)", "any": "any(x > 1, A)",
             "all": "all(x, A)", "where": "argmax(x, A)", "where_least": "argmin(x, A)", "count": "sum(x > 0, A)"}
    dtypes = {"sum": "f64", "mean": "f64", "least": "f32", "most": "f32", "any": "u8", "all": "i32", "where": "i64", "where_least": "i32", "count": "i64"}
    square = (x * x).astype(float)
    found = {"sum": sum_of(square, [axis]), "mean": sum_of(x.astype(float), [axis]) / shape[axis], "least": x.min(axis),
             "most": x.max(axis), "any": (x > 1).any(axis), "all": (x != 0).all(axis), "where": x.argmax(axis), "where_least": x.argmin(axis),
             "count": (x > 0).sum(axis)}
    named = draw.sample(list(texts), 4)
    for name in named:
        with_one = draw.random() < 0.5 or not kept
        buffers[name] = {"dtype": dtypes[name], "shape": shape[:axis] + [1] + shape[axis + 1:] if with_one else kept, "output": True}
        want[name] = found[name].reshape(buffers[name]["shape"])
    written = draw.choice([axis, axis - len(shape)])
    nodes.append({"id": "axis", "reduce": {name: texts[name].replace("A", str(written)) for name in named},
                  "args": {"x": "x", **{name: name for name in named}}})
    # The reverse of broadcasting: the shape of the result says which axes are reduced.
    buffers["back"] = {"dtype": "f64", "shape": low, "output": True, "init": 2}
    nodes.append({"id": "back", "reduce": {"back": "sum(x * x)"}, "args": {"x": "x", "back": "back"}, "access": {"back": "sum"}})
    whole = [i for i in range(len(shape)) if i < len(shape) - len(low) or (low[i - len(shape)] == 1 and shape[i] != 1)]
    want["back"] = 2 + (sum_of(square, whole).reshape(low) if whole else square.reshape(low))
    graph = {"gantry": 1, "name": "broadcast", "buffers": buffers, "nodes": nodes}
    got, _ = run(command, graph, files, dict.fromkeys(want), ["--devices", str(1 + seed % 2)])
    for name, expected in want.items():
        if differ(expected, got[name].reshape(expected.shape)):
            raise SystemExit(f"seed {seed}, x {shape}, b {low}, axis {written}: {name} is\n{got[name]}, by NumPy\n{expected}")


def ways(shape):
    """Every shape that NumPy broadcasts to this one, with axes of extent 1 or, before all others, none."""
    for kept in itertools.product([False, True], repeat=len(shape)):
        low = [n if keeps else 1 for n, keeps in zip(shape, kept)]
        for first in range(len(shape) if not any(kept) else kept.index(True) + 1):
            yield low[first:]


def values_of(rng, dtype, shape):
    """The file's array, and the values; small enough that all dtypes hold them."""
    x = rng.integers(0 if dtype == "u8" else -90, 90, shape)
    x = x if dtype in INTEGERS else x / 8
    if dtype == "bf16":
        return ("bf16", to_bf16(x.astype(np.float32))), round_bf16(x.astype(np.float32))
    return (x.astype({**DTYPES, **INTEGERS}[dtype]),) * 2


def check_patterns(command, seed):
    """Two regions along any axes of up to four, in all pairs of some; of whole arrays and of parts, by maps and by what reductions read."""
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    dtypes = ["f32", "f64", "bf16", "i32", "u8", "f16"]
    shape = [[7], [4, 5], [4, 3, 5], [4, 3, 2, 5], [4, 1, 3, 2], [2, 3, 40, 30], [4, 257, 3, 2]][seed % 7]
    parts = draw.choice([1, 2, 4] if shape[0] == 4 else [1, 2] if shape[0] == 2 else [1])
    buffers = {"x": {"dtype": "f32", "shape": shape, "class": "input", "split": parts}}
    files, nodes, want = {"x": rng.integers(-99, 99, shape).astype(np.float32)}, [], {}
    x = files["x"].astype(float)
    axis = draw.randrange(len(shape))
    kept = shape[:axis] + [1] + shape[axis + 1:]
    for k, low in enumerate(ways(shape)):
        other, dtype = draw.choice(list(ways(shape))), draw.choice(dtypes)
        for name, one in ((f"b{k}", low), (f"c{k}", other)):
            file, values = values_of(rng, dtype, one)
            files[name], buffers[name] = file, {"dtype": dtype, "shape": one, "class": "input"}
            if len(one) == len(shape) and one[0] == shape[0]:
                buffers[name]["split"] = parts
            b, c = (values, None) if name[0] == "b" else (b, values)
        b, c = b.astype(float), c.astype(float)
        buffers[f"y{k}"] = {"dtype": "f64", "shape": shape, "output": True, "split": parts}
        buffers[f"s{k}"] = {"dtype": "f64", "shape": kept, "output": True, **({"split": parts} if axis else {})}
        want[f"y{k}"] = x * b + c
        want[f"s{k}"] = (x * b - c).sum(axis, keepdims=True) if axis else 1 + (x * b - c).sum(0, keepdims=True)  # Of small numbers: exact.
        buffers[f"s{k}"] |= {} if axis else {"init": 1}
        rows = {name: f"{name}[i]" if "split" in buffers[name] else name for name in ("x", f"b{k}", f"c{k}", f"y{k}", f"s{k}")}
        read = {"x": rows["x"], "b": rows[f"b{k}"], "c": rows[f"c{k}"]}
        nodes.append({"id": f"map{k}[i]", "for": {"i": parts}, "map": {"y": "f64(x) * f64(b) + f64(c)"}, "args": {**read, "y": rows[f"y{k}"]}})
        nodes.append({"id": f"sum{k}[i]", "for": {"i": parts}, "reduce": {"s": f"sum(f64(x) * f64(b) - f64(c), {axis})"},
                      "args": {**read, "s": rows[f"s{k}"]}, **({} if axis else {"access": {"s": "sum"}})})
    got, _ = run(command, {"gantry": 1, "name": "patterns", "buffers": buffers, "nodes": nodes}, files, dict.fromkeys(want), ["--devices", str(1 + seed % 2)])
    for name, expected in want.items():
        if differ(expected, got[name]):
            raise SystemExit(f"seed {seed}, x {shape} in {parts}: {name} with b {buffers['b' + name[1:]]}, c {buffers['c' + name[1:]]} is\n{got[name]}, by NumPy\n{expected}")
    return len(nodes)


REDUCTIONS = {"sum": "f64", "mean": "f64", "min": "f32", "max": "f32", "any": "u8", "all": "i32", "argmax": "i64", "argmin": "i32"}


def reduced(name, x, axes):
    """What a reduction gives along some axes, all of them at once as NumPy takes one axis."""
    if name in ("sum", "mean"):
        return sum_of(x.astype(float), axes) / (np.prod([x.shape[i] for i in axes]) if name == "mean" else 1)
    kept = [i for i in range(x.ndim) if i not in axes]
    rows = x.transpose([*kept, *axes]).reshape([x.shape[i] for i in kept] + [-1])
    rows = rows > 1 if name == "any" else rows != 0 if name == "all" else rows
    return getattr(rows, name)(-1)


def check_apart(command, seed):
    """Axes that kept ones lie between, named in any order or said by the result's shape; of whole arrays and of parts, which add to one
    result; beside what is stored, of a broadcast operand, and of a result that its formula reads."""
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    rank = draw.randrange(3, 6)
    axes = sorted(draw.sample(range(rank), draw.randrange(2, rank)))
    if axes == list(range(axes[0], axes[-1] + 1)):
        axes = [0, 2]
    shape = [draw.choice([1, 2, 3, 7]) for _ in range(rank)]
    shape[draw.choice(axes)] = draw.choice([1, 40, 300]) if seed % 8 else 9000
    x = (rng.integers(-9, 10, shape) / np.float32(8) * np.float32(1.1)).astype(np.float32)
    ones = [1 if i in axes else n for i, n in enumerate(shape)]
    low = [1 if draw.random() < 0.5 else n for n in shape]
    b = rng.normal(0, 1, low)
    kept = [n for i, n in enumerate(shape) if i not in axes] or [1]
    shapes = [ones, kept, [1, *ones], [1, 1, *kept]]
    order = draw.sample(axes, len(axes))
    words = ", ".join(str(draw.choice([i, i - rank])) for i in order)
    names = draw.sample(list(REDUCTIONS), 3)
    buffers = {"x": {"dtype": "f32", "shape": shape, "class": "input"}, "b": {"dtype": "f64", "shape": low, "class": "input"}}
    want = {}
    for name in names:
        buffers[f"r_{name}"] = {"dtype": REDUCTIONS[name], "shape": draw.choice(shapes), "output": True}
        want[f"r_{name}"] = reduced(name, x, axes)
    nodes = [{"id": "axes", "reduce": {f"r_{name}": f"{name}({'x > 1' if name == 'any' else 'x'}, {words})" for name in names},
              "args": {"x": "x", **{f"r_{name}": f"r_{name}" for name in names}}}]
    buffers["joint"] = {"dtype": "f64", "shape": draw.choice(shapes), "output": True}
    buffers["beside"] = {"dtype": "f64", "shape": shape, "output": True}
    nodes.append({"id": "joint", "reduce": {"joint": f"sum(f64(x) * b, {words})", "beside": "f64(x) * b"},
                  "args": {"x": "x", "b": "b", "joint": "joint", "beside": "beside"}})
    want["beside"] = x * b
    want["joint"] = sum_of(want["beside"], axes)
    buffers["shape"] = {"dtype": "f64", "shape": ones, "output": True, "init": 2}
    nodes.append({"id": "shape", "reduce": {"y": "sum(f64(x) - y)"}, "args": {"x": "x", "y": "shape"}})
    runs = [i for i, n in enumerate(ones) if n == 1 and shape[i] != 1]  # What the shape says: axes of one element are reduced or not.
    want["shape"] = sum_of(x.astype(float) - 2, runs) if runs else None
    if not runs:
        del buffers["shape"], want["shape"], nodes[-1]
    if 0 in axes and shape[0] > 1:
        buffers["x"]["split"] = 2
        buffers["added"] = {"dtype": "i64", "shape": kept, "output": True, "init": 5}
        nodes.append({"id": "part[i]", "for": {"i": 2}, "reduce": {"s": f"sum(i32(x * 8), {words})"}, "args": {"x": "x[i]", "s": "added"},
                      "access": {"s": "sum"}})
        want["added"] = 5 + np.trunc(x * np.float32(8)).astype(np.int64).sum(tuple(axes))
    graph = {"gantry": 1, "name": "apart", "buffers": buffers, "nodes": nodes}
    got, _ = run(command, graph, {"x": x, "b": b}, dict.fromkeys(want), ["--devices", str(1 + seed % 2)])
    for name, expected in want.items():
        if differ(expected.reshape(got[name].shape), got[name]):
            raise SystemExit(f"seed {seed}, x {shape}, axes {words}, b {low}: {name} is\n{got[name]}, by NumPy\n{expected}")


def check_together(command, seed):
    """Reductions of regions that are broadcast to a shape that none of them has, by NumPy."""
    draw, rng = random.Random(seed), np.random.default_rng(seed)
    shape = [draw.choice([2, 3, 7, 40]) for _ in range(draw.randrange(2, 5))]
    if draw.random() < 0.3:
        shape[draw.randrange(len(shape))] = draw.choice([300, 1000])
    lacking = draw.sample(range(len(shape)), 2)
    low = [[1 if i == axis else n for i, n in enumerate(shape)] for axis in lacking]
    low = [one[1:] if one[0] == 1 and draw.random() < 0.5 else one for one in low]
    x = rng.normal(0, 1, low[0]).astype(np.float32)
    b, c = rng.normal(0, 1, low[1]), rng.normal(0, 1, [1] * draw.randrange(1, 3))
    parts = draw.choice([1, 2])
    buffers = {"x": {"dtype": "f32", "shape": low[0], "class": "input"}, "b": {"dtype": "f64", "shape": low[1], "class": "input"},
               "c": {"dtype": "f64", "shape": list(c.shape), "class": "input"}}
    axis = draw.randrange(len(shape))
    values, kept = x * b - c.reshape(()), shape[:axis] + shape[axis + 1:]
    want = {"sum": sum_of(values, [axis]), "where": values.argmax(axis), "least": values.min(axis), "all": sum_of(values, range(len(shape)))}
    for name in ("sum", "where", "least", "all"):
        buffers[name] = {"dtype": "i64" if name == "where" else "f64", "shape": [1] if name == "all" else kept, "output": True}
    nodes = [{"id": "rows", "reduce": {name: f"{kind}(x * b - c, {axis})" for name, kind in (("sum", "sum"), ("where", "argmax"), ("least", "min"))},
              "args": {name: name for name in ("x", "b", "c", "sum", "where", "least")}},
             {"id": "all", "reduce": {"all": "sum(x * b - c)"}, "args": {name: name for name in ("x", "b", "c", "all")}}]
    if len(low[0]) == len(shape) and lacking[0] != 0 and axis != 0 and shape[0] % parts == 0:  # Rows in parts.
        buffers["x"]["split"] = buffers["sum"]["split"] = parts
        split = "b[i]" if len(low[1]) == len(shape) and low[1][0] != 1 else "b"
        if split == "b[i]":
            buffers["b"]["split"] = parts
        nodes.append({"id": "part[i]", "for": {"i": parts}, "reduce": {"s": f"sum(x * b - c, {axis})"},
                      "args": {"x": "x[i]", "b": split, "c": "c", "s": "part[i]"}})
        buffers["part"], want["part"] = {**buffers["sum"]}, want["sum"]
    got, _ = run(command, {"gantry": 1, "name": "together", "buffers": buffers, "nodes": nodes}, {"x": x, "b": b, "c": c}, dict.fromkeys(want),
                 ["--devices", str(1 + seed % 2)])
    for name, expected in want.items():
        if differ(expected, got[name].reshape(expected.shape)):
            raise SystemExit(f"seed {seed}, x {low[0]}, b {low[1]}, axis {axis}: {name} is\n{got[name]}, by NumPy\n{expected}")


def check_whole_into_real(command):
    """What a contribution finds keeps its fraction and its range, though what is added be whole."""
    held = {"most": 0.5, "least": -5.5, "total": 0.5, "wide": 1e300, "any": 0.25, "all": 1.75, "half": 0.5}
    texts = {"most": "max(k)", "least": "min(k)", "total": "sum(k)", "wide": "sum(k)", "any": "any(k)", "all": "all(k)", "half": "sum(k > -9)"}
    accesses = {"most": "max", "least": "min", "any": "max", "all": "min"}
    k = np.array([-3, -3, -4, -3, -3], np.int32)
    want = {"most": 0.5, "least": -5.5, "total": -15.5, "wide": 1e300, "any": 1, "all": 1, "half": 5.5}
    buffers = {name: {"dtype": "f16" if name == "half" else "f64" if name == "wide" else "f32", "shape": [1], "init": value, "output": True}
               for name, value in held.items()}
    buffers["k"] = {"dtype": "i32", "shape": [5], "class": "input", "split": 2}
    nodes = [{"id": f"{name}[i]", "for": {"i": 2}, "reduce": {"y": text}, "args": {"k": "k[i]", "y": name}, "access": {"y": accesses.get(name, "sum")}}
             for name, text in texts.items()]
    for options in (["--devices", "1"], ["--devices", "2", "--policy", "round-robin", "--check"]):
        got, _ = run(command, {"gantry": 1, "buffers": buffers, "nodes": nodes}, {"k": k}, dict.fromkeys(want), options)
        for name, expected in want.items():
            if got[name][0] != expected:
                raise SystemExit(f"{name} holds {held[name]}, {texts[name]} of {k} added to it gives {got[name][0]!r}, by hand {expected}")


def check_reductions(command, seed):
    rng = np.random.default_rng(seed)
    for n in (1, 255, 1000, 65536, 200003):
        x, k = rng.normal(0, 1, n).astype(np.float32), rng.integers(-100, 100, n).astype(np.int32)
        square, whole = (x - np.float32(0.25)) ** 2, k.astype(np.int64) * 3
        texts = {"s": "sum(square(x - 0.25))", "m": "mean(square(x - 0.25))", "low": "min(x)", "k_sum": "sum(k * 3)",
                 "k_high": "max(k * 3)", "k_mean": "mean(k)", "mixed": "sum(k * x)"}
        dtypes = {"s": "f64", "m": "f64", "low": "f32", "k_sum": "i64", "k_high": "i32", "k_mean": "f64", "mixed": "f32"}
        total = in_order(np.add, 0.0, square.astype(float))
        want = {"s": total, "m": total / n, "low": x.min(), "k_sum": whole.sum(), "k_high": whole.max(),
                "k_mean": in_order(np.add, 0.0, k.astype(float)) / n,
                "mixed": np.float32(in_order(np.add, 0.0, k.astype(float) * x.astype(float)))}
        buffers = {name: {"dtype": dtype, "shape": [1], "output": True} for name, dtype in dtypes.items()}
        buffers["x"] = {"dtype": "f32", "shape": [n], "class": "input", "split": 3}
        buffers["k"] = {"dtype": "i32", "shape": [n], "class": "input"}
        buffers["parts"] = {"dtype": "i64", "shape": [1], "init": 5, "output": True}
        nodes = [{"id": "all", "reduce": texts, "args": {name: name for name in ["x", "k", *texts]}},
                 {"id": "part[i]", "for": {"i": 3}, "reduce": {"s": "sum(i32(x * 8))"}, "args": {"x": "x[i]", "s": "parts"}, "access": {"s": "sum"}}]
        want["parts"] = 5 + np.trunc(x * np.float32(8)).astype(np.int64).sum()
        got, _ = run(command, {"gantry": 1, "buffers": buffers, "nodes": nodes}, {"x": x, "k": k}, dict.fromkeys(want), ["--devices", "2"])
        for name, expected in want.items():
            if got[name][0] != expected:
                raise SystemExit(f"seed {seed}, {n} elements: {name} = {texts.get(name)} is {got[name][0]!r}, by NumPy {expected!r}")
    bad = np.array([1, np.nan, -3], np.float32)
    buffers = {"x": {"dtype": "f32", "shape": [3], "class": "input"}, "y": {"dtype": "f32", "shape": [1], "output": True}}
    nodes = [{"id": "n", "reduce": {"y": "max(x)"}, "args": {"x": "x", "y": "y"}}]
    got, _ = run(command, {"gantry": 1, "buffers": buffers, "nodes": nodes}, {"x": bad}, {"y": None}, ["--devices", "1"])
    if not np.isnan(got["y"][0]):
        raise SystemExit(f"the max of a NaN and others is {got['y'][0]!r}")


def check_forms(command):
    """In place, several results, parts, tiles, numbers of the iteration."""
    graph = {
        "gantry": 1, "name": "forms", "params": {"n": 1003, "p": 3, "alpha": 0.5},
        "buffers": {
            "x": {"dtype": "f32", "shape": ["n"], "split": "p", "class": "input", "output": True},
            "y": {"dtype": "f32", "shape": ["n"], "split": "p", "output": True},
            "tiles": {"dtype": "f64", "shape": [12, 10], "tiles": [3, 2], "init": {"iota": {}}, "output": True},
        },
        "nodes": [
            {"id": "both[i]", "for": {"i": "p"}, "map": {"y": "x * s", "x": "x + k"},
             "args": {"x": "x[i]", "y": "y[i]", "s": "alpha / 2", "k": "i"}},
            {"for": {"i": 3}, "nodes": [{"id": "tile[i,j]", "for": {"j": 2}, "map": {"a": "-a"}, "args": {"a": "tiles[i][j]"}}]},
            {"repeat": 4, "nodes": [{"id": "step", "map": {"y": "y + it"}, "args": {"y": "y", "it": "it * 2"}}]},
        ],
    }
    x = np.random.default_rng(3).random(1003).astype(np.float32)
    parts = np.repeat(np.arange(3), np.diff([i * 1003 // 3 for i in range(4)])).astype(np.float32)
    y = x * np.float32(0.25)
    for it in range(4):
        y = y + np.float32(2 * it)
    want = {"x": x + parts, "y": y, "tiles": -np.arange(120.0).reshape(12, 10)}
    for devices in (1, 3):
        got, _ = run(command, graph, {"x": x}, dict.fromkeys(want), ["--devices", devices])
        for name, expected in want.items():
            if differ(expected, got[name]):
                raise SystemExit(f"{name} on {devices} devices differs from NumPy's")


def check_loop(command):
    """Square roots by Newton: a loop, not unrolled, that ends when a reduction is small; parts are cut by the scheduler; some are empty."""
    split = {"auto": 2}
    buffers = {name: {"dtype": "f64", "shape": ["n"], "split": split} for name in ("a", "u", "v")}
    buffers["a"]["class"], buffers["u"]["init"], buffers["v"]["output"] = "input", 3, True
    buffers |= {"worst": {"dtype": "f64", "shape": [1]}, "done": {"dtype": "i32", "shape": [1]}}
    nodes = [{"id": "step[i]", "for": {"i": 2}, "map": {"v": "(u + a / u) / 2"}, "args": {"u": "u[i]", "v": "v[i]", "a": "a[i]"}},
             {"id": "look", "reduce": {"worst": "max(abs(square(v) - a))"}, "args": {"v": "v", "a": "a", "worst": "worst"}},
             {"id": "stop", "map": {"done": "w < 1e-12"}, "args": {"w": "worst", "done": "done"}}]
    loop = {"repeat": 1000000, "carry": {"u": "v"}, "until": {"buffer": "done", "every": 2}, "nodes": nodes}
    for n in (1, 1000):
        a = np.random.default_rng(n).uniform(1, 9, n)
        u, steps = np.full(n, 3.0), 0
        while steps % 2 or steps == 0 or np.abs(np.square(u) - a).max() >= 1e-12:
            u, steps = (u + a / u) / 2, steps + 1
        graph = {"gantry": 1, "params": {"n": n}, "buffers": buffers, "nodes": [loop]}
        got, _ = run(command, graph, {"a": a}, {"v": None}, ["--devices", "2"])
        if differ(u, got["v"]):
            raise SystemExit(f"roots of {n} numbers by a loop differ from NumPy's")


def main(command, *seed):
    with np.errstate(all="ignore"):
        formulas = sum(check_random(command, one) for one in (map(int, seed) if seed else range(40)))
    for one in map(int, seed) if seed else range(2):
        check_reductions(command, one)
    for one in map(int, seed) if seed else range(40):
        check_broadcasting(command, one)
        check_together(command, one)
        check_apart(command, one)
    for one in map(int, seed) if seed else range(14):
        check_patterns(command, one)
    check_whole_into_real(command)
    check_functions(command)
    check_forms(command)
    check_loop(command)
    print(f"{formulas} random formulas equal NumPy's")


main(*sys.argv[1:])
