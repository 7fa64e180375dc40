# SPDX-License-Identifier: Apache-2.0
"""Holds every #include line against the table of layers in docs/design.md: arrows point down only."""
import pathlib
import re
import sys

BELOW = {
    "base": [],
    "kernel": ["base"],
    "graph": ["kernel", "base"],
    "machine": ["base"],
    "import": ["graph", "machine", "kernel", "base"],
    "schedule": ["graph", "machine", "kernel", "base"],
    "sim": ["schedule", "graph", "machine", "kernel", "base"],
    "scheduler": ["sim", "schedule", "graph", "machine", "kernel", "base"],
    "run": ["scheduler", "schedule", "graph", "machine", "kernel", "base"],
    "backends": ["run", "kernels", "sim", "schedule", "graph", "machine", "kernel", "base"],
    "export": ["schedule", "graph", "machine", "kernel", "base"],
    "kernels": ["kernel", "base"],
    "tools": [],
}
FOREIGN = {"jansson.h": {"base", "graph", "machine", "import", "schedule", "export", "run", "tools"}, "hwloc.h": {"machine"}, "cblas.h": {"backends"}, "lapacke.h": {"backends"}}


def layer_of(path):
    parts = path.parts
    return parts[1] if parts[0] == "src" else parts[0]


def main(root):
    wrong = []
    seen = 0
    for top in ("src", "scheduler", "kernels", "tools", "include"):
        for file in sorted((root / top).rglob("*.[ch]")):
            path = file.relative_to(root)
            layer = layer_of(path)
            for number, line in enumerate(file.read_text().splitlines(), 1):
                found = re.match(r'\s*#\s*include\s+([<"])([^>"]+)[>"]', line)
                if not found:
                    continue
                seen += 1
                kind, name = found.groups()
                if re.match(r"(cuda|cu|nccl|nv)[\w-]*\.h", name) and path.parts[:3] != ("src", "backends", "cuda"):
                    wrong.append(f"{path}:{number}: {name} in the core")
                if name.startswith("backends/cuda/") and path.parts[:3] != ("src", "backends", "cuda"):
                    wrong.append(f"{path}:{number}: {name} belongs to the module, which is loaded and not linked")
                if kind == "<":
                    if name in FOREIGN and layer not in FOREIGN[name]:
                        wrong.append(f"{path}:{number}: <{name}> may only be used by {sorted(FOREIGN[name])}")
                    if layer == "include" and "/" in name and not name.startswith("gantry/"):
                        wrong.append(f"{path}:{number}: public header includes <{name}>")
                    continue
                target = name.split("/")[0] if "/" in name else layer
                if target not in BELOW:
                    target = layer  # a sub-folder of the same layer
                if target != layer and target not in BELOW.get(layer, []):
                    wrong.append(f"{path}:{number}: {layer} may not include {name}")
    print("\n".join(wrong))
    if seen < 100:
        wrong.append("no sources found")
    print(f"{seen} include lines, {len(wrong)} against the layers")
    return 1 if wrong else 0


sys.exit(main(pathlib.Path(sys.argv[1])))
