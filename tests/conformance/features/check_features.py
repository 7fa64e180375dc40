# SPDX-License-Identifier: Apache-2.0
"""Every feature of the graph format on 1 to 4 devices, under every policy, plain and in checking mode, against NumPy.

check_features.py GANTRY INCLUDE [CASE ...]
"""
import sys
import traceback

import cases_loops  # noqa: F401 - adds to CASES
import cases_reductions  # noqa: F401
from cases_nodes import CASES
from runner import POLICIES, Gantry, difference, expected, np, with_kernels


def configurations():
    for devices in (1, 2, 3, 4):
        for policy in POLICIES:
            for extra in ([], ["--check"]):
                yield ["--devices", devices, "--policy", policy, *extra]


def check_oracle(case, want):
    """The oracle against what the case says in a line of NumPy."""
    for name, array in case.want.items():
        np.testing.assert_array_equal(want[name], np.asarray(array, want[name].dtype), err_msg=f"oracle, {name}")


def check(gantry, case):
    graph = with_kernels(case.graph)
    if getattr(case, "no_oracle", False):
        want = case.want
        buffers = {name: (graph["buffers"][name]["dtype"], array.shape) for name, array in want.items()}
    else:
        want, buffers = expected(graph, case.params, case.inputs, case.starts)
        check_oracle(case, want)
    words = [w for name, value in case.params.items() for w in ("--param", f"{name}={value}")] + ["--iterations", case.starts]
    failed = 0
    for configuration in configurations():
        result = gantry.run(graph, [*words, *configuration], case.inputs, buffers)
        problem = result.err if result.code else difference(result.arrays, want)
        if problem:
            failed += 1
        if problem and failed <= 3:
            print(f"  {' '.join(map(str, configuration))}: exit {result.code}: {problem.strip()}")
    return failed


def main(command, include, only):
    gantry, failed = Gantry(command, include), 0
    for name, make in CASES.items():
        if only and name not in only:
            continue
        try:
            wrong = check(gantry, make())
        except Exception:  # noqa: BLE001 - one case must not hide the others
            traceback.print_exc()
            wrong = 1
        failed += wrong > 0
        if wrong:
            print(f"FAILED {name}: {wrong} configurations")
    print(f"{len(only) or len(CASES)} cases, {gantry.runs} runs, {failed} failed")
    return 1 if failed else 0


sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
