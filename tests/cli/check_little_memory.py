# SPDX-License-Identifier: Apache-2.0
"""The command in a process that may map little memory: it succeeds, or says what is wrong; it neither hangs nor is ended.
OpenBLAS, which the host versions of dense kernels call, does both when it gets no memory."""
import os
import pathlib
import resource
import subprocess
import sys

MEGABYTE = 1 << 20


def limited(bytes_):
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (bytes_, bytes_))


def run(command, root, devices, megabytes):
    words = [command, "run", "graphs/cholesky.json", "--devices", str(devices), "--param", "n=64", "--param", "nt=4"]
    try:
        done = subprocess.run(words, cwd=root, capture_output=True, timeout=60, preexec_fn=limited(megabytes * MEGABYTE))
    except subprocess.TimeoutExpired:
        return f"{devices} devices in {megabytes} MB: still there after a minute"
    said = (done.stdout + done.stderr).decode(errors="replace")
    if done.returncode < 0 or done.returncode > 5 or "OpenBLAS" in said:
        return f"{devices} devices in {megabytes} MB: exit code {done.returncode}: {said[-300:]}"
    return None if done.returncode == 0 or said else f"{devices} devices in {megabytes} MB: failed without a word"


def main(command, root):
    if not (pathlib.Path(command).parent.parent / "lib" / "gantry-blas.so").exists():
        print("no gantry-blas.so: nothing to see")
        return 77
    # The command itself starts in 40 MB.
    sizes = [*range(40, 700, 20), 800, 1000, 1500, 2500]
    cases = [(devices, size) for devices in (1, 2, 4) for size in sizes]
    wrong = [text for devices, size in cases if (text := run(command, root, devices, size))]
    print("\n".join(wrong + [f"{len(cases)} runs, {len(wrong)} wrong"]))
    return 1 if wrong else 0


sys.exit(main(os.path.abspath(sys.argv[1]), sys.argv[2]))
