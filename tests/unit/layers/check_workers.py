# SPDX-License-Identifier: Apache-2.0
"""Kernels that plans take to have a device form (src/kernel/workers.c) are those that the resident kernel has functions of."""
import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
planned = set(re.findall(r'"(\w+)"', (root / "src/kernel/workers.c").read_text().split("known[]")[1].split("};")[0]))
functions = re.findall(r"^(?:\w+)\((\w+)(?:, \w+)?\)$", (root / "kernels/resident/functions.def").read_text(), re.M)
names = {name for name in functions if not name.startswith(("resident_", "fill_"))}
wrong = [f"{name}: no function of kernels/resident/functions.def begins so" for name in planned if not any(f == name or f.startswith(name + "_") for f in names)]
wrong += [f"{f}: its kernel is not in src/kernel/workers.c" for f in names if not any(f == name or f.startswith(name + "_") for name in planned)]
if not planned or not names:
    wrong.append("nothing was found to compare")
print("\n".join(wrong))
sys.exit(bool(wrong))
