# SPDX-License-Identifier: Apache-2.0
"""The structs, enums and callbacks of include/gantry as ctypes sees them. A test holds every size and offset against the headers."""
from __future__ import annotations

import ctypes
import enum
from ctypes import (CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64,
                    c_void_p)
from typing import Any, ClassVar, Sequence

NONE = 0xFFFFFFFF
TILE_AXES = 4


class Status(enum.IntEnum):
    OK = 0
    E_NOMEM = -1
    E_INVALID = -2
    E_IO = -3
    E_SYNTAX = -4
    E_GRAPH = -5
    E_MACHINE = -6
    E_SCHEDULE = -7
    E_CAPACITY = -8
    E_KERNEL = -9
    E_DEVICE = -10
    E_UNSUPPORTED = -11
    E_TIMEOUT = -12
    E_CANCELED = -13
    E_CHECK = -14


class Dtype(enum.IntEnum):
    F16 = 0
    BF16 = 1
    F32 = 2
    F64 = 3
    I8 = 4
    U8 = 5
    I32 = 6
    U32 = 7
    I64 = 8
    U64 = 9
    F8E4M3 = 10
    F8E5M2 = 11


class Access(enum.IntEnum):
    """What a node does to a region."""

    READ = 1
    WRITE = 2
    READWRITE = 3
    SUM = 4
    MIN = 5
    MAX = 6
    PROD = 7


class BufferClass(enum.IntEnum):
    INPUT = 1
    STATE = 2
    CONST = 3
    TEMP = 4


class RegionKind(enum.IntEnum):
    ALL = 0
    PARTS = 1
    ROWS = 2
    TILES = 3
    TILES_BY_AXIS = 4


class Format(enum.IntEnum):
    DOT = 1
    SVG = 2
    HTML = 3
    CHROME = 4
    TEXT = 5
    REPORT = 6


class Collective(enum.IntEnum):
    ALL_REDUCE = 1
    REDUCE = 2
    BROADCAST = 3
    SCATTER = 4
    GATHER = 5
    ALL_GATHER = 6
    REDUCE_SCATTER = 7
    ALL_TO_ALL = 8


class Optimizer(enum.IntEnum):
    NONE = 0
    SGD = 1
    MOMENTUM = 2
    ADAM = 3
    ADAMW = 4


class KernelFlag(enum.IntFlag):
    VARIADIC = 1
    ORDER_VARIES = 2
    NO_GPU = 4
    NO_CPU = 8
    PURE = 16
    RESIDENT = 32


class ErrorRecord(Structure):
    _fields_ = [
        ("status", c_int), ("line", c_int32), ("column", c_int32), ("device", c_int32), ("native", c_int32), ("reserved", c_int32 * 3),
        ("file", c_char * 120), ("where", c_char * 120), ("text", c_char * 512),
    ]


class Buffer(Structure):
    _fields_ = [("id", c_uint32), ("graph", c_uint32)]


class Node(Structure):
    _fields_ = [("id", c_uint32), ("graph", c_uint32)]


class Move(Structure):
    _fields_ = [("node", Node), ("device", c_uint32)]


class Region(Structure):
    _fields_ = [
        ("buffer", Buffer), ("kind", c_int), ("ndim", c_int32), ("first", c_int64), ("last", c_int64), ("first2", c_int64),
        ("last2", c_int64), ("before", c_int64), ("after", c_int64),
    ]


RANGES = {c_int32: (-2**31, 2**31 - 1), c_uint32: (0, 2**32 - 1), c_int64: (-2**63, 2**63 - 1), c_uint64: (0, 2**64 - 1)}


class Sized(Structure):
    """A struct that begins with its own size, which is set when it is made. Numbers that a field does not hold are refused."""

    _fields_: ClassVar[Sequence[Any]] = [("struct_size", c_size_t)]

    def __init__(self, **values: object) -> None:
        from .errors import whole  # which needs the structs of this file
        super().__init__(ctypes.sizeof(type(self)))
        kinds = dict(self._fields_)
        for name, value in values.items():
            kind = kinds[name]
            setattr(self, name, whole(name, value, *RANGES[kind]) if kind in RANGES else value)


class LoadOptions(Sized):
    _fields_ = [
        ("params", POINTER(c_char_p)), ("param_count", c_size_t), ("inputs", POINTER(c_char_p)), ("input_count", c_size_t),
        ("allow_code", c_int32), ("devices", c_int32), ("max_nodes", c_int64), ("fuse", c_int32), ("train", c_int32),
        ("strategy", c_char_p), ("evaluate", c_int32), ("land", c_int32),
    ]


class ContentsKind(enum.IntEnum):
    VALUE = 1
    UNIFORM = 2
    NORMAL = 3
    IOTA = 4


class Contents(Sized):
    _fields_ = [
        ("kind", c_int), ("reserved", c_int32), ("seed", c_uint64), ("first", c_double), ("second", c_double), ("exact", c_char_p * 2),
    ]


class UseBuffer(Structure):
    _fields_ = [("name", c_char_p), ("region", Region)]


class UseOptions(Sized):
    _fields_ = [
        ("params", POINTER(c_char_p)), ("param_count", c_size_t), ("buffers", POINTER(UseBuffer)), ("buffer_count", c_size_t),
        ("when", POINTER(Region)), ("devices", c_int32), ("reserved", c_int32),
    ]


class TrainOptions(Sized):
    _fields_ = [
        ("loss", c_char_p), ("weights", POINTER(c_char_p)), ("weight_count", c_size_t), ("optimizer", c_int), ("reserved", c_int32),
        ("learning_rate", c_double), ("schedule", c_char_p), ("momentum", c_double), ("beta1", c_double), ("beta2", c_double),
        ("epsilon", c_double), ("weight_decay", c_double), ("clip_norm", c_double), ("batch", POINTER(c_char_p)),
        ("batch_count", c_size_t), ("loss_scale", c_double),
    ]


class Strategy(Sized):
    _fields_ = [
        ("dp", c_int32), ("pp", c_int32), ("micro", c_int32), ("zero", c_int32), ("tp", c_int32), ("recompute", c_int32),
        ("interleave", c_int32), ("ordered", c_int32),
    ]


class BufferInfo(Sized):
    _fields_ = [
        ("name", c_char_p), ("dtype", c_int), ("cls", c_int), ("rank", c_int32), ("output", c_int32), ("shape", POINTER(c_int64)),
        ("parts", c_int64), ("tiles", c_int64 * 2), ("bytes", c_uint64), ("rtol", c_double), ("atol", c_double),
        ("equal_nan", c_int32), ("by_axis", POINTER(c_int64)),
    ]


class DeviceInfo(Sized):
    _fields_ = [
        ("id", c_char_p), ("kind", c_char_p), ("gpu", c_int32), ("memory", c_int32), ("lanes", c_int32), ("copy_engines", c_int32),
        ("bandwidth_gbs", c_double), ("launch_us", c_double), ("signal_us", c_double), ("rank", c_int32), ("threads", c_int32),
    ]


class ScheduleOptions(Sized):
    _fields_ = [
        ("policy", c_char_p), ("effort", c_int32), ("optimal", c_int32), ("seed", c_uint64), ("objective", c_char_p),
        ("max_memory", c_char_p), ("replay", c_char_p), ("balance", c_char_p), ("like", c_void_p), ("spill", c_char_p),
        ("in_flight", c_int32), ("reserved", c_int32), ("unroll", c_int64),
        ("progress", c_void_p), ("user", c_void_p),
    ]


class ScheduleSummary(Sized):
    _fields_ = [
        ("makespan_us", c_double), ("bound_us", c_double), ("gap", c_double), ("nodes", c_uint64), ("ops", c_uint64),
        ("copies", c_uint64), ("collectives", c_uint64), ("events", c_uint64), ("bytes_moved", c_uint64), ("period_us", c_double),
        ("period_bound_us", c_double), ("in_flight", c_uint64), ("recomputed", c_uint64), ("bytes_needed", c_uint64),
    ]


CompilerOutput = CFUNCTYPE(None, c_void_p, c_void_p, c_size_t)
ProgressFunction = CFUNCTYPE(None, c_void_p, c_char_p, c_size_t, c_size_t)


class DrawingOptions(Sized):
    _fields_ = [
        ("max_nodes", c_int32), ("distance", c_int32), ("near", c_char_p), ("clusters", c_int32), ("reserved", c_int32),
        ("schedule", c_void_p),
    ]


class ImportOptions(Sized):
    _fields_ = [
        ("devices", c_int32), ("reserved", c_int32), ("time_unit_us", c_double), ("bandwidth_gbs", c_double), ("node_time", c_char_p),
        ("edge_cost", c_char_p),
    ]


class CalibrateOptions(Sized):
    _fields_ = [("seconds", c_double), ("patience", c_double), ("progress", ProgressFunction), ("user", c_void_p)]


class Rebalance(Sized):
    _fields_ = [
        ("now_us", c_double), ("then_us", c_double), ("hand_over_us", c_double), ("moved_bytes", c_uint64), ("handed_bytes", c_uint64),
        ("pays", c_int32), ("reserved", c_int32),
    ]


class RunOptions(Sized):
    _fields_ = [
        ("backend", c_char_p), ("check", c_int32), ("allow_code", c_int32), ("seed", c_uint64), ("deadline_us", c_double),
        ("record_trace", c_int32), ("apart", c_int32), ("progress", c_void_p), ("user", c_void_p),
        ("timeout_us", c_double), ("network", c_void_p), ("compiler_output", CompilerOutput), ("checkpoints", c_char_p),
        ("checkpoint_every", c_uint64), ("threads", c_int32), ("outputs_apart", c_int32), ("inputs_key", c_uint64),
    ]


class RunInfo(Sized):
    _fields_ = [
        ("backend", c_char_p), ("replay", c_char_p), ("predicted_us", c_double), ("last_us", c_double), ("starts", c_uint64),
        ("iterations", c_uint64), ("formulas_compiled", c_int64), ("formulas_why", c_char_p), ("completed", c_uint64),
        ("fed_wait_us", c_double),
        ("trial", c_char_p), ("trial_host_us", c_double), ("trial_device_us", c_double), ("landing_bytes", c_uint64), ("landing_why", c_char_p),
    ]


class Axis(Structure):
    _fields_ = [("first", c_int64), ("before", c_int32), ("after", c_int32)]


class Arg(Structure):
    pass


Arg._fields_ = [
    ("name", c_char_p), ("dtype", c_int), ("access", c_int), ("rank", c_int32), ("shape", POINTER(c_int64)), ("first_row", c_int64),
    ("rows", c_int64), ("own_first", c_int64), ("own_rows", c_int64), ("row_bytes", c_int64), ("data", c_void_p),
    ("tile", c_int64 * 2), ("number", c_double), ("integer", c_int64), ("count", c_int64), ("items", POINTER(Arg)),
    ("whole", POINTER(c_int64)), ("axis", Axis * TILE_AXES),
]


class Launch(Sized):
    _fields_ = [
        ("user", c_void_p), ("node", c_char_p), ("iteration", c_int64), ("device", c_int32), ("device_ordinal", c_int32),
        ("stream", c_void_p), ("args", c_int32), ("arg", c_void_p), ("arg_size", c_size_t), ("scratch", c_void_p),
        ("scratch_bytes", c_uint64), ("status", POINTER(c_int32)), ("handle", c_void_p), ("cut", c_void_p), ("team", c_void_p),
    ]


KernelFunction = CFUNCTYPE(c_int, POINTER(Launch))
CheckFunction = CFUNCTYPE(c_int, POINTER(Launch), c_void_p, c_size_t)
OpenFunction = CFUNCTYPE(c_int, POINTER(c_void_p), c_int32)
CloseFunction = CFUNCTYPE(None, c_void_p)


class KernelArg(Structure):
    _fields_ = [
        ("name", c_char_p), ("scalar", c_int32), ("optional", c_int32), ("fallback", c_double), ("access", c_int),
        ("accesses", c_uint32), ("dtypes", c_uint32), ("same", c_char), ("list", c_int32), ("summary", c_char_p),
    ]


class Kernel(Sized):
    _fields_ = [
        ("name", c_char_p), ("summary", c_char_p), ("arg", POINTER(KernelArg)), ("arg_size", c_size_t), ("args", c_int32),
        ("flags", c_uint32), ("flops", c_char_p), ("bytes", c_char_p), ("scratch", c_char_p), ("host", KernelFunction),
        ("check", CheckFunction), ("open", OpenFunction), ("close", CloseFunction),
        ("formula", c_char_p),
    ]


class CudaCode(Sized):
    _fields_ = [
        ("image", c_void_p), ("bytes", c_size_t), ("entry", c_char_p), ("function", c_void_p), ("user", c_void_p), ("grid", c_char_p * 3),
        ("block", c_char_p * 3), ("shared_bytes", c_int64), ("types", POINTER(c_int)), ("defaults", POINTER(c_char_p)),
        ("source", c_char_p), ("launch", KernelFunction),
    ]


# The names of the structs in C, for the test of their layout.
STRUCTS: dict[str, type[Structure]] = {
    "gantry_error": ErrorRecord, "gantry_buffer": Buffer, "gantry_node": Node, "gantry_move": Move, "gantry_region": Region,
    "gantry_load_options": LoadOptions, "gantry_use_buffer": UseBuffer, "gantry_use_options": UseOptions,
    "gantry_buffer_info": BufferInfo, "gantry_device_info": DeviceInfo, "gantry_contents": Contents,
    "gantry_schedule_options": ScheduleOptions, "gantry_schedule_summary": ScheduleSummary, "gantry_run_options": RunOptions,
    "gantry_run_info": RunInfo, "gantry_axis": Axis, "gantry_arg": Arg, "gantry_launch": Launch, "gantry_kernel_arg": KernelArg,
    "gantry_kernel": Kernel, "gantry_cuda_code": CudaCode, "gantry_drawing_options": DrawingOptions,
    "gantry_import_options": ImportOptions, "gantry_calibrate_options": CalibrateOptions, "gantry_rebalance": Rebalance,
    "gantry_train_options": TrainOptions, "gantry_strategy": Strategy,
}
# Each enum with what its constants begin with in C.
ENUMS: list[tuple[str, type[enum.IntEnum] | type[enum.IntFlag]]] = [
    *(("GANTRY_", e) for e in (Status, Dtype, Access, BufferClass, RegionKind, Format, Collective, ContentsKind)), ("GANTRY_KERNEL_", KernelFlag),
    ("GANTRY_OPTIMIZER_", Optimizer),
]
