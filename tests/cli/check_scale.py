#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`gantry scale --ranks`: one rank is the plain machine, rows are what `schedule` says of joined machines, which the checker passes."""
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
        check_weak(gantry)


if __name__ == "__main__":
    main(*sys.argv[1:])
