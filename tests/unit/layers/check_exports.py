# SPDX-License-Identifier: Apache-2.0
"""The symbols of libgantry are the functions of the public headers, and those that symbols.txt promises (docs/abi.md): none more,
none missing. `check_exports.py LIBRARY HEADERS SYMBOLS`."""
import pathlib
import re
import subprocess
import sys


def declared(folder):
    names = set()
    for header in folder.glob("*.h"):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        text = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
        for statement in text.split(";"):
            if "GANTRY_API" in statement or "GANTRY_MUST_USE" in statement:
                found = re.search(r"(gantry_\w+)\s*\((?!\s*\*)", statement.split("GANTRY_", 1)[1])
                if found:
                    names.add(found.group(1))
    return names


def main(library, folder, promised):
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    exported = {line.split()[-1].split("@")[0] for line in out.splitlines()}
    exported = {name for name in exported if not name.startswith(("__", "_init", "_fini", "_edata", "_end"))}
    names = declared(pathlib.Path(folder))
    for name in sorted(exported - names):
        print(f"exported but not in a public header: {name}")
    for name in sorted(names - exported):
        print(f"declared but not exported: {name}")
    listed = pathlib.Path(promised).read_text().split()
    if listed != sorted(set(listed)):
        print(f"{promised}: not in order; sort it and leave out what is there twice")
    for name in sorted(set(listed) - exported):
        print(f"{promised}: {name} is gone from the library: programs that call it no longer start. Keep the function, or take "
              "the line away with the next version that may break programs")
    for name in sorted(exported - set(listed)):
        print(f"{promised}: {name} is new; add a line, which promises it to programs")
    print(f"{len(names)} public functions")
    return 1 if exported != names or listed != sorted(exported) or len(names) < 50 else 0


sys.exit(main(*sys.argv[1:]))
