# SPDX-License-Identifier: Apache-2.0
"""The command on small graphs, in a folder of its own that also holds mix.c, compiled once."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
from numpy_gantry import from_bf16, np, to_bf16  # noqa: E402

from oracle import Oracle  # noqa: E402

MIX_ARGS = [
    {"name": "a", "type": "i64", "default": 1},
    {"name": "x", "access": "read", "list": True},
    {"name": "y", "access": ["write", "read", "readwrite", "sum", "min", "max", "prod"], "list": True},
]
KERNELS = {"mix": {"host": "mix.so", "cuda": "mix.cu", "args": MIX_ARGS, "variadic": True}}
POLICIES = ("heft", "round-robin", "single")


class Result:
    def __init__(self, code, out, err, arrays):
        self.code, self.out, self.err, self.arrays = code, out, err, arrays

    @property
    def report(self):
        return json.loads(self.out)


def save(path, dtype, array):
    """As .npy; bf16, which NumPy has not, as raw patterns."""
    if dtype == "bf16":
        to_bf16(array).tofile(path)
    else:
        np.save(path, array)


class Gantry:
    def __init__(self, command, include, prefix=(), timeout=120):
        self.command, self.prefix, self.timeout = str(pathlib.Path(command).resolve()), list(prefix), timeout
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.count = self.runs = 0
        self.env = {**os.environ, "XDG_CACHE_HOME": str(self.folder / "cache")}
        shutil.copy(HERE / "mix.c", self.folder)
        (self.folder / "mix.cu").touch()  # so that virtual GPUs may run it; their threads call the host version
        self.compile("mix.c", "mix.so", include)
        self.balances = False
        self.balances = "--balance" in self.words("help", "run").out

    def compile(self, source, target, include):
        cc = os.environ.get("CC", "cc").split()
        subprocess.run([*cc, "-shared", "-fPIC", "-O1", "-I", include, "-o", self.folder / target, self.folder / source], check=True)

    def words(self, *words):
        """Any command in the folder. What nodes do to parts shows where these are cut: the oracle's are equal."""
        self.runs += 1
        if self.balances and words[0] in ("run", "schedule") and "--schedule" not in words and "--balance" not in words:
            graph = self.folder / str(words[1])
            if graph.is_file() and '"split": {"auto"' in graph.read_text():
                words += ("--balance", "static")
        done = subprocess.run([*self.prefix, self.command, *map(str, words)], capture_output=True, text=True, timeout=self.timeout,
                              cwd=self.folder, env=self.env, errors="replace")
        return Result(done.returncode, done.stdout, done.stderr, {})

    def write(self, graph, name="graph.json"):
        (self.folder / name).write_text(json.dumps(graph))
        return name

    def run(self, graph, words=(), inputs=None, buffers=None):
        """buffers: name -> (dtype, shape) of the outputs wanted. Results are arrays, bf16 as float32."""
        command = ["run", self.write(graph), "--json", "--allow-code", *words]
        for name, (dtype, array) in (inputs or {}).items():
            self.count += 1
            file = f"in-{self.count}.{'raw' if dtype == 'bf16' else 'npy'}"
            save(self.folder / file, dtype, array)
            command += ["--input", f"{name}={file}"]
        for k, name in enumerate(buffers or {}):
            command += ["--output", f"{name}=out-{k}.{'raw' if buffers[name][0] == 'bf16' else 'npy'}"]
        result = self.words(*command)
        if result.code == 0:
            for k, (name, (dtype, shape)) in enumerate((buffers or {}).items()):
                if dtype == "bf16":
                    result.arrays[name] = from_bf16(np.fromfile(self.folder / f"out-{k}.raw", np.uint16)).reshape(shape)
                else:
                    result.arrays[name] = np.load(self.folder / f"out-{k}.npy")
        return result


def with_kernels(graph):
    return {**graph, "kernels": {**KERNELS, **graph.get("kernels", {})}} if '"mix"' in json.dumps(graph["nodes"]) else graph


def expected(graph, params=None, inputs=None, starts=1):
    """The oracle's outputs after so many starts, and the buffers as Gantry.run wants them."""
    oracle = Oracle(graph, params, {name: array for name, (_, array) in (inputs or {}).items()})
    for _ in range(starts):
        outputs = oracle.start()
    return outputs, {name: (oracle.buffers[name].dtype, oracle.buffers[name].shape) for name in outputs}


def difference(got, want):
    """None if all arrays are equal, else what differs."""
    for name, array in want.items():
        if got[name].shape != array.shape or got[name].dtype != array.dtype:
            return f"{name} is {got[name].dtype}{got[name].shape}, should be {array.dtype}{array.shape}"
        if not np.array_equal(got[name], array):
            where = tuple(int(i) for i in np.argwhere(got[name] != array)[0])
            return f"{name}{list(where)} is {got[name][where]}, should be {array[where]}"
    return None
