# SPDX-License-Identifier: Apache-2.0
"""Each gy_ or GY_ name has one meaning: the function, type, variable, constant or macro is defined once in the tree.

A function is also declared in one header only. `typedef struct NAME NAME;` declares and does not define; what stands in the
branches of one file's #if counts once, and FILE_none.c is what is built in place of FILE.c."""
import collections
import pathlib
import re
import sys

# Names that still have two meanings: none may be added, and one that is renamed has to leave the list.
TWO_MEANINGS = set()

NAME = r"\b(gy_\w+|GY_\w+)"
BODY = re.compile(r"\b(?:struct|union|enum)\s+" + NAME + r"\s*\{")
ENUM = re.compile(r"\benum\b[^{};]*\{([^}]*)\}")
MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+" + NAME, re.M)
FUNCTION = re.compile(NAME + r"\s*\((?:[^()]|\([^()]*\))*\)$")
ARGUMENTS = re.compile(r"\((?:[^()]|\([^()]*\))*\)")


def without_comments(text):
    """Comments and the contents of strings are gone, line numbers are the same."""
    def blank(match):
        found = match.group()
        return '""' if found[0] in "\"'" else "\n" * found.count("\n") + " "
    return re.sub(r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", blank, text, flags=re.S)


def statements(text):
    """The declarations and definitions at file scope: each with its line, and the bodies in braces written as {}."""
    depth, begin, line, parts = 0, 1, 1, []
    for c in text:
        if c == "\n":
            line += 1
        if c == "}":
            depth -= 1
        if depth == 0:
            if not parts and c.isspace():
                begin = line
                continue
            if not parts:
                begin = line
            parts.append(c)
        if c == "{":
            depth += 1
        if depth == 0 and c in ";}":
            joined = " ".join("".join(parts).split())
            if c == ";" or FUNCTION.search(joined[:-2].rstrip()):
                yield begin, joined
                parts = []


def names_of(statement):
    """What a statement at file scope defines, as (kind, name)."""
    definition = statement.endswith("{}")
    head = statement[:-2].rstrip() if definition else statement.rstrip(";").rstrip()
    if head.startswith("typedef"):
        if not re.fullmatch(r"typedef (?:struct|union|enum) (\w+) \1", head):
            pointer = re.search(r"\(\*\s*" + NAME, head)
            last = re.findall(NAME, head)
            if pointer or last and re.search(NAME + r"(?:\[.*\])?$", head):
                yield "type", (pointer.group(1) if pointer else last[-1])
        return
    function = FUNCTION.search(head)
    if function and definition:
        yield "function", function.group(1)
        return
    plain = re.sub(r"__attribute__ ?\(\(.*?\)\)", "", head).rstrip()
    function = FUNCTION.search(plain)
    if function and "=" not in plain:
        yield "declaration", function.group(1)
    elif not head.startswith(("extern", "struct", "enum", "union")):
        variable = re.search(r"[\w*] ?\*?" + NAME + r" ?(?:\[[^=]*\])? ?(?:=.*)?$", head)
        if variable and " " in head:
            yield "variable", variable.group(1)


def definitions(file):
    text = without_comments(file.read_text())
    for match in MACRO.finditer(text):
        if not re.search(r"^[ \t]*#[ \t]*undef[ \t]+" + match.group(1) + r"\b", text, re.M):
            yield "macro", match.group(1), text.count("\n", 0, match.start()) + 1
    text = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: "\n" * m.group().count("\n"), text, flags=re.M)
    for match in BODY.finditer(text):
        yield "type", match.group(1), text.count("\n", 0, match.start()) + 1
    for match in ENUM.finditer(text):
        for name in re.findall(r"(?:^|,)\s*" + NAME, match.group(1)):
            yield "constant", name, text.count("\n", 0, match.start()) + 1
    for line, statement in statements(text):
        for kind, name in names_of(statement):
            yield kind, name, line


def main(root):
    places = collections.defaultdict(dict)
    for top in ("src", "scheduler", "kernels"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in (".c", ".h"):
                continue
            path = str(file.relative_to(root))
            for kind, name, line in definitions(file):
                meaning = ("declared", name) if kind == "declaration" else ("defined", name)
                places[meaning].setdefault(path.replace("_none.c", ".c"), f"{path}:{line}: {kind}")
    wrong, twice = 0, set()
    for (what, name), where in sorted(places.items()):
        if len(where) > 1:
            twice.add(name)
        if len(where) > 1 and name not in TWO_MEANINGS:
            print(f"{name} is {what} {len(where)} times: {', '.join(where.values())}")
            wrong += 1
    for name in sorted(TWO_MEANINGS - twice):
        print(f"{name} has one meaning now: take it off the list of check_names.py")
        wrong += 1
    print(f"{len(places)} names, {len(twice)} with more than one meaning")
    return 1 if wrong or len(places) < 1000 else 0


sys.exit(main(pathlib.Path(sys.argv[1])))
