# SPDX-License-Identifier: Apache-2.0
"""Writes the C++ source of a library of emulated kernels: the kernels of a .cu, and a table of them.

    kernels.py SOURCE OUTPUT COMPILER ARGUMENT...

The compiler's preprocessor is run on the source, so kernels may come from macros and headers. A kernel is a function
`extern "C" __global__ void NAME(...)`.
"""
import re
import subprocess
import sys


def names_of(source, command):
    text = subprocess.run(command + ["-DCUDA_EMULATOR_NAMES", "-x", "c++", "-E", "-P", source], check=True,
                          capture_output=True, text=True).stdout
    found = re.findall(r"\bCUDA_EMULATOR_GLOBAL\b(?:\s+|static|inline|__attribute__\s*\(\(.*?\)\))*void\s+(\w+)\s*\(", text)
    return list(dict.fromkeys(found))


def main():
    source, output, command = sys.argv[1], sys.argv[2], sys.argv[3:]
    names = names_of(source, command)
    if not names:
        sys.exit(f"{source}: no kernels: extern \"C\" __global__ void NAME(...)")
    lines = [f'#include "{source}"', "", "static const emulator_kernel emulated_table[] = {"]
    lines += [f"    EMULATED_KERNEL({name})," for name in names]
    lines += ["};", "static void __attribute__((constructor)) emulated_register()", "{",
              "    for (const emulator_kernel &kernel : emulated_table) {", "        emulator_register(&kernel);",
              "    }", "}"]
    with open(output, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


main()
