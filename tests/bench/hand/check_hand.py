# SPDX-License-Identifier: Apache-2.0
"""The graphs of this folder on the host against NumPy, at small sizes; every case of compare.py is scheduled for two GPUs, and its
tables are made of figures that programs of the test tell; the programs by hand check themselves where there is a GPU, and skip
where there is none.

check_hand.py GANTRY ROOT PROGRAMS
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1] / "conformance"))
sys.path.insert(0, str(HERE))
import compare  # noqa: E402
from numpy_gantry import from_bf16, np, run, to_bf16  # noqa: E402

rng = np.random.default_rng(4)


def cholesky(dtype):
    n, kind = 96, {"f64": np.float64, "f32": np.float32}[dtype]
    a = rng.random((n, n))
    spd = (a @ a.T + n * np.eye(n)).astype(kind)
    lower = np.linalg.cholesky(spd.astype(float))

    def change(graph):
        graph["nodes"][0]["nodes"][0]["for"]["j"] = "nt"  # the upper tiles too: an output has no rows that nobody writes
    return {"M": spd}, {"n": n, "nt": 3}, {"A": (lower, np.tril), "probe": ([lower[64:, :32].sum()], None)}, change


def lu(dtype):
    n, nt, kind = 192, 3, {"f64": np.float64, "f32": np.float32}[dtype]
    nb = n // nt
    a = (rng.random((n, n)) + n * np.eye(n)).astype(kind)
    want = a.astype(float)
    for k in range(n):
        want[k + 1:, k] /= want[k, k]
        want[k + 1:, k + 1:] -= np.outer(want[k + 1:, k], want[k, k + 1:])

    def turned(x):  # tiles above the diagonal are kept transposed
        x = x.copy()
        for i in range(nt):
            for j in range(i + 1, nt):
                at = np.s_[i * nb:(i + 1) * nb, j * nb:(j + 1) * nb]
                x[at] = x[at].T.copy()
        return x
    return {"M": turned(a)}, {"n": n, "nt": nt}, {"A": (turned(want), None)}, None


def saxpy(dtype):
    kind = {"f64": np.float64, "f32": np.float32}[dtype]
    x, y = rng.random(1003).astype(kind), rng.random(1003).astype(kind)
    new = 2 * x.astype(float) + y
    return {"x": x, "y": y}, {"n": 1003, "parts": 3}, {"y": (new, None), "total": ([new.sum()], None)}, None


def saxpy_formulas(dtype):
    return saxpy(dtype)


def reduce(dtype):
    x = rng.random(10007).astype({"f64": np.float64, "f32": np.float32}[dtype])
    return {"x": x}, {"n": 10007, "parts": 8}, {"total": ([x.astype(float).sum()], None)}, None


def jacobi(dtype):
    u = rng.random((37, 37)).astype({"f64": np.float64, "f32": np.float32}[dtype])
    want = u.astype(float)
    for _ in range(9):
        new = want.copy()
        new[1:-1, 1:-1] = 0.25 * (want[:-2, 1:-1] + want[2:, 1:-1] + want[1:-1, :-2] + want[1:-1, 2:])
        want = new
    return {"M": u}, {"n": 37, "steps": 9, "parts": 2}, {"probe": (want[18:19], None)}, None


def stencil(dtype):
    a, b = rng.random((7, 20)).astype(np.float32), np.zeros((7, 20), np.float32)
    now, before = a, b
    for _ in range(6):
        new = now.copy()
        new[1:-1, 1:-1] = np.float32(0.25) * ((now[:-2, 1:-1] + now[2:, 1:-1]) + (now[1:-1, :-2] + now[1:-1, 2:]))
        now, before = new, now
    return {"a": a, "b": b}, {"lists": 7, "steps": 6, "width": 20}, {"a": (now, None), "b": (before, None)}, None


def rounded(x, dtype):
    """As the buffer holds it: what is bound, and what it is worth."""
    if dtype != "bf16":
        x = x.astype({"f64": np.float64, "f32": np.float32}[dtype])
        return x, x.astype(float)
    pattern = to_bf16(x)
    return ("bf16", pattern), from_bf16(pattern).astype(float)


def batch(dtype):
    m, count = 16, 5
    (a, wide_a), (b, wide_b) = rounded(rng.random((count * m, m)), dtype), rounded(rng.random((count * m, m)), dtype)
    want = (wide_a.reshape(count, m, m) @ wide_b.reshape(count, m, m)).reshape(count * m, m)
    return {"a": a, "b": b}, {"m": m, "count": count}, {"c": (want, None), "probe": (want[-1:], None)}, None


def attention(dtype):
    heads, length, d = 3, 20, 8
    (q, wq), (k, wk), (v, wv) = (rounded(rng.random((heads * length, d)) - 0.5, dtype) for _ in range(3))
    wq, wk, wv = (x.reshape(heads, length, d) for x in (wq, wk, wv))
    s = np.exp(3 * wq @ wk.transpose(0, 2, 1))
    want = (s / s.sum(2, keepdims=True) @ wv).reshape(heads * length, d)
    return ({"q": q, "k": k, "v": v}, {"heads": heads, "length": length, "d": d, "scale": 3},
            {"o": (want, None), "probe": (want[-1:], None)}, None)


def pipe(dtype):
    stages, batches, n, d, lr = 3, 2, 6, 5, 0.25
    (x, wide), (w, weights) = rounded(rng.random((batches * n, d)), dtype), rounded(rng.random((stages * d, d)) - 0.5, dtype)
    weights = weights.reshape(stages, d, d)
    y = [wide]
    for s in range(stages):
        y.append(y[s] @ weights[s])
    dy, new = y[-1], weights.copy()
    for s in reversed(range(stages)):
        new[s] = weights[s] - lr * y[s].T @ dy
        dy = dy @ weights[s].T
    return ({"x": x, "w": w}, {"stages": stages, "batches": batches, "batch": n, "d": d, "lr": lr},
            {"w": (new.reshape(stages * d, d), None)}, None)


def mlp(dtype):
    n, inputs, hidden, classes, lr = 24, 13, 9, 5, 0.1
    x, labels = rng.random((n, inputs), np.float32), rng.integers(0, classes, n).astype(np.int32)
    w1, b1 = rng.normal(0, 0.3, (inputs, hidden)).astype(np.float32), rng.normal(0, 0.1, (1, hidden)).astype(np.float32)
    w2, b2 = rng.normal(0, 0.3, (hidden, classes)).astype(np.float32), rng.normal(0, 0.1, (1, classes)).astype(np.float32)
    z = x @ w1.astype(float) + b1
    h = np.maximum(z, 0)
    p = np.exp(h @ w2 + b2)
    p /= p.sum(1, keepdims=True)
    dlogits = (p - np.eye(classes)[labels]) / n
    dz = np.where(z > 0, dlogits @ w2.T, 0)
    want = {"loss": [-np.log(p[np.arange(n), labels]).mean()], "w1": w1 - lr * x.T @ dz, "b1": b1 - lr * dz.sum(0, keepdims=True),
            "w2": w2 - lr * h.T @ dlogits, "b2": b2 - lr * dlogits.sum(0, keepdims=True)}
    return ({"x": x, "labels": labels, "w1": w1, "b1": b1, "w2": w2, "b2": b2},
            {"batch": n, "inputs": inputs, "hidden": hidden, "classes": classes, "parts": 2}, {k: (v, None) for k, v in want.items()}, None)


GRAPHS = {cholesky: ["f64", "f32"], lu: ["f64", "f32"], saxpy: ["f32", "f64"], saxpy_formulas: ["f32"], reduce: ["f32", "f64"], jacobi: ["f64", "f32"],
          batch: ["f32", "f64", "bf16"], attention: ["f32", "bf16"], pipe: ["bf16", "f32"], mlp: ["f32"], stencil: ["f32"]}
CLOSE = {"f64": 1e-11, "f32": 2e-5, "bf16": 3e-2}


def check_graph(command, make, dtype, devices):
    inputs, params, want, change = make(dtype)
    with tempfile.TemporaryDirectory() as folder:
        case = compare.Case(make.__name__, make.__name__, params, [], dtype, GRAPHS[make][0])
        path = compare.graph_file(case, pathlib.Path(folder))
        graph = json.loads(path.read_text())
        for name in want:
            graph["buffers"][name]["output"] = True
        if change:
            change(graph)
        path.write_text(json.dumps(graph))
        arguments = ["--allow-code", "--backend", "host", "--devices", devices]
        arguments += [word for key, value in params.items() for word in ("--param", f"{key}={value}")]
        shapes = {name: (graph["buffers"][name]["dtype"], np.shape(array)) for name, (array, _) in want.items()}
        found, _ = run(command, path, inputs, shapes, arguments)
    for name, (array, part) in want.items():
        got = from_bf16(found[name]) if shapes[name][0] == "bf16" else found[name]
        part = part or (lambda x: x)
        scale = np.max(np.abs(array))
        np.testing.assert_allclose(part(got.astype(float)), part(np.asarray(array)), rtol=0, atol=CLOSE[dtype] * scale, err_msg=name)


def check_schedules(command, root):
    """Each case as compare.py runs it."""
    for gpus in (1, 2):
        for case in compare.cases(gpus):
            with tempfile.TemporaryDirectory() as folder:
                what = (["train", case.graph.with_suffix(".json"), "--steps", 0, "--strategy", case.strategy] if case.strategy else
                        ["schedule", compare.graph_file(case, pathlib.Path(folder)), "--allow-code"])
                words = [command, *what, "--machine", root / "graphs/machines/h200-8.json", "--devices", gpus, "--effort", 0, "--json"]
                words += [word for key, value in case.params.items() for word in ("--param", f"{key}={value}")]
                done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120)
            yield f"{case.name()} for {gpus} GPUs", done.returncode == 0 and json.loads(done.stdout)["makespan_us"] > 0, done.stderr


SMALL = {"cholesky_tiles": "--n 512 --nt 4", "cholesky_columns": "--n 1024 --nb 256", "lu": "--n 512 --nt 4", "saxpy": "--n 100000",
         "reduce": "--n 100000", "jacobi": "--n 300 --steps 21", "blur": "--frames 4", "batch": "--m 64 --count 20",
         "attention": "--heads 4 --length 200 --d 64", "decode": "--layers 2 --heads 4 --dim 16 --context 64 --words 64", "pipe": "--batch 128 --d 256", "mlp": "--batch 256 --inputs 100 --hidden 60 --classes 10",
         "gpt": "--layers 3 --tokens 160 --heads 2", "stencil": "--lists 9 --steps 12"}
PIPELINE = SMALL["mlp"] + " --way pp --micro 4 --gpus 2"


def check_programs(folder):
    """None are there without nvcc; a skip says that there is no GPU, or one where two are wanted."""
    for name, words in (*SMALL.items(), ("mlp", PIPELINE)):
        if (folder / name).exists():
            done = subprocess.run([folder / name, *words.split(), "--starts", "1"], capture_output=True, text=True, timeout=120,
                                  env=compare.environment(folder.parents[2]))
            right = done.returncode == 0 and json.loads(done.stdout.splitlines()[-1])["ms"] > 0
            yield name, right or done.returncode == 77 and "skipped" in done.stderr, done.stderr


def check_losses(command, root, folder):
    """The model by hand learns what it learns on the host: with attention by one kernel a head, and by products in bands."""
    for sizes in ({"layers": 2, "tokens": 32}, {"layers": 2, "tokens": 160, "heads": 2, "words": 40, "batch": 3}):
        if not (folder / "gpt").exists():
            return
        words = [word for key, value in sizes.items() for word in (f"--{key}", str(value))]
        done = subprocess.run([folder / "gpt", *words, "--starts", "1", "--steps", "6"], capture_output=True, text=True, timeout=120,
                              env=compare.environment(folder.parents[2]))
        if done.returncode == 77:
            return
        words = [command, "train", root / "graphs/models/gpt.json", "--backend", "host", "--devices", "1", "--steps", "6", "--every", "1", "--json"]
        words += [word for key, value in sizes.items() for word in ("--param", f"{key}={value}")]
        host = subprocess.run(words, capture_output=True, text=True, timeout=120)
        found, wanted = json.loads(done.stdout.splitlines()[0])["losses"] if done.stdout else [], compare.losses_of(host.stderr)
        yield f"losses of gpt, {sizes}", len(wanted) == 6 and len(found) == 6 and not list(compare.unlike(wanted, found)), f"{found} {wanted} {done.stderr}"


STUB_GANTRY = """#!/usr/bin/python3
import json, os, sys
if sys.argv[1:] == ["machine", "--json"]:
    print('{"devices": [{"type": "gpu"}, {"type": "gpu"}]}')
elif sys.argv[1:] == ["machine"]:
    print("two GPUs")
elif sys.argv[1] == "machine":
    open(sys.argv[4], "w").write("{}")
elif sys.argv[1] == "--version":
    print("stub")
else:
    replay = sys.argv[sys.argv.index("--replay") + 1] + " " + os.environ.get("GANTRY_CUDA_GRAPHS", "")
    print(json.dumps({"measured_us": 3000, "predicted_us": 2400, "replay": replay.strip()}))
    if sys.argv[1] == "train":
        print("step 1  loss 4.25\\nstep 10  loss 3.5", file=sys.stderr)
"""
STUBS = {"cholesky_tiles": "print('{\"work\": \"tiles\", \"ms\": 2.5, \"best\": \"S=4\"}')",
         "cholesky_columns": "print('{\"work\": \"columns\", \"ms\": 2.0, \"best\": \"nb=512\"}')",
         "lu": "sys.exit('wrong: off by 1')",
         "gpt": "print('{\"losses\": [4.25, 4, 4, 4, 4, 4, 4, 4, 4, 3.6]}'); print('{\"work\": \"gpt\", \"ms\": 4.0, \"best\": \"graph\"}')",
         "mlp": "print('{\"work\": \"mlp\", \"ms\": 2.0, \"best\": \"' + sys.argv[sys.argv.index('--way') + 1] + '\"}')",
         "stencil": """import json
name, ms = ("graphs", 6.0) if "--graphs" in sys.argv else ("resident", 2.0)
print(json.dumps({"work": "stencil", "ms": ms, "best": name, "variants": {name: ms}}))"""}


def comparison(build, seconds):
    options = types.SimpleNamespace(build=build, report=None, machine=build / "machine.json", limit=60, iterations=2, seconds=seconds,
                                    learn=False, graphs_only=False, replays="")
    return compare.Comparison(options)


def make_stubs(build):
    (build / "bin").mkdir()
    (build / "tests" / "bench" / "hand").mkdir(parents=True)
    stubs = {build / "bin" / "gantry": STUB_GANTRY}
    stubs.update({build / "tests/bench/hand" / name: f"#!/usr/bin/python3\nimport sys\n{text}\n" for name, text in STUBS.items()})
    for path, text in stubs.items():
        path.write_text(text)
        path.chmod(0o755)


def check_lists(root):
    """A stencil by each replay, beside graphs and a resident kernel by hand: 2, 32 and 256 rows, 100 steps."""
    with tempfile.TemporaryDirectory() as folder:
        build = pathlib.Path(folder)
        make_stubs(build)
        done = subprocess.run([sys.executable, root / "tools" / "gpu-bench", build, build / "report.md"], capture_output=True, text=True,
                              timeout=250, env={**os.environ, "GPU_BENCH_ONLY": "lists"})
        table = (build / "report.md").read_text()
    for line in ["| 1 | stream | stream | 15.0000 | 30.0000 | 10.0000 | 0.50 | 1.50 |", "| 1 | graph:gpu | graph gpu | 15.0000 | 30.0000 | 10.0000 | 0.50 | 1.50 |",
                 "| 16 | graph:one | graph one | 0.9375 | 1.8750 | 0.6250 | 0.50 | 1.50 |", "| 128 | device | device | 0.1172 | 0.2344 | 0.0781 | 0.50 | 1.50 |"]:
        yield f"lists: {line}", line in table, table + done.stdout + done.stderr


def check_tables():
    """The best program counts; one that fails and one that hangs are told, and have no ratio."""
    with tempfile.TemporaryDirectory() as folder:
        build = pathlib.Path(folder)
        make_stubs(build)
        done = subprocess.run([sys.executable, HERE / "compare.py", build, "--works", "cholesky,lu,train", "--gpus", "2", "--seconds", "200"],
                              capture_output=True, text=True, timeout=250)
        rows, table = json.loads((build / "hand.json").read_text())["rows"], (build / "hand.md").read_text()
        hangs, why = comparison(build, 100).run(["sleep", "60"], 0.5)
        late = comparison(build, 0)
        late.all([1], [])
    yield "what is wrong shows in the exit code", done.returncode == 1, done.stdout + done.stderr
    yield "the best program counts", rows[0]["ratio"] == 1.5 and "| 3.0000 | 2.0000 | columns, nb=512 | 1.500 |" in table, table
    yield "the prediction is over what was measured", "| 2.4000 | 3.0000 | 0.800 |" in table, table
    yield "what fails is told", "ratio" not in rows[1] and "lu: exit 1: wrong: off by 1" in table, table
    yield "other losses than by hand are told", "step 10 has 3.5, by hand 3.6" in table and "step 1 " not in table and rows[2]["ratio"] == 0.75, table
    ways = {"dp=2": "dp", "tp=2": "tp", "dp=2,zero=3": "zero3", "pp=2,micro=4": "pp"}
    yield "each strategy has its way by hand", all(f" {strategy} | 2 | 3.0000 | 2.0000 | mlp, {way} |" in table for strategy, way in ways.items()), table
    yield "what hangs is ended", hangs is None and why.startswith("not done within"), why
    yield "what there was no time for is told", not late.rows and len(late.left_out) == len(compare.cases(1)), late.left_out


def main(command, root, programs):
    failed = passed = 0

    def tell(what, right, why):
        nonlocal failed, passed
        passed, failed = passed + bool(right), failed + (not right)
        if not right:
            print(f"FAILED {what}: {why}")
    for make, dtypes in GRAPHS.items():
        for dtype in dtypes:
            for devices in (1, 2):
                why = None
                try:
                    check_graph(command, make, dtype, devices)
                except (AssertionError, RuntimeError) as error:
                    why = error
                tell(f"{make.__name__} {dtype} on {devices}", why is None, why)
    for what, right, why in (*check_schedules(command, root), *check_tables(), *check_lists(root), *check_programs(programs),
                             *check_losses(command, root, programs)):
        tell(what, right, why)
    left = {path.stem for path in HERE.glob("*.json")} - {make.__name__ for make in GRAPHS}
    tell("graphs without a reference here", not left, left)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main(sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])))
