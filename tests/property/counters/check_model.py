# SPDX-License-Identifier: Apache-2.0
"""The protocol of counters: docs/design/counters.md and its model say the same, and Spin finds no mistake in the model, but one
where a part of the protocol is left out.

check_model.py quote | spin SOURCE    77: there is no Spin
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

source = pathlib.Path(sys.argv[2]).resolve()
model = source / "tests" / "property" / "counters" / "counters.pml"
VARIANTS = {"": False, "NO_RELEASE": True, "NO_ACQUIRE": True, "NO_CREDIT": True, "NO_EPOCH": True, "NO_VERDICT": True,
            "EARLY_VERDICT": True, "ANY_END": True}


def quote():
    page = (source / "docs" / "design" / "counters.md").read_text()
    said = re.findall(r"^<!-- quoted by (\S+) -->\n```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    if [name for name, _ in said] != [str(model.relative_to(source))]:
        return "docs/design/counters.md: no text that the model quotes, or more than one"
    if f"/*\n{said[0][1]}*/\n" not in model.read_text():
        return f"{model}: the protocol is not that of docs/design/counters.md; copy it again"
    return None


def verify(variant, folder):
    """Whether all states were looked at, and whether one of them is wrong."""
    def call(*words):
        return subprocess.run(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=200).stdout
    call("spin", *([f"-D{variant}"] if variant else []), "-a", str(model))
    call("gcc", "-O1", "-w", "-DSAFETY", "-o", "pan", "pan.c")
    said = call("./pan", "-m100000")
    errors = re.search(r"errors: (\d+)", said)
    states = re.search(r"(\d+) states, stored", said)
    if not errors or not states or "truncated" in said or "max search depth too small" in said:
        raise RuntimeError(said)
    return int(errors[1]) > 0, int(states[1])


def spin():
    for variant, wrong in VARIANTS.items():
        with tempfile.TemporaryDirectory() as folder:
            found, states = verify(variant, folder)
        print(f"{variant or 'the protocol'}: {states} states, {'a mistake' if found else 'no mistake'}")
        if found != wrong:
            return f"{variant or 'the protocol'}: {'no' if wrong else 'a'} mistake was found"
    return None


if sys.argv[1] == "spin" and not (shutil.which("spin") and shutil.which("gcc")):
    print("no spin, or no gcc for what it writes: tools/setup test installs it")
    sys.exit(77)
bad = quote() if sys.argv[1] == "quote" else spin()
print(bad or "right")
sys.exit(bad is not None)
