# SPDX-License-Identifier: Apache-2.0
"""docs/cookbook.md, docs/faq.md and docs/tutorials: what is shown is what happens. Each `console` block has commands behind "$ ", and under each what it
prints; a line "..." stands for any lines, "..." at the end of a line for the rest of it. Numbers with a point may differ by a thousandth, since
sums of products do between processors. Complete graphs of a page are files for its commands, NAME.json by their "name". Links between pages lead somewhere.
Recipes of the cookbook say what they are in other systems.

check_pages.py GANTRY ROOT            compares, and prints what is different
check_pages.py GANTRY ROOT --update   writes what was printed into the pages, as far as lines without "..." go, and prints what it could not write
"""
import difflib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

LEAST = {"cookbook.md": 10, "faq.md": 0, "python.md": 0}  # so that a page that lost its blocks is noticed; tests/unit/python runs those of python.md
SYSTEMS = ("NCCL", "MPI", "torch.distributed", "NVSHMEM")
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.S | re.M)


def same_word(one, other):
    if one == other:
        return True
    one, other = one.strip("(),%"), other.strip("(),%")
    try:
        return "." in one and "." in other and abs(float(one) - float(other)) <= 1e-3 * abs(float(one))
    except ValueError:
        return False


def same_line(want, got):
    wanted, found = want.split(), got.split()
    if wanted and wanted[-1] == "...":
        wanted.pop()
        found = found[:len(wanted)]
    return len(wanted) == len(found) and all(map(same_word, wanted, found))


def same_lines(want, got):
    if not want:
        return not got
    if want[0] == "...":
        return same_lines(want[1:], got) or (bool(got) and same_lines(want, got[1:]))
    return bool(got) and same_line(want[0], got[0]) and same_lines(want[1:], got[1:])


def renewed(want, got):
    """The lines that were printed in place of those that are most like them, where "..." leaves lines out; else all of them."""
    if "..." not in want:
        return [next((line for line in want if line.endswith(" ...") and same_line(line, new)), new) for new in got]
    lines, at = [], 0
    for line in want:
        if line == "..." or at >= len(got):
            lines += ["..."] if line == "..." else []
        else:
            best = max(range(at, len(got)), key=lambda k: difflib.SequenceMatcher(None, line, got[k]).ratio())
            kept = len(line.split()) - 1 if line.endswith(" ...") else None
            lines.append(line if same_line(line, got[best]) and kept else got[best])
            at = best + 1
    return lines


def run(command, folder, environment):
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    if done.returncode:
        return done.returncode, (done.stdout + done.stderr).splitlines()
    return 0, [line.rstrip() for line in done.stdout.splitlines()]


def steps(block):
    """Commands of a block, and the lines under each."""
    found = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append([line[2:], []])
        elif found[-1][0].endswith(("\\", "|")):
            found[-1][0] += "\n" + line
        else:
            found[-1][1].append(line)
    return found


def anchors(text):
    """What headings are called in links, as GitHub makes it of them."""
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in re.findall(r"^#+ (.*)", text, re.M)}


def check_links(page, text):
    missing, prose = 0, re.sub(r"^```.*?^```$|^ {4}.*?$", "", text, flags=re.S | re.M)
    for file, anchor in re.findall(r"\]\(([^)#:]*)(?:#([^):]*))?\)", prose):
        target = page.parent / file if file else page
        if not target.exists() or (anchor and anchor not in anchors(target.read_text())):
            print(f"FAILED {page.name}: there is no {file}#{anchor}")
            missing += 1
    return missing


def check_recipes(page, text):
    """Each recipe of the cookbook says what it is in each of the systems that people come from, and when it is the wrong tool."""
    missing, recipes = 0, re.findall(r"^## (\d+\. .*?)$(.*?)(?=^## |\Z)", text, re.S | re.M) if page.name == "cookbook.md" else []
    for heading, recipe in recipes:
        elsewhere = recipe.partition("**Elsewhere.**")[2].partition("**Not when**")
        lacks = [name for name in SYSTEMS if not re.search(rf"^- {re.escape(name)}: \S", elsewhere[0], re.M)] + ([] if elsewhere[1] else ["when not"])
        if lacks:
            print(f"FAILED {page.name}: recipe \"{heading}\" does not say what it is in {', '.join(lacks)}")
        missing += len(lacks)
    return missing


def check_quotes(page, root, text):
    """C and C++ are of the examples and of the work by hand in the tree, line by line."""
    sources = [file.read_text() for pattern in ("docs/examples/*.c", "tests/bench/hand/*.cu") for file in sorted(root.glob(pattern))]
    strange = [code for code in re.findall(r"^```c(?:pp)?\n(.*?)^```$", text, re.S | re.M) if not any(code in source for source in sources)]
    for code in strange:
        print(f"FAILED {page.name}: no source has\n{code}")
    return len(strange)


def check(page, root, environment, update):
    text, counts = page.read_text(), [0, 0]

    def again(match):
        lines = []
        for command, want in steps(match.group(1)):
            code, got = run(command, folder, environment)
            fine = same_lines(want, got) and (code == 0 or bool(want))
            if not fine and not update:
                print(f"FAILED {page.name}: {command}\nexit {code}; shown < and printed >")
                print("\n".join(difflib.ndiff(want, got)))
            if not fine and update:
                want = renewed(want, got)
                fine = same_lines(want, got)
                print("" if fine else f"FAILED {page.name}: {command}\nexit {code}; this is to be shown by hand:\n" + "\n".join(got))
            counts[fine] += 1
            lines += ["$ " + command, *want]
        return "```console\n" + "\n".join(lines) + "\n```"

    with tempfile.TemporaryDirectory() as folder:
        for name in ("graphs", "tests", "tools"):
            os.symlink(root / name, pathlib.Path(folder) / name)
        for block in re.findall(r"^```json\n(\{.*?)^```$", text, re.S | re.M):
            graph = json.loads(block)
            (pathlib.Path(folder) / f"{graph['name']}.json").write_text(block)
        new = BLOCK.sub(again, text)
    if update:
        page.write_text(new)
    if sum(counts) < LEAST.get(page.name, 1):
        print(f"FAILED {page.name}: shows {sum(counts)} commands")
        counts[0] += 1
    counts[0] += check_links(page, text) + check_quotes(page, root, text) + check_recipes(page, text)
    print(f"{page.name}: {counts[1]} as shown, {counts[0]} not")
    return counts[0]


def main(gantry, root, update=False):
    root = pathlib.Path(root).resolve()
    path = f"{pathlib.Path(gantry).resolve().parent}:{os.environ['PATH']}"
    environment = dict(os.environ, PATH=path, NO_COLOR="1", COLUMNS="120", LC_ALL="C.UTF-8")
    pages = [root / "docs/cookbook.md", root / "docs/faq.md", *sorted((root / "docs/tutorials").glob("*.md"))]
    return sum(check(page, root, environment, update) for page in pages) > 0


sys.exit(main(sys.argv[1], sys.argv[2], "--update" in sys.argv))
