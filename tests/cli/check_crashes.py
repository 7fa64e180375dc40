# SPDX-License-Identifier: Apache-2.0
"""A kernel that crashes is named by the command, which then ends by the very signal.

check_crashes.py COMMAND
"""
import json
import pathlib
import resource
import signal
import subprocess
import sys
import tempfile

CODE = """#include <gantry/kernel.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
static void *elsewhere(void *nowhere)
{
    return (void *)(long)*(volatile int *)nowhere;
}
gantry_status crash(const gantry_launch *l);
gantry_status crash(const gantry_launch *l)
{
    int *nowhere = (int *)16;
    volatile int zero = 0;
    switch (l->arg[0].integer) {
    case 1:
        return *(volatile int *)nowhere;
    case 2:
        return 7 / zero;
    case 3:
        abort();
    case 4:
        raise(SIGBUS);
        break;
    case 5: {
        pthread_t thread;
        pthread_create(&thread, NULL, elsewhere, nowhere);
        pthread_join(thread, NULL);
        break;
    }
    case 6:
        return (gantry_status)1;
    }
    return GANTRY_OK;
}
"""
CASES = [(1, signal.SIGSEGV, "SIGSEGV, a segmentation fault"), (2, signal.SIGFPE, "SIGFPE, as by a division of integers by 0"),
         (3, signal.SIGABRT, "SIGABRT, as by abort() or assert()"), (4, signal.SIGBUS, "SIGBUS, an address that memory does not have")]

NAMED = 'node "boom" (kernel "crash") on device "dev0" touched address 0x10, which is not memory of the run'


def graph(how):
    args = {"how": how, "x": "x"}
    return {"gantry": 1, "buffers": {"x": {"dtype": "f32", "shape": [8], "init": 1, "output": True}},
            "kernels": {"crash": {"host": "crash.c", "args": [{"name": "how", "type": "i64"}, {"name": "x", "access": "readwrite"}]}},
            "nodes": [{"id": "fine", "kernel": "crash", "args": {**args, "how": 0}}, {"id": "boom", "kernel": "crash", "args": args, "on": "devices - 1"}]}


def no_core():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run(command, folder, how, *words):
    (folder / "graph.json").write_text(json.dumps(graph(how)))
    return subprocess.run([command, "run", "graph.json", "--allow-code", *words], cwd=folder, capture_output=True, text=True, timeout=120, preexec_fn=no_core)


def main(command):
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "crash.c").write_text(CODE)
        for how, number, said in CASES:
            for devices in (1, 2):
                done = run(command, folder, how, "--devices", str(devices))
                line = f'gantry: node "boom" on device "dev{devices - 1}" crashed in its kernel "crash" by {said}; --check finds what it does to memory'
                if done.returncode != -number or done.stderr.count("crashed") != 1 or line not in done.stderr or done.stdout:
                    wrong.append((how, devices, done.returncode, done.stdout, done.stderr))
        other = run(command, folder, 5)
        if other.returncode != -signal.SIGSEGV or "gantry: crashed by SIGSEGV, a segmentation fault, outside of any node's function; kernels of the graph's own" not in other.stderr:
            wrong.append(other)
        strange = run(command, folder, 6)
        if strange.returncode != 1 or 'node "boom" failed on device "dev0": its function returned unknown status (1); it returns GANTRY_OK, 0' not in strange.stderr:
            wrong.append(strange)
        fine = run(command, folder, 0)
        checked = run(command, folder, 1, "--check")
        if fine.returncode or fine.stderr or checked.returncode != 1 or "crashed" in checked.stderr or NAMED not in checked.stderr:
            wrong.append((fine, checked))
    for each in wrong:
        print(each)
    return bool(wrong)


sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
