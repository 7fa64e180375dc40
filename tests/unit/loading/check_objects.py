# SPDX-License-Identifier: Apache-2.0
"""What the built objects say of how they are loaded and guarded, read with readelf: everything in the build tree, and what
`cmake --install` leaves in a folder of its own.

check_objects.py BUILD CMAKE READELF GUARDS [ALLOWED...]

Where an object looks for libraries: no empty entry, no relative one, none that is not relative to $ORIGIN or leads out of
the tree, but those ALLOWED, which are folders that whoever built it named in CMAKE_INSTALL_RPATH. GUARDS, joined by ",",
are those that the compiler has and the build wants: `stack`, `fortify`, `cet`. The others are for every build.
"""
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

SHIPPED = ("gantry", "libgantry.so", "gantry-cuda.so", "gantry-blas.so", "gantry-fftw.so", "gantry-jpeg.so", "gantry-png.so")
OURS = ("src", "scheduler", "kernels", "tools")  # folders of the build tree with objects that become those
LEAST_STACK = 50  # percent of the objects: -fstack-protector-strong guards three of four, -fstack-protector one
REL, EXEC, DYN = 1, 2, 3
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
            if kind in (REL, EXEC, DYN):
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


def memory_problems(text):
    if re.search(r"GNU_STACK.*\bRWE\b", text) or "GNU_STACK" not in text:
        yield "has an executable stack"
    if "TEXTREL" in text:
        yield "has code that the loader writes to"
    if re.search(r"LOAD .*\bRWE\b", text):
        yield "has memory that is both written and executed"


def guard_problems(text, is_command):
    if "GNU_RELRO" not in text:
        yield "keeps its tables of addresses writable: no -z relro"
    if not re.search(r"\(FLAGS\).*BIND_NOW|\(FLAGS_1\).*\bNOW\b|\(BIND_NOW\)", text):
        yield "keeps its table of functions writable: no -z now"
    if is_command and not re.search(r"\(FLAGS_1\).*\bPIE\b", text):
        yield "is loaded at a fixed address: no -pie"


def calls(text):
    return set(re.findall(r"\bUND\s+(\w+)", text))


def object_problems(said, guards):
    """Of the objects before they are linked: how many call the guards, and marks of each for jumps to be checked."""
    undefined = {path: calls(text) for path, text in said.items()}
    stack = sum("__stack_chk_fail" in names for names in undefined.values())
    checked = {name for names in undefined.values() for name in names if re.fullmatch(r"__\w+_chk", name)}
    if "stack" in guards and stack * 100 < len(said) * LEAST_STACK:
        yield f"{stack} of {len(said)} objects guard their stack, and {LEAST_STACK} % should: no -fstack-protector-strong"
    if "fortify" in guards and len(checked) < 5:
        yield f"only {sorted(checked)} are called in checked forms: no -D_FORTIFY_SOURCE"
    print(f"{len(said)} objects: {stack} guard their stack; checked: {' '.join(sorted(checked)) or 'none'}")
    if "cet" in guards:
        for path, text in said.items():
            if not re.search(r"x86 feature: .*IBT.*SHSTK", text):
                yield f"{path} is not marked for checked jumps: no -fcf-protection"


def is_shipped(path):
    return path.name.split(".so")[0] + (".so" if ".so" in path.name else "") in SHIPPED


def linked_problems(folder, said, allowed, shipped):
    for path, text in said.items():
        problems = [*path_problems(path, folder, text, allowed), *memory_problems(text)]
        if shipped(path):
            problems += guard_problems(text, path.name == "gantry")
        for problem in problems:
            yield f"{path.relative_to(folder)} {problem}"


def main(build, cmake, readelf, guards, *allowed):
    build, guards = pathlib.Path(build).resolve(), guards.split(",")
    flags = ("-d", "-l")
    built = objects_in(build)
    linked = read(readelf, [path for path, kind in built.items() if kind != REL], *flags)
    ours = [path for path, kind in built.items() if kind == REL and path.relative_to(build).parts[0] in OURS]
    problems = [*linked_problems(build, linked, allowed, lambda path: path.parent in (build / "bin", build / "lib") and is_shipped(path))]
    problems += object_problems(read(readelf, ours, "-s", "-n"), guards)
    with tempfile.TemporaryDirectory() as prefix:
        prefix = pathlib.Path(prefix).resolve()
        done = subprocess.run([cmake, "--install", str(build), "--prefix", str(prefix)], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        installed = read(readelf, objects_in(prefix), *flags)
        problems += [f"installed: {problem}" for problem in linked_problems(prefix, installed, allowed, lambda path: True)]
    for problem in problems[:20]:
        print(f"FAILED {problem}")
    if problems:
        print(f"What no target makes any more is removed by: ninja -C {build} -t cleandead")
    print(f"{len(linked)} linked objects of the build tree, {len(installed)} installed, {len(ours)} that are not linked yet: {len(problems)} problems")
    return 1 if problems or len(linked) < 4 or len(installed) < 2 or len(ours) < 100 else 0


sys.exit(main(*sys.argv[1:]))
