# SPDX-License-Identifier: Apache-2.0
"""List scheduling of the 180 graphs of 50 tasks of the Standard Task Graph Set, on 2, 4, 8 and 16 processors.

EXPECTED is what other implementations of these policies, made for the reference of this project, get: the mean ratio to
the best known values, and how many of the 720 they reach. The same figures from reading the files, placing, lowering,
simulating and checking: one slip in any of these would move them. Nothing may be below a lower bound.

EFFORTS is what the default reached when it was last measured (docs/performance/schedules.md), by effort: it may be better, not worse.
Skipped (77) without the data.
"""
import os
import pathlib
import re
import subprocess
import sys

EXPECTED = {"heft": ("1.0056", 525), "peft": ("1.0260", 372), "cpop": ("1.1122", 99), "dls": ("1.0054", 508),
            "etf": ("1.0041", 543)}
EFFORTS = {1: (1.0031, 574), 3: (0.9997, 711)}

data = pathlib.Path(os.environ.get("GANTRY_SHARED", "/nonexistent")) / "data" / "stg50"
if not (data / "graphs").is_dir():
    print("skipped: no STG-50 data")
    sys.exit(77)
tool, command = sys.argv[1:3]
best = [str(p) for p in sorted(data.glob("Case50_*_OPT.csv"))]


def figures(policies, *rest):
    """{policy: (mean ratio, rows at the best known)}"""
    words = ["--gantry", command, "--best", *best, "--devices", "2,4,8,16", "--policy", policies, "-o", os.devnull]
    done = subprocess.run([sys.executable, tool, *words, str(data / "graphs"), *rest], capture_output=True, text=True,
                          check=False)
    print(*rest, done.stdout + done.stderr)
    found = re.findall(r"^(\S+): 720 rows, .* ratio (\S+) over 720, (\d+) at the best known, 0 below", done.stderr, re.M)
    return {policy: (mean, int(reached)) for policy, mean, reached in found} if done.returncode == 0 else {}


if figures(",".join(EXPECTED)) != EXPECTED:
    sys.exit(f"expected {EXPECTED}")
for effort, (most, least) in EFFORTS.items():
    mean, reached = figures("default", "--", "--effort", str(effort)).get("default", ("inf", 0))
    if float(mean) > most or reached < least:
        sys.exit(f"effort {effort}: expected a mean ratio of {most} or less, and {least} rows or more")
