#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Headers of .npy files against NumPy, both ways: what NumPy writes is read, and what is written NumPy reads."""
import os
import subprocess
import sys
import tempfile

try:
    import numpy
except ImportError:
    print("skipped: python3-numpy is not installed")
    sys.exit(77)

DTYPES = {"f16": "f2", "f32": "f4", "f64": "f8", "i8": "i1", "u8": "u1", "i32": "i4", "u32": "u4", "i64": "i8", "u64": "u8"}
SHAPES = [(), (1,), (7,), (0, 3), (3, 4), (2, 3, 4), (1, 1, 1, 1, 1, 1, 1, 5)]


def show(tool, path):
    return subprocess.run([tool, "show", path], capture_output=True, text=True)


def check_reading(tool, folder):
    path = os.path.join(folder, "a.npy")
    for version in [(1, 0), (2, 0), (3, 0)]:
        for name, numpy_name in DTYPES.items():
            for shape in SHAPES:
                array = numpy.ones(shape, numpy_name)
                with open(path, "wb") as file:
                    numpy.lib.format.write_array(file, array, version=version)
                offset = os.path.getsize(path) - array.nbytes
                expected = " ".join([name, *map(str, shape), f"@{offset}+{array.nbytes}"])
                got = show(tool, path)
                assert got.stdout.strip() == expected, (version, got.stdout, got.stderr, expected)


def check_refusals(tool, folder):
    path = os.path.join(folder, "a.npy")
    wrong = [numpy.asfortranarray(numpy.ones((3, 4))), numpy.ones(3, ">f4"), numpy.ones(3, "b1"), numpy.ones(3, "c8"),
             numpy.ones(3, [("a", "f4"), ("b", "i4")]), numpy.ones(3, "i2")]
    for array in wrong:
        numpy.save(path, array)
        got = show(tool, path)
        assert got.returncode == 1 and got.stderr, (array.dtype, got)
        print(got.stderr.strip())


def check_writing(tool, folder):
    path = os.path.join(folder, "b.npy")
    for name, numpy_name in DTYPES.items():
        for shape in SHAPES:
            header = subprocess.run([tool, "make", name, *map(str, shape)], capture_output=True, check=True).stdout
            array = numpy.arange(int(numpy.prod(shape)), dtype=numpy_name).reshape(shape)
            with open(path, "wb") as file:
                file.write(header + array.tobytes())
            back = numpy.load(path)
            assert back.dtype == numpy.dtype(numpy_name) and back.shape == shape and (back == array).all()
            assert len(header) % 64 == 0


with tempfile.TemporaryDirectory() as temporary:
    for check in (check_reading, check_refusals, check_writing):
        check(sys.argv[1], temporary)
