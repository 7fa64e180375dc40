# SPDX-License-Identifier: Apache-2.0
"""Every public function of the C API is called by gantry/gantry.hpp, or is one of those below that C++ uses as they are.

check_whole.py HEADER SYMBOLS
"""
import pathlib
import re
import sys

# What of the C API C++ needs no form of its own for.
PLAIN = {
    "words for values": "access_name collective_name dtype_name dtype_size optimizer_name status_name status_text nearest",
    "lists of what the library has, by number": "backend_describe backend_name backend_summary backend_usable import_format import_summary kernel_at "
    "kernel_count kernel_find policy_name policy_summary strategy_candidate strategy_text",
    "several processes, whose handle a program keeps for its life": "network_abort network_flush network_free network_from_mpi network_give_up "
    "network_has_begun network_leave network_machine network_open network_rank network_ranks run_at_work",
    "files that appear together": "files_add files_commit files_free files_new run_save_with",
    "two results at once, or pointers into the graph": "graph_import graph_machine_hint run_rebalance run_unmeasured timeline_diff",
}


def main(header, symbols):
    text = re.sub(r"/\*.*?\*/", "", pathlib.Path(header).read_text(), flags=re.S)
    public = set(pathlib.Path(symbols).read_text().split())
    plain = {"gantry_" + one for names in PLAIN.values() for one in names.split()}
    called = {one for one in public if re.search(rf"\b{one}\b", text)}
    for name in sorted(public - called - plain):
        print(f"{header}: {name} of the C API has no form here; give it one, or name it in {sys.argv[0]} with the reason")
    for name in sorted(plain & called):
        print(f"{sys.argv[0]}: {name} has a form in {header}; take it from the list")
    for name in sorted(plain - public):
        print(f"{sys.argv[0]}: {name} is no public function; take it from the list")
    print(f"{len(called)} of {len(public)} functions")
    return 1 if public - called != plain or len(called) < 100 else 0


sys.exit(main(sys.argv[1], sys.argv[2]))
