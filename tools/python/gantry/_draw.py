# SPDX-License-Identifier: Apache-2.0
"""Pictures for notebooks."""
from __future__ import annotations

import shutil
import subprocess

SECONDS = 20.0  # a graph that takes longer to draw is nothing to look at


def svg(dot: str) -> str | None:
    """What graphviz draws, or None where its program `dot` is not found, fails, or takes too long."""
    program = shutil.which("dot")
    if program is None:
        return None
    try:
        done = subprocess.run([program, "-Tsvg"], input=dot, capture_output=True, text=True, timeout=SECONDS, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout[done.stdout.find("<svg"):]


def bundle(text: str, picture: str | None) -> dict[str, str]:
    return {"text/plain": text} if picture is None else {"text/plain": text, "image/svg+xml": picture}
