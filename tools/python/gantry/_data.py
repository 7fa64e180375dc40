# SPDX-License-Identifier: Apache-2.0
"""Graphs and machines that come with Gantry, by name."""
from __future__ import annotations

import os
import pathlib
from typing import Iterator

from ._library import did_you_mean, lib
from .errors import FileError, listed


def _folders() -> Iterator[pathlib.Path]:
    """Where they may be: what GANTRY_DATA names, and no other; else in a wheel, beside an installed library, in a checkout."""
    given = os.environ.get("GANTRY_DATA")
    if given:
        yield pathlib.Path(given)
        return
    here = pathlib.Path(__file__).resolve().parent
    yield here / "data"
    if os.path.isabs(lib.path):
        for above in list(pathlib.Path(os.path.realpath(lib.path)).parents)[1:3]:  # PREFIX/lib, PREFIX/lib/x86_64-linux-gnu
            yield above / "share/gantry"
    if len(here.parents) > 3:  # PREFIX/lib/python3/dist-packages/gantry
        yield here.parents[3] / "share/gantry"
    if len(here.parents) > 2 and (here.parents[2] / "include/gantry/gantry.h").is_file():
        yield here.parents[2]


def _places(kind: str) -> list[pathlib.Path]:
    """The checkout has machines among its graphs."""
    below = [kind] if kind == "graphs" else [kind, f"graphs/{kind}"]
    return [folder / name for folder in _folders() for name in below if (folder / name).is_dir()]


def names(kind: str) -> list[str]:
    """What there is of "graphs" or "machines"."""
    return sorted({path.stem for place in _places(kind) for path in place.glob("*.json")})


def find(kind: str, word: str | os.PathLike[str]) -> str | os.PathLike[str]:
    """The path of what comes with Gantry under that name. Words with a slash or an ending are paths, and a file that is there comes first."""
    if not isinstance(word, str) or any(mark in word for mark in "/.") or word.startswith("-") or os.path.exists(word):
        return word
    for place in _places(kind):
        if (place / f"{word}.json").is_file():
            return place / f"{word}.json"
    known = names(kind)
    near = did_you_mean(word, known)
    raise FileError(f'there is no file "{word}", and none of the {kind} that come with Gantry{near or f"; there are {listed(known, 20)}"}')
