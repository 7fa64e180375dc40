# SPDX-License-Identifier: Apache-2.0
"""As much of PyTorch as the package asks for, over NumPy and the driver: what is copied on a GPU is queued on the current stream. `install`
puts it in the place of PyTorch, so that nothing of a real one is tested here (tests/gpu/check_torch.py does).
"""
import contextlib
import ctypes
import sys
import types

import numpy as np

NAMES = {"float16": "f2", "float32": "f4", "float64": "f8", "int8": "i1", "uint8": "u1", "int16": "i2", "int32": "i4", "uint32": "u4", "int64": "i8",
         "uint64": "u8", "bfloat16": "u2"}
calls, allocated = [], []


class Dtype:
    def __init__(self, name):
        self.name, self.numpy = name, np.dtype("<" + NAMES[name])

    def __repr__(self):
        return f"torch.{self.name}"


class Device:
    def __init__(self, type, index=None):
        self.type, self.index = type, index

    def __repr__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"


class Stream:
    def __init__(self, cuda_stream, device):
        self.cuda_stream, self.device = cuda_stream, device

    def wait_stream(self, other):
        calls.append(("wait", self.cuda_stream, other.cuda_stream))


class Tensor:
    def __init__(self, pointer, shape, dtype, device, owner=None):
        self.pointer, self.shape, self.dtype, self.device, self.owner = pointer, tuple(shape), dtype, device, owner
        self.contiguous = True

    is_cuda = property(lambda self: self.device.type == "cuda")

    @property
    def nbytes(self):
        return int(np.prod(self.shape)) * self.dtype.numpy.itemsize

    def get_device(self):
        return self.device.index if self.is_cuda else -1

    def is_contiguous(self):
        return self.contiguous

    def data_ptr(self):
        return self.pointer

    def element_size(self):
        return self.dtype.numpy.itemsize

    def detach(self):
        return self

    def view(self, dtype):
        assert dtype.numpy.itemsize == self.dtype.numpy.itemsize
        return Tensor(self.pointer, self.shape, dtype, self.device, self)

    def numpy(self):
        assert not self.is_cuda and self.dtype.name not in ("bfloat16", "uint32", "uint64")
        face = types.SimpleNamespace(__array_interface__={"version": 3, "data": (self.pointer, False), "shape": self.shape, "typestr": self.dtype.numpy.str})
        face.owner = self
        return np.asarray(face)

    def clone(self):
        return torch.from_numpy(np.frombuffer(ctypes.string_at(self.pointer, self.nbytes), self.dtype.numpy).reshape(self.shape).copy(), self.dtype)

    def copy_(self, other):
        assert self.shape == other.shape and self.dtype is other.dtype and str(self.device) == str(other.device)
        if self.is_cuda:
            stream = torch.cuda.current_stream(self.device.index)
            calls.append(("copy", stream.cuda_stream, self.device.index))
            assert driver().cuMemcpyDtoDAsync_v2(self.pointer, other.pointer, self.nbytes, stream.cuda_stream) == 0
        else:
            ctypes.memmove(self.pointer, other.pointer, self.nbytes)


def driver():
    library = ctypes.CDLL("libcuda.so.1")
    library.cuMemcpyDtoDAsync_v2.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p]
    return library


def from_numpy(array, dtype=None):
    assert array.flags.writeable
    names = {np.dtype("<" + short): name for name, short in NAMES.items() if name not in ("bfloat16", "uint32", "uint64")}
    kind = dtype or getattr(torch, names[array.dtype])
    return Tensor(array.__array_interface__["data"][0], array.shape, kind, Device("cpu"), array)


def as_tensor(value, device):
    face = value.__cuda_array_interface__
    assert face.get("strides") is None and face.get("stream") is None and not face["data"][1]
    kinds = {np.dtype("<" + short).str: name for name, short in NAMES.items() if name not in ("bfloat16", "uint32", "uint64")}
    return Tensor(face["data"][0], face["shape"], getattr(torch, kinds[face["typestr"]]), Device("cuda", int(device.removeprefix("cuda:"))), value)


def empty(shape, dtype, device):
    """On a GPU, by the driver; the test frees it."""
    pointer, tensor = ctypes.c_uint64(), Tensor(0, shape, dtype, device)
    assert driver().cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(tensor.nbytes)) == 0
    tensor.pointer = pointer.value
    allocated.append(tensor)
    return tensor


@contextlib.contextmanager
def _as_current(place, value):
    before, current[place] = current[place], value
    yield
    current[place] = before


@contextlib.contextmanager
def no_grad():
    yield


current = {"device": 0, "stream": None}
mine = {}  # the program's current streams
torch = types.ModuleType("torch")
torch.__version__ = "stub"
torch.Tensor, torch.device, torch.from_numpy, torch.as_tensor, torch.no_grad = Tensor, Device, from_numpy, as_tensor, no_grad
torch.empty = empty
for _name in NAMES:
    setattr(torch, _name, Dtype(_name))
torch.cuda = types.SimpleNamespace(
    ExternalStream=lambda pointer, device: Stream(pointer, device), device=lambda ordinal: _as_current("device", ordinal),
    stream=lambda stream: _as_current("stream", stream), current_stream=lambda gpu: current["stream"] or mine[gpu])


def install():
    sys.modules["torch"] = torch
    return torch
