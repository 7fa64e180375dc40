# SPDX-License-Identifier: Apache-2.0
"""`gantry train --evaluate`: losses on data that are held out, against NumPy in float64 at the weights that --watch shows; no bit of the training
differs; checkpoints, strategies, trials and starts that overlap; `--output` of weights; what is refused. Exit 77: no NumPy.

check_evaluate.py GANTRY
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

COMMAND = sys.argv[1]
N, WIDTH, BATCHES, HELD = 12, 4, 3, 5
wrong = []


def expect(holds, what):
    if not holds:
        wrong.append(what)
        print("wrong:", what)


def train(here, *words, stdin=None):
    return subprocess.run([COMMAND, "train", *words], cwd=here, capture_output=True, text=True, timeout=120, input=stdin)


def lines(done):
    expect(done.returncode == 0, f"{done.args[1:]}: exit {done.returncode}: {done.stderr}")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return (found[:-1], found[-1]) if found else ([], {})


def model(p):
    """Least squares with inputs that are dropped; `close` is how many guesses are less than 1 off."""
    buffers = {"x": {"dtype": "f64", "shape": ["n", WIDTH], "class": "const", "init": 0}, "y": {"dtype": "f64", "shape": ["n"], "class": "const", "init": 0},
               "w": {"dtype": "f64", "shape": [WIDTH], "class": "const", "init": 0.25, "output": True}, "b": {"dtype": "f64", "shape": [1], "class": "const", "init": 0},
               "d": {"dtype": "f64", "shape": ["n", WIDTH]}, "g": {"dtype": "f64", "shape": ["n"]}, "off": {"dtype": "f64", "shape": [1]},
               "close": {"dtype": "f64", "shape": [1], "output": True}}
    nodes = [{"id": "drop", "kernel": "dropout", "args": {"p": p, "seed": 7, "x": "x", "y": "d"}},
             {"id": "g", "reduce": {"g": "sum(d * w, 1)"}, "args": {"d": "d", "w": "w", "g": "g"}},
             {"id": "off", "reduce": {"l": "mean(square(g + b - y))"}, "args": {"g": "g", "b": "b", "y": "y", "l": "off"}},
             {"id": "close", "reduce": {"c": "mean(abs(g + b - y) < 1)"}, "args": {"g": "g", "b": "b", "y": "y", "c": "close"}}]
    return {"gantry": 1, "name": "least", "params": {"n": N, "lr": 0.05}, "buffers": buffers, "nodes": nodes,
            "train": {"loss": "off", "weights": ["w", "b"], "optimizer": "momentum", "learning_rate": "lr", "batch": ["x", "y"]}}


DATA = ["--input", "x=x.npy", "--input", "y=y.npy"]
HELD_OUT = ["--evaluate-input", "x=hx.npy", "--evaluate-input", "y=hy/*.npy"]
WATCH = ["--watch", "off", "--watch", "w", "--json", "--output", "b=b.npy"]


def make(here):
    draw = np.random.default_rng(8)
    real = draw.standard_normal(WIDTH)
    sets = {}
    for name, count in ("", BATCHES), ("h", HELD):
        x = draw.standard_normal((count, N, WIDTH))
        sets[name] = x, x @ real + 0.3 + 0.2 * draw.standard_normal((count, N))
        np.save(here / f"{name}x.npy", x)
    np.save(here / "y.npy", sets[""][1])
    (here / "hy").mkdir()
    for i in range(HELD):
        np.save(here / f"hy/{i}.npy", sets["h"][1][i])
    for p in 0, 0.5:
        (here / f"least{p}.json").write_text(json.dumps(model(p)))
    return sets["h"]


def by_hand(held, w, b):
    off = held[0] @ np.array(w) + b - held[1]
    return (off ** 2).mean(), (abs(off) < 1).mean()


def check_values(here, held, graph, words, steps=14, every=4):
    title = f"{graph} {words}"
    plain, _ = lines(train(here, graph, "--steps", str(steps), *words, *DATA, *WATCH))
    b = np.load(here / "b.npy")
    found, report = lines(train(here, graph, "--steps", str(steps), *words, *DATA, *WATCH, "--evaluate", str(every), *HELD_OUT))
    expect(found == plain and np.load(here / "b.npy").tobytes() == b.tobytes(), f"{title}: training has the same bits: {found}, not {plain}")
    told = report.get("evaluations", [])
    expect([one["step"] for one in told] == [4, 8, 12, 14] and all(one["arrays"] == HELD for one in told), f"{title}: {told}")
    wanted = by_hand(held, found[-1]["w"], b[0])
    expect(np.isclose(told[-1]["off"], wanted[0], rtol=1e-12) and np.isclose(told[-1]["close"], wanted[1], rtol=1e-12), f"{title}: {told[-1]}, not {wanted}")
    return told, found


def check_steps(here, held):
    """Weights after each step, of runs that end there, and what a longer one has found there."""
    for words in ["--devices", "1"], ["--devices", "2", "--strategy", "dp=2,zero=1,micro=2"]:
        told, found = check_values(here, held, "least0.5.json", words)
        for one in told[:-1]:
            train(here, "least0.5.json", "--steps", str(one["step"]), *words, *DATA, "--output", "b=b.npy", "--output", "w=w.npy")
            w, b = np.load(here / "w.npy"), np.load(here / "b.npy")[0]
            expect(found[one["step"] - 1]["w"] == w.tolist(), f"{words}: --output w at step {one['step']}")
            wanted = by_hand(held, w, b)
            expect(np.isclose(one["off"], wanted[0], rtol=1e-12) and np.isclose(one["close"], wanted[1], rtol=1e-12), f"{words}: {one}, not {wanted}")


def check_ways(here, held):
    told = [check_values(here, held, graph, words)[0] for graph in ("least0.json", "least0.5.json")
            for words in (["--devices", "2"], ["--devices", "2", "--objective", "period"], ["--devices", "3", "--strategy", "dp=3,micro=2"], ["--devices", "2", "--strategy", "pp=2,micro=3"],
                          ["--devices", "2", "--strategy", "auto"], ["--devices", "2", "--balance", "guided"])]
    expect(told[0] != told[6], "what is dropped changes the training")


def check_text(here, held):
    done = train(here, "least0.json", "--devices", "2", "--steps", "4", "--every", "2", *DATA, "--evaluate", "3", *HELD_OUT)
    shown = [line.split() for line in done.stdout.splitlines() if line.startswith("step ")]
    expect([(line[1], line[2]) for line in shown] == [("1", "loss"), ("2", "loss"), ("3", "evaluated"), ("4", "loss"), ("4", "evaluated")], f"text: {done.stdout}")
    expect(shown[2][3] == "off" and shown[2][5] == "close", f"names: {shown[2]}")
    one = train(here, "least0.json", "--devices", "1", "--steps", "2", "--input", "x=hx.npy", "--input", "y=hy/*.npy", "--evaluate", "1", "--evaluate-input", "y=hy/0.npy", "--json")
    expect(one.returncode == 2 and "each step reads another array of \"x\", and none of them is held out" in one.stderr, f"not held out: {one.stderr}")
    np.save(here / "one.npy", held[0][0])
    one = train(here, "least0.json", "--devices", "1", "--steps", "1", "--input", "x=one.npy", "--input", "y=y.npy", "--evaluate", "1", "--evaluate-input", "y=hy/0.npy",
                "--output", "w=w.npy", "--output", "b=b.npy", "--json")
    wanted = by_hand((held[0][:1], held[1][:1]), np.load(here / "w.npy"), np.load(here / "b.npy")[0])
    found = json.loads(one.stdout)["evaluations"]
    expect(found[0]["arrays"] == 1 and np.isclose(found[0]["off"], wanted[0], rtol=1e-12), f"one array, x as in the training: {found}, not {wanted}")


def check_resumed(here):
    words = ["least0.5.json", "--devices", "2", *DATA, "--evaluate", "5", *HELD_OUT, "--json"]
    whole = json.loads(train(here, *words, "--steps", "20").stdout)["evaluations"]
    first = json.loads(train(here, *words, "--steps", "12", "--checkpoint", "7:kept").stdout)["evaluations"]
    again = train(here, *words, "--steps", "20", "--resume", "kept")
    expect("12 starts complete" in again.stderr, f"resumed: {again.stderr}")
    expect(first[:2] == whole[:2] and json.loads(again.stdout)["evaluations"] == whole[2:], f"resumed: {again.stdout}, not {whole}")


def check_trials(here, held):
    rates = ["0.2", "0.01", "0.05"]
    words = ["least0.5.json", "--steps", "9", *DATA, "--evaluate", "4", *HELD_OUT, "--json"]
    for more in ["--devices", "1"], ["--devices", "3"], ["--devices", "4", "--strategy", "dp=2"]:
        alone = [more[1]] if "--strategy" not in more else ["2", *more[2:]]
        done = train(here, *words, *more, "--trials", "lr=" + ",".join(rates))
        told = json.loads(done.stdout)["evaluations"] if done.returncode == 0 else []
        for rate in rates:
            wanted = json.loads(train(here, *words, "--devices", *alone, "--param", f"lr={rate}").stdout)["evaluations"]
            found = [one for one in told if one["param"] == f"lr={rate}"]
            same = [one["step"] for one in found] == [4, 8, 9] and all(np.isclose(a["off"], b["off"], rtol=1e-12) for a, b in zip(found, wanted))
            expect(same, f"trials {more}: {found}, not {wanted}; {done.stderr}")


def check_outputs(here):
    """Weights that are no outputs go to files, and the training goes on with what one begins with."""
    train(here, "least0.json", "--devices", "2", "--steps", "6", *DATA, "--output", "w=w6.npy", "--output", "b=b6.csv", "--output", "b.m=bm.npy")
    done = train(here, "least0.json", "--devices", "2", "--steps", "3", *DATA, "--output", "w=w.npy", "--output", "b=b.npy")
    expect(done.returncode == 0 and re.search(r"state b +b.npy", done.stdout), f"states in the report: {done.stdout}")
    expect(float((here / "b6.csv").read_text()) != 0 and np.load(here / "bm.npy").shape == (1,), "states as text, and of the optimiser")
    done = train(here, "least0.json", "--devices", "2", "--steps", "1", "--output", "d=d.npy")
    expect(done.returncode == 2 and '"d" is no output' in done.stderr, f"a temporary buffer: {done.stderr}")


def check_refusals(here):
    graph = ["least0.json", "--devices", "2"]
    np.save(here / "short.npy", np.zeros((HELD - 1, N)))
    cases = [(["--evaluate-input", "x=hx.npy"], "--evaluate-input is for --evaluate N"), (["--evaluate", "0"], "it takes a whole number from 1"),
             (["--evaluate", "2", "--backend", "sim"], "--evaluate needs results"), (["--evaluate", "2", *HELD_OUT, "--evaluate-input", "w=w.npy"], "\"w\" is a weight or a state"),
             (["--evaluate", "2", *HELD_OUT, "--evaluate-input", "z=w.npy"], "no buffer \"z\""), (["--evaluate", "2", "--evaluate-input", "x=nowhere.npy", "--evaluate-input", "y=hy/*.npy"], "nowhere.npy"),
             (["--evaluate", "2", "--evaluate-input", "x=hx.npy", "--evaluate-input", "y=short.npy"], "x=hx.npy has 5 arrays, and y=short.npy has 4"),
             (["--evaluate", "2", "--steps", "0"], "--steps 0 runs nothing, and --evaluate is told by a run")]
    for words, said in cases:
        done = train(here, *graph, *DATA, *words)
        expect(done.returncode == 2 and said in done.stderr, f"{words}: exit {done.returncode}, {done.stderr}")
    done = train(here, "-", "--devices", "2", "--evaluate", "2", stdin=json.dumps(model(0)))
    expect(done.returncode == 2 and "give a file, not standard input" in done.stderr, f"standard input: {done.stderr}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        held = make(here)
        check_steps(here, held)
        check_ways(here, held)
        check_text(here, held)
        check_resumed(here)
        check_trials(here, held)
        check_outputs(here)
        check_refusals(here)
    print(f"{len(wrong)} wrong")
    return bool(wrong)


sys.exit(main())
