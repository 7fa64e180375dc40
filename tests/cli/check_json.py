# SPDX-License-Identifier: Apache-2.0
"""What the command promises to programs: keys and types of every --json, one object on standard output and nothing else,
the same bytes twice, pictures that Graphviz and parsers accept, files that are there only when they were asked for.

check_json.py GANTRY SOURCE [PART OF A NAME]
"""
import html.parser
import json
import math
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

number = (int, float)
text_or_null = (str, type(None))


class Skip(Exception):
    pass


class Command:
    def __init__(self, path, folder, source):
        self.path, self.folder, self.source = os.path.abspath(path), folder, source

    def run(self, *words, data=None, code=0):
        done = subprocess.run([self.path, *map(str, words)], input=data, capture_output=True, timeout=120, cwd=self.folder)
        assert done.returncode == code, f"exit {done.returncode}, not {code}: {done.stderr.decode()}"
        return done.stdout

    def refusal(self, *words):
        return json.loads(self.run(*words, "--json", code=3))["error"]

    def json(self, *words):
        """One object, and nothing before or behind it; silence on standard error."""
        done = subprocess.run([self.path, *map(str, words), "--json"], capture_output=True, timeout=120, cwd=self.folder)
        assert done.returncode == 0, done.stderr.decode()
        assert done.stderr == b"", done.stderr.decode()
        found, end = json.JSONDecoder(object_pairs_hook=no_duplicates).raw_decode(done.stdout.decode())
        assert done.stdout.decode()[end:] == "\n", "something follows the object"
        assert isinstance(found, dict)
        return found

    def graph(self, name):
        return self.source / "graphs" / f"{name}.json"


def no_duplicates(pairs):
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys)), f"a key stands twice in {keys}"
    return dict(pairs)


def shape(value, wanted, at="the object"):
    """wanted: a type or types; {key: wanted}; [wanted of each]; ("map", wanted of each value)."""
    if isinstance(wanted, dict):
        assert isinstance(value, dict), f"{at} is {value!r}"
        missing = set(wanted) - set(value)
        assert not missing, f"{at} lacks {missing}"
        for key, inner in wanted.items():
            shape(value[key], inner, f"{at}.{key}")
    elif isinstance(wanted, list):
        assert isinstance(value, list), f"{at} is {value!r}"
        for i, item in enumerate(value):
            shape(item, wanted[0], f"{at}[{i}]")
    elif isinstance(wanted, tuple) and wanted[0] == "map":
        assert isinstance(value, dict), f"{at} is {value!r}"
        for key, item in value.items():
            shape(item, wanted[1], f"{at}.{key}")
    else:
        fits = isinstance(value, wanted) and (not isinstance(value, bool) or wanted is bool)
        assert fits, f"{at} is {value!r}, not {wanted}"


# ---- keys and types ----

SCHEDULE = {"graph": str, "machine": str, "policy": str, "makespan_us": number, "bound_us": number, "gap": number, "nodes": int,
            "ops": int, "copies": int, "collectives": int, "events": int, "bytes_moved": int, "bytes_needed": int, "recomputed": int,
            "peak_bytes": ("map", int), "spare_bytes": ("map", int),
            "tried": [{"policy": str}], "placement": ("map", str)}
RUN = {"graph": str, "machine": str, "policy": str, "backend": str, "devices": [str], "iterations": int, "counted": int, "predicted_us": number,
       "measured_us": number, "outputs": ("map", {"file": text_or_null, "xxh64": text_or_null}), "replay": str,
       "placement": ("map", str), "checked": bool}


def schedule_json(gantry):
    found = gantry.json("schedule", "tiny.json", "--devices", 2)
    shape(found, SCHEDULE)
    assert found["graph"] == "tiny" and found["machine"] == "host-2" and found["nodes"] == 8
    assert set(found["placement"]) == {f"{k}[{i}]" for k in ("saxpy", "sum") for i in range(4)}
    assert set(found["placement"].values()) <= {"dev0", "dev1"}
    assert set(found["peak_bytes"]) == set(found["spare_bytes"]) == {"host", "mem0", "mem1"}
    assert 0 < found["bound_us"] <= found["makespan_us"]
    assert abs(found["gap"] - (found["makespan_us"] / found["bound_us"] - 1)) < 1e-9
    # x and y in, y and total out, and one accumulator at least from device to device
    assert found["bytes_moved"] >= 3 * 256 + 4
    assert found["bytes_needed"] == 3 * 256 + 4


def schedule_json_tried(gantry):
    """Every policy is there, run or skipped with a reason; the winner's makespan is the schedule's, and no other is less."""
    found = gantry.json("schedule", gantry.graph("reference/topcuoglu2002"))
    tried = {row["policy"]: row for row in found["tried"] if "devices" not in row}
    listed = {row["policy"] for row in gantry.json("compare", gantry.graph("reference/topcuoglu2002"))["policies"]}
    assert set(tried) >= listed, listed - set(tried)
    assert len(tried) == sum("devices" not in row for row in found["tried"])
    for row in found["tried"]:
        shape(row, {"policy": str, "skipped": str} if "skipped" in row else {"policy": str, "makespan_us": number})
    assert min(row["makespan_us"] for row in found["tried"] if "makespan_us" in row) == found["makespan_us"] == 73
    assert tried[found["policy"]]["makespan_us"] == 73 and tried["heft"]["makespan_us"] == 80
    assert tried["split"]["skipped"] and tried["search"]["evaluations"] > 0
    alone = gantry.json("schedule", gantry.graph("reference/topcuoglu2002"), "--policy", "cpop")["tried"]
    assert [row["policy"] for row in alone] == ["cpop"], alone


def period_json(gantry):
    """Keys that only overlapping starts have; the result is that of the last start all the same."""
    words = [gantry.graph("pipeline3"), "--devices", 3, "--param", "batches=1", "--param", "stage_us=300"]
    found = gantry.json("schedule", *words, "--objective", "period")
    shape(found, {**SCHEDULE, "period_us": number, "period_bound_us": number, "period_gap": number, "in_flight": int})
    assert 0 < found["period_bound_us"] <= found["period_us"] * 1.000001 and found["in_flight"] > 1
    assert abs(found["period_gap"] - (found["period_us"] / found["period_bound_us"] - 1)) < 1e-9
    assert gantry.json("schedule", *words, "--objective", "period", "--in-flight", 2)["in_flight"] == 2
    assert "period_us" not in gantry.json("schedule", *words) and "in_flight" not in gantry.json("schedule", *words)
    ran = gantry.json("run", *words, "--objective", "period", "--iterations", 9)
    shape(ran, {**RUN, "throughput_us": number})
    alone = gantry.json("run", *words, "--iterations", 9)
    assert "throughput_us" not in alone and alone["apart_us"] > 0 and "apart_us" not in ran and ran["outputs"] == alone["outputs"] and ran["iterations"] == 9


def schedule_json_explain(gantry):
    found = gantry.json("schedule", "tiny.json", "--devices", 2, "--explain", "sum[3]")
    shape(found, {**SCHEDULE, "explain": str})
    assert "sum[3]" in found["explain"]


def schedule_published(gantry):
    """Makespans of the papers: Topcuoglu 2002, Arabnejad 2014, Bittencourt 2010; Daoud 2008 as worked by hand."""
    for name, makespan in {"topcuoglu2002": 80, "peft2014": 133, "bittencourt2010": 98, "daoud": 65.5}.items():
        found = gantry.json("schedule", gantry.graph(f"reference/{name}"), "--policy", "heft")
        shape(found, SCHEDULE)
        assert found["makespan_us"] == makespan, (name, found["makespan_us"])


def run_json(gantry):
    found = gantry.json("run", "tiny.json", "--devices", 2, "--iterations", 3)
    shape(found, RUN)
    assert found["devices"] == ["dev0", "dev1"] and found["iterations"] == 3 and found["backend"] == "host"
    assert set(found["outputs"]) == {"y", "total"} and not found["checked"]
    # xxh64, seed 0, of the four bytes of the float 4096.0
    assert found["outputs"]["total"] == {"file": None, "xxh64": xxh64(struct.pack("<f", 4096))}
    y = struct.pack("<64f", *(2.0 * i + 1 for i in range(64)))
    assert found["outputs"]["y"]["xxh64"] == xxh64(y)


def run_json_saves(gantry):
    found = gantry.json("run", "tiny.json", "--devices", 2, "--output", "total=t.raw", "--check")
    assert found["outputs"]["total"]["file"] == "t.raw" and found["outputs"]["y"]["file"] is None and found["checked"]
    assert (gantry.folder / "t.raw").read_bytes() == struct.pack("<f", 4096)


def run_json_compare(gantry):
    op = {"op": str, "kind": str, "predicted_us": number, "measured_us": number}
    found = gantry.json("run", "tiny.json", "--devices", 2, "--compare", "--explain", "sum[0]")
    times = {"predicted_us": number, "measured_us": number}
    shape(found, {**RUN, "explain": str, "compare": {"measured_over_predicted": number, "largest": [op], "makespan": times,
                  "classes": [{"kind": str, "kernel": text_or_null, "dtype": text_or_null, "ops": int, **times}],
                  "kinds": ("map", {"ops": int, **times})}})
    ops = gantry.json("schedule", "tiny.json", "--devices", 2)["ops"]
    assert sum(kind["ops"] for kind in found["compare"]["kinds"].values()) == ops
    assert found["compare"]["kinds"]["launch"]["ops"] == 8
    same_sums(found["compare"])
    assert found["compare"]["makespan"] == {key: found[key] for key in ("predicted_us", "measured_us")}


def run_json_loops(gantry):
    """How far a loop went, and how far the prediction goes: all steps, whatever ends them."""
    words = ["run", gantry.graph("jacobi_until"), "--devices", 1, "--param", "n=8"]
    found = gantry.json(*words, "--param", "steps=4000")
    assert 0 < found["loop_iterations"] < found["predicted_loop_iterations"] == 4000 and found["loop_iterations"] % 50 == 0, found
    short = gantry.json(*words, "--param", "steps=100")
    assert short["loop_iterations"] == short["predicted_loop_iterations"] == 100
    assert 0.5 < found["predicted_us"] / short["predicted_us"] * 100 / 4000 < 2
    assert "loop_iterations" not in gantry.json("run", "tiny.json", "--devices", 1)


# Each start adds one.
COUNT = {"gantry": 1, "name": "count", "buffers": {
    "one": {"dtype": "i32", "shape": [1], "init": 1}, "n": {"dtype": "i32", "shape": [1], "class": "state", "init": 0, "output": True}},
    "nodes": [{"id": "more", "kernel": "saxpy", "args": {"a": 1, "x": "one", "y": "n"}}]}


def run_json_starts(gantry):
    """What is looked at op by op has a warm-up and three starts that count. Those starts happen: what is added up tells."""
    (gantry.folder / "count.json").write_text(json.dumps(COUNT))

    def starts(*words, left):
        found = gantry.json("run", "count.json", "--devices", 1, "--output", "n=n.raw", *words)
        value, = struct.unpack("<i", (gantry.folder / "n.raw").read_bytes())
        assert value == found["iterations"] == found["counted"] + left, (words, found["iterations"], found["counted"], value)
        return found["iterations"]

    assert starts(left=0) == 1 and starts("--iterations", 2, left=1) == 2
    for words in (["--compare"], ["--calibrate", "out.json"]):
        assert starts(*words, left=1) == 4 and starts(*words, "--iterations", 2, left=1) == 4
        assert starts(*words, "--iterations", 6, left=1) == 6
    assert starts("--compare", "--backend", "host", "--iterations", 4, left=1) == 4
    assert gantry.json("run", "count.json", "--devices", 1, "--backend", "sim", "--compare")["iterations"] == 1


def same_sums(compare):
    """A class says what one op takes on average; the worst is the one that is furthest off in all."""
    classes = compare["classes"]
    assert {(c["kernel"], c["dtype"]): c["ops"] for c in classes if c["kind"] == "launch"} == {
        ("saxpy", "f32"): 4, ("reduce_sum", "f32"): 4}
    off = [abs(c["measured_us"] - c["predicted_us"]) * c["ops"] for c in classes]
    assert off == sorted(off, reverse=True), off
    for kind, total in compare["kinds"].items():
        mine = [c for c in classes if c["kind"] == kind]
        assert sum(c["ops"] for c in mine) == total["ops"]
        for key in ("predicted_us", "measured_us"):
            assert abs(sum(c[key] * c["ops"] for c in mine) - total[key]) < 1e-6 * total[key] + 1e-6, (kind, key)


BLUR = ["--param", "n=8", "--param", "height=360", "--param", "width=320", "--backend", "host"]


def off_by(factor, text):
    """host-2, and every speed that it declares so many times as high."""
    machine = json.loads(text)
    for device in machine["devices"]:
        device["gflops"] = {dtype: speed * factor for dtype, speed in device["gflops"].items()}
        device["bandwidth_gbs"] *= factor
    machine["resources"] = {name: rate * factor for name, rate in machine["resources"].items()}
    for route in machine["routes"]:
        route["bandwidth_gbs"] *= factor
    return machine


def run_calibrates(gantry):
    """What was measured is predicted from then on. On a busy computer a start takes longer than its ops, which hides it where
    a file was too slow, and adds to both sides where it was too fast: there what is predicted has to come closer by a factor."""
    host = (gantry.source / "graphs" / "machines" / "host-2.json").read_text()
    for factor in (0.1, 100):
        (gantry.folder / "off.json").write_text(json.dumps(off_by(factor, host)))
        first = gantry.json("run", gantry.graph("image_blur"), *BLUR, "--machine", "off.json", "--iterations", 6, "--compare",
                            "--calibrate", "out.json")
        assert first["calibrated"] == "out.json"
        machine = json.loads((gantry.folder / "out.json").read_text())
        table, exact = machine["kernels"]
        assert (table["kernel"], table["dtype"], table["kind"]) == ("gaussian_blur", "u8", "cpu") and "case" not in table
        assert machine["calibration"]["kernels"]["samples"] == 5 * 8, machine["calibration"]
        assert exact == {**table, "case": exact["case"]} and exact["case"].endswith(" sigma=2"), exact
        assert machine["source"].startswith("measured: ")
        told = gantry.json("schedule", gantry.graph("image_blur"), *BLUR[:-2], "--machine", "out.json", "--explain", "blur[0]")
        assert f"measured for these arguments: gaussian_blur (u8) of {exact['case']} on cpu" in told["explain"]
        told = gantry.json("schedule", gantry.graph("image_blur"), "--machine", "out.json", "--explain", "blur[0]")
        assert "measured: the machine's table of gaussian_blur (u8) on cpu, at " in told["explain"]
        before, after = math.log(first["compare"]["measured_over_predicted"]), []
        while not after or (factor > 1 and min(after) > before - 1.2 and len(after) < 6):
            again = gantry.json("run", gantry.graph("image_blur"), *BLUR, "--machine", "out.json", "--iterations", 6, "--compare")
            after.append(abs(math.log(again["compare"]["measured_over_predicted"])))
            blur, = (c for c in again["compare"]["classes"] if c["kernel"])
            assert abs(blur["predicted_us"] / table["points"][-1][1] - 1) < 0.01, (blur, table)
        assert factor < 1 or min(after) < before - 1.2, (before, after)


NAP = """#include <gantry/kernel.h>
#include <time.h>
gantry_status nap(const gantry_launch *l)
{
    const gantry_arg *x = gantry_launch_arg(l, 0);
    long ms = x->rows > 100 ? 240 : 80; /* a long thin array takes longer than a square one */
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_nsec += ms * 1000000;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL)) {}
    return GANTRY_OK;
}
"""
NAPS = {"gantry": 1, "kernels": {"nap": {"host": "nap.c", "args": [{"name": "x", "access": "readwrite"}], "cost": {"flops": "x.size"}}},
        "buffers": {"square": {"dtype": "f32", "shape": [32, 32], "init": 0, "output": True}, "thin": {"dtype": "f32", "shape": [256, 4], "init": 0, "output": True}},
        "nodes": [{"id": name, "kernel": "nap", "args": {"x": name}} for name in ("square", "thin")]}


def run_calibrates_shapes(gantry):
    """Two shapes of as many flops take what each takes. Other processes make naps longer, never shorter."""
    (gantry.folder / "nap.c").write_text(NAP)
    (gantry.folder / "naps.json").write_text(json.dumps(NAPS))
    words = ["naps.json", "--allow-code", "--devices", 1]
    for attempt in range(5):
        first = gantry.json("run", *words, "--backend", "host", "--calibrate", "nap-out.json")
        words[-2:] = ["--machine", "nap-out.json"]
        again = gantry.json("run", *words, "--backend", "host", "--compare")
        text = gantry.run("schedule", *words, "-o", "-")
        schedule = json.loads(text)
        us = {op["node"]: op["ps"][0] / 1e6 for op in schedule["ops"] if op["kind"] == "launch"}
        if abs(us["square"] / 80e3 - 1) < 0.1 and abs(us["thin"] / 240e3 - 1) < 0.1 and abs(again["compare"]["measured_over_predicted"] - 1) < 0.1:
            break
    else:
        raise AssertionError((us, first["measured_us"], again["compare"]))
    assert gantry.run("schedule", *words, "-o", "-") == text


def run_calibrates_again(gantry):
    """A file that is calibrated once more keeps its form; what was not carried out keeps its times."""
    words = ["run", "tiny.json", "--backend", "host", "--iterations", 4]
    gantry.json(*words, "--devices", 2, "--calibrate", "one.json")
    gantry.json("run", gantry.graph("image_blur"), *BLUR, "--machine", "one.json", "--calibrate", "two.json")
    one, two = (json.loads((gantry.folder / name).read_text()) for name in ("one.json", "two.json"))
    assert [(t["kernel"], "case" in t) for t in one["kernels"]] == [("reduce_sum", False), ("reduce_sum", True), ("saxpy", False), ("saxpy", True)]
    assert two["kernels"][:4] == one["kernels"] and [t["kernel"] for t in two["kernels"][4:]] == ["gaussian_blur"] * 2
    assert gantry.run("machine", "two.json", "--json").decode() == (gantry.folder / "two.json").read_text()
    assert one["source"] == two["source"]


def run_json_sim(gantry):
    found = gantry.json("run", "tiny.json", "--devices", 2, "--backend", "sim")
    shape(found, RUN)
    assert found["outputs"]["y"] == {"file": None, "xxh64": None}
    assert abs(found["measured_us"] - found["predicted_us"]) < 0.01


def run_schedule_file(gantry):
    gantry.run("schedule", "tiny.json", "--machine", gantry.graph("machines/host-4"), "-o", "s.json", "--policy", "round-robin")
    found = gantry.json("run", "tiny.json", "--schedule", "s.json")
    assert found["policy"] == "round-robin" and found["machine"] == "host-4" and len(set(found["placement"].values())) == 4


def state_lives_from_start_to_start(gantry):
    (gantry.folder / "count.json").write_text(json.dumps(COUNT))
    gantry.run("run", "count.json", "--devices", 1, "--iterations", 5, "--output", "n=n.raw")
    assert (gantry.folder / "n.raw").read_bytes() == struct.pack("<i", 5)


def check_json(gantry):
    gantry.run("schedule", "tiny.json", "--devices", 2, "-o", "s.json")
    found = gantry.json("check", "tiny.json", "s.json")
    shape(found, {"valid": bool, "nodes": int, "ops": int, "copies": int, "collectives": int, "events": int})
    summary = gantry.json("schedule", "tiny.json", "--devices", 2)
    assert found.pop("valid") and found == {key: summary[key] for key in found}


def check_by_pipe(gantry):
    schedule = gantry.run("schedule", "tiny.json", "--devices", 2, "-o", "-")
    assert b"right for tiny.json" in gantry.run("check", "tiny.json", "-", data=schedule)


def check_finds_damage(gantry):
    """A copy that waits for nothing any more: without its rows of the sync table it races with the op before it."""
    gantry.run("schedule", "tiny.json", "--devices", 2, "-o", "s.json")
    schedule = json.loads((gantry.folder / "s.json").read_text())
    assert schedule["sync"], "the schedule has no sync table to damage"
    schedule["sync"] = [row for row in schedule["sync"] if "lane" in json.dumps(row)]
    (gantry.folder / "broken.json").write_text(json.dumps(schedule))
    done = subprocess.run([gantry.path, "check", "tiny.json", "broken.json", "--json"], capture_output=True, cwd=gantry.folder)
    assert done.returncode == 3 and b"race" in done.stderr, done
    found = json.loads(done.stdout)
    shape(found, {"valid": bool, "problem": str})
    assert not found["valid"] and "race" in found["problem"]


def check_refuses_another_graph_and_machine(gantry):
    gantry.run("schedule", "tiny.json", "--devices", 2, "-o", "s.json")
    gantry.run("check", "tiny.json", "s.json", "--devices", 2)
    gantry.run("check", "tiny.json", "s.json", "--devices", 3, code=3)
    gantry.run("check", "tiny.json", "s.json", "--param", "n=128", code=3)
    gantry.run("run", "tiny.json", "--schedule", "s.json", "--param", "n=128", code=3)
    other = ["tiny.json", "--schedule", "s.json", "--param", "n=128"]
    for words in ["check", "tiny.json", "s.json", "--param", "n=128"], ["run", *other], ["what-if", *other, "--move", "a=dev0"]:
        error = gantry.refusal(*words)
        assert error["file"] == "s.json" and error["where"] == "/graph_hash" and "schedule again" in error["remedy"], error
    error = gantry.refusal("check", "tiny.json", "s.json", "--devices", 3)
    assert error["what"].startswith("s.json was made for another machine") and "leave --machine" in error["remedy"], error


def compare_json(gantry):
    found = gantry.json("compare", "tiny.json", "--devices", 2)
    shape(found, {"graph": str, "machine": str, "policies": [{"policy": str, "makespan_us": number, "bound_us": number,
                  "gap": number, "bytes_moved": int, "peak_bytes": int}]})
    rows = {row["policy"]: row for row in found["policies"]}
    assert {"heft", "round-robin", "single"} <= set(rows)
    alone = gantry.json("schedule", "tiny.json", "--devices", 2, "--policy", "round-robin")
    assert rows["round-robin"]["makespan_us"] == alone["makespan_us"]


SCALE = {"devices": int, "used": int, "makespan_us": number, "gap": number, "speedup": number, "efficiency": number, "peak_bytes": int,
         "bytes_moved": int, "limit": str}


def scale_json(gantry):
    """A row is what `schedule` says of so many devices; speed-ups follow from the times."""
    machine = ["--machine", gantry.graph("machines/h200-8")]
    found = gantry.json("scale", gantry.graph("mlp_step"), *machine, "--devices", "1,2,8", "--svg", "scale.svg")
    shape(found, {"graph": str, "machine": str, "rows": [SCALE], "advice": str})
    assert [row["devices"] for row in found["rows"]] == [1, 2, 8]
    first = found["rows"][0]["makespan_us"]
    for row in found["rows"]:
        alone = gantry.json("schedule", gantry.graph("mlp_step"), *machine, "--devices", row["devices"])
        assert row["bytes_moved"] == alone["bytes_moved"]
        assert abs(row["makespan_us"] - alone["makespan_us"]) < 1e-9 and abs(row["gap"] - alone["gap"]) < 1e-9
        assert row["peak_bytes"] == max(alone["peak_bytes"].values()) and row["used"] == sum(us > 0 for us in alone["busy_us"].values())
        assert abs(row["speedup"] - first / row["makespan_us"]) < 1e-9 and abs(row["efficiency"] - row["speedup"] / row["devices"]) < 1e-9
    assert found["rows"][2]["makespan_us"] <= found["rows"][1]["makespan_us"] * 1.001
    gains = found["rows"][1]["makespan_us"] > found["rows"][2]["makespan_us"] * 1.05
    assert found["advice"].startswith("take 8 for the least time" if gains else "take 2 devices: "), found["advice"]
    root = xml.etree.ElementTree.parse(gantry.folder / "scale.svg").getroot()
    assert root.tag.endswith("svg") and sum(e.tag.endswith("circle") for e in root.iter()) == 3


def scale_json_weak(gantry):
    """The param grows with the devices; an efficiency is the time of one device over that of all."""
    found = gantry.json("scale", gantry.graph("reduce_sum"), "--machine", gantry.graph("machines/h200-8"), "--devices", "1..3", "--weak", "n",
                        "--param", "n=1000000", "--param", "parts=6")
    shape(found, {"graph": str, "machine": str, "weak": str, "rows": [{**SCALE, "value": int}], "advice": str})
    assert [row["value"] for row in found["rows"]] == [1000000, 2000000, 3000000]
    alone = gantry.json("schedule", gantry.graph("reduce_sum"), "--machine", gantry.graph("machines/h200-8"), "--devices", 3, "--param",
                        "n=3000000", "--param", "parts=6")
    first, last = found["rows"][0], found["rows"][2]
    assert abs(last["makespan_us"] - alone["makespan_us"]) < 1e-9
    assert abs(last["efficiency"] - first["makespan_us"] / last["makespan_us"]) < 1e-9 and abs(last["speedup"] - 3 * last["efficiency"]) < 1e-9


def devices_in_graphs(gantry):
    """A graph whose parts are as many as the devices: each command counts those of its machine, a schedule has its own, and the second
    checker agrees."""
    path = gantry.folder / "by_devices.json"
    path.write_text(json.dumps({
        "gantry": 1, "name": "by_devices", "params": {"parts": "devices"},
        "buffers": {"x": {"dtype": "i32", "shape": ["4 * parts"], "split": "parts", "init": "iota"},
                    "y": {"dtype": "i32", "shape": ["4 * parts"], "split": "parts", "output": True}},
        "nodes": [{"id": "twice[i]", "for": {"i": "parts"}, "on": "i % devices", "kernel": "scale", "args": {"a": 2, "x": "x[i]", "y": "y[i]"}}]}))
    for count in (1, 3):
        gantry.run("run", path, "--devices", count, "--output", f"y=y{count}.raw")
        y = (gantry.folder / f"y{count}.raw").read_bytes()
        assert struct.unpack(f"<{4 * count}i", y) == tuple(range(0, 8 * count, 2))
    machine = ["--machine", gantry.graph("machines/h200-8")]
    for words, workers in ((machine, 8), ([*machine, "--devices", "id:gpu1,gpu3"], 2)):
        gantry.run("schedule", path, *words, "-o", "by_devices.s.json")
        assert gantry.json("check", path, "by_devices.s.json")["nodes"] == workers
        assert gantry.json("run", path, "--schedule", "by_devices.s.json", "--backend", "sim")["iterations"] == 1
        again = subprocess.run([gantry.source / "tools" / "recheck", path, gantry.folder / "by_devices.s.json"], capture_output=True)
        assert again.returncode == 0, again.stderr.decode()
    rows = gantry.json("scale", path, *machine, "--devices", "1,4")["rows"]
    for row in rows:
        alone = gantry.json("schedule", path, *machine, "--devices", row["devices"])
        assert abs(row["makespan_us"] - alone["makespan_us"]) < 1e-9
    done = subprocess.run([gantry.path, "dot", "-"], input=path.read_bytes(), capture_output=True)
    assert done.returncode and b"how many there are is not known" in done.stderr


def machine_json(gantry):
    found = gantry.json("machine", gantry.graph("machines/dgx1-v100"))
    shape(found, {"gantry_machine": int, "name": str, "memories": list, "devices": list, "resources": (dict, list), "routes": list})
    assert len(found["devices"]) == 9
    again = subprocess.run([gantry.path, "machine", "-", "--json"], input=json.dumps(found).encode(), capture_output=True)
    assert again.returncode == 0, again.stderr.decode()
    assert again.stdout == gantry.run("machine", gantry.graph("machines/dgx1-v100"), "--json")


def machine_every_file(gantry):
    for path in sorted((gantry.source / "graphs" / "machines").glob("*.json")):
        assert gantry.json("machine", path)["name"] == path.stem
        assert path.stem.encode() in gantry.run("machine", path)


def machine_of_this_computer(gantry):
    shape(gantry.json("machine"), {"gantry_machine": int, "memories": list, "devices": list})


def kernels_json(gantry):
    found = gantry.json("kernels")
    shape(found, {"kernels": [{"name": str, "summary": str, "args": [{"name": str, "kind": str, "summary": text_or_null}],
                               "flops": text_or_null, "bytes": text_or_null, "scratch": text_or_null, "variadic": bool}]})
    names = [kernel["name"] for kernel in found["kernels"]]
    wanted = """copy scale axpby saxpy add mul relu relu_grad gaussian_blur sobel filter2d resize histogram jacobi2d reduce_sum reduce_max dot
        scan sort argsort sort_pairs top_k transpose gemm gemm_batched gemm_bias bias_add layernorm layernorm_grad rmsnorm rmsnorm_grad softmax softmax_grad attention attention_cached attention_grad conv2d conv2d_grad_x conv2d_grad_w rope embedding embedding_grad adamw dropout softmax_xent softmax_xent_grad sgd_update potrf trsm syrk getrf getrs qr spmv_csr spmm_csr fft busy fail"""
    assert set(wanted.split()) <= set(names), set(wanted.split()) - set(names)
    assert names == sorted(names)
    gemm, = gantry.json("kernels", "gemm")["kernels"]
    c, = (arg for arg in gemm["args"] if arg["name"] == "c")
    shape(c, {"access": [str], "dtype": [str]})
    assert {"write", "readwrite", "sum"} <= set(c["access"]) and "f32" in c["dtype"]


def dot_json(gantry):
    found = gantry.json("dot", "tiny.json")
    assert found["dot"].encode() == gantry.run("dot", "tiny.json")


def bench_schedule_json(gantry):
    found = gantry.json("bench", "schedule", "--nodes", 2000, "--devices", 4, "--effort", 0)
    shape(found, {"nodes": int, "devices": int, "us_per_node": number, "peak_bytes_per_node": number})
    assert found["nodes"] == 2000 and found["devices"] == 4 and found["us_per_node"] > 0


def bench_replay_json(gantry):
    for name in ("chain", "wide", "stencil"):
        found = gantry.json("bench", "replay", "--backend", "host", "--shape", name, "--nodes", 200)
        shape(found, {"backend": str, "shape": str, "nodes": int, "devices": int, "us_per_node": number})
        assert found["shape"] == name and found["nodes"] == 200 and found["us_per_node"] > 0
    assert gantry.json("bench", "replay", "--shape", "wide", "--nodes", 10, "--devices", 4)["nodes"] == 8


def bench_collectives_json(gantry):
    """Bus bandwidth by the factors of nccl-tests; what is chosen is the quickest, where times that were not measured count twice beside those
    that were; and no link carries more than it can."""
    others = 7 / 8
    factors = {"all_reduce": 2 * others, "reduce": 1, "broadcast": 1, "scatter": others, "gather": others, "all_gather": others,
               "reduce_scatter": others, "all_to_all": others}
    for machine in ("h200-8", "hgx-h200-8", "dgx1-v100"):
        found = gantry.json("bench", "collectives", "--backend", "sim", "--machine", gantry.graph(f"machines/{machine}"), "--devices", 8, "--bytes", 2**20)
        shape(found, {"bench": str, "machine": str, "ranks": int, "rows": list})
        assert found["ranks"] == 8 and [(row["collective"], row["bytes"]) for row in found["rows"]] == [
            (kind, 4096 * 16**k) for kind in factors for k in range(3)]
        for row in found["rows"]:
            us = {name: time for name, time in row["us"].items() if time is not None}
            doubtful = {name: time if not row["measured"] or name in row["measured"] else 2 * time for name, time in us.items()}
            assert row["chosen_us"] == us[row["chosen"]] and doubtful[row["chosen"]] == min(doubtful.values()), row
            assert math.isclose(row["gbs"], row["bytes"] / row["chosen_us"] / 1e3, rel_tol=1e-9)
            assert math.isclose(row["bus_gbs"], row["gbs"] * factors[row["collective"]], rel_tol=1e-9)
            assert row["bus_gbs"] < 400  # a port of an H200, and less than that of a V100
        assert any(row["measured"] for row in found["rows"]) == (machine != "dgx1-v100")
        assert all(row["us"]["copy_engine"] is None for row in found["rows"] if "reduce" in row["collective"])


# ---- the same bytes twice ----

def repeatable(gantry):
    for words in (["tiny.json", "--devices", 3], [gantry.graph("cholesky"), "--machine", gantry.graph("machines/dgx1-v100")],
                  [gantry.graph("jacobi"), "--devices", 4], [gantry.graph("mlp_step"), "--devices", 4, "--policy", "round-robin"]):
        one, two = (gantry.run("schedule", *words, "-o", "-") for _ in range(2))
        assert one == two, f"two schedules of {words[0]} differ"
        gantry.run("schedule", *words, "-o", "s.json")
        assert (gantry.folder / "s.json").read_bytes() == one


def repeatable_results(gantry):
    for name in ("jacobi", "mlp_step"):
        one, two = (gantry.json("run", gantry.graph(name), "--devices", 3)["outputs"] for _ in range(2))
        assert one == two, f"two runs of {name} differ"


# ---- pictures ----

def graphviz(gantry):
    if not shutil.which("dot"):
        raise Skip("no Graphviz (graphviz)")
    gantry.run("schedule", gantry.graph("cholesky"), "--param", "nt=4", "--machine", gantry.graph("machines/dgx1-v100"), "-o", "s.json")
    for words in (["tiny.json"], ["tiny.json", "--devices", 2], ["s.json"], [gantry.graph("mlp_step")],
                  [gantry.graph("mlp_step"), "--devices", 2], [gantry.graph("jacobi"), "--param", "steps=3", "--devices", 2]):
        drawing = gantry.run("dot", *words)
        done = subprocess.run(["dot", "-Tsvg"], input=drawing, capture_output=True, timeout=120)
        assert done.returncode == 0 and done.stderr == b"", f"Graphviz on {words}: {done.stderr.decode()}"
        xml.etree.ElementTree.fromstring(done.stdout)


def dot_of_standard_input(gantry):
    text = (gantry.folder / "tiny.json").read_bytes()
    assert gantry.run("dot", "-", data=text) == gantry.run("dot", "tiny.json")
    schedule = gantry.run("schedule", "tiny.json", "--devices", 2, "-o", "-")
    placed = gantry.run("dot", "-", data=schedule)
    assert placed == gantry.run("dot", "tiny.json", "--devices", 2) == gantry.run("schedule", "tiny.json", "--devices", 2, "--dot", "-")


def counters(events, process=None):
    return sorted((e["name"], e["ts"], e["args"]["bytes"]) for e in events if e["ph"] == "C" and process in (None, e["pid"]))


def arrows_and_counters(predicted, run):
    """A run has those of the schedule in process 1. In process 0 every arrow leads from an op to one that began when it had ended."""
    assert counters(run, 1) == counters(predicted) and counters(run, 0)
    assert {name for name, _, _ in counters(run, 0)} == {name for name, _, _ in counters(predicted)}
    for process in (0, 1):
        begins = {(e["tid"], e["ts"]): e["ts"] + e["dur"] for e in run if e["ph"] == "X" and e["pid"] == process}
        ends = {e["id"]: e for e in run if e["ph"] == "f" and e["pid"] == process}
        tails = [e for e in run if e["ph"] == "s" and e["pid"] == process]
        assert tails and len(tails) == len(ends) == len([e for e in predicted if e["ph"] == "s"])
        for tail in tails:
            head = ends[tail["id"]]
            assert (head["tid"], head["ts"]) in begins and head["bp"] == "e" and (head["name"], head["cat"]) == (tail["name"], tail["cat"])
            assert begins[tail["tid"], tail["ts"]] <= head["ts"] + 0.001, (tail, head)


def drawings(gantry):
    gantry.run("schedule", "tiny.json", "--devices", 2, "--svg", "s.svg", "--html", "s.html", "--trace", "p.json")
    gantry.run("run", "tiny.json", "--devices", 2, "--trace", "m.json")
    root = xml.etree.ElementTree.parse(gantry.folder / "s.svg").getroot()
    assert root.tag.endswith("svg")
    html.parser.HTMLParser().feed((gantry.folder / "s.html").read_text())
    for name in ("p.json", "m.json"):
        events = json.loads((gantry.folder / name).read_text())["traceEvents"]
        slices = [event for event in events if event["ph"] == "X"]
        assert {"saxpy[0]", "sum[3]"} <= {event["name"] for event in slices}
        assert all(event["dur"] >= 0 and event["ts"] >= 0 for event in slices)
    arrows_and_counters(*(json.loads((gantry.folder / name).read_text())["traceEvents"] for name in ("p.json", "m.json")))


def pictures_leave_nothing_half_written(gantry):
    (gantry.folder / "s.svg").write_text("old")
    os.chmod(gantry.folder / "s.svg", 0o640)
    gantry.run("schedule", "tiny.json", "--devices", 2, "--svg", "s.svg")
    assert (gantry.folder / "s.svg").stat().st_mode & 0o777 == 0o640
    assert not [path for path in gantry.folder.iterdir() if path.name.startswith("s.svg.")]


# ---- xxh64, from its specification (github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md), for the hashes above ----

P1, P2, P3, P4, P5 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
MASK = (1 << 64) - 1


def rotate(x, n):
    return (x << n | x >> (64 - n)) & MASK


def xxh64_round(acc, lane):
    return rotate((acc + lane * P2) & MASK, 31) * P1 & MASK


def xxh64(data):
    at = 0
    if len(data) >= 32:
        acc = [(P1 + P2) & MASK, P2, 0, -P1 & MASK]
        while at + 32 <= len(data):
            acc = [xxh64_round(a, lane) for a, lane in zip(acc, struct.unpack_from("<4Q", data, at))]
            at += 32
        h = sum(rotate(a, n) for a, n in zip(acc, (1, 7, 12, 18))) & MASK
        for a in acc:
            h = ((h ^ xxh64_round(0, a)) * P1 + P4) & MASK
    else:
        h = P5
    h = (h + len(data)) & MASK
    while at + 8 <= len(data):
        h = (rotate(h ^ xxh64_round(0, struct.unpack_from("<Q", data, at)[0]), 27) * P1 + P4) & MASK
        at += 8
    if at + 4 <= len(data):
        h = (rotate(h ^ struct.unpack_from("<I", data, at)[0] * P1 & MASK, 23) * P2 + P3) & MASK
        at += 4
    for byte in data[at:]:
        h = rotate(h ^ byte * P5 & MASK, 11) * P1 & MASK
    for shift, factor in ((33, P2), (29, P3)):
        h = (h ^ h >> shift) * factor & MASK
    return f"{h ^ h >> 32:016x}"


TESTS = [devices_in_graphs, schedule_json, schedule_json_explain, period_json, schedule_published, run_json, run_json_saves, run_json_compare, run_json_starts, run_json_loops, run_calibrates, run_calibrates_shapes, run_calibrates_again, run_json_sim,
         run_schedule_file, state_lives_from_start_to_start, check_json, check_by_pipe, check_finds_damage,
         check_refuses_another_graph_and_machine, compare_json, scale_json, scale_json_weak, machine_json, machine_every_file, machine_of_this_computer,
         kernels_json, dot_json, bench_schedule_json, bench_replay_json, bench_collectives_json, repeatable, repeatable_results, graphviz,
         dot_of_standard_input, drawings, pictures_leave_nothing_half_written]


def main(command, source, part=""):
    assert xxh64(b"") == "ef46db3751d8e999" and xxh64(b"a") == "d24ec4f1a98c6e5b"  # published
    here, failed, skipped = pathlib.Path(__file__).resolve().parent, 0, 0
    tests = [test for test in TESTS if part in test.__name__]
    for test in tests:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(here / "graphs" / "tiny.json", folder)
            try:
                test(Command(command, pathlib.Path(folder), pathlib.Path(source).resolve()))
            except Skip as reason:
                skipped += 1
                print(f"skipped {test.__name__}: {reason}")
            except Exception as error:  # one broken promise hides no other
                failed += 1
                print(f"FAILED {test.__name__}: {type(error).__name__} {error}")
    print(f"{len(tests) - failed - skipped} passed, {skipped} skipped, {failed} failed")
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
