# SPDX-License-Identifier: Apache-2.0
"""What a start from Python costs more than one from C, in processor time of the calling thread, and in calls of an empty function of Python,
which are timed beside it: a computer that is slow, or busy with something else, takes longer for both.

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
# Of empty calls; the aim is 225 where one takes 0.022 us. The simulator answers at once, so both are warm. On the host the thread sleeps
# meanwhile, and on a busy computer comes back to cold caches, of which an interpreter wants more.
MOST_CALLS = {"sim": 225, "host": 1350}
# What else runs there can only add to a time, so a try that is good enough ends them.
STARTS, ROUNDS, TRIES = 500, 12, 10


def build(compiler, include, folder):
    program = pathlib.Path(folder, "call_cost")
    lib = pathlib.Path(library).resolve()
    subprocess.run([compiler, "-O2", "-D_GNU_SOURCE", f"-I{include}", "-o", program, pathlib.Path(__file__).with_name("call_cost.c"), str(lib),
                    f"-Wl,-rpath,{lib.parent}"], check=True)
    return program


def in_c(program, backend):
    done = subprocess.run([program, backend, str(ROUNDS)], capture_output=True, text=True, check=True, env=dict(os.environ, LC_ALL="C"))
    return float(done.stdout) / 1e3


def least_us(each, times):
    """The least time of an each() of several rounds of so many."""
    least = float("inf")
    for _ in range(ROUNDS):
        begin = time.thread_time_ns()
        for _ in range(times):
            each()
        least = min(least, (time.thread_time_ns() - begin) / times / 1e3)
    return least


def in_python(backend):
    run = scaled().schedule(1).run(backend=backend)
    a = np.zeros(8, np.float32)
    return least_us(lambda: run(x=a), STARTS)


def compared(program, backend):
    """Whether a start from Python takes no more than allowed, in one of the tries."""
    for _ in range(TRIES):
        call, python, c = least_us(lambda: None, 10 * STARTS), in_python(backend), in_c(program, backend)
        print(f"{backend}: {python:.2f} us from Python, {c:.2f} us from C: {python - c:.2f} us more (aim {AIM_US}), "
              f"as {(python - c) / call:.0f} empty calls of {call:.3f} us (most {MOST_CALLS[backend]})")
        if 0 < python - c < MOST_CALLS[backend] * call:
            return True
    return False


def main(compiler, include):
    with tempfile.TemporaryDirectory() as folder:
        program = build(compiler, include, folder)
        return not all([compared(program, backend) for backend in MOST_CALLS])


assert gantry
sys.exit(main(*sys.argv[1:]))
