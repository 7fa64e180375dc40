# SPDX-License-Identifier: Apache-2.0
"""Tensors of PyTorch in and out: runs a graph in the order of the current streams, without a copy and without waiting.

    import gantry.torch
    f = gantry.torch.function(g.schedule(2))
    y = f(x=x)["y"]           # x, y: CUDA tensors; the buffers are external
"""
from __future__ import annotations

import re
from typing import Any, Mapping

from ._arrays import DTYPES, NUMPY, Info
from ._launch import AS_INTEGERS, DeviceArray, need_torch, tensor_on_host
from .errors import InvalidError
from .graph import Graph
from .run import Run, Start
from .schedule import Schedule

# By what PyTorch calls them.
_NAMES = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "i8": "int8", "u8": "uint8", "i32": "int32", "u32": "uint32",
          "i64": "int64", "u64": "uint64", "f8e4m3": "float8_e4m3fn", "f8e5m2": "float8_e5m2"}
assert set(_NAMES) == set(DTYPES)


class Function:
    """A graph that is called with tensors. Results in external buffers are tensors that belong to the function, and are written anew by its
    next call: `.clone()` keeps one, `out=` gives others. Other results are new tensors on the host, which the call waits for."""

    def __init__(self, run: Run) -> None:
        self.run, self._torch = run, need_torch()
        self._graph = run.schedule.graph
        infos = self._graph.seal()
        self._outputs = [info for info in infos.values() if info.output]
        self._dtypes = {info.name: getattr(self._torch, _NAMES[info.dtype], None) for info in infos.values()}
        self._external = {info.name for info in infos.values() if self._graph.is_external(info.name)}
        self._results = [info for info in self._outputs if info.name in self._external]
        self._made: dict[str, Any] = {}
        self._held: Mapping[str, Any] = {}
        self._start: Start | None = None

    def _refuse(self, role: str, info: Info, seen: str, remedy: str) -> InvalidError:
        return InvalidError(f'{role} "{info.name}" was given {seen}, but takes {_NAMES[info.dtype]} of shape {list(info.shape)}; {remedy}')

    def _check(self, role: str, info: Info, tensor: Any) -> None:
        if not isinstance(tensor, self._torch.Tensor):
            raise self._refuse(role, info, f"a {type(tensor).__name__}", "give a tensor")
        if tensor.dtype is not self._dtypes[info.name] or tensor.shape != info.shape:
            raise self._refuse(role, info, f"a tensor of {tensor.dtype} and shape {list(tensor.shape)}", "convert or reshape it")
        if not tensor.is_contiguous():
            raise self._refuse(role, info, "a tensor that is not contiguous", "use .contiguous()")
        if tensor.is_cuda != (info.name in self._external):
            there = "in memory of the host" if tensor.is_cuda else "external, in memory of a GPU"
            raise self._refuse(role, info, f"a tensor on {tensor.device}", f'the buffer is {there}: use .to(...), or .external("gpu0") of it')

    def _bindings(self, role: str, tensors: Mapping[str, Any], gpus: set[int]) -> dict[str, Any]:
        """What `Run` has to be given of the tensors: by pointers, unless those are bound, or as arrays of the host. Their GPUs are noted."""
        given = {}
        for name, tensor in tensors.items():
            info = self._graph.info(name, role)
            self._check(role, info, tensor)
            if not tensor.is_cuda:
                given[name] = self._array_of(info, tensor)
                continue
            gpus.add(tensor.get_device())
            pointer = int(tensor.data_ptr())
            if self.run.bound_at(name, role) != pointer:
                given[name] = DeviceArray(pointer, info.shape, info.dtype)
        return given

    def _array_of(self, info: Info, tensor: Any) -> Any:
        torch, plain = self._torch, tensor.detach()
        if info.dtype not in AS_INTEGERS:
            return plain.numpy()
        return plain.view(getattr(torch, f"int{8 * plain.element_size()}")).numpy().view(NUMPY[info.dtype])

    def _home(self, info: Info) -> Any:
        """The GPU of an external buffer, by the number at the end of its name."""
        where = self._graph.external_memory(info.name)
        number = re.search(r"(\d+)$", where)
        if number is None:
            raise InvalidError(f'output "{info.name}" is in memory "{where}", whose name does not end in the number of a GPU; give out= a '
                               "tensor there")
        return self._torch.device("cuda", int(number.group(1)))

    def _targets(self, out: Mapping[str, Any]) -> dict[str, Any]:
        """Where external results go."""
        found = {}
        for info in self._results:
            tensor = out.get(info.name, self._made.get(info.name))
            if tensor is None:
                tensor = self._torch.empty(info.shape, dtype=self._dtypes[info.name], device=self._home(info))
                self._made[info.name] = tensor
            found[info.name] = tensor
        for name in out:
            if name not in found:
                raise InvalidError(f'out has "{name}", which is no external output of graph "{self._graph.name}"; leave it out')
        return found

    def __call__(self, inputs: Mapping[str, Any] | None = None, /, *, out: Mapping[str, Any] | None = None, **named: Any) -> dict[str, Any]:
        """Starts in the order of the current streams of all GPUs that tensors are on; what is queued on these next finds the results."""
        tensors, gpus = {**inputs, **named} if inputs else named, set[int]()
        given = self._bindings("input", tensors, gpus)
        targets = self._targets(out or {})
        into = self._bindings("output", targets, gpus)
        if into:
            self.run.bind_output(into)
        start = self._start_on([self._torch.cuda.current_stream(gpu) for gpu in sorted(gpus)], given)
        self._held, self._start = {**tensors, **targets}, start
        if len(targets) == len(self._outputs):
            return targets
        results = start.result()
        return {info.name: targets[info.name] if info.name in targets else self._on_host(info, results[info.name])
                for info in self._outputs}

    def _start_on(self, streams: list[Any], given: Mapping[str, Any]) -> Start:
        """One stream has the start; the others wait for it, and it for them."""
        if not streams:
            return self.run.start(given)
        first, others = streams[0], streams[1:]
        for stream in others:
            first.wait_stream(stream)
        start = self.run.start(given, stream=first.cuda_stream)
        for stream in others:
            stream.wait_stream(first)
        return start

    def _on_host(self, info: Info, array: Any) -> Any:
        """A result of the host, which is the caller's."""
        address = array.__array_interface__["data"][0]
        return tensor_on_host(self._torch, address, info.shape, info.dtype).clone()

    def wait(self) -> None:
        """Waits for the last call, and raises what failed in it."""
        if self._start is not None:
            self._start.result()


def function(what: Graph | Schedule | Run, **options: Any) -> Function:
    """Makes a function of a graph (on this computer), a schedule or a run. Options: those of `Schedule.run`."""
    if isinstance(what, Graph):
        what = what.schedule()
    return Function(what.run(**options) if isinstance(what, Schedule) else what)


__all__ = ["Function", "function"]
