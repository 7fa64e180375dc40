# SPDX-License-Identifier: Apache-2.0
"""The command, case by case: cases.toml says what is typed and what comes of it.

check_cases.py GANTRY SOURCE [PART OF A NAME]
"""
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile
import tomllib

KEYS = {"name", "words", "code", "out", "err", "out_has", "err_has", "in", "in_file", "env", "writes"}


def run(command, case, folder):
    data = (folder / case["in_file"]).read_bytes() if "in_file" in case else case.get("in", "").encode()
    done = subprocess.run([command, *shlex.split(case["words"])], input=data, capture_output=True, timeout=60, cwd=folder,
                          env={**os.environ, "XDG_CACHE_HOME": str(folder.parent / "cache"), **case.get("env", {})})
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def compare(title, got, case, key, empty):
    if key in case:
        want = case[key].strip("\n")
        if got.rstrip("\n") != want:
            yield f"{title} is\n{got}\nnot\n{want}"
    elif key + "_has" in case:
        for part in filter(None, case[key + "_has"].split("\n")):
            if part not in got:
                yield f"{title} lacks {part!r}:\n{got}"
    elif empty and got:
        yield f"{title} should be empty:\n{got}"


def problems(command, case, folder):
    if set(case) - KEYS:
        yield f"keys {set(case) - KEYS} mean nothing"
    before = {path.name for path in folder.iterdir()}
    code, out, err = run(command, case, folder)
    want = case.get("code", 0)
    if code != want:
        yield f"exit code {code}, not {want}\n{err}"
    yield from compare("standard output", out, case, "out", want != 0)
    yield from compare("standard error", err, case, "err", want == 0)
    if want and code and not err:
        yield "failed without a word"
    if want and "\n" in err.rstrip("\n") and "err_has" not in case and "\n" not in case.get("err", "").strip("\n"):
        yield f"a message takes one line:\n{err}"
    written = {path.name for path in folder.iterdir()} - before
    if written != set(case.get("writes", [])):
        yield f"wrote {sorted(written)}, not {case.get('writes', [])}"


def main(command, source, part=""):
    source, failed = pathlib.Path(source).resolve(), 0
    here = pathlib.Path(__file__).resolve().parent
    cases = [c for c in tomllib.loads((here / "cases.toml").read_text())["case"] if part in c["name"]]
    for case in cases:
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary) / "run"
            folder.mkdir()
            (folder / "graphs").symlink_to(source / "graphs")
            (folder / "cli").symlink_to(here / "graphs")
            found = list(problems(os.path.abspath(command), case, folder))
        if found:
            failed += 1
            print(f"FAILED {case['name']}: gantry {case['words']}", *found, sep="\n  ", end="\n\n")
    print(f"{len(cases) - failed} passed, {failed} failed")
    return 1 if failed or not cases else 0


sys.exit(main(*sys.argv[1:]))
