#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/graph.schema.json held against everything that is, or is not, a graph.

 - All of graphs/ and graphs/reference/, and the complete examples in docs/graph-format.md, must pass.
 - A case of graphs/invalid/ whose .error has the line "schema: refuses" must be refused. Other cases are mistakes of
   meaning, which a schema need not see; they may fail only if they are not JSON at all.
 - The schema itself must be a schema. Every key has a description and examples, which are right by what it says of the key.
 - What it says of the library's kernels is what the command says.
 - Any key of any of these graphs, misspelt, gives one message that names it.
"""
import glob
import json
import os
import re
import sys

import library_kernels

try:
    import jsonschema
except ImportError:
    print("skipped: python3-jsonschema is not installed")
    sys.exit(77)

LEAST_REFUSED = 60
LEAST_MISSPELT = 200
root, gantry = sys.argv[1:]
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
    for pattern in ("graphs/*.json", "graphs/reference/*.json", "graphs/models/*.json", "graphs/models/blocks/*.json", "graphs/decode/*.json"):
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


def keys_of(at, path=""):
    """Every key that some object may have, with what is said of it; "#/..." is looked up."""
    if isinstance(at, list):
        for number, value in enumerate(at):
            yield from keys_of(value, f"{path}/{number}")
    if not isinstance(at, dict):
        return
    for key, value in at.items():
        if key in ("properties", "definitions"):
            for name, said in value.items():
                if key == "properties" and isinstance(said, dict) and "const" not in said and not re.search(r"/(if|undecided)(/|$)|/kernels/\w+$", path):
                    yield f"{path}/{name}", schema["definitions"][said["$ref"].rsplit("/", 1)[1]] if "$ref" in said else said
                yield from keys_of(said, f"{path}/{name}")
        elif key not in ("examples", "default"):
            yield from keys_of(value, f"{path}/{key}")


def check_keys():
    count = 0
    for path, said in keys_of(schema):
        count += 1
        if not said.get("description") or not said.get("examples"):
            failures.append(f"the key {path} has no description or no examples")
        part = jsonschema.Draft7Validator({**said, "definitions": schema["definitions"]})
        for example in said.get("examples", []):
            error = best(part, example)
            if error:
                failures.append(f"the example {example} of {path} is wrong: {error.message[:200]}")
    return count


def check_kernels():
    made = library_kernels.definitions(library_kernels.kernels(gantry))
    for name in library_kernels.OWN:
        if schema["definitions"][name] != made[name]:
            failures.append(f"definitions/{name} is not what `gantry kernels` says; call tests/schema/library_kernels.py")


# What these hold have names that the graph chooses.
CHOSEN = {"params", "args", "access", "map", "reduce", "for", "carry", "with", "time_us", "buffers", "kernels", "machine"}


def misspelt(at, path=()):
    """Each object that has keys of the format, with one of them misspelt: (what to put where, the misspelt key)."""
    if isinstance(at, dict):
        for key, value in at.items():
            if not path or path[-1] not in CHOSEN or path in (("args",), ("with",)):
                yield path, {("x" + k if k == key else k): v for k, v in at.items()}, "x" + key
            if key != "machine":
                yield from misspelt(value, path + (key,))
    elif isinstance(at, list):
        for number, value in enumerate(at):
            yield from misspelt(value, path + (number,))


def replaced(at, path, value):
    if not path:
        return value
    copy = at.copy()
    copy[path[0]] = replaced(at[path[0]], path[1:], value)
    return copy


def check_misspelt(validator):
    """Among the same keys a misspelt one is tried once."""
    tried = set()
    for name, graph in valid():
        for path, value, key in misspelt(graph):
            kind = (*sorted(value), path[-1:] if path and isinstance(path[-1], str) else "")
            if kind in tried:
                continue
            tried.add(kind)
            error = best(validator, replaced(graph, path, value))
            if not error or f"'{key}'" not in error.message or "\n" in error.message:
                failures.append(f"{name}: \"{key}\" at {'/'.join(map(str, path))} gives: {error.message[:200] if error else 'nothing'}")
    if len(tried) < LEAST_MISSPELT:
        failures.append(f"only {len(tried)} keys were misspelt")
    return len(tried)


schema = load(os.path.join(root, "docs", "graph.schema.json"))
jsonschema.Draft7Validator.check_schema(schema)
checker = jsonschema.Draft7Validator(schema)
passed = check_valid(checker)
refused_cases, other_cases = check_invalid(checker)
keys = check_keys()
check_kernels()
typos = check_misspelt(checker)
print(f"{passed} graphs pass; of the invalid ones {refused_cases} are refused, {other_cases} are mistakes of meaning or syntax")
print(f"{keys} keys are described, {typos} misspelt ones are named")
for failure in failures:
    print(failure)
sys.exit(1 if failures else 0)
