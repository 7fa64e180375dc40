# SPDX-License-Identifier: Apache-2.0
"""Nothing is loaded from the current folder, whatever lies there under the names of libraries and modules.

check_strangers.py COMMAND LIBRARY STRANGER MOVER SOURCE

The current folder has a copy of STRANGER under each name that the command asks the loader for, and under those that it
asks for on other computers. A stranger notes that it was loaded; the loader says which files it tried (LD_DEBUG=libs).
That a stranger is seen when it is loaded is tried, too.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# What is asked for where other libraries are installed than here.
ELSEWHERE = """libjansson.so.4 libhwloc.so.15 libopenblas.so.0 liblapacke.so.3 libfftw3.so.3 libfftw3f.so.3 libturbojpeg.so.0 libpng16.so.16 libcuda.so.1 libnvidia-ml.so.1 libnccl.so.2
libnvrtc.so libnvrtc.so.13 libnvrtc.so.12 libnvrtc.so.11.2 libcublas.so.13 libcublas.so.12 libcublas.so.11 libcusolver.so.12
libcusolver.so.11 libcupti.so.13 libcupti.so.12 libcupti.so.11.8 gantry-cuda.so gantry-blas.so gantry-fftw.so gantry-jpeg.so gantry-png.so""".split()
CLEAN = {key: value for key, value in os.environ.items()
         if not key.startswith(("LD_", "GANTRY_", "FAKE_")) and key != "STRANGER_NOTE"}
CLEAN["CUDA_VISIBLE_DEVICES"] = ""  # libraries are looked for all the same, and nothing is measured


class Watch:
    """Runs commands in a folder of strangers and says what was loaded, or would have been."""

    def __init__(self, top):
        self.folder, self.note, self.log = top / "here", top / "note", top / "loader"
        self.wrong = 0

    def run(self, words, env, cwd):
        self.note.write_text("")
        done = subprocess.run([str(word) for word in words], cwd=cwd, capture_output=True, text=True, timeout=300,
                              env={**CLEAN, **env, "STRANGER_NOTE": str(self.note), "LD_DEBUG": "libs", "LD_DEBUG_OUTPUT": str(self.log)})
        logs = list(self.log.parent.glob(self.log.name + ".*"))
        assert logs, "the loader writes no log: it does not know LD_DEBUG_OUTPUT"
        text = "".join(file.read_text(errors="replace") for file in logs)
        for file in logs:
            file.unlink()
        self.asked = re.findall(r"find library=(\S+)", text)
        self.tried = re.findall(r"trying file=(.*)", text)
        self.loaded = re.findall(r"calling init: (.*)", text) + self.note.read_text().split()
        return done

    def is_strange(self, path):
        return not path.startswith("/") or str(self.folder) in path

    def refuse(self, title, words, env, has=(), code=None, cwd=None, own=None):
        """`has`: what must be said; `own`: the one relative path that the program opens itself."""
        done = self.run(words, env, cwd or self.folder)
        said = done.stdout + done.stderr
        problems = [f"loads {path}" for path in sorted(filter(self.is_strange, set(self.loaded) - {own}))]
        problems += [f"tries {path}" for path in sorted(filter(self.is_strange, set(self.tried) - {own}))][:3]
        problems += [f"does not say {text!r}" for text in has if text not in said]
        problems += [f"ends with {done.returncode}"] if code is not None and done.returncode != code else []
        for problem in problems:
            print(f"FAILED {title}: {problem}")
        if problems:
            print(said[:1000])
        self.wrong += bool(problems)

    def accept(self, title, words, env, name):
        """What the user names is loaded; and so it is known that a stranger is seen."""
        self.run(words, env, self.folder)
        if f"{self.folder}/{name}" not in self.tried + self.loaded:
            print(f"FAILED {title}: {name} is not loaded from the folder that the user names")
            self.wrong += 1


def settle(folder, stranger, names):
    for below in ("", "lib", "gantry", "lib/gantry"):
        (folder / below).mkdir(exist_ok=True)
        for name in names:
            shutil.copy(stranger, folder / below / name)


def try_settings(watch, command, describe, small, bench, has_cuda):
    module = ["module: gantry-cuda.so, build id "] if has_cuda else []
    watch.refuse("the version", [command, "--version"], {}, ["gantry 0.1.0\n"], 0)
    watch.refuse("a run", small, {}, code=0)
    watch.refuse("the machine", describe, {}, ["back ends\n", *module], 0)
    watch.refuse("the bench", bench, {})
    for value in (".", "lib", "./", "gantry/../lib"):
        env = {"GANTRY_MODULES": value}
        watch.refuse(f"GANTRY_MODULES={value}", describe, env, [f'GANTRY_MODULES is "{value}"'], 0)
        watch.refuse(f"GANTRY_MODULES={value}, a run", small, env, code=0)
    for value in (".", "lib", "/nonexistent:lib", ":.:"):
        env, entry = {"GANTRY_CUDA_LIBRARIES": value}, value.strip(":").split(":")[-1]
        watch.refuse(f"GANTRY_CUDA_LIBRARIES={value}", describe, env, [f'GANTRY_CUDA_LIBRARIES has "{entry}"'] if has_cuda else [], 0)
        watch.refuse(f"GANTRY_CUDA_LIBRARIES={value}, the bench", bench, env)
    for value in ("", ":", "::/nonexistent"):  # what is empty counts as none
        env = {"GANTRY_CUDA_LIBRARIES": value, "GANTRY_MODULES": ""}
        watch.refuse(f"GANTRY_CUDA_LIBRARIES={value}", describe, env, module, 0)


def try_named(watch, command, describe, has_cuda):
    where = str(watch.folder)
    watch.accept("LD_LIBRARY_PATH", [command, "--version"], {"LD_LIBRARY_PATH": where}, "libjansson.so.4")
    watch.accept("GANTRY_MODULES", describe, {"GANTRY_MODULES": where}, "gantry-cuda.so")
    if has_cuda:
        watch.accept("GANTRY_CUDA_LIBRARIES", describe, {"GANTRY_CUDA_LIBRARIES": f"/nonexistent:{where}"}, "libnccl.so.2")


def try_headers(top, mover, library):
    """The same program, where a stranger's folder has headers at the place that the relative path leads to."""
    code, stranger = top / "code", top / "headers" / library.parent.name
    code.mkdir()
    stranger.mkdir(parents=True)
    (code / "own.c").write_text("#include <gantry/kernel.h>\ngantry_status own(const gantry_launch *l)\n{\n    return l ? GANTRY_OK : GANTRY_E_INVALID;\n}\n")
    (code / "own.json").write_text(json.dumps({
        "gantry": 1, "kernels": {"own": {"host": "own.c", "args": [{"name": "y", "access": "write"}]}},
        "buffers": {"y": {"dtype": "f32", "shape": [4], "output": True}},
        "nodes": [{"id": "n", "kernel": "own", "args": {"y": "y"}}]}))
    for include in (top / "headers" / "include", stranger / "include"):
        (include / "gantry").mkdir(parents=True)
        (include / "gantry" / "kernel.h").write_text("#error a header of a stranger\n")
    said = subprocess.run([mover, f"./{library.parent.name}/{library.name}", top / "headers", code / "own.json"],
                          cwd=library.parent.parent, env={**os.environ, "XDG_CACHE_HOME": str(top / "cache")},
                          capture_output=True, text=True)
    if said.stdout.strip() == "usable":
        return 0
    print(f"headers beside the library: {said.stdout}{said.stderr}")
    return 1


def main(command, library, stranger, mover, source):
    with tempfile.TemporaryDirectory() as top:
        top, library = pathlib.Path(top).resolve(), pathlib.Path(library)
        watch = Watch(top)
        small = [command, "run", pathlib.Path(source) / "graphs" / "cholesky.json", "--param", "n=64", "--param", "nt=2", "--devices", 2]
        describe, bench = [command, "machine"], [command, "bench", "peer", "--devices", 2]
        names, said = set(ELSEWHERE), ""
        for words in (small, bench, describe):
            said = watch.run(words, {}, top).stdout
            names.update(watch.asked)
        names.discard("libc.so.6")  # with another one, the loader ends the process before there is anything to see
        has_cuda = "module: gantry-cuda.so, build id " in said
        watch.folder.mkdir()
        settle(watch.folder, stranger, names)

        try_settings(watch, command, describe, small, bench, has_cuda)
        # A program that opened the library by a relative path and went elsewhere: modules are those beside the library.
        own = f"./{library.parent.name}/{library.name}"
        has = ["module: gantry-cuda.so, build id " if has_cuda else f"gantry-cuda.so was not found in {library.parent} and "]
        watch.refuse("another folder", [mover, own, watch.folder], {}, has, 0, library.parent.parent, own)
        watch.wrong += try_headers(top, mover, library)
        try_named(watch, command, describe, has_cuda)
        print(f"{len(names)} names of libraries in the current folder, {watch.wrong} failures")
        return 1 if watch.wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
