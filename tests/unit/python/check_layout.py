# SPDX-License-Identifier: Apache-2.0
"""The structs, constants and prototypes of the package against those of the headers, as a C compiler sees them.

check_layout.py COMPILER INCLUDE
"""
import ctypes
import pathlib
import re
import subprocess
import sys
import tempfile

from suite import gantry
from gantry import _library, _structs, errors


def constants():
    for prefix, enum in _structs.ENUMS:
        for member in enum:
            yield f"{prefix}{member.name}", int(member)
    yield "GANTRY_NONE", _structs.NONE
    yield "GANTRY_TILE_AXES", _structs.TILE_AXES


def fields_of(struct):
    for base in reversed(struct.__mro__):
        yield from (name for name, *_ in base.__dict__.get("_fields_", ()))


def layout():
    """What is to be measured: the C expression and what Python has."""
    for name, struct in _structs.STRUCTS.items():
        yield f"sizeof({name})", ctypes.sizeof(struct)
        for field in fields_of(struct):
            descriptor = getattr(struct, field)
            yield f"offsetof({name}, {field})", descriptor.offset
            yield f"sizeof((({name} *)0)->{field})", descriptor.size
    yield from constants()


def measure(compiler, include, expressions):
    lines = "".join(f'    printf("%lld\\n", (long long)({e}));\n' for e in expressions)
    source = f"#include <gantry/gantry.h>\n#include <stddef.h>\n#include <stdio.h>\nint main(void)\n{{\n{lines}    return 0;\n}}\n"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "layout.c"
        path.write_text(source)
        subprocess.run([compiler, "-std=c11", f"-I{include}", "-o", path.with_suffix(""), path], check=True)
        done = subprocess.run([path.with_suffix("")], check=True, capture_output=True, text=True)
    return [int(line) for line in done.stdout.split()]


def headers(include):
    text = "".join(path.read_text() for path in sorted(pathlib.Path(include, "gantry").glob("*.h")))
    return re.sub(r"/\*.*?\*/", " ", text, flags=re.S)


def check_fields(text):
    """Every field of a struct in the headers is one here, in the same order, also where one is hidden in padding."""
    for name, struct in _structs.STRUCTS.items():
        body = re.search(rf"typedef struct {name} \{{(.*?)\n\}} {name};", text, re.S)
        assert body, f"the headers have no struct {name}"
        there = []
        for line in body.group(1).split(";"):
            line = re.sub(r"\[[^\]]*\]", "", line).strip()
            callback = re.search(r"\(\*(\w+)\)", line)
            if callback:
                there.append(callback.group(1))
            elif line:
                there += [re.findall(r"\w+", part)[-1] for part in line.split(",")]
        here = list(fields_of(struct))
        assert there == here, f"{name}: the header has {there}, Python {here}"


def takes(arguments):
    return 0 if arguments.strip() == "void" else arguments.count(",") + 1


KINDS = {"gantry_status": ctypes.c_int, "int": ctypes.c_int, "void": None, "size_t": ctypes.c_size_t, "gantry_node": _structs.Node,
         "gantry_buffer": _structs.Buffer, "const char *": ctypes.c_char_p}
TAKEN = {"gantry_node": _structs.Node, "gantry_buffer": _structs.Buffer, "gantry_region": _structs.Region, "double": ctypes.c_double,
         "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64, "int": ctypes.c_int, "size_t": ctypes.c_size_t}


def check_prototype(name, text):
    found = re.search(rf"GANTRY_(?:API|MUST_USE) ((?:const )?\w+ \**){name}\(([^)]*)\);", text)
    assert found, f"the headers declare no function {name}"
    returns, wanted = _library.PROTOTYPES[name]
    kind, arguments = " ".join(found.group(1).split()), found.group(2)
    assert kind not in KINDS or returns is KINDS[kind], f"{name} returns {kind}, Python says {returns}"
    assert kind in KINDS or (kind.endswith("*") and returns is not None and ctypes.sizeof(returns) == 8), f"{name} returns {kind}, Python says {returns}"
    assert takes(arguments) == len(wanted), f"{name}({arguments}) takes {takes(arguments)}, Python says {len(wanted)}"
    for argument, here in zip(arguments.split(","), wanted):
        by_value = re.fullmatch(r"(?:const )?(\w+) \w+", argument.strip())
        if by_value is None:
            assert ctypes.sizeof(here) == 8 and here not in TAKEN.values(), f"{name}: {argument} is a pointer, Python says {here}"
        elif by_value.group(1) in TAKEN:
            assert here is TAKEN[by_value.group(1)], f"{name}: {argument}, Python says {here}"
        else:  # an enum
            assert by_value.group(1).startswith("gantry_") and here is ctypes.c_int, f"{name}: {argument}, Python says {here}"


def check_statuses(text):
    """A class of its own for each status, and the name that C has for it."""
    there = {name: int(value) for name, value in re.findall(r"X\((OK|E_\w+), (-?\d+),", text)}
    assert there == {m.name: int(m) for m in _structs.Status}, "another list of statuses"
    assert set(errors.BY_STATUS) == set(there.values()) - {0}, "statuses without a class"
    for value, cls in errors.BY_STATUS.items():
        assert cls("").code == _library.lib.gantry_status_name(value).decode()


def check_locks():
    """Calls that build a graph keep the interpreter's lock; those that plan, run, wait or read files release it."""
    keeps = {name for name in _library.PROTOTYPES if getattr(_library.lib, name)._flags_ & 4}  # FUNCFLAG_PYTHONAPI
    assert {"gantry_graph_buffer", "gantry_graph_map", "gantry_node_arg", "gantry_buffer_split", "gantry_graph_at"} <= keeps, keeps
    assert not keeps & {name for name, (returns, _) in _library.PROTOTYPES.items() if returns is ctypes.c_int or name.endswith("_free")}, keeps


def main(compiler, include):
    wanted = list(layout())
    assert len(wanted) > 300
    seen = measure(compiler, include, [expression for expression, _ in wanted])
    wrong = [f"{e} is {c}, Python has {p}" for (e, p), c in zip(wanted, seen, strict=True) if c != p]
    print("\n".join(wrong))
    text = headers(include)
    check_fields(text)
    for name in _library.PROTOTYPES:
        check_prototype(name, text)
    check_statuses(text)
    check_locks()
    version = ".".join(re.search(rf"VERSION_{part} (\d+)", text).group(1) for part in ("MAJOR", "MINOR", "PATCH"))
    assert version == gantry.__version__ == _library.lib.gantry_version().decode(), (version, gantry.__version__)
    print(f"{len(wanted)} numbers, {len(_library.PROTOTYPES)} prototypes")
    return bool(wrong)


sys.exit(main(*sys.argv[1:]))
