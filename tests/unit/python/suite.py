# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share. Exit 77, a visible skip, without NumPy or the shared library."""
import os
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[3]


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


library = os.environ.get("GANTRY_LIBRARY", "")
if not pathlib.Path(library).is_file():
    skip(f"no shared library at GANTRY_LIBRARY={library!r}")
try:
    import numpy as np
except ImportError:
    skip("no NumPy (python3-numpy)")
sys.path.insert(0, str(ROOT / "tools/python"))
import gantry  # noqa: E402


class Case(unittest.TestCase):
    def equal(self, seen, wanted):
        """The same element type, shape and bits, NaN included."""
        self.assertEqual((seen.dtype, seen.shape), (wanted.dtype, wanted.shape))
        np.testing.assert_array_equal(seen, wanted)

    def refused(self, error, pattern):
        """The next block raises this very class, with such a message."""
        return _Refused(self, error, pattern)


class _Refused:
    def __init__(self, case, error, pattern):
        self.case, self.error, self.pattern = case, error, pattern

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.case.assertIsNotNone(kind, f"nothing was raised; wanted {self.error.__name__}: {self.pattern}")
        if kind is not self.error:
            return False
        self.value = value
        self.case.assertRegex(str(value), self.pattern)
        return True


def scaled(n=8, dtype="f32", parts=None, name="scaled"):
    """y = 2 * x + 1, in parts."""
    g = gantry.Graph(name)
    x = g.input("x", n, dtype, split=parts)
    y = g.buffer("y", n, dtype, output=True, split=parts)
    for i in range(parts or 1):
        g.map("y = 2 * x + 1", x=x[i] if parts else x, y=y[i] if parts else y)
    return g


main = unittest.main
