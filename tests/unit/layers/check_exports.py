# SPDX-License-Identifier: Apache-2.0
"""The symbols of libgantry are the functions of the public headers: none more, none missing."""
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


def main(library, folder):
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    exported = {line.split()[-1].split("@")[0] for line in out.splitlines()}
    exported = {name for name in exported if not name.startswith(("__", "_init", "_fini", "_edata", "_end"))}
    names = declared(pathlib.Path(folder))
    for name in sorted(exported - names):
        print(f"exported but not in a public header: {name}")
    for name in sorted(names - exported):
        print(f"declared but not exported: {name}")
    print(f"{len(names)} public functions")
    return 1 if exported != names or len(names) < 50 else 0


sys.exit(main(sys.argv[1], sys.argv[2]))
