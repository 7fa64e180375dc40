# SPDX-License-Identifier: Apache-2.0
"""The rows of tests/unit/api/null_rows.def are complete: each exported function has one for each of its pointers, which
is NULL there, and for each of its floating numbers, which is NaN there; so have the numbers of structs of options."""
import pathlib
import re
import sys

NO_ROW = {"err"}  # every row is tried with and without a record for the error


def bare(text):
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return re.sub(r"^\s*#(?:.*\\\n)*.*$", "", text, flags=re.M)


def pointers_and_numbers(parameters):
    for parameter in parameters.split(","):
        name = parameter.split()[-1].lstrip("*")
        if "*" in parameter or re.search(r"_fn\b", parameter) or re.match(r"\s*double\b", parameter):
            yield name


def wanted(text):
    """{function: [parameters]}"""
    found = {}
    for match in re.finditer(r"GANTRY_(?:API|MUST_USE)\s+[\w\s*]*?(gantry_\w+)\(([^;]*)\);", text):
        names = set(pointers_and_numbers(match.group(2)))
        # The error is what gantry_error_format is about.
        found[match.group(1)] = names - (NO_ROW if match.group(1) != "gantry_error_format" else set())
    for match in re.finditer(r"typedef struct (gantry_\w+_options) \{(.*?)\}", text, flags=re.S):
        fields = re.findall(r"\bdouble (\w+(?:, \w+)*);", match.group(2))
        found[match.group(1)] = {name for field in fields for name in field.split(", ")}
    return found


def main(headers, symbols, rows):
    text = bare("".join(path.read_text() for path in sorted(pathlib.Path(headers).glob("*.h"))))
    want = wanted(text)
    have = {}
    for function, parameter in re.findall(r"^ROW\((\w+), ([^,]+),", pathlib.Path(rows).read_text(), flags=re.M):
        have.setdefault(function, set()).add(parameter)
    wrong = [f"{name} of symbols.txt is in no header" for name in pathlib.Path(symbols).read_text().split()
             if name not in want]
    for function, parameters in sorted(want.items()):
        for parameter in sorted(parameters - have.get(function, set())):
            wrong.append(f"{rows}: no row calls {function} with NULL or NaN for {parameter}; add one")
    for function in sorted(set(have) & set(want)):
        for parameter in sorted(have[function] - want[function]):
            if re.fullmatch(r"\w+", parameter) and not function.endswith("_options"):
                wrong.append(f"{rows}: {function} has no pointer and no number {parameter}; take the row away")
    count = sum(len(parameters) for parameters in want.values())
    print("\n".join(wrong + [f"{len(want)} functions and structs, {count} pointers and numbers"]))
    return 1 if wrong or count < 200 else 0


sys.exit(main(*sys.argv[1:4]))
