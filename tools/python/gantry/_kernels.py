# SPDX-License-Identifier: Apache-2.0
"""Functions of Python as kernels: of the host, and what queues work on streams of GPUs; and CUDA source."""
from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import dis
import gc
import inspect
import itertools
import threading
import traceback
import typing
import weakref
from typing import Annotated, Any, Callable, ContextManager, NamedTuple, Sequence

from . import _launch
from . import _structs as c
from ._arrays import DTYPES, need_numpy, view_of
from ._library import encoded, lib
from ._structs import Access, Dtype, KernelFlag, Status
from .errors import InvalidError, listed

# What a kernel does to an argument, for the annotations of its parameters. All are NumPy arrays to the function.
In = Annotated[Any, Access.READ]
Out = Annotated[Any, Access.WRITE]  # every element is written: what was there is not brought along
InOut = Annotated[Any, Access.READWRITE]
Sum = Annotated[Any, Access.SUM]  # what the kernel finds in it is added to
Min = Annotated[Any, Access.MIN]
Max = Annotated[Any, Access.MAX]
Prod = Annotated[Any, Access.PROD]
# Numbers by the type that CUDA source has for them. `float` is F64, `int` is I64.
F32 = Annotated[float, Dtype.F32]
F64 = Annotated[float, Dtype.F64]
I32 = Annotated[int, Dtype.I32]
I64 = Annotated[int, Dtype.I64]
U32 = Annotated[int, Dtype.U32]
U64 = Annotated[int, Dtype.U64]


class Place(NamedTuple):
    """Where an argument lies in its buffer: rows of axis 0, halo included and without it, and its tile."""

    first_row: int
    rows: int
    own_first: int
    own_rows: int
    tile: tuple[int, int]  # (-1, -1): the buffer is not tiled


class Launch(NamedTuple):
    """What a kernel may ask about its call: a parameter with this annotation is given it."""

    node: str
    iteration: int
    device: int
    place: dict[str, Place]
    stream: int = 0  # CUDA: the stream to queue work on, a cudaStream_t
    ordinal: int = -1  # the number that CUDA has for the GPU; -1 on CPUs


class Failure(NamedTuple):
    """An exception in a kernel, until the run that called it tells of it."""

    node: str
    kernel: str
    error: BaseException


class _Opening(threading.local):
    """The run that this thread is making; kernels are opened for it."""

    run = 0


opening = _Opening()
failures: dict[int, list[Failure]] = {0: []}  # by the number of the run; 0: a back end that does not open kernels
_numbers = itertools.count(1)


def new_run_number() -> int:
    number = next(_numbers)
    failures[number] = []
    return number


class _Parameter(NamedTuple):
    name: str
    access: Access | None  # None: a scalar
    type: Dtype | None  # of a scalar
    default: float | str | None  # a text is a formula over regions
    launch: bool


def _parameter(function: str, parameter: inspect.Parameter, hint: Any) -> _Parameter:
    name, what = parameter.name, f'parameter "{parameter.name}" of kernel "{function}"'
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise InvalidError(f"{what} is {parameter.kind.description}; kernels have named parameters only")
    if hint is Launch:
        return _Parameter(name, None, None, None, True)
    marks = getattr(hint, "__metadata__", ())
    access = next((m for m in marks if isinstance(m, Access)), None)
    number = {float: Dtype.F64, int: Dtype.I64}.get(hint) or next((m for m in marks if isinstance(m, Dtype)), None)
    if access is None and number is None:
        raise InvalidError(f"{what} has the annotation {hint!r}; say gantry.In, Out, InOut, Sum, Min, Max or Prod for an array, float or "
                           "int for a number, gantry.Launch for the call")
    default = None if parameter.default is parameter.empty else parameter.default
    if default is not None and access is not None:
        raise InvalidError(f"{what} is an array and has a default; only numbers can be left out")
    return _Parameter(name, access, number, default, False)


def _parameters(function: Callable[..., Any], name: str) -> list[_Parameter]:
    hints = typing.get_type_hints(function, include_extras=True)
    every = inspect.signature(function).parameters.values()
    found = [_parameter(name, p, hints.get(p.name)) for p in every]
    if not any(p.access for p in found):
        raise InvalidError(f'kernel "{name}" has no array among its parameters; give one the annotation gantry.In, Out or InOut')
    return found


def _view(arg: c.Arg) -> Any:
    """The argument as an array; `shape` is that of the whole buffer, or of the tile."""
    shape = (arg.rows, *arg.shape[1:arg.rank])
    return view_of(arg.data or 0, shape, DTYPES[arg.dtype], arg.access == Access.READ)


def _place(arg: c.Arg) -> Place:
    return Place(arg.first_row, arg.rows, arg.own_first, arg.own_rows, (arg.tile[0], arg.tile[1]))


ARRAYS = {"numpy": "NumPy arrays, on CPUs", "torch": "tensors of PyTorch, on CPUs and GPUs", "device": "gantry.DeviceArray, on GPUs"}


@dataclasses.dataclass(frozen=True)
class _How:
    """What `gantry.kernel` was told."""

    name: str | None = None
    flops: str | None = None
    nbytes: str | None = None
    pure: bool = False
    arrays: str = "numpy"
    cuda: str | None = None
    grid: str | int | Sequence[str | int] | None = None
    block: str | int | Sequence[str | int] | None = None
    shared_bytes: int = 0
    host: bool = True
    formula: str | None = None
    resident: bool = False

    def check(self, kernel: str) -> None:
        if self.arrays not in ARRAYS:
            raise InvalidError(f'kernel "{kernel}" takes arrays of {self.arrays!r}; there are '
                               + ", ".join(f'"{name}" ({what})' for name, what in ARRAYS.items()))
        if self.cuda is not None and self.arrays != "numpy":
            raise InvalidError(f'kernel "{kernel}" has CUDA source and a function for arrays of "{self.arrays}"; give one of them')
        if self.cuda is not None and (self.grid is None or self.block is None):
            raise InvalidError(f'kernel "{kernel}" has CUDA source and no grid or block; give both, such as grid="ceil_div(x.size, 256)", '
                               "block=256")
        if self.cuda is None and (self.grid is not None or self.block is not None or self.shared_bytes or not self.host or self.resident):
            raise InvalidError(f'kernel "{kernel}" has grid, block, shared_bytes, host or resident, which are for CUDA source; give '
                               'cuda="...", or leave them out')

    @property
    def on_host(self) -> bool:
        return self.arrays != "device" and self.host

    @property
    def on_gpu(self) -> bool:
        return self.arrays != "numpy" or self.cuda is not None


def _extents(given: Any) -> list[bytes | None]:
    every = [given] if isinstance(given, (str, int)) else list(given or [])
    if len(every) > 3:
        raise InvalidError(f"a grid or block has {len(every)} extents, {every!r}; one to three are allowed")
    return [encoded(str(extent)) for extent in every] + [None] * (3 - len(every))


class Kernel:
    """A function of Python, or CUDA source, that nodes can name. Made by `gantry.kernel`; calling it calls the function."""

    def __init__(self, function: Callable[..., Any], how: _How = _How()) -> None:
        need_numpy()
        self.function = function
        self.name = how.name or str(getattr(function, "__name__", "kernel"))
        self.__doc__ = function.__doc__
        how.check(self.name)
        if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
            raise InvalidError(f'kernel "{self.name}" is a function with {"async" if inspect.iscoroutinefunction(function) else "yield"}, whose body '
                               "does not run when it is called; make it a plain one")
        self._how, self._torch = how, _launch.need_torch() if how.arrays == "torch" else None
        self._parameters = _parameters(function, self.name)
        self._given = [p for p in self._parameters if not p.launch]
        self._written = next((p.name for p in self._given if p.access not in (None, Access.READ)), "y")
        self._check_defaults()
        self._check_assigned()
        self._make_manifest(how)
        self.code = self._make_code(how) if how.on_gpu else None

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.function(*arguments, **named)

    def __repr__(self) -> str:
        return f"<gantry.Kernel {self.name}({', '.join(p.name for p in self._given)})>"

    def add_to(self, graph: int) -> None:
        """C borrows the manifest for as long as graphs, schedules and runs know it: their objects here keep this one."""
        if self.code is None:
            lib.gantry_graph_add_kernel(graph, ctypes.byref(self.manifest))
        else:
            lib.gantry_graph_add_cuda_kernel(graph, ctypes.byref(self.manifest), ctypes.byref(self.code))

    def _check_defaults(self) -> None:
        for p in self._given:
            if isinstance(p.default, str) and not self._how.on_gpu:
                raise InvalidError(f'parameter "{p.name}" of kernel "{self.name}" has the formula {p.default!r} as its default, which only '
                                   "kernels that run on GPUs may have; give a number")
            if p.default is not None and not isinstance(p.default, (str, int, float)):
                raise InvalidError(f'parameter "{p.name}" of kernel "{self.name}" has the default {p.default!r}; give a number, or of a '
                                   'kernel for GPUs a formula over regions, such as "x.size"')

    def _check_assigned(self) -> None:
        """`y = 2 * x` gives the name another array; the argument stays as it was. Certain where the name is used for nothing else."""
        code = getattr(self.function, "__code__", None)
        uses = [(i.opname, i.argval if isinstance(i.argval, tuple) else (i.argval,)) for i in dis.get_instructions(code)] if code else []
        for p in self._given:
            of = {name for name, names in uses if p.name in names}
            if p.access not in (None, Access.READ) and of and of <= {"STORE_FAST", "STORE_FAST_STORE_FAST"}:
                raise InvalidError(f'kernel "{self.name}" assigns to the name "{p.name}", which leaves the array as it is; write into it: '
                                   f"{p.name}[:] = ...")

    def _make_manifest(self, how: _How) -> None:
        table = (c.KernelArg * len(self._given))()
        for entry, p in zip(table, self._given):
            entry.name, entry.scalar, entry.access = encoded(p.name), p.access is None, p.access or 0
            entry.optional, entry.fallback = p.default is not None, 0 if isinstance(p.default, str) else p.default or 0
        flags = (0 if how.on_gpu else KernelFlag.NO_GPU) | (0 if how.on_host else KernelFlag.NO_CPU) | (KernelFlag.PURE if how.pure else 0)
        flags |= KernelFlag.RESIDENT if how.resident else 0
        summary = (inspect.getdoc(self.function) or "").split("\n")[0]
        self._call_back, self._open, self._close = c.KernelFunction(self._called), c.OpenFunction(_open), c.CloseFunction(_closed)
        self.manifest = c.Kernel(
            name=encoded(self.name), summary=encoded(summary), arg=table, arg_size=ctypes.sizeof(c.KernelArg), args=len(table),
            flags=int(flags), flops=encoded(how.flops), bytes=encoded(how.nbytes), host=self._call_back if how.on_host else c.KernelFunction(),
            open=self._open, close=self._close, formula=encoded(how.formula))

    def _make_code(self, how: _How) -> c.CudaCode:
        """What is copied may go when the graph has it; the function may not."""
        count = max(len(self._given), 1)
        types = (ctypes.c_int * count)(*((Dtype.F64 if p.type is None else p.type) for p in self._given))
        formulas = (ctypes.c_char_p * count)(*(encoded(p.default) if isinstance(p.default, str) else None for p in self._given))
        code = c.CudaCode(types=types, defaults=formulas)
        if how.cuda is None:
            code.launch = self._call_back
            return code
        code.source, code.shared_bytes = encoded(how.cuda), how.shared_bytes
        code.grid, code.block = (ctypes.c_char_p * 3)(*_extents(how.grid)), (ctypes.c_char_p * 3)(*_extents(how.block))
        return code

    def _called(self, pointer: Any) -> int:
        """What C calls, on a thread of its own. Nothing may leave this function but a status: C has no exceptions."""
        launch = pointer.contents
        try:
            self._call(launch)
            return Status.OK
        except BaseException as error:  # noqa: BLE001
            return _note(launch, self.name, error)

    def _array(self, arg: c.Arg, launch: c.Launch) -> Any:
        if self._torch is not None:
            return _launch.tensor_of(self._torch, arg, launch.device_ordinal)
        return _view(arg) if self._how.arrays == "numpy" else _launch.device_array(arg)

    def _surroundings(self, launch: c.Launch) -> ContextManager[None]:
        if self._torch is None:
            return contextlib.nullcontext()
        return _launch.on_stream(self._torch, launch.stream or 0, launch.device_ordinal)

    def _call(self, launch: c.Launch) -> None:
        values: dict[str, Any] = {}
        seen: list[weakref.ref[Any]] = []
        places: dict[str, Place] = {}
        at = launch.arg
        for p in self._given:
            arg = c.Arg.from_address(at)
            at += launch.arg_size
            if p.access is None:
                values[p.name] = arg.number if p.type in (Dtype.F32, Dtype.F64) else arg.integer
                continue
            values[p.name] = view = self._array(arg, launch)
            seen.append(weakref.ref(view))
            places[p.name] = _place(arg)
        for p in self._parameters:
            if p.launch:
                values[p.name] = Launch(launch.node.decode(), launch.iteration, launch.device, places, launch.stream or 0,
                                        launch.device_ordinal)
        view = None
        with self._surroundings(launch):
            given = self.function(**values)
        if hasattr(given, "shape") and not any(given is value for value in values.values()):
            raise InvalidError("the function returned an array, which nobody takes; write into an argument, such as "
                               f"{self._written}[:] = ...")
        given = None
        values.clear()
        self._check_kept(seen)

    def _check_kept(self, seen: list[weakref.ref[Any]]) -> None:
        """The memory of arguments is another array's soon. Who keeps one would read, or write, what is not his."""
        if all(ref() is None for ref in seen):
            return
        gc.collect()  # unless it is waiting to be found
        kept = [p.name for p, ref in zip((p for p in self._given if p.access is not None), seen) if ref() is not None]
        if kept:
            raise InvalidError(f'the function kept its argument "{kept[0]}", whose memory belongs to others when it has returned; keep a '
                               f"copy: {kept[0]}.copy()")


def _open(handle: Any, ordinal: int) -> int:
    handle[0] = opening.run
    return Status.OK


def _closed(handle: Any) -> None:
    pass


def _note(launch: c.Launch, kernel: str, error: BaseException) -> int:
    """Keeps the exception for the run, without what its frames hold: arguments, whose memory goes away."""
    try:
        traceback.clear_frames(error.__traceback__)
        failures[launch.handle or 0].append(Failure(launch.node.decode(), kernel, error))
    except BaseException:  # noqa: BLE001 - the status tells that there was a failure, in any case
        pass
    return Status.E_KERNEL


@typing.overload
def kernel(function: Callable[..., Any], /) -> Kernel: ...


@typing.overload
def kernel(*, name: str | None = None, flops: str | None = None, nbytes: str | None = None, pure: bool = False, arrays: str = "numpy",
           cuda: str | None = None, grid: str | int | Sequence[str | int] | None = None,
           block: str | int | Sequence[str | int] | None = None, shared_bytes: int = 0,
           host: bool = True, formula: str | None = None, resident: bool = False) -> Callable[[Callable[..., Any]], Kernel]: ...


def kernel(function: Callable[..., Any] | None = None, /, *, name: str | None = None, flops: str | None = None, nbytes: str | None = None,
           pure: bool = False, arrays: str = "numpy", cuda: str | None = None, grid: str | int | Sequence[str | int] | None = None,
           block: str | int | Sequence[str | int] | None = None, shared_bytes: int = 0, host: bool = True,
           formula: str | None = None, resident: bool = False) -> Any:
    """Makes a kernel of a function, whose parameters say what they are by their annotations:

        @gantry.kernel(flops="2 * x.size")
        def saxpy(a: float, x: gantry.In, y: gantry.InOut):
            y += a * x

    It is called with NumPy arrays of the memory that the node has, no copies, on a thread of the library, with the GIL. Arrays of `In` are
    read-only. They may not be kept. `flops` and `nbytes` are expressions over the arguments (docs/graph-format.md); `pure`: what it writes
    follows from its arguments, so it may be called again, and on several devices.

    `arrays="torch"`: it is called with tensors of PyTorch, on CPUs and GPUs; on a GPU Gantry's stream is PyTorch's current one, so that what
    it queues, kernels of Triton among it, is in order. `arrays="device"`: only on GPUs, with `gantry.DeviceArray`, for other libraries;
    `gantry.Launch` has the stream. Functions on GPUs queue work and never wait.

    `cuda`: CUDA C++ with an `extern "C" __global__` function of the kernel's name, which is given the parameters in their order, pointers
    and numbers (`F32`, `I32`, ...), by `grid` blocks of `block` threads: one to three extents, numbers or formulas. The function in Python
    is then the host's version; `host=False`: there is none, and its body is not used. A number may have a formula as its default, "x.size".
    `resident=True`: with `replay="device"` workers of a resident kernel may call it; docs/graph-format.md says what it has to keep to.

    `formula`: what it computes, as a map or a reduce node of all its parameters would, "y = a * x"; adjoints and strategies follow from it.
    """
    if function is not None:
        return Kernel(function)
    how = _How(name, flops, nbytes, pure, arrays, cuda, grid, block, shared_bytes, host, formula, resident)
    return lambda wrapped: Kernel(wrapped, how)
