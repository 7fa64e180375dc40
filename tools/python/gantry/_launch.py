# SPDX-License-Identifier: Apache-2.0
"""What kernels of Python are called with on GPUs: memory by its pointer, or tensors of PyTorch on the stream of the launch."""
from __future__ import annotations

import contextlib
import importlib
from typing import Any, Iterator

from . import _structs as c
from ._arrays import DTYPES, NUMPY, need_numpy, view_of
from .errors import UnsupportedError


class DeviceArray:
    """Memory of a GPU in C order. CuPy, PyTorch, Numba and others take it by `__cuda_array_interface__`, Triton by `data_ptr()`."""

    def __init__(self, pointer: int, shape: tuple[int, ...], dtype: str, read_only: bool = False, owner: object = None) -> None:
        self.pointer, self.shape, self.dtype, self.read_only = pointer, shape, dtype, read_only
        self._owner = owner  # whose memory it is

    @property
    def size(self) -> int:
        elements = 1
        for extent in self.shape:
            elements *= extent
        return elements

    @property
    def nbytes(self) -> int:
        return self.size * int(need_numpy().dtype(NUMPY[self.dtype]).itemsize)

    def data_ptr(self) -> int:
        return self.pointer

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """Without a stream: whoever was given the array was told the one to use."""
        return {"version": 3, "data": (self.pointer, self.read_only), "shape": self.shape, "strides": None, "stream": None,
                "typestr": need_numpy().dtype(NUMPY[self.dtype]).str}

    def __repr__(self) -> str:
        return f"<gantry.DeviceArray {self.dtype} {list(self.shape)} at {self.pointer:#x}>"


def device_array(arg: c.Arg) -> DeviceArray:
    return DeviceArray(arg.data or 0, (arg.rows, *arg.shape[1:arg.rank]), DTYPES[arg.dtype], arg.access == c.Access.READ)


# ---- PyTorch ----

# What PyTorch is told about memory whose element type NumPy, or an older PyTorch, does not have, and what it is then.
AS_INTEGERS = {"bf16": ("i16", "bfloat16"), "u32": ("i32", "uint32"), "u64": ("i64", "uint64"),
               "f8e4m3": ("u8", "float8_e4m3fn"), "f8e5m2": ("u8", "float8_e5m2")}
INTEGERS = {"u8": "|u1", "i16": "<i2", "i32": "<i4", "i64": "<i8"}


def need_torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise UnsupportedError("tensors need PyTorch, which this Python does not have; install it (pip install torch)") from error


def as_their_type(torch: Any, tensor: Any, dtype: str) -> Any:
    """The tensor with elements of that type, where it was made with integers in their place."""
    name = AS_INTEGERS[dtype][1] if dtype in AS_INTEGERS else None
    if name is None:
        return tensor
    if not hasattr(torch, name):
        raise UnsupportedError(f"PyTorch {torch.__version__} has no elements of {name}; use another element type, or PyTorch 2.3 or later")
    return tensor.view(getattr(torch, name))


class _Interface:
    def __init__(self, array: DeviceArray) -> None:
        self.__cuda_array_interface__ = {**array.__cuda_array_interface__, "data": (array.pointer, False)}
        if array.dtype in AS_INTEGERS:
            self.__cuda_array_interface__["typestr"] = INTEGERS[AS_INTEGERS[array.dtype][0]]


def tensor_on_gpu(torch: Any, array: DeviceArray, ordinal: int) -> Any:
    """The memory as a tensor, which PyTorch does not own."""
    return as_their_type(torch, torch.as_tensor(_Interface(array), device=f"cuda:{ordinal}"), array.dtype)


def tensor_on_host(torch: Any, address: int, shape: tuple[int, ...], dtype: str) -> Any:
    view = view_of(address, shape, dtype, False)
    if dtype in AS_INTEGERS:
        view = view.view(INTEGERS[AS_INTEGERS[dtype][0]])
    return as_their_type(torch, torch.from_numpy(view), dtype)


def tensor_of(torch: Any, arg: c.Arg, ordinal: int) -> Any:
    if ordinal >= 0:
        return tensor_on_gpu(torch, device_array(arg), ordinal)
    return tensor_on_host(torch, arg.data or 0, (arg.rows, *arg.shape[1:arg.rank]), DTYPES[arg.dtype])


@contextlib.contextmanager
def on_stream(torch: Any, stream: int, ordinal: int) -> Iterator[None]:
    """What PyTorch, and Triton, launch within goes to that stream of Gantry, and nothing is recorded for a backward pass."""
    with torch.no_grad():
        if ordinal < 0:
            yield
            return
        with torch.cuda.device(ordinal), torch.cuda.stream(torch.cuda.ExternalStream(stream, device=ordinal)):
            yield
