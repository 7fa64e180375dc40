# SPDX-License-Identifier: Apache-2.0
"""The protocol of counters: docs/design/counters.md and its model say the same, and Spin finds no mistake in the model, but one
where a part of the protocol is left out.

check_model.py quote | spin SOURCE    77: there is no Spin
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import spin

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


def variants():
    for variant, wrong in VARIANTS.items():
        found, states = spin.verify(model, [variant] if variant else [])
        print(f"{variant or 'the protocol'}: {states} states, {'a mistake' if found else 'no mistake'}")
        if found != wrong:
            return f"{variant or 'the protocol'}: {'no' if wrong else 'a'} mistake was found"
    return None


if sys.argv[1] == "spin" and not spin.there():
    print("no spin, or no gcc for what it writes: tools/setup test installs it")
    sys.exit(77)
bad = quote() if sys.argv[1] == "quote" else variants()
print(bad or "right")
sys.exit(bad is not None)
