# SPDX-License-Identifier: Apache-2.0
"""pip installs the package, without a network; a wheel with the library in it needs nothing else. Exit 77 without pip or setuptools.

check_install.py CMAKE PACKAGE_SCRIPT MODULE_FOLDER
"""
import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import zipfile

from suite import ROOT, Case, library, main, skip

CMAKE, SCRIPT, MODULES = (sys.argv.pop(1) for _ in range(3))
for needed in ("pip", "setuptools", "wheel"):
    if importlib.util.find_spec(needed) is None:
        skip(f"no {needed} (python3-{needed})")
PIP = [sys.executable, "-W", "ignore", "-m", "pip", "--no-input", "--disable-pip-version-check"]
PROGRAM = """if True:
    import gantry, numpy as np
    g = gantry.Graph()
    x, y = g.input("x", 3), g.buffer("y", 3, output=True)
    g.map("y = 2 * x", x=x, y=y)
    assert (g(x=np.ones(3, np.float32))["y"] == 2).all()
    print(gantry._library.lib.path)
    """


def clean(**more):
    """Settings of nobody: no library that is named, no configuration of pip."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("GANTRY_", "PYTHON", "PIP_"))}
    return {**kept, "PIP_CONFIG_FILE": os.devnull, "PIP_ROOT_USER_ACTION": "ignore", **more}


def say(command, **more):
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", timeout=240, env=clean(**more))
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout.strip()


class Install(Case):
    def test_from_the_tree(self):
        with tempfile.TemporaryDirectory() as folder:
            source, target = pathlib.Path(folder, "source"), pathlib.Path(folder, "target")
            shutil.copytree(ROOT / "tools/python", source)
            say([*PIP, "install", "-q", "--no-index", "--no-build-isolation", "--no-deps", "--target", target, source])
            self.assertEqual(sorted(p.name for p in (target / "gantry").glob("*.py")), sorted(p.name for p in (source / "gantry").glob("*.py")))
            self.assertTrue((target / "gantry/py.typed").is_file())
            self.assertIn("Version: 0.1.0\n", next(target.glob("gantry-*.dist-info/METADATA")).read_text())
            self.assertEqual(say([sys.executable, "-c", PROGRAM], PYTHONPATH=str(target), GANTRY_LIBRARY=library), library)

    def test_a_wheel_with_the_library(self):
        with tempfile.TemporaryDirectory() as folder:
            say([CMAKE, f"-DSOURCE={ROOT / 'tools/python'}", f"-DLIBRARY={library}", f"-DMODULES={MODULES}", f"-DFOLDER={folder}",
                 f"-DPYTHON={sys.executable}", f"-DPROCESSOR={os.uname().machine}", "-P", SCRIPT])
            (wheel,) = pathlib.Path(folder).glob("*.whl")
            self.assertEqual(wheel.name, f"gantry-0.1.0-py3-none-linux_{os.uname().machine}.whl")
            with zipfile.ZipFile(wheel) as made:
                self.assertIn("gantry/lib/libgantry.so", made.namelist())
                self.assertEqual(made.read("gantry/lib/libgantry.so"), pathlib.Path(library).read_bytes())
            target = pathlib.Path(folder, "target")
            say([*PIP, "install", "-q", "--no-index", "--no-deps", "--target", target, wheel])
            self.assertEqual(say([sys.executable, "-c", PROGRAM], PYTHONPATH=str(target)), str(target / "gantry/lib/libgantry.so"))
            by_name = "import gantry; print(gantry.load('saxpy').schedule('dgx1-v100').makespan > 0, *gantry.Machine.known())"
            known = sorted(p.stem for p in (ROOT / "graphs/machines").glob("*.json"))
            self.assertEqual(say([sys.executable, "-c", by_name], PYTHONPATH=str(target)).split(), ["True", *known])


main()
