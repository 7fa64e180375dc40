# SPDX-License-Identifier: Apache-2.0
"""gantry run --processes N, before a rank is there: what mpirun is started with. A program that stands in for mpirun writes its words and its
environment. Open MPI refuses more ranks than cores unless it is told, and what a user has set, or names by --mpirun, is left alone.

check_launch.py GANTRY
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

MANY = {"OMPI_MCA_rmaps_base_oversubscribe": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":OVERSUBSCRIBE"}
STAND_IN = """#!/usr/bin/python3
import json, os, sys
json.dump({"words": sys.argv[1:], "environment": dict(os.environ)}, open(os.environ["SEEN"], "w"))
"""


def launch(gantry, folder, more=(), **environment):
    """What the stand-in saw."""
    seen = folder / "seen.json"
    seen.unlink(missing_ok=True)
    known = {k: v for k, v in os.environ.items() if k not in MANY}
    known |= {"PATH": f"{folder}:{os.environ['PATH']}", "SEEN": str(seen)} | environment
    subprocess.run([gantry, "run", "saxpy", "--devices", "3", "--processes", "3", *more], env=known, check=True, timeout=60)
    return json.loads(seen.read_text())


def main():
    gantry = sys.argv[1]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for program in ("mpirun", "other"):
            (folder / program).write_text(STAND_IN)
            (folder / program).chmod(0o755)
        usual = launch(gantry, folder)
        assert usual["words"][:2] == ["-n", "3"] and usual["words"][3:] == ["run", "saxpy", "--devices", "3"], usual["words"]
        assert {k: usual["environment"].get(k) for k in MANY} == MANY
        kept = launch(gantry, folder, **dict.fromkeys(MANY, "mine"))["environment"]
        assert all(kept[k] == "mine" for k in MANY)
        other = launch(gantry, folder, ["--mpirun", "other --here"])
        assert other["words"][:3] == ["--here", "-n", "3"] and not any(k in other["environment"] for k in MANY)


main()
