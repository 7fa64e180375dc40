# SPDX-License-Identifier: Apache-2.0
"""The package on two GPUs of the fake driver, with kernels on the CPU: arrays in and out, kernels in Python beside GPUs, external buffers bound to
memory of GPUs, and streams. The fake ends the program when something is left behind, or a call is wrong.
"""
import ctypes
import sys

import numpy as np

import stub_torch
from suite import ROOT, Case, gantry, main

torch = stub_torch.install()
import gantry.torch  # noqa: E402

N = 1000
driver = ctypes.CDLL("libcuda.so.1")
driver.cuMemcpyHtoDAsync_v2.argtypes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p]
driver.cuMemcpyDtoH_v2.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t]


def call(name, *arguments):
    status = getattr(driver, name)(*arguments)
    assert status == 0, f"{name}: {status}"


class OnGpu:
    """N floats in the memory of the current GPU."""

    def __init__(self, stream=None):
        pointer = ctypes.c_uint64()
        call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(4 * N))
        self.pointer = pointer.value
        self.__cuda_array_interface__ = {"version": 3, "data": (self.pointer, False), "shape": (N,), "typestr": "<f4", "strides": (4,), "stream": stream}

    def get(self):
        array = np.empty(N, np.float32)
        call("cuMemcpyDtoH_v2", array.ctypes.data, self.pointer, 4 * N)
        return array


class Gpus(Case):
    def test_arrays(self):
        x, y = np.arange(N, dtype=np.float32), np.ones(N, np.float32)
        self.assertEqual([d.id for d in gantry.Machine.detect().devices if d.gpu], ["gpu0", "gpu1"])
        graph = gantry.load(ROOT / "graphs/saxpy.json", {"n": N})
        for replay in ("stream", "graph"):
            run = graph.schedule(2, policy="heft", replay=replay).run()
            for k in range(4):
                self.equal(run(x=x, y=k * y)["y"], 2 * x + k)
            self.assertEqual(run.info.backend, "cuda")

    def test_kernels_in_python_beside_gpus(self):
        @gantry.kernel
        def half(x: gantry.In, y: gantry.Out):
            if x[0] < 0:
                raise ValueError("less than nothing")
            y[:] = x / 2

        g = gantry.Graph("own")
        x, t, y = g.input("x", N), g.buffer("t", N), g.buffer("y", N, output=True)
        g.node("scale", x=x, a=3.0, y=t).on("gpu1")
        node = g.node(half, x=t, y=y)
        plan = g.schedule(2)
        self.assertEqual(gantry.Machine.detect().devices[plan.device_of(node)].gpu, False)
        run = plan.run()
        a = np.arange(N, dtype=np.float32)
        self.equal(run(x=a)["y"], 1.5 * a)
        with self.refused(gantry.KernelError, 'node "half" failed on device "cpu".*kernel "half" raised ValueError: less than nothing') as refused:
            run(x=-1 - a)
        self.assertIsInstance(refused.value.__cause__, ValueError)
        self.equal(run(x=a)["y"], 1.5 * a)

    def test_external_buffers_and_streams(self):
        g = gantry.Graph("external")
        x, y = g.input("x", N).external("gpu0"), g.buffer("y", N, output=True).external("gpu0")
        g.node("scale", x=x, a=3.0, y=y)
        device, context, stream, host = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        call("cuInit", 0)
        call("cuDeviceGet", ctypes.byref(device), 0)
        call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        call("cuCtxSetCurrent", context)
        call("cuStreamCreate", ctypes.byref(stream), 1)  # CU_STREAM_NON_BLOCKING
        call("cuMemHostAlloc", ctypes.byref(host), ctypes.c_size_t(4 * N), 0)
        floats = np.frombuffer((ctypes.c_float * N).from_address(host.value), np.float32)
        given, ready, result = OnGpu(), OnGpu(stream.value), OnGpu()
        with g.schedule(1).run() as run:
            for k, array in enumerate((given, ready, ready)):
                floats[:] = np.arange(N) + k
                call("cuMemcpyHtoDAsync_v2", array.pointer, host, 4 * N, stream)
                if array is given:
                    call("cuStreamSynchronize", stream)
                # An array that says that it is ready on a stream makes the start wait for that stream.
                self.assertIs(run.bind_output(y=result)(x=array)["y"], result)
                self.equal(result.get(), 3 * (np.arange(N) + k).astype(np.float32))
            # Arrays of a start that nobody has waited for may be given anew: the start is waited for.
            first = run.bind_output(y=result).start(x=ready, stream=stream.value)
            self.assertIs(run(x=given)["y"], result)
            self.equal(result.get(), 3 * np.arange(N, dtype=np.float32))
            self.assertTrue(first.done)
            first = run.start(x=given)
            self.assertIs(run.bind_output(y=ready)(x=given)["y"], ready)
            self.assertTrue(first.done)
            run.bind_output(y=result)
            with self.refused(gantry.InvalidError, rf'input "x" is ready on stream {stream.value}, but the start is to go on stream 77; use one'):
                run.start(x=ready, stream=77)
            with self.refused(gantry.InvalidError, 'external buffer "x" cannot be bound to'):
                run(x=np.zeros(N, np.float32))
        for array in (given, ready, result):
            call("cuMemFree_v2", ctypes.c_uint64(array.pointer))
        call("cuMemFreeHost", host)
        call("cuStreamDestroy_v2", stream)
        call("cuCtxSetCurrent", None)
        call("cuDevicePrimaryCtxRelease_v2", device)


class Stream:
    """The driver's context of GPU 0 and a stream on it, while a test needs them."""

    def __init__(self, gpu=0):
        self.gpu = gpu

    def __enter__(self):
        self.device, context, stream = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        call("cuInit", 0)
        call("cuDeviceGet", ctypes.byref(self.device), self.gpu)
        call("cuDevicePrimaryCtxRetain", ctypes.byref(context), self.device)
        call("cuCtxSetCurrent", context)
        call("cuStreamCreate", ctypes.byref(stream), 1)
        self.stream = stream
        return stream.value

    def __exit__(self, *what):
        for tensor in stub_torch.allocated:
            call("cuMemFree_v2", ctypes.c_uint64(tensor.pointer))
        stub_torch.allocated.clear()
        call("cuStreamDestroy_v2", self.stream)
        call("cuCtxSetCurrent", None)
        call("cuDevicePrimaryCtxRelease_v2", self.device)


class Launchers(Case):
    def test_memory_by_its_pointer(self):
        driver.cuMemcpyDtoDAsync_v2.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p]
        seen = []

        @gantry.kernel(arrays="device", flops="x.size")
        def copies(launch: gantry.Launch, factor: int, x: gantry.In, y: gantry.Out):
            if factor != 1:
                raise ValueError(f"only once, not {factor} times")
            self.assertEqual((x.__cuda_array_interface__["data"], x.read_only, y.read_only), ((x.pointer, True), True, False))
            self.assertEqual((x.dtype, x.shape, x.nbytes, x.data_ptr()), ("f32", (N // 2,), 2 * N, x.pointer))
            seen.append((launch.node, launch.ordinal, launch.place["x"].own_first))
            call("cuMemcpyDtoDAsync_v2", y.pointer, x.pointer, x.nbytes, launch.stream)

        g = gantry.Graph("own")
        x, y = g.input("x", N, split=2), g.buffer("y", N, output=True, split=2)
        for i in range(2):
            g.node(copies, id=f"c{i}", factor=gantry.Dynamic(1), x=x[i], y=y[i]).on(f"gpu{i}")
        run = g.schedule(2).run()
        for k in range(3):
            a = np.arange(N, dtype=np.float32) + k
            self.equal(run(x=a)["y"], a)
        self.assertEqual(run.info.replay, "stream")
        self.assertEqual(sorted(seen), [("c0", 0, 0)] * 3 + [("c1", 1, N // 2)] * 3)
        run.set_scalar("c1", "factor", 7)
        with self.refused(gantry.KernelError, 'node "c1".*device "gpu1".*kernel "copies" raised ValueError: only once, not 7 times'):
            run(x=a)

    def test_captured_where_that_is_asked_for(self):
        @gantry.kernel(arrays="torch")
        def move(x: gantry.In, y: gantry.Out):
            y.copy_(x)

        g = gantry.Graph("own")
        g.node(move, x=g.input("x", N), y=g.buffer("y", N, output=True)).on("gpu0")
        run = g.schedule(1, replay="graph").run()
        stub_torch.calls.clear()
        for k in range(3):
            self.equal(run(x=np.full(N, k, np.float32))["y"], np.full(N, k, np.float32))
        self.assertEqual(run.info.replay, "graph")
        copies = [c for c in stub_torch.calls if c[0] == "copy"]
        self.assertTrue(1 <= len(copies) <= 3 and all(stream and gpu == 0 for _, stream, gpu in copies), copies)

    def test_bfloat16(self):
        @gantry.kernel(arrays="torch")
        def move(x: gantry.In, y: gantry.Out):
            assert x.dtype is torch.bfloat16 and x.is_cuda and x.device.index == 1, x.device
            y.copy_(x)

        g = gantry.Graph("own")
        g.node(move, x=g.input("x", N, "bf16"), y=g.buffer("y", N, "bf16", output=True)).on("gpu1")
        a = gantry.to_bf16(np.arange(N))
        self.equal(g.schedule(2).run()(x=a)["y"], a)

    def test_a_graph_on_the_current_streams(self):
        """No host waits: results are in the order of the stream that is current."""
        g = gantry.Graph("external")
        x, y = g.input("x", N).external("gpu0"), g.buffer("y", N, output=True).external("gpu0")
        g.node("scale", x=x, a=3.0, y=y)
        with Stream() as stream:
            stub_torch.mine[0] = stub_torch.Stream(stream, 0)
            x, own = torch.empty((N,), torch.float32, torch.device("cuda", 0)), torch.empty((N,), torch.float32, torch.device("cuda", 0))
            host, back = (ctypes.c_void_p() for _ in range(2))
            for memory in (host, back):
                call("cuMemHostAlloc", ctypes.byref(memory), ctypes.c_size_t(4 * N), 0)
            floats, got = (np.frombuffer((ctypes.c_float * N).from_address(m.value), np.float32) for m in (host, back))
            driver.cuMemcpyDtoHAsync_v2.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_void_p]
            f = gantry.torch.function(g.schedule(1))
            made = []
            for k, out in enumerate((None, None, {"y": own})):
                floats[:] = np.arange(N) + k
                call("cuMemcpyHtoDAsync_v2", x.pointer, host, 4 * N, stream)
                y = f(x=x, out=out)["y"]
                made.append(y)
                call("cuMemcpyDtoHAsync_v2", back, y.pointer, 4 * N, stream)
                call("cuStreamSynchronize", stream)
                self.equal(got.copy(), 3 * (np.arange(N) + k).astype(np.float32))
            f.wait()
            self.assertIs(made[0], made[1])
            self.assertIs(made[2], own)
            self.assertEqual(f.run.info.starts, 3)
            f.run.close()
            for memory in (host, back):
                call("cuMemFreeHost", memory)

    def test_a_call_with_the_same_tensors_binds_nothing(self):
        """What a call takes beside its start is what a graph of tiny kernels takes: functions of Python are counted, not timed."""
        g = gantry.Graph("external")
        g.node("scale", x=g.input("x", N).external("gpu0"), a=3.0, y=g.buffer("y", N, output=True).external("gpu0"))
        with Stream() as stream:
            stub_torch.mine[0] = stub_torch.Stream(stream, 0)
            one, other, own = (torch.empty((N,), torch.float32, torch.device("cuda", 0)) for _ in range(3))
            f, called = gantry.torch.function(g.schedule(1)), []

            def call_of(**tensors):
                called.clear()
                sys.setprofile(lambda frame, event, _: called.append(frame.f_code.co_name) if event == "call" else None)
                try:
                    return f(**tensors)["y"]
                finally:
                    sys.setprofile(None)
            call_of(x=one)
            for x, out, binds in ((one, None, 0), (other, None, 1), (other, None, 0), (other, {"y": own}, 1), (one, {"y": own}, 1), (one, None, 1)):
                call("cuMemsetD32Async", ctypes.c_uint64(x.pointer), int(np.float32(2 + (x is one)).view(np.uint32)), ctypes.c_size_t(N), ctypes.c_void_p(stream))
                y, got = call_of(x=x, out=out), np.empty(N, np.float32)
                self.assertEqual(sum(name in ("_bind_input", "_bind_target") for name in called), binds)
                if not binds:
                    self.assertLess(len(called), 40, called)
                f.wait()
                call("cuMemcpyDtoH_v2", got.ctypes.data, y.pointer, 4 * N)
                self.equal(got, np.full(N, 9 if x is one else 6, np.float32))
            f.run.close()

    def test_dlpack(self):
        """An array of which nothing but DLPack is known, in the order of the stream that it is asked for."""
        g = gantry.Graph("external")
        x, y = g.input("x", N).external("gpu0"), g.buffer("y", N, output=True).external("gpu0")
        g.node("scale", x=x, a=3.0, y=y)
        with Stream() as stream:
            given, result = (Capsuled(torch.empty((N,), torch.float32, torch.device("cuda", 0))) for _ in range(2))
            call("cuMemsetD32Async", ctypes.c_uint64(given.tensor.pointer), int(np.float32(2).view(np.uint32)), ctypes.c_size_t(N), ctypes.c_void_p(stream))
            with g.schedule(1).run() as run:
                run.bind_output(y=result)
                self.assertIs(run.start(x=given, stream=stream).result()["y"], result)
                self.assertEqual(given.asked, [stream])
                got = np.empty(N, np.float32)
                call("cuMemcpyDtoH_v2", got.ctypes.data, result.tensor.pointer, 4 * N)
                self.equal(got, np.full(N, 6, np.float32))
                with self.refused(gantry.InvalidError, 'input "x" is an array on a GPU that DLPack hands over in the order of a stream; say which'):
                    run(x=given)
                for field, value, said in (("bits", 64, r"elements of <f8 on a GPU"), ("lanes", 2, "DLPack's type 2 with 32 bits in 2 lanes"),
                                           ("strides", (ctypes.c_int64 * 1)(2), "not contiguous in C order")):
                    with self.refused(gantry.InvalidError, said):
                        run.start(x=Capsuled(given.tensor, **{field: value}), stream=stream)


class Capsuled:
    """What exports DLPack, written down by hand: the struct DLManagedTensor of dlpack.h."""

    def __init__(self, tensor, bits=32, lanes=1, strides=None):
        self.tensor, self.asked = tensor, []
        self.shape, self.strides = (ctypes.c_int64 * 1)(N), strides
        self.bytes = ctypes.create_string_buffer(64)
        for offset, kind, value in ((0, ctypes.c_uint64, tensor.pointer), (8, ctypes.c_int32, 2), (12, ctypes.c_int32, 0), (16, ctypes.c_int32, 1),
                                    (20, ctypes.c_uint8, 2), (21, ctypes.c_uint8, bits), (22, ctypes.c_uint16, lanes),
                                    (24, ctypes.c_uint64, ctypes.addressof(self.shape)),
                                    (32, ctypes.c_uint64, ctypes.addressof(strides) if strides else 0), (40, ctypes.c_uint64, 0)):
            kind.from_buffer(self.bytes, offset).value = value

    def __dlpack_device__(self):
        return 2, 0

    def __dlpack__(self, stream=None):
        self.asked.append(stream)
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(ctypes.addressof(self.bytes), NAME, None)


NAME = b"dltensor"  # a capsule does not copy it

main()
