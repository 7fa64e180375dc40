# SPDX-License-Identifier: Apache-2.0
"""Writes the C++ source of a library of emulated kernels: the kernels of a .cu, and a table of them.

    kernels.py SOURCE OUTPUT COMPILER ARGUMENT...

The compiler's preprocessor is run on the source, so kernels may come from macros and headers. A kernel is a function
`extern "C" __global__ void NAME(...)`.
"""
import re
import subprocess
import sys


def kernels_of(source, command):
    """Names, and the most threads by __launch_bounds__ ("0": not given)."""
    text = subprocess.run(command + ["-DCUDA_EMULATOR_NAMES", "-x", "c++", "-E", "-P", source], check=True,
                          capture_output=True, text=True).stdout
    bounds = r"(?:CUDA_EMULATOR_BOUNDS (.*?) CUDA_EMULATOR_END\s*)?"
    found = re.findall(rf"\bCUDA_EMULATOR_GLOBAL\s+{bounds}void\s+{bounds}(\w+)\s*\(", text, re.S)
    return {name: before or after or "0" for before, after, name in found}


def first_of(text):
    """Of arguments that commas separate."""
    depth = 0
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            return text[:i]
    return text


def main():
    source, output, command = sys.argv[1], sys.argv[2], sys.argv[3:]
    kernels = kernels_of(source, command)
    if not kernels:
        sys.exit(f"{source}: no kernels: extern \"C\" __global__ void NAME(...)")
    lines = [f'#include "{source}"', "", "static constexpr emulator_kernel emulated_table[] = {"]
    lines += [f"    EMULATED_KERNEL({name}, ({first_of(bounds)}))," for name, bounds in kernels.items()]
    lines += ["};", "static void __attribute__((constructor)) emulated_register()", "{",
              "    for (const emulator_kernel &kernel : emulated_table) {", "        emulator_register(&kernel);",
              "    }", "}"]
    with open(output, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


main()
