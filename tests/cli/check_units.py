# SPDX-License-Identifier: Apache-2.0
"""Times and sizes have one style in every report: a number and the unit that fits, as close to what --json says as its digits allow.

check_units.py GANTRY ROOT
"""
import json
import pathlib
import re
import subprocess
import sys

US = {"ns": 1e-3, "us": 1, "ms": 1e3, "s": 1e6}
BYTES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def run(*words):
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (words, done.stderr)
    return done.stdout


def is_time(text, us):
    number, unit = text.split(" ")
    fits = 0.99999 <= float(number) < 1000 or unit == "s" or (unit == "ns" and float(number) < 1)
    return fits and abs(float(number) * US[unit] - us) <= 0.51e-4 * us and len(number.replace(".", "").lstrip("0")) <= 5


def is_size(text, size):
    number, unit = text.split(" ")
    decimals = len(number.partition(".")[2])
    return (1 <= float(number) < 1024 or unit == "B") and decimals == (unit != "B") and abs(float(number) * BYTES[unit] - size) <= 0.051 * BYTES[unit]


def main(gantry, root):
    root, count = pathlib.Path(root), 0
    for graph, machine, words in (("saxpy", "hgx-h200-8", ()), ("saxpy", "dgx1-v100", ("--param", "n=1000")), ("cholesky", "host-4", ("--param", "n=4096")),
                                  ("reduce_sum", "a100-pcie-4", ("--param", "n=1000000000"))):
        words = [root / f"graphs/{graph}.json", "--machine", root / f"graphs/machines/{machine}.json", "--effort", "0", *words]
        rows = json.loads(run(gantry, "compare", *words, "--json"))["policies"]
        lines = [re.split(r"  +", line) for line in run(gantry, "compare", *words).splitlines()[2:]]
        assert len(lines) == len(rows)
        for row, (policy, makespan, gap, moved, peak) in zip(rows, lines):
            assert policy == row["policy"] and is_time(makespan, row["makespan_us"]), (row, makespan)
            assert is_size(moved, row["bytes_moved"]) and is_size(peak, row["peak_bytes"]), (row, moved, peak)
            count += 3
        rows = json.loads(run(gantry, "scale", *words, "--json"))["rows"]
        lines = [re.split(r"  +", line.strip()) for line in run(gantry, "scale", *words).splitlines()[2 : 2 + len(rows)]]
        for row, (devices, used, makespan, speedup, efficiency, peak, moved, *_) in zip(rows, lines):
            assert int(devices) == row["devices"] and is_time(makespan, row["makespan_us"]), (row, makespan)
            assert is_size(moved, row["bytes_moved"]) and is_size(peak, row["peak_bytes"]), (row, moved, peak)
            count += 3
        text = run(gantry, "schedule", *words)  # of the library, which has the same style
        assert re.search(r"makespan +[\d.]+ (ns|us|ms|s) predicted", text) and re.search(r"moved +[\d.]+ (B|[KMGT]iB) ", text), text
        run_text = run(gantry, "run", *words, "--backend", "sim", "--compare")
        predicted = json.loads(run(gantry, "run", *words, "--backend", "sim", "--json"))["predicted_us"]
        assert is_time(re.search(r"predicted ([\d.]+ \w+), simulated", run_text)[1], predicted)
        assert not re.search(r"predicted us|simulated us|measured us|\d MB|\d{4,}\.\d us", run_text + text), run_text
    print(f"{count} numbers")


main(sys.argv[1], sys.argv[2])
