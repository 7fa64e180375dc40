# SPDX-License-Identifier: Apache-2.0
"""graphs/fft3d.json by slabs and by pencils, in f32 and f64, there and back, against NumPy; and what its transposition becomes.

check_fft3d.py GANTRY ROOT
"""
import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from numpy_gantry import gantry, np, run  # noqa: E402

rng = np.random.default_rng(3)
# Sizes: powers of two; others that do not divide by p and q; a large prime, and an axis shorter than there are parts.
CASES = [((16, 8, 32), 4, 1), ((16, 8, 32), 2, 2), ((12, 10, 9), 3, 1), ((7, 30, 11), 2, 3), ((20, 3, 37), 4, 1), ((9, 14, 5), 1, 1)]


def check(command, graph, shape, p, q, dtype, inverse, devices):
    form = json.loads(graph.read_text())
    for buffer in form["buffers"].values():
        buffer["dtype"] = dtype
    x = rng.normal(size=(*shape, 2)).astype(np.float32 if dtype == "f32" else np.float64)
    z = x[..., 0].astype(float) + 1j * x[..., 1]
    want = (np.fft.ifftn if inverse else np.fft.fftn)(z)
    params = {"n0": shape[0], "n1": shape[1], "n2": shape[2], "p": p, "q": q, "inverse": inverse}
    words = [word for name, value in params.items() for word in ("--param", f"{name}={value}")]
    got, _ = run(command, form, {"x": x}, {"y": None}, [*words, "--devices", devices, "--check"])
    rtol = 1e-6 if dtype == "f32" else 1e-14
    np.testing.assert_allclose(got["y"], np.stack([want.real, want.imag], -1), rtol=0, atol=10 * rtol * np.abs(want).max())


def check_collective(command, root):
    """Copies between slabs along one axis and slabs along another are one all_to_all."""
    words = ["schedule", root / "graphs/fft3d.json", "--machine", root / "graphs/machines/host-4.json", "--json"]
    found = [one["collective"] for one in json.loads(gantry(command, *words))["collective_ops"]]
    assert found == ["all_to_all"], f"the transposition became {found}"


def main(command, root):
    failed, root = 0, pathlib.Path(root)
    for number, (shape, p, q) in enumerate(CASES):
        for dtype in ("f32", "f64"):
            devices = (1, 2, 4)[(number + (dtype == "f64")) % 3]
            inverse = (number + (dtype == "f64")) % 2
            try:
                check(command, root / "graphs/fft3d.json", shape, p, q, dtype, inverse, devices)
            except (AssertionError, RuntimeError) as error:
                failed += 1
                print(f"FAILED {shape} in {p} x {q}, {dtype}, inverse {inverse}, on {devices}: {error}")
    check_collective(command, root)
    print(f"{2 * len(CASES) - failed} passed, {failed} failed")
    return bool(failed)


sys.exit(main(*sys.argv[1:]))
