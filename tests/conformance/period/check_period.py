#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pipelines reach what is known to be possible.

check_period.py GANTRY GRAPHS

batches   m batches through three stages on three devices: 3m / (m + 2) times as fast as on one, within 3 % predicted and
          10 % measured on the host back end, whose stages sleep.
starts    the same as m starts of one batch that overlap (--objective period): one stage time from one to the next.
1F1B      forward and backward of m micro-batches through p stages. No order takes less than (m + p - 1)(tf + tb): the
          last stage cannot begin before p - 1 forwards, has m forwards and backwards to do, and p - 1 backwards follow
          (D. Narayanan et al., Efficient Large-Scale Language Model Training on GPU Clusters Using Megatron-LM, SC 2021,
          section 2.2: a bubble of (p - 1)(tf + tb)). It has to be reached where a device holds the activations of p
          micro-batches and those under way, far fewer than there are; placed by ranks, all forwards first, that does
          not fit. Peaks, and how many micro-batches are under way, are counted from the schedule file.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

COMMAND, GRAPHS = sys.argv[1], pathlib.Path(sys.argv[2])
STAGE_US = 2000


def gantry(*words, code=0):
    done = subprocess.run([COMMAND, *map(str, words)], capture_output=True, text=True)
    assert done.returncode == code, f"{' '.join(map(str, words))}: exit {done.returncode}: {done.stderr}"
    return json.loads(done.stdout) if code == 0 and "--json" in words else done.stderr


def params(**values):
    return [word for key, value in values.items() for word in ("--param", f"{key}={value}")]


def at_least(what, value, bound):
    assert value >= bound, f"{what}: {value:.4f}, which is below {bound}"
    print(f"{what}: {value:.4f}")


def best_of(measure, bound):
    """The best of up to twelve: what else the computer has to do only takes away."""
    best = 0
    for _ in range(12):
        best = max(best, measure())
        if best >= bound:
            break
    return best


def check_batches():
    graph = GRAPHS / "pipeline3.json"
    for m in (4, 16, 64):
        ideal = 3 * m / (m + 2)
        one, three = (gantry("schedule", graph, "--devices", d, "--json", *params(batches=m))["makespan_us"] for d in (1, 3))
        at_least(f"pipeline3, {m} batches, predicted, of the ideal", one / three / ideal, 0.97)
    m = 32  # the stages of one device take 3m stage times, whatever sleeping adds to them
    def measured(devices):
        return gantry("run", graph, "--devices", devices, "--json", "--iterations", 3,
                      *params(batches=m, batch=4096, stage_us=STAGE_US * 2))["measured_us"]
    ideal = 3 * m / (m + 2)
    at_least(f"pipeline3, {m} batches, measured, of the ideal", best_of(lambda: measured(1) / measured(3) / ideal, 0.90), 0.90)


def check_starts():
    words = [GRAPHS / "pipeline3.json", "--devices", 3, "--objective", "period", "--json", *params(batches=1, batch=4096)]
    report = gantry("schedule", *words)
    at_least("overlapping starts, predicted, of the ideal", STAGE_US / report["period_us"], 0.97)
    assert report["in_flight"] >= 3 and report["period_us"] >= report["period_bound_us"] * 0.999999, report
    words += params(stage_us=5000)  # sleeping takes a tenth of a millisecond more, whatever is asked for
    reached = best_of(lambda: 5000 / gantry("run", *words, "--iterations", 60)["throughput_us"], 0.90)
    at_least("overlapping starts, measured, of the ideal", reached, 0.90)
    two = min(gantry("run", *words, "--in-flight", 2, "--iterations", 30)["throughput_us"] for _ in range(2))
    assert two * reached > 1.3 * 5000, f"two starts in flight cannot fill three stages: {two} us against {5000 / reached} us"


def ideal_machine(p, capacity):
    """Transfers take no time (1 PB/s, and no contention), so that the formula holds to the rounding."""
    memories = [{"id": "host", "capacity": 1 << 36}] + [{"id": f"m{i}", "capacity": capacity} for i in range(p)]
    routes = [{"from": a["id"], "to": b["id"], "latency_us": 0, "bandwidth_gbs": 1e6}
              for a in memories for b in memories if a != b]
    return {"gantry_machine": 1, "name": "ideal", "memories": [{"reserved": 0, **m} for m in memories],
            "devices": [{"id": f"d{i}", "kind": "gpu", "memory": f"m{i}", "copy_engines": 4} for i in range(p)],
            "routes": routes, "model": {"contention": "off", "launch_us": 0}}


def under_way(schedule, stage):
    """Most micro-batches of a stage whose forward has begun and whose backward has not ended, by predicted times."""
    events = []
    for op in schedule["ops"]:
        name = op.get("node", "")
        if name.startswith(f"forward[{stage}]"):
            events.append((op["ps"][1], 1, 1))
        elif name.startswith(f"backward[{stage}]"):
            events.append((op["ps"][2], 0, -1))
    most = now = 0
    for _, _, change in sorted(events):
        now += change
        most = max(most, now)
    return most


def check_1f1b(folder):
    graph, n = GRAPHS / "train_pipeline.json", 1024
    size = 4 * n
    for p, m in ((2, 6), (3, 9), (4, 8), (4, 16), (6, 18), (8, 24)):
        # Weights and gradient; p activations; one that comes in or goes out, and two gradients of activations.
        capacity = (2 + p + 3) * size
        machine, file = folder / f"{p}.json", folder / f"{p}-{m}.json"
        machine.write_text(json.dumps(ideal_machine(p, capacity)))
        words = [graph, "--machine", machine, "--spill", "off", *params(stages=p, batches=m, n=n, forward_us=STAGE_US)]
        report = gantry("schedule", *words, "--json", "-o", file)
        formula = (m + p - 1) * 3 * STAGE_US
        assert abs(report["makespan_us"] - formula) < 0.01, f"p={p}, m={m}: {report['makespan_us']} us, not {formula}"
        gantry("check", graph, file, *params(stages=p, batches=m, n=n, forward_us=STAGE_US))
        schedule = json.loads(file.read_text())
        for stage in range(p):
            assert schedule["slabs"][stage + 1] <= capacity, schedule["slabs"]
            assert under_way(schedule, stage) <= p, f"stage {stage} of {p}: {under_way(schedule, stage)} under way"
        assert not any(op["kind"] in ("evict", "fetch") for op in schedule["ops"])
        refusal = gantry("schedule", *words, "--policy", "heft", code=4)
        assert "needs" in refusal, refusal
        print(f"1F1B, {p} stages, {m} micro-batches: {report['makespan_us']:.3f} us, {report['policy']}")
    gantry("run", graph, "--devices", 4, "--check", *params(forward_us=100, n=256))


with tempfile.TemporaryDirectory() as folder:
    check_batches()
    check_starts()
    check_1f1b(pathlib.Path(folder))
