# SPDX-License-Identifier: Apache-2.0
"""The comparison of training steps: its table from known figures, programs that fail and that hang; and, where PyTorch is, losses of its side on the
CPU beside those of the host back end, from the same first numbers.

check_training.py GANTRY ROOT
"""
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import race  # noqa: E402

GANTRY = """#!/usr/bin/python3
import sys
small = "--param" not in sys.argv
print("step 1  loss 2.5\\nstep 10  loss 1.25\\nstep 20  loss 1", file=sys.stderr)
print('{"measured_us": %d}' % (300 if small else 6000))
"""
HAND = """#!/usr/bin/python3
import sys
if "--way" in sys.argv:
    print('{"losses": [2.5, 2]}')
print('{"work": "mlp", "ms": 0.15}')
"""
STEPS = """
import json, sys, time
gpus = int(sys.argv[sys.argv.index("--gpus") + 1])
assert "large:50:batch=4096:inputs=4096:hidden=4096:classes=1024:lr=0.001" in sys.argv
for way in ["ddp", "fsdp"] if gpus == 2 else ["one"]:
    for case, us in (("small", 600), ("large", 8000)):
        print(json.dumps({"case": case, "way": way, "mode": "eager", "us": us, "losses": {"1": 2.5, "10": 1.25, "50": 0.5}}), flush=True)
    print(json.dumps({"case": "small", "way": way, "mode": "compile", "why": "RuntimeError: no compiler"}), flush=True)
    if gpus == 2:
        time.sleep(60)
"""


def check_table():
    """On two GPUs the stub of PyTorch hangs after its first way: what it had told counts."""
    with tempfile.TemporaryDirectory() as folder:
        build = pathlib.Path(folder)
        for name in ("bin", "hand"):
            (build / name).mkdir()
        for path, text in ((build / "bin" / "gantry", GANTRY), (build / "hand" / "mlp", HAND), (build / "steps.py", STEPS)):
            path.write_text(text)
            path.chmod(0o755)
        race.STEPS = build / "steps.py"
        options = types.SimpleNamespace(build=build, seconds=100, limit=6, modes="eager,compile", ways="ddp,fsdp", hand=build / "hand", machine=None, json=build / "out.json")
        found = race.Comparison(options)
        found.all([1, 2], ["mlp"], ["small", "large"])
        kept, table = json.loads(options.json.read_text())["rows"], "\n".join(found.table())
        options.seconds = 0
        late = race.Comparison(options)
        late.all([1], ["mlp"], ["small"])
    yield "a row of each size and way", [(row["case"], row["gpus"], row["way"]) for row in kept] == [
        (case, gpus, way) for gpus, way in ((1, "one"), (2, "ddp"), (2, "fsdp")) for case in ("small", "large")], kept
    yield "ratios and losses", ("| mlp small | 1 | one, dp=1 | 300.0 | 600.0 | - | - | 150.0 | 0.50 | - | - | 2.00 | eager 2.5000 1.2500 0.5000; "
                                "gantry 2.5000 1.2500 |") in table, table
    yield "params reach all", "| mlp large | 2 | ddp, dp=2 | 6000.0 | 8000.0 | - | - | 150.0 | 0.75 |" in table, table
    yield "what was not measured has no ratio", ("| mlp small | 2 | fsdp, dp=2,zero=3 | 300.0 | - | - | - | 150.0 | - | - | - | 2.00 | gantry 2.5000 1.2500; "
                                                 "hand 2.5000 |") in table, table
    yield "what fails is told", any("RuntimeError: no compiler" in why for why in found.failed), found.failed
    yield "what hangs is ended and told", any("not done within 6 s" in why for why in found.failed), found.failed
    yield "what there was no time for is told", not late.rows and len(late.left_out) == 3, late.left_out


def check_losses(command, root):
    for model in ("mlp", "gpt"):
        for gpus in (1, 2):
            words = [sys.executable, HERE / "steps.py", root, model, "--device", "cpu", "--gpus", gpus, "--case", "small:40", "--modes", "eager"]
            done = subprocess.run([str(word) for word in words + ["--ways", "ddp" if gpus > 1 else "one"]], capture_output=True, text=True, timeout=100,
                                  env={**os.environ, "OMP_NUM_THREADS": "1"})  # several processes with all cores each wait for each other
            theirs = json.loads(done.stdout)["losses"] if done.returncode == 0 else {}
            words = [command, "train", root / "graphs" / "models" / f"{model}.json", "--backend", "host", "--devices", gpus, "--steps", 50, "--every", 10]
            ours = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=100).stdout
            ours = {line.split()[1]: float(line.split()[3]) for line in ours.splitlines() if line.startswith("step ")}
            near = theirs and all(abs(ours[n] - loss) <= 1e-3 * abs(loss) for n, loss in theirs.items())
            yield f"losses of {model} on {gpus}", near, f"{theirs} {ours} {done.stderr[-300:]}"


def main(command, root):
    results = list(check_table())
    if importlib.util.find_spec("torch"):
        results += check_losses(command, root)
    else:
        print("without PyTorch its losses are not looked at")
    failed = [(what, why) for what, right, why in results if not right]
    for what, why in failed:
        print(f"FAILED {what}: {why}")
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2])))
