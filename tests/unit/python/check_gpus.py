# SPDX-License-Identifier: Apache-2.0
"""The package on two GPUs of the fake driver, with kernels on the CPU: arrays in and out, kernels in Python beside GPUs, external buffers bound to
memory of GPUs, and streams. The fake ends the program when something is left behind, or a call is wrong.
"""
import ctypes

import numpy as np

from suite import ROOT, Case, gantry, main

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


main()
