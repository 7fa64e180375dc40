# SPDX-License-Identifier: Apache-2.0
"""Finds libgantry, loads it, and says what its functions take."""
from __future__ import annotations

import ctypes
import ctypes.util
import functools
import os
import pathlib
import sys
from ctypes import POINTER, byref, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint64, c_void_p
from types import FrameType, SimpleNamespace
from typing import Any, Callable, Iterable, Iterator, NoReturn, Self

from ._structs import (Buffer, BufferInfo, CalibrateOptions, Contents, CudaCode, DeviceInfo, DrawingOptions, ErrorRecord, ImportOptions, Kernel,
                       LoadOptions, Move, Node, Rebalance, Region, RunInfo, RunOptions, ScheduleOptions, ScheduleSummary, Strategy, TrainOptions,
                       UseOptions)
from .errors import InvalidError, LibraryError, error_of

__version__ = "0.1.0"
BUILDS = ("release", "quickstart", "debug", "quick")  # folders of build/ in a checkout, the fastest library first

_err = POINTER(ErrorRecord)
_out, _text, _size = POINTER(c_void_p), POINTER(c_void_p), POINTER(c_size_t)
_graph = _machine = _schedule = _run = _files = c_void_p

# name: (what it returns, what it takes). A test holds the number of arguments, and what is returned, against the headers.
PROTOTYPES: dict[str, tuple[Any, list[Any]]] = {
    "gantry_version": (c_char_p, []),
    "gantry_free": (None, [c_void_p]),
    "gantry_nearest": (c_char_p, [c_char_p, POINTER(c_char_p), c_size_t]),
    "gantry_status_name": (c_char_p, [c_int]),
    "gantry_graph_new": (c_void_p, [c_char_p]),
    "gantry_graph_free": (None, [_graph]),
    "gantry_graph_load": (c_int, [_out, c_char_p, POINTER(LoadOptions), _err]),
    "gantry_graph_parse": (c_int, [_out, c_char_p, c_size_t, c_char_p, c_char_p, POINTER(LoadOptions), _err]),
    "gantry_graph_json": (c_int, [_graph, _text, _size, _err]),
    "gantry_graph_check": (c_int, [_graph, _err]),
    "gantry_graph_differentiate": (c_int, [_graph, POINTER(TrainOptions), _err]),
    "gantry_graph_parallelize": (c_int, [_graph, POINTER(Strategy), POINTER(TrainOptions), _err]),
    "gantry_graph_loss": (Buffer, [_graph]),
    "gantry_strategy_parse": (c_int, [POINTER(Strategy), c_char_p, _err]),
    "gantry_graph_fuse": (None, [_graph]),
    "gantry_graph_limit": (None, [_graph, c_int64]),
    "gantry_graph_warning": (c_int, [_graph, c_size_t, _err]),
    "gantry_graph_at": (c_void_p, [_graph, c_char_p, c_int]),
    "gantry_graph_name": (c_char_p, [_graph]),
    "gantry_graph_buffer_count": (c_size_t, [_graph]),
    "gantry_graph_node_count": (c_size_t, [_graph]),
    "gantry_graph_node_id": (c_char_p, [_graph, Node]),
    "gantry_graph_find_node": (Node, [_graph, c_char_p]),
    "gantry_graph_find_buffer": (Buffer, [_graph, c_char_p]),
    "gantry_graph_buffer_info": (c_int, [_graph, Buffer, POINTER(BufferInfo), _err]),
    "gantry_graph_export": (c_int, [_graph, c_int, _text, _size, _err]),
    "gantry_graph_machine": (c_int, [_out, _graph, _err]),
    "gantry_graph_buffer": (Buffer, [_graph, c_char_p, c_int, c_int, POINTER(c_int64)]),
    "gantry_buffer_set_class": (None, [_graph, Buffer, c_int]),
    "gantry_buffer_output": (None, [_graph, Buffer]),
    "gantry_buffer_external": (None, [_graph, Buffer, c_char_p]),
    "gantry_buffer_tolerance": (None, [_graph, Buffer, c_double, c_double]),
    "gantry_buffer_equal_nan": (None, [_graph, Buffer]),
    "gantry_buffer_split": (None, [_graph, Buffer, c_int64]),
    "gantry_buffer_split_auto": (None, [_graph, Buffer, c_int64]),
    "gantry_buffer_tiles_by_axis": (None, [_graph, Buffer, c_int, POINTER(c_int64)]),
    "gantry_buffer_init_value": (None, [_graph, Buffer, c_double]),
    "gantry_buffer_init_uniform": (None, [_graph, Buffer, c_uint64, c_double, c_double]),
    "gantry_buffer_init_normal": (None, [_graph, Buffer, c_uint64, c_double, c_double]),
    "gantry_buffer_init_iota": (None, [_graph, Buffer]),
    "gantry_buffer_init_with": (None, [_graph, Buffer, POINTER(Contents)]),
    "gantry_buffer_init_spd": (None, [_graph, Buffer, c_uint64]),
    "gantry_buffer_init_npy": (None, [_graph, Buffer, c_char_p]),
    "gantry_graph_kernel": (Node, [_graph, c_char_p, c_char_p]),
    "gantry_graph_add_kernel": (None, [_graph, POINTER(Kernel)]),
    "gantry_graph_add_cuda_kernel": (None, [_graph, POINTER(Kernel), POINTER(CudaCode)]),
    "gantry_graph_map": (Node, [_graph, c_char_p, c_char_p]),
    "gantry_graph_reduce": (Node, [_graph, c_char_p, c_char_p]),
    "gantry_graph_copy": (Node, [_graph, c_char_p, Region, Region]),
    "gantry_graph_fill": (Node, [_graph, c_char_p, Region, c_double]),
    "gantry_graph_fill_uniform": (Node, [_graph, c_char_p, Region, c_uint64, c_double, c_double]),
    "gantry_graph_fill_iota": (Node, [_graph, c_char_p, Region]),
    "gantry_graph_fill_with": (Node, [_graph, c_char_p, Region, POINTER(Contents)]),
    "gantry_graph_collective": (Node, [_graph, c_char_p, c_int, c_int, c_size_t, POINTER(Region), c_size_t, POINTER(Region), c_int]),
    "gantry_graph_work": (Node, [_graph, c_char_p]),
    "gantry_graph_use": (None, [_graph, c_char_p, c_char_p, POINTER(UseOptions)]),
    "gantry_node_arg": (None, [_graph, Node, c_char_p, Region]),
    "gantry_node_arg_as": (None, [_graph, Node, c_char_p, Region, c_int]),
    "gantry_node_scalar": (None, [_graph, Node, c_char_p, c_double]),
    "gantry_node_scalar_expr": (None, [_graph, Node, c_char_p, c_char_p]),
    "gantry_node_scalar_dynamic": (None, [_graph, Node, c_char_p, c_double]),
    "gantry_node_read": (None, [_graph, Node, Region]),
    "gantry_node_write": (None, [_graph, Node, Region]),
    "gantry_node_readwrite": (None, [_graph, Node, Region]),
    "gantry_node_reduce": (None, [_graph, Node, Region, c_int]),
    "gantry_node_after": (None, [_graph, Node, Node]),
    "gantry_node_algorithm": (None, [_graph, Node, c_char_p]),
    "gantry_node_on": (None, [_graph, Node, c_char_p]),
    "gantry_node_with": (None, [_graph, Node, Node]),
    "gantry_node_apart": (None, [_graph, Node, Node]),
    "gantry_node_when": (None, [_graph, Node, Region]),
    "gantry_node_priority": (None, [_graph, Node, c_int]),
    "gantry_node_cost": (None, [_graph, Node, c_double, c_double]),
    "gantry_node_time": (None, [_graph, Node, c_char_p, c_double]),
    "gantry_node_share": (None, [_graph, Node, c_double]),
    "gantry_graph_repeat": (None, [_graph, c_int64]),
    "gantry_graph_index": (None, [_graph, c_char_p]),
    "gantry_graph_carry": (None, [_graph, Buffer, Buffer]),
    "gantry_graph_until": (None, [_graph, Buffer, c_int64]),
    "gantry_graph_repeat_end": (None, [_graph]),
    "gantry_machine_detect": (c_int, [_out, c_void_p, _err]),
    "gantry_machine_recall": (c_int, [_out, _machine, _text, _err]),
    "gantry_machine_virtual": (c_int, [_out, c_int, _err]),
    "gantry_machine_load": (c_int, [_out, c_char_p, _err]),
    "gantry_machine_parse": (c_int, [_out, c_char_p, c_size_t, c_char_p, _err]),
    "gantry_machine_select": (c_int, [_out, _machine, c_char_p, _err]),
    "gantry_machine_json": (c_int, [_machine, _text, _size, _err]),
    "gantry_machine_save": (c_int, [_machine, c_char_p, _err]),
    "gantry_machine_calibrate": (c_int, [_out, _machine, POINTER(CalibrateOptions), _err]),
    "gantry_machine_keep": (c_int, [_machine, _machine, _err]),
    "gantry_machine_has_calibration": (c_int, [_machine]),
    "gantry_machine_free": (None, [_machine]),
    "gantry_machine_name": (c_char_p, [_machine]),
    "gantry_machine_device_count": (c_size_t, [_machine]),
    "gantry_machine_worker_count": (c_size_t, [_machine]),
    "gantry_machine_device": (c_int, [_machine, c_size_t, POINTER(DeviceInfo), _err]),
    "gantry_schedule_new": (c_int, [_out, _graph, _machine, POINTER(ScheduleOptions), _err]),
    "gantry_schedule_load": (c_int, [_out, c_char_p, _err]),
    "gantry_schedule_attach": (c_int, [_schedule, _graph, _err]),
    "gantry_schedule_json": (c_int, [_schedule, _text, _size, _err]),
    "gantry_schedule_save": (c_int, [_schedule, c_char_p, _err]),
    "gantry_schedule_free": (None, [_schedule]),
    "gantry_schedule_summarize": (c_int, [_schedule, POINTER(ScheduleSummary), _err]),
    "gantry_schedule_policy": (c_char_p, [_schedule]),
    "gantry_schedule_device_of": (c_int, [_schedule, Node]),
    "gantry_schedule_machine": (c_void_p, [_schedule]),
    "gantry_schedule_phase_count": (c_size_t, [_schedule]),
    "gantry_schedule_export": (c_int, [_schedule, c_int, _text, _size, _err]),
    "gantry_schedule_explain": (c_int, [_schedule, Node, _text, _size, _err]),
    "gantry_schedule_what_if": (c_int, [_out, _schedule, _machine, POINTER(Move), c_size_t, _err]),
    "gantry_graph_draw": (c_int, [_graph, POINTER(DrawingOptions), _text, _size, _err]),
    "gantry_schedule_page": (c_int, [_schedule, c_size_t, c_char_p, c_size_t, _text, _size, _err]),
    "gantry_schedule_diff": (c_int, [_schedule, _schedule, c_int, _text, _size, _err]),
    "gantry_schedule_phase": (c_void_p, [_schedule, c_size_t, c_void_p]),
    "gantry_run_new": (c_int, [_out, _schedule, POINTER(RunOptions), _err]),
    "gantry_run_free": (None, [_run]),
    "gantry_run_cancel": (None, [_run]),
    "gantry_run_bind": (c_int, [_run, Buffer, c_void_p, c_uint64, _err]),
    "gantry_run_bind_output": (c_int, [_run, Buffer, c_void_p, c_uint64, _err]),
    "gantry_run_set_scalar": (c_int, [_run, Node, c_char_p, c_double, _err]),
    "gantry_run_start": (c_int, [_run, POINTER(c_uint64), _err]),
    "gantry_run_start_on": (c_int, [_run, c_void_p, POINTER(c_uint64), _err]),
    "gantry_run_wait": (c_int, [_run, c_uint64, _err]),
    "gantry_run_output": (c_int, [_run, Buffer, POINTER(c_void_p), POINTER(c_uint64), _err]),
    "gantry_run_state": (c_int, [_run, Buffer, c_void_p, c_uint64, _err]),
    "gantry_run_get_info": (c_int, [_run, POINTER(RunInfo), _err]),
    "gantry_run_trace": (c_int, [_run, _text, _size, _err]),
    "gantry_run_repeat": (c_int, [_run, c_uint64, _err]),
    "gantry_run_rebalance": (c_int, [_out, _run, c_int64, POINTER(ScheduleOptions), POINTER(Rebalance), _err]),
    "gantry_run_take_over": (c_int, [_run, _run, _err]),
    "gantry_run_sample": (c_int, [_run, _err]),
    "gantry_run_calibrated": (c_int, [_out, _run, _err]),
    "gantry_run_keep": (c_int, [_run, _machine, _err]),
    "gantry_import_format": (c_char_p, [c_size_t]),
    "gantry_import_summary": (c_char_p, [c_size_t]),
    "gantry_graph_import": (c_int, [_out, _out, c_char_p, c_char_p, POINTER(ImportOptions), _err]),
    "gantry_backend_name": (c_char_p, [c_size_t]),
    "gantry_backend_usable": (c_int, [c_size_t]),
    "gantry_policy_name": (c_char_p, [c_size_t]),
    "gantry_kernel_count": (c_size_t, []),
    "gantry_kernel_at": (POINTER(Kernel), [c_size_t]),
}


def _in_folder(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    plain = folder / "libgantry.so"
    yield plain
    yield from sorted(folder.glob("libgantry.so.*"))


def candidates() -> Iterator[pathlib.Path | str]:
    """Where the library is looked for, in order."""
    here = pathlib.Path(__file__).resolve().parent
    yield from _in_folder(here / "lib")
    root = here.parents[2] if len(here.parents) > 2 else here
    if (root / "include/gantry/gantry.h").is_file():
        for build in BUILDS:
            yield from _in_folder(root / "build" / build / "lib")
    found = ctypes.util.find_library("gantry")
    if found:
        yield found


def _open(path: pathlib.Path | str) -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(str(path))
        version = library.gantry_version
    except (OSError, AttributeError) as error:
        raise LibraryError(f"{path} cannot be loaded as libgantry: {error}; GANTRY_LIBRARY names another file") from error
    version.restype = c_char_p
    seen = version().decode()
    if seen.split(".")[:2] != __version__.split(".")[:2]:  # until 1.0 a minor version may break programs (docs/abi.md)
        wanted = ".".join(__version__.split(".")[:2])
        raise LibraryError(f"{path} is libgantry {seen}, but this is the Python package {__version__}, which needs {wanted}.x; install the "
                           "package that belongs to the library, or name another library with GANTRY_LIBRARY")
    return library


def _holds_lock(name: str, returns: Any) -> bool:
    """True for calls that are over at once and change a graph: they keep the interpreter's lock, so threads do not get into each other's
    way. All others release it."""
    return name.startswith(("gantry_graph_", "gantry_buffer_", "gantry_node_")) and returns is not c_int and not name.endswith("_free")


def load() -> SimpleNamespace:
    """The library, with the prototypes of all functions that the package uses."""
    named = os.environ.get("GANTRY_LIBRARY")
    path: pathlib.Path | str | None = named
    if not named:
        path = next((p for p in candidates() if isinstance(p, str) or p.is_file()), None)
    if path is None:
        places = ", ".join(dict.fromkeys(str(p.parent) for p in candidates() if isinstance(p, pathlib.Path)))
        raise LibraryError(f"libgantry was not found: not in {places}, and not among the libraries of the system; build it (ninja -C "
                           "build/release gantry), install it, or say where it is with GANTRY_LIBRARY=/path/to/libgantry.so")
    library, functions = _open(path), {}
    holding = ctypes.PyDLL(library._name)
    for name, (returns, takes) in PROTOTYPES.items():
        function = getattr(holding if _holds_lock(name, returns) else library, name, None)
        if function is None:
            raise LibraryError(f"{path} has no function {name}; it is older than this Python package, {__version__}: build it anew")
        function.restype, function.argtypes = returns, takes
        functions[name] = function
    return SimpleNamespace(path=library._name, **functions)


lib = load()
_plain = ctypes.CDLL(lib.path)


def caller() -> tuple[FrameType, int]:
    """The frame of the program that called the package, and how many frames above the one that asks it is, as `stacklevel` counts."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__package__") == __package__:
        frame, level = frame.f_back, level + 1
    return frame, level


def must(function: Callable[..., int], *arguments: object) -> None:
    """Calls a function that returns a status; its failure is raised."""
    record = ErrorRecord()
    if function(*arguments, byref(record)):
        raise error_of(record)


def made(function: Callable[..., int], *arguments: object) -> int:
    """The handle that a function makes in its first argument."""
    handle = c_void_p()
    must(function, byref(handle), *arguments)
    assert handle.value is not None
    return handle.value


def prepared(name: str, *arguments: object) -> Callable[[], Any]:
    """A call whose arguments are objects of ctypes, or never change: they are converted once, here, which takes longer than most calls.
    Objects are passed by what they hold when it is called."""
    returns, takes = PROTOTYPES[name]
    function = _plain[name]  # another object than lib's, without argtypes, by which arguments would be converted at each call
    function.restype = returns
    return functools.partial(function, *(kind.from_param(argument) for kind, argument in zip(takes, arguments, strict=True)))


def text_from(function: Callable[..., int], *arguments: object) -> str:
    """The text that a function writes into its last arguments, which are the caller's."""
    text, length = c_void_p(), c_size_t()
    must(function, *arguments, byref(text), byref(length))
    try:
        return ctypes.string_at(text.value or 0, length.value).decode()
    finally:
        lib.gantry_free(text)


def word(data: bytes | None) -> str:
    """A string that C lends."""
    return (data or b"").decode(errors="replace")


def strings(values: Iterable[str]) -> Any:
    every = [encoded(value) for value in values]
    return (c_char_p * max(len(every), 1))(*every)


def encoded(text: str | os.PathLike[str] | None) -> bytes | None:
    """A string for C, which ends at its first zero byte."""
    if text is None:
        return None
    if not isinstance(text, (str, bytes, os.PathLike)):
        raise InvalidError(f"{text!r} is given where a text is wanted; write a str")
    data = os.fsencode(text)
    if b"\0" in data:
        raise InvalidError(f"the name {os.fspath(text)!r} has a zero byte in it, where C takes its end to be; leave it out")
    return data


def did_you_mean(word: str, names: Iterable[str]) -> str:
    """' (did you mean "x"?)', or nothing where no name is near."""
    every = list(names)
    near = lib.gantry_nearest(encoded(word), strings(every), len(every))
    return f' (did you mean "{near.decode()}"?)' if near else ""


class Owned:
    """An object of the library. It is freed by `close`, at the end of `with`, or when nobody knows it any more, in any order."""

    _free: Callable[[int], None]
    _handle: int | None = None

    @property
    def handle(self) -> int:
        """The pointer that C knows the object by."""
        if self._handle is None:
            raise self._closed()
        return self._handle

    def _closed(self) -> InvalidError:
        return InvalidError(f"this {type(self).__name__} was closed and cannot be used any more; make another one")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} is an object of this process and cannot be copied or pickled; hand over its text, as json() has "
                        "it of graphs, schedules and machines, and make another one of that (gantry.parse, gantry.Machine.parse)")

    def close(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            type(self)._free(handle)

    def __del__(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            type(self)._free(handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *what: object) -> None:
        self.close()
