# SPDX-License-Identifier: Apache-2.0
"""Tensors on the host, with a stub in the place of PyTorch: kernels that are called with them, and graphs that are. GPUs are in
check_gpus.py; the real PyTorch is tests/gpu/check_torch.py's. And CUDA source, up to where a GPU is needed.
"""
import ctypes
import json
import subprocess
import sys

import numpy as np

import stub_torch
from suite import ROOT, Case, gantry, library, main

torch = stub_torch.install()
import gantry.torch  # noqa: E402


@gantry.kernel(arrays="torch", flops="x.size")
def move(x: gantry.In, y: gantry.Out):
    y.copy_(x)


def moved(dtype="f32", kernel=move, shape=(6, 4)):
    g = gantry.Graph("moved")
    x, y = g.input("x", shape, dtype, split=2), g.buffer("y", shape, dtype, output=True, split=2)
    for i in range(2):
        g.node(kernel, x=x[i], y=y[i])
    return g


class Tensors(Case):
    def test_kernels_get_tensors(self):
        for dtype, bits in (("f32", "f4"), ("f16", "f2"), ("bf16", "u2"), ("u32", "u4"), ("i64", "i8"), ("u64", "u8"), ("u8", "u1")):
            a = np.arange(24).reshape(6, 4).astype("<" + bits)
            self.equal(moved(dtype).schedule(2).run()(x=a)["y"], a)

    def test_none_is_kept(self):
        kept = []

        @gantry.kernel(arrays="torch")
        def keeps(x: gantry.In, y: gantry.Out):
            kept.append(x)
            y.copy_(x)

        with self.refused(gantry.KernelError, 'kernel "keeps" raised InvalidError: the function kept its argument "x"'):
            moved(kernel=keeps).schedule(1).run()(x=np.zeros((6, 4), np.float32))

    def test_a_graph_with_tensors(self):
        f = gantry.torch.function(moved().schedule(2))
        for k in range(3):
            a = np.full((6, 4), k, np.float32)
            y = f(x=torch.from_numpy(a))["y"]
            self.equal(y.numpy(), a)
        self.assertEqual(f.run.info.starts, 3)
        for dtype, bits in (("bf16", "u2"), ("u32", "u4")):
            a = np.arange(24).reshape(6, 4).astype("<" + bits)
            made = gantry.torch.function(moved(dtype))
            kind = made._dtypes["x"]
            y = made(x=torch.from_numpy(a.view("<i" + bits[1])).view(kind))["y"]
            self.assertIs(y.dtype, kind)
            self.assertEqual(ctypes.string_at(y.data_ptr(), a.nbytes), a.tobytes())
        f.wait()

    def test_tensors_that_do_not_fit(self):
        f = gantry.torch.function(moved())
        good = np.zeros((6, 4), np.float32)
        for wrong, said in ((good, "a ndarray, but takes float32 of shape .6, 4.; give a tensor"),
                            (torch.from_numpy(good.astype("f8")), r"a tensor of torch.float64 and shape \[6, 4\], .*; convert or reshape it"),
                            (torch.from_numpy(good[:5].copy()), r"a tensor of torch.float32 and shape \[5, 4\]"),
                            (stub_torch.Tensor(4096, (6, 4), torch.float32, torch.device("cuda", 0)), "a tensor on cuda:0, .* the buffer is in memory of the host")):
            with self.refused(gantry.InvalidError, f'input "x" was given {said}'):
                f(x=wrong)
        sparse = torch.from_numpy(good)
        sparse.contiguous = False
        with self.refused(gantry.InvalidError, r"not contiguous, .*use \.contiguous\(\)"):
            f(x=sparse)
        with self.refused(gantry.InvalidError, 'out has "y", which is no external output of graph "moved"'):
            f(x=torch.from_numpy(good), out={"y": torch.from_numpy(good)})
        with self.refused(gantry.InvalidError, 'graph "moved" has no input "z"'):
            f(z=torch.from_numpy(good))
        g = gantry.Graph("far")
        x, y = g.input("x", 8).external("dev0"), g.buffer("y", 8, output=True).external("far")
        g.node("scale", x=x, a=3.0, y=y)
        with self.refused(gantry.InvalidError, 'the buffer is external, in memory of a GPU'):
            g.external_memory("y") and gantry.torch.Function(_Run(g))(x=torch.from_numpy(np.zeros(8, np.float32)))
        with self.refused(gantry.InvalidError, 'output "y" is in memory "far", whose name does not end in the number of a GPU; give out='):
            gantry.torch.Function(_Run(g))()
        with self.refused(gantry.InvalidError, 'buffer "x" of graph "moved" is in memory of the host'):
            moved().external_memory("x")

    def test_without_pytorch(self):
        program = "import gantry\n@gantry.kernel(arrays='torch')\ndef f(x: gantry.InOut): pass\n"
        done = subprocess.run([sys.executable, "-S", "-B", "-c", f"import sys; sys.path[:0] = {[str(ROOT / 'tools/python'), *[p for p in sys.path if 'packages' in p]]!r}\n"
                               f"sys.modules['torch'] = None\n{program}"], capture_output=True, text=True, env={"GANTRY_LIBRARY": library})
        self.assertIn("UnsupportedError: tensors need PyTorch, which this Python does not have; install it (pip install torch)", done.stderr)


class _Run:
    """What a Function asks of a run before it starts."""

    def __init__(self, graph):
        self.schedule = type("Plan", (), {"graph": graph})


class Source(Case):
    def test_the_host_version(self):
        @gantry.kernel(cuda="unused here", grid="ceil_div(n, 256)", block=256)
        def saxpy(a: gantry.F32, x: gantry.In, y: gantry.InOut, n: gantry.I64 = "x.size"):
            assert n == x.size
            y += np.float32(a) * x

        g = gantry.Graph()
        x, y = g.input("x", 10), g.input("y", 10, output=True)
        g.node(saxpy, a=3, x=x, y=y)
        self.equal(g.schedule(1).run()(x=np.arange(10, dtype=np.float32), y=np.ones(10, np.float32))["y"], 3 * np.arange(10, dtype=np.float32) + 1)

    def test_resident_kernels_are_planned_for_workers(self):
        """A chain is predicted by turns of workers, 0.6 us each, in place of launches of 5 us, where they may call the kernel."""
        gpu = {"gantry_machine": 1, "memories": [{"id": "host", "capacity": "1GiB"}, {"id": "m", "capacity": "1GiB"}],
               "devices": [{"id": "gpu", "type": "gpu", "memory": "m", "launch_us": 5}, {"id": "cpu", "memory": "host", "use": "host"}],
               "routes": [{"from": "host", "to": "m", "both": True, "bandwidth_gbs": 10}]}
        predicted = {}
        for resident in (False, True):
            @gantry.kernel(cuda="unused here", grid="ceil_div(n, 256)", block=256, resident=resident)
            def step(x: gantry.In, y: gantry.InOut, n: gantry.I64 = "x.size"): ...

            g = gantry.Graph()
            x, y = g.buffer("x", 8, init=1, cls="state"), g.buffer("y", 8, init=1, cls="state")
            for _ in range(20):
                g.node(step, x=x, y=y)
            plan = g.schedule(gantry.Machine.parse(json.dumps(gpu)), replay="device")
            predicted[resident] = plan.summary.makespan_us
        self.assertAlmostEqual(predicted[False], 100, delta=1)
        self.assertAlmostEqual(predicted[True], 12, delta=1)

    def test_what_runs_on_gpus_only(self):
        @gantry.kernel(cuda="unused here", grid=1, block=1, host=False)
        def nothing(x: gantry.InOut): ...

        @gantry.kernel(arrays="device")
        def launches(x: gantry.InOut): ...

        for kernel in (nothing, launches):
            g = gantry.Graph()
            g.node(kernel, x=g.input("x", 10))
            with self.refused(gantry.UnsupportedError, f'of node "{kernel.name}" has no version for CPUs, and machine "host-2" has nothing else'):
                g.schedule(2)
            self.assertGreater(g.schedule("dgx1-v100").makespan, 0)

    def test_what_is_wrong_with_them(self):
        def plain(x: gantry.InOut): ...

        for said, options in ((r"takes arrays of 'cupy'; there are \"numpy\" \(NumPy arrays, on CPUs\), ", {"arrays": "cupy"}),
                              ('has CUDA source and a function for arrays of "torch"', {"arrays": "torch", "cuda": ""}),
                              ("has CUDA source and no grid or block; give both", {"cuda": "", "grid": 1}),
                              ("has grid, block, shared_bytes, host or resident, which are for CUDA source", {"block": 3}),
                              ("has grid, block, shared_bytes, host or resident", {"host": False}),
                              ("has grid, block, shared_bytes, host or resident", {"resident": True}),
                              (r"has 4 extents, \[1, 2, 3, 4\]; one to three are allowed", {"cuda": "", "grid": [1, 2, 3, 4], "block": 1})):
            with self.refused(gantry.InvalidError, said):
                gantry.kernel(**options)(plain)
        for default, said in (("x.size", "has the formula 'x.size' as its default, which only kernels that run on GPUs may have"), ([], r"has the default \[\]; give")):
            def one(x: gantry.InOut, n: int = default): ...
            with self.refused(gantry.InvalidError, f'parameter "n" of kernel "one" {said}'):
                gantry.kernel(one)
        def loose(x: gantry.InOut, n: gantry.I64 = "y.size"): ...
        g = gantry.Graph()
        g.node(gantry.kernel(cuda="", grid=1, block=1)(loose), x=g.input("x", 3))
        with self.refused(gantry.GraphError, 'kernel "loose".*"y.size"') as seen:
            g.check()
        self.assertTrue(seen.value.line > 0 and seen.value.file == __file__)


main()
