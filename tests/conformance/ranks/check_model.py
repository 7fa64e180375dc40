# SPDX-License-Identifier: Apache-2.0
"""Losses of ranks as a model, losses.pml: Spin finds no mistake in any order of events, but one where a part of it is left out.

check_model.py    77: there is no Spin
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "support"))
import spin

MODEL = pathlib.Path(__file__).resolve().parent / "losses.pml"
# Ranks, losses, the part that is left out; is there a mistake?
CASES = ((2, 1, "", False), (3, 1, "", False), (2, 2, "", False), (2, 1, "NO_BEATS", True), (2, 1, "NO_LEAVE", True), (2, 1, "NO_RENAME", True), (2, 1, "NO_WAIT", True))

if not spin.there():
    print("no spin, or no gcc for what it writes: tools/setup test installs it")
    sys.exit(77)
wrong = 0
for ranks, losses, without, expected in CASES:
    found, states = spin.verify(MODEL, [f"RANKS={ranks}", f"LOSSES={losses}", *([without] if without else [])])
    print(f"{ranks} ranks, {losses} lost, {without or 'all parts'}: {states} states, {'a mistake' if found else 'no mistake'}", flush=True)
    wrong += found != expected
sys.exit(wrong > 0)
