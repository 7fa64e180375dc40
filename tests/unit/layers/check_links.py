# SPDX-License-Identifier: Apache-2.0
"""Links of the documents lead somewhere: a file that git knows, and in it the heading that is named. And tables are whole: a row behind
an empty line, without a head of its own, is shown as text."""
import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```|~~~)")


def prose(text):
    """The lines outside of blocks of code, without what is between backquotes."""
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            inside = not inside
        elif not inside:
            yield number, line


def anchors(text):
    """As GitHub makes them of headings: small letters, blanks as dashes, no other signs; one that comes again is numbered."""
    seen, found = {}, set()
    for _, line in prose(text):
        if heading := re.match(r"#{1,6} +(.*?) *#*$", line):
            words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
            slug = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
            count = seen.get(slug, 0)
            seen[slug] = count + 1
            found.add(f"{slug}-{count}" if count else slug)
    return found


def wrong_links(root, page, known):
    text = (root / page).read_text()
    for number, line in prose(text):
        for target in LINK.findall(re.sub(r"`[^`]*`", "", line)):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = (root / page).parent.joinpath(path).resolve() if path else root / page
            name = file.relative_to(root).as_posix() if file.is_relative_to(root) else None
            if name is None or (name not in known and not any(k.startswith(name + "/") for k in known)):
                yield f"{page}:{number}: {target}: there is no such file"
            elif anchor and anchor not in anchors(file.read_text()):
                yield f"{page}:{number}: {target}: no heading of {name} has this anchor"


def torn_tables(page, text):
    lines = list(prose(text))
    for (_, before), (number, line), (_, behind) in zip([(0, ""), *lines], lines, [*lines[1:], (0, "")]):
        if line.startswith("|") and not before.startswith("|") and not re.match(r"\|[-:| ]+\|$", behind):
            yield f"{page}:{number}: a row of a table that has no head"


def main(root):
    root = root.resolve()
    listed = subprocess.run(["git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], check=True, capture_output=True).stdout
    known = {name for name in listed.decode().split("\0") if name and (root / name).exists()}
    pages = sorted(name for name in known if name.endswith(".md"))
    assert anchors("# A `b` c\n## A, b (2026)!\n```\n# not\n```\n# A b c\n") == {"a-b-c", "a-b-2026", "a-b-c-1"}
    assert list(torn_tables("a", "| b |\n|---|\n| c |\n\n| d |\n")) == ["a:5: a row of a table that has no head"]
    wrong = [text for page in pages for text in wrong_links(root, page, known)]
    wrong += [text for page in pages for text in torn_tables(page, (root / page).read_text())]
    print("\n".join(wrong + [f"{len(pages)} pages, {len(wrong)} wrong links and tables"]))
    return 1 if wrong or len(pages) < 25 else 0


sys.exit(main(pathlib.Path(sys.argv[1])))
