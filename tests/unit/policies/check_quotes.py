# SPDX-License-Identifier: Apache-2.0
"""What docs/writing-a-policy.md quotes is what the files say.

A code block below a line `<!-- whole of FILE -->` is the file; below `<!-- part of FILE -->`, lines of it in a row.

check_quotes.py SOURCE
"""
import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1])
page = (source / "docs" / "writing-a-policy.md").read_text()
quotes = re.findall(r"^<!-- (whole|part) of (\S+) -->\n```c\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
bad = 0
for how, name, text in quotes:
    lines, wanted = (source / name).read_text().splitlines(), text.splitlines()
    found = lines == wanted if how == "whole" else any(
        lines[i:i + len(wanted)] == wanted for i in range(len(lines) - len(wanted) + 1))
    if not wanted or not found:
        bad += 1
        print(f"docs/writing-a-policy.md: the quotation of {name} is not what is there; copy it again")
if page.count("```c") != len(quotes) or not any(how == "whole" for how, _, _ in quotes):
    bad += 1
    print("docs/writing-a-policy.md: a C block has no line above it that says where it is from, or no file is quoted whole")
for name in re.findall(r"^\| `([^`]+\.h)` \|", page, re.MULTILINE):
    if not (source / "scheduler" / name).exists():
        bad += 1
        print(f"docs/writing-a-policy.md: there is no scheduler/{name}")
print(f"{len(quotes)} quotations, {bad} wrong")
sys.exit(bad > 0)
