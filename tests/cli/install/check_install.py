# SPDX-License-Identifier: Apache-2.0
"""What `cmake --install` leaves works by itself: the command, its modules, a program by find_package, one by pkg-config,
graphs and machines by name, what the help names, and the same after the tree was moved.

check_install.py BUILD SOURCE CMAKE CC
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(somebody LANGUAGES C)
find_package({name} 0.1 REQUIRED)
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
    (prefix / "include").rename(prefix / "hidden")
    without = subprocess.run([prefix / "bin" / "gantry", "run", source / "tests" / "cli" / "graphs" / "partial.json", "--allow-code"], capture_output=True,
                             text=True, timeout=300, env={**os.environ, "XDG_CACHE_HOME": str(folder / f"other-{prefix.name}")})
    (prefix / "hidden").rename(prefix / "include")
    assert without.returncode == 3 and "headers are not installed, which the package libgantry-dev has" in without.stderr, without
    note.unlink()


def names_are_known(prefix, folder):
    """Nothing of the source is at hand: the current folder is empty, and the data are those that were installed."""
    gantry, clean, empty = prefix / "bin" / "gantry", {k: v for k, v in os.environ.items() if k != "GANTRY_DATA"}, folder / "empty"
    empty.mkdir()
    done = json.loads(run(gantry, "schedule", "mlp_step", "--machine", "dgx1-v100", "--effort", 0, "--json", env=clean, cwd=empty))
    assert done["graph"] == "mlp_step" and done["machine"] == "dgx1-v100", done
    assert "v100" in run(gantry, "machine", "dgx1-v100", env=clean, cwd=empty)
    assert json.loads(run(gantry, "run", "residual_stack", "--devices", 2, "--json", env=clean, cwd=empty))["backend"] == "host"  # it uses another
    assert "loss" in run(gantry, "train", "mlp", "--devices", 2, "--steps", 2, env=clean, cwd=empty)
    missing = subprocess.run([gantry, "dot", "mlp_stp"], env=clean, cwd=empty, capture_output=True, text=True)
    assert missing.returncode == 2 and 'did you mean "mlp_step"?' in missing.stderr, missing
    own = folder / "own"
    (own / "graphs").mkdir(parents=True)
    (own / "graphs" / "mine.json").write_text((prefix / "share/gantry/graphs/saxpy.json").read_text().replace("16777216", "64"))
    assert "saxpy on" in run(gantry, "run", "mine", "--devices", 1, env={**clean, "GANTRY_DATA": str(own)}, cwd=empty)
    (empty / "mine").write_text((own / "graphs" / "mine.json").read_text())  # a file that is there comes first
    assert "saxpy on" in run(gantry, "run", "mine", "--devices", 1, env=clean, cwd=empty)
    (empty / "mine").unlink()
    words = [run(gantry, "help", env=clean)] + [run(gantry, "help", name, env=clean) for name in commands(gantry)]
    used = set(re.findall(r"gantry (?:run|train|schedule|dot|compare|scale) ([a-z]\w*)(?![\w.])", "".join(words))) | set(re.findall(r"--machine ([a-z]\w*-\d\w*)", "".join(words)))
    known = {path.stem for path in (prefix / "share" / "gantry").rglob("*.json")}
    assert len(used) >= 6 and used <= known, used - known
    assert "graphs/" not in "".join(words), "the help names files of the source"
    empty.rmdir()
    shutil.rmtree(own)


def commands(gantry):
    return re.findall(r"^  (\w+) ", run(gantry, "help").split("usage:")[1].split("`gantry help")[0], re.M)


def page_and_completion(prefix):
    page = (prefix / "share/man/man1/gantry.1").read_text()
    assert page.startswith(".TH GANTRY 1") and all(f".SS gantry {name} " in page for name in commands(prefix / "bin/gantry"))
    script = prefix / "share/bash-completion/completions/gantry"
    words = run("bash", "-c", f'PATH={prefix}/bin:$PATH; source {script}; COMP_WORDS=(gantry run mlp); COMP_CWORD=2; _gantry; echo "${{COMPREPLY[@]}}"')
    assert words == "mlp_step\n", words


def with_find_package(prefix, folder, source, cmake, cc, name):
    project = folder / "project"
    project.mkdir()
    program = source / "tests" / "cli" / "install" / "program.c"
    (project / "CMakeLists.txt").write_text(PROJECT.format(program=program, name=name))
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
            names_are_known(prefix, folder)
            page_and_completion(prefix)
            with_find_package(prefix, folder, source, cmake, cc, "gantry" if prefix == first else "Gantry")
            with_pkg_config(prefix, folder, source, cc)
            if prefix == first:
                first.rename(second)
    print(f"the installed command, find_package and pkg-config work, blas module {'opened' if has_blas else 'not built'}")


if __name__ == "__main__":
    main(*sys.argv[1:])
