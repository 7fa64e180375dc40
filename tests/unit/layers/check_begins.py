# SPDX-License-Identifier: Apache-2.0
"""Every kernel of the library begins with gy_begin (kernels/begin.cuh), but for what it brings to a cache ahead of it (gy_..._fetch), or makes of numbers of the launch alone (gy_..._ahead): the back end lets its launches come early. But the resident
kernel, which is none of a stream's launches."""
import pathlib
import re
import sys


def main(root):
    kernels = wrong = 0
    for file in sorted((root / "kernels").rglob("*.cu")):
        if file.parent.name == "resident":
            continue
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", file.read_text(), flags=re.S).replace("\\\n", "\n")
        for at in re.finditer(r"\b__global__\b", text):
            kernels += 1
            if not re.match(r"[^{};]*\{\s*((const double \w+ = gy_\w+_ahead|gy_\w+_fetch)\([^;]*\);[\s\\]*)*gy_begin\(\);", text[at.end():]):
                print(f"{file.relative_to(root)}: a kernel does not begin with gy_begin();: {text[at.start():][:60].split(chr(10))[0]}")
                wrong += 1
    if kernels == 0:
        print("there are no kernels")
    return 1 if wrong or not kernels else 0


sys.exit(main(pathlib.Path(sys.argv[1])))
