# SPDX-License-Identifier: Apache-2.0
"""The graph: buffers, nodes, and the order that follows from what nodes do to buffers."""
from __future__ import annotations

import ctypes
import json
import os
import reprlib
import threading
import warnings
from ctypes import byref, c_int64
from typing import TYPE_CHECKING, Any, Callable, Iterable, Mapping, NoReturn, Sequence, Union

from . import _data, _draw, _train
from . import _structs as c
from ._arrays import DTYPES, Info, dtype_of
from ._library import Owned, caller, did_you_mean, encoded, lib, made, must, strings, text_from, word
from ._structs import Access, BufferClass, Collective, ContentsKind, RegionKind
from .errors import GantryWarning, InvalidError, OutOfMemoryError, error_of, listed, whole
from ._kernels import Kernel, kernel

if TYPE_CHECKING:
    from .machine import Machine
    from .run import Run
    from .schedule import Schedule

Where = Union["Buffer", "Region"]
FilePath = Union[str, os.PathLike[str]]


def _word(kind: type[Any], what: str, word: str | int) -> int:
    """The value of an enum that a word names in lower case."""
    names = [member.name.lower() for member in kind]
    if isinstance(word, kind):
        return int(word)
    if not isinstance(word, str) or word not in names:
        near = did_you_mean(word, names) if isinstance(word, str) else ""
        raise InvalidError(f"{word!r} is no {what}{near}; there are {listed(names)}")
    return int(kind[word.upper()])


def _seed(value: Any) -> int:
    return whole("the seed", value, 0, 2**64 - 1)


def _int(what: str, value: Any) -> int:
    return whole(what, value, -2**31, 2**31 - 1)


def _real(what: str, value: Any) -> float:
    """A number that is no argument of a kernel."""
    if getattr(value, "ndim", 0) or not hasattr(value, "__float__"):
        raise InvalidError(f"{what} is {reprlib.repr(value)}; it must be a number")
    return float(value)


def _id(id: str | None) -> bytes | None:
    """The id of a node, which stands where those who pass arguments without their names put one."""
    if isinstance(id, Kernel):
        raise InvalidError("a kernel stands before the id of its node, as in g.node(kernel, \"id\", x=x, y=y)")
    if id is not None and not isinstance(id, str):
        raise InvalidError(f"the id of a node is {reprlib.repr(id)}; it must be a text, and arguments are given by name, as in x=x")
    return encoded(id)


def _number(name: str, value: Any) -> float:
    """A scalar as a double, which holds whole numbers exactly up to 2^53."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        remedy = ("; an array is what an input is bound to when the graph is called" if hasattr(value, "shape")
                  else f"; the node that is returned has a method of that name: g.node(...).{name}(...)" if hasattr(Node, name)
                  else "")
        raise InvalidError(f'argument "{name}" is {reprlib.repr(value)}; give a buffer, a region of one, or a number{remedy}') from None
    except OverflowError:
        number = float("inf")
    if isinstance(value, int) and number != value:
        raise InvalidError(f'argument "{name}" is {value}, which a double does not hold exactly; numbers that change between starts are doubles, '
                           "others may have 64 bits")
    return number


def _exact(what: str, value: Any) -> bytes | None:
    """The text of a whole number that no double is; None: a double holds it."""
    if not isinstance(value, int) or abs(value) <= 2**53:
        return None
    return str(whole(what, value, -2**63, 2**64 - 1)).encode()


def _contents(kind: ContentsKind, seed: int, **numbers: Any) -> c.Contents:
    """First and second number of what a buffer begins with, or is filled with."""
    (first, low), (second, high) = numbers.items() if len(numbers) == 2 else (*numbers.items(), ("", 0))
    contents = c.Contents(kind=kind, seed=_seed(seed), first=_real(f"the {first}", low), second=_real(f"the {second}", high))
    contents.exact[:] = [_exact(f"the {first}", low), _exact(f"the {second}", high)]
    return contents


def _param(name: str, value: Any) -> float | int:
    """A number as a text gives it: whole numbers keep all of their digits."""
    return int(value) if hasattr(value, "__index__") else _real(f'param "{name}"', value)


class Dynamic:
    """A scalar that `Run.set_scalar` may change between starts."""

    def __init__(self, value: float) -> None:
        self.value = value


class Expression:
    """A scalar as an expression over the iterations of the loops around its node: Expression("it * 2 + 1")."""

    def __init__(self, text: str) -> None:
        if not isinstance(text, str):
            raise InvalidError(f"an expression is {reprlib.repr(text)}; it is a text, as in gantry.Expression(\"it + 1\")")
        self.text = text


class _NoElements:
    """Of memory that a run will have: nothing is computed with it while the graph is built."""

    def _refuse(self, *_: Any) -> NoReturn:
        raise InvalidError(f"{self!r} has no elements while the graph is built; what is to be done with them is a node, as in "
                           'g.map("y = x + 1", x=x, y=y), or g.node(kernel, x=x, y=y)')

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = __matmul__ = __rmatmul__ = _refuse
    __pow__ = __neg__ = __abs__ = __setitem__ = __array__ = _refuse


class Region(_NoElements):
    """Rows, parts or tiles of a buffer, perhaps with a halo, and perhaps with another access than the kernel's default."""

    def __init__(self, buffer: Buffer, region: c.Region, access: Access | None = None) -> None:
        self.buffer, self.region, self.access = buffer, region, access

    def halo(self, before: int, after: int | None = None) -> Region:
        """The same with rows before and after it, cut at the ends of the buffer; of tiles so many elements along each axis."""
        after = before if after is None else after
        copy = c.Region.from_buffer_copy(self.region)
        if copy.kind == RegionKind.TILES_BY_AXIS:
            before, after = _packed_halo(before), _packed_halo(after)
        copy.before, copy.after = whole("the halo", before), whole("the halo", after)
        return Region(self.buffer, copy, self.access)

    def as_access(self, access: str | Access) -> Region:
        """The same, to be used with one of the other accesses that the kernel's argument allows, such as "sum"."""
        return Region(self.buffer, self.region, Access(_word(Access, "access", access)))

    def __repr__(self) -> str:
        r = self.region
        return f"<gantry.Region of {self.buffer.name!r}: {RegionKind(r.kind).name.lower()} {r.first}:{r.last}>"


def _packed_halo(width: int) -> int:
    """gantry_halo_pack for four axes: 16 bits each, too much becomes more than is allowed."""
    bits = width if 0 <= width <= 0xFFFF else 0xFFFF
    return ctypes.c_int64(sum(bits << 16 * axis for axis in range(c.TILE_AXES))).value


def _packed_span(first: int, last: int) -> int:
    """gantry_span_pack: two numbers of 32 bits as one."""
    low, high = -(1 << 31), (1 << 31) - 1
    first, last = min(max(first, low), high), min(max(last, low), high)
    return ctypes.c_int64((first & 0xFFFFFFFF) << 32 | (last & 0xFFFFFFFF)).value


class Buffer(_NoElements):
    """A named array of a graph. `b[i]` is part i, `b[i:k]` several, `b[i, j]` a tile, the buffer itself all of it."""

    def __init__(self, graph: Graph, name: str, buffer: c.Buffer) -> None:
        self.graph, self.name, self.buffer = graph, name, buffer
        self._cuts: tuple[int, ...] = ()
        self._tiled = False

    def _set(self, function: Callable[..., None], *arguments: Any) -> Buffer:
        function(self.graph._building(), self.buffer, *arguments)
        return self

    def output(self) -> Buffer:
        """Its contents are a result of every start."""
        return self._set(lib.gantry_buffer_output)

    def class_(self, cls: str) -> Buffer:
        """ "input" begins every start from its binding or init; "state" goes on from start to start; "const" is never written; "temp"."""
        return self._set(lib.gantry_buffer_set_class, _word(BufferClass, "class of buffers", cls))

    def split(self, parts: int, auto: bool = False) -> Buffer:
        """Cuts axis 0 into parts: part i of n rows is [i*n/parts, (i+1)*n/parts). `auto`: the scheduler chooses the bounds."""
        self._cuts = (whole("parts", parts),)
        return self._set(lib.gantry_buffer_split_auto if auto else lib.gantry_buffer_split, self._cuts[0])

    def tiles(self, *counts: int) -> Buffer:
        """Cuts 1 to 4 axes, counts[k] tiles along axis k."""
        self._cuts, self._tiled = tuple(whole("tiles", n) for n in counts), True
        return self._set(lib.gantry_buffer_tiles_by_axis, len(counts), (c_int64 * max(len(counts), 1))(*self._cuts))

    def external(self, memory: str) -> Buffer:
        """The program keeps it in the memory of a device, named by the memory's or the device's id."""
        self.graph._externals[self.name] = memory
        return self._set(lib.gantry_buffer_external, encoded(memory))

    def tolerance(self, rtol: float, atol: float = 0.0) -> Buffer:
        return self._set(lib.gantry_buffer_tolerance, _real("rtol", rtol), _real("atol", atol))

    def equal_nan(self) -> Buffer:
        return self._set(lib.gantry_buffer_equal_nan)

    def init(self, value: float) -> Buffer:
        """Every element begins with this number."""
        if getattr(value, "ndim", 0) or not hasattr(value, "__float__"):
            raise InvalidError(f'the init of buffer "{self.name}" is {reprlib.repr(value)}; it is one number for all elements. An array is bound '
                               f'to an input when the graph is called: graph.input("{self.name}", ...), then graph({self.name}=array)')
        return self._init_with(ContentsKind.VALUE, 0, value=value)

    def init_uniform(self, seed: int, low: float = 0.0, high: float = 1.0) -> Buffer:
        """Random numbers, Philox4x32-10 by element index: the same on every back end."""
        return self._init_with(ContentsKind.UNIFORM, seed, low=low, high=high)

    def init_normal(self, seed: int, mean: float = 0.0, deviation: float = 1.0) -> Buffer:
        return self._init_with(ContentsKind.NORMAL, seed, mean=mean, deviation=deviation)

    def _init_with(self, kind: ContentsKind, seed: int, **numbers: float) -> Buffer:
        return self._set(lib.gantry_buffer_init_with, byref(_contents(kind, seed, **numbers)))

    def init_iota(self, start: float = 0, step: float = 1) -> Buffer:
        """Element e in C order is start + e * step."""
        return self._init_with(ContentsKind.IOTA, 0, start=start, step=step)

    def init_spd(self, seed: int) -> Buffer:
        """A symmetric positive definite matrix."""
        return self._set(lib.gantry_buffer_init_spd, _seed(seed))

    def init_npy(self, path: FilePath) -> Buffer:
        return self._set(lib.gantry_buffer_init_npy, encoded(path))

    def rows(self, first: int, last: int) -> Region:
        """Rows [first, last) of axis 0."""
        return self._region(RegionKind.ROWS, whole("the first row", first), whole("the last row", last))

    def all(self) -> Region:
        return self._region(RegionKind.ALL, 0, 0)

    def halo(self, before: int, after: int | None = None) -> Region:
        return self.all().halo(before, after)

    def as_access(self, access: str | Access) -> Region:
        return self.all().as_access(access)

    def _region(self, kind: RegionKind, first: int, last: int) -> Region:
        return Region(self, c.Region(self.buffer, kind, 1, first, last, 0, 0, 0, 0))

    def _bounds(self, axis: int, index: int | slice) -> tuple[int, int]:
        """Which parts along an axis an index means, by the rules of Python."""
        count = self._cuts[axis]
        if isinstance(index, slice):
            first, last, step = index.indices(count)
            if any(bound is not None and not -count <= bound <= count for bound in (index.start, index.stop)):
                raise IndexError(f'buffer "{self.name}" has {count} parts along axis {axis}, which {index.start}:{index.stop} goes beyond; '
                                 "rows are named by .rows(first, last)")
            if step != 1:
                raise InvalidError(f'buffer "{self.name}": parts {index} have the step {step}; only neighbours make a region')
            return first, last
        i = whole(f'the index of buffer "{self.name}"', index)
        if not -count <= i < count:
            raise IndexError(f'buffer "{self.name}" has {count} parts along axis {axis}; {i} is none of them')
        return i % count, i % count + 1

    def __getitem__(self, index: int | slice | tuple[int | slice, ...]) -> Region:
        indices = index if isinstance(index, tuple) else (index,)
        if not self._cuts or len(indices) > len(self._cuts):
            cut = f"in {' x '.join(map(str, self._cuts))} parts" if self._cuts else "not cut"
            raise InvalidError(f'buffer "{self.name}" is {cut}, and was given {len(indices)} indices; cut it with .split(parts) or '
                               ".tiles(...), or name rows with .rows(first, last)")
        spans = [self._bounds(axis, i) for axis, i in enumerate(indices)]
        if not self._tiled:
            return self._region(RegionKind.PARTS, *spans[0])
        packed = [_packed_span(*span) for span in spans] + [0] * (c.TILE_AXES - len(spans))
        return Region(self, c.Region(self.buffer, RegionKind.TILES_BY_AXIS, len(spans), *packed, 0, 0))

    def __len__(self) -> int:
        """How many parts there are along axis 0; 1 without a cut."""
        return self._cuts[0] if self._cuts else 1

    def __repr__(self) -> str:
        return f"<gantry.Buffer {self.name!r} of {self.graph.name!r}>"


def _region_of(what: Any) -> Region:
    if isinstance(what, Buffer):
        return what.all()
    if isinstance(what, Region):
        return what
    raise InvalidError(f"{what!r} is no region; give a buffer of the graph, or a part of one (b[i], b.rows(first, last))")


def _buffer_of(what: str, value: Any) -> c.Buffer:
    if not isinstance(value, Buffer):
        raise InvalidError(f"{what} is {reprlib.repr(value)}; give a buffer of the graph, as a whole")
    return value.buffer


def _node_of(what: str, value: Any) -> c.Node:
    if not isinstance(value, Node):
        found = f"g.find({value!r}) is the node of that id" if isinstance(value, str) else "it must be a node, such as g.map() returns"
        raise InvalidError(f"{what} is {reprlib.repr(value)}; {found}")
    return value.node


class Node:
    """A node of a graph. All of what may be said of it returns the node again."""

    def __init__(self, graph: Graph, node: c.Node) -> None:
        self.graph, self.node = graph, node

    @property
    def id(self) -> str:
        return word(lib.gantry_graph_node_id(self.graph.handle, self.node))

    def _set(self, function: Callable[..., None], *arguments: Any) -> Node:
        function(self.graph._building(), self.node, *arguments)
        return self

    def arg(self, name: str, value: Where | float | Dynamic | Expression) -> Node:
        """The region or the number for an argument."""
        if isinstance(value, (Buffer, Region)):
            region = _region_of(value)
            if region.access is None:
                return self._set(lib.gantry_node_arg, encoded(name), region.region)
            return self._set(lib.gantry_node_arg_as, encoded(name), region.region, region.access)
        if isinstance(value, Dynamic):
            return self._set(lib.gantry_node_scalar_dynamic, encoded(name), _number(name, value.value))
        text = encoded(value.text) if isinstance(value, Expression) else _exact(f'argument "{name}"', value)
        if text is not None:
            return self._set(lib.gantry_node_scalar_expr, encoded(name), text)
        return self._set(lib.gantry_node_scalar, encoded(name), _number(name, value))

    def read(self, region: Where) -> Node:
        return self._set(lib.gantry_node_read, _region_of(region).region)

    def write(self, region: Where) -> Node:
        return self._set(lib.gantry_node_write, _region_of(region).region)

    def readwrite(self, region: Where) -> Node:
        return self._set(lib.gantry_node_readwrite, _region_of(region).region)

    def reduce(self, region: Where, op: str = "sum") -> Node:
        return self._set(lib.gantry_node_reduce, _region_of(region).region, _word(Access, "access", op))

    def after(self, *others: Node) -> Node:
        """Runs after these as well."""
        for other in others:
            self._set(lib.gantry_node_after, _node_of("what a node is after", other))
        return self

    def algorithm(self, algorithm: str) -> Node:
        """How a collective goes: "ring" and the like; "auto" is the default."""
        return self._set(lib.gantry_node_algorithm, encoded(algorithm))

    def on(self, where: str | int) -> Node:
        """Where: the id of a device, a kind, or an expression over `devices` that gives an index."""
        return self._set(lib.gantry_node_on, encoded(str(where)))

    def with_(self, other: Node) -> Node:
        return self._set(lib.gantry_node_with, _node_of("what a node is with", other))

    def apart(self, other: Node) -> Node:
        return self._set(lib.gantry_node_apart, _node_of("what a node is apart from", other))

    def when(self, flag: Where) -> Node:
        """Runs only where the one element is not 0."""
        return self._set(lib.gantry_node_when, _region_of(flag).region)

    def priority(self, priority: int) -> Node:
        return self._set(lib.gantry_node_priority, _int("the priority", priority))

    def cost(self, flops: float, nbytes: float) -> Node:
        return self._set(lib.gantry_node_cost, _real("flops", flops), _real("nbytes", nbytes))

    def time(self, us: float, device: str | None = None) -> Node:
        """The time in us on every device, or on those of an id or kind."""
        return self._set(lib.gantry_node_time, encoded(device), _real("the time", us))

    def share(self, share: float) -> Node:
        return self._set(lib.gantry_node_share, _real("the share", share))

    def __repr__(self) -> str:
        return f"<gantry.Node {self.id!r}>"


class Repeat:
    """A loop while its body is built, by `with`."""

    def __init__(self, graph: Graph, count: int, carried: Mapping[Buffer, Buffer], index: str) -> None:
        self.graph, self.count, self.carried, self.index = graph, count, carried, index

    def __enter__(self) -> Repeat:
        lib.gantry_graph_repeat(self.graph._building(), whole("the count of a repeat", self.count))
        lib.gantry_graph_index(self.graph._building(), encoded(self.index))
        for prev, next in self.carried.items():
            self.carry(prev, next)
        return self

    def __exit__(self, *what: object) -> None:
        lib.gantry_graph_repeat_end(self.graph._building())

    def carry(self, prev: Buffer, next: Buffer) -> None:
        """Before each later iteration `prev` takes the value of `next`, without a copy."""
        lib.gantry_graph_carry(self.graph._building(), _buffer_of("what is carried to", prev), _buffer_of("what is carried", next))

    def until(self, flag: Buffer, every: int = 1) -> None:
        """Ends after the first iteration that is a multiple of `every` where the one element is not 0."""
        lib.gantry_graph_until(self.graph._building(), _buffer_of("the flag", flag), whole("every", every))


class Graph(Owned):
    """What depends on what. The first mistake in building it is told, with the line of the program, when the graph is checked or used."""

    _free = lib.gantry_graph_free

    def __init__(self, name: str = "graph", *, _handle: int | None = None) -> None:
        self._handle = lib.gantry_graph_new(encoded(name)) if _handle is None else _handle
        if self._handle is None:
            raise OutOfMemoryError("out of host memory for a graph")
        self._kernels: dict[str, Kernel] = {}  # C borrows their manifests
        self._infos: dict[str, Info] | None = None
        self._run: Run | None = None
        self._checking, self._sealed = threading.Lock(), False
        self._externals: dict[str, str] = {}  # the memory, by the name of the buffer
        self._loaded = False

    # ---- building ----

    def _building(self) -> int:
        """The handle for a building call, which is told the line of the program that is behind it."""
        if self._sealed:
            raise InvalidError(f'graph "{self.name}" was checked, scheduled or called, and is not changed any more; build the whole of it '
                               "first, or make a new one")
        frame, _ = caller()
        lib.gantry_graph_at(self.handle, frame.f_code.co_filename.encode(errors="replace"), frame.f_lineno)
        return self.handle

    def buffer(self, name: str, shape: int | Sequence[int], dtype: Any = "f32", *, init: float | None = None, output: bool = False,
               cls: str | None = None, split: int | None = None, tiles: Sequence[int] | None = None) -> Buffer:
        """A named array in C order. More can be said by methods of what comes back."""
        extents = [whole(f'an extent of buffer "{name}"', n) for n in (shape if isinstance(shape, Sequence) else [shape])]
        table = (c_int64 * max(len(extents), 1))(*extents)
        buffer = Buffer(self, name, lib.gantry_graph_buffer(self._building(), encoded(name), dtype_of(dtype), len(extents), table))
        if cls is not None:
            buffer.class_(cls)
        if init is not None:
            buffer.init(init)
        if split is not None:
            buffer.split(split)
        if tiles is not None:
            buffer.tiles(*tiles)
        return buffer.output() if output else buffer

    def input(self, name: str, shape: int | Sequence[int], dtype: Any = "f32", **more: Any) -> Buffer:
        """A buffer that every start begins from what it is given."""
        return self.buffer(name, shape, dtype, cls="input", **more)

    def kernel(self, function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
        """As `gantry.kernel`: @g.kernel makes a kernel of a function, and the graph knows it by its name."""
        if isinstance(function, str):
            raise InvalidError(f'"{function}" is a name, and @g.kernel makes a kernel of a function; a node of a kernel of the library is made '
                               f'by g.node("{function}", ...)')
        if function is None:
            return lambda wrapped: self._know(kernel(**options)(wrapped))
        return self._know(kernel(function))

    def _know(self, kernel: Kernel) -> Kernel:
        known = self._kernels.get(kernel.name)
        if known is None:
            self._kernels[kernel.name] = kernel
            kernel.add_to(self._building())
        elif known is not kernel:
            raise InvalidError(f'graph "{self.name}" has another kernel "{kernel.name}" already; give one of them a name of its own: '
                               f'@gantry.kernel(name="...")')
        return kernel

    def _node(self, make: Callable[..., c.Node], id: str | None, what: str, args: Mapping[str, Any] | None,
              named: Mapping[str, Any]) -> Node:
        """Nothing is added to the graph where an argument is wrong: in a notebook the call is made again."""
        if not isinstance(what, str):
            raise InvalidError(f'the formulas of a node are {reprlib.repr(what)}; they are a text, as in g.map("y = x + 1", x=x, y=y), and a '
                               "function becomes a kernel by @gantry.kernel")
        node_id = _id(id)
        given = {**(args or {}), **named}
        for name, value in given.items():
            if not isinstance(value, (Buffer, Region, Expression)) and _exact(f'argument "{name}"', value) is None:
                _number(name, value.value if isinstance(value, Dynamic) else value)
        made_ = Node(self, make(self._building(), node_id, encoded(what)))
        for name, value in given.items():
            made_.arg(name, value)
        return made_

    def node(self, kernel: str | Kernel, /, id: str | None = None, args: Mapping[str, Any] | None = None, **named: Any) -> Node:
        """A node of a kernel, of the library or of Python: each argument is a buffer, a region, a number, a `Dynamic` number or an
        `Expression`. `args` has those whose names Python does not take."""
        name = self._know(kernel).name if isinstance(kernel, Kernel) else kernel
        if not isinstance(name, str):
            raise InvalidError(f"a node has the kernel {reprlib.repr(kernel)}; name one of the library, or make a function one by "
                               "@gantry.kernel")
        return self._node(lib.gantry_graph_kernel, id, name, args, named)

    def map(self, formulas: str, /, id: str | None = None, args: Mapping[str, Any] | None = None, **named: Any) -> Node:
        """Maths on each element: g.map("y = sqrt(x) * s + 1", x=x, y=y, s=2)."""
        return self._node(lib.gantry_graph_map, id, formulas, args, named)

    def reduce(self, formulas: str, /, id: str | None = None, args: Mapping[str, Any] | None = None, **named: Any) -> Node:
        """Reductions: g.reduce("s = sum(square(x - y))", s=s, x=x, y=y)."""
        return self._node(lib.gantry_graph_reduce, id, formulas, args, named)

    def copy(self, source: Where, target: Where, id: str | None = None) -> Node:
        return Node(self, lib.gantry_graph_copy(self._building(), encoded(id), _region_of(source).region, _region_of(target).region))

    def fill(self, target: Where, value: float, id: str | None = None) -> Node:
        return self._fill_with(target, id, ContentsKind.VALUE, 0, value=value)

    def fill_uniform(self, target: Where, seed: int, low: float = 0.0, high: float = 1.0, id: str | None = None) -> Node:
        """As `Buffer.init_uniform`, of rows; elements count from the first one of the buffer."""
        return self._fill_with(target, id, ContentsKind.UNIFORM, seed, low=low, high=high)

    def fill_normal(self, target: Where, seed: int, mean: float = 0.0, deviation: float = 1.0, id: str | None = None) -> Node:
        return self._fill_with(target, id, ContentsKind.NORMAL, seed, mean=mean, deviation=deviation)

    def fill_iota(self, target: Where, start: float = 0, step: float = 1, id: str | None = None) -> Node:
        return self._fill_with(target, id, ContentsKind.IOTA, 0, start=start, step=step)

    def _fill_with(self, target: Where, id: str | None, kind: ContentsKind, seed: int, **numbers: float) -> Node:
        contents = _contents(kind, seed, **numbers)
        return Node(self, lib.gantry_graph_fill_with(self._building(), encoded(id), _region_of(target).region, byref(contents)))

    def collective(self, kind: str, ins: Iterable[Where], outs: Iterable[Where], op: str | None = None, root: int = 0,
                   id: str | None = None) -> Node:
        """ "all_reduce" and the like; regions in the order of ranks."""
        given = [_region_of(r).region for r in ins]
        got = [_region_of(r).region for r in outs]
        node = lib.gantry_graph_collective(
            self._building(), encoded(id), _word(Collective, "collective", kind), 0 if op is None else _word(Access, "access", op),
            len(given), (c.Region * max(len(given), 1))(*given), len(got), (c.Region * max(len(got), 1))(*got), _int("the root", root))
        return Node(self, node)

    def work(self, id: str | None = None) -> Node:
        """Only a cost and accesses: schedules and simulates, and is never run."""
        return Node(self, lib.gantry_graph_work(self._building(), encoded(id)))

    def use(self, path: FilePath, /, id: str | None = None, args: Mapping[str, Any] | None = None, *, when: Where | None = None,
            devices: int | Machine = 0, **named: Any) -> list[Node]:
        """The nodes of another graph file, its ids and buffers with `id` and '.' before them. What is given replaces buffers of the file, by
        a buffer, parts or rows, and params, by a number or an expression. `when`: all nodes run by this flag. None for `id`: the file's name."""
        given = {**(args or {}), **named}
        node_id, before = _id(id), lib.gantry_graph_node_count(self.handle)
        regions = {name: _region_of(value).region for name, value in given.items() if isinstance(value, (Buffer, Region))}
        params = [f"{name}={value if isinstance(value, str) else _param(name, value)}" for name, value in given.items() if name not in regions]
        flag = None if when is None else ctypes.pointer(_region_of(when).region)
        buffers = (c.UseBuffer * max(len(regions), 1))(*[c.UseBuffer(encoded(name), region) for name, region in regions.items()])
        options = c.UseOptions(params=strings(params), param_count=len(params), buffers=buffers, buffer_count=len(regions), when=flag,
                               devices=devices if isinstance(devices, int) else devices.workers)
        lib.gantry_graph_use(self._building(), node_id, encoded(path), byref(options))
        self._loaded = True  # the file may have buffers that are external
        return [Node(self, c.Node(i, 0)) for i in range(before, lib.gantry_graph_node_count(self.handle))]

    def repeat(self, count: int, carry: Mapping[Buffer, Buffer] | None = None, index: str = "it") -> Repeat:
        """with g.repeat(10): nodes that are added within run so many times. `carry`: {x: y} is loop.carry(x, y); `index`: what an
        `Expression` calls the iteration."""
        return Repeat(self, count, carry or {}, index)

    def fuse(self) -> None:
        """Neighbouring maps become one node when the graph is checked, where that changes no bit of any result."""
        lib.gantry_graph_fuse(self._building())

    def differentiate(self, loss: Buffer | str | None = None, weights: Iterable[Buffer | str] | Buffer | str | None = None,
                      optimizer: str | None = None, *, schedule: str | None = None, batch: Iterable[Buffer | str] | None = None,
                      loss_scale: float | str | None = None, **numbers: float) -> Graph:
        """Adds the backward pass, and the steps of "sgd" (as it is), "momentum", "adam" or "adamw", one in each start; "none": gradients are
        outputs, "NAME.grad". `numbers`: learning_rate, momentum, beta1, beta2, epsilon, weight_decay, clip_norm. `schedule`: a factor of the
        learning rate, "min(1, step / 100)". `loss_scale`: a number, or "auto". Nothing said, as after `parallelize`: as was said there."""
        options = _train.options_of(loss, weights, optimizer, schedule, batch, loss_scale, numbers)
        must(lib.gantry_graph_differentiate, self._building(), options and byref(options))
        return self

    def parallelize(self, strategy: str | Mapping[str, int], loss: Buffer | str | None = None,
                    weights: Iterable[Buffer | str] | Buffer | str | None = None, optimizer: str | None = None, *,
                    schedule: str | None = None, batch: Iterable[Buffer | str] | None = None, loss_scale: float | str | None = None,
                    **numbers: float) -> Graph:
        """Cuts a model into pieces of its batch, slices and stages, "dp=2,tp=2,micro=4", and says which device computes each. The rest is as
        `differentiate` takes it, which is called afterwards, with nothing."""
        spread, options = _train.strategy_of(strategy), _train.options_of(loss, weights, optimizer, schedule, batch, loss_scale, numbers)
        must(lib.gantry_graph_parallelize, self._building(), byref(spread), options and byref(options))
        return self

    def limit(self, most: int) -> None:
        """The most nodes, parts and tasks that the graph may expand to."""
        lib.gantry_graph_limit(self._building(), whole("the limit", most))

    # ---- looking ----

    def check(self) -> Graph:
        """Finds every mistake that does not depend on a machine; the graph cannot be changed any more. Warnings become GantryWarning."""
        with self._checking:  # threads may share a graph that was checked, and any of them may be the first to need it
            must(lib.gantry_graph_check, self.handle)
            tell, self._sealed = not self._sealed, True
        warning, i = c.ErrorRecord(), 0
        while tell and lib.gantry_graph_warning(self.handle, i, byref(warning)):
            warnings.warn(str(error_of(warning)), GantryWarning, stacklevel=caller()[1])
            i += 1
        return self

    @property
    def name(self) -> str:
        return word(lib.gantry_graph_name(self.handle))

    @property
    def infos(self) -> dict[str, Info]:
        """What there is to know of each buffer, by its name."""
        if self._infos is not None:
            return self._infos
        found = {}
        for i in range(lib.gantry_graph_buffer_count(self.handle)):
            buffer, info = c.Buffer(i, 0), c.BufferInfo()
            must(lib.gantry_graph_buffer_info, self.handle, buffer, byref(info))
            name, shape = word(info.name), tuple(info.shape[:info.rank])
            tiles = tuple(info.by_axis[:info.rank]) if info.by_axis else ()
            found[name] = Info(name, DTYPES[info.dtype], shape, BufferClass(info.cls).name.lower(), bool(info.output), info.parts, tiles,
                               info.bytes, info.rtol, info.atol, bool(info.equal_nan), buffer)
        return found

    def seal(self) -> dict[str, Info]:
        """Checks the graph, so that what is known of its buffers stays as it is."""
        if self._infos is None:
            self.check()
            self._infos = self.infos
        return self._infos

    def info(self, name: str, of: str = "buffer") -> Info:
        every = self.seal()
        if name in every:
            return every[name]
        fitting = [n for n, i in every.items() if of == "buffer" or (i.output if of == "output" else i.takes_contents)]
        raise InvalidError(f'graph "{self.name}" has no {of} "{name}"{did_you_mean(name, fitting)}; it has {listed(fitting)}')

    def is_external(self, name: str) -> bool:
        """True if the program keeps the buffer in the memory of a device."""
        if self._loaded:
            self._externals = {n: form["external"] for n, form in json.loads(self.json())["buffers"].items() if "external" in form}
            self._loaded = False
        return name in self._externals

    def external_memory(self, name: str) -> str:
        """The memory, or the device, that an external buffer is in."""
        if not self.is_external(name):
            raise InvalidError(f'buffer "{name}" of graph "{self.name}" is in memory of the host; make it external, .external("gpu0")')
        return self._externals[name]

    @property
    def nodes(self) -> list[str]:
        """The ids of all nodes."""
        return [word(lib.gantry_graph_node_id(self.handle, c.Node(i, 0))) for i in range(lib.gantry_graph_node_count(self.handle))]

    def find(self, id: str) -> Node:
        """The node of an id."""
        node = lib.gantry_graph_find_node(self.handle, encoded(id))
        if node.id == c.NONE:
            raise InvalidError(f'graph "{self.name}" has no node "{id}"{did_you_mean(id, self.nodes)}; it has {listed(self.nodes)}')
        return Node(self, node)

    def json(self) -> str:
        """The graph's normal form."""
        self.check()
        return text_from(lib.gantry_graph_json, self.handle)

    def dot(self) -> str:
        """For Graphviz."""
        self.check()
        return text_from(lib.gantry_graph_export, self.handle, c.Format.DOT)

    def drawing(self, *, near: Node | str | None = None, distance: int = 1, max_nodes: int = 0, clusters: str = "loops",
                schedule: Schedule | None = None) -> str:
        """For Graphviz: what is `near` a node, or all of it; families of more than `max_nodes` nodes (0: 100) as one box; frames around
        "loops", "families", or, of a schedule, "devices"."""
        self.check()
        kinds = ("loops", "devices", "families")
        if clusters not in kinds:
            raise InvalidError(f"{clusters!r} is nothing that frames are drawn around; there are {listed(kinds)}")
        options = c.DrawingOptions(max_nodes=max_nodes, distance=distance, clusters=kinds.index(clusters),
                                   near=encoded(near.id if isinstance(near, Node) else near),
                                   schedule=schedule.handle if schedule is not None else None)
        return text_from(lib.gantry_graph_draw, self.handle, byref(options))

    def plot(self, *, near: Node | str | None = None, distance: int = 1, max_nodes: int = 0, clusters: str = "loops") -> _draw.Picture:
        """A picture of the graph for notebooks and files, by Graphviz's program `dot` where that is there, else as its text."""
        return _draw.graph_picture(f'the graph "{self.name}"', self.drawing(near=near, distance=distance, max_nodes=max_nodes,
                                                                           clusters=clusters))

    # ---- scheduling and running ----

    def schedule(self, machine: Machine | FilePath | int | None = None, **options: Any) -> Schedule:
        """Who, when and at which address, on a `Machine`, that of a machine file, or so many devices (GPUs where there are some, else
        virtual ones of the CPU); None: the machine that the graph names, else this computer. Options: see `Schedule`."""
        from .schedule import OPTIONS, Schedule
        for option in options.keys() - OPTIONS:
            raise InvalidError(f'a schedule has no option "{option}"{did_you_mean(option, OPTIONS)}; it has {listed(sorted(OPTIONS))}, and first the '
                               "machine or how many devices, as in g.schedule(2)")
        return Schedule(self, machine, **options)

    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> NoReturn:
            """Only of what is not there: the verb that everybody tries first is one of the schedule."""
            remedy = "; g(x=array) runs it on this computer, g.schedule(2).run() makes a run of it elsewhere" if name == "run" else ""
            raise AttributeError(f"a graph has no {name}{remedy}", name=name, obj=self)

    def __call__(self, inputs: Mapping[str, Any] | None = None, /, **named: Any) -> dict[str, Any]:
        """Runs the graph on this computer and returns its outputs. The first call schedules it; later ones start it again, so that
        buffers of class "state" go on, and inputs that are not given are as before."""
        first = self._run is None
        if self._run is None:
            self._run = self.schedule().run()
        outputs = self._run(inputs, **named)
        if first:
            self._warn_of_no_output()
        return outputs

    def _warn_of_no_output(self) -> None:
        """Not where functions of Python may show what they see, or arrays of somebody else are written."""
        infos = self.seal()
        if infos and not self._kernels and not any(info.output or self.is_external(info.name) for info in infos.values()):
            warnings.warn(f'graph "{self.name}" has no output, so that nothing comes back; a buffer is one by output=True, and comes with what '
                          "was written to it", GantryWarning, stacklevel=caller()[1])

    def close(self) -> None:
        run, self._run = self._run, None
        if run is not None:
            run.close()
        super().close()

    def __repr__(self) -> str:
        if self._handle is None:
            return "<gantry.Graph, closed>"
        buffers, nodes = lib.gantry_graph_buffer_count(self.handle), lib.gantry_graph_node_count(self.handle)
        return f"<gantry.Graph {self.name!r}: {buffers} buffers, {nodes} nodes>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return _draw.bundle(repr(self), _draw.svg(self.dot()))

    def _repr_svg_(self) -> str | None:
        return _draw.svg(self.dot())


def _load_options(params: Mapping[str, Any] | None, inputs: Mapping[str, FilePath] | None, allow_code: bool,
                  devices: int | Machine, max_nodes: int, fuse: bool, train: bool, strategy: str | None, evaluate: bool) -> c.LoadOptions:
    given = [f"{name}={value}" for name, value in (params or {}).items()]
    files = [f"{name}={os.fspath(path)}" for name, path in (inputs or {}).items()]
    return c.LoadOptions(params=strings(given), param_count=len(given), inputs=strings(files), input_count=len(files),
                         allow_code=allow_code, max_nodes=max_nodes, fuse=fuse, train=train, strategy=encoded(strategy),
                         devices=devices if isinstance(devices, int) else devices.workers, evaluate=evaluate)


def _loaded(handle: int) -> Graph:
    graph = Graph(_handle=handle)
    graph._loaded = True
    graph.check()
    return graph


def load(path: FilePath, params: Mapping[str, Any] | None = None, *, inputs: Mapping[str, FilePath] | None = None,
         allow_code: bool = False, devices: int | Machine = 0, max_nodes: int = 0, fuse: bool = True,
         train: bool = False, strategy: str | None = None, evaluate: bool = False) -> Graph:
    """Reads a graph file, or one that comes with Gantry by its name, such as "saxpy". `params` override those of the file; sizes of params that the file leaves open come from `inputs`, .npy files by
    buffer; `devices` is the number that expressions call so; `allow_code`: kernels that name code to compile or load are accepted;
    `train`: the model gets the backward pass and the optimiser that its key "train" asks for,
    spread over devices as `strategy` says: "dp=2,micro=4"; `evaluate`: without both, for its loss on other data, and nothing is dropped."""
    options = _load_options(params, inputs, allow_code, devices, max_nodes, fuse, train, strategy, evaluate)
    return _loaded(made(lib.gantry_graph_load, encoded(_data.find("graphs", path)), byref(options)))


def parse(graph: str | Mapping[str, Any], params: Mapping[str, Any] | None = None, *, name: str | None = None,
          folder: FilePath | None = None, allow_code: bool = False, devices: int | Machine = 0, max_nodes: int = 0,
          fuse: bool = True, train: bool = False, strategy: str | None = None, evaluate: bool = False) -> Graph:
    """The same from JSON, or from what json.loads makes of it. Files that it names are refused unless `folder` says where they are."""
    data = (graph if isinstance(graph, str) else json.dumps(graph)).encode()
    options = _load_options(params, None, allow_code, devices, max_nodes, fuse, train, strategy, evaluate)
    return _loaded(made(lib.gantry_graph_parse, data, len(data), encoded(name), encoded(folder), byref(options)))
