# SPDX-License-Identifier: Apache-2.0
"""Large graphs of several families on several machines: the makespan of policies, by prediction, as ratios to HEFT's.

families.py GANTRY ROOT [POLICY...] [--effort E]     a table as in docs/performance/schedules.md; default: partition

A policy "default" is none named, at the effort given (default 3).
"""
import argparse
import json
import pathlib
import subprocess

MACHINES = ["hgx-h200-8", "dgx1-v100", "a100-pcie-4", "rtx-mixed-3", "sirocco"]
FAMILIES = {  # name -> graph, params
    "layered, 4 KiB": ("tests/bench/layered.json", {}),
    "layered, 1 MiB": ("tests/bench/layered.json", {"bytes": 1 << 20}),
    "Cholesky nt=40, n=4096": ("graphs/cholesky.json", {"nt": 40, "n": 4096}),
    "Cholesky nt=40, n=10240": ("graphs/cholesky.json", {"nt": 40, "n": 10240}),
    "stencil 32x32, 20 steps": ("tests/bench/stencil.json", {}),
    "reductions": ("tests/bench/forest.json", {}),
    "FFT": ("tests/bench/fft.json", {}),
}


def makespan(gantry, root, family, machine, policy, effort):
    path, params = FAMILIES[family]
    command = [gantry, "schedule", root / path, "--machine", root / f"graphs/machines/{machine}.json", "--json"]
    command += [f"--param={key}={value}" for key, value in params.items()]
    command += ["--effort", str(effort)] if policy == "default" else ["--policy", policy]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    if done.returncode:
        raise SystemExit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("gantry")
    parser.add_argument("root", type=pathlib.Path)
    parser.add_argument("policies", nargs="*", default=["partition"])
    parser.add_argument("--effort", type=int, default=3)
    o = parser.parse_args()
    for policy in o.policies:
        print(f"\n{policy}\n\n| graph | " + " | ".join(MACHINES) + " |")
        print("|---|" + "---|" * len(MACHINES))
        for family in FAMILIES:
            cells = []
            for machine in MACHINES:
                heft = makespan(o.gantry, o.root, family, machine, "heft", 0)
                ours = makespan(o.gantry, o.root, family, machine, policy, o.effort)
                bound = heft["bound_us"] / heft["makespan_us"]
                cells.append(f"{ours['makespan_us'] / heft['makespan_us']:.3f} ({bound:.3f})")
            print(f"| {family} | " + " | ".join(cells) + " |", flush=True)


main()
