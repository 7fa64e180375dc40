# SPDX-License-Identifier: Apache-2.0
"""Commands that README.md and the pages below show, and their graphs and kernels: they work as they stand, in the order of the page. What README.md shows in C is of an example
that is built and run. The table of docs/kernels.md names every kernel, and no other.

check_docs.py GANTRY ROOT
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile


# The pages, and how many commands each has at least.
PAGES = {"README.md": 5, "docs/guide.md": 5, "docs/install.md": 3, "docs/train.md": 5, "docs/viewer.md": 8, "docs/gpus.md": 3, "docs/machine-format.md": 2, "docs/ranks.md": 2,
         "docs/reliability.md": 2}
# Commands that want GPUs, a file of the reader's, several processes, or that do not end by themselves.
LEFT_OUT = re.compile(r"--backend cuda|machine calibrate|image_blur.json --iterations|gantry doctor|mine\.json|a\.json b\.json --link|ab\.json|--processes|gantry serve|jacobi_until.json --machine dgx-h100|s.json --ranks")


def commands(text):
    """Lines of code blocks by indentation that begin with the command; comments behind them do not count."""
    lines = [line.split("   #")[0].strip() for line in text.splitlines() if re.match(r" {4}gantry ", line)]
    return [line for line in lines if not LEFT_OUT.search(line)]


def block(file, language):
    """The first block of code of this language."""
    return re.search(rf"```{language}\n(.*?)```", file.read_text(), re.S).group(1)


def run(line, folder, environment):
    if "| dot" in line and not shutil.which("dot"):
        print(f"skipped (no graphviz): {line}")
        return True
    done = subprocess.run(["bash", "-o", "pipefail", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    if done.returncode or not (done.stdout or ">" in line):
        print(f"FAILED {line}: exit {done.returncode}\n{done.stderr}")
        return False
    return True


def kernel_table(page, names):
    """Every kernel has a row in the table, which says what a GPU does and what bits it gives; and every name in it is one, or a word of a kernel."""
    table = re.search(r"^## Kernels of the library$(.*?)^On CPUs", page, re.M | re.S).group(1)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines() if line.startswith("|")][2:]
    wrong = [row for row in rows if len(row) != 4 or not all(row[1:])]
    assert not wrong, f"docs/kernels.md: rows of the table that say nothing of GPUs or bits: {wrong}"
    found = [name for row in rows for name in re.findall(r"`(\w+)`", row[1])]
    words = {"axis", "axes", "inverse", "first", "of", "sign"}
    assert not set(names) - set(found), f"the table of docs/kernels.md does not name {sorted(set(names) - set(found))}"
    strangers = set(found) - set(names) - words
    assert not strangers, f"the table of docs/kernels.md names {sorted(strangers)}, which gantry kernels does not"


def main(gantry, root):
    root = pathlib.Path(root)
    environment = dict(os.environ, PATH=f"{pathlib.Path(gantry).parent}:{os.environ['PATH']}")
    good = bad = 0
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(root / "graphs", pathlib.Path(folder) / "graphs")
        lines = []
        for name, least in PAGES.items():
            found = commands((root / name).read_text())
            assert len(found) >= least, f"{name} shows {len(found)} commands; are they still indented by four?"
            lines += found
        for name, graph in ("docs/guide.md", "norms.json"), ("README.md", "squares.json"):
            (pathlib.Path(folder) / graph).write_text(block(root / name, "json"))
        gpus = re.findall(r"```(?:c|json)\n(.*?)```", (root / "docs/gpus.md").read_text(), re.S)
        for name, content in zip(("blend.cu", "blend.c", "blend.json"), gpus):
            (pathlib.Path(folder) / name).write_text(content)
        assert block(root / "README.md", "c") in (root / "docs/examples/squares.c").read_text(), "README.md shows C that docs/examples/squares.c has not"
        names = re.findall(r"^(\w+):", subprocess.run([gantry, "kernels"], capture_output=True, text=True, check=True).stdout, re.M)
        assert len(names) > 30
        kernel_table((root / "docs/kernels.md").read_text(), names)
        for line in [*lines, "gantry run norms.json --devices 2 --check", "gantry run squares.json --devices 3 --check"]:
            passed = run(line, folder, environment)
            good, bad = good + passed, bad + (not passed)
    print(f"{good} passed, {bad} failed")
    return bad > 0


sys.exit(main(sys.argv[1], sys.argv[2]))
