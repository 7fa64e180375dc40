#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What docs/graph.schema.json says of the library's kernels, made of what `gantry kernels --json` says.

    tests/schema/library_kernels.py build/release/bin/gantry docs/graph.schema.json

writes it into the schema: to be called when a kernel was added or changed. The test graph_schema asks for it.
"""
import json
import subprocess
import sys

OWN = ("kernelArguments", "hostArguments", "kernels")  # the definitions of the schema that are made here


def kernels(gantry):
    done = subprocess.run([gantry, "kernels", "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["kernels"]


def argument(arg):
    if arg["kind"] == "scalar":
        more = {"default": arg["default"]} if "default" in arg else {}
        return {"description": arg["summary"] or "a number", "examples": [arg.get("default", 1)], **more, "allOf": [{"$ref": "#/definitions/argument"}]}
    what = f"{'|'.join(arg['access'])} of {', '.join(arg['dtype'])}"
    summary = (arg["summary"] + ": " if arg["summary"] else "") + ("optional, " if arg.get("optional") else "")
    return {"description": summary + what, "examples": [f"{arg['name']}[i]"], "type": "string", "minLength": 1}


def access(arg):
    return {"description": "How the node uses it.", "examples": arg["access"][:1], "enum": arg["access"]}


def arguments(kernel):
    regions = [arg for arg in kernel["args"] if arg["kind"] != "scalar"]
    required = [arg["name"] for arg in kernel["args"] if not arg.get("optional", "default" in arg)]
    args = {"additionalProperties": False, "properties": {arg["name"]: argument(arg) for arg in kernel["args"]}}
    if required:
        args["required"] = required
    accesses = {"additionalProperties": False, "properties": {arg["name"]: access(arg) for arg in regions}}
    whole = {"description": kernel["summary"], "type": "object", "properties": {"args": args, "access": accesses}}
    return {**whole, "required": ["args"]} if required else whole


def definitions(table):
    def choice(key):
        return {"allOf": [{"if": {"properties": {key: {"const": one["name"]}}}, "then": {"$ref": f"#/definitions/kernels/{one['name']}"}} for one in table]}
    return {"kernelArguments": choice("kernel"), "hostArguments": choice("host"), "kernels": {one["name"]: arguments(one) for one in table}}


def main(gantry, path):
    with open(path, encoding="utf-8") as file:
        schema = json.load(file)
    schema["definitions"].update(definitions(kernels(gantry)))
    with open(path, "w", encoding="utf-8") as file:
        json.dump(schema, file, ensure_ascii=False)
    subprocess.run([gantry, "fmt", path], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
