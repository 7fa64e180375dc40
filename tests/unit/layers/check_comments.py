# SPDX-License-Identifier: Apache-2.0
"""No comment begins with What, Who or Whether: it is a sentence, or the field's noun for the thing below it."""
import pathlib
import re
import sys

# Strings and characters are matched too, as they may hold what looks like a comment.
TOKEN = re.compile(r'/\*(.*?)\*/|//([^\n]*)|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
BAD = re.compile(r"[\s*!<]*((?:What|Who|Whether)\b[^\n]*)")


def comments(text):
    for token in TOKEN.finditer(text):
        body = token.group(1) if token.group(1) is not None else token.group(2)
        if body is not None:
            yield text.count("\n", 0, token.start()) + 1, body


def wrong_in(text):
    for number, body in comments(text):
        found = BAD.match(body)
        if found:
            yield number + body.count("\n", 0, found.start(1)), found.group(1).strip()


def main(root):
    sample = '"/* What a string */" /* Fits. */ // Whoever\n/**\n * Whether it fits. */ /* whole */ // Who fits\n'
    assert list(wrong_in(sample)) == [(3, "Whether it fits."), (3, "Who fits")], "this check does not see what it looks for"
    wrong = seen = 0
    for top in ("src", "include", "scheduler", "kernels", "tools", "tests", "docs"):
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in (".c", ".h", ".cu", ".cuh", ".cpp", ".def"):
                continue
            path, text = str(file.relative_to(root)), file.read_text()
            seen += sum(1 for _ in comments(text))
            for number, line in wrong_in(text):
                print(f'{path}:{number}: "{line}": a comment begins with a sentence or with the noun for what follows, not '
                      "with What, Who or Whether")
                wrong += 1
    print(f"{seen} comments")
    return 1 if wrong or seen < 5000 else 0


sys.exit(main(pathlib.Path(sys.argv[1])))
