# SPDX-License-Identifier: Apache-2.0
"""Every block of Python in docs/python.md, README.md, docs/cookbook.md, docs/tutorials/torch.md and docs/tutorials/python.md, run in order: asserts hold, and what comments behind a print say is
printed. A block of text below a program is what that prints: but for numbers, which are of a computer, and for what "..." stands for."""
import contextlib
import io
import os
import re
import sys
import tempfile

from suite import ROOT


def blocks(text):
    """The line each block begins at, and its program."""
    for found in re.finditer(r"```python\n(.*?)```", text, re.S):
        yield text.count("\n", 0, found.start(1)) + 1, found.group(1)


def promised(program):
    """What comments behind a plain print(error) say of its output, without the place in front."""
    return [text.removeprefix("...: ") for text in re.findall(r"print\(error\) +# (.*)", program)]


def without_numbers(text):
    return [" ".join(re.sub(r"\d+(\.\d+)?", "#", line).split()) for line in text.strip().split("\n")]


def is_shown(said, shown):
    """Lines of `shown` follow each other in what was said, "..." is any number of lines."""
    pattern = "\n".join(".*" if line == "..." else re.escape(line) for line in without_numbers(shown))
    return re.fullmatch(pattern, "\n".join(without_numbers(said)), re.S) is not None


def check(path, least):
    text, names, seen, wrong = (ROOT / path).read_text(), {"__name__": path}, 0, 0
    for line, program in blocks(text):
        seen += 1
        told = io.StringIO()
        with contextlib.redirect_stdout(told):
            exec(compile("\n" * (line - 1) + program, path, "exec"), names)
        missing = [words for words in promised(program) if words not in told.getvalue()]
        shown = re.search(r"```\n\nprints `([^`]*)`", text[text.index(program):text.index(program) + len(program) + 200])
        if shown and shown.group(1) not in told.getvalue():
            missing.append(shown.group(1))
        output = re.match(r"\n+```text\n(.*?)```", text[text.index(program) + len(program) + len("```"):], re.S)
        if output and not is_shown(told.getvalue(), output.group(1)):
            missing.append(output.group(1))
        for words in missing:
            print(f"{path}:{line}: {words!r} was not printed, but:\n{told.getvalue()}")
            wrong += 1
    print(f"{path}: {seen} blocks")
    assert seen >= least, f"{path} has {seen} blocks of Python, {least} were expected"
    return wrong


os.chdir(ROOT)
wrong = check("docs/python.md", 12) + check("README.md", 1) + check("docs/cookbook.md", 1) + check("docs/tutorials/torch.md", 1)
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)  # what the tutorial writes goes with it
    wrong += check("docs/tutorials/python.md", 9)
    written = {path: os.path.getsize(path) for path in sorted(os.listdir("."))}
    os.chdir(ROOT)
assert set(written) == {"measured.html", "plan.html", "plan.svg"} and min(written.values()) > 1000, written
sys.exit(wrong > 0)
