# SPDX-License-Identifier: Apache-2.0
"""Carrying a schedule out, again and again."""
from __future__ import annotations

import atexit
import ctypes
import dataclasses
import inspect
import json
import sys
import threading
import weakref
from collections import deque
from contextlib import contextmanager
from ctypes import byref, c_uint64, c_void_p
from typing import TYPE_CHECKING, Any, Callable, Iterator, Mapping

from . import _dlpack
from . import _structs as c
from . import _kernels as kernels
from ._arrays import Info, address_of, as_input, as_target, device_pointer, need_numpy, np, view_of
from ._launch import DeviceArray
from ._library import Owned, encoded, lib, made, must, prepared, text_from, word
from ._structs import Status
from .errors import Error, InvalidError, KernelError, error_of, listed
from .graph import Node
from .machine import Machine
from ._draw import Picture, page_picture

if TYPE_CHECKING:
    from .schedule import Schedule

_UNBOUND = object()
_TIMEOUT = int(Status.E_TIMEOUT)  # which takes an Enum longer to find than a call takes


class _Outputs(dict[str, Any]):
    """What a start gives, by name."""

    def __missing__(self, name: object) -> Any:
        raise KeyError(f'"{name}" is no output of the graph; it has {listed(self)}: give a buffer output=True')

    if not TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any:
            raise AttributeError(f'outputs are taken by their names in brackets, as in out["{name}"]' if name in self else
                                 f"a dictionary of outputs has no {name}", name=name, obj=self)


_live: weakref.WeakSet[Run] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    """Threads of the library must not call kernels of an interpreter that is gone."""
    for run in list(_live):
        Owned.close(run)


@dataclasses.dataclass(frozen=True)
class RunInfo:
    backend: str
    replay: str
    predicted_us: float
    last_us: float  # of the last start that was waited for
    starts: int
    iterations: int
    formulas_compiled: int  # kernels of formulas whose steps are compiled code, where GANTRY_COMPILE_FORMULAS=1 asks for it
    formulas_why: str | None  # why others are not
    trial: str | None = None  # what came of a trial of replay "auto", or why there was none


@dataclasses.dataclass(frozen=True)
class Rebalance:
    """What cutting anew would bring; gantry/run.h says what each means."""

    now_us: float
    then_us: float
    hand_over_us: float
    moved_bytes: int
    handed_bytes: int


def _figures(trace: dict[str, Any]) -> dict[str, Any]:
    """Times by device and kind of a Chrome trace of the library, whose lanes are called "dev0 compute 0"."""
    events = trace["traceEvents"]
    sides = {e["pid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "process_name"}
    lanes = {(e["pid"], e["tid"]): e["args"]["name"].rsplit(" ", 2)[0] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    found: dict[str, Any] = {side: {} for side in sides.values()}
    for e in events:
        if e["ph"] != "X" or (e["pid"], e["tid"]) not in lanes:
            continue
        kinds = found[sides[e["pid"]]].setdefault(lanes[e["pid"], e["tid"]], {})
        figures = kinds.setdefault(e["cat"], {"us": 0.0, "count": 0})
        figures["us"] += e["dur"]
        figures["count"] += 1
    return found


class Start:
    """A start that was made, and its outputs once it has ended."""

    def __init__(self, run: Run, ticket: int, targets: dict[str, Any]) -> None:
        self._run: Run | None = run  # until it has ended
        self.ticket = ticket
        self._targets = targets  # arrays of the user that it writes to
        self._outputs: dict[str, Any] | None = None
        self._error: Error | None = None

    @property
    def done(self) -> bool:
        """True if its outputs are here, or its failure is known. It is found out by waiting, not by itself."""
        return self._outputs is not None or self._error is not None

    def result(self) -> dict[str, Any]:
        """Waits until it has ended. Its outputs by name; what failed is raised, every time."""
        if self._run is not None:
            self._run._finish(self)
        if self._error is not None:
            raise self._error
        assert self._outputs is not None
        return self._outputs


def _is_on_gpu(value: Any) -> bool:
    return not isinstance(value, np.ndarray) and (hasattr(value, "__cuda_array_interface__") or _dlpack.device_type(value) in _dlpack.ON_GPU)


def _on_gpu(info: Info, role: str, value: Any, stream: int | None) -> Any:
    """What says where the memory is: the array itself, or its DLPack, which has to be ready in the order of a stream."""
    if hasattr(value, "__cuda_array_interface__"):
        return value
    if stream is None:
        raise InvalidError(f'{role} "{info.name}" is an array on a GPU that DLPack hands over in the order of a stream; say which, '
                           "start(stream=...), and call result()")
    there = _dlpack.Array(value, stream)
    if not there.packed:
        raise InvalidError(f'{role} "{info.name}" was given an array on a GPU that is not contiguous in C order; make it contiguous')
    return DeviceArray(there.pointer, there.shape, there.dtype, owner=there)


def _heard(tell: Callable[[str], object] | None) -> Callable[[Any, int, int], None]:
    """What C calls with the words of a compiler: they go to standard error unless somebody else hears them."""
    def hear(_: Any, text: int, length: int) -> None:
        (tell or sys.stderr.write)(ctypes.string_at(text, length).decode(errors="replace"))
    return hear


class Run(Owned):
    """Made by `Schedule.run`. `compiler_output` is told what compilers of code of users say, else standard error is. Used by one thread at a time; several runs of one schedule can be under way at once."""

    _free = lib.gantry_run_free

    def __init__(self, schedule: Schedule, *, backend: str | None = None, check: bool = False, allow_code: bool = False, seed: int = 0,
                 deadline_us: float = 0.0, record_trace: bool = False, apart: bool = False, timeout_us: float = 0.0, threads: int = 0,
                 compiler_output: Callable[[str], object] | None = None) -> None:
        need_numpy()
        self.schedule = schedule  # has the graph, which has the kernels of Python that C borrows
        self._number = kernels.new_run_number()
        self._lock = threading.Lock()
        self._record, self._ticket, self._at, self._count, self._stream = c.ErrorRecord(), c_uint64(), c_void_p(), c_uint64(), c_void_p()
        self._record_ref = byref(self._record)
        self._infos = schedule.graph.seal()
        self._bound: dict[str, Any] = {}  # what C reads at the next start
        self._places: dict[str, int] = {}  # addresses of what is bound, and of targets
        self._target_places: dict[str, int] = {}
        self._targets: dict[str, Any] = {}  # what it writes to then; replaced, never changed
        self._retired: deque[tuple[int, Any]] = deque()  # what was bound before, until the start of this ticket has ended
        self._started = 0  # the last ticket that is known here
        self._views: dict[tuple[str, int | None], Any] = {}  # outputs in memory of the run, by name and address
        self._pending: deque[Start] = deque()
        self._in_flight = max(schedule.summary.in_flight, 1)
        options = c.RunOptions(backend=encoded(backend), check=check, allow_code=allow_code, seed=seed, deadline_us=deadline_us,
                               record_trace=record_trace, apart=apart, timeout_us=timeout_us, threads=threads,
                               compiler_output=c.CompilerOutput(_heard(compiler_output)))
        kernels.opening.run = self._number
        try:
            self._handle = made(lib.gantry_run_new, schedule.handle, byref(options))
        finally:
            kernels.opening.run = 0
        ticket, at, count = byref(self._ticket), byref(self._at), byref(self._count)
        self._start_next = prepared("gantry_run_start", self._handle, ticket, self._record_ref)
        self._start_on = prepared("gantry_run_start_on", self._handle, self._stream, ticket, self._record_ref)
        self._wait_for = prepared("gantry_run_wait", self._handle, self._ticket, self._record_ref)
        executes = self.info.backend != "sim"
        self._fetched = [(info, info.name, info.nbytes, prepared("gantry_run_output", self._handle, info.buffer, at, count, self._record_ref))
                         for info in self._infos.values() if info.output and executes]
        _live.add(self)

    # ---- errors ----

    def _enter(self) -> None:
        """From here to `_leave` no other thread uses the run. A lock that waited would wait for ever in a kernel of the run itself."""
        if self._handle is None:
            raise self._closed()
        if not self._lock.acquire(False):
            raise InvalidError("a run is used by two threads at once, or by a kernel of its own; make a run for each thread "
                               "(schedule.run()), or guard it with a lock")

    @contextmanager
    def _alone(self) -> Iterator[int]:
        self._enter()
        try:
            yield self.handle
        finally:
            self._lock.release()

    def _must(self, status: int) -> None:
        if status:
            raise self._told(error_of(self._record))

    def _told(self, error: Error) -> Error:
        """The library's error, with the exception of the kernel in Python that is behind it."""
        if error.status != Status.E_KERNEL:
            return error
        noted = kernels.failures.get(self._number, []) + kernels.failures[0]
        for failure in noted:
            if f'"{failure.node}"' in error.text:
                told = f'{error.text}; kernel "{failure.kernel}" raised {type(failure.error).__name__}: {failure.error}'
                error = KernelError(told, file=error.file, line=error.line, column=error.column, where=error.where, device=error.device)
                error.__cause__ = failure.error
                break
        kernels.failures[self._number].clear()
        return error

    # ---- binding ----

    def _retire(self, array: Any) -> None:
        """Keeps what was bound until no start can use it: also one during which an interrupt came, whose ticket is not known here."""
        if array is not None:
            self._retired.append((self._started + 1, array))

    def _ended(self, ticket: int) -> None:
        """The start of this ticket has ended, and those before it have."""
        while self._retired and self._retired[0][0] <= ticket:
            self._retired.popleft()

    def _need_external(self, info: Info, role: str) -> None:
        if not self.schedule.graph.is_external(info.name):
            raise InvalidError(f'{role} "{info.name}" was given an array on a GPU, but is in memory of the host; copy it to the host, or '
                               'make the buffer external, .external("gpu0")')

    def _bind_input(self, name: str, value: Any, stream: int | None) -> int | None:
        """Binds an input for a start on `stream`; the stream that has to be waited for, where the array says so."""
        info = self.schedule.graph.info(name, "input")
        ready, held, gpu = None, value, _is_on_gpu(value)
        if gpu:
            self._need_external(info, "input")
            held = _on_gpu(info, "input", value, stream)
            address, ready = device_pointer(info, "input", held)
        else:
            held = as_input(info, value)
            address = address_of(held)
        if not gpu or self._places.get(name) != address:
            if gpu:
                self._finish_all()  # a start under way reads the array that is bound now
            self._must(lib.gantry_run_bind(self.handle, info.buffer, address, info.nbytes, self._record_ref))
        self._retire(self._bound.get(name))
        self._bound[name], self._places[name] = held, address
        return ready

    def _bind_inputs(self, inputs: Mapping[str, Any], stream: int | None) -> int | None:
        """Binds what is not bound already; the stream that the start has to go on."""
        bound = self._bound
        for name, value in inputs.items():
            if bound.get(name, _UNBOUND) is value and type(value) is np.ndarray:
                continue  # others may have moved
            before = self._bind_input(name, value, stream)
            if before is not None and stream is not None and before != stream:
                raise InvalidError(f'input "{name}" is ready on stream {before}, but the start is to go on stream {stream}; use one '
                                   "stream, or synchronise and give an array without one")
            stream = before if stream is None else stream
        return stream

    def _bind_target(self, name: str, value: Any) -> None:
        info = self.schedule.graph.info(name, "output")
        if _is_on_gpu(value):
            self._need_external(info, "output")
            address, _ = device_pointer(info, "output", _on_gpu(info, "output", value, 0))
            if self._target_places.get(name) != address:
                self._finish_all()
        else:
            address = address_of(as_target(info, value))
        if self._target_places.get(name) != address:
            self._must(lib.gantry_run_bind_output(self.handle, info.buffer, address, info.nbytes, self._record_ref))
        self._retire(self._targets.get(name))
        self._targets, self._target_places[name] = {**self._targets, name: value}, address

    def bound_at(self, name: str, role: str = "input") -> int | None:
        """The address of what is bound to an input, or, with "output", of where a result goes; None: nothing is."""
        return (self._places if role == "input" else self._target_places).get(name)

    def bind(self, inputs: Mapping[str, Any] | None = None, /, **named: Any) -> Run:
        """Inputs, states and constants begin with these arrays: contiguous arrays of the right element type where they are, which must not
        change until the start has ended; others as one copy. They stay bound until they are given anew."""
        with self._alone():
            self._bind_inputs({**(inputs or {}), **named}, None)
        return self

    def bind_output(self, outputs: Mapping[str, Any] | None = None, /, **named: Any) -> Run:
        """Results are written to these arrays, from the next start on: contiguous, writable, of the right element type. A result is then
        the array itself, not a copy."""
        with self._alone():
            for name, value in {**(outputs or {}), **named}.items():
                self._bind_target(name, value)
        return self

    def set_scalar(self, node: Node | str, name: str, value: float) -> None:
        """Changes a `Dynamic` scalar, while no start is under way."""
        found = self.schedule.graph.find(node if isinstance(node, str) else node.id)
        with self._alone() as handle:
            self._must(lib.gantry_run_set_scalar(handle, found.node, encoded(name), value, self._record_ref))

    # ---- starting ----

    def start(self, inputs: Mapping[str, Any] | None = None, /, *, stream: int | None = None, **named: Any) -> Start:
        """Starts with these inputs and returns at once, unless as many starts as may overlap are under way (`Summary.in_flight`): then the
        oldest is waited for. `stream`: a CUDA stream, in whose order the start goes."""
        self._enter()
        try:
            stream = self._bind_inputs(named if inputs is None else self._named(inputs, named), stream)
            while len(self._pending) >= self._in_flight:
                self._finish_oldest()
            start = Start(self, self._begin(stream), self._targets)
            self._pending.append(start)
            return start
        finally:
            self._lock.release()

    def _named(self, inputs: Any, named: Mapping[str, Any]) -> Mapping[str, Any]:
        if not isinstance(inputs, Mapping):
            example = next((info.name for info in self.schedule.graph.infos.values() if info.cls == "input"), "x")
            raise InvalidError(f"the inputs are {type(inputs).__name__}, without a name; give each by its name, as in {example}=array, or all "
                               "as a dictionary")
        return {**inputs, **named}

    def _begin(self, stream: int | None) -> int:
        """The ticket of a start."""
        if stream is None:
            status = self._start_next()
        else:
            self._stream.value = stream
            status = self._start_on()
        if status:
            self._must(status)
        self._started = self._ticket.value
        return self._started

    def _end(self, ticket: int, targets: Mapping[str, Any]) -> dict[str, Any]:
        """Waits for a start and takes its outputs."""
        self._ticket.value = ticket
        status = self._wait_for()
        if self._retired and status != _TIMEOUT:  # what hung may still write
            self._ended(ticket)
        if status:
            self._must(status)
        return self._outputs(targets)

    def _outputs(self, targets: Mapping[str, Any]) -> dict[str, Any]:
        found = _Outputs()
        for info, name, nbytes, place in self._fetched:
            found[name] = targets[name] if name in targets else self._output(info, nbytes, place)
        return found

    def _finish_all(self) -> None:
        while self._pending:
            self._finish_oldest()

    def _finish_oldest(self) -> None:
        """Its memory is needed: its outputs are taken out of it, and a failure is told now."""
        start = self._pending.popleft()
        try:
            start._outputs = self._end(start.ticket, start._targets)
        except Error as error:
            start._error = error
            raise
        finally:
            start._run, start._targets = None, {}

    def _output(self, info: Info, nbytes: int, place: Callable[[], int]) -> Any:
        status = place()
        if status:
            self._must(status)
        if self._count.value != nbytes:
            raise InvalidError(f"output {info} has {info.nbytes} bytes, but the library gave {self._count.value}: they do not belong "
                               "together; install the package of this version of the library")
        at = self._at.value
        key = info.name, at
        view = self._views.get(key)
        if view is None:
            view = self._views[key] = view_of(at or 0, info.shape, info.dtype, True)
        return view.copy()

    def _finish(self, start: Start) -> None:
        with self._alone():
            while not start.done and self._pending:
                try:
                    self._finish_oldest()
                except Error:
                    pass  # the start that it is of has it
        if not start.done:
            raise InvalidError("the run of this start was closed before its outputs were asked for; call result() first")

    def __call__(self, inputs: Mapping[str, Any] | None = None, /, **named: Any) -> dict[str, Any]:
        """Starts with these inputs, waits, and returns the outputs by name."""
        self._enter()
        try:
            stream = self._bind_inputs(named if inputs is None else self._named(inputs, named), None)
            if self._pending:
                self._finish_all()
            return self._end(self._begin(stream), self._targets)
        finally:
            self._lock.release()

    def repeat(self, starts: int) -> dict[str, Any]:
        """So many starts, one after the other with nothing bound anew, and the outputs of the last. Devices that carry starts out by
        themselves go from one to the next without the host."""
        with self._alone() as handle:
            self._finish_all()
            self._must(lib.gantry_run_repeat(handle, starts, self._record_ref))
            return self._outputs(self._targets)

    def state(self, name: str) -> Any:
        """What a state holds, as the starts before have left it: a copy. The weights of a training are states."""
        info = self.schedule.graph.info(name)
        room = ctypes.create_string_buffer(info.nbytes or 1)
        with self._alone() as handle:
            self._finish_all()
            self._must(lib.gantry_run_state(handle, info.buffer, ctypes.addressof(room), info.nbytes, self._record_ref))
        return view_of(ctypes.addressof(room), info.shape, info.dtype, True).copy()

    # ---- stopping ----

    def cancel(self) -> None:
        """By any thread, or a signal handler: nothing is begun any more, and what did not come to its end raises
        `CanceledError`, once; then the run can be started again. See gantry_run_cancel."""
        lib.gantry_run_cancel(self.handle)

    # ---- looking ----

    @property
    def info(self) -> RunInfo:
        figures = c.RunInfo()
        must(lib.gantry_run_get_info, self.handle, byref(figures))
        return RunInfo(word(figures.backend), word(figures.replay), figures.predicted_us, figures.last_us, figures.starts,
                       figures.iterations, figures.formulas_compiled, word(figures.formulas_why) or None, word(figures.trial) or None)

    def report(self) -> dict[str, Any]:
        """The last start in figures: `info`, and what devices did, "measured" and "predicted", in us: `devices[id][kind]` with kind
        "launch", "host", "copy", "fill" or "collective", and how many of each. Times of lanes that overlap are added up. Needs
        `record_trace=True`."""
        return {**dataclasses.asdict(self.info), **_figures(json.loads(self.trace()))}

    def plot(self, phase: int = 0, height: int = 700) -> Picture:
        """The page that can be looked through (docs/viewer.md) with what was measured in the last start below what was predicted; needs
        `record_trace=True`. `phase`: which, of a schedule in phases."""
        trace = self.trace().encode()
        page = text_from(lib.gantry_schedule_page, self.schedule.handle, phase, trace, len(trace))
        return page_picture(f'the run of "{self.schedule.graph.name}"', page, height)

    # ---- what was measured ----

    def rebalance(self, starts_left: int, **options: Any) -> tuple[Rebalance, Schedule | None]:
        """Cuts automatic splits anew by the times of the last start (`record_trace=True`). The figures, and the new schedule, or None where
        it would not pay for so many starts. Options: those of `Graph.schedule`. To go on: `new = plan.run(); new.take_over(run)`."""
        from .schedule import Schedule, options_of
        found, figures = c_void_p(), c.Rebalance()
        with self._alone() as handle:
            self._finish_all()
            must(lib.gantry_run_rebalance, byref(found), handle, starts_left, byref(options_of(**options)), byref(figures))
        new = Schedule._of(self.schedule.graph, found.value) if found.value else None
        return Rebalance(figures.now_us, figures.then_us, figures.hand_over_us, figures.moved_bytes, figures.handed_bytes), new

    def take_over(self, other: Run) -> Run:
        """Before its first start: takes over bindings, scalars and states of another run of the same graph, which is closed then."""
        with self._alone() as handle, other._alone():
            other._finish_all()
            self._must(lib.gantry_run_take_over(handle, other.handle, self._record_ref))
            self._bound, self._targets = dict(other._bound), dict(other._targets)
            self._places, self._target_places = dict(other._places), dict(other._target_places)
        other.close()
        return self

    def sample(self) -> Run:
        """Keeps the times of the last start for `calibrated`; needs `record_trace=True`."""
        with self._alone() as handle:
            self._finish_all()
            self._must(lib.gantry_run_sample(handle, self._record_ref))
        return self

    def calibrated(self) -> Machine:
        """The schedule's machine with the times that kernels and copies took in the starts that were sampled."""
        with self._alone() as handle:
            return Machine(_handle=made(lib.gantry_run_calibrated, handle))

    def trace(self) -> str:
        """The last start as a Chrome trace, next to the prediction; needs `record_trace=True`."""
        with self._alone() as handle:
            return text_from(lib.gantry_run_trace, handle)

    def close(self) -> None:
        """Waits for what is under way, whose outputs stay with their `Start`; a failure that nobody was told of is raised."""
        if self._handle is None:
            return
        with self._alone():
            try:
                self._finish_all()
            finally:
                super().close()
                kernels.failures.pop(self._number, None)
                self._bound, self._targets = {}, {}
                self._retired.clear()

    def __del__(self) -> None:
        super().__del__()
        kernels.failures.pop(getattr(self, "_number", 0) or -1, None)

    def __repr__(self) -> str:
        if self._handle is None:
            return "<gantry.Run, closed>"
        info = self.info
        return f"<gantry.Run of {self.schedule.graph.name!r}: {info.backend}, {info.starts} starts, the last took {info.last_us:.6g} us>"


OPTIONS = frozenset(inspect.signature(Run).parameters) - {"schedule"}
