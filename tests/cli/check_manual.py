# SPDX-License-Identifier: Apache-2.0
"""Help, manual page and completion: each option of each command is in all three; the page is right for man; bash completes by what
was written. Examples that need no files of others work. docs/install.md has the variables of the environment that the code asks for, and no others.

check_manual.py GANTRY SOURCE
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


def run(*words, **more):
    return subprocess.run(words, capture_output=True, text=True, timeout=60, **more)


def commands(gantry):
    return re.findall(r"^  ([\w-]+) ", run(gantry, "help").stdout.split("usage:")[1].split("`gantry help")[0], re.M)


def options_of_help(gantry, command):
    text = run(gantry, "help", command).stdout
    options = text.split("\noptions\n")[1].split("\n\n")[0]
    assert max(map(len, options.split("\n"))) <= 100, options
    text = text.replace("\n" + 31 * " ", " ")  # lines that go on
    found = re.findall(r"^  --([\w-]+)(?: \S+)? +(\S.*)$", text.split("\noptions\n")[1].split("\n\n")[0], re.M)
    assert len(dict(found)) == len(found), f"{command}: an option is there twice"
    return dict(found)


def options_of_page(page, command):
    part = page.split(f".SS gantry {command} ", 1)[1].split("\n.S", 1)[0]
    return {name.replace("\\-", "-"): summary.replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")
            for name, summary in re.findall(r"\n\.TP\n\\fB\\-\\-([\w\\-]+)\\fR .*\n(.*)", part)}


def completed(gantry, script, *words):
    line = " ".join(f"'{word}'" for word in words)
    program = f'{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _gantry; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = run("bash", "-c", program, env={**os.environ, "PATH": f"{pathlib.Path(gantry).resolve().parent}:{os.environ['PATH']}"}, cwd="/")
    assert done.returncode == 0 and not done.stderr, done.stderr
    return set(done.stdout.split())


def check_page(page):
    assert not re.search(r"^['.](?!TH |SH |SS |TP|PP|nf|fi|B |I |RI )", page, re.M), "a line of text begins as a request"
    if not shutil.which("man"):
        print("skipped (no man): how the page looks")
        return
    done = run("man", "--warnings", "-E", "UTF-8", "-l", "-", input=page, env={**os.environ, "MANWIDTH": "100", "LC_ALL": "C.UTF-8"})
    assert done.returncode == 0 and not done.stderr, done.stderr
    assert "branch and bound" in done.stdout and "--effort 0..9" in done.stdout


def check_examples(gantry):
    """Of the commands that need no files of others, in the order of the help."""
    path = f"{pathlib.Path(gantry).resolve().parent}:{os.environ['PATH']}"
    for command in ("schedule", "check", "compare", "diff", "what-if", "kernels"):
        lines = re.findall(r"^  (gantry .*?)(?:   .*)?$", run(gantry, "help", command).stdout.split("\nexamples\n")[1], re.M)
        assert lines, command
        with tempfile.TemporaryDirectory() as folder:
            for line in lines:
                done = run("bash", "-c", line, cwd=folder, env={**os.environ, "PATH": path})
                assert done.returncode == 0, f"{line}: {done.returncode}: {done.stderr}"


def check_variables(source):
    asked = re.compile(r"""(?:getenv|gy_driver_switch|environ\.get)\("(GANTRY_\w+)\"""")
    files = [file for folder in ("src", "tools") for file in (source / folder).rglob("*") if file.suffix in (".c", ".py")]
    read = {name for file in files for name in asked.findall(file.read_text())}
    told = set(re.findall(r"`(GANTRY_\w+)`", (source / "docs/install.md").read_text().split("## Variables of the environment")[1]))
    assert len(read) >= 10 and read == told, f"read and not told: {read - told}; told and not read: {told - read}"


def main(gantry, source):
    check_variables(pathlib.Path(source))
    page, script = run(gantry, "help", "--man").stdout, run(gantry, "help", "--completion", "bash").stdout
    names, total = commands(gantry), 0
    assert len(names) >= 16, names
    for command in names:
        said = options_of_help(gantry, command)
        assert "help" in said and len(said) >= 2, said
        assert options_of_page(page, command) == said, f"{command}: the page has other options than the help"
        assert completed(gantry, script, "gantry", command, "--") == {"--" + name for name in said}, f"{command}: completion"
        total += len(said)
    assert options_of_help(gantry, "fmt")["check"].startswith("only looks"), "what --check means for graphs that run"
    check_page(page)
    check_examples(gantry)
    assert completed(gantry, script, "gantry", "") >= set(names)
    assert completed(gantry, script, "gantry", "sched") == {"schedule"}
    assert completed(gantry, script, "gantry", "help", "ke") == {"kernels"}
    assert completed(gantry, script, "gantry", "run", "chol") == {"cholesky"}
    assert completed(gantry, script, "gantry", "schedule", "cholesky", "--machine", "dgx1") == {"dgx1-v100"}
    assert completed(gantry, script, "gantry", "run", "cholesky", "--policy", "hef") >= {"heft", "heft-min"}
    assert completed(gantry, script, "gantry", "run", "cholesky", "--effort", "") == set()
    wrong = run(gantry, "help", "--completion", "fish")
    assert wrong.returncode == 2 and '"fish"; it must be bash' in wrong.stderr
    print(f"{total} options of {len(names)} commands are in help, page and completion")


main(*sys.argv[1:])
