# SPDX-License-Identifier: Apache-2.0
"""A machine file that was calibrated with other GPUs than this computer has: the command warns, and goes on. The GPUs are
those of the driver for tests.

check_stale.py GANTRY SOURCE FOLDER_OF_THE_DRIVER
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

command, source, driver = os.path.abspath(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]


def run(folder, gpus, *words):
    env = {**os.environ, "GANTRY_MODULES": driver, "LD_LIBRARY_PATH": driver, "FAKE_CUDA_DEVICES": str(gpus), "FAKE_CUDA_MEMORY": str(4 << 30),
           "GANTRY_MACHINE_CACHE": "off"}
    done = subprocess.run([command, *map(str, words)], capture_output=True, timeout=100, cwd=folder, env=env)
    assert done.returncode == 0, done.stderr.decode()
    return done.stderr.decode()


def main(folder):
    tiny = source / "tests" / "cli" / "graphs" / "tiny.json"
    run(folder, 2, "machine", "show", "-o", "plain.json")
    machine = json.loads((folder / "plain.json").read_text())
    assert "calibration" not in machine, "nobody measured"
    for name, facts in ("two", {"GPUs": "2"}), ("other", {"GPUs": "2", "gpu0": "Another GPU", "room": "cellar"}):
        machine["calibration"] = {"fingerprint": facts}
        (folder / f"{name}.json").write_text(json.dumps(machine))
    silent = [(2, "two.json", []), (1, "plain.json", []), (0, "two.json", []), (1, "two.json", ["--devices", "1", "--backend", "host"])]
    for gpus, file, words in silent:
        said = run(folder, gpus, "run" if words else "schedule", tiny, "--machine", file, *words)
        assert said == "", (gpus, file, said)
    said = run(folder, 1, "schedule", tiny, "--machine", "two.json")
    assert said == ('warning: two.json was measured on another machine, or before it changed: GPUs was "2" and is "1"; leave it '
                    'out, or measure this computer with `gantry machine calibrate -o FILE`\n'), said
    said = run(folder, 2, "run", tiny, "--machine", "other.json", "--backend", "cuda")
    assert 'gpu0 was "Another GPU" and is "' in said and "room" not in said and said.count("\n") == 1, said
    inline = {**json.loads(tiny.read_text()), "machine": "two.json"}
    (folder / "graph.json").write_text(json.dumps(inline))
    said = run(folder, 1, "schedule", "graph.json")
    assert "two.json was measured on another machine" in said, said


with tempfile.TemporaryDirectory() as temporary:
    main(pathlib.Path(temporary))
