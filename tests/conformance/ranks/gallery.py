# SPDX-License-Identifier: Apache-2.0
"""All graphs of the gallery, made small, by what their params are."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "property/recheck"))
from graphs import SMALL

GALLERY = {
    **SMALL, "cg": {"n": 64, "most": 20}, "cholesky": {"n": 64, "nt": 8}, "cnn_block_train": {"channels": 2, "inner": 2, "height": 4, "width": 4}, "consensus": {"n": 24, "most": 20},
    "ensemble": {"members": 40, "steps": 4}, "fft2d": {}, "fft3d": {"n0": 8, "n1": 8, "n2": 8}, "lu": {"n": 48, "nt": 3, "systems": 2}, "map_reduce": {"n": 100}, "monte_carlo": {"paths": 60, "steps": 3},
    "multigrid_cg": {"n": 32, "sweeps": 4, "most": 4}, "residual_stack": {}, "sharded_step": {"batch": 16, "inputs": 8, "outputs": 4}, "sort": {"n": 64}, "stages": {},
    "transformer_block_train": {"heads": 2, "tokens": 4, "dim": 4}, "tsqr": {"rows": 128, "n": 4},
}


def names(root):
    """Those that the folder has: each is in the table."""
    found = sorted(file.stem for file in (pathlib.Path(root) / "graphs").glob("*.json"))
    assert found == sorted(GALLERY), f"the gallery and its sizes differ: {set(found) ^ set(GALLERY)}"
    return found
