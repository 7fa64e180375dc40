#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`gantry scale --ranks` and `--strategy`: one rank is the plain machine, rows are what `schedule` says of joined machines, which the checker passes; advice."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

GRAPHS = {"jacobi_until": ["--param", "n=4096", "--param", "parts=devices"], "reduce_sum": ["--param", "n=400000000", "--param", "parts=16"],
          "cholesky": ["--param", "n=16384"], "transformer_block_train": []}


def run(gantry, *words):
    done = subprocess.run([gantry, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def check_rows(gantry, graph, name, words, joined):
    rows = json.loads(run(gantry, "scale", graph, "--machine", name, "--ranks", "1,2,4", "--effort", 0, *words, "--json"))["rows"]
    assert [row["ranks"] for row in rows] == [1, 2, 4]
    for row in rows:
        alone = json.loads(run(gantry, "schedule", graph, "--machine", joined[row["ranks"]], "--effort", 0, *words, "--json"))
        assert row["makespan_us"] == alone["makespan_us"] and row["bytes_moved"] == alone["bytes_moved"], (graph, row)
        assert row["network_bytes"] == alone.get("network_bytes", 0) and row["network_busy_us"] <= row["makespan_us"] * 1.001, (graph, row)
        assert row["ranks"] > 1 or row["network_bytes"] == 0
        assert abs(row["efficiency"] - rows[0]["makespan_us"] / row["makespan_us"] / row["ranks"]) < 1e-9
        run(gantry, "schedule", graph, "--machine", joined[row["ranks"]], "--effort", 0, *words, "-o", "s.json")
        run(gantry, "check", graph, "s.json", "--ranks", *words)


def pinned(source):
    """The graph with strip i on device i."""
    graph = json.loads((source / "graphs" / "jacobi_until.json").read_text())
    body = graph["nodes"][0]["nodes"]
    for node in body + body[0]["nodes"]:
        if "[i]" in node.get("id", ""):
            node["on"] = "i"
    return graph


def check_halos(gantry, source, joined):
    """Each start of a stencil sends a row each way over each boundary between ranks, and no other rows cross: what crosses in a thousand
    steps more are so many rows more."""
    bytes_of = {}
    pathlib.Path("strips.json").write_text(json.dumps(pinned(source)))
    for steps in (1000, 2000):
        words = ["--param", "n=8192", "--param", "parts=32", "--param", f"steps={steps}", "--param", "every=500", "--effort", 0]
        bytes_of[steps] = json.loads(run(gantry, "schedule", "strips.json", "--machine", joined[4], *words, "--json"))["network_bytes"]
    halos = 1000 * 2 * 3 * 8192 * 8
    more = bytes_of[2000] - bytes_of[1000]
    assert halos <= more <= 1.01 * halos, (more, halos)  # and the sums that tell the end


def check_weak(gantry):
    """The third power of the param grows with the ranks; efficiency is that of the work that there is."""
    found = json.loads(run(gantry, "scale", "cholesky", "--machine", "dgx-h100", "--ranks", "1,8", "--weak", "n:3", "--param", "n=8192", "--effort", 0, "--json"))
    first, last = found["rows"]
    assert found["weak"] == "n" and (first["value"], last["value"]) == (8192, 16384)
    assert abs(last["efficiency"] - first["makespan_us"] / last["makespan_us"]) < 1e-9


PLACES = {"potrf[k]": ("k", "k"), "trsm[i,k]": ("i", "k"), "syrk[i,k]": ("i", "i"), "gemm[i,j,k]": ("i", "j")}


def spread_cholesky(source, placed):
    """The graph of the gallery on a matrix that is where its tiles are worked on already, as libraries for many nodes have it; `placed`: each tile on a device of its own, in blocks of p by q."""
    graph = json.loads((source / "graphs" / "cholesky.json").read_text())
    graph["params"] |= {"p": 1, "q": "devices // p"} if placed else {}
    graph["buffers"]["A"] |= {"class": "state", "output": False}
    graph["buffers"]["last"] = {"dtype": "f64", "shape": [1], "output": True}

    def place(nodes):
        for node in nodes:
            if node.get("id") in PLACES and placed:
                node["on"] = "({} % p) * q + {} % q".format(*PLACES[node["id"]])
            place(node.get("nodes", []))

    place(graph["nodes"])
    graph["nodes"].append({"id": "last", "kernel": "reduce_sum", "args": {"x": "A[nt-1][nt-1]", "out": "last"}, **({"on": "((nt-1) % p) * q + (nt-1) % q"} if placed else {})})
    pathlib.Path("spread.json").write_text(json.dumps(graph))
    return pathlib.Path("spread.json")


def crossings(nt, p, q, each):
    """Tiles that computers of `each` devices have of others: what is written last, and read by other tiles, goes there once."""
    def home(i, j):
        return ((i % p) * q + j % q) // each

    count = 0
    for k in range(nt):
        count += len({home(i, k) for i in range(k + 1, nt)} - {home(k, k)})
        for i in range(k + 1, nt):
            readers = {home(i, j) for j in range(k + 1, i + 1)} | {home(j, i) for j in range(i, nt)}
            count += len(readers - {home(i, k)})
    return count


def check_owners(gantry, source, joined):
    """Of a spread matrix each tile crosses the network once to each computer that reads it, and so it scales; where no devices are named, one policy at effort 0 is not the only one."""
    n, nt, p = 131072, 32, 4
    words = ["--param", f"n={n}", "--param", f"nt={nt}", "--effort", 0]
    rows = json.loads(run(gantry, "scale", spread_cholesky(source, True), "--machine", "dgx-h100", "--ranks", "1,2,4", *words, "--param", f"p={p}", "--json"))["rows"]
    for row in rows:
        tiles = crossings(nt, p, 8 * row["ranks"] // p, 8)
        assert row["network_bytes"] - tiles * (n // nt) ** 2 * 8 in (0, 8), (row, tiles)  # and the sum
    assert rows[1]["efficiency"] > 0.85 and rows[2]["efficiency"] > 0.7, rows
    graph = spread_cholesky(source, False)
    makespan = {policy: json.loads(run(gantry, "schedule", graph, "--machine", joined[2], *words, *(["--policy", policy] if policy else []), "--json"))["makespan_us"] for policy in ("", "heft", "families", "single-rank")}
    assert makespan[""] == min(makespan[policy] for policy in makespan if policy), makespan


def check_strategies(gantry, source):
    """Each row is the training for its devices, told without warnings about weights, which a step writes; what a row cannot be is told with the row."""
    mlp = source / "graphs" / "models" / "mlp.json"
    words = [gantry, "scale", mlp, "--machine", "h200-8", "--effort", "0"]
    for text, at in (("dp=devices", "dp={}"), ("micro=devices,dp=devices", "micro={},dp={}")):
        done = subprocess.run([*words, "--devices", "1,2", "--strategy", text, "--json"], capture_output=True, text=True)
        assert done.returncode == 0 and not done.stderr, done.stderr
        for devices, row in zip((1, 2), json.loads(done.stdout)["rows"]):
            alone = json.loads(run(gantry, "train", mlp, "--machine", "h200-8", "--devices", devices, "--effort", 0, "--steps", 0,
                                   "--strategy", at.replace("{}", str(devices)), "--json"))
            assert row["makespan_us"] == alone["makespan_us"], (text, row)
    batch = json.loads(mlp.read_text())["params"]["batch"]
    for text, at in (("dp=2", "dp=2"), ("dp=devices,zero=1", "dp={},zero=1")):  # where the graph that --weak begins with is that of one device
        rows = json.loads(run(*words, "--devices", "2,4", "--weak", "batch", "--strategy", text, "--json"))["rows"]
        for devices, row in zip((2, 4), rows):
            alone = json.loads(run(gantry, "train", mlp, "--machine", "h200-8", "--devices", devices, "--effort", 0, "--steps", 0, "--param", f"batch={batch * devices}",
                                   "--strategy", at.replace("{}", str(devices)), "--json"))
            assert row["makespan_us"] == alone["makespan_us"], (text, row)
    for text, devices, wanted in (("auto", "1,2", "--strategy auto is for train, run and schedule, which choose for one machine; give numbers, and \"devices\""),
                                  ("dp=3", "1,4", "--strategy \"dp=3\" is for 3 devices, and the row of 1 device has fewer; begin with more (--devices 3..6)"),
                                  ("dp=devices,pp=2", "2,3", "--strategy \"dp=2,pp=2\" is for 4 devices, and the row of 2 devices has fewer")):
        done = subprocess.run([*words, "--devices", devices, "--strategy", text], capture_output=True, text=True)
        told = done.returncode == 0 and f"1  not possible: {wanted}" in done.stdout if text == "dp=3" else done.returncode == 2 and wanted in done.stderr
        assert told, (text, done)


def check_refused_rows(gantry, source):
    """A number that the strategy, the batch or the memories do not allow is a line that says why, and the others are as without it; where none is possible that is the error."""
    mlp = source / "graphs" / "models" / "mlp.json"
    words = [gantry, "scale", mlp, "--machine", "h200-8", "--effort", "0"]

    def found(*more):
        return json.loads(run(*words, *more, "--json"))
    shards, whole = (found("--devices", "1,2", "--strategy", text)["rows"] for text in ("dp=devices,zero=1", "zero=3,dp=devices"))
    assert [row["devices"] for row in shards] == [1, 2] and shards[0]["makespan_us"] == whole[0]["makespan_us"]
    alone = json.loads(run(gantry, "train", mlp, "--machine", "h200-8", "--devices", 1, "--effort", 0, "--steps", 0, "--json"))
    assert shards[0]["makespan_us"] == alone["makespan_us"] and shards[0]["speedup"] == 1, "one replica has all of each weight"
    some = json.loads(run(gantry, "scale", "gpt", "--machine", "h200-8", "--effort", 0, "--devices", "1..4", "--strategy", "dp=devices", "--param", "batch=4", "--json"))
    assert [row["devices"] for row in some["rows"]] == [1, 2, 4] and [row["devices"] for row in some["refused"]] == [3], some
    assert "128 rows" in some["refused"][0]["why"] and "dp=3" in some["refused"][0]["why"], "four sequences of 32 are not for three replicas"
    fixed = found("--devices", "1,2,3,4", "--strategy", "dp=2,zero=1")
    assert [row["devices"] for row in fixed["rows"]] == [2, 3, 4] and "has fewer" in fixed["refused"][0]["why"], fixed
    tight = json.loads(run(gantry, "scale", "gpt", "--machine", "h200-8", "--effort", 0, "--devices", "1,4", "--strategy", "dp=devices,zero=1", "--param", "batch=4", "--spill", "off",
                           "--max-memory", "gpu0=1700KiB", "--json"))
    assert [row["devices"] for row in tight["rows"]] == [4] and "gpu0 needs" in tight["refused"][0]["why"], "a quarter of the batch and of the moments fits"
    none = subprocess.run([*words, "--devices", "1,2", "--strategy", "zero=1"], capture_output=True, text=True)
    assert none.returncode == 2 and "strategy: zero is 1 and there is one replica" in none.stderr and not none.stdout, none
    for text, wanted in (("dp=devices,zero=9", "zero is 9; 0 to 3 are allowed"), ("dp=devices,zero=1,zero=2", '"zero" is there twice')):
        wrong = subprocess.run([*words, "--devices", "1,2", "--strategy", text], capture_output=True, text=True)
        assert wrong.returncode == 2 and wanted in wrong.stderr and not wrong.stdout, "shards that no row can have are no strategy of one replica either"


def check_uncut(gantry):
    """Where a model leaves devices without work the advice names the option that cuts it, and with that they all have some; other graphs, and models that use all, are not told of it."""
    def found(*words):
        return json.loads(run(gantry, "scale", *words, "--machine", "h200-8", "--devices", "1,8", "--effort", 0, "--json"))
    words, hint = ["gpt", "--param", "parts=1", "--param", "batch=64", "--param", "tokens=512", "--param", "dim=64"], "add --strategy dp=devices"
    whole, cut, split = found(*words), found(*words, "--strategy", "dp=devices"), found(*words, "--param", "parts=8")
    assert whole["rows"][1]["used"] < 8 and hint in whole["advice"], whole
    assert [row["used"] for row in cut["rows"]] == [1, 8] and hint not in cut["advice"] and cut["rows"][1]["speedup"] > 2, cut
    assert split["rows"][1]["used"] == 8 and hint not in split["advice"], split
    plain = found("saxpy", "--param", "parts=1")
    assert plain["rows"][1]["used"] < 8 and hint not in plain["advice"], plain


def main(gantry, source):
    gantry, source = pathlib.Path(gantry).resolve(), pathlib.Path(source).resolve()
    machines = source / "graphs" / "machines"
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for name in ("dgx-h100", "a100-pcie-4-100gbe"):
            joined = {1: machines / f"{name}.json"}
            for ranks in (2, 4):
                joined[ranks] = pathlib.Path(folder) / f"{name}.{ranks}.json"
                run(gantry, "machine", "join", *[name] * ranks, "-o", joined[ranks])
            for graph, words in GRAPHS.items():
                check_rows(gantry, graph, name, words, joined)
            if name == "dgx-h100":
                check_halos(gantry, source, joined)
                check_owners(gantry, source, joined)
        check_weak(gantry)
        check_strategies(gantry, source)
        check_refused_rows(gantry, source)
        check_uncut(gantry)


if __name__ == "__main__":
    main(*sys.argv[1:])
