# SPDX-License-Identifier: Apache-2.0
"""Gantry from Python: graphs, machines, schedules, runs. docs/python.md is the tutorial; the classes here are thin over libgantry's C API.

    import gantry
    g = gantry.load("graphs/saxpy.json", params={"n": 1000})
    out = g()                      # on this computer
    plan = g.schedule(2)           # on two virtual devices, or two GPUs
    print(plan.makespan, plan.run()()["total"])
"""
from ._arrays import Info, from_bf16, to_bf16
from ._library import __version__
from ._structs import Access
from .errors import (CanceledError, CapacityError, CheckError, DeviceError, Error, FileError, GantryWarning, GraphError, InvalidError,
                     JSONError, KernelError, LibraryError, MachineError, OutOfMemoryError, ScheduleError, TimeLimitError, UnsupportedError)
from .graph import Buffer, Dynamic, Graph, Node, Region, Repeat, load, parse
from ._kernels import In, InOut, Kernel, Launch, Max, Min, Out, Place, Prod, Sum, kernel
from .machine import Device, Machine
from .run import Run, RunInfo, Start
from .schedule import Schedule, Summary

__all__ = [
    "Access", "Buffer", "CanceledError", "CapacityError", "CheckError", "Device", "DeviceError", "Dynamic", "Error", "FileError",
    "GantryWarning", "Graph", "GraphError", "In", "InOut", "Info", "InvalidError", "JSONError", "Kernel", "KernelError", "Launch",
    "LibraryError", "Machine", "MachineError", "Max", "Min", "Node", "Out", "OutOfMemoryError", "Place", "Prod", "Region", "Repeat",
    "Run", "RunInfo", "Schedule", "ScheduleError", "Start", "Sum", "Summary", "TimeLimitError", "UnsupportedError", "__version__",
    "from_bf16", "kernel", "load", "parse", "to_bf16",
]
