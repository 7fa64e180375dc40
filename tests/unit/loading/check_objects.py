# SPDX-License-Identifier: Apache-2.0
"""Where built objects look for libraries, read with readelf: everything in the build tree, and what `cmake --install` leaves
in a folder of its own.

check_objects.py BUILD CMAKE READELF [ALLOWED...]

No object has an empty entry, no relative one, none that is not relative to $ORIGIN or leads out of the tree, but
those ALLOWED, which are folders that whoever built it named in CMAKE_INSTALL_RPATH.
"""
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

EXEC, DYN = 2, 3
CUDA = 190  # code of a GPU is ELF, too


def elf_type(path):
    """0: the file is no object of this computer."""
    with open(path, "rb") as file:
        head = file.read(20)
    if len(head) < 20 or head[:4] != b"\x7fELF":
        return 0
    kind, machine = struct.unpack("<HH" if head[5] == 1 else ">HH", head[16:])
    return 0 if machine == CUDA else kind


def objects_in(folder):
    found = {}
    for top, _, names in os.walk(folder):
        for name in names:
            path = pathlib.Path(top) / name
            kind = 0 if path.is_symlink() or not path.is_file() else elf_type(path)
            if kind in (EXEC, DYN):
                found[path] = kind
    return found


def read(readelf, paths, *flags):
    """What readelf says of each file."""
    said = {}
    paths = sorted(paths)
    for i in range(0, len(paths), 200):
        some = [str(path) for path in paths[i : i + 200]]
        out = subprocess.run([readelf, "-W", *flags, *some], env={**os.environ, "LC_ALL": "C"}, capture_output=True, text=True, check=True).stdout
        parts = re.split(r"^File: (.*)\n", out, flags=re.M)[1:] if len(some) > 1 else [some[0], out]
        said.update(zip(map(pathlib.Path, parts[::2]), parts[1::2]))
    assert set(said) == set(paths), "readelf did not tell of every file"
    return said


def path_problems(path, top, text, allowed):
    for entries in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", text):
        for entry in entries.split(":"):
            if not entry:
                yield f"looks for libraries in the current folder: an empty entry in \"{entries}\""
            elif entry in allowed and entry.startswith("/"):
                continue
            elif not re.fullmatch(r"\$ORIGIN(/.*)?", entry):
                yield f"looks for libraries in \"{entry}\", which is not relative to $ORIGIN"
            elif top not in pathlib.Path(os.path.normpath(entry.replace("$ORIGIN", str(path.parent)))).parents:
                yield f"looks for libraries in \"{entry}\", which is outside of {top}"
    for needed in re.findall(r"\(NEEDED\).*\[(.*)\]", text):
        if "/" in needed:
            yield f"needs a library by its path, {needed}"


def linked_problems(folder, said, allowed):
    for path, text in said.items():
        for problem in path_problems(path, folder, text, allowed):
            yield f"{path.relative_to(folder)} {problem}"


def main(build, cmake, readelf, *allowed):
    build = pathlib.Path(build).resolve()
    linked = read(readelf, objects_in(build), "-d")
    problems = [*linked_problems(build, linked, allowed)]
    with tempfile.TemporaryDirectory() as prefix:
        prefix = pathlib.Path(prefix).resolve()
        done = subprocess.run([cmake, "--install", str(build), "--prefix", str(prefix)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        installed = read(readelf, objects_in(prefix), "-d")
        problems += [f"installed: {problem}" for problem in linked_problems(prefix, installed, allowed)]
    for problem in problems[:20]:
        print(f"FAILED {problem}")
    print(f"{len(linked)} linked objects of the build tree, {len(installed)} installed: {len(problems)} problems")
    return 1 if problems or len(linked) < 4 or len(installed) < 2 else 0


sys.exit(main(*sys.argv[1:]))
