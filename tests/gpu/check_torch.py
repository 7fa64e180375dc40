# SPDX-License-Identifier: Apache-2.0
"""The Python package beside PyTorch, and Triton where that is installed, on this computer's GPUs: a minute at most. It is run by hand:

    PYTHONPATH=tools/python python3 tests/gpu/check_torch.py

Exit 77 without PyTorch or a GPU. Wanted results are PyTorch's own, of the same operations.
"""
import sys
import time

try:
    import torch
except ImportError:
    print("skipped: no PyTorch")
    sys.exit(77)
if not torch.cuda.is_available():
    print("skipped: PyTorch finds no GPU")
    sys.exit(77)

import numpy as np

try:  # here, since its kernels find names in their module
    import triton
    import triton.language as tl
except ImportError:
    triton = tl = None

import gantry
import gantry.torch

N = 1 << 20
GPUS = min(torch.cuda.device_count(), 2)


@gantry.kernel(arrays="torch", flops="10 * x.size")
def gelu(x: gantry.In, y: gantry.Out):
    torch.ops.aten.gelu.out(x, out=y)


@gantry.kernel(arrays="torch", flops="2 * x.size")
def product(x: gantry.In, w: gantry.In, y: gantry.Out):
    torch.mm(x, w, out=y)


def chain(dtype="f32", external=False):
    """y = gelu(x) * 3, by two kernels; in parts on all GPUs unless x and y are on one."""
    g = gantry.Graph("chain")
    parts = None if external else 2 * GPUS
    x, t = g.input("x", N, dtype, split=parts), g.buffer("t", N, dtype, split=parts)
    y = g.buffer("y", N, dtype, split=parts, output=True)
    if external:
        x.external("gpu0"), y.external("gpu0")
    for i in range(parts or 1):
        g.node(gelu, x=x if external else x[i], y=t if external else t[i])
        g.map("y = t * 3", t=t if external else t[i], y=y if external else y[i])
    return g


def near(seen, wanted, what):
    close = 2e-2 if seen.dtype is torch.bfloat16 else 1e-5
    torch.testing.assert_close(seen, wanted, rtol=close, atol=close)
    print(f"{what}: greatest difference {(seen.double() - wanted.double()).abs().max().item():.2g}")


def check_kernels():
    a = np.random.default_rng(1).normal(size=N).astype(np.float32)
    wanted = torch.nn.functional.gelu(torch.from_numpy(a)) * 3
    for replay in (None, "stream", "graph"):
        run = chain().schedule(GPUS, replay=replay).run()
        for _ in range(3):
            out = run(x=a)["y"]
        near(torch.from_numpy(out), wanted, f"kernels of tensors, {run.info.backend}, replay {run.info.replay}")
    half = torch.from_numpy(a).bfloat16()
    f = gantry.torch.function(chain("bf16").schedule(GPUS))
    near(f(x=half)["y"], torch.nn.functional.gelu(half) * 3, "bfloat16 from the host and back")


def check_library():
    g = gantry.Graph("product")
    x, w, y = g.input("x", (512, 256)), g.input("w", (256, 128)), g.buffer("y", (512, 128), output=True)
    g.node(product, x=x, w=w, y=y)
    a, b = (torch.randn(shape) for shape in ((512, 256), (256, 128)))
    out = g.schedule(1).run()(x=a, w=b)["y"]
    assert np.allclose(out, (a.double() @ b.double()).numpy(), atol=1e-2), "cuBLAS by PyTorch"
    print("cuBLAS by PyTorch: fine")


def check_streams():
    """Without the host: whatever is queued before and behind is in order, also on a stream of the caller."""
    f = gantry.torch.function(chain(external=True).schedule(1))
    x = torch.empty(N, device="cuda:0")
    for stream in (torch.cuda.current_stream(0), torch.cuda.Stream(0)):
        with torch.cuda.stream(stream):
            for k in range(20):
                torch.cuda._sleep(200_000)  # the start must not begin before x is there
                x.fill_(k / 10)
                y = f(x=x)["y"] + 0
            wanted = torch.nn.functional.gelu(x) * 3
        stream.synchronize()
        near(y, wanted, "a graph on the current stream")
    f.wait()
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(200):
        f(x=x)
    f.wait()
    ours = (time.perf_counter() - begin) / 200
    begin = time.perf_counter()
    for _ in range(200):
        torch.nn.functional.gelu(x) * 3
    torch.cuda.synchronize()
    print(f"a call takes {ours * 1e6:.1f} us; PyTorch alone {(time.perf_counter() - begin) / 200 * 1e6:.1f} us")


SOURCE = """
extern "C" __global__ void blend(float weight, const float *x, float *y, long long n)
{
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n)
        y[i] = weight * x[i] + (1 - weight) * y[i];
}
"""


@gantry.kernel(cuda=SOURCE, grid="ceil_div(n, 256)", block=256, host=False)
def blend(weight: gantry.F32, x: gantry.In, y: gantry.InOut, n: gantry.I64 = "x.size"): ...


def check_source():
    g = gantry.Graph("blend")
    x, y = g.input("x", N, split=GPUS), g.input("y", N, split=GPUS, output=True)
    for i in range(GPUS):
        g.node(blend, weight=0.25, x=x[i], y=y[i])
    a, b = torch.randn(N), torch.randn(N)
    near(torch.from_numpy(g.schedule(GPUS).run()(x=a, y=b)["y"]), 0.25 * a + 0.75 * b, "CUDA source")


def check_triton():
    if triton is None:
        print("skipped: no Triton")
        return

    @triton.jit
    def add(x, y, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y + at, tl.load(x + at, at < n) + tl.load(y + at, at < n), at < n)

    @gantry.kernel(arrays="torch", flops="x.size")
    def accumulate(x: gantry.In, y: gantry.InOut):
        add[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)

    g = gantry.Graph("accumulate")
    x, y = g.input("x", N, split=GPUS), g.input("y", N, split=GPUS, output=True)
    for i in range(GPUS):
        g.node(accumulate, x=x[i], y=y[i])
    a, b = torch.randn(N), torch.randn(N)
    run = g.schedule(GPUS).run()
    for _ in range(3):
        out = run(x=a, y=b)["y"]
    near(torch.from_numpy(out), a + b, "a kernel of Triton")


for check in (check_kernels, check_library, check_streams, check_source, check_triton):
    check()
print("all fine")
