# SPDX-License-Identifier: Apache-2.0
"""The scripts that measure strategies, plans, feeding, compiling, decoding, the gallery and kernels without libraries end well at small sizes, without a
GPU, and their tables have numbers.

check_scripts.py BUILD
"""
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
BUILD = sys.argv[1]
RUNS = {
    "strategies.py": (["--machines", "host-4", "--models", "mlp", "--only", "0", "--seconds", "20"], r"\| host-4 \| mlp [^|]*\| \S+ \| \d+ \| \S+ \| \d+ \| 1\.0\d\d \|"),
    "feed.py": (["--rounds", "1", "--many", "6", "--param", "batch=32", "--param", "inputs=16", "--param", "hidden=16"],
                r"\| fed, watch, period \| -?[\d.]+ \|"),
    "gallery.py": (["--predict", "h200-8", "--works", "mlp,saxpy,fft3d", "--devices", "1,2"], r"(?s)\| mlp .*\| saxpy .*\| fft3d [^|]*\| [\d.]+ \| [\d.]+ \| [\d.]+ \|"),
    "regular.py": (["--family", "tree", "--seeds", "0:1", "--efforts", "0,1"], r"\| tree \| 1 \| 1\.\d+ \(1\.\d\d\) \| 1\.000"),
    "compiling.py": (["--backend", "host", "--graphs", "black_scholes", "--rounds", "1"], r"\| black_scholes \| [1-9] \| \d+ \| \d+ \| \d+ \| [\d.]+ \| [\d.]+ \| [\d.]+ \| - \|"),
    "libraries.py": (["--without-libraries", "--backend", "host", "--scale", "64", "--only", "gemm f32|potrf"],
                     r"(?s)gemm f32 64 +[\d.]+ us   without libraries +[\d.]+ us +[\d.]+\n.*potrf f32 64 "),
    "hand/decode.py": (["--backend", "host"], r"^40 tokens agree: host back end$"),
}


def main():
    failed = 0
    for script, (words, wanted) in RUNS.items():
        where = f"{BUILD}/bin/gantry" if script == "libraries.py" else BUILD
        done = subprocess.run([sys.executable, HERE / script, where, *words], capture_output=True, text=True, timeout=250)
        if done.returncode or not re.search(wanted, done.stdout, re.M):
            failed += 1
            print(f"FAILED {script}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    print(f"{len(RUNS) - failed} of {len(RUNS)} as expected")
    return 1 if failed else 0


try:
    import numpy  # noqa: F401
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)
sys.exit(main())
