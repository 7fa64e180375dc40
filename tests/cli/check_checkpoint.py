# SPDX-License-Identifier: Apache-2.0
"""gantry run --checkpoint and --resume: what goes on ends with the bits of a run that was never interrupted. What is damaged, of another
graph, full, or in use is refused with what, where and remedy; the checkpoint before the newest is taken where that is not intact.
Expected bits are those of the command without checkpoints.

check_checkpoint.py GANTRY [KILLS]
"""
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

GANTRY = sys.argv[1]
KILLS = int(sys.argv[2]) if len(sys.argv) > 2 else 6
STATES = ["mlp_step", "--devices", "2", "--iterations", "7", *"--param batch=16 --param inputs=12 --param hidden=8 --param classes=4 --param parts=2".split()]
LOOP = ["jacobi_until", "--devices", "2", *"--param n=16 --param parts=2 --param steps=300 --param every=5".split()]


def run(words, code=0, **more):
    done = subprocess.run([GANTRY, *map(str, words)], capture_output=True, text=True, timeout=120, **more)
    assert done.returncode == code, f"{words}: exit {done.returncode}, not {code}\n{done.stdout}{done.stderr}"
    return done


def bits(words, **more):
    return {name: o["xxh64"] for name, o in json.loads(run(["run", *words, "--json"], **more).stdout)["outputs"].items()}


def says(words, code, *texts):
    done = run(words, code)
    for text in texts:
        assert text in done.stderr, f"{words}: \"{text}\" is not in\n{done.stderr}"


def numbers(folder):
    return sorted(int(entry.name[11:]) for entry in folder.glob("checkpoint-0*"))


def newest(folder):
    return max(folder.glob("checkpoint-0*"))


def check_equal(folder):
    """Every interval, so every place; on the same devices, as sums of other numbers of devices have another order."""
    for graph, intervals in ((STATES, (1, 2, 5)), (LOOP, (3, 7, 40))):
        want = bits(graph)
        for every in intervals:
            kept = folder / f"{graph[0]}-{every}"
            assert bits([*graph, "--checkpoint", f"{every}:{kept}"]) == want
            assert 1 <= len(numbers(kept)) <= 2 and not list(kept.glob("*.writing")), list(kept.iterdir())
            assert bits([*graph, "--resume", kept]) == want, f"{graph[0]}, every {every}"
            before = numbers(kept)
            assert bits([*graph, "--resume", kept, "--checkpoint", f"{every}:{kept}"]) == want
            assert numbers(kept)[-1] >= before[-1]


def check_train(folder):
    want = run(["train", "mlp", "--devices", 1, "--steps", 6, "--every", 1]).stdout
    losses = [line for line in want.splitlines() if line.startswith("step")]
    for steps, every in (4, 2), (5, 2), (3, 3), (2, 7): # one behind the last step, too: a training may be asked for more
        kept = folder / f"train-{steps}-{every}"
        run(["train", "mlp", "--devices", 1, "--steps", steps, "--every", 1, "--checkpoint", f"{every}:{kept}"])
        again = run(["train", "mlp", "--devices", 1, "--steps", 6, "--every", 1, "--resume", kept]).stdout
        assert [line for line in again.splitlines() if line.startswith("step")] == losses[steps:], (want, again)
    check_fewer(folder)
    check_ordered(folder)


def states(folder):
    """The bits of all that is kept, weights and what the optimiser has of them, in the newest checkpoint."""
    return {array["buffer"]: array["xxh64"] for array in json.loads((newest(folder) / "manifest.json").read_text())["arrays"]}


def check_ordered(folder):
    """With sums in the order of the graph all weights have the same bits on fewer devices, however they are scheduled."""
    mlp, gpt = ["mlp"], ["gpt", "--param", "batch=8"] # whose gradients are clipped by the sum of all their squares
    for model, strategy, effort in ((mlp, "dp=4", 3), (mlp, "tp=4", 0), (mlp, "pp=4,micro=4", 3), (mlp, "dp=4,zero=3", 0), (mlp, "dp=2,tp=2,zero=1,micro=2", 0),
                                    (mlp, "dp=2,pp=2,micro=4", 3), (gpt, "dp=4", 0), (gpt, "dp=2,tp=2,zero=1", 3), (gpt, "tp=2,pp=2,micro=2", 0)):
        words, kept = ["train", *model, "--effort", effort, "--strategy", strategy + ",ordered=1"], folder / f"ordered-{model[0]}-{strategy.replace(',', '-')}"
        run([*words, "--devices", 4, "--steps", 3, "--checkpoint", f"2:{kept}"])
        for devices in 4, 3, 2, 1:
            again = folder / f"{kept.name}-{devices}"
            done = run([*words, "--devices", devices, "--steps", 5, "--resume", kept, "--checkpoint", f"2:{again}"])
            assert "another order" not in done.stderr, done.stderr
            want = want if devices < 4 else states(again)
            assert len(want) > 12 and states(again) == want, (strategy, devices, [name for name in want if states(again)[name] != want[name]])


def check_fewer(folder):
    """A strategy goes on where there are fewer devices than it is for, with the same loss: each takes what several had."""
    for strategy in "dp=4,zero=3", "dp=2,pp=2,micro=2", "dp=2,tp=2":
        words, kept = ["train", "mlp", "--effort", 0, "--every", 1, "--json", "--watch", "loss", "--strategy", strategy], folder / strategy.replace(",", "-")
        want = run([*words, "--devices", 4, "--steps", 6]).stdout.splitlines()[:-1]
        run([*words, "--devices", 4, "--steps", 4, "--checkpoint", f"2:{kept}"])
        for devices in 4, 3, 2, 1:
            done = run([*words, "--devices", devices, "--steps", 6, "--resume", kept])
            again = done.stdout.splitlines()[:-1]
            assert again == want[4:], (strategy, devices, want, again)
            assert (f'is for 4 devices, and there {"is" if devices == 1 else "are"} {devices}: sums have another order here' in done.stderr) == (devices < 4), done.stderr
        says([*words, "--devices", 2, "--steps", 6], 2, f'strategy "{strategy}" is for 4 devices, and there are 2')


def check_words(folder):
    for text in ("", "5", "5:", "0:x", "-1:x", "x:y", ":x"):
        says(["run", *STATES, "--checkpoint", text], 2, "must be N:FOLDER")
    for words in (["--check"], ["--backend", "sim"], ["--balance", "guided"]):
        says(["run", *STATES, "--checkpoint", f"1:{folder}/no", *words], 2, "does not go with " + words[0])
        says(["run", *STATES, "--resume", f"{folder}/no", *words], 2, "does not go with " + words[0])
    unkept = ["writes nothing: the run ends with start 7, and no loop is in phases", "give a smaller N"]
    says(["run", *STATES, "--checkpoint", f"7:{folder}/never"], 0, f"note: --checkpoint 7:{folder}/never", *unkept)
    for words in ([*STATES, "--checkpoint", f"6:{folder}/once"], [*LOOP, "--checkpoint", f"40:{folder}/phases"]):
        assert not run(["run", *words]).stderr
    says(["run", *STATES, "--resume", folder / "none"], 2, "cannot open", "none")
    (folder / "empty").mkdir()
    says(["run", *STATES, "--resume", folder / "empty"], 2, "no checkpoint in", "there is none", "begin without")
    says(["run", *STATES, "--checkpoint", f"1:{folder}/a/b"], 1, "cannot make", "a/b")
    (folder / "file").write_text("")
    says(["run", *STATES, "--checkpoint", f"1:{folder}/file"], 1, "file", "Not a directory")


def check_others(folder):
    kept = folder / "kept"
    run(["run", *STATES, "--checkpoint", f"3:{kept}"])
    says(["run", *STATES, "--checkpoint", f"3:{kept}"], 1, "has a checkpoint of another run, checkpoint-000000000002", "resume from it")
    says(["run", *LOOP, "--resume", kept], 2, "is of graph \"mlp_step\"", "give the same graph and params")
    says(["run", *STATES, "--param", "hidden=9", "--resume", kept], 2, "is of graph \"mlp_step\" with hash")
    says(["run", *STATES, "--iterations", 6, "--resume", kept], 2, "has 6 starts complete, and 6 are asked for")
    loop = folder / "loop"
    run(["run", *LOOP, "--checkpoint", f"40:{loop}"])
    says(["run", *LOOP, "--unroll", 1, "--resume", loop], 2, "with the same `unroll` as before")
    trained, words = folder / "trained", ["train", "mlp", "--param", "batch=16", "--param", "hidden=8"]
    run([*words, "--devices", 1, "--steps", 2, "--checkpoint", f"1:{trained}"])
    says([*words, "--devices", 2, "--steps", 3, "--resume", trained], 2, "a param that follows from how many devices there are, such as parts, is given as it was there (--param parts=N)")
    says([*words, "--devices", 2, "--param", "parts=1", "--steps", 3, "--resume", trained], 0)


def damage(path, how):
    data = path.read_bytes()
    if how == "cut":
        path.write_bytes(data[:-1])
    elif how == "altered":
        path.write_bytes(data[:-3] + bytes([data[-3] ^ 1]) + data[-2:])
    elif how == "empty":
        path.write_bytes(b"")
    elif how == "gone":
        path.unlink()


def check_damage(folder):
    want, kept = bits(STATES), folder / "whole"
    run(["run", *STATES, "--checkpoint", f"2:{kept}"])
    for which in ("manifest.json", "state-*.npy"):
        for how in ("cut", "altered", "empty", "gone"):
            copy = folder / "copy"
            shutil.copytree(kept, copy)
            damage(next(newest(copy).glob(which)), how)
            words = [*STATES, "--resume", copy]
            assert bits(words) == want, how
            says(["run", *words], 0, "warning: ", "is passed over: checkpoint 3: ", "going on from checkpoint 2")
            for entry in copy.glob("checkpoint-*"):
                path = next(entry.glob(which), None)
                if path:
                    damage(path, how)
            if how != "altered":  # which is as it was when it is done twice
                says(["run", *words], 2, "no checkpoint in", "is intact, checkpoint 3: ", "begin without --resume")
            shutil.rmtree(copy)
    manifest = newest(kept) / "manifest.json"
    form = json.loads(manifest.read_text())
    form["starts"] = 1  # its hash does not fit any more
    manifest.write_text(json.dumps(form))
    says(["run", *STATES, "--resume", kept], 0, "its hash is not that of its contents")


def check_full(folder):
    """A file that may not be as large as an array: the one before stays, and is gone on with."""
    graph = ["mlp_step", "--devices", "2", "--iterations", "7", *"--param batch=16 --param inputs=12 --param hidden=800 --param classes=4 --param parts=2".split()]
    want, kept = bits(graph), folder / "full"
    run(["run", *graph, "--iterations", 5, "--checkpoint", f"2:{kept}"])

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))

    done = run(["run", *graph, "--resume", kept, "--checkpoint", f"1:{kept}"], 1, preexec_fn=limit)
    assert "checkpoint 3 of" in done.stderr and "number 2 is still there" in done.stderr and "File too large" in done.stderr, done.stderr
    assert numbers(kept) == [1, 2] and not list(kept.glob("*.writing"))
    assert bits([*graph, "--resume", kept]) == want
    done = run(["run", *graph, "--checkpoint", f"1:{folder}/first"], 1, preexec_fn=limit)
    assert "there is none before it" in done.stderr and not list((folder / "first").iterdir()), done.stderr


def check_in_use(folder):
    kept = folder / "used"
    long = subprocess.Popen([GANTRY, "run", *STATES, "--iterations", "100000000", "--checkpoint", f"20:{kept}"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        begun = time.monotonic()
        while not (kept.exists() and numbers(kept)) and time.monotonic() < begun + 60:
            time.sleep(0.02)
        says(["run", *STATES, "--checkpoint", f"1:{kept}"], 1, "another process writes checkpoints to", "wait until it ends")
    finally:
        long.kill()
        long.wait()


def check_kills(folder):
    """SIGKILL at any moment leaves a folder from which a run goes on to the same bits. Every other one comes after the first checkpoint, however late that is."""
    draw, want = random.Random(1), bits([*STATES, "--iterations", 2000])
    kept = folder / "killed"
    begun = time.monotonic()
    bits([*STATES, "--iterations", 2000, "--checkpoint", f"10:{kept}"])
    took = time.monotonic() - begun
    resumed = 0
    for kill in range(KILLS):
        shutil.rmtree(kept)
        words = [*STATES, "--iterations", "2000", "--checkpoint", f"10:{kept}"]
        child = subprocess.Popen([GANTRY, "run", *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        begun = time.monotonic()
        while kill % 2 and child.poll() is None and not (kept.exists() and numbers(kept)):
            time.sleep(0.005)
        time.sleep(draw.uniform(0.05, max(0.1, took - (time.monotonic() - begun))))
        child.send_signal(signal.SIGKILL)
        child.wait()
        if kept.exists() and numbers(kept):
            done = run(["run", *words, "--resume", kept, "--json"])
            assert "passed over" not in done.stderr, done.stderr
            assert {name: o["xxh64"] for name, o in json.loads(done.stdout)["outputs"].items()} == want
            assert not list(kept.glob("*.writing"))
            resumed += 1
        else:
            kept.mkdir(exist_ok=True)
    print(f"{KILLS} kills, {resumed} gone on from")
    assert resumed >= KILLS // 2


# Memory in place of a disk where there is some: flushing takes most of the time.
with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as name:
    for number, check in enumerate((check_equal, check_train, check_words, check_others, check_damage, check_full, check_in_use, check_kills)):
        place = pathlib.Path(name) / str(number)
        place.mkdir()
        start = time.monotonic()
        check(place)
        print(f"{check.__name__}: {time.monotonic() - start:.1f} s")
