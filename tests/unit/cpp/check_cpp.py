# SPDX-License-Identifier: Apache-2.0
"""include/gantry/gantry.hpp with every C++ compiler that is there, as C++17 and C++20, without a warning: the program runs, and what
must not compile does not.

check_cpp.py LIBRARY ROOT
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

WARNINGS = "-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Werror".split()


def run(*words):
    return subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300)


def check(compiler, standard, library, root, folder):
    here, program = root / "tests/unit/cpp", folder / "program"
    base = [compiler, f"-std={standard}", *WARNINGS, "-I", root / "include"]
    done = run(*base, "-O1", here / "program.cc", "-o", program, library, f"-Wl,-rpath,{library.parent}", "-pthread")
    assert done.returncode == 0, f"{compiler} {standard}:\n{done.stderr}"
    done = run(program, root)
    assert done.returncode == 0 and done.stdout == "fine\n", f"{compiler} {standard}: {done.stdout}{done.stderr}"
    for wrong in range(7 if standard == "c++17" else 1):
        done = run(*base, f"-DWRONG={wrong}", "-fsyntax-only", here / "wrong.cc")
        assert (done.returncode == 0) == (wrong == 0), f"{compiler} {standard}, mistake {wrong}: {done.stderr or 'compiles'}"


def main(library, root):
    compilers = [name for name in ("g++", "clang++") if shutil.which(name)]
    if not compilers:
        print("skipped: there is no C++ compiler")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as folder:
        for compiler in compilers:
            for standard in ("c++17", "c++20"):
                check(compiler, standard, pathlib.Path(library), pathlib.Path(root).resolve(), pathlib.Path(folder))
    print(f"{' and '.join(compilers)}: C++17 and C++20")


main(*sys.argv[1:])
