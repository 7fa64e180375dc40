# SPDX-License-Identifier: Apache-2.0
"""What `cmake --install` leaves works by itself: the command, its modules, a program by find_package, one by pkg-config,
and the same after the tree was moved.

check_install.py BUILD SOURCE CMAKE CC
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(somebody LANGUAGES C)
find_package(gantry 0.1 REQUIRED)
add_executable(program {program})
target_link_libraries(program PRIVATE gantry::gantry)
"""
EXPECTED = "gantry 0.1.0: 4 4\n"


def run(*words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=300, **options)
    if done.returncode:
        sys.exit(f"FAILED {' '.join(map(str, words))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def command_works(prefix, folder, source, has_blas):
    gantry = prefix / "bin" / "gantry"
    small = ["run", source / "graphs" / "cholesky.json", "--param", "n=64", "--param", "nt=2", "--devices", 2, "--json"]
    clean = {key: value for key, value in os.environ.items() if key not in ("LD_LIBRARY_PATH", "GANTRY_MODULES")}
    assert run(gantry, "--version", env=clean) == "gantry 0.1.0\n"
    libraries = [line for line in run("ldd", gantry, env=clean).splitlines() if "libgantry.so" in line]
    assert len(libraries) == 1 and str(prefix) in libraries[0], libraries
    assert json.loads(run(gantry, *small, env=clean))["backend"] == "host"
    if has_blas:  # the loader names every file that it opens
        log = subprocess.run([gantry, *map(str, small)], env={**clean, "LD_DEBUG": "files"}, capture_output=True, text=True,
                             timeout=300).stderr
        assert any(str(prefix) in line and "gantry-blas.so" in line for line in log.splitlines()), "gantry-blas.so was not opened"


def own_kernels_compile(prefix, folder, source, cc):
    """With the headers that were installed: a compiler that notes how it is called."""
    note, compiler = folder / "called", folder / "compiler"
    compiler.write_text(f'#!/bin/sh\necho "$@" >> {note}\nexec {cc} "$@"\n')
    compiler.chmod(0o755)
    cache = folder / f"cache-{prefix.name}"
    run(prefix / "bin" / "gantry", "run", source / "tests" / "cli" / "graphs" / "partial.json", "--allow-code",
        env={**os.environ, "XDG_CACHE_HOME": str(cache), "CC": str(compiler)})
    words = next(line for line in note.read_text().splitlines() if "half.c" in line).split()
    first = pathlib.Path(words[words.index("-I") + 1]).resolve()
    assert (first / "gantry" / "kernel.h").exists() and str(first).startswith(str(prefix)), first
    searched = [word for before, word in zip(words, words[1:]) if before == "-I"]
    assert not any(pathlib.Path(word).resolve().is_relative_to(source) for word in searched), searched
    note.unlink()


def with_find_package(prefix, folder, source, cmake, cc):
    project = folder / "project"
    project.mkdir()
    program = source / "tests" / "cli" / "install" / "program.c"
    (project / "CMakeLists.txt").write_text(PROJECT.format(program=program))
    run(cmake, "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_C_COMPILER={cc}")
    run(cmake, "--build", project / "build")
    assert run(project / "build" / "program") == EXPECTED
    shutil.rmtree(project)


def with_pkg_config(prefix, folder, source, cc):
    where = [path.parent for path in prefix.rglob("gantry.pc")]
    assert len(where) == 1, where
    flags = run("pkg-config", "--cflags", "--libs", "gantry", env={**os.environ, "PKG_CONFIG_PATH": str(where[0])}).split()
    program = folder / "program"
    run(cc, source / "tests" / "cli" / "install" / "program.c", "-o", program, *flags)
    libraries = {flag[2:] for flag in flags if flag.startswith("-L")}
    assert run(program, env={**os.environ, "LD_LIBRARY_PATH": ":".join(libraries)}) == EXPECTED
    program.unlink()


def main(build, source, cmake, cc):
    source, build = pathlib.Path(source).resolve(), pathlib.Path(build)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder).resolve()
        first, second = folder / "first", folder / "second"
        run(cmake, "--install", build, "--prefix", first)
        has_blas = any(build.glob("lib/gantry-blas.so"))
        for prefix in (first, second):
            command_works(prefix, folder, source, has_blas)
            own_kernels_compile(prefix, folder, source, cc)
            with_find_package(prefix, folder, source, cmake, cc)
            with_pkg_config(prefix, folder, source, cc)
            if prefix == first:
                first.rename(second)
    print(f"the installed command, find_package and pkg-config work, blas module {'opened' if has_blas else 'not built'}")


if __name__ == "__main__":
    main(*sys.argv[1:])
