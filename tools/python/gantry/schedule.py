# SPDX-License-Identifier: Apache-2.0
"""The schedule: the complete answer for one graph on one machine."""
from __future__ import annotations

import dataclasses
import inspect
import json
from ctypes import byref, c_void_p
from typing import TYPE_CHECKING, Any, Mapping, NoReturn

from . import _draw
from ._draw import Picture
from . import _structs as c
from ._library import Owned, did_you_mean, encoded, lib, made, must, text_from, word
from .graph import FilePath, Graph, Node
from .errors import InvalidError, listed
from .machine import Machine, machine_for

if TYPE_CHECKING:
    from .run import Run

TIMELINES = {"svg": c.Format.SVG, "html": c.Format.HTML, "chrome": c.Format.CHROME}


@dataclasses.dataclass(frozen=True)
class Summary:
    """Figures of a schedule; gantry/schedule.h says what each means."""

    makespan_us: float
    bound_us: float
    gap: float
    nodes: int
    ops: int
    copies: int
    collectives: int
    events: int
    bytes_moved: int
    period_us: float
    period_bound_us: float
    in_flight: int
    recomputed: int
    bytes_needed: int


def _machine_of(graph: Graph, machine: Machine | FilePath | int | None) -> Machine:
    if machine is None:
        named = c_void_p()
        must(lib.gantry_graph_machine, byref(named), graph.handle)
        if named.value:
            return Machine(_handle=named.value)
    return machine_for(machine)


def options_of(policy: str | None = None, effort: int = -1, optimal: bool = False, seed: int = 0, objective: str | None = None,
               max_memory: str | Mapping[str, int | str] | None = None, replay: str | None = None, balance: str | None = None,
               spill: str | None = None, in_flight: int = 0, unroll: int = 0) -> c.ScheduleOptions:
    if isinstance(max_memory, Mapping):
        max_memory = ",".join(f"{memory}={size}" for memory, size in max_memory.items())
    return c.ScheduleOptions(
        policy=encoded(policy), effort=effort, optimal=optimal, seed=seed, objective=encoded(objective), max_memory=encoded(max_memory),
        replay=encoded(replay), balance=encoded(balance), spill=encoded(spill), in_flight=in_flight, unroll=unroll)


OPTIONS = frozenset(inspect.signature(options_of).parameters)


class Difference:
    """Two schedules held against each other, op by op. Notebooks show the page of both."""

    def __init__(self, first: Schedule, second: Schedule) -> None:
        self._handles, self._pair = (first.handle, second.handle), (first, second)
        self.text = self._form(c.Format.TEXT)

    def _form(self, form: c.Format) -> str:
        return text_from(lib.gantry_schedule_diff, *self._handles, form)

    def report(self) -> dict[str, Any]:
        """The keys of `gantry diff --json`."""
        report: dict[str, Any] = json.loads(self._form(c.Format.REPORT))
        return report

    def plot(self, height: int = 700) -> Picture:
        return _draw.page_picture("the difference of two schedules", self._form(c.Format.HTML), height)

    def _repr_html_(self) -> str:
        return self.plot()._repr_html_()

    def __str__(self) -> str:
        return self.text


class Schedule(Owned):
    """Made by `Graph.schedule`. Never changed once made; may be used by several threads, and run several times at once."""

    _free = lib.gantry_schedule_free

    def __init__(self, graph: Graph, machine: Machine | FilePath | int | None = None, *, policy: str | None = None,
                 effort: int = -1, optimal: bool = False, seed: int = 0, objective: str | None = None,
                 max_memory: str | Mapping[str, int | str] | None = None,
                 replay: str | None = None, balance: str | None = None, spill: str | None = None, in_flight: int = 0,
                 unroll: int = 0) -> None:
        graph.seal()
        self.graph = graph  # has the kernels of Python that C borrows
        options = options_of(policy, effort, optimal, seed, objective, max_memory, replay, balance, spill, in_flight, unroll)
        where = machine if isinstance(machine, Machine) else _machine_of(graph, machine)
        try:
            self._handle = made(lib.gantry_schedule_new, graph.handle, where.handle, byref(options))
        finally:
            if where is not machine:
                where.close()

    @classmethod
    def load(cls, path: FilePath, graph: Graph) -> Schedule:
        """A schedule from a file, for its graph. It is proved right for it first."""
        graph.seal()
        self = cls._of(graph, made(lib.gantry_schedule_load, encoded(path)))
        must(lib.gantry_schedule_attach, self._handle, graph.handle)
        return self

    @classmethod
    def _of(cls, graph: Graph, handle: int) -> Schedule:
        """What the library has made."""
        self = cls.__new__(cls)
        self.graph, self._handle = graph, handle
        return self

    # ---- figures ----

    @property
    def summary(self) -> Summary:
        figures = c.ScheduleSummary()
        must(lib.gantry_schedule_summarize, self.handle, byref(figures))
        return Summary(**{field.name: getattr(figures, field.name) for field in dataclasses.fields(Summary)})

    @property
    def makespan(self) -> float:
        """Predicted time of a start in us, with contention, uploads and fetches."""
        return self.summary.makespan_us

    @property
    def bound(self) -> float:
        """No schedule on this machine takes less, in us."""
        return self.summary.bound_us

    @property
    def policy(self) -> str:
        return word(lib.gantry_schedule_policy(self.handle))

    def report(self) -> dict[str, Any]:
        """The keys of `gantry schedule --json`."""
        report: dict[str, Any] = json.loads(text_from(lib.gantry_schedule_export, self.handle, c.Format.REPORT))
        return report

    def _node(self, node: Node | str) -> Node:
        return self.graph.find(node if isinstance(node, str) else node.id)

    def explain(self, node: Node | str) -> str:
        """Why a node is where it is: each device that was looked at, when the data would be there, and what it waits for."""
        return text_from(lib.gantry_schedule_explain, self.handle, self._node(node).node)

    def device_of(self, node: Node | str) -> int:
        """Index of the device that runs the node, or -1."""
        return int(lib.gantry_schedule_device_of(self.handle, self._node(node).node))

    def what_if(self, moves: Mapping[str, int] | None = None, machine: Machine | None = None) -> Schedule:
        """The schedule with some nodes on other devices (by index), or on the same machine with other rates; nothing is searched.
        `plan.diff(plan.what_if({"gemm[1]": 2}))` shows what that does."""
        chosen = list((moves or {}).items())
        made_moves = (c.Move * len(chosen))(*[c.Move(self._node(node).node, device) for node, device in chosen])
        where = machine.handle if machine is not None else None
        return Schedule._of(self.graph, made(lib.gantry_schedule_what_if, self.handle, where, made_moves, len(chosen)))

    def diff(self, other: Schedule) -> Difference:
        """What differs between this schedule and another, which may be of another graph."""
        if not isinstance(other, Schedule):
            raise InvalidError(f"a schedule is compared with {other!r}; give another Schedule: graph.schedule(...), or Schedule.load(path, graph) of a file")
        return Difference(self, other)

    # ---- pictures and files ----

    def plot(self, what: str | None = None, *, near: Node | str | None = None, distance: int = 1, max_nodes: int = 0,
             clusters: str = "devices", height: int = 700) -> Picture:
        """A picture for notebooks and files. None: the timeline, and the graph below it; "timeline" or "graph": one of them; "page": the page
        that can be looked through (docs/viewer.md), so many pixels high. Of graphs: `near` a node, so many dependencies away; families of
        more than `max_nodes` nodes (0: 100) as one box; frames around "devices", "families" or "loops"."""
        if what not in (None, "timeline", "graph", "page"):
            raise InvalidError(f'{what!r} is no picture of a schedule; there are {_draw.listed(["timeline", "graph", "page"])}')
        title = f'the schedule of "{self.graph.name}"'
        if what == "page":
            return _draw.page_picture(title, self.timeline("html"), height)
        timeline = None if what == "graph" else _draw.timeline_picture(title, self.timeline("svg"), self.timeline("chrome"))
        if what == "timeline" and timeline:
            return timeline
        graph = _draw.graph_picture(title, self.graph.drawing(near=near, distance=distance, max_nodes=max_nodes, clusters=clusters,
                                                              schedule=self))
        return graph if timeline is None else _draw.both_pictures(title, timeline, graph, self.timeline("html"))


    def text(self) -> str:
        """A summary for people."""
        return text_from(lib.gantry_schedule_export, self.handle, c.Format.TEXT)

    def dot(self) -> str:
        """The placed schedule for Graphviz."""
        return text_from(lib.gantry_schedule_export, self.handle, c.Format.DOT)

    def timeline(self, form: str = "svg") -> str:
        """When what is done where: "svg", "html", or "chrome", the JSON that Perfetto reads."""
        if form not in TIMELINES:
            raise InvalidError(f"a timeline is {form!r}; it can be {', '.join(map(repr, TIMELINES))}")
        return text_from(lib.gantry_schedule_export, self.handle, TIMELINES[form])

    def json(self) -> str:
        return text_from(lib.gantry_schedule_json, self.handle)

    def save(self, path: FilePath) -> None:
        must(lib.gantry_schedule_save, self.handle, encoded(path))

    # ---- running ----

    def run(self, **options: Any) -> Run:
        """Everything that starts need. Options: see `Run`."""
        from .run import OPTIONS as known, Run
        for option in options.keys() - known:
            raise InvalidError(f'a run has no option "{option}"{did_you_mean(option, known)}; it has {listed(sorted(known))}, and inputs are given '
                               "to the run: plan.run()(x=array)")
        return Run(self, **options)

    def __call__(self, *_: Any, **named: Any) -> NoReturn:
        raise InvalidError("a schedule says who does what and when, and carries nothing out; make a run of it, once, and call that: run = "
                           f"plan.run(), then run({next(iter(named), 'x')}=array)")

    def __repr__(self) -> str:
        if self._handle is None:
            return "<gantry.Schedule, closed>"
        s = self.summary
        return (f"<gantry.Schedule of {self.graph.name!r}: {s.makespan_us:.6g} us predicted, {s.nodes} nodes, {s.ops} ops, policy "
                f"{self.policy}>")

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return _draw.bundle(repr(self), self.timeline("svg"))

    def _repr_svg_(self) -> str:
        return self.timeline("svg")
