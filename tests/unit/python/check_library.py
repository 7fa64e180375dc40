# SPDX-License-Identifier: Apache-2.0
"""Where the library is looked for, what is said when it is missing or another one; the package without NumPy; and what an install has.

check_library.py COMPILER
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

from suite import ROOT, Case, library, main

COMPILER = sys.argv.pop()
PACKAGE = ROOT / "tools/python"


def python(program, path=PACKAGE, **environment):
    """Exit code, and the last line of what was said."""
    settings = {k: v for k, v in os.environ.items() if k not in ("GANTRY_LIBRARY", "PYTHONPATH")}
    done = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True, cwd="/", timeout=120,
                          env={**settings, "PYTHONPATH": str(path), **environment})
    return done.returncode, ((done.stdout + done.stderr).strip().splitlines() or [""])[-1]


def other_library(folder, version, more=""):
    source, made = pathlib.Path(folder, "other.c"), pathlib.Path(folder, "libother.so")
    source.write_text(f'const char *gantry_version(void);\nconst char *gantry_version(void)\n{{\n    return "{version}";\n}}\n{more}')
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", made, source], check=True)
    return str(made)


# What is exported, called with texts and numbers.
NONSENSE = """
import gantry
for name in gantry.__all__:
    for given in ((), ("x",), (5,), ("x", 5), (5, "x"), ("x", "y", "z"), (1, 2, 3, 4)):
        try:
            repr(getattr(gantry, name)(*given))
        except Exception:
            pass
print("alive")
"""


class Calling(Case):
    def test_texts_and_numbers_are_no_pointers(self):
        """Machine("dgx1-v100") was a segmentation fault."""
        self.assertEqual(python(NONSENSE, GANTRY_LIBRARY=library), (0, "alive"))


class Finding(Case):
    def test_what_is_named(self):
        self.assertEqual(python("import gantry; print(gantry.__version__)", GANTRY_LIBRARY=library), (0, "0.1.0"))
        code, said = python("import gantry", GANTRY_LIBRARY="/nowhere/libgantry.so")
        self.assertEqual(code, 1)
        self.assertRegex(said, "LibraryError: /nowhere/libgantry.so cannot be loaded as libgantry: .*; GANTRY_LIBRARY names another file")

    def test_another_version(self):
        with tempfile.TemporaryDirectory() as folder:
            code, said = python("import gantry", GANTRY_LIBRARY=other_library(folder, "0.2.7"))
            self.assertEqual(code, 1)
            self.assertRegex(said, r"libother.so is libgantry 0.2.7, but this is the Python package 0.1.0, which needs 0.1.x; install")
            code, said = python("import gantry", GANTRY_LIBRARY=other_library(folder, "0.1.9"))
            self.assertRegex(said, r"libother.so has no function gantry_\w+; it is older than this Python package, 0.1.0")
            code, said = python("import gantry", GANTRY_LIBRARY=__file__)
            self.assertRegex(said, "LibraryError: .* cannot be loaded as libgantry")

    def test_the_order_of_places(self):
        """Beside the package, then the build tree of the checkout, release first."""
        show = "import gantry._library as l; print(l.lib.path)"
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve()
            package = root / "tools/python"
            shutil.copytree(PACKAGE / "gantry", package / "gantry")
            code, said = python(show, package)
            self.assertEqual(code, 1, said)
            self.assertRegex(said, "LibraryError: libgantry was not found: not in .*/tools/python/gantry/lib, and not among .*GANTRY_LIBRARY=/path/to/")
            (root / "include/gantry").mkdir(parents=True)
            (root / "include/gantry/gantry.h").touch()
            for place in ("build/debug/lib/libgantry.so", "build/release/lib/libgantry.so", "tools/python/gantry/lib/libgantry.so.0.1"):
                (root / place).parent.mkdir(parents=True)
                shutil.copy(library, root / place)
                self.assertEqual(python(show, package), (0, str(root / place)))

    def test_it_is_an_import_error(self):
        self.assertEqual(python("try:\n import gantry\nexcept ImportError:\n print('told')", GANTRY_LIBRARY="/none"), (0, "told"))


class WithoutNumpy(Case):
    def test_planning_needs_no_arrays(self):
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "numpy.py").write_text("raise ImportError('none here')\n")
            program = f"""if True:
                import sys
                sys.path.insert(0, {folder!r})
                import gantry
                g = gantry.Graph()
                g.fill(g.buffer('x', 3, 'f32', output=True), 1)
                plan = g.schedule(2)
                assert plan.makespan > 0 and '<svg' in plan.timeline()
                try:
                    g()
                except gantry.UnsupportedError as error:
                    print(error)
                """
            self.assertEqual(python(program, GANTRY_LIBRARY=library),
                             (0, "arrays need NumPy, which this Python does not have; install it (python3-numpy, pip install numpy)"))


class Skips(Case):
    def test_tests_without_numpy_or_library_are_skipped(self):
        tests = str(pathlib.Path(__file__).parent)
        self.assertEqual(python("import suite", tests), (77, "skipped: no shared library at GANTRY_LIBRARY=''"))
        with tempfile.TemporaryDirectory() as folder:
            pathlib.Path(folder, "numpy.py").write_text("raise ImportError('none here')\n")
            self.assertEqual(python("import suite", f"{folder}:{tests}", GANTRY_LIBRARY=library), (77, "skipped: no NumPy (python3-numpy)"))


main()
