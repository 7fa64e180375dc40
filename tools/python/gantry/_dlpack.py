# SPDX-License-Identifier: Apache-2.0
"""DLPack, by its structs: where an array of another library is, without a copy and without that library."""
from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_char_p, c_int32, c_int64, c_uint8, c_uint16, c_uint64, c_void_p
from typing import Any

from .errors import InvalidError

CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13  # DLDeviceType
ON_GPU = (CUDA, CUDA_MANAGED)
LEGACY_STREAM = 1  # what DLPack calls the default stream of CUDA
# By DLDataTypeCode and bits.
TYPES = {(2, 16): "f16", (4, 16): "bf16", (2, 32): "f32", (2, 64): "f64", (0, 8): "i8", (1, 8): "u8", (0, 32): "i32", (1, 32): "u32",
         (0, 64): "i64", (1, 64): "u64", (10, 8): "f8e4m3", (12, 8): "f8e5m2"}


class Device(Structure):
    _fields_ = [("type", c_int32), ("id", c_int32)]


class Tensor(Structure):
    _fields_ = [
        ("data", c_void_p), ("device", Device), ("ndim", c_int32), ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16),
        ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("byte_offset", c_uint64),
    ]


_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = c_void_p, [ctypes.py_object, c_char_p]


def device_type(value: Any) -> int | None:
    """The DLDeviceType of an object that has `__dlpack__`, else None."""
    if not (hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__")):
        return None
    return int(value.__dlpack_device__()[0])


class Array:
    """Memory of another library. The capsule is kept and not consumed: when it goes, its owner is told."""

    def __init__(self, value: Any, stream: int | None) -> None:
        """`stream`: a CUDA stream, in whose order the array has to be ready; None: memory of the host, which is."""
        order = {} if stream is None else {"stream": stream or LEGACY_STREAM}
        self._capsule = value.__dlpack__(**order)
        tensor = Tensor.from_address(_pointer(self._capsule, b"dltensor"))
        kind = TYPES.get((tensor.code, tensor.bits)) if tensor.lanes == 1 else None
        if kind is None:
            raise InvalidError(f"an array has elements of DLPack's type {tensor.code} with {tensor.bits} bits in {tensor.lanes} lanes, which "
                               "Gantry does not have; convert it")
        self.dtype, self.shape = kind, tuple(tensor.shape[:tensor.ndim])
        self.pointer = (tensor.data or 0) + tensor.byte_offset
        self.packed = not tensor.strides or _is_packed(self.shape, tensor.strides[:tensor.ndim])


def _is_packed(shape: tuple[int, ...], strides: list[int]) -> bool:
    step = 1
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent > 1 and stride != step:
            return False
        step *= extent
    return True
