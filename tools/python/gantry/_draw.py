# SPDX-License-Identifier: Apache-2.0
"""Pictures for notebooks and files."""
from __future__ import annotations

import html
import os
import pathlib
import shutil
import subprocess
from typing import Any

from .errors import InvalidError, listed

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


class Picture:
    """A picture: notebooks show it, `save` writes it. Its forms are texts by the endings of files, such as "svg"."""

    def __init__(self, title: str, shown: str, forms: dict[str, str]) -> None:
        self.title, self._shown, self.forms = title, shown, forms

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the form that the ending names: .svg, .html, .dot, .json."""
        form = pathlib.Path(path).suffix.removeprefix(".")
        if form not in self.forms:
            raise InvalidError(f'"{os.fspath(path)}" ends in "{form}"; {self.title} can be written as {listed(self.forms)}')
        pathlib.Path(path).write_text(self.forms[form], encoding="utf-8")

    def _repr_html_(self) -> str:
        return self._shown

    def _repr_svg_(self) -> str | None:
        return self.forms.get("svg")

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._shown}

    def __repr__(self) -> str:
        return f"<gantry.Picture of {self.title}: {', '.join(self.forms)}>"


def timeline_picture(title: str, timeline: str, chrome: str) -> Picture:
    return Picture(title, timeline, {"svg": timeline, "json": chrome})


def graph_picture(title: str, dot: str) -> Picture:
    """By graphviz; where that is not there, as the text that it reads."""
    drawn = svg(dot)
    forms = {"dot": dot} if drawn is None else {"svg": drawn, "dot": dot}
    return Picture(title, drawn or f"<pre>{html.escape(dot)}</pre>", forms)


def both_pictures(title: str, timeline: Picture, graph: Picture, page: str) -> Picture:
    """When above where. Of an SVG file there is only the timeline: two pictures make no one."""
    shown = f"<div>{timeline._repr_html_()}</div><div>{graph._repr_html_()}</div>"
    return Picture(title, shown, {**graph.forms, **timeline.forms, "html": page})


def page_picture(title: str, page: str, height: int) -> Picture:
    """A page that can be looked through, in a frame of the notebook."""
    frame = f'<iframe srcdoc="{html.escape(page)}" width="100%" height="{height}" frameborder="0" sandbox="allow-scripts"></iframe>'
    return Picture(title, frame, {"html": page})
