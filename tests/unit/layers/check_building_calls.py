# SPDX-License-Identifier: Apache-2.0
"""Every building call of gantry/graph.h has a macro that gives it the line of the program, and a test of that line.

A building call changes a graph and returns no status: its first parameter is `gantry_graph *graph`."""
import pathlib
import re
import sys

NOT_BUILDING = {"gantry_graph_free", "gantry_graph_at"}


def declared(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    text = re.sub(r"^\s*#.*?(?<!\\)$", "", text, flags=re.S | re.M)
    found = re.findall(r"GANTRY_API\s+[\w\s*]*?(gantry_\w+)\(\s*gantry_graph \*graph\b", text)
    return set(found) - NOT_BUILDING


def main(header, test):
    text = pathlib.Path(header).read_text()
    calls = declared(text)
    macro = r"^#define (gantry_\w+)\(g(?:, \.\.\.)?\)\s+\(\1\)\(GANTRY_HERE\(g\)(?:, __VA_ARGS__)?\)$"
    macros = set(re.findall(macro, text, flags=re.M))
    source = pathlib.Path(test).read_text()
    tested = set(re.findall(r"^CALL\((gantry_\w+),", source, flags=re.M)) & set(re.findall(r"ROW\((gantry_\w+),", source))
    for name in sorted(calls - macros):
        print(f"{header}: {name} has no macro, so its errors name the line of an earlier call; add one to the list")
    for name in sorted(macros - calls):
        print(f"{header}: {name} has a macro and is no building call; take the macro away")
    for name in sorted(calls ^ tested):
        print(f"{test}: {name} needs a CALL and a ROW, if it is a building call, and none if it is not")
    print(f"{len(calls)} building calls")
    return 1 if calls != macros or calls != tested or len(calls) < 40 else 0


sys.exit(main(sys.argv[1], sys.argv[2]))
