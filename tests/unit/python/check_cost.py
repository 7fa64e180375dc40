# SPDX-License-Identifier: Apache-2.0
"""What a start from Python costs more than one from C, in processor time of the calling thread, which a busy computer changes little.

check_cost.py COMPILER INCLUDE
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

from suite import gantry, library, scaled

AIM_US = 5
# The simulator answers at once, so both are warm. On the host the thread sleeps meanwhile, and on a busy computer comes back to cold caches, of
# which an interpreter wants more.
MOST_US = {"sim": 5, "host": 30}
STARTS, ROUNDS, TRIES = 500, 12, 3


def build(compiler, include, folder):
    program = pathlib.Path(folder, "call_cost")
    lib = pathlib.Path(library).resolve()
    subprocess.run([compiler, "-O2", "-D_GNU_SOURCE", f"-I{include}", "-o", program, pathlib.Path(__file__).with_name("call_cost.c"), str(lib),
                    f"-Wl,-rpath,{lib.parent}"], check=True)
    return program


def in_c(program, backend):
    done = subprocess.run([program, backend, str(ROUNDS)], capture_output=True, text=True, check=True, env=dict(os.environ, LC_ALL="C"))
    return float(done.stdout) / 1e3


def in_python(backend):
    run = scaled().schedule(1).run(backend=backend)
    a = np.zeros(8, np.float32)
    least = float("inf")
    for _ in range(ROUNDS):
        begin = time.thread_time_ns()
        for _ in range(STARTS):
            run(x=a)
        least = min(least, (time.thread_time_ns() - begin) / STARTS / 1e3)
    return least


def main(compiler, include):
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        program = build(compiler, include, folder)
        for backend in ("sim", "host"):
            pairs = [(in_python(backend), in_c(program, backend)) for _ in range(TRIES)]
            python, c = (min(times) for times in zip(*pairs))
            print(f"{backend}: {python:.2f} us from Python, {c:.2f} us from C: {python - c:.2f} us more (aim {AIM_US}, most {MOST_US[backend]})")
            wrong += not 0 < python - c < MOST_US[backend]
    return wrong > 0


assert gantry
sys.exit(main(*sys.argv[1:]))
