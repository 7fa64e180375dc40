# SPDX-License-Identifier: Apache-2.0
"""`gantry run` and `train` with inputs that each start reads anew (--feed), and lines for each start (--watch): bits are those of runs of
one start each, losses those of NumPy, and what is said of files that do not fit. Exit 77: no NumPy.

check_feed.py GANTRY GRAPHS
"""
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

try:
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

COMMAND, GRAPHS = sys.argv[1:3]
ROWS, WIDTH = 6, 5
wrong = []  # what did not hold


def expect(holds, what):
    if not holds:
        wrong.append(what)
        print("wrong:", what)


def gantry(here, *words, command="run"):
    return subprocess.run([COMMAND, command, *words], cwd=here, capture_output=True, text=True, timeout=120)


def lines(done):
    """The objects of --watch --json, and the report."""
    expect(done.returncode == 0, f"{done.args[1:]}: exit {done.returncode}: {done.stderr}")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return (found[:-1], found[-1]) if found else ([], {})


def refuse(here, title, code, *texts, words=(), graph="sum.json", command="run"):
    done = gantry(here, graph, "--devices", "2", *words, command=command)
    expect(done.returncode == code and all(text in done.stderr for text in texts),
           f"{title}: exit {done.returncode}, {done.stderr!r}, not {code} with {texts}")
    return done


def sums(**more):
    """total: the sum of x w; kept: 0.5 kept + total, a state."""
    return {
        "gantry": 1, "name": "sums", "params": {"n": ROWS},
        "buffers": {
            "x": {"dtype": "f32", "shape": ["n", WIDTH], "class": "input", **more},
            "w": {"dtype": "f32", "shape": [1, WIDTH], "class": "const", "init": 0.5},
            "total": {"dtype": "f32", "shape": [1], "output": True},
            "columns": {"dtype": "f32", "shape": [WIDTH], "output": True},
            "kept": {"dtype": "f32", "shape": [1], "class": "state", "init": 0, "output": True},
        },
        "nodes": [
            {"id": "total", "reduce": {"t": "sum(x * w)"}, "args": {"x": "x", "w": "w", "t": "total"}},
            {"id": "columns", "reduce": {"c": "max(x, 0)"}, "args": {"x": "x", "c": "columns"}},
            {"id": "kept", "map": {"k": "0.5 * k + t"}, "args": {"t": "total", "k": "kept"}},
        ],
    }


def make(here, count, rows=ROWS, draw=np.random.default_rng(7)):
    """Batches b/x00.npy ..., the same as one stack, as two stacks of different lengths, and as raw files."""
    batches = draw.standard_normal((count, rows, WIDTH)).astype("f4")
    for folder in "b", "stacks", "raw":
        (here / folder).mkdir(exist_ok=True)
    for i, batch in enumerate(batches):
        np.save(here / f"b/x{i:02d}.npy", batch)
        batch.tofile(here / f"raw/x{i:02d}.bin")
    np.save(here / "all.npy", batches)
    np.save(here / "stacks/a.npy", batches[:2])
    np.save(here / "stacks/b.npy", batches[2:])
    return batches


def check_values(here, batches):
    """Each start, however files are given and starts overlap, has the bits of a run of that start alone."""
    (here / "sum.json").write_text(json.dumps(sums()))
    count, starts = len(batches), len(batches) + 3
    alone = []
    for i in range(count):
        report = lines(gantry(here, "sum.json", "--devices", "2", "--input", f"x=b/x{i:02d}.npy", "--watch", "total", "--watch", "columns", "--json"))
        alone.append(report[0][0])
        expect("fed" not in report[1], "one file is bound, not fed")
        expect(abs(alone[i]["total"] - float((batches[i].astype("f8") * 0.5).sum())) < 1e-4, f"total of batch {i}: {alone[i]}")
        expect(alone[i]["columns"] == [float(v) for v in batches[i].max(0)], f"columns of batch {i}: {alone[i]}")
    for pattern in "b/*.npy", "all.npy", "stacks/?.npy", "raw/x*.bin":
        for words in [], ["--objective", "period", "--in-flight", "3"], ["--balance", "guided"], ["--check"], ["--unroll", "1"]:
            done = gantry(here, "sum.json", "--devices", "2", "--input", f"x={pattern}", "--iterations", str(starts), "--watch", "total",
                          "--watch", "columns", "--watch", "kept", "--json", *words)
            found, report = lines(done)
            title = f"{pattern} {words}"
            expect([line["start"] for line in found] == list(range(1, starts + 1)), f"{title}: lines {found}")
            kept = np.float32(0)
            for i, line in enumerate(found):
                kept = np.float32(0.5) * kept + np.float32(alone[i % count]["total"])
                expect(line["total"] == alone[i % count]["total"] and line["columns"] == alone[i % count]["columns"],
                       f"{title}: start {i + 1}: {line}, not {alone[i % count]}")
                expect(line["kept"] == float(kept), f"{title}: start {i + 1}: kept {line['kept']}, not {kept}")
            expect(report.get("fed") == [{"input": f"x={pattern}", "arrays": count}], f"{title}: {report.get('fed')}")


def check_parts(here, batches):
    """Parts on several devices, and tiles, which are packed anew at each start."""
    for name, more, read in (("parts", {"split": 3}, "x[i]"), ("tiles", {"tiles": [3, 1]}, "x[i][0]")):
        graph = sums(**more)
        graph["buffers"]["total"]["init"] = 0
        graph["buffers"].pop("w"), graph["buffers"].pop("columns")
        graph["nodes"] = [{"for": {"i": 3}, "nodes": [{"id": "total[i]", "kernel": "reduce_sum", "args": {"x": read, "out": "total"}}]}, graph["nodes"][2]]
        (here / f"{name}.json").write_text(json.dumps(graph))
        for words in [], ["--objective", "period"]:
            found, _ = lines(gantry(here, f"{name}.json", "--devices", "3", "--input", "x=all.npy", "--iterations", "9", "--watch", "total", "--json", *words))
            for i, line in enumerate(found):
                exact = float(batches[i % len(batches)].astype("f8").sum())
                expect(abs(line["total"] - exact) < 1e-4, f"{name} {words}: start {i + 1}: {line}, not {exact}")


def check_phases(here, batches):
    """A loop that is not unrolled: its phases find what the start was fed with."""
    graph = sums()
    graph["buffers"] = {"x": graph["buffers"]["x"], "y": {"dtype": "f32", "shape": ["n", WIDTH]}, "total": graph["buffers"]["total"]}
    graph["nodes"] = [
        {"id": "y", "map": {"y": "2 * x"}, "args": {"x": "x", "y": "y"}},
        {"repeat": 5, "nodes": [{"id": "step", "map": {"y": "y + x"}, "args": {"x": "x", "y": "y"}}]},
        {"id": "total", "reduce": {"t": "sum(y)"}, "args": {"y": "y", "t": "total"}},
    ]
    (here / "loop.json").write_text(json.dumps(graph))
    totals = []
    for words in [], ["--unroll", "1"]:
        found, report = lines(gantry(here, "loop.json", "--devices", "2", "--input", "x=b/*.npy", "--iterations", "7", "--watch", "total", "--json", *words))
        expect(("loop_iterations" in report) == bool(words), f"phases: {words}")
        totals.append([line["total"] for line in found])
        for i, total in enumerate(totals[-1]):
            exact = 7 * float(batches[i % len(batches)].astype("f8").sum())
            expect(abs(total - exact) < 1e-3, f"loop {words}: start {i + 1}: {total}, not {exact}")
    expect(totals[0] == totals[1], "phases give other bits")


def check_large(here):
    """Arrays that several threads read, each a part: sums of whole numbers are exact, so nothing is left out or read twice. One that is cut off meanwhile."""
    folder, draw, rows = here / "large", np.random.default_rng(5), 200001
    folder.mkdir()
    batches = draw.integers(-4, 5, (14, rows, WIDTH)).astype("f4")
    for i, batch in enumerate(batches):
        np.save(folder / f"x{i:02d}.npy", batch)
        batch[: rows - 3].tofile(folder / f"x{i:02d}.bin")
    np.save(here / "large.npy", batches[:5])
    for pattern, count, few in ("large/*.npy", 14, rows), ("large.npy", 5, rows), ("large/*.bin", 14, rows - 3):
        for words in [], ["--objective", "period"]:
            found, _ = lines(gantry(here, "sum.json", "--devices", "2", "--param", f"n={few}", "--input", f"x={pattern}", "--iterations", "17", "--watch", "total", "--watch", "columns",
                                    "--json", *words))
            expect(len(found) == 17, f"{pattern} {words}: {len(found)} lines")
            for i, line in enumerate(found):
                batch = batches[i % count][:few].astype("f8")
                expect(line["total"] == float(batch.sum() * 0.5) and line["columns"] == batch.max(0).tolist(), f"{pattern} {words}: start {i + 1}: {line}, not {batch.sum() * 0.5}")
    command = [COMMAND, "run", "slow.json", "--devices", "1", "--input", "x=large/*.npy", "--iterations", "100", "--watch", "total"]
    with subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        first = running.stdout.readline()
        with open(folder / "x12.npy", "r+b") as file:
            file.truncate(3000000)
        out, said = running.communicate(timeout=60)
    made = len([line for line in [first, *out.splitlines()] if line.startswith("start ")])
    expect(running.returncode == 1 and made == 12 and f"large/x12.npy has 2999872 bytes of data, but buffer \"x\" has {rows * WIDTH * 4}; it is cut off" in said, f"cut off: {made} starts, {said}")


def check_sizes(here):
    """Bare params are the sizes of an array, without the axis in front."""
    (here / "wide").mkdir()
    np.save(here / "wide/stack.npy", np.ones((4, 9, WIDTH), "f4"))
    for pattern in "wide/stack.npy", "wide/*.npy":
        found, _ = lines(gantry(here, "sum.json", "--devices", "1", "--input", f"x={pattern}", "--iterations", "2", "--watch", "total", "--json"))
        expect([line["total"] for line in found] == [9 * WIDTH * 0.5] * 2, f"sizes from {pattern}: {found}")


def check_text(here):
    """Lines as text; --every; a file on standard output sends them to standard error."""
    words = ["sum.json", "--devices", "1", "--input", "x=b/*.npy", "--iterations", "7", "--watch", "total"]
    plain = gantry(here, *words)
    shown = [line for line in plain.stdout.splitlines() if line.startswith("start ")]
    expect(len(shown) == 7 and all(line.startswith(f"start {i + 1}  total ") for i, line in enumerate(shown)), f"text: {plain.stdout}")
    expect("input x=b/*.npy: 5 arrays, one a start, then the first again" in plain.stdout, f"report: {plain.stdout}")
    some = [line for line in gantry(here, *words, "--every", "3").stdout.splitlines() if line.startswith("start ")]
    expect(some == [shown[i - 1] for i in (1, 3, 6, 7)], f"--every 3: {some}")
    beside = gantry(here, *words, "--output", "columns=-")
    expect("start 1" not in beside.stdout and [line for line in beside.stderr.splitlines() if line.startswith("start ")] == shown, f"beside: {beside}")


def check_refusals(here, batches):
    fed = ["--input", "x=bad/*.npy", "--iterations", "4", "--watch", "total"]
    bad = here / "bad"
    bad.mkdir()

    def folder(*arrays):
        for file in bad.iterdir():
            file.unlink()
        for i, array in enumerate(arrays):
            np.save(bad / f"x{i}.npy", array)

    good = batches[0]
    folder(good, good[:, :4], good)
    refuse(here, "another shape", 2, "bad/x1.npy holds f32 [6, 4], but buffer \"x\" is f32 [6, 5]", words=fed)
    folder(good, good, good.astype("f8"))
    refuse(here, "another type", 2, "bad/x2.npy holds f64 [6, 5]", words=fed)
    folder(good, batches[:2])
    refuse(here, "stacks among arrays", 2, "bad/x0.npy is one array of buffer \"x\", and bad/x1.npy is a stack of arrays", words=fed)
    folder(batches[:0])
    refuse(here, "an empty stack", 2, "bad/x0.npy is a stack of 0 arrays", words=fed)
    folder(batches[:2][None])
    refuse(here, "two axes more", 3, "the file bad/*.npy has 4", words=fed)
    for cut, text in (good, "bytes of data"), (batches[:3], "3 arrays of buffer \"x\" have 360"):
        folder(good if cut is good else batches[:2], cut)
        whole = (bad / "x1.npy").read_bytes()
        (bad / "x1.npy").write_bytes(whole[:-9])
        refuse(here, "a file that is cut off", 2, "bad/x1.npy has", text, words=fed)
    folder(good)
    (bad / "x1.npy").write_bytes(b"no array")
    refuse(here, "no .npy file", 2, "bad/x1.npy: is not a .npy file", words=fed)
    (bad / "x1.npy").unlink()
    (bad / "x1.npy").mkdir()
    refuse(here, "a folder", 2, "bad/x1.npy", words=fed)
    (bad / "x1.npy").rmdir()
    refuse(here, "no file", 2, "none*.npy: no file has such a name", words=["--input", "x=none*.npy"])
    good[:5].tofile(bad / "y.bin")
    refuse(here, "a raw file of another size", 2, "bad/y.bin has 100 bytes of data, but buffer \"x\" has 120", words=["--input", "x=bad/y*"])
    (bad / "x9.png").write_bytes(b"picture")
    refuse(here, "an image among others", 2, "x9.png is an image", words=["--input", "x=bad/x9*"])
    refuse(here, "too few", 2, "there are 5 arrays, and with --feed once 6 starts need one each", words=["--input", "x=b/*.npy", "--feed", "once", "--iterations", "6"])
    lines(gantry(here, "sum.json", "--devices", "1", "--input", "x=b/*.npy", "--feed", "once", "--iterations", "5", "--watch", "total", "--json"))
    refuse(here, "an unknown rule", 2, "--feed is \"twice\"; it takes cycle", words=["--input", "x=b/*.npy", "--feed", "twice"])
    refuse(here, "a state", 2, "buffer \"kept\" is a state", words=["--input", "x=b/*.npy", "--input", "kept=all1.npy"])
    refuse(here, "watching nothing", 2, "has no output \"totl\" (did you mean \"total\"?)", words=["--watch", "totl"])
    refuse(here, "watching an input", 2, "--watch: buffer \"x\" is no output", words=["--watch", "x"])
    refuse(here, "watching much", 2, "has 65 elements, and a line shows 1 to 64", words=["--watch", "y"], graph="many.json")
    refuse(here, "watching times", 2, "back end \"sim\" gives times only", words=["--watch", "total", "--backend", "sim"])


def check_pipes(here):
    """A pipe has its array once: what would read it again is refused, rather than wait for ever."""
    (here / "rows.raw").write_bytes(np.ones((3, 1), "f4").tobytes())
    model = {"gantry": 1, "name": "piped", "params": {"lr": 0.1}, "train": {"loss": "l", "weights": ["w"], "learning_rate": "lr"},
             "buffers": {"x": {"dtype": "f32", "shape": [3, 1], "class": "const", "init": 0}, "w": {"dtype": "f32", "shape": [1], "init": 2, "output": True},
                         "l": {"dtype": "f32", "shape": [1], "output": True}},
             "nodes": [{"id": "l", "reduce": {"l": "sum(square(x * w))"}, "args": {"x": "x", "w": "w", "l": "l"}}]}
    (here / "piped.json").write_text(json.dumps(model))

    def piped(command, *words, data="rows.raw"):
        (here / "pipe").unlink(missing_ok=True)
        os.mkfifo(here / "pipe")
        writer = subprocess.Popen(["cp", data, "pipe"], cwd=here)
        try:
            return gantry(here, "piped.json", "--devices", "1", *words, command=command)
        finally:
            writer.kill()
            writer.wait()

    (here / "weight.raw").write_bytes(np.ones(1, "f4").tobytes())
    steps, x = ("--steps", "2"), ("--input", "x=pipe")
    for title, text, command, words, data in (
            ("--check", "--check", "run", ("--check", *x), "rows.raw"),
            ("the same data in the evaluation", "--evaluate", "train", (*steps, "--evaluate", "1", *x), "rows.raw"),
            ("held-out data of all trials", "each trial is evaluated", "train", (*steps, "--evaluate", "1", "--trials", "lr=0.1,0.2", "--evaluate-input", "x=pipe"), "rows.raw"),
            ("a weight of all trials", "each trial begins", "train", (*steps, "--trials", "lr=0.1,0.2", "--input", "w=pipe"), "weight.raw")):
        done = piped(command, *words, data=data)
        expect(done.returncode == 2 and text in done.stderr and "pipe can be read only once" in done.stderr, f"a pipe for {title}: exit {done.returncode}, {done.stderr!r}")
    watched, trials = ("--watch", "l", "--json"), ("--trials", "lr=0.1,0.2")
    for title, command, words, name, loss in (
            ("a run", "run", (*watched, *x), "l", 12), ("a training", "train", ("--steps", "1", *watched, *x), "l", 12),
            ("an evaluation", "train", ("--steps", "1", *watched, "--evaluate", "1", "--evaluate-input", "x=pipe"), "l", 0),
            ("trials", "train", ("--steps", "1", *trials, "--watch", "trial0.l", "--watch", "trial1.l", "--json", *x), "trial1.l", 12)):
        told, report = lines(piped(command, *words))
        expect([line[name] for line in told if name in line] == [loss], f"a pipe for {title}: {told}")
        expect(title != "an evaluation" or [e["l"] for e in report["evaluations"]] == [12], f"what was held out, by a pipe: {report.get('evaluations')}")


def check_change(here, batches):
    """A file that changes, or goes, while the run reads: the starts before it are told of."""
    change = here / "change"
    change.mkdir()
    for i in range(22): # more than are read ahead
        np.save(change / f"x{i:02d}.npy", batches[0])
    command = [COMMAND, "run", "slow.json", "--devices", "1", "--input", "x=change/*.npy", "--iterations", "100", "--watch", "total"]
    for spoil, text in ((lambda file: file.unlink(), "cannot open change/x19.npy"), (lambda file: np.save(file, batches[:2]), "change/x19.npy holds f32 [2, 6, 5]")):
        with subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
            first = running.stdout.readline()
            spoil(change / "x19.npy")
            out, said = running.communicate(timeout=60)
        made = len([line for line in [first, *out.splitlines()] if line.startswith("start ")])
        expect(running.returncode == 1 and text in said and made == 19, f"{text}: exit {running.returncode}, {made} starts, {said}")
        np.save(change / "x19.npy", batches[0])


def check_shorter(here, batches):
    """A stack that another with fewer arrays takes the place of."""
    np.save(here / "stack.npy", np.repeat(batches[:1], 12, 0))
    np.save(here / "short.npy", batches[:2])
    command = [COMMAND, "run", "slow.json", "--devices", "1", "--input", "x=stack.npy", "--iterations", "100", "--watch", "total"]
    with subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        running.stdout.readline()
        (here / "short.npy").replace(here / "stack.npy")
        said = running.communicate(timeout=60)[1]
    expect(running.returncode == 1 and "stack.npy has changed while the run reads it: it had 12 arrays of buffer \"x\", and has 2 now" in said, f"shorter: {said}")


def check_interrupt(here):
    """Ctrl-C while files are read: it ends soon, and says how far it came."""
    command = [COMMAND, "run", "slow.json", "--devices", "1", "--input", "x=change/*.npy", "--iterations", "100000", "--watch", "total", "--output", "total=total.npy"]
    with subprocess.Popen(command, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        for _ in range(3):
            running.stdout.readline()
        begin = time.monotonic()
        running.send_signal(signal.SIGINT)
        out, said = running.communicate(timeout=60)
    expect(running.returncode == 130 and "interrupted with" in said and time.monotonic() - begin < 20, f"interrupt: {running.returncode}, {said}")
    expect((here / "total.npy").exists(), "interrupt: the output that is complete is not written")


def check_weights(here):
    """A weight is watched though it is no output: gradient descent on one parabola for each element, from 1. What cannot be shown is told."""
    n, steps, rate = 4, 6, 0.1
    model = {"gantry": 1, "name": "parabolas", "train": {"loss": "l", "weights": ["w"], "learning_rate": rate},
             "buffers": {"w": {"dtype": "f64", "shape": [n], "init": 1}, "k": {"dtype": "f64", "shape": [n], "class": "const", "init": "iota"},
                         "l": {"dtype": "f64", "shape": [1]}, "many": {"dtype": "f64", "shape": [65], "class": "state", "init": 0}},
             "nodes": [{"id": "l", "reduce": {"l": "sum(k * square(w))"}, "args": {"k": "k", "w": "w", "l": "l"}},
                       {"id": "many", "map": {"m": "m + 1"}, "args": {"m": "many"}}]}
    (here / "parabolas.json").write_text(json.dumps(model))
    wanted = [(1 - 2 * rate * np.arange(n)) ** (k + 1) for k in range(steps)]
    for devices in "1", "2":
        told, _ = lines(gantry(here, "parabolas.json", "--devices", devices, "--steps", str(steps), "--watch", "w", "--json", command="train"))
        expect(len(told) == steps and np.allclose([line["w"] for line in told], wanted, rtol=1e-12), f"a weight on {devices}: {told}, not {wanted}")
    for words, text in ((["--watch", "w", "--objective", "period"], "is a state and no output, and starts overlap"), (["--watch", "many"], "has 65 elements"),
                        (["--watch", "k"], 'buffer "k" is no output')):
        refuse(here, "watching", 2, text, words=["--steps", "2", *words], graph="parabolas.json", command="train")


def check_training(here):
    """Least squares by SGD, another batch each step: losses are those of NumPy in f64."""
    draw = np.random.default_rng(3)
    steps, batches, n, width, rate = 25, 4, 32, 5, 0.05
    x = draw.standard_normal((batches, n, width))
    y = x @ draw.standard_normal(width) + 0.1 * draw.standard_normal((batches, n))
    np.save(here / "tx.npy", x)
    (here / "ty").mkdir()
    for i in range(batches):
        np.save(here / f"ty/{i}.npy", y[i])
    buffers = {"x": {"dtype": "f64", "shape": ["n", width], "class": "const", "init": 0}, "y": {"dtype": "f64", "shape": ["n"], "class": "const", "init": 0},
               "slope": {"dtype": "f64", "shape": [width], "init": 0, "output": True}, "guess": {"dtype": "f64", "shape": ["n"]},
               "loss": {"dtype": "f64", "shape": [1], "output": True}}
    nodes = [{"id": "guess", "reduce": {"g": "sum(x * s, 1)"}, "args": {"x": "x", "s": "slope", "g": "guess"}},
             {"id": "loss", "reduce": {"l": "mean(square(g - y))"}, "args": {"g": "guess", "y": "y", "l": "loss"}}]
    model = {"gantry": 1, "name": "least", "params": {"n": 3}, "train": {"loss": "loss", "weights": ["slope"], "optimizer": "sgd", "learning_rate": rate},
             "buffers": buffers, "nodes": nodes}
    (here / "least.json").write_text(json.dumps(model))
    slope, losses = np.zeros(width), []
    for k in range(steps):
        a, b = x[k % batches], y[k % batches]
        off = a @ slope - b
        losses.append(float((off ** 2).mean()))
        slope = slope - rate * 2 * off @ a / n
    for words in [], ["--objective", "period"]:
        found, _ = lines(gantry(here, "least.json", "--devices", "2", "--steps", str(steps), "--input", "x=tx.npy", "--input", "y=ty/*.npy", "--watch", "loss",
                                "--watch", "slope", "--json", *words, command="train"))
        expect([line["step"] for line in found] == list(range(1, steps + 1)), f"steps {found}")
        expect(np.allclose([line["loss"] for line in found], losses, rtol=1e-9), f"losses {words}: {[line['loss'] for line in found]}, not {losses}")
        expect(np.allclose(found[-1]["slope"], slope, rtol=1e-9), f"slope {words}: {found[-1]}, not {slope}")
    text = gantry(here, "least.json", "--devices", "1", "--steps", "3", "--input", "x=tx.npy", "--input", "y=ty/*.npy", command="train").stdout
    expect(f"step 3  loss {losses[2]:.9g}" in text, f"the loss is printed as ever: {text}")
    expect("x=tx.npy: 4 arrays, one a start; the others are not read: --steps says" in text, f"the option that there is: {text}")
    np.save(here / "ty3.npy", y[:3])
    for steps, more, said in (4, [], True), (3, [], False), (3, ["--feed", "once"], False):
        done = gantry(here, "least.json", "--devices", "1", "--steps", str(steps), "--input", "x=tx.npy", "--input", "y=ty3.npy", *more, command="train")
        warned = "warning: --input x=tx.npy has 4 arrays, and --input y=ty3.npy 3: each goes around by itself, so from step 4 on arrays meet others" in done.stderr
        expect(done.returncode == 0 and warned == said, f"as many arrays of each, {steps} steps {more}: exit {done.returncode}, {done.stderr}")


def check_made(here):
    """Weights of a used graph, and what the optimiser keeps of them, are written and read by their names: two trainings, one behind the other with
    another strategy, are one by NumPy."""
    block = {"gantry": 1, "params": {"n": 4}, "buffers": {"x": {"dtype": "f64", "shape": ["n", 3], "init": 1}, "y": {"dtype": "f64", "shape": ["n", 3], "output": True},
                                                          "gain": {"dtype": "f64", "shape": [1, 3], "init": 1}},
             "nodes": [{"id": "y", "map": {"y": "tanh(x * g)"}, "args": {"x": "x", "g": "gain", "y": "y"}}]}
    model = {"gantry": 1, "name": "made", "train": {"loss": "loss", "weights": ["layer.*.gain"], "optimizer": "momentum", "momentum": 0.8, "learning_rate": 0.3, "batch": ["x"]},
             "buffers": {"x": {"dtype": "f64", "shape": [4, 3], "class": "input"}, "y": {"dtype": "f64", "shape": [4, 3]}, "loss": {"dtype": "f64", "shape": [1]}},
             "nodes": [{"id": "layer[i]", "for": {"i": 1}, "use": "block.json", "with": {"x": "x", "y": "y"}},
                       {"id": "loss", "reduce": {"l": "mean(square(y))"}, "args": {"y": "y", "l": "loss"}}]}
    (here / "block.json").write_text(json.dumps(block))
    (here / "made.json").write_text(json.dumps(model))
    draw = np.random.default_rng(6)
    x, gain = draw.standard_normal((4, 3)), draw.standard_normal((1, 3))
    np.save(here / "made-x.npy", x), np.save(here / "gain.npy", gain)
    kept, losses = 0, []
    for step in range(6):
        y = np.tanh(x * gain)
        losses.append(np.mean(y ** 2))
        kept = 0.8 * kept + np.sum(2 * y / 12 * (1 - y ** 2) * x, 0, keepdims=True)
        gain = gain - 0.3 * kept
    found = []
    for more in ["--input", "layer.0.gain=gain.npy"], ["--input", "layer.0.gain=after.npy", "--input", "layer.0.gain.m=kept.npy", "--strategy", "dp=2"]:
        told, _ = lines(gantry(here, "made.json", "--devices", "2", "--steps", "3", "--input", "x=made-x.npy", "--output", "layer.0.gain=after.npy", "--output",
                               "layer.0.gain.m=kept.npy", "--watch", "loss", "--json", *more, command="train"))
        found += [line["loss"] for line in told]
    expect(np.allclose(found, losses, rtol=1e-12) and np.allclose(np.load(here / "after.npy"), gain, rtol=1e-12), f"a used graph: {found}, not {losses}")
    for name, said in ("layer.0.gian", ' (did you mean "layer.0.gain"?)'), ("nobody.knows", ""):
        refuse(here, "a buffer that is not made", 2, f'--input {name}: graph "made" has no buffer of that name{said}', words=["--input", "x=made-x.npy", "--input", f"{name}=gain.npy"],
               graph="made.json", command="train")


def main():
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        batches = make(here, 5)
        np.save(here / "all1.npy", np.ones((3, 1), "f4"))
        many = {"gantry": 1, "name": "many", "buffers": {"y": {"dtype": "f32", "shape": [65], "output": True}}, "nodes": [{"id": "y", "fill": {"to": "y", "value": 1}}]}
        (here / "many.json").write_text(json.dumps(many))
        slow = sums()
        slow["buffers"]["n"] = {"dtype": "f64", "shape": [1200, 1200]}
        slow["nodes"].append({"id": "slow", "map": {"n": "sin(cos(t) + exp(cos(t)))"}, "args": {"t": "total", "n": "n"}})
        slow["buffers"]["n"]["output"] = True
        (here / "slow.json").write_text(json.dumps(slow))
        check_values(here, batches)
        check_parts(here, batches)
        check_phases(here, batches)
        check_large(here)
        check_sizes(here)
        check_text(here)
        check_refusals(here, batches)
        check_pipes(here)
        check_change(here, batches)
        check_shorter(here, batches)
        check_interrupt(here)
        check_weights(here)
        check_training(here)
        check_made(here)
    print(f"{len(wrong)} wrong")
    return bool(wrong)


sys.exit(main())
