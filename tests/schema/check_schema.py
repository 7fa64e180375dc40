#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/graph.schema.json held against everything that is, or is not, a graph.

 - All of graphs/ and graphs/reference/, and the complete examples in docs/graph-format.md, must pass.
 - A case of graphs/invalid/ whose .error has the line "schema: refuses" must be refused. Other cases are mistakes of
   meaning, which a schema need not see; they may fail only if they are not JSON at all.
 - The schema itself must be a schema.
"""
import glob
import json
import os
import re
import sys

try:
    import jsonschema
except ImportError:
    print("skipped: python3-jsonschema is not installed")
    sys.exit(77)

LEAST_REFUSED = 60
root = sys.argv[1]
failures = []


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def examples():
    with open(os.path.join(root, "docs", "graph-format.md"), encoding="utf-8") as file:
        page = file.read()
    for number, text in enumerate(re.findall(r"```json\n(.*?)```", page, re.S)):
        if '"gantry": 1' in text:
            yield f"docs/graph-format.md, example {number}", json.loads(text)


def valid():
    for pattern in ("graphs/*.json", "graphs/reference/*.json"):
        for path in sorted(glob.glob(os.path.join(root, pattern))):
            yield os.path.relpath(path, root), load(path)
    yield from examples()


def best(validator, value):
    return jsonschema.exceptions.best_match(validator.iter_errors(value))


def check_valid(validator):
    count = 0
    for name, value in valid():
        error = best(validator, value)
        count += 1
        if error:
            failures.append(f"{name} is refused: {'/'.join(map(str, error.path))}: {error.message[:200]}")
    return count


def check_invalid(validator):
    refused = missed = 0
    for path in sorted(glob.glob(os.path.join(root, "graphs", "invalid", "*.json"))):
        name = os.path.relpath(path, root)
        with open(path[:-len("json")] + "error", encoding="utf-8") as file:
            structural = "schema: refuses" in file.read().splitlines()
        try:
            error = best(validator, load(path))
        except ValueError:
            error = None
            if structural:
                failures.append(f"{name} is not JSON: that is no matter of the schema")
        if structural and not error:
            failures.append(f"{name} has a mistake of form that the schema does not see")
        if error and not structural:
            failures.append(f"{name} is refused, so its .error should say so: {error.message[:200]}")
        refused += structural
        missed += not structural
    if refused < LEAST_REFUSED:
        failures.append(f"only {refused} cases are refused by the schema")
    return refused, missed


schema = load(os.path.join(root, "docs", "graph.schema.json"))
jsonschema.Draft7Validator.check_schema(schema)
checker = jsonschema.Draft7Validator(schema)
passed = check_valid(checker)
refused_cases, other_cases = check_invalid(checker)
print(f"{passed} graphs pass; of the invalid ones {refused_cases} are refused, {other_cases} are mistakes of meaning or syntax")
for failure in failures:
    print(failure)
sys.exit(1 if failures else 0)
