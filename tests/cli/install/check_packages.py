# SPDX-License-Identifier: Apache-2.0
"""Debian packages by CPack: what is in each, what they need, and that they work where they were unpacked, without a path of the
build in them.

check_packages.py BUILD CPACK
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# What has to be in each, and nothing else may be: shell patterns become regular expressions by hand.
CONTENTS = {
    "libgantry0.1": r"/usr/lib/libgantry\.so\.0\.1(\.0)?",
    "libgantry-dev": r"/usr/include/gantry/\w+\.(h|hpp)|/usr/lib/libgantry\.so|/usr/lib/cmake/gantry/[\w-]+\.cmake|/usr/lib/pkgconfig/gantry\.pc",
    "gantry": r"/usr/bin/gantry|/usr/share/gantry/(graphs|machines)/[\w/.-]+\.json|/usr/share/gantry/graph\.schema\.json"
              r"|/usr/share/man/man1/gantry\.1|/usr/share/bash-completion/completions/gantry",
    "gantry-modules": r"/usr/lib/gantry/gantry-(blas|fftw|jpeg|png)\.so",
    "gantry-mpi": r"/usr/lib/gantry/gantry-mpi-(mpich|openmpi)\.so",
    "gantry-cuda": r"/usr/lib/gantry/gantry-cuda\.so",
    "python3-gantry": r"/usr/lib/python3/dist-packages/gantry/(\w+\.py|py\.typed)",
    "gantry-doc": r"/usr/share/doc/gantry/[\w/.-]+",
}
MUST = {"libgantry0.1", "libgantry-dev", "gantry", "python3-gantry", "gantry-doc"}  # others depend on what there is to build them with


def run(*words, **options):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=500, **options)
    if done.returncode:
        sys.exit(f"FAILED {' '.join(map(str, words))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def fields(package):
    return dict(line.split(": ", 1) for line in run("dpkg-deb", "-f", package).splitlines() if re.match(r"[\w-]+: ", line))


def check(package, name, said):
    files = [line.split(None, 5)[5].split(" -> ")[0][1:] for line in run("dpkg-deb", "-c", package).splitlines() if not line.startswith("d")]
    strange = [file for file in files if not re.fullmatch(CONTENTS[name], file)]
    assert files and not strange, f"{name} has {strange or 'nothing'}"
    assert len(files) == len(set(files))
    assert said["Version"] == "0.1.0" and said["Description"] and said["Maintainer"], said
    assert said["Architecture"] == ("all" if name in ("python3-gantry", "gantry-doc") else run("dpkg", "--print-architecture").strip()), said
    if name not in ("libgantry0.1", "gantry-doc"):
        assert "libgantry0.1 (= 0.1.0)" in said["Depends"], said
    if name == "libgantry0.1" and shutil.which("dpkg-shlibdeps"):
        assert "libjansson4" in said["Depends"] and "libhwloc15" in said["Depends"], said
    return set(files)


def works(root, build):
    """From where it was unpacked, with libraries of the system but none of the build."""
    gantry = root / "usr/bin/gantry"
    clean = {key: value for key, value in os.environ.items() if key not in ("LD_LIBRARY_PATH", "GANTRY_MODULES", "GANTRY_DATA")}
    done = json.loads(run(gantry, "run", "cholesky", "--param", "n=64", "--param", "nt=2", "--devices", 2, "--json", env=clean, cwd=root))
    assert done["backend"] == "host" and len(done["placement"]) == 4, done
    line = next(line for line in run("ldd", gantry, env=clean).splitlines() if "libgantry.so" in line)
    assert str(root) in line, line
    program = ("import gantry; g = gantry.Graph('x'); x = g.input('x', 8); y = g.buffer('y', 8, output=True); g.map('y = 2 * x', x=x, y=y);"
               "print(g(x=[1] * 8)['y'].sum(), gantry.__file__)")
    python = {**clean, "PYTHONPATH": str(root / "usr/lib/python3/dist-packages"), "GANTRY_LIBRARY": str(root / "usr/lib/libgantry.so.0.1")}
    try:
        import numpy  # noqa: F401
    except ImportError:
        print("skipped (no NumPy): the Python package")
    else:
        said = run("/usr/bin/python3", "-c", program, env=python, cwd=root)
        assert said.startswith("16.0 ") and str(root) in said, said
    for path in root.rglob("*"):  # the library knows the build's folder, to tell whether it is there (src/run/usercode/usercode_compile.c)
        if path.is_file() and not path.is_symlink() and not path.name.startswith("libgantry.so"):
            assert str(build).encode() not in path.read_bytes(), f"{path} names a folder of the build"


def main(build, cpack):
    if not shutil.which("dpkg-deb"):
        print("skipped: there is no dpkg-deb")
        sys.exit(77)
    build = pathlib.Path(build).resolve()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder).resolve()
        run(cpack, "-G", "DEB", "--config", build / "CPackConfig.cmake", "-B", folder / "packages")
        packages = {fields(path)["Package"]: path for path in (folder / "packages").glob("*.deb")}
        assert MUST <= set(packages) <= set(CONTENTS), set(packages) ^ set(CONTENTS)
        seen, root = set(), folder / "root"
        for name, path in packages.items():
            files = check(path, name, fields(path))
            assert not files & seen, f"{name} has files of another package: {files & seen}"
            seen |= files
            run("dpkg-deb", "-x", path, root)
        works(root, build)
    print(f"{len(packages)} packages: {', '.join(sorted(packages))}")


main(*sys.argv[1:])
