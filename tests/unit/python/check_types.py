# SPDX-License-Identifier: Apache-2.0
"""The annotations that `py.typed` promises: whatever is public says what it takes and gives, with names that exist; and `__all__` is what is
there. mypy in strict mode as well, where it is installed.
"""
import importlib
import importlib.util
import inspect
import pathlib
import pkgutil
import subprocess
import sys
import typing

from suite import ROOT, Case, gantry, main

MODULES = [name for _, name, _ in pkgutil.iter_modules(gantry.__path__)]


def functions():
    """Every public function and method, by the name that users have for it."""
    for name in [*(f"gantry.{module}" for module in MODULES)]:
        module = importlib.import_module(name)
        for key, value in vars(module).items():
            if getattr(value, "__module__", None) != name:
                continue
            if inspect.isfunction(value):
                yield f"{name}.{key}", value
            elif inspect.isclass(value):
                for key2, member in vars(value).items():
                    member = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
                    member = member.fget if isinstance(member, property) else member
                    if inspect.isfunction(member) and member.__module__ == name:
                        yield f"{name}.{key}.{key2}", member


class Types(Case):
    def test_all_says_what_it_takes_and_gives(self):
        seen = 0
        for name, function in functions():
            if not function.__code__.co_filename.startswith(gantry.__path__[0]):  # made by dataclass or NamedTuple
                continue
            seen += 1
            with self.subTest(name):
                given = function.__annotations__
                wanted = [p.name for i, p in enumerate(inspect.signature(function).parameters.values()) if not (i == 0 and p.name in ("self", "cls", "mcs"))]
                self.assertEqual([p for p in wanted if p not in given], [], "parameters without a type")
                self.assertIn("return", given)
        self.assertGreater(seen, 200)

    def test_names_of_types_exist(self):
        import gantry.graph
        import gantry.run
        import gantry.schedule
        here = {**vars(typing), **vars(gantry), "Schedule": gantry.Schedule, "Run": gantry.Run, "Machine": gantry.Machine, "numpy": __import__("numpy.typing")}
        for name, function in functions():
            if not name.rsplit(".", 1)[-1].startswith("_"):
                with self.subTest(name):
                    typing.get_type_hints(function, localns={**here, **vars(importlib.import_module(function.__module__))})

    def test_all_that_is_exported(self):
        self.assertEqual(len(gantry.__all__), len(set(gantry.__all__)))
        for name in gantry.__all__:
            self.assertTrue(hasattr(gantry, name), name)
        public = {n for n, v in vars(gantry).items() if not n.startswith("_") and not inspect.ismodule(v)}
        self.assertEqual(public, set(gantry.__all__) - {"__version__"})
        self.assertTrue((pathlib.Path(gantry.__file__).parent / "py.typed").is_file())
        self.assertEqual(list(pathlib.Path(gantry.__file__).parent.glob("*.pyi")), [])  # types are in the code: nothing can disagree

    def test_mypy(self):
        if importlib.util.find_spec("mypy") is None:
            self.skipTest("no mypy")
        done = subprocess.run([sys.executable, "-m", "mypy", "--strict", "-p", "gantry"], capture_output=True, text=True, cwd=ROOT / "tools/python")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


main()
