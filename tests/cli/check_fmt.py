# SPDX-License-Identifier: Apache-2.0
"""`gantry fmt`: the project's own files are laid out by it; keys, numbers and texts of any file stay as they are, to the letter;
what it writes depends on no blanks of what it reads, and comes out of itself unchanged; graphs load as before. And `--json`
tells errors as one object.

check_fmt.py GANTRY ROOT
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

WIDTH = 140


def call(gantry, *words, data=None):
    done = subprocess.run([gantry, *map(str, words)], input=data, capture_output=True, timeout=120)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def exact(text):
    """The value with its order of keys, and with numbers as they are written."""
    return json.loads(text, object_pairs_hook=list, parse_float=lambda t: ("real", t), parse_int=lambda t: ("whole", t))


def texts(text):
    """The strings as they are written, escapes and all."""
    return [token for token in tokens(text) if token[0] == '"']


def tokens(text):
    at = 0
    while at < len(text):
        end = at + 1
        if text[at] == '"':
            while text[end] != '"':
                end += 1 + (text[end] == "\\")
            end += 1
        elif text[at] not in "{}[],: \t\r\n":
            while end < len(text) and text[end] not in "{}[],: \t\r\n":
                end += 1
        if not text[at].isspace():
            yield text[at:end]
        at = end


def respaced(text, chance):
    """The same tokens with other blanks between them."""
    return "".join(token + chance.choice(["", " ", "\n", "\t", "\r\n  "]) for token in tokens(text))


def value(chance, depth):
    kind = chance.random()
    if depth and kind < 0.35:
        return {chance.choice(["nodes", "a", "é" * 3, 'q"\\', f"k{i}"]) + str(i): value(chance, depth - 1) for i in range(chance.choice([0, 1, 3, 9]))}
    if depth and kind < 0.6:
        return [value(chance, depth - 1) for _ in range(chance.choice([0, 1, 2, 40]))]
    return chance.choice([0, -17, 1e-24, 2.50, True, None, "", "x" * chance.randrange(160), 'a "quote" \\ \n', "ünï ☃", 1 << 62])


def mark(name, good, said=""):
    if not good:
        raise SystemExit(f"FAILED {name}\n{said}")


def check_text(gantry, text, name, chance):
    code, once, said = call(gantry, "fmt", "-", data=text.encode())
    mark(f"{name}: formats", code == 0, said)
    mark(f"{name}: the same value", exact(once) == exact(text))
    mark(f"{name}: the same tokens", list(tokens(once)) == list(tokens(text)))
    mark(f"{name}: whatever the blanks", call(gantry, "fmt", "-", data=respaced(text, chance).encode())[1] == once)
    mark(f"{name}: unchanged by itself", call(gantry, "fmt", "-", data=once.encode())[1] == once)
    for line in once.splitlines():
        # What is wider than a line is one key with one value that cannot be cut.
        mark(f"{name}: width of {line}", len(line) <= WIDTH or len(texts(line)) + line.count("[") <= 8)


def loads_alike(gantry, path, folder, chance):
    copy = folder / path.name
    copy.write_text(respaced(path.read_text(), chance))
    mark(f"{path.name}: formats in place", call(gantry, "fmt", copy) == (0, f"{copy}: formatted\n", ""))
    before = call(gantry, "schedule", path, "--devices", 2, "--effort", 0, "-o", "-")
    after = call(gantry, "schedule", copy, "--devices", 2, "--effort", 0, "-o", "-")
    mark(f"{path.name}: loads", before[0] == 0, before[2])
    mark(f"{path.name}: gives the same schedule", before[1] == after[1])
    copy.unlink()


def in_place(gantry, folder):
    good, other, broken = folder / "good.json", folder / "other.json", folder / "broken.json"
    good.write_text('{"b":1,"a":[1.50]}')
    other.write_text('{ }')
    broken.write_text('{"a": 1,\n "a": 2}')
    before = good.stat().st_mtime_ns
    code, out, err = call(gantry, "fmt", "--check", good, other)
    mark("--check fails, names both and the remedy", code == 1 and not out and err.count("call `gantry fmt ") == 2, err)
    code, out, err = call(gantry, "fmt", good, broken)
    mark("a key twice is refused with its place", code == 3 and f"{broken}:2:" in err, err)
    mark("nothing was written", good.stat().st_mtime_ns == before and good.read_text() == '{"b":1,"a":[1.50]}')
    code, out, err = call(gantry, "fmt", good, other, "--json")
    mark("--json names what was written", json.loads(out) == {"formatted": [str(good), str(other)]}, out)
    mark("keys keep their order", good.read_text() == '{\n  "b": 1,\n  "a": [1.50]\n}\n', good.read_text())
    mark("then all is well", call(gantry, "fmt", "--check", good, other) == (0, "", ""))
    for text, place in [("[1]", "is not an object"), ("", ":1:"), ("{} x", ":1:"), ('{"a": 1', ":1:")]:
        broken.write_text(text)
        code, out, err = call(gantry, "fmt", broken)
        mark(f"{text!r} is refused", code == 3 and place in err and broken.read_text() == text, err)
    code, out, err = call(gantry, "fmt", folder / "none.json", "--json")
    mark("a file that is not there", code == 2 and "none.json" in json.loads(out)["error"]["what"], out)


def error_of(gantry, *words):
    code, out, err = call(gantry, *words)
    told = json.loads(out)["error"]
    mark(f"{words}: message and code", code and told["exit_code"] == code and told["message"] == err.strip(), out + err)
    return told


def errors(gantry, root):
    """Each command with --json: what is wrong is one object on standard output, the line stays on standard error."""
    case = root / "graphs/invalid/arg-unknown.json"
    told = error_of(gantry, "run", case, "--json")
    mark("a graph", told["status"] == "GANTRY_E_GRAPH" and told["where"] == "/nodes/0/args/xx" and told["line"] == 8 and told["file"].endswith("arg-unknown.json"))
    mark("its words", (told["seen"], told["nearest"]) == ("xx", "x"), str(told))
    told = error_of(gantry, "schedule", root / "graphs/saxpy.json", "--effort", "12", "--json")
    mark("an option", (told["seen"], told["allowed"], told["status"]) == ("12", "a whole number from 0 to 9", None), str(told))
    told = error_of(gantry, "kernels", "gem", "--json")
    mark("a name", told["nearest"] == "gemm" and told["remedy"] == "`gantry kernels` lists them", str(told))
    told = error_of(gantry, "run", root / "graphs/invalid/version-string.json", "--json")
    mark("a kind", told["seen"] == "a string" and told["allowed"] == "the version of the format, which is 1", str(told))
    for words in [("dot", "none.json"), ("check", "none.json", "n"), ("compare", "none.json"), ("scale", "none.json"), ("machine", "none.json"),
                  ("import", "none.stg"), ("bench", "none"), ("fmt", "none.json"), ("run",), ("fmt", "a", "--nothing"), ("nothing",)]:
        error_of(gantry, *words, "--json")
    code, out, err = call(gantry, "run", case)
    mark("without --json standard output is empty", code == 3 and not out and err)


def main(gantry, root):
    root, chance = pathlib.Path(root), random.Random(5)
    own = [*sorted(root.glob("graphs/*.json")), *sorted(root.glob("graphs/blocks/*.json")), root / "docs/graph.schema.json"]
    code, _, said = call(gantry, "fmt", "--check", *own)
    mark("the project's own files", code == 0 and len(own) > 20, said)
    others = sorted(root.glob("graphs/invalid/a*.json"))[::6] + sorted(root.glob("graphs/machines/*.json"))[:4]
    for path in own[:8] + others:
        text = path.read_text()
        try:
            exact(text)
        except ValueError:
            continue
        check_text(gantry, text, path.name, chance)
    for number in range(60):
        root_value = {"gantry": 1, "nodes": [value(chance, 3) for _ in range(3)], "more": value(chance, 4)}
        check_text(gantry, json.dumps(root_value, ensure_ascii=chance.random() < 0.5), f"random value {number}", chance)
    with tempfile.TemporaryDirectory() as folder:
        for name in ["cholesky", "jacobi", "cg", "train_pipeline"]:
            loads_alike(gantry, root / f"graphs/{name}.json", pathlib.Path(folder), chance)
        in_place(gantry, pathlib.Path(folder))
    errors(gantry, root)
    print(f"{len(own)} files of the project are formatted, random ones stay what they are, errors are objects")


main(*sys.argv[1:])
