# SPDX-License-Identifier: Apache-2.0
"""Launches in angle brackets as C++: kernel<<<blocks, threads>>>(...) becomes launch_of(kernel, blocks, threads)(...).

    launches.py SOURCE OUTPUT
"""
import pathlib
import re
import sys


def begin_of_kernel(text, end):
    """A name, perhaps with an argument of its template, or an expression in parentheses ends there."""
    if text[end - 1] != ")":
        return re.search(r"\w+(<\w+>)?$", text[:end]).start()
    depth = 0
    for at in range(end - 1, -1, -1):
        depth += (text[at] == ")") - (text[at] == "(")
        if depth == 0:
            return at
    sys.exit("a parenthesis before <<< has no other")


def rewritten(text):
    while "<<<" in text:
        at, end = text.index("<<<"), text.index(">>>")
        begin = begin_of_kernel(text, at)
        text = f"{text[:begin]}launch_of({text[begin:at]}, {text[at + 3:end]}){text[end + 3:]}"
    return text


pathlib.Path(sys.argv[2]).write_text(rewritten(pathlib.Path(sys.argv[1]).read_text()))
