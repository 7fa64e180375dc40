# SPDX-License-Identifier: Apache-2.0
"""What a graph file means, in NumPy: one node after the other, in adding order, on whole arrays. It knows no device, no
schedule and no copy, and was written from docs/graph-format.md. Invalid graphs raise Invalid."""
import copy

import numpy as np

from expression import Bad, evaluate

DTYPES = {"f16": np.float16, "bf16": np.float32, "f32": np.float32, "f64": np.float64, "i8": np.int8, "u8": np.uint8,
          "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64}
REDUCTIONS = ("sum", "min", "max", "prod")


class Invalid(Exception):
    """The graph breaks a rule of the format."""


def part_bound(n, p, i):
    return i * n // p


# ---- random numbers: Philox4x32-10 by element index ----

def philox(seed, index):
    counter = [index & 0xFFFFFFFF, index >> 32, 0, 0]
    key = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [b >> 32 ^ counter[1] ^ key[0], b & 0xFFFFFFFF, a >> 32 ^ counter[3] ^ key[1], a & 0xFFFFFFFF]
        key = [key[0] + 0x9E3779B9 & 0xFFFFFFFF, key[1] + 0xBB67AE85 & 0xFFFFFFFF]
    return counter


def uniform(seed, e, wide):
    """In [0, 1): 32 bits an element, 53 for types of 8 bytes."""
    if not wide:
        return philox(seed, e // 4)[e % 4] * 2.0**-32
    block = philox(seed, e // 2)
    return ((block[2 * (e % 2) + 1] << 32 | block[2 * (e % 2)]) >> 11) * 2.0**-53


# ---- buffers and values ----

class Buffer:
    def __init__(self, name, entry, names):
        self.name, self.dtype = name, entry["dtype"]
        self.np = np.dtype(DTYPES[self.dtype])
        self.shape = [evaluate(s, names) for s in entry["shape"]]
        self.wide = self.np.itemsize == 8
        split = entry.get("split")
        self.auto = isinstance(split, dict)
        self.parts = None if split is None else evaluate(split["auto"] if self.auto else split, names)
        self.tiles = [evaluate(t, names) for t in entry["tiles"]] if "tiles" in entry else None
        self.cls = entry.get("class", "input" if "init" in entry else "temp")
        self.init, self.output = entry.get("init"), entry.get("output", False)
        self.rows = self.tiles[0] * self.tiles[1] if self.tiles else self.shape[0]
        self.names = names
        if self.cls == "temp" and self.init is not None:
            raise Invalid(f"{name} is temp and has an init")

    def tile(self, k):
        i, j = divmod(k, self.tiles[1])
        return tuple(slice(part_bound(n, p, x), part_bound(n, p, x + 1)) for n, p, x in zip(self.shape, self.tiles, (i, j)))

    def contents(self, what, given=None):
        """What the whole array holds at first."""
        if given is not None:
            return np.array(given, self.np).reshape(self.shape)
        count = int(np.prod(self.shape))
        if what == "iota":
            what = {"iota": {}}
        if not isinstance(what, dict):
            value = evaluate(what, self.names, True)
            if self.np.kind in "iu" and not np.iinfo(self.np).min <= value <= np.iinfo(self.np).max:
                raise Invalid(f"{value} is no {self.dtype}")
            return np.full(self.shape, value).astype(self.np)
        (kind, values), = what.items()
        number = lambda key, default: evaluate(values.get(key, default), self.names, True)  # noqa: E731
        if kind == "iota":
            start, step = number("start", 0), number("step", 1)
            array = np.arange(count, dtype=np.int64) * int(step) + int(start) if self.np.kind in "iu" else start + step * np.arange(count)
        elif kind == "random":
            low, high = number("low", 0), number("high", 1)
            array = np.array([low + (high - low) * uniform(int(values.get("seed", 0)), e, self.wide) for e in range(count)])
            array = np.floor(array) if self.np.kind in "iu" else array
        else:
            raise NotImplementedError(kind)
        return array.astype(self.np).reshape(self.shape)


class Value:
    """What a name means: contents, and what has happened to each row (tile) since the start."""

    def __init__(self, buffer, data=None):
        self.data = np.zeros(buffer.shape, buffer.np) if data is None else np.array(data)
        self.written = [data is not None] * buffer.rows
        self.op = [None] * buffer.rows  # the reduction that contributions since the last read or write are of


# ---- references ----

class Region:
    """Rows [first, last) of a buffer, halo included, or tiles. `named`: how it was written, evaluated."""

    def __init__(self, buffer, first, last, before=0, after=0, named=None):
        self.buffer, self.first, self.last, self.before, self.after, self.named = buffer, first, last, before, after, named

    def view(self, value):
        """Of rows, or of one tile."""
        if self.buffer.tiles:
            return value.data[self.buffer.tile(self.first)]
        return value.data[self.first:self.last]

    def parts(self):
        return [Region(self.buffer, k, k + 1) for k in range(self.first, self.last)] if self.buffer.tiles else [self]

    def get(self, value):
        """A flat copy; tiles one after the other."""
        return np.concatenate([r.view(value).ravel() for r in self.parts()] + [np.zeros(0, value.data.dtype)])

    def put(self, value, flat):
        at = 0
        for r in self.parts():
            view = r.view(value)
            view[...] = flat[at:at + view.size].reshape(view.shape)
            at += view.size

    def key(self):
        return (self.buffer.name, self.first, self.last, self.before, self.after)

    def shapes(self, value):
        return [r.view(value).shape for r in self.parts()]


def split_outside(text, sign):
    depth = 0
    for i, c in enumerate(text):
        if c == sign and depth == 0:
            return text[:i], text[i + 1:]
        depth += (c == "(") - (c == ")")
    return text, None


class Regions(list):
    """Of one reference to `buffer`: several, or none, only if it is a list of tiles."""

    def __init__(self, buffer, regions):
        super().__init__(regions)
        self.buffer = buffer


class Reference:
    def __init__(self, text, buffers, names):
        self.names = names
        text = text.strip()
        clamp = text.startswith("clamp(") and text.endswith(")")
        text = text[6:-1].strip() if clamp else text
        end = min([i for i in map(text.find, "[{~ ") if i >= 0], default=len(text))
        name, rest = text[:end], text[end:].strip()
        if name not in buffers:
            raise Invalid(f"no buffer {name}")
        self.buffer = buffers[name]
        self.spans, self.rows, halo = [], None, None
        while rest.startswith("["):
            inside, rest = split_outside(rest[1:], "]")
            self.spans.append(inside)
            rest = rest.strip()
        if rest.startswith("{"):
            inside, rest = split_outside(rest[1:], "}")
            self.rows, rest = inside, rest.strip()
        if rest.startswith("~"):
            halo, rest = rest[1:], ""
        if rest:
            raise Invalid(f"reference {text}")
        self.clamp, self.halo, self.apart = clamp, halo, False

    def span(self, text, count):
        """First and last of `count`, checked."""
        text, clamp = text.strip(), self.clamp
        if text == "*":
            return 0, count
        inside = text[6:-1]
        if text.startswith("clamp(") and text.endswith(")") and all(split_outside(inside, c)[1] is None for c in ",)"):
            text, clamp = inside, True
        first, last = split_outside(text, ":")
        low = evaluate(first, self.names)
        if last is None:
            low = min(max(low, 0), count - 1) if clamp else low
            high = low + 1
        else:
            high = evaluate(last, self.names)
            if clamp:
                low = min(max(low, 0), count)
                high = min(max(high, low), count)
        if low < 0 or high > count or low > high:
            raise Invalid(f"{self.buffer.name}[{text}] is out of range")
        return low, high

    def regions(self):
        return Regions(self.buffer, self.made())

    def made(self):
        b = self.buffer
        if len(self.spans) == 2:
            if not b.tiles or self.halo:
                raise Invalid("no tiles, or a halo of tiles")
            (i0, i1), (j0, j1) = self.span(self.spans[0], b.tiles[0]), self.span(self.spans[1], b.tiles[1])
            if i1 > i0 + 1 and (j0, j1) != (0, b.tiles[1]):
                self.apart = True
            return [Region(b, i * b.tiles[1] + j, i * b.tiles[1] + j + 1) for i in range(i0, i1) for j in range(j0, j1)]
        if len(self.spans) == 1:
            if b.parts is None:
                raise Invalid("not split")
            i0, i1 = self.span(self.spans[0], b.parts)
            first, last = part_bound(b.rows, b.parts, i0), part_bound(b.rows, b.parts, i1)
            named = (i0, i1)
        elif self.rows is not None:
            if b.auto or b.tiles:
                raise Invalid("rows of an automatic split or of tiles")
            first, last = named = self.span(self.rows, b.rows)
        elif b.tiles:
            return [Region(b, k, k + 1) for k in range(b.rows)]
        else:
            first, last = 0, b.rows
            named = None
        before = after = 0
        halo = None
        if self.halo is not None:
            low, high = split_outside(self.halo, ":")
            before = evaluate(low, self.names)
            after = before if high is None else evaluate(high, self.names)
            halo = (before, after)
            if before < 0 or after < 0:
                raise Invalid("a negative halo")
            if first < last:
                before, after = min(before, first), min(after, b.rows - last)
            else:
                before = after = 0
        return [Region(b, first - before, last + after, before, after, (len(self.spans), named, halo))]

    def region(self):
        """One region: rows, or tiles that lie together."""
        regions = self.regions()
        if self.apart or not regions:
            raise Invalid("tiles apart")
        return Region(self.buffer, regions[0].first, regions[-1].last, regions[0].before, regions[0].after, regions[0].named)


# ---- kernels ----

class Argument:
    """One region, or a list of tiles."""

    def __init__(self, regions, mode):
        self.regions, self.mode, self.views = regions, mode, []

    @property
    def view(self):
        return self.views[0]


def whole(number):
    return int(number) if number == int(number) else 0


def told(region):
    b = region.buffer
    if b.tiles:
        i, j = divmod(region.first, b.tiles[1])
        rows = b.tile(region.first)[0]
        n = rows.stop - rows.start
        return 17 * n + 11 * n + 7 * n + 5 * (i + 1) + 3 * (j + 1) + 19 * 2
    rows = region.last - region.first
    return 31 * region.first + 17 * rows + 13 * (region.first + region.before) + 11 * (rows - region.before - region.after) + \
        7 * b.shape[0] + 19 * len(b.shape)


def wide(array):
    return array.astype(np.int64).astype(np.uint64) if array.dtype.kind == "i" else array.astype(np.uint64)


def mix(args, scalars, it):
    """As mix.c."""
    with np.errstate(over="ignore"):
        total = whole(scalars["a"]) * 101 + it * 1009
        for arg in args:
            total += len(arg.regions) * 23
            for k, (region, view) in enumerate(zip(arg.regions, arg.views)):
                mine = told(region)
                if arg.mode in ("read", "readwrite"):
                    x = wide(view).ravel()
                    mine += int((x * (np.arange(x.size, dtype=np.uint64) % np.uint64(7) + np.uint64(1))).sum(dtype=np.uint64))
                total += mine * (k + 1)
        for i, arg in enumerate(args):
            for k, view in enumerate(arg.views):
                v = np.uint64((total + 5 * (i + 1) + 1000 * k) % 2**64) + np.uint64(3) * np.arange(view.size, dtype=np.uint64)
                v = v.astype(view.dtype).reshape(view.shape)
                combine(view, arg.mode, v)


def combine(view, mode, v):
    if mode == "write":
        view[...] = v
    elif mode == "readwrite":
        view[...] = (wide(view) * np.uint64(3) + wide(v)).astype(view.dtype)
    elif mode == "prod":
        view[...] = (wide(view) * wide(v | v.dtype.type(1))).astype(view.dtype)
    elif mode in REDUCTIONS:
        view[...] = {"sum": np.add, "min": np.minimum, "max": np.maximum}[mode](view, v)


def scaled(a, x):
    """a x, in integers modulo 2^bits."""
    if x.dtype.kind not in "iu":
        return x.dtype.type(a) * x
    return (np.uint64(int(a) % 2**64) * wide(x)).astype(x.dtype)


def same_size(*views):
    if len({v.size for v in views}) != 1:
        raise Invalid("not as many elements")


def kernel(name, args, scalars):
    """Library kernels. `args`: name -> Argument."""
    v = {key: a.view for key, a in args.items() if isinstance(key, str)}
    with np.errstate(over="ignore"):
        if name in ("copy", "fail"):
            same_size(v["x"], v["y"])
            v["y"][...] = v["x"].reshape(v["y"].shape)
        elif name in ("scale", "busy"):
            same_size(v["x"], v["y"])
            v["y"][...] = scaled(scalars["a"], v["x"]).reshape(v["y"].shape)
        elif name in ("add", "mul"):
            same_size(v["x"], v["y"], v["z"])
            v["z"][...] = (np.add if name == "add" else np.multiply)(v["x"].ravel(), v["y"].ravel()).reshape(v["z"].shape)
        elif name in ("axpby", "saxpy"):
            same_size(v["x"], v["y"])
            v["y"][...] = scaled(scalars["a"], v["x"]).reshape(v["y"].shape) + scaled(scalars.get("b", 1), v["y"])
        elif name in ("reduce_sum", "reduce_max", "histogram", "dot"):
            x, out = v["x"], v["out"]
            if name == "histogram":
                out[...] += np.bincount(x.ravel(), minlength=256).astype(out.dtype).reshape(out.shape)
                return
            if out.size != 1 or (x.dtype != out.dtype and (out.dtype.itemsize != 8 or out.dtype.kind not in "iu")):
                raise Invalid("no accumulator")
            if name == "reduce_sum":
                out[...] += wide(x).sum(dtype=np.uint64).astype(out.dtype) if x.dtype.kind in "iu" else x.sum(dtype=out.dtype)
            elif name == "dot":
                out[...] += (x * v["y"]).sum(dtype=out.dtype)
            elif x.size:
                out[...] = np.maximum(out, x.max().astype(out.dtype))
        elif name == "transpose":
            if v["x"].ndim != 2 or v["x"].T.shape != v["y"].shape:
                raise Invalid("no transpose")
            v["y"][...] = v["x"].T
        elif name == "gemm":
            a, b = (v[name].astype(v["c"].dtype) for name in "ab")  # sums are of the type of c, or wider
            c = scaled(scalars.get("alpha", 1), a @ b)
            v["c"][...] = c if args["c"].mode == "write" else c + (v["c"] if args["c"].mode == "sum" else scaled(scalars.get("beta", 0), v["c"]))
        elif name == "select":
            x, y, count = v["x"], v["y"], v["count"]
            if v["mask"].size != len(x) or x.shape[1:] != y.shape[1:] or count.size != 1 or count.dtype not in (np.int32, np.int64):
                raise Invalid("no selection")
            taken = x[v["mask"].ravel() != 0]
            y[...] = np.concatenate([taken, np.zeros((len(y) - len(taken), *y.shape[1:]), y.dtype)])
            count[...] = len(taken)
        else:
            raise NotImplementedError(name)


LIBRARY = {
    "copy": [("x", "read"), ("y", "write")], "scale": [("a", None), ("x", "read"), ("y", "write")],
    "busy": [("us", None), ("a", None), ("x", "read"), ("y", "write")], "fail": [("how", None), ("from", None), ("x", "read"), ("y", "write")],
    "add": [("x", "read"), ("y", "read"), ("z", "write")], "mul": [("x", "read"), ("y", "read"), ("z", "write")],
    "axpby": [("a", None), ("x", "read"), ("b", None), ("y", "readwrite")], "saxpy": [("a", None), ("x", "read"), ("y", "readwrite")],
    "reduce_sum": [("x", "read"), ("out", "sum")], "reduce_max": [("x", "read"), ("out", "max")],
    "histogram": [("x", "read"), ("out", "sum")], "dot": [("x", "read"), ("y", "read"), ("out", "sum")],
    "transpose": [("x", "read"), ("y", "write")],
    "gemm": [("alpha", None), ("beta", None), ("ta", None), ("tb", None), ("a", "read"), ("b", "read"), ("c", "write")],
    "select": [("x", "read"), ("mask", "read"), ("y", "write"), ("count", "write")],
    "mix": [("a", None), ("x", "read"), ("y", "write")],
}
FREE = {"select": ("mask", "count"), "gemm": ("c",)}  # types of their own
DEFAULTS = {"busy": {"a": 1}, "fail": {"from": 0}, "gemm": {"alpha": 1, "beta": 0}, "mix": {"a": 1}}


# ---- the interpreter ----

class Oracle:
    def __init__(self, graph, params=None, inputs=None):
        self.graph, self.inputs = graph, inputs or {}
        self.names = {}
        for name, value in graph.get("params", {}).items():
            value = (params or {}).get(name, value)
            try:
                self.names[name] = value if isinstance(value, float) else evaluate(value, self.names)
            except Bad:
                self.names[name] = evaluate(value, self.names, True)
        try:
            self.buffers = {name: Buffer(name, entry, self.names) for name, entry in graph["buffers"].items()}
        except Bad as error:
            raise Invalid(str(error))
        self.kept = {}  # state: contents at the end of the last start
        self.begin()

    def begin(self):
        """A new start: what names mean."""
        self.now, self.done, self.iteration, self.around = {}, [], None, None
        for name, b in self.buffers.items():
            if b.cls == "temp":
                self.now[name] = Value(b)
            elif b.cls == "state" and name in self.kept:
                self.now[name] = Value(b, self.kept[name])
            else:
                self.now[name] = Value(b, b.contents(b.init, self.inputs.get(name)))

    def end(self):
        """The outputs."""
        for name, b in self.buffers.items():
            if (b.output or b.cls == "state") and not all(self.now[name].written):
                raise Invalid(f"{name} is not wholly written")
        self.kept = {name: self.now[name].data.copy() for name, b in self.buffers.items() if b.cls == "state"}
        return {name: self.now[name].data.copy() for name, b in self.buffers.items() if b.output}

    def start(self):
        self.begin()
        try:
            if "repeat" in self.graph:
                self.loop(self.graph)
            else:
                self.elements(self.graph["nodes"], {})
        except Bad as error:
            raise Invalid(str(error))
        return self.end()

    # ---- elements ----

    def elements(self, elements, index):
        for element in elements:
            if "repeat" in element:
                self.loop(element)
            else:
                self.turns(element, index, self.elements_of if "nodes" in element else self.node)

    def elements_of(self, element, index):
        around = self.around
        self.around = self.flag_of(element, {**self.names, **index}) or around
        self.elements(element["nodes"], index)
        self.around = around

    def turns(self, element, index, each):
        names = lambda: {**self.names, **index}  # noqa: E731
        if "for" not in element:
            if evaluate(element.get("if", 1), names()):
                each(element, index)
            return
        (variable, span), = element["for"].items()
        bounds = [evaluate(b, names()) for b in split_range(span)]
        low, high, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        for i in range(low, high, step):
            inner = {**index, variable: i}
            if evaluate(element.get("if", 1), {**self.names, **inner}):
                each(element, inner)

    def loop(self, element):
        count, carry = evaluate(element["repeat"], self.names), element.get("carry", {})
        for prev, next_ in carry.items():
            a, b = self.buffers[prev], self.buffers[next_]
            if (a.dtype, a.shape, a.parts, a.auto, a.tiles) != (b.dtype, b.shape, b.parts, b.auto, b.tiles) or "const" in (a.cls, b.cls):
                raise Invalid("carry")
        for it in range(count):
            for prev, next_ in carry.items():
                if it > 0:
                    self.now[prev] = self.now[next_]
                if self.now[prev] is self.now[next_]:
                    self.now[next_] = Value(self.buffers[next_])
            self.iteration = it
            self.elements(element["nodes"], {})
            if self.ends(element, it, carry):
                break
        self.iteration = None
        if count > 0:
            for prev, next_ in carry.items():
                self.now[prev] = self.now[next_]

    def ends(self, element, it, carry):
        """Whether `until` ends the loop after this iteration: names mean what they will after it."""
        until = element.get("until")
        if not until or (it + 1) % until.get("every", 1):
            return False
        value = self.now[carry.get(until["buffer"], until["buffer"])]
        if not all(value.written):
            raise Invalid("until")
        return bool(np.any(value.data))

    # ---- nodes ----

    def reference(self, text, names):
        return Reference(text, self.buffers, names)

    def listed(self, entries, names, mode, tiles=False):
        """(regions of one reference, mode) each; `tiles`: lists of tiles stay lists, else they become one region."""
        found = []
        for entry in entries:
            if isinstance(entry, str):
                entry = {"ref": entry}
            (key,) = [k for k in entry if k not in ("for", "if")]
            how = mode if key == "ref" else key

            def one(_, index, key=key, how=how, entry=entry):
                reference = self.reference(entry[key], {**names, **index})
                found.append((reference.regions() if tiles else Regions(reference.buffer, [reference.region()]), how))
            self.turns(entry, {k: v for k, v in names.items() if k not in self.names}, one)
        return found

    def flag_of(self, element, names):
        """The one element that a node or block runs by, as a region; None: it has none."""
        if "when" not in element:
            return None
        flag = self.reference(element["when"]["buffer"], names).region()
        if flag.buffer.tiles or flag.buffer.auto or flag.get(self.now[flag.buffer.name]).size != 1:
            raise Invalid("when")
        return self.both(self.around, flag) if self.around else flag

    def is_set(self, flag):
        return bool(flag.get(self.now[flag.buffer.name]).any())

    def both(self, outer, inner):
        """A flag within another: what the two are when its block or node comes up, the inner one where the outer is set."""
        self.flag, self.node_at = outer, {}
        self.check([(inner, "read")])
        name = f"{outer.buffer.name} and {inner.buffer.name}"
        self.buffers[name] = Buffer(name, {"dtype": "u8", "shape": [1]}, self.names)
        self.now[name] = Value(self.buffers[name], np.array([self.is_set(outer) and self.is_set(inner)], np.uint8))
        return Region(self.buffers[name], 0, 1)

    def node(self, node, index):
        self.node_at = node
        names = {**self.names, **index}
        self.flag = self.flag_of(node, names) or self.around
        self.carry_out(node, names)
        if self.flag and not self.is_set(self.flag):
            for value, data in self.before:
                value.data[...] = data

    def carry_out(self, node, names):
        if "kernel" in node or "host" in node:
            self.call(node, names)
        elif "copy" in node:
            self.copy(node["copy"], names)
        elif "fill" in node:
            self.fill(node["fill"], names)
        elif "collective" in node:
            self.collective(node, names)
        else:
            self.work(node, names)

    def check(self, accesses, in_place=()):
        """What an access may not do. `accesses`: (region, mode). Where a node has a flag it may leave alone what it writes."""
        if self.flag:
            accesses = [(a, "readwrite" if mode == "write" else mode) for a, mode in accesses] + [(self.flag, "read")]
        for i, (a, x) in enumerate(accesses):
            if self.buffers[a.buffer.name].cls == "const" and x != "read":
                raise Invalid("writes to a const")
            for k, (b, y) in enumerate(accesses[:i]):
                one = self.now[a.buffer.name] is self.now[b.buffer.name]
                meet = max(a.first, b.first) < min(a.last, b.last)
                if one and meet and (x, y) != ("read", "read") and not ((k, i) in in_place and a.key() == b.key()):
                    raise Invalid("accesses overlap")
        self.done.append((self.node_at, [(self.now[a.buffer.name], a.first, a.last, mode) for a, mode in accesses]))
        for a, mode in accesses:
            value = self.now[a.buffer.name]
            for row in range(a.first, a.last):
                if mode in ("read", "readwrite") and not value.written[row]:
                    raise Invalid(f"{a.buffer.name} row {row} is read and was not written")
                if mode in REDUCTIONS and value.op[row] not in (None, mode):
                    raise Invalid("two reductions")
        for a, mode in accesses:
            value = self.now[a.buffer.name]
            for row in range(a.first, a.last):
                if mode in REDUCTIONS and not value.written[row]:
                    fill_identity(Region(a.buffer, row, row + 1).view(value), mode)
                value.written[row] = value.written[row] or mode != "read"
                value.op[row] = mode if mode in REDUCTIONS else None
        self.before = [(self.now[a.buffer.name], self.now[a.buffer.name].data.copy()) for a, _ in accesses if self.flag]

    def call(self, node, names):
        name = node.get("kernel", node.get("host"))
        if self.iteration is not None:
            names = {**names, "it": self.iteration}
        args, scalars, accesses = {}, dict(DEFAULTS.get(name, {})), []
        for key, mode in LIBRARY[name]:
            given = node["args"].get(key)
            if mode is None:
                if given is not None:
                    scalars[key] = evaluate(given["dynamic"] if isinstance(given, dict) else given, names, True)
                continue
            regions = self.reference(given, {k: v for k, v in names.items() if k != "it"}).regions()
            if len(regions) != 1 and name != "mix":
                raise Invalid("no lists here")
            args[key] = Argument(regions, node.get("access", {}).get(key, mode))
        more = self.listed(node.get("reads", []), names, "read", True), self.listed(node.get("writes", []), names, "write", True)
        for k, (regions, mode) in enumerate(join(*more)):
            args[k] = Argument(regions, mode)
        for arg in args.values():
            if arg.mode != "read" and arg.regions.buffer.cls == "const":
                raise Invalid("writes to a const, if only to none of its tiles")
            accesses += [(region, arg.mode) for region in arg.regions]
        if name != "mix":
            kinds = {key: a.regions[0].buffer.dtype for key, a in args.items() if key not in FREE.get(name, ("out",)) and isinstance(key, str)}
            if len(set(kinds.values())) > 1:
                raise Invalid("dtypes differ")
        for arg in args.values():
            arg.views = [r.view(self.now[r.buffer.name]) for r in arg.regions]
        if name != "mix":
            self.shapes(name, args)
        self.check(accesses)
        if name == "mix":
            mix(list(args.values()), scalars, self.iteration or 0)
        else:
            kernel(name, args, scalars)

    def shapes(self, name, args):
        """Sizes, before anything is touched: on copies."""
        copies = {}
        for key, arg in args.items():
            copies[key] = Argument(arg.regions, arg.mode)
            copies[key].views = [v.copy() for v in arg.views]
        kernel(name, copies, {"a": 0, "b": 0})

    def copy(self, what, names):
        source, target = self.reference(what["from"], names).region(), self.reference(what["to"], names).region()
        x, y = self.now[source.buffer.name], self.now[target.buffer.name]
        several = any(r.buffer.tiles and r.last - r.first > 1 for r in (source, target))
        if source.get(x).size != target.get(y).size or source.buffer.dtype != target.buffer.dtype:
            raise Invalid("copy")
        if several and (not source.buffer.tiles or not target.buffer.tiles or source.shapes(x) != target.shapes(y)):
            raise Invalid("copy of unlike tiles")
        self.check([(source, "read"), (target, "write")])
        target.put(y, source.get(x))

    def fill(self, what, names):
        region = self.reference(what["to"], names).region()
        self.check([(region, "write")])
        generator = {k: v for k, v in what.items() if k != "to"}
        filler = copy.copy(region.buffer)
        filler.names = names
        whole_array = Value(region.buffer, filler.contents(generator.get("value", generator)))
        region.put(self.now[region.buffer.name], region.get(whole_array))

    def collective(self, node, names):
        ins, outs = ([r[0] for r, _ in self.listed(node[key], names, "read")] for key in ("in", "out"))
        kind, root = node["collective"], evaluate(node.get("root", 0), names)
        flat, y = ([r.get(self.now[r.buffer.name]) for r in rs] for rs in (ins, outs))
        one_in, one_out = kind in ("broadcast", "scatter"), kind in ("reduce", "gather")
        ranks = len(outs) if one_in else len(ins)
        if ranks == 0 or (len(ins), len(outs)) != (1 if one_in else ranks, 1 if one_out else ranks) or not 0 <= root < ranks:
            raise Invalid("ranks")
        if len({r.buffer.dtype for r in ins + outs}) != 1:
            raise Invalid("dtypes")
        sizes_in, sizes_out = [v.size for v in flat], [v.size for v in y]
        ok = {"scatter": sizes_in == [sum(sizes_out)], "gather": sizes_out == [sum(sizes_in)],
              "all_gather": set(sizes_out) == {sum(sizes_in)}, "reduce_scatter": set(sizes_in) == {sum(sizes_out)}}
        if not ok.get(kind, len(set(sizes_in + sizes_out)) == 1) or (kind == "all_to_all" and sizes_in[0] % ranks):
            raise Invalid("sizes")
        if one_in:
            in_place = {(0, 1 + root)}
        else:
            in_place = {(root, ranks)} if one_out else {(i, ranks + i) for i in range(ranks)}
        self.check([(r, "read") for r in ins] + [(r, "write") for r in outs], in_place)
        reduced = joined = None
        if "op" in node:
            reduced = flat[0]
            with np.errstate(over="ignore"):
                for v in flat[1:]:
                    reduced = {"sum": np.add, "min": np.minimum, "max": np.maximum, "prod": np.multiply}[node["op"]](reduced, v)
        else:
            joined = np.concatenate(flat)
        at = 0
        for r, v in enumerate(y):
            if kind in ("all_reduce", "reduce"):
                new = reduced
            elif kind in ("broadcast", "gather", "all_gather"):
                new = joined
            elif kind in ("scatter", "reduce_scatter"):
                new = (joined if kind == "scatter" else reduced)[at:at + v.size]
                at += v.size
            else:
                block = v.size // ranks
                new = np.concatenate([f[r * block:(r + 1) * block] for f in flat])
            outs[r].put(self.now[outs[r].buffer.name], new)

    def work(self, node, names):
        both = join(self.listed(node.get("reads", []), names, "read", True), self.listed(node.get("writes", []), names, "write", True))
        self.check([(r, mode) for regions, mode in both for r in regions])


def join(reads, writes):
    """The same reference in both is one readwrite; reads come first."""
    writes = list(writes)
    left = []
    for regions, mode in reads:
        for k, (others, how) in enumerate(writes):
            if how in ("write", "readwrite") and same_regions(regions, others):
                writes[k] = (others, "readwrite")
                break
        else:
            left.append((regions, mode))
    return left + writes


def same_regions(a, b):
    return len(a) == len(b) and all(x.key() == y.key() and x.named == y.named for x, y in zip(a, b))


def split_range(span):
    if not isinstance(span, str):
        return [span]
    bounds, rest = [], span
    while rest is not None:
        first, rest = split_outside(rest, ":")
        bounds.append(first)
    return bounds


def fill_identity(view, op):
    if op in ("sum", "prod"):
        view[...] = 0 if op == "sum" else 1
    elif view.dtype.kind in "iu":
        view[...] = np.iinfo(view.dtype).max if op == "min" else np.iinfo(view.dtype).min
    else:
        view[...] = np.inf if op == "min" else -np.inf
