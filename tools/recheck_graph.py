# SPDX-License-Identifier: Apache-2.0
"""What tools/recheck holds a schedule against: a graph, read and unrolled as docs/graph-format.md says, what each of its tasks finds
and leaves, and the graphs of phases of docs/schedule-format.md."""
import copy, functools, itertools, json, math, re
from collections import namedtuple

REDUCTIONS = ("sum", "min", "max", "prod")
MODES = ("read", "write", "readwrite") + REDUCTIONS
SIZES = {"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "i8": 1, "u8": 1, "i32": 4, "u32": 4, "i64": 8, "u64": 8, "f8e4m3": 1, "f8e5m2": 1}
MARKS = {"": "read", ">": "write", "<": "readwrite", "+": "sum", "^": "max"}
KERNELS = {one.split()[0]: [(arg.rstrip("><+^"), MARKS[arg.lstrip("abcdefghijklmnopqrstuvwxyz_")]) for arg in one.split()[1:]] for one in """
    adamw w< g m< v<, add x y z>, argsort x index>, attention q k v y> lse>, attention_append place q k v keys< values< y>, attention_cached q k v length y>, attention_grad q k v y dy dq> dk> dv> lse, axpby x y<, bias_add x b y>, busy x y>, cache_append place q k v turned> keys< values<, conv2d x w y>, conv2d_grad_w x dy dw+, conv2d_grad_x w dy dx>, copy x y>,
    dot x y out+, dropout x y>, embedding table ids y>, embedding_grad ids dy dtable+, fail x y>, fft x y>, filter2d weights image out>, filter2d_grad weights dout dimage>, gaussian_blur image out>, gaussian_blur_grad dout dimage>, gemm a b c>, gemm_batched a b c>, getrf a< pivots>, getrs a pivots b<, halo_pack x,
    halo_unpack x edges y>, histogram x out+, jacobi2d x y>, jacobi3d x y>, layernorm x gain bias y>, layernorm_grad x gain dy dx> dgain+ dbias+, mul x y z>, potrf a<, qr a q> r>, reduce_max x out^, reduce_sum x out+, relu x y>,
    relu_grad x dy dx>, resize image out>, retile x y>, rmsnorm x gain y>, rmsnorm_grad x gain dy dx> dgain+, rope x y>, softmax x y>, softmax_grad y dy dx>,
    saxpy x y<, scale x y>, scan x y>, select x mask y> count>, sgd_update w< g, sobel image out>, softmax_xent logits labels loss+, softmax_xent_grad logits labels grad>,
    sort x y>, sort_pairs keys values sorted> moved>, spmm_csr row_ptr col val x y>, spmv_csr row_ptr col val x y>, syrk a c<, top_k x values> indices>, transpose x y>, trsm a b<""".split(",")}  # The library's: regions, first accesses.
KERNEL_LISTS = {"retile": ("x", "y")}  # Arguments that take a list of tiles.

class Wrong(Exception):
    """The schedule breaks `rule`: `malformed` where it cannot be read, else a rule of the checker."""
    def __init__(self, rule, text):
        super().__init__(text if rule == "malformed" else f"rule {rule}: {text}")
        self.word = "malformed" if rule in ("malformed", "form") else "unsound"

class Unread(Exception): pass  # Something that this checker does not understand.

def need(holds, rule, text):
    if not holds:
        raise Wrong(rule, text)

listed = lambda x: x if isinstance(x, list) else [x]

# ---- what bytes hold ----
# A content is (word, ...): ("init", name), ("write", access), ("plain", dtype, value) of an identity, or ("sum", base, operator,
# contributions); None where nothing is known. An access is (task, number). In values, rows begin at byte 0.

class Bytes(list):
    """Pieces (first, last, content, where row 0 of it would begin), in order."""
    def get(self, low, high):
        found, end = [], low
        for a, b, content, where in self:
            if b > low and a < high and low < high:
                found += [(end, a, None, 0)] if a > end else []
                found.append((max(a, low), min(b, high), content, where))
                end = b
        return found + ([(end, high, None, 0)] if end < high else [])
    def put(self, low, high, content, where):
        kept = [(x, y, c, w) for a, b, c, w in self for x, y in ((a, min(b, low)), (max(a, high), b)) if x < y]
        self[:] = sorted(kept + ([(low, high, content, where)] if low < high else []), key=lambda x: x[0])
    def add(self, low, high, start, op, access, nothing=None):
        """A contribution to rows that begin at `start`. Where nothing is known it begins with `nothing`."""
        for a, b, content, where in self.get(low, high):
            base, added = base_of(content or nothing, op)
            fits = base and (where == start or (content or nothing)[0] == "plain")
            self.put(a, b, ("sum", base, op, tuple(sorted(added + (access,)))) if fits else None, start)

def identity(op, dtype):
    """What a reduction begins with, as a content. It is one of the type."""
    half = 2 ** (8 * SIZES[dtype] - 1)
    low, high = {"u": (0, 2 * half - 1), "i": (-half, half - 1)}.get(dtype[0], (-math.inf, math.inf))
    return "plain", dtype, {"sum": 0, "prod": 1, "min": high}.get(op, low)

def base_of(content, op):
    """The base and the contributions of a content that `op` adds to."""
    return (content[1], content[3]) if content and content[0] == "sum" and content[2] == op else (content, ())

# ---- the graph ----

WORDS = {"min": min, "max": max, "ceil_div": lambda a, b: -(-a // b), "clamp": lambda x, a, b: min(max(x, a), b), "abs": abs,
         "floor": math.floor, "ceil": math.ceil, "round": round, **{one: getattr(math, one) for one in ("sqrt", "exp", "log", "log2", "sin", "cos", "pow")}}
REGION = re.compile(r"([^\[{~]+)((?:\[[^\]]*\])*)\s*(?:\{([^}]*)\})?\s*(?:~(.*))?")

NAME = re.compile(r"(?<![\w.])[A-Za-z_]\w*")

def evaluate(text, names):
    """The value of an expression of the graph format: Python's operators, and nothing else of Python."""
    if not isinstance(text, str):
        return text
    for one in re.findall(r"\d+\.?\d*(?:[eE][-+]?\d+)?|[A-Za-z_]\w*|//|[<>=!]=|[-+*/%<>(),]|\S", text):
        known = one in names or one in WORDS or one in ("and", "or", "not") or re.match(r"\d|//|[<>=!]=|[-+*/%<>(),]$", one)
        if not known or "**" in text:
            raise Unread(f"the expression {text!r}")
    mine = {f"name_{one}": value for one, value in names.items()}  # A param may be called `in` or `lambda`, which are words of Python.
    value = eval(NAME.sub(lambda one: f"name_{one[0]}" if one[0] in names else one[0], text.strip()), {"__builtins__": {}, **WORDS}, mine)
    return int(value) if isinstance(value, bool) or isinstance(value, float) and value.is_integer() else value

def split_at(text, mark):
    """Splits at a character that is outside of parentheses."""
    depth = [*itertools.accumulate((c == "(") - (c == ")") for c in text)]
    ends = [i for i, c in enumerate(text) if c == mark and not depth[i]]
    return [text[a:b] for a, b in zip([0] + [i + 1 for i in ends], ends + [len(text)])]

def numbers(form, names):
    """The values of a number, an expression, a list of them or of "a:b"."""
    return [evaluate(one, names) for one in (form if isinstance(form, list) else split_at(form, ":") if isinstance(form, str) else [form])]

def inside_clamp(text):
    """What is inside of a clamp(...) around it all, and whether there is one."""
    text = text.strip()
    alone = text.startswith("clamp(") and text.endswith(")") and len(split_at(text[6:-1], ",")) == 1
    return (text[6:-1].strip(), True) if alone else (text, False)

def expand(name, names):
    """An id: the items inside its brackets that use an index become their values."""
    def item(text):
        return str(evaluate(text, names)) if set(re.findall(r"[A-Za-z_]\w*", text)) & set(names["indices"]) else text
    return re.sub(r"\[([^\]]*)\]", lambda m: "[" + ",".join(map(item, m.group(1).split(","))) + "]", name)

def turns(form, names):
    """All values of the `for` of a block for which its `if` holds."""
    values = [names]
    for index, text in form.get("for", {}).items():
        values = [{**names, index: i, "indices": names["indices"] + (index,)} for i in range(*numbers(text, names))]
    return [one for one in values if evaluate(form.get("if", 1), one)]

class Buffer:
    def __init__(self, name, form, names, bounds):
        self.name, self.dtype, self.output, self.external = name, form["dtype"], form.get("output", False), form.get("external")
        self.kind, split = form.get("class", "input" if "init" in form else "temp"), form.get("split", 1)
        (self.rows, *inner), self.tiles, self.offsets = numbers(form["shape"], names), numbers(form.get("tiles", []), names), None
        self.row_bytes, self.shape = math.prod(inner, start=SIZES[self.dtype]), [self.rows] + inner
        parts, self.auto = evaluate(split["auto"] if isinstance(split, dict) else split, names), isinstance(split, dict)
        self.cuts = [i * self.rows // parts for i in range(parts + 1)]
        if isinstance(split, dict) and name in bounds:
            cuts = self.cuts = bounds[name]
            need(len(cuts) == parts + 1 and cuts[-1] == self.rows, "form", f"/bounds/{name}: {cuts}")
        if self.tiles:
            self.whole, self.halo = self.shape, form.get("halo", [(0, 0)] * len(self.shape))
            self.tiles += [1] * (len(self.shape) - len(self.tiles))
            self.own = [[(i + 1) * n // p - i * n // p for i in range(p)] for n, p in zip(self.shape, self.tiles)]
            along = [[n + a * (i > 0) + b * (i < len(own) - 1) for i, n in enumerate(own)] for own, (a, b) in zip(self.own, self.halo)]
            self.shape = [*itertools.product(*along)]
            self.offsets = [*itertools.accumulate((math.prod(one) * SIZES[self.dtype] for one in self.shape), initial=0)]
            self.rows, self.row_bytes = len(self.offsets) - 1, None
    def at(self, row):  # Bytes before a row.
        return self.offsets[row] if self.offsets else row * self.row_bytes

    def pieces(self, tile):
        """[(tile, elements)] that a tile with a halo gets from those around it, in the order of their directions."""
        index, found = [*itertools.product(*map(range, self.tiles))][tile], []
        for steps in itertools.product((-1, 0, 1), repeat=len(index)):
            at = [i + step for i, step in zip(index, steps)]
            if not any(steps) or any(not 0 <= i < p for i, p in zip(at, self.tiles)):
                continue
            size = math.prod(own[i] if not step else side[step > 0] for own, i, step, side in zip(self.own, index, steps, self.halo))
            found += [(functools.reduce(lambda all, one: all * one[1] + one[0], zip(at, self.tiles), 0), size)] if size else []
        return found

class Node:
    def __init__(self, form, index, names, loop, path, when=None):
        self.when = when  # The flag, and what its names mean; None: it has none.
        self.flags = [when] if when else []  # Those that it is given, before Flags has made them one: the innermost first.
        self.meets = None  # Of a collective with a flag: it, and the node itself has none.
        self.form, self.index, self.names, self.loop, self.id = form, index, names, loop, expand(form["id"], names)
        self.path = path  # (number, times, index) of the loops around it, outermost first.
        self.joined = None  # Of several nodes in one: its accesses.
        self.kind = next((k for k in ("host", "copy", "fill", "collective") if k in form), "launch")
    def turns(self, iteration):
        """How far each loop around the node is when it runs for the `iteration`th time: (number of the loop, its iteration)."""
        found = []
        for number, times, _ in self.path[:0:-1]:
            iteration, here = divmod(iteration, times)
            found.insert(0, (number, here))
        return [(number, iteration) for number, *_ in self.path[:1]] + found
    def written(self, access, dtype):
        """What an access that writes leaves: a fill may leave an identity."""
        value = evaluate(self.form.get("fill", {}).get("value"), self.names)
        known = value is not None and not self.when and ("plain", dtype, value) in [identity(op, dtype) for op in REDUCTIONS]
        return ("plain", dtype, value) if known else ("write", access)

class Loop(namedtuple("Loop", "first last times carry until every inner number")):
    def ends(self):
        """Whether `until` may end it, so that it is never unrolled."""
        return self.until is not None and self.times > 0 and self.first < self.last
    def counted(self, times):
        """How many of so many iterations have values of their own."""
        return times if self.first < self.last or self.inner else min(times, 3)

Task = namedtuple("Task", "node iteration accesses found")  # found: what each access finds.

class Graph:
    """Buffers, nodes and loops; after `run` also tasks and what there is at the end."""
    def __init__(self, form, bounds, devices, ids=()):
        names = {"indices": (), "devices": devices}
        for name, value in form.get("params", {}).items():
            names[name] = evaluate(value, names)
        self.own, self.nodes, self.loops, self.values, self.families, self.leaves = form.get("kernels", {}), [], [], [], {}, ()
        self.buffers = [Buffer(name, one, names, bounds) for name, one in form["buffers"].items()]
        self.of = {one.name: i for i, one in enumerate(self.buffers)}
        self.numbers, self.bounds, self.handed, self.going = itertools.count(), bounds, [], set()
        self.unclear = {name for name, one in form["buffers"].items() if "init" not in one and "class" not in one}
        self.closed = {}  # Until all nodes are known; which tiles a halo is made of does not depend on it.
        self.halos = {}  # (source, sides of the halo): the buffers of tiles with a halo and of edges.
        for element in [form] if "repeat" in form else form["nodes"]:
            self.block(element, names, (), self.loops)
        if self.going or any(node.flags and node.kind == "collective" for node in self.nodes):
            Flags(self).add()
        for node in self.nodes:
            for one in texts_of({k: node.form[k] for k in ("args", "copy", "reads", "in") if k in node.form}):
                match = REGION.fullmatch(inside_clamp(one)[0])
                if match and match[4] and match[1].strip() in self.of and self.buffers[self.of[match[1].strip()]].tiles:
                    self.regions(one, node.names)
        if self.halos:
            Exchanges(self).add()
        if any("+" in one for one in ids):
            Joining(self, Graph(form, {}, devices)).join(ids)
        self.closed = self.under_one_flag() if any(node.when for node in self.nodes) else {}
    def block(self, form, names, path, loops, when=None):
        """Adds what an element stands for; `path`: the loops around it; `loops` gets those that are right inside; `when`: that around it."""
        if "repeat" in form:
            first, until, inside, times = len(self.nodes), form.get("until", {"every": 0}), [], evaluate(form["repeat"], names)
            outer, number = path, next(self.numbers)
            path += ((number, times, form.get("index", "it")),)
            for inner in form["nodes"]:
                self.block(inner, names, path, inside, when)
            carry = [(self.of[a], self.of[b]) for a, b in form.get("carry", {}).items()]
            if outer and "until" in form:
                self.guard(path, first, carry, self.of[until["buffer"]], evaluate(until.get("every", 1), names), names)
                carry, until = [], {"every": 0}
            loops.append(Loop(first, len(self.nodes), times, carry, self.of.get(until.get("buffer")), evaluate(until.get("every", 1), names), inside, number))
            return
        if "use" in form:
            raise Unread("a graph that uses others")
        for one in turns(form, names):
            flag = (form["when"]["buffer"], one) if "when" in form else when
            flag = self.both(when, flag, path) if when and "when" in form else flag
            for inner in form.get("nodes", []):
                self.block(inner, one, path, loops, flag)
            if "nodes" not in form:
                self.families.setdefault(form["id"], []).append(len(self.nodes))
                self.nodes.append(Node(form, len(self.nodes), one, len(self.loops) if path else None, path, flag))
    def both(self, outer, inner, path):
        """The flag of a `when` within that of another: one of its own, which is filled with 0, and to which the inner one is copied by the outer."""
        (buffer, *_), = self.regions(*inner)
        text, names = inner
        name = self.beside(buffer, "both", {"dtype": self.buffers[buffer].dtype, "shape": [1]})
        for form, when in (({"fill": {"to": name, "value": 0}, "id": "clear." + name}, None), ({"copy": {"from": text, "to": name}, "id": "set." + name}, outer)):
            form["id"] = self.free(form["id"])
            self.nodes.append(Node(form, len(self.nodes), names, len(self.loops) if path else None, path, when))
        return name, names
    def beside(self, buffer, what, form, bounds=()):
        """A new buffer; its name."""
        name = self.buffers[buffer].name + "." + what
        while name in self.of:
            name += "_"
        self.of[name] = len(self.buffers)
        self.buffers.append(Buffer(name, form, {}, {name: bounds[name]} if name in bounds else {}))
        return name
    def pieces(self, buffer):
        """[(what an id says of it, rows)]: tiles or parts."""
        b = self.buffers[buffer]
        found = [(i, i + 1) for i in range(b.rows)] if b.tiles else [*zip(b.cuts, b.cuts[1:])]
        return [("" if len(found) == 1 else f"[{i}]", (buffer, *one)) for i, one in enumerate(found)]
    def free(self, name):
        """An id that gives way to those that are there."""
        ids = {node.id for node in self.nodes}
        return next(one for one in itertools.chain([name], (f"{name}#{i}" for i in itertools.count(1))) if one not in ids)
    def guard(self, path, first, carry, until, every, names):
        """A loop that ends within another: its nodes run by a flag that a map behind them clears, and copies carry."""
        if self.buffers[until].name in self.unclear:
            self.buffers[until].kind = "input"
        (number, times, index), nodes, where = path[-1], self.nodes[first:], len(self.loops)
        around = self.around(nodes, {b for pair in carry for b in pair})
        going = self.beside(until, "going", {"dtype": "i32", "shape": [1], "init": 1})
        for prev, after in carry:
            for (text, into), (_, out) in zip(self.pieces(prev), self.pieces(after)):
                node = Node({"id": self.free(f"carry.{self.buffers[after].name}{text}"), "copy": {}}, len(self.nodes), names, where, path)
                node.joined, node.flags = [("read", out), ("write", into)], [*around]
                self.nodes.append(node)
            self.handed.append(Handed(number, path, prev, after, (going, names), around, self.nodes[first:], [*around]))
        for flags in [node.flags for node in self.nodes[first:]] + [one.flags for one in self.handed if one.number > number]:
            flags.append((going, names))
        self.going.add(self.of[going])
        name = self.buffers[until].name
        asks = {"id": self.free("until." + name), "map": {"going": "select(it == last, 1, select(rest == 0, going * (flag == 0), going))"},
                "args": {"going": going, "flag": name, "last": times - 1, "it": index, "rest": f"({index} + 1) % {every}"}}
        self.nodes.append(Node(asks, len(self.nodes), names, where, path))
        self.nodes[-1].flags = [*around]
        for one in self.handed:
            if one.number == number:
                one.nodes.append(self.nodes[-1])
    def around(self, nodes, carried):
        """[the one flag that all nodes of a loop have first and that none of them writes], or []."""
        clears = lambda node: not node.flags and node.kind == "fill" and all(
            self.buffers[b].kind == "temp" and not self.buffers[b].output and not self.buffers[b].external and b not in carried for _, (b, *_) in self.given(node))
        all_flags = [node.flags for node in nodes if not clears(node)]
        if not all(all_flags) or not all_flags:
            return []
        flag = self.regions(*all_flags[0][0])
        alike = all(self.regions(*one[0]) == flag for one in all_flags) and flag[0][0] not in carried | self.going
        return all_flags[0][:1] if alike and not any(b == flag[0][0] and mode != "read" for node in nodes for mode, (b, *_) in self.given(node)) else []
    def run(self, first, last, loops, entry, held):
        """A graph that has executed nodes [first, last) in adding order, with each of the (loop, iterations) among them unrolled.
        At first name i means value entry[i], of which the bytes held[i] hold something."""
        self = copy.copy(self)
        self.values, self.means, self.final = [(i, 0) for i in range(len(entry))], list(entry), [Bytes() for _ in entry]
        self.tasks, self.by_key = [], {}
        for i, ranges in enumerate(held):
            for low, high in ranges if entry[i] == i else []:
                self.final[i].put(low, high, ("init", i), 0)
        for loop, times in loops:
            self.add(first, loop.first, 0)
            self.loop(loop, times)
            first = loop.last
        self.add(first, last, 0)
        return self
    def begin(self):
        """What `run` takes when a start begins."""
        return list(range(len(self.buffers))), [[(0, b.at(b.rows))] if b.kind != "temp" else [] for b in self.buffers]
    def whole(self):
        return self.run(0, len(self.nodes), [(loop, loop.times) for loop in self.loops], *self.begin())
    def loop(self, loop, times, turn=0):
        """Carrying is renaming: `next` is a value of its own in every later iteration. `turn`: that of the loop around it."""
        for i in range(loop.counted(times)):
            for prev, after in loop.carry:
                self.means[prev] = self.means[after if i else prev]
                if self.means[prev] == self.means[after]:
                    self.means[after] = len(self.values)
                    self.values.append((after, sum(buffer == after for buffer, _ in self.values)))
                    self.final.append(Bytes())
            first = loop.first
            for one in loop.inner:
                self.add(first, one.first, turn * times + i)
                self.loop(one, one.times, turn * times + i)
                first = one.last
            self.add(first, loop.last, turn * times + i)
        for prev, after in loop.carry if times else []:
            self.means[prev] = self.means[after]
    def add(self, first, last, iteration):
        for node in self.nodes[first:last]:
            t = self.by_key[node.index, iteration] = len(self.tasks)
            accesses = [(mode, self.means[b], *rows) for mode, (b, *rows) in self.accesses(node)]
            at = [(value, self.buffer(value).at(x), self.buffer(value).at(y)) for _, value, x, y in accesses]
            self.tasks.append(Task(node, iteration, accesses, [self.final[value].get(low, high) for value, low, high in at]))
            for k, ((mode, *_), (value, low, high)) in enumerate(zip(accesses, at)):
                self.change(self.final[value], mode, self.buffer(value).dtype, low, high, 0, (t, k), identity(mode, self.buffer(value).dtype))
    def change(self, into, mode, dtype, low, high, start, access, nothing=None):
        """An access changes bytes [low, high) of rows that begin at `start`."""
        if mode in REDUCTIONS:
            into.add(low, high, start, mode, access, nothing)
        elif mode != "read":
            into.put(low, high, self.tasks[access[0]].node.written(access, dtype), start)
    def left(self):
        """What `run` takes after this: names that mean one value, and bytes that hold something."""
        return [self.means.index(one) for one in self.means], [[piece[:2] for piece in self.final[one]] for one in self.means]
    def found(self):
        """(mode, value, what it finds) of all accesses."""
        return [(mode, value, found) for t in self.tasks for (mode, value, *_), found in zip(t.accesses, t.found)]
    def adds(self):
        """Which of the bytes that each contribution adds to hold something."""
        return [held_ends(found) for mode, _, found in self.found() if mode in REDUCTIONS]
    def covered(self, value):
        """Whether all bytes of a value were written in this run."""
        b = self.buffer(value)
        return all(content and content[0] != "init" for _, _, content, _ in self.final[value].get(0, b.at(b.rows)))
    def accesses(self, node):
        """(mode, (buffer, first row, last row)) of a node, in order."""
        found = self.given(node)
        if node.when:  # It may leave alone what it writes, unless nodes of the same flag, or of flags within, alone know it; it reads its flag last.
            flag = self.regions(*node.when)
            found = [("readwrite" if mode == "write" and self.closed.get(one[0]) != flag else mode, one) for mode, one in found]
            found += [("read", one) for one in flag]
        return found
    def under_one_flag(self):
        """The temp buffers that only nodes with one flag know, or flags that are within it, and the flag: where nothing writes it meanwhile, from
        the first of them, and of the fills of flags within, to the last, and in all of the loops around some of them that are within those
        around all."""
        every, pending = [], [*self.loops]
        while pending:
            every.append(pending.pop())
            pending += every[-1].inner
        carried = {b for loop in every for pair in loop.carry for b in pair}
        apart = carried | {loop.until for loop in every}
        users, writes = {}, {}
        for node in self.nodes:
            flag = self.regions(*(node.when or node.meets)) if node.when or node.meets else None
            for mode, (b, *_) in self.given(node):
                users.setdefault(b, {})[node.index] = flag
                if mode != "read":
                    writes.setdefault(b, []).append(node.index)
            for b, *_ in flag or []:
                users.setdefault(b, {})[node.index] = None
        inner = {b for b, one in enumerate(self.buffers) if one.kind == "temp" and not one.output and not one.external and b not in apart}
        within = {b: one for b, one in ((b, self.within(b, writes.get(b), users)) for b in inner & set(users)) if one}
        found = {}
        for b, of in users.items():
            if b not in inner or None in of.values():
                continue
            chains = [self.chain(flag, within) for flag in of.values()]
            flag = next((one for one in chains[0] if all(one in chain for chain in chains)), None)
            if flag is None:
                continue
            known = {*of} | {within[one[0][0]][1] for chain in chains for one in chain[:chain.index(flag)]}
            paths = [[number for number, *_ in self.nodes[i].path] for i in known]
            deep = next((k for k in range(len(paths[0])) if any(path[:k + 1] != paths[0][:k + 1] for path in paths)), len(paths[0]))
            inside = {tuple(path[:deep + 1]) for path in paths if len(path) > deep}
            near = [i for i, node in enumerate(self.nodes) if i in known or tuple(number for number, *_ in node.path)[:deep + 1] in inside]
            if flag[0][0] not in carried and not any(near[0] <= i <= near[-1] for i in writes.get(flag[0][0], [])):
                found[b] = flag
        return found
    def within(self, b, written, users):
        """(the flag that a buffer is within, its fill): one element that a fill with 0 comes first to, and then nodes with that flag alone write."""
        one, first = self.buffers[b], self.nodes[written[0]] if written else None
        if not first or one.tiles or one.at(one.rows) != SIZES[one.dtype] or first.kind != "fill" or first.when or min(users[b]) < first.index:
            return None
        flags = [self.regions(*self.nodes[i].when) if self.nodes[i].when else None for i in written[1:]]
        same = flags and flags[0] and flags[0][0][0] != b and all(flag == flags[0] for flag in flags)
        return (flags[0], first.index) if same and evaluate(first.form["fill"].get("value"), first.names) == 0 else None
    @staticmethod
    def chain(flag, within):
        """A flag, the one that it is within, and so on: their fills come one behind the other."""
        found = [flag]
        while (here := within.get(found[-1][0][0])) and not (here[0][0][0] in within and within[here[0][0][0]][1] >= here[1]):
            found.append(here[0])
        return found
    def given(self, node):
        """The same, as if the node had no `when`."""
        if node.joined is not None:
            return node.joined
        form, names = node.form, node.names
        ends = form if node.kind == "collective" else form.get(node.kind)
        if node.kind in ("copy", "fill", "collective"):
            found = self.referred(ends.get("from", ends.get("in", [])), names, "read") + self.referred(ends.get("to", ends.get("out")), names, "write")
        else:
            name = form.get("kernel", form.get("host"))
            formulas = form.get("map", form.get("reduce"))
            maps = [one for one in self.arguments(formulas) if one[0] in form["args"] and self.is_region(form, formulas, one[0])] if formulas else []
            if "work" not in form and not formulas and name not in self.own and name not in KERNELS:
                raise Unread(f"the kernel {name!r}")
            own = [(a["name"], listed(a["access"])[0]) for a in self.own.get(name, {}).get("args", []) if "access" in a]
            lists = KERNEL_LISTS.get(name, ()) if name in KERNELS else [a["name"] for a in self.own.get(name, {}).get("args", []) if a.get("list")]
            found = [(form.get("access", {}).get(arg, mode), self.each(self.regions(form["args"][arg], names)) if arg in lists else self.regions(form["args"][arg], names))
                     for arg, mode in ([] if "work" in form else maps if formulas else own or KERNELS[name]) if arg in form["args"]]  # Some may be left out.
            reads, writes = self.referred(form.get("reads", []), names, "read"), self.referred(form.get("writes", []), names, "write")
            both = [region for _, region in reads if ("write", region) in writes or ("readwrite", region) in writes]
            found += [("readwrite" if region in both else "read", region) for _, region in reads]
            found += [(mode, region) for mode, region in writes if mode not in ("write", "readwrite") or region not in both]
        return [(mode, one) for mode, parts in found for one in parts]
    def arguments(self, formulas):
        """The arguments of a map or reduce node, in order, and how it accesses those that are regions."""
        names = [[name for name in re.findall(r"\d[\w.]*|[A-Za-z_]\w*", text) if not name[0].isdigit()] for text in formulas.values()]
        order = dict.fromkeys(itertools.chain(*([given] + one for given, one in zip(formulas, names))))
        return [(arg, "read" if arg not in formulas else "readwrite" if any(arg in one for one in names) else "write") for arg in order]
    def is_region(self, form, formulas, arg):
        """An argument of such a node begins with the name of a buffer, or is a number."""
        text = form["args"][arg]
        name = re.match(r"\s*(?:clamp\()?([^\[\]{}()~*:,\s]*)\s*(.?)", text) if isinstance(text, str) else None
        return arg in formulas or name is not None and (name[2] in tuple("[{~") or name[2] in ("", ")") and name[1] in self.of)
    def referred(self, items, names, mode):
        """(mode, regions) of each reference of a list."""
        items = [(item, item) if isinstance(item, dict) else ({}, {"ref": item}) for item in listed(items)]
        keys = [(form, item, next(k for k in ("ref",) + MODES if k in item)) for form, item in items]
        return [(mode if key == "ref" else key, self.regions(item[key], one)) for form, item, key in keys for one in turns(form, names)]
    def each(self, regions):
        """Of tiles one region for each, as an argument that takes a list is given them."""
        return [(b, row, row + 1) for b, first, last in regions for row in range(first, last)] if regions and self.buffers[regions[0][0]].tiles else regions
    def regions(self, text, names):
        """[(buffer, first row, last row)] of a reference: of tiles one for each run that lies together."""
        if not isinstance(text, str):
            raise Unread("a list of references in one argument")
        text, clamp = inside_clamp(text)
        name, brackets, rows, halo = REGION.fullmatch(text).groups()
        buffer, brackets = self.of[name.strip()], re.findall(r"\[([^\]]*)\]", brackets)
        b = self.buffers[buffer]
        first, last = 0, b.rows
        if b.tiles and brackets:
            ends = [(0, n) if one.strip() == "*" else self.range(one, names, n, clamp) for one, n in itertools.zip_longest(brackets, b.tiles, fillvalue="*")]
            number = lambda index: functools.reduce(lambda all, one: all * one[1] + one[0], zip(index, b.tiles), 0)
            buffer = self.with_halo(buffer, halo, names) if halo else buffer
            every = [number(one) for one in itertools.product(*(range(*one) for one in ends))]
            starts = [one for one in every if one - 1 not in every]
            return [(buffer, one, next(i for i in itertools.count(one) if i not in every)) for one in starts] or [(buffer, 0, 0)]
        elif brackets:
            first, last = (b.cuts[i] for i in self.range(brackets[0], names, len(b.cuts) - 1, clamp))
        elif rows is not None:
            first, last = self.range(rows, names, b.rows, clamp)
        if halo and first < last:
            widths = numbers(halo, names)
            first, last = max(0, first - widths[0]), min(b.rows, last + widths[-1])
        return [(buffer, first, last)]
    def with_halo(self, source, halo, names):
        """The buffer that has the tiles of `source` with a halo; itself where there is nothing around any."""
        b, sides = self.buffers[source], [numbers(one, names) for one in split_at(halo, ",")]
        sides = sides * len(b.tiles) if len(sides) == 1 else sides + [(0, 0)] * (len(b.tiles) - len(sides))
        sides = tuple((one[0], one[-1]) if p > 1 else (0, 0) for one, p in zip(sides, b.tiles))
        if not any(map(any, sides)):
            return source
        if (source, sides) not in self.halos:
            even = len({width for one in sides for width in one}) == 1
            ending = str(sides[0][0]) if even else "_".join(f"{x}-{y}" for x, y in sides)
            boxes = Buffer("", {"dtype": b.dtype, "shape": b.whole, "tiles": b.tiles, "halo": sides}, names, {})
            boxes.edge = [*itertools.accumulate((sum(size for _, size in boxes.pieces(t)) for t in range(boxes.rows)), initial=0)]
            edges = Buffer("", {"dtype": b.dtype, "shape": boxes.edge[-1:]}, names, {})
            for one, what in ((boxes, "halo"), (edges, "edges")):
                one.name = f"{b.name}.{what}{ending}"
                while one.name in self.of:
                    one.name += "_"
                self.of[one.name] = len(self.buffers)
                self.buffers.append(one)
            self.halos[source, sides] = len(self.buffers) - 2
        return self.halos[source, sides]
    def range(self, text, names, size, clamp):
        text, inner = inside_clamp(text)
        ends, clamp = numbers(text, names), clamp or inner
        if len(ends) == 1:
            a = min(max(ends[0], 0), size - 1) if clamp else ends[0]
            return a, a + 1
        first = min(max(ends[0], 0), size)
        return [first, max(first, min(ends[1], size))] if clamp else ends
    def named(self, key, node):
        """The tasks that the `after`, `with` or `apart` of a node names."""
        names = listed(node.form.get(key, []))
        found = {i for name in names for i in [n.index for n in self.nodes if n.id == expand(name, node.names)] or self.families.get(name, [])}
        return [i for i, t in enumerate(self.tasks) if t.node.index in found]
    def buffer(self, value):
        return self.buffers[self.values[value][0]]


# ---- nodes of several flags, and collectives with one ----

# A pair that is carried by copies: its loop and this one's flag, that of a `when` around it, its nodes; what its first copies run by.
Handed = namedtuple("Handed", "number path prev next going around nodes flags")

def overlaps(written, first, last):
    """Whether all of the rows were written."""
    for low, high in sorted(written):
        first = max(first, high) if low <= first else first
    return first >= last

class Flags:
    """Makes nodes of several flags nodes of one; loops that end within others begin, and collectives hand on what they give:
    docs/graph-format.md, "Nodes that run by a flag" and "Loops within loops"."""
    def __init__(self, graph):
        self.g, self.joint, self.ids = graph, {}, {node.id for node in graph.nodes}
        self.begins, self.ahead, self.behind, self.added = {}, {}, {}, []  # New nodes: by number of a loop, and by index of a node.
        self.every = [one for loop in graph.loops for one in inside(loop)]
        self.where = {one.number: one for one in self.every}
        self.written = lambda node: {b for mode, (b, *_) in self.g.given(node) if mode != "read"}
    def add(self):
        g, old = self.g, [*self.g.nodes]
        self.old = old
        empty = [self.empties(one) for one in g.handed]
        for one, rows in zip(g.handed, empty):
            if self.is_known_outside(one):
                self.begin(one, rows)
        self.joint = {}
        for i, node in enumerate(old):
            if i and node.path != old[i - 1].path:
                named = {b for loop in self.every for b in [*itertools.chain(*loop.carry), loop.until]}
                self.joint = {key: one for key, one in self.joint.items() if not {key[0][0][0], key[1][0][0]} & named}
            for one, rows in zip(g.handed, empty):
                if self.where[one.number].first == i:
                    self.fill(one, rows, i)
            node.flags = [self.join(node.flags, node, self.ahead.setdefault(i, []))] if node.flags else []
            written = self.written(node)
            self.joint = {key: one for key, one in self.joint.items() if not {key[0][0][0], key[1][0][0]} & written}
        for node in [*old, *self.added]:
            node.when = node.flags[0] if node.flags else None
        for i, node in enumerate(old):
            if node.kind == "collective" and node.when:
                node.when, node.meets = None, node.when
        for i, node in enumerate(old):
            if node.meets:
                self.hand_over(node, self.behind.setdefault(i, []))
        self.order()
    def node(self, like, text, form, accesses, to, flag=None):
        """A new node in the loops of another, behind those of a list."""
        name = next(one for one in itertools.chain([text], (f"{text}#{i}" for i in itertools.count(1))) if one not in self.ids)
        self.ids.add(name)
        made = Node({"id": name, **form}, 0, like.names, like.loop, like.path)
        made.id, made.joined, made.when, made.flags = name, accesses, flag, [flag] if flag else []
        to.append(made)
        self.added.append(made)
    def join(self, flags, like, to):
        """One flag that is set where all are: the outer ones are joined first."""
        by = flags[-1]
        for inner in flags[-2::-1]:
            key = (tuple(self.g.regions(*by)), tuple(self.g.regions(*inner)), tuple(number for number, *_ in like.path))
            if key not in self.joint:
                outer, (buffer, *_) = by, key[1][0]
                name = self.g.beside(buffer, "both", {"dtype": self.g.buffers[buffer].dtype, "shape": [1]})
                one = (self.g.of[name], 0, 1)
                self.node(like, "clear." + name, {"fill": {"to": name, "value": 0}}, [("write", one)], to)
                self.node(like, "set." + name, {"copy": {}}, [("read", key[1][0]), ("write", one)], to, outer)
                self.joint[key] = (name, like.names)
            by = self.joint[key]
        return by
    def empties(self, one):
        """The rows of `next` that nodes of the loop add to ahead of all that writes them: [(rows, how)]."""
        written, found, g = [], [], self.g
        always = g.going
        for node in one.nodes:
            for mode, (b, first, last) in g.given(node):
                own = all(g.regions(*flag)[0][0] in always or one.around and g.regions(*flag) == g.regions(*one.around[0]) for flag in node.flags)
                is_new = mode == "write" and own
                if b != one.next or not is_new and overlaps(written, first, last):
                    continue
                need(is_new or mode in REDUCTIONS, "form", f"{node.id}: it counts on what is carried by copies")
                found += [] if is_new else [((b, first, last), mode)]
                written.append((first, last))
        return found
    def is_known_outside(self, one):
        b, loop = self.g.buffers[one.next], self.where[one.number]
        named = {i for other in self.every for i in [*itertools.chain(*other.carry), other.until]}
        users = [*self.old[:loop.first], *self.old[loop.last:], *self.added]
        return b.kind != "temp" or b.output or b.external or one.next in named or any(i == one.next for node in users for _, (i, *_) in self.g.given(node))
    def begin(self, one, rows):
        """`next` begins as a copy of `prev`."""
        self.joint, to = {}, self.begins.setdefault(one.number, [])
        like = Node({"id": ""}, 0, one.nodes[0].names, one.nodes[0].loop, one.path[:-1])
        if one.flags and rows and not one.around:
            self.g.buffers[one.next].kind = "input"
        by = self.join(one.flags, like, to) if one.flags else None
        for (text, into), (_, out) in zip(self.g.pieces(one.next), self.g.pieces(one.prev)):
            self.node(like, f"begin.{self.g.buffers[one.next].name}{text}", {"copy": {}}, [("read", out), ("write", into)], to, by)
    def fill(self, one, rows, first):
        """What is added to without having been written begins each iteration with what adds nothing."""
        nested = next((loop.number for loop in self.where[one.number].inner if loop.first == first), None)
        to = self.ahead.setdefault(first, []) if nested is None else self.begins.setdefault(nested, [])
        like = Node({"id": ""}, 0, one.nodes[0].names, one.nodes[0].loop, one.path)
        for region, mode in rows:
            by = self.join([*one.around, one.going, *one.flags[len(one.around):]], like, to)
            b = self.g.buffers[one.next]
            nothing = identity(mode, b.dtype)[2]
            form = {"fill": {"to": b.name, "value": nothing}} if abs(nothing) < math.inf else {"map": {"y": f"{math.copysign(1, nothing)} / 0.0"}, "args": {"y": b.name}}
            self.node(like, "empty." + b.name, form, [("write", region)], to, by)
    def is_for_flag(self, node, buffer, flag):
        """The collective alone writes the buffer, and all others read it behind it in the same iteration, by the same flag."""
        b, changed = self.g.buffers[buffer], False
        if b.kind != "temp" or b.output or b.external or any(buffer in [*itertools.chain(*loop.carry), loop.until] for loop in self.every):
            return False
        for i, other in enumerate([*self.old, *self.added]):
            accesses = self.g.given(other)
            changed = changed or i > node.index and any(x == flag[0][0] and mode != "read" for mode, (x, *_) in accesses)
            known = [mode for mode, (x, *_) in accesses if x == buffer]
            here = other.when or other.meets
            alike = i > node.index and other.path == node.path and not changed and here and self.g.regions(*here) == flag
            if any(mode != ("write" if other is node else "read") for mode in known) or known and other is not node and not alike:
                return False
        return True
    def hand_over(self, node, to):
        """What a collective gives goes to a buffer of its own, and from there by the flag to where it belongs."""
        g, flag, found, last = self.g, self.g.regions(*node.meets), self.g.given(node), None
        for k, (mode, (buffer, first, end)) in enumerate(found):
            b = g.buffers[buffer]
            if mode == "read" or self.is_for_flag(node, buffer, flag):
                continue
            whole = b.auto and (first, end) != (0, b.rows) or b.auto and len(b.cuts) == 2
            if whole and last and last[0] == buffer:
                name = last[1]
            elif whole:
                name = g.beside(buffer, "met", {"dtype": b.dtype, "shape": b.shape, "split": {"auto": len(b.cuts) - 1}}, g.bounds)
            else:
                name = g.beside(buffer, "met", {"dtype": b.dtype, "shape": [(b.at(end) - b.at(first)) // SIZES[b.dtype]]})
            last = (buffer, name) if whole else None
            met = (g.of[name], first, end) if whole else (g.of[name], 0, g.buffers[g.of[name]].rows)
            found[k] = ("write", met)
            node.joined = [*found]
            self.node(node, "when." + name, {"copy": {}}, [("read", met), ("write", (buffer, first, end))], to, node.meets)
    def order(self):
        g, nodes, starts, begins, numbers = self.g, [], [], {}, []
        loops = sorted((one for one in self.every if one.number not in {loop.number for loop in g.loops}), key=lambda one: one.number)
        for i in range(len(self.old) + 1):
            starts.append(len(nodes))
            while loops and loops[0].first == i:
                nodes += self.begins.get(loops[0].number, [])
                begins[loops.pop(0).number] = len(nodes)
            if i < len(self.old):
                nodes += self.ahead.get(i, [])
                numbers.append(len(nodes))
                nodes += [self.old[i], *self.behind.get(i, [])]
        for loop in g.loops:
            begins[loop.number] = starts[loop.first]
        moved = lambda one: one._replace(first=begins[one.number], last=max(begins[one.number], starts[one.last]), inner=[moved(other) for other in one.inner])
        g.loops, g.nodes = [moved(one) for one in g.loops], nodes
        g.families = {name: [numbers[i] for i in of] for name, of in g.families.items()}
        for i, node in enumerate(nodes):
            node.index = i

# ---- tiles with a halo ----

def texts_of(form):
    """All texts in it, in order."""
    below = form.values() if isinstance(form, dict) else form if isinstance(form, list) else ()
    return [form] if isinstance(form, str) else [text for one in below for text in texts_of(one)]

class Exchanges:
    """The nodes that bring A[i][j]~1 together: docs/graph-format.md, "Tiles with a halo"."""
    def __init__(self, graph):
        self.g, self.made, self.packed, self.unpacked, self.ids = graph, [], set(), set(), {node.id for node in graph.nodes}
        self.source = {boxes: source for (source, _), boxes in graph.halos.items()}
        self.loops = [one for loop in graph.loops for one in inside(loop)]
    def add(self):
        begins, numbers, g = [], [], self.g
        for node in g.nodes:
            begins.append(len(self.made))
            if any(node.index in (loop.first, loop.last) for loop in self.loops):
                self.packed, self.unpacked = set(), set()
            accesses = g.accesses(node)
            for mode, (buffer, first, last) in accesses:
                for tile in range(first, last) if mode == "read" and buffer in self.source else ():
                    self.unpack(node, buffer, tile)
            for mode, (buffer, first, last) in accesses:
                if mode != "read":
                    self.write(node, buffer, range(first, last))
            numbers.append(len(self.made))
            self.made.append(node)
        begins.append(len(self.made))
        moved = lambda loop: loop._replace(first=begins[loop.first], last=begins[loop.last], inner=[moved(one) for one in loop.inner])
        g.loops, g.nodes = [moved(one) for one in g.loops], self.made
        g.families = {name: [numbers[i] for i in nodes] for name, nodes in g.families.items()}
        for i, node in enumerate(g.nodes):
            node.index = i
    def node(self, reader, what, buffer, tile, accesses, more):
        index = [*itertools.product(*map(range, self.g.buffers[buffer].tiles))][tile]
        name = f"{what}.{self.g.buffers[buffer].name}[{','.join(map(str, index))}]"
        name = next(one for one in itertools.chain([name], (f"{name}#{i}" for i in itertools.count(1))) if one not in self.ids)
        self.ids.add(name)
        made = Node({"id": name, "kernel": "halo_" + what, **more}, 0, reader.names, reader.loop, reader.path)
        made.id, made.joined = name, accesses
        self.made.append(made)
    def unpack(self, reader, buffer, tile):
        b, source = self.g.buffers[buffer], self.source[buffer]
        if (buffer, tile) in self.unpacked:
            return
        self.unpacked.add((buffer, tile))
        for other, _ in b.pieces(tile):
            self.pack(reader, buffer, other)
        reads = [("read", (source, tile, tile + 1)), ("read", (buffer + 1, b.edge[tile], b.edge[tile + 1]))]
        on = {"on": reader.form["on"]} if isinstance(reader.form.get("on"), str) else {}
        self.node(reader, "unpack", buffer, tile, reads + [("write", (buffer, tile, tile + 1))], on)
    def pack(self, reader, buffer, tile):
        b = self.g.buffers[buffer]
        if (buffer, tile) in self.packed:
            return
        self.packed.add((buffer, tile))
        writes = []
        for to in range(b.rows):
            at = b.edge[to]
            for other, size in b.pieces(to):
                writes += [("write", (buffer + 1, at, at + size))] if other == tile else []
                at += size
        self.node(reader, "pack", buffer, tile, [("read", (self.source[buffer], tile, tile + 1))] + writes, {})
    def write(self, node, buffer, tiles):
        """What nodes have packed or unpacked and is written now is old."""
        carried = {i for loop in self.loops for pair in loop.carry for i in pair}
        for boxes, source in self.source.items():
            pair = any({source, buffer} == {*pair} and loop.first <= node.index < loop.last for loop in self.loops for pair in loop.carry)
            old = range(self.g.buffers[boxes].rows) if {source, buffer} <= carried and source != buffer and not pair else tiles if source == buffer else ()
            self.packed -= {(boxes, one) for one in old}
            around = {t for t in range(self.g.buffers[boxes].rows) if t in old or any(one in old for one, _ in self.g.buffers[boxes].pieces(t))}
            self.unpacked -= {(boxes, one) for one in around}

# ---- nodes in one ----

PLAIN = {"id", "for", "if", "map", "reduce", "args", "access", "on"}
ELEMENTWISE = {"add": "z = x + y", "axpby": "y = a * x + b * y", "bias_add": "y = x + b", "copy": "y = x", "mul": "z = x * y", "relu": "y = select(x > 0, x, 0)",
               "relu_grad": "dx = select(x > 0, dy, 0)", "saxpy": "y = a * x + y", "scale": "y = a * x", "sgd_update": "w = w - lr * g"}
REDUCING = re.compile(r"\s*(sum|mean|min|max|any|all|argmin|argmax)\s*\(")

class Joining:
    """Maps that a schedule carries out in one, as "a+b": docs/graph-format.md, "Maps that become one". What may be one is judged
    where automatic splits have equal parts."""
    def __init__(self, graph, even):
        self.g, self.even, self.real = graph, even, {}
        self.known = {n.id: n for n in even.nodes}
    def pieces(self, name):
        """The nodes that an id names, or None."""
        if name in self.known:
            return [self.known[name]]
        ends = [i for i, c in enumerate(name) if c == "+" and name[:i] in self.known]
        found = ([self.known[name[:i]]] + rest for i in ends for rest in [self.pieces(name[i + 1:])] if rest)
        return next(found, None)
    def join(self, ids):
        g, groups = self.even, [self.pieces(name) for name in ids]
        if None in groups or all(len(one) == 1 for one in groups):
            return  # Then the nodes are those of the graph, or rule form says that they are not.
        need(sorted(n.index for one in groups for n in one) == [*range(len(g.nodes))], "form", "/nodes: a node twice, or not at all")
        self.where = {n.index: k for k, one in enumerate(groups) for n in one}
        for one in groups:
            self.write_out(one)
        self.read()
        self.keep_order(groups)
        made = [self.joined(name, one) if len(one) > 1 else self.g.nodes[one[0].index] for name, one in zip(ids, groups)]
        self.g.loops = [self.moved(one, groups) for one in g.loops]
        self.g.families = {name: [self.where[i] for i in nodes] for name, nodes in g.families.items()}
        self.g.nodes = [copy.copy(one) for one in made]
        for i, one in enumerate(self.g.nodes):
            one.index = i
    def write_out(self, group):
        """Kernels of the library beside maps are their formulas."""
        kernels = [n for n in group if n.form.get("kernel") in ELEMENTWISE and n.form["kernel"] not in self.even.own]
        for n in kernels if 1 < len(group) != len(kernels) else []:
            to, text = ELEMENTWISE[n.form["kernel"]].split(" = ")
            n.form = {key: what for key, what in n.form.items() if key != "kernel"} | {"map": {to: text}}
    def read(self):
        """By buffer: (node, mode, first row, last row); tiles of kernels one by one."""
        self.found = [[] for _ in self.even.buffers]
        for n in self.even.nodes:
            for mode, (buffer, first, last) in self.even.accesses(n):
                single = self.even.buffers[buffer].tiles and n.kind in ("launch", "host")
                self.found[buffer] += [(n, mode, i, i + 1) for i in range(first, last)] if single else [(n, mode, first, last)]
        texts = [one for n in self.even.nodes for one in re.findall(r'"([^"]*)"', json.dumps(n.form))]
        named = [one for one in map(REGION.fullmatch, (inside_clamp(one)[0] for one in texts)) if one and one[1].strip() in self.even.of]
        self.loose = {self.even.of[one[1].strip()] for one in named if one[3] or one[4]}
        loops = [one for loop in self.even.loops for one in inside(loop)]
        self.carried = {i for loop in loops for pair in loop.carry for i in pair}
        self.watched = {loop.until for loop in loops}
        self.pairs = [(loop, {*pair}) for loop in loops for pair in loop.carry]
    def keep_order(self, groups):
        """What may not be swapped is not, and in one node is element by element."""
        shared = [self.found[i] for i in range(len(self.found)) if i not in self.carried] + [[(*one, i) for i in self.carried for one in self.found[i]]]
        for found in shared:
            for one, other in itertools.combinations(sorted(found, key=lambda x: x[0].index), 2):
                (m, mode, a, b, *x), (n, another, c, d, *y) = one, other
                if m is n or mode == another == "read" or not self.meet(m, x, y, a, b, c, d):
                    continue
                i, k = self.where[m.index], self.where[n.index]
                need(i <= k, "node", f"{m.id} comes behind {n.id}")
                single = (a, b, x) == (c, d, y) and {mode, another} <= {"read", "write", "readwrite"}
                need(i != k or single, "node", f"{m.id} and {n.id} are in one, and share rows")
    def meet(self, node, x, y, a, b, c, d):
        if x == y:
            return max(a, c) < min(b, d)
        return not any(pair == {*x, *y} and loop.first <= node.index < loop.last for loop, pair in self.pairs)
    def moved(self, loop, groups):
        places = {self.where[i] for i in range(loop.first, loop.last)}
        first, last = min(places), max(places) + 1
        inside_only = all(loop.first <= n.index < loop.last for k in places for n in groups[k])
        need(inside_only and len(places) == last - first, "node", "nodes leave their loop, or others come into it")
        return loop._replace(first=first, last=last, inner=[self.moved(one, groups) for one in loop.inner])
    def needed(self, group, buffer, first, last):
        b, found = self.even.buffers[buffer], self.found[buffer]
        ranges = sorted({one[2:] for one in found})
        apart = all(one[1] <= other[0] for one, other in zip(ranges, ranges[1:]))
        others = any(one[2:] == (first, last) and one[0] not in group for one in found)
        loose = b.auto and buffer in self.loose
        return b.output or b.kind != "temp" or b.external or buffer in self.carried | self.watched or not apart or others or loose
    def shape(self, region):
        buffer, first, last = region[0]
        b = self.even.buffers[buffer]
        return b.shape[first] if b.tiles else (last - first, *b.shape[1:])
    def region(self, node, arg):
        """(region, how it is named), or None of a number."""
        text, formulas = node.form["args"][arg], node.form.get("map", node.form.get("reduce"))
        if not self.even.is_region(node.form, formulas, arg):
            return None
        _, brackets, _, halo = REGION.fullmatch(inside_clamp(text)[0]).groups()
        named = [numbers(inside_clamp(one)[0], node.names) for one in re.findall(r"\[([^\]]*)\]", brackets)]
        named = [one if len(one) > 1 else one + [one[0] + 1] for one in named]  # `x[2]` is `x[2:3]`.
        one, = self.even.regions(text, node.names)
        found = one, "" if self.even.buffers[one[0]].tiles else str(named), str(halo and numbers(halo, node.names))
        self.real[found], = self.g.regions(text, node.names)
        return found
    def joined(self, name, group):
        """One node: what it reads is what its formulas name when each result stands for its formula."""
        holds = all(set(n.form) <= PLAIN and not n.when and n.path == group[0].path and n.form.get("on") == group[0].form.get("on") for n in group)
        named = {i for n in self.even.nodes for key in ("after", "with", "apart") for one in listed(n.form.get(key, [])) for i in
                 ([self.known[expand(one, n.names)].index] if expand(one, n.names) in self.known else self.even.families.get(one, []))}
        need(holds and not named & {n.index for n in group}, "node", f"{name} cannot be one")
        need(sum("reduce" in n.form for n in group) <= 1, "node", f"{name} reduces twice")
        value, results, writers, shapes = {}, {}, {}, set()
        for n in sorted(group, key=lambda n: n.index):
            results[n.index], args = [], {arg: self.region(n, arg) for arg in n.form["args"]}
            for arg, text in n.form.get("map", n.form.get("reduce")).items():
                words = [args[one] for one in re.findall(r"\d[\w.]*|[A-Za-z_]\w*", text) if args.get(one)]
                reads = [one for word in words for one in value.get(word, [word])]
                reduces = "reduce" in n.form and REDUCING.match(text)
                results[n.index].append((args[arg], reads, n.form.get("access", {}).get(arg, "write") if reduces else None))
                shapes |= {self.shape(args[arg])} if not reduces else set()
            value.update({to: reads for to, reads, mode in results[n.index] if not mode})
            writers.update({to: n.index for to, _, mode in results[n.index]})
            if "reduce" in n.form:
                sizes = [math.prod(self.shape(one)) for one in args.values() if one]
                need(max(sizes) == max(map(math.prod, shapes)), "node", f"{n.id} reduces more than {name} gives")
        need(len(shapes) == 1, "node", f"{name} gives several shapes")
        made = self.made(name, group, results, writers)
        have = [self.shape(one) for mode, one in self.stay if mode in ("read", "write", "readwrite")]
        extents = itertools.zip_longest(*(one[::-1] for one in have), fillvalue=1)
        together = tuple(next((n for n in one if n != 1), 1) for one in extents)[::-1]
        need(together in shapes or all("map" in n.form for n in group), "node", f"{name} reduces {together}, and what it was made of another shape")
        return made
    def made(self, name, group, results, writers):
        order, reads, modes = {}, set(), {}
        for n in group:  # As the id says: those that were taken in first are further behind.
            for to, read, mode in results[n.index]:
                if writers[to] != n.index or not mode and n is not group[-1] and not self.needed(group, *to[0]):
                    continue
                order.update(dict.fromkeys([to, *read]))
                reads |= {*read}
                modes[to] = mode or "write"
        joined = copy.copy(self.g.nodes[group[-1].index])
        mode = lambda one: "read" if one not in modes else "readwrite" if one in reads and modes[one] == "write" else modes[one]
        joined.id, joined.joined = name, [(mode(one), self.real[one]) for one in order]
        self.stay = [(mode(one), one) for one in order]
        kind = "reduce" if any("reduce" in n.form for n in group) else "map"
        formulas = {"": [n.form.get("map", n.form.get("reduce")) for n in group]}
        values = {f"{k}.{arg}": self.number(n, text) for k, n in enumerate(group) for arg, text in n.form["args"].items() if not self.region(n, arg)}
        halos = {f"{k}.{arg}": "~" for k, n in enumerate(group) for arg, text in n.form["args"].items() if "~" in str(text)}
        joined.form = {"id": name, kind: formulas, "args": {**values, **halos}, **({"on": joined.form["on"]} if "on" in joined.form else {})}
        return joined
    def number(self, node, text):
        turning = any(re.search(rf"\b{index}\b", str(text)) for *_, index in node.path)
        return text if turning or isinstance(text, dict) else evaluate(text, node.names)

# ---- phases ----

def held_ends(found):
    """Where bytes that hold something begin and end: between neighbours nothing does."""
    return functools.reduce(lambda ends, piece: ends ^ {*piece[:2]}, [piece for piece in found if piece[2]], set())

def inside(loop):
    """The loop and those within it."""
    return [loop] + [other for one in loop.inner for other in inside(one)]

class Phase:
    """Some nodes once, or iterations of a loop that are started again and again."""
    def __init__(self, form):
        (self.first, self.last), self.loop, self.start, self.iterations, self.starts, self.every = form
        self.looks = 0 < self.every and self.every <= self.start % self.every + self.iterations * self.starts
    def place_nodes(self, graph, node, loop, following):
        """Nodes once, from `node` on, and the loops before number `following` unrolled. Returns where the next phase begins."""
        self.loops = [(one, one.times) for one in graph.loops[loop:following]]
        right = self.first == node and loop <= following and (self.start, self.iterations, self.starts, self.every) == (0, 1, 1, 0)
        inside = all(one.last <= self.last and not one.ends() for one, _ in self.loops)
        need(right and inside, "phases", f"{self.first}:{self.last} are not the nodes from {node} to the next loop")
        return self.last, following, 0
    def place_loop(self, graph, node, loop, done):
        """So many iterations of the loop, of which `done` were before."""
        one, turns = graph.loops[loop] if self.loop == loop < len(graph.loops) else Loop(*[-1] * 8), self.iterations * self.starts
        right = (self.first, self.last, self.start, self.every) == (one.first, one.last, done, one.every)
        need(right and one.first == node < one.last and turns <= one.times - done, "phases", f"not the next iterations of loop {loop}")
        between = self.every % self.iterations == self.start % self.iterations == 0
        right = between if self.starts > 1 else self.start % one.every + self.iterations <= self.every if self.looks else True
        need(right or not self.looks, "phases", "it passes by an iteration after which its loop may end")
        self.loops = [(one, self.iterations)]
        return (one.last, loop + 1, 0) if done + turns == one.times else (node, loop, done + turns)
    def end_early(self, graph, entry, held):
        """A loop that may end after its first iteration leaves then what it leaves otherwise, as far as it matters later."""
        one, later = self.loops[0][0], [(loop, min(loop.times, 3)) for loop in graph.loops[self.loop + 1:] if loop.times]
        if self.start or not one.ends() or one.every != 1 or one.times < 2:
            return
        states = [graph.run(one.first, one.last, [(one, times)], entry, held).left() for times in (1, min(one.times, 3))]
        used = {b for node in graph.nodes[one.last:] for _, (b, *_) in graph.accesses(node)}
        used |= {b for loop, _ in later for pair in loop.carry + [(loop.until, loop.until)] for b in pair if b is not None}
        used |= {i for i, b in enumerate(graph.buffers) if b.output or b.kind == "state"}
        names = [[next(j for j in sorted(used) if means[j] == means[i]) for i in sorted(used)] for means, _ in states]
        adds = [graph.run(one.last, len(graph.nodes), later, *state).adds() for state in states]
        for k, (loop, _) in enumerate(later):
            if loop.every == 1:
                ends = [graph.run(one.last, loop.last, later[:k] + [(loop, 1)], *state) for state in states]
                adds = [[*mine, *(held_ends(g.final[g.means[after]]) for _, after in loop.carry)] for mine, g in zip(adds, ends)]
        need(names[0] == names[1] and adds[0] == adds[1], "phases", "its loop leaves other rows or names if it ends after an iteration")
    def settle(self, graph, entry, held):
        """Starts have to be alike. What differs without mattering (what `next` was, what `prev` held beyond later starts) is forgotten."""
        one = self.loops[0][0]
        need(one.times > 2, "phases", "its first start differs from the others")
        if any(entry.count(entry[name]) > 1 + (entry[prev] == entry[after]) for prev, after in one.carry for name in (prev, after)):
            raise Unread("a loop that carries what other names mean")
        later = graph.run(one.first, one.last, [(one, 2 - self.start)], entry, held).left()
        adds = [graph.run(one.first, one.last, [(one, 1)], *state).adds() for state in ((entry, held), later)]
        need(adds[0] == adds[1], "phases", "its first start adds to other rows than the others")
        if one.inner:
            last = graph.run(one.first, one.last, [(one, 1)], *later).left()
            need(last == later, "phases", "its iterations are not alike after two")
        for prev, after in one.carry:
            entry[prev] = entry[after] = min(prev, after)
            held[prev] = held[after] = [(max(a, x), min(b, y)) for a, b in held[prev] for x, y in later[1][prev] if max(a, x) < min(b, y)]
        names = [i for loop in inside(one) for pair in loop.carry for i in pair]
        need(all((entry[a] == entry[b]) == (later[0][a] == later[0][b]) for a in names for b in names), "phases", "its first start finds other names than the others")
    def walk(self, graph, entry, held):
        """Carries out a start. Returns what it leaves."""
        self.entry, self.held, g = entry, held, graph.run(self.first, self.last, self.loops, entry, held)
        self.graph, self.until, found = g, self.loops[0][0].until if self.looks else None, g.found()
        if self.looks:
            found.append(("read", g.means[self.until], g.final[g.means[self.until]].get(0, g.buffers[self.until].at(1))))
        self.touched, self.changed = {value for _, value, _ in found}, {value for mode, value, there in found if mode != "read" and there}
        self.used = {value for mode, value, there in found if mode != "write" and any(piece[2] and piece[2][0] == "init" for piece in there)}
        return g.left()
    def wants(self):
        """The names whose values before the phase are wanted: it uses them, or they pass through it."""
        passes = {self.graph.means[i] for i, one in enumerate(self.wanted) if one}
        values = self.used | {one for one in passes if one < len(self.entry) and not self.graph.covered(one)}
        return [one in values for one in self.entry]
    def kind(self, i, kept):
        """The class of a buffer in the graph of the phase; `kept`: the values that are wanted at its end."""
        value, end = self.entry[i], self.graph.means[i]
        used, changed = value in self.used, value in self.changed
        if self.starts == 1:
            found = self.held[i] and (used or value in self.touched and value in kept and not self.graph.covered(value))
            return "temp" if not found else "const" if self.graph.buffers[i].kind == "const" and not changed else "input"
        if value == end and not changed:
            return "const" if used else "temp"
        return "state" if used or end in kept else "temp"
    def derive(self):
        """The graph of the phase: its buffers have classes of their own, and names may mean another's value at first."""
        g, kept = self.graph, {self.graph.means[i] for i, one in enumerate(self.wanted) if one}
        part = [i for i, value in enumerate(self.entry) if value in self.touched or self.wanted[i] or i == self.until]
        first = lambda values, i: next(j for j in part if values[j] == values[i]) if i in part else i
        buffers, entry = [copy.copy(one) for one in g.buffers], [first(self.entry, i) for i in range(len(self.entry))]
        for i, one in enumerate(buffers):
            one.kind, one.output = self.kind(i, kept) if i in part and entry[i] == i else "temp", i == self.until
        for i in [i for i, one in enumerate(self.wanted) if one and (g.means[i] >= len(entry) or g.means[i] in self.changed)]:
            left = first(g.means, i)
            need(self.starts == 1 or buffers[left].kind == "state", "phases", "it leaves names that its first start did not find so")
            buffers[left].output, g.leaves = buffers[left].output or self.starts == 1, {*g.leaves} | ({left} if self.starts > 1 else set())
        g.buffers = buffers
        self.graph = g.run(self.first, self.last, self.loops, entry, [held if one.kind != "temp" else [] for one, held in zip(buffers, self.held)])

def phases_of(graph, forms):
    """Rule phases: the phases carry out the graph, in order. Each gets a graph of its own."""
    phases, at = [Phase(one) for one in forms], (0, 0, 0)
    for p, after in zip(phases, phases[1:] + [None]):
        following = min(len(graph.loops), after.loop if after and after.loop is not None else len(graph.loops))
        need(p.loop is not None or not at[2] and not (after and after.loop is None), "phases", "nodes once, amid a loop or twice")
        at = p.place_loop(graph, *at) if p.loop is not None else p.place_nodes(graph, *at[:2], following)
    need(at == (len(graph.nodes), len(graph.loops), 0), "phases", "the phases end before the graph does")
    state = graph.begin()
    for p in phases:
        if p.loop is not None:
            p.end_early(graph, *state)
        if p.starts > 1 and p.start < 2:
            p.settle(graph, *state)
        state = p.walk(graph, *state)
    wanted = [b.output or b.kind == "state" for b in graph.buffers]
    for i, p in reversed([*enumerate(phases)]):
        ends = [one for one in phases[i + 1:] if one.loop == p.loop] if p.looks else []
        p.wanted = [a or b for a, b in zip(wanted, ends[-1].wanted if ends else wanted)]
        wanted = p.wants()
    for p in phases:
        p.derive()
    return phases
