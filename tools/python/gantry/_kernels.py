# SPDX-License-Identifier: Apache-2.0
"""Functions of Python as kernels of the host back end."""
from __future__ import annotations

import ctypes
import gc
import inspect
import itertools
import threading
import traceback
import typing
import weakref
from typing import Annotated, Any, Callable, NamedTuple

from . import _structs as c
from ._arrays import DTYPES, need_numpy, view_of
from ._library import encoded
from ._structs import Access, KernelFlag, Status
from .errors import InvalidError

# What a kernel does to an argument, for the annotations of its parameters. All are NumPy arrays to the function.
In = Annotated[Any, Access.READ]
Out = Annotated[Any, Access.WRITE]  # every element is written: what was there is not brought along
InOut = Annotated[Any, Access.READWRITE]
Sum = Annotated[Any, Access.SUM]  # what the kernel finds in it is added to
Min = Annotated[Any, Access.MIN]
Max = Annotated[Any, Access.MAX]
Prod = Annotated[Any, Access.PROD]


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
    integer: bool
    default: float | None
    launch: bool


def _parameter(function: str, parameter: inspect.Parameter, hint: Any) -> _Parameter:
    name, what = parameter.name, f'parameter "{parameter.name}" of kernel "{function}"'
    if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
        raise InvalidError(f"{what} is {parameter.kind.description}; kernels have named parameters only")
    if hint is Launch:
        return _Parameter(name, None, False, None, True)
    access = next((m for m in getattr(hint, "__metadata__", ()) if isinstance(m, Access)), None)
    if access is None and hint not in (float, int):
        raise InvalidError(f"{what} has the annotation {hint!r}; say gantry.In, Out, InOut, Sum, Min, Max or Prod for an array, float or "
                           "int for a number, gantry.Launch for the call")
    default = None if parameter.default is parameter.empty else parameter.default
    if default is not None and access is not None:
        raise InvalidError(f"{what} is an array and has a default; only numbers can be left out")
    return _Parameter(name, access, hint is int, default, False)


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


class Kernel:
    """A function of Python that nodes can name. Made by `gantry.kernel`; calling it calls the function."""

    def __init__(self, function: Callable[..., Any], name: str | None = None, flops: str | None = None, nbytes: str | None = None,
                 pure: bool = False) -> None:
        need_numpy()
        self.function = function
        self.name = name or str(getattr(function, "__name__", "kernel"))
        self.__doc__ = function.__doc__
        self._parameters = _parameters(function, self.name)
        self._given = [p for p in self._parameters if not p.launch]
        self._make_manifest(flops, nbytes, pure)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        return self.function(*arguments, **named)

    def __repr__(self) -> str:
        return f"<gantry.Kernel {self.name}({', '.join(p.name for p in self._given)})>"

    def _make_manifest(self, flops: str | None, nbytes: str | None, pure: bool) -> None:
        """C borrows it for as long as graphs, schedules and runs know it: their objects here keep this one."""
        table = (c.KernelArg * len(self._given))()
        for entry, p in zip(table, self._given):
            entry.name, entry.scalar, entry.access = encoded(p.name), p.access is None, p.access or 0
            entry.optional, entry.fallback = p.default is not None, p.default or 0
        flags = KernelFlag.NO_GPU | (KernelFlag.PURE if pure else 0)
        summary = (inspect.getdoc(self.function) or "").split("\n")[0]
        self._host, self._open = c.KernelFunction(self._called), c.OpenFunction(_open)
        self._close = c.CloseFunction(_closed)
        self.manifest = c.Kernel(
            name=encoded(self.name), summary=encoded(summary), arg=table, arg_size=ctypes.sizeof(c.KernelArg), args=len(table),
            flags=int(flags), flops=encoded(flops), bytes=encoded(nbytes), host=self._host, open=self._open, close=self._close)

    def _called(self, pointer: Any) -> int:
        """What C calls, on a thread of its own. Nothing may leave this function but a status: C has no exceptions."""
        launch = pointer.contents
        try:
            self._call(launch)
            return Status.OK
        except BaseException as error:  # noqa: BLE001
            return _note(launch, self.name, error)

    def _call(self, launch: c.Launch) -> None:
        values: dict[str, Any] = {}
        seen: list[weakref.ref[Any]] = []
        places: dict[str, Place] = {}
        at = launch.arg
        for p in self._given:
            arg = c.Arg.from_address(at)
            at += launch.arg_size
            if p.access is None:
                values[p.name] = arg.integer if p.integer else arg.number
                continue
            values[p.name] = view = _view(arg)
            seen.append(weakref.ref(view))
            places[p.name] = _place(arg)
        for p in self._parameters:
            if p.launch:
                values[p.name] = Launch(launch.node.decode(), launch.iteration, launch.device, places)
        view = None
        self.function(**values)
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
def kernel(*, name: str | None = None, flops: str | None = None, nbytes: str | None = None,
           pure: bool = False) -> Callable[[Callable[..., Any]], Kernel]: ...


def kernel(function: Callable[..., Any] | None = None, /, *, name: str | None = None, flops: str | None = None, nbytes: str | None = None,
           pure: bool = False) -> Any:
    """Makes a kernel of a function, whose parameters say what they are by their annotations:

        @gantry.kernel(flops="2 * x.size")
        def saxpy(a: float, x: gantry.In, y: gantry.InOut):
            y += a * x

    It is called with NumPy arrays of the memory that the node has, no copies, on a thread of the library, with the GIL. Arrays of `In` are
    read-only. They may not be kept. `flops` and `nbytes` are expressions over the arguments (docs/graph-format.md); `pure`: what it writes
    follows from its arguments, so it may be called again, and on several devices.
    """
    if function is not None:
        return Kernel(function)
    return lambda wrapped: Kernel(wrapped, name, flops, nbytes, pure)
