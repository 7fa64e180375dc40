# SPDX-License-Identifier: Apache-2.0
"""Training steps by hand on the CPU, emulated: the GPT's losses beside those of `gantry train` on the host, with attention by one kernel and by
products in bands, on one GPU and several; the MLP's ways beside its own loops in doubles. Streams go on in an order drawn anew for each run.

check_emulated.py GANTRY ROOT FOLDER
"""
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from compare import losses_of, unlike  # noqa: E402

STEPS = 3
GPTS = [(1, {}), (4, {"batch": 4, "layers": 3, "tokens": 12, "heads": 3, "dim": 8, "words": 40}),
        (2, {"batch": 2, "layers": 3, "tokens": 150, "heads": 2, "dim": 8, "words": 20})]
MLPS = [(gpus, way, adamw) for gpus, way in ((1, "dp"), (2, "dp"), (3, "tp"), (2, "zero3"), (3, "zero3"), (2, "pp")) for adamw in (0, 1)]
PIPELINES = 1, 2, 5  # micro-batches


def run(words, seed):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=200, env={**os.environ, "EMULATED_SEED": str(seed)})


def check_gpt(command, root, folder, seed, gpus, sizes):
    options = [word for key, value in sizes.items() for word in (f"--{key}", value)]
    hand = run([folder / "gpt", "--gpus", gpus, "--starts", 1, "--steps", STEPS, "--seconds", 190, *options], seed)
    params = [word for key, value in sizes.items() for word in ("--param", f"{key}={value}")]
    words = [command, "train", root / "graphs/models/gpt.json", "--backend", "host", "--devices", 1, "--steps", STEPS, "--every", 1, "--json", *params]
    wanted, found = losses_of(run(words, seed).stderr), json.loads(hand.stdout.splitlines()[0])["losses"] if hand.returncode == 0 else []
    return len(wanted) == len(found) == STEPS and not list(unlike(wanted, found)), f"{found}, the host {wanted}: {hand.stderr}"


def check_mlp(folder, seed, gpus, way, adamw, micro=3):
    sizes = ["--batch", 2 * gpus * micro, "--inputs", 8, "--hidden", 2 * gpus, "--classes", 5, "--micro", micro]
    hand = run([folder / "mlp", "--gpus", gpus, "--way", way, "--adamw", adamw, "--starts", 1, "--seconds", 190, *sizes], seed)
    return hand.returncode == 0 and len(json.loads(hand.stdout)["variants"]) == (2 if gpus == 1 else 3), hand.stderr


def check_refused(folder, seed):
    """Of two layers there are two stages, and micro-batches are alike."""
    for words, why in ((["--gpus", 3], "use --gpus 2"), (["--gpus", 2, "--micro", 5], "use a divisor of --batch")):
        hand = run([folder / "mlp", "--way", "pp", "--batch", 12, "--inputs", 8, "--hidden", 4, "--classes", 5, *words], seed)
        yield f"mlp, pp, {words}", (hand.returncode == 1 and why in hand.stderr, hand.stderr)


def main(command, root, folder):
    results = [(f"gpt, {gpus} GPUs, {sizes}", check_gpt(command, root, folder, seed, gpus, sizes)) for seed, (gpus, sizes) in enumerate(GPTS)]
    results += [(f"mlp, {gpus} GPUs, {way}, AdamW {adamw}", check_mlp(folder, seed, gpus, way, adamw)) for seed, (gpus, way, adamw) in enumerate(MLPS)]
    results += [(f"mlp, pp, {micro} micro-batches", check_mlp(folder, micro, 2, "pp", 1, micro)) for micro in PIPELINES]
    results += check_refused(folder, 1)
    failed = [(what, why) for what, (right, why) in results if not right]
    for what, why in failed:
        print(f"FAILED {what}: {why}")
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])))
