# SPDX-License-Identifier: Apache-2.0
"""`gantry train --trials`: each trial has the bits of its training alone on one device, however many devices there are, and the losses of
NumPy; what is refused; no temporary file stays. Exit 77: no NumPy.

check_trials.py GANTRY
"""
import json
import os
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
wrong = []


def expect(holds, what):
    if not holds:
        wrong.append(what)
        print("wrong:", what)


def train(here, *words, input=None):
    (here / "tmp").mkdir(exist_ok=True)
    done = subprocess.run([COMMAND, "train", *words], cwd=here, capture_output=True, text=True, timeout=120, env={**os.environ, "TMPDIR": str(here / "tmp")}, input=input)
    expect(not list((here / "tmp").iterdir()), f"{words}: temporary files stay")
    return done


def lines(done):
    expect(done.returncode == 0, f"{done.args[1:]}: exit {done.returncode}: {done.stderr}")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return (found[:-1], found[-1]) if found else ([], {})


def check_bits(here):
    rates = ["0.1", "0.01", "0.003"]
    for model, words in ("mlp", ["--param", "batch=32", "--param", "hidden=16"]), ("cnn", []):
        alone = [[line["loss"] for line in lines(train(here, model, "--devices", "1", "--steps", "6", "--param", f"lr={rate}", "--watch", "loss", "--json", *words))[0]]
                 for rate in rates]
        for devices in "1", "2", "3":
            watched = [word for i in range(3) for word in ("--watch", f"trial{i}.loss")]
            found, report = lines(train(here, model, "--devices", devices, "--steps", "6", "--trials", "lr=" + ",".join(rates), "--json", *watched, *words))
            for i, rate in enumerate(rates):
                losses = [line[f"trial{i}.loss"] for line in found]
                title = f"{model} on {devices}, lr={rate}"
                expect(losses == alone[i], f"{title}: {losses}, not {alone[i]}")
                row = {"param": f"lr={rate}", "prefix": f"trial{i}", "first": losses[0], "last": losses[-1], "least": min(losses), "least_step": 1 + losses.index(min(losses))}
                expect(report["trials"][i] == row, f"{title}: {report['trials'][i]}, not {row}")


def least(here):
    """Least squares with one weight a column, which the model gives as an output; batches by --input."""
    model = {"gantry": 1, "name": "least", "params": {"n": 3, "lr": 0.1}, "train": {"loss": "off", "weights": ["w"], "optimizer": "sgd", "learning_rate": "lr"},
             "buffers": {"x": {"dtype": "f64", "shape": ["n", 4], "class": "const", "init": 0}, "y": {"dtype": "f64", "shape": ["n"], "class": "const", "init": 0},
                         "w": {"dtype": "f64", "shape": [4], "init": 0, "output": True}, "g": {"dtype": "f64", "shape": ["n"]}, "off": {"dtype": "f64", "shape": [1]}},
             "nodes": [{"id": "g", "reduce": {"g": "sum(x * w, 1)"}, "args": {"x": "x", "w": "w", "g": "g"}},
                       {"id": "off", "reduce": {"l": "mean(square(g - y))"}, "args": {"g": "g", "y": "y", "l": "off"}}]}
    (here / "least.json").write_text(json.dumps(model))
    return model


def check_numpy(here):
    draw = np.random.default_rng(4)
    rates, steps, batches, n = [0.2, 0.05, 0.01, 1.2], 9, 3, 16
    x, y = draw.standard_normal((batches, n, 4)), draw.standard_normal((batches, n))
    first = draw.standard_normal(4)
    np.save(here / "x.npy", x), np.save(here / "y.npy", y), np.save(here / "first.npy", first)
    words = [word for i in range(4) for word in ("--watch", f"trial{i}.off", "--watch", f"trial{i}.w")]
    found, report = lines(train(here, "least.json", "--devices", "3", "--steps", str(steps), "--trials", "lr=" + ",".join(map(str, rates)), "--input", "x=x.npy",
                                "--input", "y=y.npy", "--input", "w=first.npy", "--output", "trial2.w=w.npy", "--json", *words))
    for i, rate in enumerate(rates):
        w = first
        for k in range(steps):
            a, b = x[k % batches], y[k % batches]
            off = a @ w - b
            w = w - rate * 2 * off @ a / n
            line = found[k]
            expect(np.isclose(line[f"trial{i}.off"], (off ** 2).mean(), rtol=1e-9) and np.allclose(line[f"trial{i}.w"], w, rtol=1e-9),
                   f"numpy: rate {rate}, step {k + 1}: {line}")
        if i == 2:
            expect(np.allclose(np.load(here / "w.npy"), w, rtol=1e-9), "numpy: the weights that are written")
    expect([fed["arrays"] for fed in report["fed"]] == [batches] * 2, f"inputs are there once: {report.get('fed')}")


def check_strategies(here):
    """Losses are those of the training alone with that strategy, up to rounding; devices are those of the trial's group, which all have work."""
    rates = ["0.05", "0.01", "0.002"]
    small = ["mlp", "--param", "batch=32", "--param", "hidden=16"]
    for strategy, each, devices in ("dp=2", 2, 2), ("dp=2,zero=1", 2, 5), ("dp=2,pp=2,micro=2", 4, 8), ("tp=2", 2, 4), ("dp=2,tp=2", 4, 4), ("micro=4", 1, 2), ("auto", 2, 2):
        found, report = lines(train(here, *small, "--devices", str(devices), "--steps", "5", "--trials", "lr=" + ",".join(rates), "--strategy", strategy, "--json", "--watch",
                                    "trial0.loss", "--watch", "trial1.loss", "--watch", "trial2.loss"))
        places = {}
        for node, device in report["placement"].items():
            if not re.search(r"\.train\.|\.step", node):  # where weights are stepped is the scheduler's
                places.setdefault(node.split(".")[0], set()).add(int(device.removeprefix("dev")))
        for i, rate in enumerate(rates):
            alone = [line["loss"] for line in lines(train(here, *small, "--devices", str(each), "--steps", "5", "--param", f"lr={rate}", "--strategy", strategy, "--watch", "loss", "--json"))[0]]
            expect(np.allclose([line[f"trial{i}.loss"] for line in found], alone, rtol=1e-5), f"{strategy}, lr={rate}: {found}, not {alone}")
            first = i % (devices // each) * each
            expect(strategy == "auto" or places[f"trial{i}"] == set(range(first, first + each)), f"{strategy} on {devices}: trial {i} is on {places[f'trial{i}']}")
    done = train(here, "mlp", "--devices", "3", "--trials", "lr=0.1,0.2", "--strategy", "dp=2,pp=2")
    expect(done.returncode == 2 and "--strategy dp=2,pp=2 is for 4 devices, which each trial takes, and there are 3; give smaller numbers, or more devices" in done.stderr,
           f"too few devices: exit {done.returncode}, {done.stderr}")


def check_resumed(here):
    """Trials of a strategy go on where there are fewer groups of devices, or more, than they began with: with the same losses."""
    small = ["mlp", "--param", "batch=32", "--param", "hidden=16", "--trials", "lr=0.05,0.01,0.002", "--json", "--effort", "0"]
    watched = [word for i in range(3) for word in ("--watch", f"trial{i}.loss")]
    for strategy, devices, others in ("dp=2", "4", ("2", "3", "6", "1")), ("dp=2,pp=2,micro=2", "8", ("4", "2")), ("tp=2", "2", ("5",)):
        words = [*small, *watched, "--strategy", strategy]
        want, _ = lines(train(here, *words, "--devices", devices, "--steps", "5"))
        kept = f"kept-{strategy.replace(',', '-')}"
        lines(train(here, *words, "--devices", devices, "--steps", "3", "--checkpoint", f"3:{kept}"))
        for other in others:
            found, _ = lines(train(here, *words, "--devices", other, "--steps", "5", "--resume", kept))
            same = len(found) == 2 and all(np.isclose(found[k][f"trial{i}.loss"], want[3 + k][f"trial{i}.loss"], rtol=1e-6) for k in range(2) for i in range(3))
            expect(same, f"{strategy}, {devices} to {other}: {found}, not {want[3:]}")


def check_text(here):
    done = train(here, "least.json", "--devices", "2", "--steps", "4", "--trials", "lr=0.1,0.2", "--every", "2")
    shown = [line for line in done.stdout.splitlines() if line.startswith("step ")]
    expect([line.split()[1] for line in shown] == ["1", "2", "4"] and all("  lr=0.1 " in line and "  lr=0.2 " in line for line in shown), f"text: {done.stdout}")
    table = done.stdout.split("  trial ")[1].splitlines()
    expect("least" in table[0] and table[1].split()[:2] == ["lr=0.1", "trial0.*"] and table[2].split()[:2] == ["lr=0.2", "trial1.*"], f"table: {table}")
    done = train(here, "least.json", "--devices", "2", "--steps", "1", "--trials", "lr=0.1,0.2", "--write-graph", "both.json")
    again = subprocess.run([COMMAND, "run", "both.json", "--devices", "2", "--check"], cwd=here, capture_output=True, text=True, timeout=60)
    expect(done.returncode == 0 and again.returncode == 0 and "trial1.off" in again.stdout, f"the graph that is written: {again.stderr}")


def check_refusals(here, model):
    cases = [("lr", 2, "it takes a param and 2 to 64 values"), ("lr=0.1", 2, "it takes a param"), ("=1,2", 2, "it takes a param"), ("lr=1,,2", 2, "it takes a param"),
             ("lr=" + ",".join(["1"] * 65), 2, "it takes a param"), ("rate=1,2", 2, "--param rate: the graph has no param of that name"), ("lr=1,two", 3, "--param lr=two")]
    for text, code, said in cases:
        done = train(here, "least.json", "--devices", "1", "--trials", text)
        expect(done.returncode == code and said in done.stderr, f"--trials {text[:20]}: exit {done.returncode}, {done.stderr}")
    done = train(here, "-", "--devices", "1", "--trials", "lr=1,2", input=json.dumps(model))
    expect(done.returncode == 2 and "not standard input" in done.stderr, f"standard input: {done.stderr}")
    model["buffers"]["w"]["init"] = {"npy": "w.npy"}
    np.save(here / "w.npy", np.zeros(4))
    (here / "file.json").write_text(json.dumps(model))
    done = train(here, "file.json", "--devices", "1", "--trials", "lr=1,2")
    expect(done.returncode == 2 and "buffer \"w\" begins with a file" in done.stderr, f"a file: {done.stderr}")
    done = subprocess.run([COMMAND, "train", "least.json", "--devices", "1", "--trials", "lr=1,2"], cwd=here, capture_output=True, text=True, env={**os.environ, "TMPDIR": "/nowhere"})
    expect(done.returncode == 1 and "cannot make the folder /nowhere/" in done.stderr, f"no room: {done.stderr}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        here = pathlib.Path(folder)
        model = least(here)
        check_bits(here)
        check_numpy(here)
        check_strategies(here)
        check_resumed(here)
        check_text(here)
        check_refusals(here, model)
    print(f"{len(wrong)} wrong")
    return bool(wrong)


sys.exit(main())
