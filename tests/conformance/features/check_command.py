# SPDX-License-Identifier: Apache-2.0
"""What a graph meets outside itself: code, files, machines, too little memory, saved and tampered schedules.

check_command.py GANTRY INCLUDE MACHINES [SCENARIO ...]
"""
import json
import pathlib
import random
import sys
import traceback

import cases_loops  # noqa: F401 - adds to CASES
import cases_reductions  # noqa: F401
from cases_nodes import CASES, iota, out
from runner import MIX_ARGS, Gantry, difference, expected, np, with_kernels

SCENARIOS = {}


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


class Wrong(Exception):
    pass


def says(told, line):
    return list(told) == ["error"] and told["error"]["message"] == line


def refused(result, code, *parts):
    """Ends with the code, says all the parts in one line (warnings apart), and prints nothing but, for --json, the same as an object."""
    lines = [line for line in result.err.splitlines() if not line.startswith("warning: ")]
    if result.code != code or len(lines) != 1 or not (result.out == "" or says(json.loads(result.out), lines[0])) or any(part not in lines[0] for part in parts):
        raise Wrong(f"exit {result.code}, expected {code} and {parts}: {result.err}{result.out}")


def equal(result, want):
    problem = result.err if result.code else difference(result.arrays, want)
    if problem:
        raise Wrong(f"exit {result.code}: {problem}")


# ---- code ----

TWICE = """#include <gantry/kernel.h>
gantry_status twice(const gantry_launch *l)
{
    const int32_t *x = l->arg[0].data;
    int32_t *y = l->arg[1].data, *room = l->scratch;
    for (int64_t i = 0; i < l->arg[0].rows; i++)
        room[i] = x[i];
    for (int64_t i = 0; i < l->arg[0].rows; i++)
        y[i] = 2 * room[i] + (int32_t)l->arg[2].integer;
    return l->arg[3].number > 0.5 && l->arg[3].number < 1.5 ? GANTRY_E_KERNEL : GANTRY_OK;
}
gantry_status left(const gantry_launch *l) { *l->status = 42; return twice(l); }
gantry_status liar(const gantry_launch *l) { ((int32_t *)l->arg[0].data)[0]++; return twice(l); }
gantry_status beyond(const gantry_launch *l) { twice(l); ((int32_t *)l->arg[1].data)[l->arg[1].rows + 4096] = 1; return GANTRY_OK; }
"""


def twice(entry=None, file="twice.c", **more):
    """x is an iota of 10 in 3 parts, y = 2 x + 3."""
    kernel = {"host": file, "args": [{"name": "x", "access": "read", "dtype": "i32"}, {"name": "y", "access": "write", "dtype": "i32"},
                                     {"name": "plus", "type": "i32", "default": 3}, {"name": "fail", "type": "f64", "default": 0}], "scratch": "x.bytes"}
    if entry:
        kernel["entry"] = entry
    return {"gantry": 1, "buffers": {"x": iota("i32", 10, split=3), "y": out("i32", 10, split=3)}, "kernels": {"twice": kernel},
            "nodes": [{"id": "t[i]", "for": {"i": 3}, "kernel": "twice", "args": {"x": "x[i]", "y": "y[i]", **more}}]}


Y = {"y": ("i32", (10,))}


@scenario
def own_code(g):
    (g.folder / "twice.c").write_text(TWICE)
    want = {"y": (2 * np.arange(10) + 3).astype(np.int32)}
    for words in ([], ["--check"], ["--devices", 3], ["--devices", 3, "--check"], ["--iterations", 3]):
        equal(g.run(twice(), words, buffers=Y), want)
    equal(g.run(twice(plus=5), buffers=Y), {"y": want["y"] + 2})
    equal(g.run(twice(plus={"dynamic": "2 + 4"}), buffers=Y), {"y": want["y"] + 3})
    g.write(twice())
    refused(g.words("run", "graph.json"), 2, "graph.json:1:", "/nodes/0", "twice.c", "--allow-code")
    for words in (["schedule", "--devices", 2], ["dot"], ["compare", "--devices", 2], ["run", "--backend", "sim"]):  # which run nothing of it
        assert g.words(words[0], "graph.json", *words[1:]).code == 0, words
    refused(g.run(twice("thrice")), 3, "twice.c", '"thrice"', '"twice"', "entry")
    refused(g.run(twice(file="none.c")), 3, "/kernels/twice/host", "none.c")
    (g.folder / "broken.c").write_text("int twice(void) { return 1 }\n")
    broken = g.run(twice(file="broken.c"))  # what the compiler says, as it is, and then the complaint
    *said, last = broken.err.splitlines()
    assert broken.code == 3 and "broken.c does not compile" in last and len(said) > 2 and any("error: expected" in line for line in said), broken.err
    (g.folder / "broken.so").write_text("no object")
    refused(g.run(twice(file="broken.so")), 3, "cannot load", "broken.so")
    refused(g.run(twice(file="../twice.c")), 3, "../twice.c", "folder")
    refused(g.run(twice(file="/tmp/twice.c")), 3, "/tmp/twice.c", "folder")
    refused(g.run(twice(file="twice.py")), 3, ".c")


@scenario
def own_code_that_fails(g):
    (g.folder / "twice.c").write_text(TWICE)
    refused(g.run(twice(fail=1), ["--devices", 2]), 1, '"t[', "GANTRY_E_KERNEL")
    refused(g.run(twice("left"), ["--devices", 2]), 1, '"t[', "42", "status word")
    refused(g.run(twice("liar"), ["--devices", 2, "--check"]), 1, '"t[', '"x"')
    refused(g.run(twice("beyond"), ["--devices", 2, "--check"]), 1, '"t[')


@scenario
def kernels_without_code(g):
    graph = {"gantry": 1, "kernels": {"ghost": {"args": [{"name": "y", "access": "write"}]}}, "buffers": {"y": out("i32", 4)},
             "nodes": [{"id": "g", "kernel": "ghost", "args": {"y": "y"}}]}
    refused(g.run(graph), 2, '"ghost"', "no host version")
    if g.words("schedule", "graph.json", "--devices", 2).code:
        raise Wrong("not scheduled")
    work = {"gantry": 1, "buffers": {"y": out("i32", 4)}, "nodes": [{"id": "w", "work": {}, "writes": ["y"]}]}
    refused(g.run(work), 2, '"w" is "work"')
    loop = {"gantry": 1, "buffers": {"y": out("i32", 1)}, "repeat": 4, "until": {"buffer": "y"}, "nodes": [{"id": "w", "fill": {"to": "y", "value": 1}}]}
    until = g.run(loop, [], None, {"y": ("i32", (1,))})
    if until.code or until.arrays["y"][0] != 1:
        raise Wrong(f"until: {until.err}")


# ---- files ----

def doubled(shape=(4, 3), dtype="i32", **x):
    return {"gantry": 1, "buffers": {"x": {"dtype": dtype, "shape": list(shape), "class": "input", **x}, "y": {"dtype": dtype, "shape": list(shape), "output": True}},
            "nodes": [{"id": "d", "kernel": "scale", "args": {"a": 2, "x": "x", "y": "y"}}]}


@scenario
def inputs(g):
    x = np.arange(12, dtype=np.int32).reshape(4, 3)
    path = g.folder / "x.npy"

    def run(array=None, graph=None, words=()):
        if array is not None:
            np.save(path, array)
        return g.run(graph or doubled(), ["--input", "x=x.npy", *words], buffers={"y": ("i32", (4, 3))})

    def load(result, want):
        equal(result, {"y": want})

    load(run(x), 2 * x)
    load(run(x[::-1][::-1]), 2 * x)
    refused(run(np.asfortranarray(x)), 2, "x.npy", "Fortran order", "ascontiguousarray")
    for wrong, parts in ((x.astype(np.int64), ["i32", "i64"]), (x.astype(np.float32), ["i32", "f32"]), (x.astype(np.uint32), ["i32", "u32"]),
                         (x.reshape(3, 4), ["[3, 4]", "[4, 3]"]), (x.reshape(12), ["[12]", "[4, 3]"]), (x[:3], ["[3, 3]", "[4, 3]"]),
                         (x.astype(">i4"), ["x.npy", ">i4"]), (x.astype(bool), ["x.npy", "b1"]), (x.astype(complex), ["x.npy", "c16"]),
                         (np.array(3, np.int32), ["x.npy"])):
        refused(run(wrong), 2, "x.npy", *parts)
    np.save(path, x)
    data = path.read_bytes()
    for cut in (0, 5, 9, 40, len(data) - 1):
        path.write_bytes(data[:cut])
        refused(run(), 2, "x.npy")
    path.write_bytes(data + b"more")
    refused(run(), 2, "x.npy")
    path.write_bytes(b"\x93NUMPY\x02\x00" + (len(data) - 128 + 118).to_bytes(4, "little"))
    refused(run(), 2, "x.npy")
    (g.folder / "x.raw").write_bytes(x.tobytes())
    load(g.run(doubled(), ["--input", "x=x.raw"], buffers={"y": ("i32", (4, 3))}), 2 * x)
    (g.folder / "x.raw").write_bytes(x.tobytes()[:-1])
    refused(g.run(doubled(), ["--input", "x=x.raw"]), 2, "x.raw", "48", "47")
    refused(g.run(doubled(), ["--input", "x=."]), 2, "Is a directory")
    refused(g.run(doubled()), 2, '"x"', "not bound", "--input")
    refused(g.run(doubled(), ["--input", "y=x.npy"]), 2, '"y"')


@scenario
def sizes_from_inputs(g):
    graph = doubled(["n", "m"])
    graph["params"] = {"n": 2, "m": 2, "k": "n * 2"}
    graph["buffers"]["z"] = {"dtype": "i32", "shape": ["k"], "output": True}
    graph["nodes"].append({"id": "z", "fill": {"to": "z", "value": "n"}})
    x = np.arange(20, dtype=np.int32).reshape(4, 5)
    np.save(g.folder / "x.npy", x)
    buffers = {"y": ("i32", (4, 5)), "z": ("i32", (8,))}
    equal(g.run(graph, ["--input", "x=x.npy"], buffers=buffers), {"y": 2 * x, "z": np.full(8, 4, np.int32)})
    equal(g.run(graph, ["--input", "x=x.npy", "--param", "m=5"], buffers=buffers), {"y": 2 * x, "z": np.full(8, 4, np.int32)})
    refused(g.run(graph, ["--input", "x=x.npy", "--param", "n=3"]), 2, "x.npy", "[4, 5]", "[3, 5]")
    graph["buffers"]["w"] = {"dtype": "i32", "shape": ["n"], "class": "input", "output": True}
    np.save(g.folder / "w.npy", np.arange(3, dtype=np.int32))
    refused(g.run(graph, ["--input", "x=x.npy", "--input", "w=w.npy"]), 3, "disagree", '"n"', "x.npy", "w.npy")
    np.save(g.folder / "x1.npy", x[0])
    refused(g.run(graph, ["--input", "x=x1.npy"]), 3, "2 axes", "x1.npy has 1")


@scenario
def outputs(g):
    """One result as .npy, raw and of tiles; nothing is left of a failed run."""
    case = CASES["tiles"]()
    graph = with_kernels(case.graph)
    want, buffers = expected(graph)
    result = g.run(graph, ["--devices", 2, "--output", "D=d.raw"], buffers={k: v for k, v in buffers.items() if k != "D"})
    del buffers["D"]
    equal(result, {k: want[k] for k in buffers})
    if (g.folder / "d.raw").read_bytes() != want["D"].tobytes():
        raise Wrong("raw differs")
    refused(g.run(graph, ["--output", "C=same.npy", "--output", "E=same.npy"]), 2, '"C" and "E"', "same.npy")
    (g.folder / "twice.c").write_text(TWICE)
    (g.folder / "old.npy").write_text("as it was")
    refused(g.run(twice(fail=1), ["--output", "y=old.npy"]), 1, "GANTRY_E_KERNEL")
    if (g.folder / "old.npy").read_text() != "as it was":
        raise Wrong("a failed run wrote its output")
    np.save(g.folder / "same.npy", np.arange(12, dtype=np.int32).reshape(4, 3))
    if g.run(doubled(), ["--input", "x=same.npy", "--output", "y=same.npy"]).code or np.load(g.folder / "same.npy")[3, 2] != 22:
        raise Wrong("a file read and written")


# ---- machines and memory ----

@scenario
def machine_files(g):
    """GPUs of machine files, played by CPU threads: relays, staging, host devices."""
    names = ["halos", "sums_of_parts_then_whole", "two_loops_over_one_pair", "state_partly_written", "collective_of_many", "tiles", "host_functions", "sum_of_i32_onto",
             "max_of_u8_from", "carried_tiles", "scatter_and_gather", "more_parts_than_rows"]
    for name in names:
        case = CASES[name]()
        graph = with_kernels(case.graph)
        want, buffers = expected(graph, case.params, case.inputs, case.starts)
        for machine in sorted(g.machines.glob("*.json")):
            for policy in ("heft", "round-robin"):
                for extra in ([], ["--check"]):
                    words = ["--machine", machine, "--backend", "host", "--policy", policy, "--iterations", case.starts, *extra]
                    try:
                        equal(g.run(graph, words, case.inputs, buffers), want)
                    except Wrong as error:
                        raise Wrong(f"{name} on {machine.stem} {policy} {extra}: {error}")


def chain(count, parts=3, n=3000):
    """A chain of temporaries, each of n elements in parts: two at a time are needed."""
    buffers = {f"b{k}": {"dtype": "i32", "shape": [n], "split": parts} for k in range(1, count)}
    buffers |= {"b0": iota("i32", n, split=parts), f"b{count}": out("i32", n, split=parts)}
    nodes = [{"id": f"k{k}[i]", "for": {"i": parts}, "kernel": "mix", "args": {"x": f"b{k}[i]~2", "y": f"b{k + 1}[i]"}} for k in range(count)]
    return with_kernels({"gantry": 1, "buffers": buffers, "nodes": nodes})


@scenario
def little_memory(g):
    graph = chain(8)
    want, buffers = expected(graph)
    g.write(graph)
    for devices in (1, 2, 3):
        for policy in ("heft", "round-robin", "single"):
            plan = ["--devices", devices, "--policy", policy]
            peak = max(v for k, v in g.words("schedule", "graph.json", "--json", "--allow-code", *plan).report["peak_bytes"].items() if k != "host")
            total = 9 * 3000 * 4
            fits = 0
            for share in (1, 0.8, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1):
                limit = int(total * share / (1 if policy == "single" else devices))
                words = [*plan, "--max-memory", ",".join(f"mem{d}={limit}" for d in range(devices))]
                for extra in ([], ["--check"]):
                    result = g.run(graph, [*words, *extra], buffers=buffers)
                    if result.code == 4:
                        refused(result, 4, "dev", "needs", "has")
                    else:
                        equal(result, want)
                        fits += 1
            if not fits or peak > total:
                raise Wrong(f"{plan}: peak {peak} of {total}, {fits} fit")


@scenario
def little_memory_and_no_rows(g):
    """A node that touches no rows of a buffer takes over bytes and gives them on."""
    state = {"dtype": "u8", "shape": [3], "split": 2, "init": 0, "class": "state"}
    graph = with_kernels({"gantry": 1, "buffers": {"a": {"dtype": "u8", "shape": [3]}, "b": {"dtype": "u8", "shape": [3], "split": 2, "init": 1, "output": True}, "c": state},
                          "nodes": [{"id": "n2", "kernel": "mix", "args": {"x": "c[1]", "y": "b{1:3}"}}, {"id": "n3", "copy": {"from": "a{2:2}", "to": "c{1:1}"}},
                                    {"id": "n10", "kernel": "axpby", "args": {"a": 2, "b": 2, "x": "c[0]", "y": "b[0]"}}, {"id": "n11", "fill": {"to": "a", "value": 1}}]})
    want, buffers = expected(graph)
    for machine, memory in (("dgx1-v100", "gpu0"), ("host-2", "mem0")):
        for limit in range(256, 1537, 128):
            words = ["--machine", g.machines / f"{machine}.json", "--backend", "host", "--devices", 1, "--max-memory", f"{memory}={limit}"]
            result = g.run(graph, words, buffers=buffers)
            if result.code == 4:
                refused(result, 4, "needs", "has")
            else:
                equal(result, want)


# ---- schedules in files ----

@scenario
def saved_schedules(g):
    for name in ("halos", "state_partly_written", "tiles", "sum_of_i32_onto", "collective_of_many", "automatic_splits", "repeat_3"):
        case = CASES[name]()
        graph = with_kernels(case.graph)
        want, buffers = expected(graph, case.params, case.inputs, case.starts)
        for policy in ("heft", "round-robin"):
            g.write(graph)
            if g.words("schedule", "graph.json", "--allow-code", "--devices", 3, "--policy", policy, "-o", "s.json").code:
                raise Wrong(f"{name}: no schedule")
            if g.words("check", "graph.json", "s.json", "--allow-code").code:
                raise Wrong(f"{name}: its own schedule is refused")
            for extra in ([], ["--check"]):
                equal(g.run(graph, ["--schedule", "s.json", "--iterations", case.starts, *extra], case.inputs, buffers), want)
    graph = chain(3, n=30)
    g.write(graph)
    g.words("schedule", "graph.json", "--allow-code", "--devices", 2, "-o", "s.json")
    refused(g.run(chain(4, n=30), ["--schedule", "s.json"]), 3, "graph")
    refused(g.run(chain(3, n=31), ["--schedule", "s.json"]), 3)
    scaled = json.loads(json.dumps(graph))
    scaled["nodes"][0]["args"]["a"] = 9  # what the schedule does not depend on
    want, buffers = expected(scaled)
    equal(g.run(scaled, ["--schedule", "s.json"], buffers=buffers), want)


def leaves(at, path=()):
    if isinstance(at, dict):
        for key, value in at.items():
            yield from leaves(value, (*path, key))
    elif isinstance(at, list):
        yield path, at
        for key, value in enumerate(at):
            yield from leaves(value, (*path, key))
    else:
        yield path, at


def tamper(schedule, r):
    """One change: a number, a word, a row taken away, doubled or exchanged with its neighbour."""
    found = [(p, v) for p, v in leaves(schedule) if p and p[0] in ("instances", "ops", "sync", "lanes", "slabs", "values", "staging", "bounds", "unroll", "in_flight", "nodes")]
    path, value = r.choice(found)
    at = schedule
    for key in path[:-1]:
        at = at[key]
    if isinstance(value, list) and value:
        i, how = r.randrange(len(value)), r.random()
        if how < 0.4:
            del value[i]
        elif how < 0.6:
            value.insert(i, json.loads(json.dumps(value[i])))
        else:
            k = r.randrange(len(value))
            value[i], value[k] = value[k], value[i]
    elif isinstance(value, bool):
        at[path[-1]] = not value
    elif isinstance(value, int):
        at[path[-1]] = r.choice([value + 1, value - 1, 0, value * 2, -value, value + 256, value - 256, 2**31, 2**63 - 1, r.randrange(8)])
    elif isinstance(value, str):
        same = [v for p, v in found if isinstance(v, str) and p[-1] == path[-1]]
        at[path[-1]] = r.choice(same + ["", "x"])
    return path


@scenario
def tampered_schedules(g):
    """Either `check` says what is wrong, or the results are right nevertheless. Never a crash."""
    r, refusals, accepted = random.Random(g.seed), 0, 0
    for name in g.names or ("sums_of_parts_then_whole", "carried_state_over_starts", "halos", "collective_of_many"):
        case = CASES[name]()
        graph = with_kernels(case.graph)
        want, buffers = expected(graph, case.params, case.inputs, case.starts)
        g.write(graph)
        g.words("schedule", "graph.json", "--allow-code", "--devices", 3, "--policy", "round-robin", "-o", "s.json")
        text = (g.folder / "s.json").read_text()
        for _ in range(g.tampered):
            schedule = json.loads(text)
            path = tamper(schedule, r)
            (g.folder / "t.json").write_text(json.dumps(schedule))
            result = g.words("check", "graph.json", "t.json", "--allow-code")
            if result.code not in (0, 3) or (result.code == 3 and len([x for x in result.err.splitlines() if "warning" not in x]) != 1):
                raise Wrong(f"{name} {path}: exit {result.code}: {result.err}{result.out}")
            refusals += result.code == 3
            accepted += result.code == 0
            ran = g.run(graph, ["--schedule", "t.json", "--iterations", case.starts], case.inputs, buffers)
            if result.code == 0:
                try:
                    equal(ran, want)
                    guarded = ["--check", "--seed", accepted] if accepted % 4 == 0 else []
                    equal(g.run(graph, ["--schedule", "t.json", "--iterations", case.starts, *guarded], case.inputs, buffers), want)
                except Wrong as error:
                    raise Wrong(f"{name} {path}: accepted, but: {error}")
            elif ran.code != 3:
                raise Wrong(f"{name} {path}: refused by check, run says {ran.code}: {ran.err}")
    print(f"  {refusals} tampered schedules refused, {accepted} harmless")


def main(command, include, machines, only):
    gantry, failed = Gantry(command, include), 0
    gantry.names = ()
    gantry.machines, gantry.tampered, gantry.seed = pathlib.Path(machines).resolve(), 60, 5
    for name, run in SCENARIOS.items():
        if only and name not in only:
            continue
        try:
            run(gantry)
        except Exception as error:  # noqa: BLE001 - one scenario must not hide the others
            failed += 1
            if not isinstance(error, Wrong):
                traceback.print_exc()
            print(f"FAILED {name}: {str(error).strip()} (line {error.__traceback__.tb_next.tb_lineno})")
    print(f"{len(only) or len(SCENARIOS)} scenarios, {gantry.runs} runs, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:]))
