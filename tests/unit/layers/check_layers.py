# SPDX-License-Identifier: Apache-2.0
"""Holds every #include line against the table of layers in docs/design.md: arrows point down only, within a layer too."""
import graphlib
import pathlib
import re
import sys

BELOW = {
    "base": [],
    "images": ["base"],
    "kernel": ["base"],
    "maths": ["kernel", "base"],
    "graph": ["maths", "kernel", "images", "base"],
    "machine": ["base"],
    "import": ["graph", "machine", "kernel", "base"],
    "schedule": ["graph", "machine", "kernel", "base"],
    "sim": ["schedule", "graph", "machine", "kernel", "base"],
    "scheduler": ["sim", "schedule", "graph", "machine", "kernel", "base"],
    "run": ["scheduler", "schedule", "graph", "machine", "maths", "kernel", "images", "base"],
    "backends": ["run", "kernels", "sim", "schedule", "graph", "machine", "maths", "kernel", "images", "base"],
    "export": ["schedule", "graph", "machine", "kernel", "base"],
    "kernels": ["kernel", "base"],
    "tools": [],
}
# Rooms are the sub-folders of a folder: room -> the rooms beside it whose headers it may include. "" stands for files of the folder
# itself, and has to be listed only where there are some. A folder that is a key has no other rooms than these. Files outside the
# folder may include headers of every room, if the layers let them.
ROOMS = {
    "backends": {"blas": [], "cuda": [], "fftw": [], "host": [], "jpeg": [], "mpi": [], "png": [], "sim": []},
    "backends/cuda": {
        "nvidia": [],
        "kernels": ["nvidia"],
        "usercode": ["kernels", "nvidia"],
        "state": ["nvidia"],
        "times": ["state", "nvidia"],
        "memory": ["state", "nvidia"],
        "stream": ["times", "memory", "state", "kernels", "nvidia"],
        "collective": ["stream", "times", "memory", "state", "kernels", "nvidia"],
        "resident": ["collective", "stream", "memory", "state", "usercode", "kernels", "nvidia"],
        "submit": ["resident", "collective", "stream", "times", "memory", "state", "usercode", "kernels", "nvidia"],
        "measure": ["kernels", "nvidia"],
        "module": ["measure", "submit", "resident", "collective", "stream", "times", "memory", "state", "usercode", "kernels", "nvidia"],
    },
    "graph": {
        "": [],
        "flow": [""],
        "build": ["flow", ""],
        "fuse": ["build", ""],
        "check": ["fuse", "build", "flow", ""],
        "derive": ["check", "flow", ""],
        "adjoint": ["fuse", "build", ""],
        "strategy": ["adjoint", "build", ""],
        "json": ["strategy", "adjoint", "build", ""],
    },
    "scheduler": {
        "plan": [],
        "collective": ["plan"],
        "cost": ["plan"],
        "bound": ["cost", "plan"],
        "load": ["cost", "plan"],
        "place": ["cost", "collective", "plan"],
        "lower": ["collective", "cost", "plan"],
        "order": ["collective", "cost", "plan"],
        "pack": ["order", "plan"],
        "spill": ["pack", "lower", "cost", "plan"],
        "policies": ["bound", "place", "load", "cost", "plan"],
        "pipeline": ["policies", "spill", "pack", "order", "lower", "place", "bound", "cost", "collective", "plan"],
        "search": ["pipeline", "policies", "place", "cost", "plan"],
        "objective": ["search", "pipeline", "policies", "place", "load", "bound", "cost", "plan"],
        "phases": ["objective", "plan"],
        "balance": ["phases", "objective", "pipeline", "cost", "plan"],
        "devices": ["balance", "search", "pipeline", "policies", "bound", "cost", "plan"],
        "explain": ["search", "pipeline", "policies", "cost", "collective", "plan"],
        "": ["devices", "search", "policies", "plan"],
    },
    "scheduler/policies": {
        "list": [],
        "partition": ["", "list"],
        "split": ["", "list"],
        "": ["list"],
    },
    "export": {"": [], "page": [""], "diff": ["page", ""]},
    "run": {"checkpoint": [], "network": [], "usercode": [], "": ["checkpoint", "network", "usercode"], "feed": [""], "measure": [""], "ranks": ["", "network"]},
    "schedule": {"": [], "check": [""], "counters": [""], "exchange": ["", "traffic"], "gates": [""], "json": [""], "ranks": [""], "stretches": [""], "traffic": [""]},
}
FOREIGN = {"jansson.h": {"base", "graph", "machine", "import", "schedule", "export", "run", "tools"}, "hwloc.h": {"machine"}, "cblas.h": {"backends"}, "lapacke.h": {"backends"}, "fftw3.h": {"backends"}, "turbojpeg.h": {"backends"}, "mpi.h": {"backends"}, "png.h": {"backends", "tools"}}


def home_of(path):
    """A kernel's folder has its CUDA launcher, too, which belongs to the back end."""
    launcher = path.parts[0] == "kernels" and path.stem.endswith("_launch")
    return pathlib.PurePath("src/backends/cuda/kernels", path.name) if launcher else path


def layer_of(path):
    parts = path.parts
    return parts[1] if parts[0] == "src" else parts[0]


def room_of(folder, path):
    """The sub-folder of `folder` that a file lies in, "" for one of the folder's own files, None for one outside it."""
    if not path.startswith(folder + "/"):
        return None
    inside = path[len(folder) + 1 :]
    return inside.split("/")[0] if "/" in inside else ""


def wrong_rooms(path, name):
    """What the tables of rooms say against a file that includes a header; both are paths from src or from the root."""
    for folder, below in ROOMS.items():
        room, wanted = room_of(folder, path), room_of(folder, name)
        if room is None or wanted is None or room == wanted:
            continue
        if room in below and wanted not in below[room]:
            yield f"room {folder}/{room} may not include {name}"


def wrong_tables(root):
    """Rooms that are not listed, listed ones that do not exist, and rooms that may include each other."""
    for folder, below in ROOMS.items():
        place = root / "src" / folder if (root / "src" / folder).is_dir() else root / folder
        files = [str(file.relative_to(place)) for file in place.rglob("*.[ch]")]
        there = {room_of(".", "./" + file) for file in files}
        for room in sorted(there - set(below)):
            yield f"room {folder}/{room} is not listed in ROOMS"
        for room in sorted(set(below) - there):
            yield f"room {folder}/{room} of ROOMS has no sources"
        try:
            tuple(graphlib.TopologicalSorter(below).static_order())
        except graphlib.CycleError as error:
            yield f"rooms of {folder} include each other: {' -> '.join(map(repr, error.args[1]))}"


def main(root):
    wrong = list(wrong_tables(root))
    seen = 0
    for top in ("src", "scheduler", "kernels", "tools", "include"):
        for file in sorted((root / top).rglob("*.[ch]")):
            path = home_of(file.relative_to(root))
            layer = layer_of(path)
            for number, line in enumerate(file.read_text().splitlines(), 1):
                found = re.match(r'\s*#\s*include\s+([<"])([^>"]+)[>"]', line)
                if not found:
                    continue
                seen += 1
                kind, name = found.groups()
                name = str(home_of(pathlib.PurePath(name))).removeprefix("src/")
                driver = path.parts[:3] == ("src", "backends", "cuda") or path.parts[:2] == ("tools", "bench")
                if re.match(r"(cuda|cu|nccl|nv)[\w-]*\.h", name) and not driver:
                    wrong.append(f"{path}:{number}: {name} in the core")
                if name.startswith("backends/cuda/") and path.parts[:3] != ("src", "backends", "cuda"):
                    wrong.append(f"{path}:{number}: {name} belongs to the module, which is loaded and not linked")
                if kind == "<":
                    if name in FOREIGN and layer not in FOREIGN[name]:
                        wrong.append(f"{path}:{number}: <{name}> may only be used by {sorted(FOREIGN[name])}")
                    if layer == "include" and "/" in name and not name.startswith("gantry/"):
                        wrong.append(f"{path}:{number}: public header includes <{name}>")
                    continue
                here = str(path).removeprefix("src/")
                beside = str(pathlib.PurePath(here).parent / name)
                full = beside if (file.parent / name).is_file() else name
                wrong += [f"{path}:{number}: {text}" for text in wrong_rooms(here, full)]
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
