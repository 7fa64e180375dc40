# SPDX-License-Identifier: Apache-2.0
"""The protocols of counters: pages of docs/design and their models say the same, and Spin finds no mistake in the models, but one
where a part of the protocol is left out.

check_model.py quote | spin SOURCE    77: there is no Spin
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import spin

source = pathlib.Path(sys.argv[2]).resolve()
FOLDER = "tests/property/counters/"
MODELS = {  # The page that a model quotes, and what is left out of it.
    "counters.pml": ("counters.md", ["NO_RELEASE", "NO_ACQUIRE", "NO_CREDIT", "NO_EPOCH", "NO_VERDICT", "EARLY_VERDICT", "ANY_END"]),
    "push.pml": ("collectives.md", ["NO_RELEASE", "NO_ACQUIRE", "ONE_SLOT", "NO_WAIT"]),
    "gates.pml": ("gpu-graphs.md", ["NO_RELEASE", "NO_ACQUIRE", "NO_RESET", "NO_JOIN", "WAIT_FIRST", "GATE_FIRST"]),
    "meets.pml": ("gpu-graphs.md", ["NO_AHEAD", "NO_BEHIND", "NO_EPOCH"])}


def quote():
    for model, (name, _) in MODELS.items():
        page = (source / "docs" / "design" / name).read_text()
        quoted = re.findall(r"^<!-- quoted by (\S+) -->\n```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
        said = [text for by, text in quoted if by == FOLDER + model]
        if len(said) != 1:
            return f"docs/design/{name}: no text that {model} quotes, or more than one"
        if f"/*\n{said[0]}*/\n" not in (source / FOLDER / model).read_text():
            return f"{model}: the protocol is not that of docs/design/{name}; copy it again"
    return None


def variants():
    for model, (_, left_out) in MODELS.items():
        for variant in ["", *left_out]:
            found, states = spin.verify(source / FOLDER / model, [variant] if variant else [])
            print(f"{model}, {variant or 'the protocol'}: {states} states, {'a mistake' if found else 'no mistake'}")
            if found != bool(variant):
                return f"{model}, {variant or 'the protocol'}: {'no' if variant else 'a'} mistake was found"
    return None


if sys.argv[1] == "spin" and not spin.there():
    print("no spin, or no gcc for what it writes: tools/setup test installs it")
    sys.exit(77)
bad = quote() if sys.argv[1] == "quote" else variants()
print(bad or "right")
sys.exit(bad is not None)
