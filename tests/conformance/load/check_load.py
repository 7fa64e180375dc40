#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The load that `gantry schedule --objective max_load` reports, against the definition of the paper (J. Tarnawski et
al., Efficient Algorithms for Device Placement of DNN Graph Operators, NeurIPS 2020), counted here from the original
file and the placement alone; that memory and colours are held; that the same command gives the same answer; and that the
load is at most that of the best contiguous split. Exit 77: the data are not there."""

import argparse
import json
import os
import subprocess
import sys
import tempfile

# Best contiguous splits, and what a local search without that restriction reached where it is known.
BEST = {
    "bert24_inference": (17.790, 17.778),
    "bert24_training": (41.746, 39.943),
    "gnmt_inference": (32.911, 31.783),
    "gnmt_training": (107.004, 90.948),
    "resnet50_inference": (33.775, None),
    "resnet50_training": (78.632, None),
    "bert_l-3_inference": (27.919, None),
    "bert_l-3_training": (65.303, None),
}


def loads_of(model, device):
    """Per device: compute, and every output that crosses: once where it is made, once on each device that wants it."""
    node = {n["id"]: n for n in model["nodes"]}
    cost, readers = {}, {}
    for edge in model["edges"]:
        cost.setdefault(edge["sourceId"], edge["cost"])
        readers.setdefault(edge["sourceId"], set()).add(device[edge["destId"]])
    load = dict.fromkeys(device.values(), 0.0)
    for i, n in node.items():
        load[device[i]] += n["fpgaLatency"] if device[i].startswith("fpga") else n["cpuLatency"]
        others = {d for d in readers.get(i, ()) if d != device[i]}
        for d in others:
            load[d] += cost[i]
        if others:
            load[device[i]] += cost[i]
    return load


def placement_of(model, report):
    """Node id -> device; names that occur twice are numbered by the import: then this check would have to be as clever."""
    names = [n.get("name") or "node%d" % n["id"] for n in model["nodes"]]
    assert len(set(names)) == len(names), "names of nodes are not unique"
    assert set(names) == set(report["placement"]), "the placement is not of the nodes of the file"
    return {n["id"]: report["placement"][name] for n, name in zip(model["nodes"], names)}


def check_rules(model, device):
    """What is wrong with a placement, if anything."""
    wrong, used, colour = [], {}, {}
    for n in model["nodes"]:
        d = device[n["id"]]
        if d.startswith("fpga"):
            used[d] = used.get(d, 0) + n.get("size", 0)
            if not n["supportedOnFpga"]:
                wrong.append("node %d is not supported on %s" % (n["id"], d))
        if "colorClass" in n and colour.setdefault(n["colorClass"], d) != d:
            wrong.append("colour %d is on %s and on %s" % (n["colorClass"], colour[n["colorClass"]], d))
    wrong += ["%s holds %.0f of %.0f bytes" % (d, b, model["maxSizePerFPGA"])
              for d, b in used.items() if b > model["maxSizePerFPGA"]]
    fpgas = {"fpga%d" % i for i in range(model["maxFPGAs"])} | {"cpu%d" % i for i in range(model["maxCPUs"])}
    wrong += ["there is no device %s" % d for d in set(device.values()) - fpgas]
    return wrong


def run(command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout


def check_one(gantry, path, folder, extra):
    name = os.path.basename(path)[:-len(".json")]
    graph = os.path.join(folder, name + ".json")
    with open(path) as f:
        model = json.load(f)
    run([gantry, "import", "dnn", path, "-o", graph])
    command = [gantry, "schedule", graph, "--objective", "max_load", "--json"] + extra
    text = run(command)
    report = json.loads(text)
    device = placement_of(model, report)
    load = loads_of(model, device)
    wrong = check_rules(model, device)
    most = max(load.values())
    # Costs are rounded to picoseconds: half of one for each of what is added up.
    if abs(most - report["load_us"]) > 1e-6 * (len(model["nodes"]) + len(model["edges"])):
        wrong.append("load_us is %.9f, counted %.9f" % (report["load_us"], most))
    for d, counted in load.items():
        if abs(counted - report["loads_us"][d]) > 1e-6 * (len(model["nodes"]) + len(model["edges"])):
            wrong.append("the load of %s is %.9f, counted %.9f" % (d, report["loads_us"][d], counted))
    if run(command) != text:
        wrong.append("the second time the answer is another")
    split, search = BEST.get(name, (None, None))
    if split is not None and most > split + 0.0005 and not extra:
        wrong.append("%.4f is worse than the best contiguous split, %.3f" % (most, split))
    print("%-20s load %9.4f  contiguous %s  not contiguous %s  makespan %9.3f  %s" % (
        name, most, "%8.3f" % split if split else "-", "%8.3f" % search if search else "       -",
        report["makespan_us"], "; ".join(wrong) or "ok"), flush=True)
    return not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("gantry")
    parser.add_argument("folder", nargs="?", help="of the JSON files; default: $GANTRY_SHARED/data/dnn-placement")
    options, extra = parser.parse_known_args()
    shared = os.environ.get("GANTRY_SHARED", "")
    folder = options.folder or os.path.join(shared, "data", "dnn-placement")
    files = sorted(f for f in os.listdir(folder) if f.endswith(".json")) if os.path.isdir(folder) else []
    if not files:
        print("skipped: no JSON files in \"%s\"; set GANTRY_SHARED" % folder)
        return 77
    with tempfile.TemporaryDirectory() as made:
        good = [check_one(options.gantry, os.path.join(folder, f), made, extra) for f in files]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
