# SPDX-License-Identifier: Apache-2.0
"""Gantry from Python: graphs, machines, schedules, runs. docs/python.md is the tutorial; the classes here are thin over libgantry's C API.

    import gantry
    g = gantry.load("graphs/saxpy.json", params={"n": 1000})
    out = g()                      # on this computer
    plan = g.schedule(2)           # on two virtual devices, or two GPUs
    print(plan.makespan, plan.run()()["total"])
"""
from typing import TYPE_CHECKING as _TYPE_CHECKING, NoReturn as _NoReturn

from ._arrays import Info, from_bf16, from_f8, to_bf16, to_f8
from ._library import __version__, did_you_mean as _did_you_mean
from ._draw import Picture
from ._structs import Access
from .errors import (CanceledError, CapacityError, CheckError, DeviceError, Error, FileError, GantryWarning, GraphError, InvalidError,
                     JSONError, KernelError, LibraryError, MachineError, OutOfMemoryError, ScheduleError, TimeLimitError, UnsupportedError)
from .graph import Buffer, Dynamic, Expression, Graph, Node, Region, Repeat, load, parse
from .importing import formats, import_graph
from ._kernels import F32, F64, I32, I64, U32, U64, In, InOut, Kernel, Launch, Max, Min, Out, Place, Prod, Sum, kernel
from ._launch import DeviceArray
from .machine import Device, Machine
from .run import Rebalance, Run, RunInfo, Start
from .schedule import Difference, Schedule, Summary

__all__ = [
    "Access", "Buffer", "CanceledError", "CapacityError", "CheckError", "Device", "DeviceArray", "DeviceError", "Difference",
    "Dynamic", "Error", "Expression", "F32", "F64", "FileError", "GantryWarning", "Graph", "GraphError", "I32", "I64", "In", "InOut", "Info",
    "InvalidError", "JSONError", "Kernel", "KernelError", "Launch", "LibraryError", "Machine", "MachineError", "Max", "Min", "Node",
    "Out", "OutOfMemoryError", "Picture", "Place", "Prod", "Rebalance", "Region", "Repeat", "Run", "RunInfo", "Schedule",
    "ScheduleError", "Start", "Sum", "Summary", "TimeLimitError", "U32", "U64", "UnsupportedError", "formats", "from_bf16", "from_f8",
    "import_graph", "kernel", "load", "parse", "to_bf16", "to_f8", "__version__",
]

_ELSEWHERE = {"Read": "In", "Input": "In", "Write": "Out", "Output": "Out", "ReadWrite": "InOut", "kernels": "kernel", "jit": "kernel",
              "task": "kernel", "read": "load", "open": "load", "loads": "parse"}


if not _TYPE_CHECKING:
    def __getattr__(name: str) -> _NoReturn:
        """Only of what is not there."""
        remedy = f'; it is gantry.{_ELSEWHERE[name]} here' if name in _ELSEWHERE else _did_you_mean(name, __all__)
        raise AttributeError(f"gantry has no {name}{remedy}", name=name)
