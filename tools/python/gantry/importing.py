# SPDX-License-Identifier: Apache-2.0
"""Task graphs in formats of others (docs/importing.md)."""
from __future__ import annotations

from ctypes import byref, c_void_p

from ._library import did_you_mean, encoded, lib, must, word
from ._structs import ImportOptions
from .errors import InvalidError, listed
from .graph import FilePath, Graph, _loaded


def formats() -> dict[str, str]:
    """The formats that can be read, and one line about each."""
    found: dict[str, str] = {}
    while (name := lib.gantry_import_format(len(found))) is not None:
        found[word(name)] = word(lib.gantry_import_summary(len(found)))
    return found


def import_graph(path: FilePath, format: str, *, devices: int = 0, time_unit_us: float = 0.0, bandwidth_gbs: float = 0.0,
                 node_time: str | None = None, edge_cost: str | None = None) -> Graph:
    """Reads a task graph in a format of others, as a graph of work: it can be scheduled and simulated, and nobody can run it. `devices`:
    processors of its machine, which is that of the graph then (0: what the file says); `time_unit_us`: us for 1 of the file's unit of time
    (0: as usual); `bandwidth_gbs` of the links where the file counts bytes (0: 1); `node_time`, `edge_cost`: attributes of DOT files."""
    known = formats()
    if format not in known:
        raise InvalidError(f"{format!r} is no format that can be read{did_you_mean(str(format), known)}; there are {listed(known)}")
    options = ImportOptions(devices=devices, time_unit_us=time_unit_us, bandwidth_gbs=bandwidth_gbs, node_time=encoded(node_time),
                            edge_cost=encoded(edge_cost))
    graph, machine = c_void_p(), c_void_p()
    must(lib.gantry_graph_import, byref(graph), byref(machine), encoded(format), encoded(path), byref(options))
    if machine.value:
        lib.gantry_machine_free(machine)  # the graph has it as its own
    assert graph.value is not None
    return _loaded(graph.value)
