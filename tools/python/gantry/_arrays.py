# SPDX-License-Identifier: Apache-2.0
"""Arrays: element types, and how what users give becomes memory that the library can read."""
from __future__ import annotations

import dataclasses
import numbers
from typing import TYPE_CHECKING, Any

from ._structs import Buffer, BufferClass, Dtype
from .errors import InvalidError, UnsupportedError, listed

try:
    import numpy as np
except ImportError:  # graphs are built and scheduled without arrays
    np = None  # type: ignore[assignment]

if TYPE_CHECKING:
    import numpy.typing

DTYPES: tuple[str, ...] = tuple(dtype.name.lower() for dtype in Dtype)
# Of each element type, what NumPy calls it. It has no bfloat16 and nothing floating of 8 bits: those are their bits.
NUMPY = {"f16": "float16", "bf16": "uint16", "f32": "float32", "f64": "float64", "i8": "int8", "u8": "uint8", "i32": "int32", 
         "u32": "uint32", "i64": "int64", "u64": "uint64", "f8e4m3": "uint8", "f8e5m2": "uint8"}
# Those, by what the package ml_dtypes and PyTorch call them.
BITS = {"bf16": "bfloat16", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}


def need_numpy() -> Any:
    if np is None:
        raise UnsupportedError("arrays need NumPy, which this Python does not have; install it (python3-numpy, pip install numpy)")
    return np


def dtype_of(dtype: Any) -> Dtype:
    """The element type that "f32", np.float32, np.dtype("<f4") and the like name."""
    name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", None) or getattr(dtype, "name", None) or str(dtype)
    for short, long in BITS.items():
        if name == long:
            return Dtype[short.upper()]
    if name in DTYPES:
        return Dtype[name.upper()]
    if np is not None:
        try:
            seen = np.dtype(dtype)
        except TypeError:
            seen = None
        for short, long in NUMPY.items():
            if seen is not None and short not in BITS and seen == np.dtype(long):
                return Dtype[short.upper()]
    raise InvalidError(f"{dtype!r} is no element type of Gantry; use one of {listed(DTYPES)}, or what NumPy calls it")


@dataclasses.dataclass(frozen=True)
class Info:
    """What is known of a buffer of a graph."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    cls: str  # "input", "state", "const" or "temp"
    output: bool
    parts: int  # 0: not split
    tiles: tuple[int, ...]  # along each axis; (): not tiled
    nbytes: int
    rtol: float
    atol: float
    equal_nan: bool
    buffer: Buffer = dataclasses.field(repr=False, compare=False, default_factory=Buffer)

    @property
    def takes_contents(self) -> bool:
        return self.cls != BufferClass.TEMP.name.lower()

    def __str__(self) -> str:
        return f'"{self.name}" ({self.dtype} {list(self.shape)})'


def _refuse(info: Info, role: str, seen: str, remedy: str) -> InvalidError:
    return InvalidError(f'{role} "{info.name}" was given {seen}, but takes {info.dtype} of shape {list(info.shape)}; {remedy}')


def _from_dlpack(info: Info, role: str, value: Any) -> Any:
    kind = int(value.__dlpack_device__()[0])
    if kind not in (1, 3):  # kDLCPU, kDLCUDAHost
        raise _refuse(info, role, f"an array on a device (DLPack device type {kind})",
                      "copy it to the host, or make the buffer external to that device's memory")
    return np.from_dlpack(value)


def _from_numbers(info: Info, role: str, value: Any) -> Any:
    """Lists and numbers of Python have no element type: they take the buffer's, where it holds what they say."""
    want = np.dtype(NUMPY[info.dtype])
    plain = np.asarray(value)
    if want.kind in "iu" and plain.dtype.kind in "fO":  # NumPy makes doubles of whole numbers that no one type of it holds, and of none
        exact = np.asarray(value, object)
        if all(isinstance(n, numbers.Integral) and np.iinfo(want).min <= n <= np.iinfo(want).max for n in exact.flat):
            plain = exact.astype(want)
    fits = plain.dtype.kind in ("iub" if want.kind in "iu" else "iubf") and info.dtype not in BITS
    array = plain.astype(want) if fits else None
    if array is None or (want.kind in "iu" and not np.array_equal(array, plain)):
        raise _refuse(info, role, f"{value!r:.60}, which {info.dtype} does not hold", f"give an array of {NUMPY[info.dtype]}")
    if plain.ndim == 0 and array.size == np.prod(info.shape):
        array = array.reshape(info.shape)
    return array


def _array_of(info: Info, role: str, value: Any) -> Any:
    need_numpy()
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "__dlpack__") and hasattr(value, "__dlpack_device__"):
        return _from_dlpack(info, role, value)
    if isinstance(value, (int, float, bool, list, tuple)):
        return _from_numbers(info, role, value)
    array = np.asarray(value)
    if array.dtype.kind in "OUS":  # no numbers
        raise _refuse(info, role, f"{value!r:.60}", "give an array, which np.load reads from a file; what is left out stays bound")
    return array


def _check(info: Info, role: str, array: Any) -> Any:
    """The array, whose elements and shape must be the buffer's."""
    want = np.dtype(NUMPY[info.dtype])
    bits = array.dtype.name == BITS.get(info.dtype)  # such as that of the package ml_dtypes
    if array.dtype != want and not bits:
        cast = {"bf16": f"to_bf16({info.name})"}.get(info.dtype) or (
            f'to_f8({info.name}, "{info.dtype}")' if info.dtype in BITS else f".astype(np.{NUMPY[info.dtype]})")
        raise _refuse(info, role, f"elements of {array.dtype.str if array.dtype.byteorder == '>' else array.dtype}", f"convert it: {cast}")
    if array.shape != info.shape:
        raise _refuse(info, role, f"shape {list(array.shape)}", "reshape it, or build the graph for that shape")
    return array.view(want) if bits else array


def as_input(info: Info, value: Any) -> Any:
    """A NumPy array that the library can read where it is: the value itself where that is one, else one copy."""
    array = _check(info, "input", _array_of(info, "input", value))
    return np.require(array, requirements=["C", "A"])


def as_target(info: Info, value: Any) -> Any:
    """A NumPy array of the user that a result is written to: never a copy."""
    need_numpy()
    if not isinstance(value, np.ndarray):
        raise _refuse(info, "output", f"a {type(value).__name__}", "give a NumPy array to write to")
    array = _check(info, "output", value)
    if not (array.flags.c_contiguous and array.flags.aligned and array.flags.writeable):
        raise _refuse(info, "output", "an array that is not contiguous, not aligned or read-only",
                      f"give one that can be written to as a whole, such as np.empty({info.shape}, np.{NUMPY[info.dtype]})")
    return array


def address_of(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


class _Memory:
    """Memory of somebody else, for NumPy to look at."""

    def __init__(self, address: int, shape: tuple[int, ...], dtype: str, read_only: bool) -> None:
        self.__array_interface__ = {"version": 3, "data": (address, read_only), "shape": shape, "typestr": TYPESTR[dtype]}


TYPESTR = {} if np is None else {short: np.dtype(long).str for short, long in NUMPY.items()}


def view_of(address: int, shape: tuple[int, ...], dtype: str, read_only: bool) -> Any:
    """An array of memory that is not copied and not kept: whoever asks takes care that it lives long enough."""
    if not address or 0 in shape:
        empty = np.empty(shape, NUMPY[dtype])
        empty.flags.writeable = not read_only
        return empty
    return np.asarray(_Memory(address, shape, dtype, read_only))


def device_pointer(info: Info, role: str, value: Any) -> tuple[int, int | None]:
    """The device pointer of an object with `__cuda_array_interface__`, and the stream that has to be waited for."""
    faces = value.__cuda_array_interface__
    want = "<u2" if info.dtype == "bf16" else need_numpy().dtype(NUMPY[info.dtype]).str
    seen = faces["typestr"]
    if seen != want and not (info.dtype == "bf16" and seen == "<V2"):
        raise _refuse(info, role, f"elements of {seen} on a GPU", f"convert it to {want}")
    shape = tuple(int(n) for n in faces["shape"])
    if shape != info.shape:
        raise _refuse(info, role, f"shape {list(shape)} on a GPU", "reshape it, or build the graph for that shape")
    if faces.get("strides") is not None:
        step, packed = int(np.dtype(want).itemsize), list[int]()
        for extent in reversed(shape):
            packed.insert(0, step)
            step *= extent
        if tuple(faces["strides"]) != tuple(packed):
            raise _refuse(info, role, "an array on a GPU that is not contiguous in C order", "make it contiguous")
    address, read_only = faces["data"]
    if read_only and role == "output":
        raise _refuse(info, role, "an array on a GPU that is read-only", "give one that can be written to")
    return int(address or 0), faces.get("stream")


def to_bf16(array: numpy.typing.ArrayLike) -> numpy.typing.NDArray[Any]:
    """The bits of the bfloat16 nearest to each float32, ties to even, as uint16; a NaN stays one."""
    need_numpy()
    numbers = np.asarray(array, np.float32)
    bits = numbers.view(np.uint32).astype(np.uint64)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(numbers), np.uint16(0x7FC0), rounded)


def from_bf16(bits: numpy.typing.NDArray[Any]) -> numpy.typing.NDArray[Any]:
    """The float32 that bits of bfloat16 mean; exact."""
    need_numpy()
    return np.left_shift(np.asarray(bits, np.uint32), np.uint32(16)).view(np.float32)


def _f8_values(dtype: str) -> Any:
    """What the 256 patterns mean."""
    if dtype not in ("f8e4m3", "f8e5m2"):
        raise InvalidError(f'{dtype!r} is no floating type of 8 bits; use "f8e4m3" or "f8e5m2"')
    bits = np.arange(256)
    fraction, bias = (3, 7) if dtype == "f8e4m3" else (2, 15)
    exponent, part = (bits & 127) >> fraction, (bits & (2**fraction - 1)) / 2.0**fraction
    values = np.where(exponent > 0, (1 + part) * np.exp2(exponent - bias), part * np.exp2(1.0 - bias))
    if dtype == "f8e4m3":
        values[[127, 255]] = np.nan
    else:
        values = np.where(exponent == 31, np.where(part > 0, np.nan, np.inf), values)
    return np.where(bits > 127, -values, values).astype(np.float32)


def to_f8(array: numpy.typing.ArrayLike, dtype: str = "f8e4m3") -> numpy.typing.NDArray[Any]:
    """The bits of the f8e4m3 or f8e5m2 nearest to each float32, ties to even, as uint8. What is too large becomes the largest number; a NaN
    stays one."""
    need_numpy()
    numbers_ = np.asarray(array, np.float32)
    positive = _f8_values(dtype)[:128]
    finite = positive[np.isfinite(positive)].astype(np.float64)
    size = np.minimum(np.abs(np.nan_to_num(numbers_.astype(np.float64), nan=0.0, posinf=finite[-1], neginf=-finite[-1])), finite[-1])
    above = np.searchsorted(finite, size)
    below = np.maximum(above - 1, 0)
    twice, middle = 2 * size, finite[above] + finite[below]
    nearest = np.where((twice > middle) | ((twice == middle) & (above % 2 == 0)), above, below)
    nearest = np.where(np.isnan(numbers_), 127 if dtype == "f8e4m3" else 126, nearest)
    return (nearest | np.where(np.signbit(numbers_), 128, 0)).astype(np.uint8)


def from_f8(bits: numpy.typing.NDArray[Any], dtype: str = "f8e4m3") -> numpy.typing.NDArray[Any]:
    """The float32 that bits of f8e4m3 or f8e5m2 mean; exact."""
    need_numpy()
    there = np.asarray(bits)
    if there.dtype.itemsize == 1 and there.dtype.kind not in "ui":  # of ml_dtypes, whose numbers are not to be converted
        there = there.view(np.uint8)
    return np.asarray(_f8_values(dtype)[there.astype(np.uint8)])
