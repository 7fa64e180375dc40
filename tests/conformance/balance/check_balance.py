# SPDX-License-Identifier: Apache-2.0
"""Automatic splits: the predicted gain on a machine of unequal GPUs, and results that no cut changes.

check_balance.py GANTRY MACHINES
"""
import json
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from numpy_gantry import gantry, np, run  # noqa: E402

command, machines = sys.argv[1], pathlib.Path(sys.argv[2])
graph = pathlib.Path(__file__).with_name("auto_split.json")
failed = 0


def expect(what, ok):
    global failed
    failed += not ok
    print(f"{'ok' if ok else 'FAILED'}  {what}")


def schedule(balance, folder):
    """a (rows x k) times b (k x m), k = m = 8192, rows = 68061: 22687 rows in each of three equal parts, and 2 k m =
    134,217,728 operations a row. The RTX 3070 (20.3 TFLOP/s) takes 22687 * 134217728 / 20.3e12 = 150.0 ms for its part,
    and 1.66 ms for the maximum of it (22687 * 32768 bytes at 448 GB/s). In proportion to the speeds 35.6 : 29.8 : 20.3
    each takes 68061 * 134217728 / 85.7e12 = 106.6 ms, and about 1.1 ms for the maximum."""
    file = pathlib.Path(folder) / f"{balance}.json"
    size = ["--param", "rows=68061", "--param", "k=8192", "--param", "m=8192"]
    report = json.loads(gantry(command, "schedule", graph, "--machine", machines / "rtx-mixed-3.json", *size, "--json",
                               "-o", file, *(["--balance", balance] if balance else [])))
    gantry(command, "check", graph, file, *size)
    return report["makespan_us"] / 1e3, json.loads(file.read_text())["bounds"]["a"]


def unequal():
    """Two host devices, 1 : 3 by their own account."""
    memories = [{"id": name, "capacity": "1GiB"} for name in ("host", "m0", "m1")]
    devices = [{"id": f"d{i}", "kind": "cpu", "type": "cpu", "memory": f"m{i}", "gflops": {"f32": speed},
                "bandwidth_gbs": speed / 10} for i, speed in enumerate((0.1, 0.3))]
    return {"gantry_machine": 1, "name": "unequal", "memories": memories, "devices": devices,
            "routes": [{"from": "*", "to": "*", "latency_us": 1, "bandwidth_gbs": 10}]}


def relax(n, parts):
    """Five sweeps with a halo of one row, which the ends of the buffer cut off."""
    split = {"auto": parts}
    return {"gantry": 1, "name": "relax",
            "buffers": {"u": {"dtype": "f32", "shape": [n, 9], "split": split, "init": 0},
                        "v": {"dtype": "f32", "shape": [n, 9], "split": split, "output": True}},
            "nodes": [{"repeat": 5, "carry": {"u": "v"}, "nodes": [
                {"id": "sweep[i]", "for": {"i": parts}, "kernel": "jacobi2d", "args": {"x": "u[i]~1", "y": "v[i]"}}]}]}


def relaxed(u):
    for _ in range(5):
        v = u.copy()
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        u = v
    return u


def by_part():
    """The result says where the parts are cut."""
    return {"gantry": 1, "name": "by_part", "buffers": {"x": {"dtype": "f32", "shape": [400], "split": {"auto": 2}, "init": 1},
                                                        "y": {"dtype": "f32", "shape": [400], "split": {"auto": 2}, "output": True}},
            "nodes": [{"id": "k[i]", "for": {"i": 2}, "kernel": "scale", "args": {"a": "i + 1", "x": "x[i]", "y": "y[i]"},
                       "cost": {"flops": 1e6, "bytes": 0}}]}


SLOW_C = """
#include <gantry/kernel.h>
#include <time.h>

gantry_status slow_add(const gantry_launch *l)
{
    const float *x = l->arg[0].data;
    float *w = l->arg[1].data, *y = l->arg[2].data;
    long us = (long)l->arg[0].rows * (l->device == 0 ? 60 : 20);
    struct timespec t = { us / 1000000, us % 1000000 * 1000 };
    nanosleep(&t, 0);
    for (long i = 0; i < l->arg[0].rows; i++)
        y[i] = w[i] += x[i];
    return GANTRY_OK;
}
"""


def guided(folder, starts):
    """Two host devices that the machine calls equal, 1 : 3 in fact: 1500 rows, 60 and 20 us each. Half of them take 45 ms
    on the slow one, a quarter 22.5 ms. w adds x at every start, wherever its parts are."""
    folder = pathlib.Path(folder)
    (folder / "slow.c").write_text(SLOW_C)
    machine = unequal()
    machine["devices"][0]["gflops"] = machine["devices"][1]["gflops"]
    machine["devices"][0]["bandwidth_gbs"] = machine["devices"][1]["bandwidth_gbs"]
    (folder / "equal.json").write_text(json.dumps(machine))
    split = {"auto": 2}
    g = {"gantry": 1, "name": "guided",
         "kernels": {"slow_add": {"host": "slow.c", "args": [{"name": "x", "access": "read", "dtype": "f32"},
                                                             {"name": "w", "access": "readwrite", "dtype": "f32"},
                                                             {"name": "y", "access": "write", "dtype": "f32"}],
                                  "cost": {"flops": "12000 * x.size"}}},
         "buffers": {"x": {"dtype": "f32", "shape": [1500], "split": split, "init": 0},
                     "w": {"dtype": "f32", "shape": [1500], "split": split, "class": "state", "init": 0},
                     "y": {"dtype": "f32", "shape": [1500], "split": split, "output": True}},
         "nodes": [{"id": "add[i]", "for": {"i": 2}, "kernel": "slow_add", "args": {"x": "x[i]", "w": "w[i]", "y": "y[i]"},
                    "on": "i % devices"}]}
    (folder / "guided.json").write_text(json.dumps(g))
    x, w = rng.integers(0, 9, 1500).astype(np.float32), rng.integers(0, 9, 1500).astype(np.float32)
    words = ["--machine", folder / "equal.json", "--backend", "host", "--allow-code", "--iterations", starts]
    found, report = run(command, folder / "guided.json", {"x": x, "w": w}, {"y": None}, [*words, "--balance", "guided"])
    _, plain = run(command, folder / "guided.json", {"x": x, "w": w}, {"y": None}, [*words, "--balance", "dynamic"])
    looks = report["rebalanced"]
    print(f"guided, {starts} starts: {plain['measured_us'] / 1e3:.1f} ms by declared speeds, {report['measured_us'] / 1e3:.1f} "
          f"ms; looks {[(r['after'], r['changed'], round(r['now_us'] / 1e3, 1), round(r['then_us'] / 1e3, 1)) for r in looks]}")
    expect("guided: the state goes over", np.array_equal(found["y"], w + starts * x))
    expect("guided: cut anew after the first start", looks[0]["after"] == 1 and looks[0]["changed"])
    expect("guided: 22.5 of 45 ms predicted", looks[0]["then_us"] < 0.75 * looks[0]["now_us"] and looks[0]["now_us"] > 45e3)
    expect("guided: and measured", report["measured_us"] < 0.75 * plain["measured_us"])
    expect("guided: looks after starts 1, 2, 4", [r["after"] for r in looks] == [1, 2, 4])


rng = np.random.default_rng(3)
with tempfile.TemporaryDirectory() as folder:
    guided(folder, 6)
    equal, even = schedule("static", folder)
    fair, bounds = schedule("dynamic", folder)
    default, _ = schedule(None, folder)
    print(f"rtx-mixed-3: equal parts {equal:.1f} ms, by speed {fair:.1f} ms, default {default:.1f} ms; bounds {bounds}")
    expect("equal parts take 150 ms and the maximum", 150.0 < equal < 150.0 + 1.66 + 0.1 and even[1] == 22687)
    expect("parts by speed take 120 ms or less", 106.6 < fair <= 120)
    expect("no schedule is faster than all three at their peak, and this one is within 2 %", fair < 106.6 * 1.02)
    share = [bounds[i + 1] - bounds[i] for i in range(3)]
    expect("parts are in proportion to speed within 1 %",
           all(abs(rows / 68061 * 85.7 / speed - 1) < 0.01 for rows, speed in zip(share, (35.6, 29.8, 20.3))))
    expect("the default chooses it", default == fair)

    machine = pathlib.Path(folder) / "unequal.json"
    machine.write_text(json.dumps(unequal()))
    a, b = rng.random((97, 32), np.float32), rng.random((32, 16), np.float32)
    u = rng.random((101, 9), np.float32)
    for check in ([], ["--check"]):
        found, _ = run(command, by_part(), outputs={"y": None},
                       arguments=["--machine", machine, "--backend", "host", "--balance", "dynamic", *check])
        cut = int((found["y"] == 1).sum())
        expect(f"by part {check}: cut at {cut}", cut == 100 and (found["y"][cut:] == 2).all())
    for balance in ("static", "dynamic", "memory", None):
        for check in ([], ["--check"]):
            words = ["--machine", machine, "--backend", "host", *check, *(["--balance", balance] if balance else [])]
            for parts in (1, 2, 3, 7):
                sizes = ["--param", "rows=97", "--param", "k=32", "--param", "m=16", "--param", f"parts={parts}"]
                found, _ = run(command, graph, {"a": a, "b": b}, {"total": None}, words + sizes)
                top = (a.astype(float) @ b).max()
                expect(f"gemm {balance} {check} {parts}", abs(found["total"][0] - top) < 1e-5 * top)
                found, _ = run(command, relax(101, parts), {"u": u}, {"v": None}, words)
                expect(f"relax {balance} {check} {parts}", np.allclose(found["v"], relaxed(u), 1e-5, 1e-6))

sys.exit(1 if failed else 0)
