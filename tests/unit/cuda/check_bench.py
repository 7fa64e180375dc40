# SPDX-License-Identifier: Apache-2.0
"""gantry bench and gantry machine calibrate on GPUs of the fake driver: what they print can be used. Times mean nothing.

check_bench.py GANTRY FOLDER_OF_THE_FAKE
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

STREAMING = {"add", "copy", "saxpy", "reduce_sum", "transpose"}


def run(command, folder, gpus, words, peer="all", code=0, libraries=""):
    env = {**os.environ, "GANTRY_CUDA_LIBRARIES": libraries, "GANTRY_MODULES": folder, "LD_LIBRARY_PATH": folder, "FAKE_CUDA_DEVICES": str(gpus),
           "FAKE_CUDA_PEER": peer, "FAKE_CUDA_MEMORY": "3000000000", "GANTRY_MACHINE_CACHE": "off"}
    done = subprocess.run([command, *words.split()], capture_output=True, timeout=100, env=env, text=True)
    assert done.returncode == code, f"{words} on {gpus}: {done.returncode}\n{done.stdout}{done.stderr}"
    assert (not done.stderr) == (code == 0), done.stderr
    return done.stdout


def rows(command, folder, gpus, words, **more):
    found = json.loads(run(command, folder, gpus, f"bench {words} --json", **more))
    for row in found["rows"]:
        assert row["gantry_us"] > 0 and row["raw_us"] > 0, row
        sign, want = row["want"].split() if row["want"] != "-" else (">=", "0")
        ratio = row["gantry_us"] / row["raw_us"] if sign == "<=" else row["raw_us"] / row["gantry_us"]
        assert abs(ratio - row["ratio"]) < 1e-9 * ratio, row
        assert row["reached"] == (ratio <= float(want) if sign == "<=" else ratio >= float(want)) or abs(ratio - float(want)) < 0.02, row
    return found


def largest_tree(tasks):
    """Leaves are a power of two, and two of anything are joined."""
    leaves = 1
    while 4 * leaves - 1 <= tasks:
        leaves *= 2
    return 2 * leaves - 1


def metg(command, folder, gpus):
    """Emulated GPUs wait for no time at all, so that how large a task has to be says nothing here."""
    found = json.loads(run(command, folder, gpus, "bench metg --lanes 2 --nodes 12 --json"))
    assert found["backend"] == "cuda" and found["lanes"] == 2 and found["devices"] == gpus and len(found["rows"]) == 3, found
    assert found["tasks"] == 12 // (2 * gpus) * 2 * gpus == found["steps"] * 2 * gpus, found
    for row in found["rows"]:
        assert row["tried"] > 1 and (row["metg_us"] is None or row["metg_us"] > 0 and row["efficiency"] >= 0.5), row
    text = run(command, folder, gpus, "bench metg --nodes 8 --replay graph")
    assert text.startswith(f"metg of {gpus} lists on {gpus} GPU") and text.count("\n") == 1, text


def replays(command, folder, gpus):
    """In all ways to replay; this fake has no resident kernels, so the last falls back, and says so."""
    hop = json.loads(run(command, folder, gpus, "bench hop --nodes 12 --json"))
    assert hop["tasks"] == 12 and hop["devices"] == min(gpus, 2) and len(hop["rows"]) == 3, hop
    for shape in ("chain", "wide", "stencil", "tree", "random"):
        lists = 3 if shape == "chain" else 3 * gpus
        found = json.loads(run(command, folder, gpus, f"bench replay --backend cuda --shape {shape} --lanes 3 --nodes {4 * lists + 1} --json"))
        tasks = {"tree": largest_tree(4 * lists + 1), "random": 4 * lists + 1}.get(shape, 4 * lists)
        assert found["tasks"] == tasks and found["lanes"] == 3 and found["shape"] == shape, found
        assert [row["replay"].split(";")[0].split()[0] for row in found["rows"][:2]] == ["stream", "graph"], found
        assert all(row["us_per_task"] > 0 for row in found["rows"]) and "device" in found["rows"][2]["replay"], found
    metg(command, folder, gpus)
    one = json.loads(run(command, folder, gpus, "bench replay --backend cuda --lanes 2 --replay graph --json"))
    assert len(one["rows"]) == 1 and one["tasks"] == 200, one
    text = run(command, folder, gpus, "bench hop --nodes 4 --replay stream")
    assert text.startswith(f"hop on {min(gpus, 2)} GPU") and "us a hop" in text, text


def bench(command, folder):
    for gpus in (1, 2, 4):
        peer = rows(command, folder, gpus, "peer --bytes 65536")
        assert len(peer["rows"]) == (gpus > 1) and ("skipped" in peer) == (gpus == 1), peer
        assert gpus == 1 or peer["rows"][0]["bytes"] == 64 * 65536
        host = rows(command, folder, gpus, "host --bytes 65536")["rows"]
        assert [r["bytes"] for r in host] == [n * d * w for d in ([1] if gpus == 1 else [1, gpus])
                                              for n in (4096, 65536) for w in (1, 1, 2)], host
        frames = rows(command, folder, gpus, "frames --nodes 8 --bytes 38400")["rows"]
        assert len(frames) == 1 and frames[0]["bytes"] == 2 * 8 * 38400, frames
        for shape in ("chain", "wide", "stencil", "tree", "random"):
            replay = json.loads(run(command, folder, gpus, f"bench replay --backend cuda --shape {shape} --nodes 24 --json"))
            assert replay["nodes"] == (15 if shape == "tree" else 24) and replay["shape"] == shape and re.match("graph(;|$)", replay["replay"]), replay
            assert abs(replay["us_per_node"] / replay["raw_us_per_node"] / replay["ratio"] - 1) < 1e-9, replay
            assert len(rows(command, folder, gpus, f"build --shape {shape} --nodes 24")["rows"]) == 1
        replays(command, folder, gpus)
    kernels = rows(command, folder, 1, "kernels --bytes 16384")["rows"]
    assert STREAMING <= {r["what"] for r in kernels}, kernels
    text = run(command, folder, 2, "bench peer --bytes 65536")
    assert "64 copies of 65536 B" in text and "by hand us" in text, text
    alone = rows(command, folder, 2, "peer --bytes 65536", peer="none")
    assert not alone["rows"] and "no access to each other" in alone["skipped"], alone
    stream = json.loads(run(command, folder, 1, "bench replay --backend cuda --replay stream --nodes 24 --json"))
    assert stream["replay"] == "stream", stream
    run(command, folder, 0, "bench host", code=5)


def collectives(command, folder):
    """GPUs of one kind, as NCCL is measured for; those of the fake differ."""
    nccl = pathlib.Path(folder).parent / "fake_nccl"
    old = pathlib.Path(folder).parent / "absent" / "nccl_version"
    for gpus in (2, 4):
        machine = json.loads(run(command, folder, gpus, "machine --json"))
        for device in machine["devices"]:
            device["kind"] = device["type"]
        with tempfile.TemporaryDirectory() as scratch:
            path = pathlib.Path(scratch) / "m.json"
            path.write_text(json.dumps(machine))
            found = rows(command, folder, gpus, f"collectives --bytes 8192 --machine {path}", libraries=nccl)
            assert [r["what"] for r in found["rows"]] == [f"all_reduce{by}, {gpus} GPUs, 8 KiB" for by in ("", " by two_shot")], found
            assert all(r["bytes"] == 8192 for r in found["rows"]) and "skipped" not in found, found
            assert [r["want"] for r in found["rows"]] == [">= 0.952", ">= 1"], found
            none = rows(command, folder, gpus, f"collectives --machine {path}", libraries=old)
            assert not none["rows"] and none["skipped"].startswith("all: libnccl.so.2 is version "), none
    mixed = rows(command, folder, 2, "collectives", libraries=nccl)
    assert not mixed["rows"] and "of one kind" in mixed["skipped"], mixed
    one = rows(command, folder, 1, "collectives", libraries=nccl)
    assert not one["rows"] and one["skipped"] == "all: there is one GPU", one


def calibrate(command, folder):
    os.environ["FAKE_NVML"] = "switch"
    with tempfile.TemporaryDirectory() as scratch:
        path = pathlib.Path(scratch) / "m.json"
        env = {**os.environ, "GANTRY_MODULES": folder, "LD_LIBRARY_PATH": folder, "FAKE_CUDA_DEVICES": "2", "FAKE_CUDA_MEMORY": "300000"}
        subprocess.run([command, "machine", "calibrate", "--seconds", "0.1", "-o", path], check=True, timeout=100, env=env)
        machine = json.loads(path.read_text())
        assert "580.65.06" in path.read_text()
        shown = json.loads(subprocess.run([command, "machine", path, "--json"], check=True, capture_output=True).stdout)
        assert shown == machine
        printed = subprocess.run([command, "machine", "calibrate", "--seconds", "0.1", "--devices", "1", "--json"], check=True,
                                 capture_output=True, timeout=100, env=env)
        assert [d["id"] for d in json.loads(printed.stdout)["devices"]] == ["gpu0", "cpu"] and not printed.stderr
        many = subprocess.run([command, "machine", "calibrate", "--devices", "9"], capture_output=True, env=env, text=True)
        assert many.returncode and many.stderr.startswith("--devices: "), many


def main(command, folder):
    bench(command, folder)
    collectives(command, folder)
    calibrate(command, folder)
    return 0


sys.exit(main(*sys.argv[1:]))
