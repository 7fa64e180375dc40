# SPDX-License-Identifier: Apache-2.0
"""What can go wrong: one class for each status of the library, with the message and its place."""
from __future__ import annotations

import re
from typing import Any, Iterable

from ._structs import ErrorRecord, Status

# Names come from users' files: no line break or escape sequence of one gets out.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


class Error(Exception):
    """Any failure of Gantry. `str()` is one line: "a.json:14:9: /nodes/3: text"."""

    status: Status = Status.E_INVALID

    def __init__(self, text: str, *, file: str = "", line: int = 0, column: int = 0, where: str = "", device: int = -1,
                 native: int = 0) -> None:
        text = _CONTROL.sub(lambda found: " " if found.group() in "\n\t" else "?", text)
        super().__init__(text)
        self.text = text  # one line, without the place
        self.file, self.line, self.column = file, line, column  # of a graph file, or of the line of Python that built; "" and 0: none
        self.where = where  # JSON pointer, or ""
        self.device = device  # index of the device in the machine, or -1
        self.native = native  # errno or the code of the library behind it, or 0

    @property
    def code(self) -> str:
        """The status as C calls it: "GANTRY_E_GRAPH"."""
        return f"GANTRY_{self.status.name}"

    def __str__(self) -> str:
        numbers = [self.line, self.column] if self.column > 0 else [self.line]
        place = ":".join(part for part in (self.file, *(map(str, numbers) if self.line > 0 else ())) if part)
        return ": ".join(part for part in (place, self.where, self.text) if part)


class LibraryError(Error, ImportError):
    """libgantry was not found, cannot be loaded, or is of another version."""

    status = Status.E_IO


class OutOfMemoryError(Error, MemoryError):
    status = Status.E_NOMEM


class InvalidError(Error, ValueError):
    """A wrong argument, or a call out of order."""

    status = Status.E_INVALID


class FileError(Error):
    status = Status.E_IO


class JSONError(Error, ValueError):
    status = Status.E_SYNTAX


class GraphError(Error, ValueError):
    status = Status.E_GRAPH


class MachineError(Error, ValueError):
    status = Status.E_MACHINE


class ScheduleError(Error, ValueError):
    status = Status.E_SCHEDULE


class CapacityError(Error):
    status = Status.E_CAPACITY


class KernelError(Error):
    """A kernel failed; `__cause__` is the exception of a kernel in Python."""

    status = Status.E_KERNEL


class DeviceError(Error):
    status = Status.E_DEVICE


class UnsupportedError(Error):
    status = Status.E_UNSUPPORTED


class TimeLimitError(Error):
    status = Status.E_TIMEOUT


class CanceledError(Error):
    status = Status.E_CANCELED


class CheckError(Error):
    status = Status.E_CHECK


class GantryWarning(UserWarning):
    """Something that is allowed and perhaps not meant."""


BY_STATUS: dict[int, type[Error]] = {
    cls.status: cls
    for cls in (OutOfMemoryError, InvalidError, FileError, JSONError, GraphError, MachineError, ScheduleError, CapacityError, KernelError,
                DeviceError, UnsupportedError, TimeLimitError, CanceledError, CheckError)
}


def error_of(record: ErrorRecord) -> Error:
    """The exception for what the library wrote into an error record."""
    return BY_STATUS.get(record.status, Error)(
        record.text.decode(errors="replace"), file=record.file.decode(errors="replace"), line=record.line, column=record.column,
        where=record.where.decode(errors="replace"), device=record.device, native=record.native)


def listed(names: Iterable[str], most: int = 12) -> str:
    """Names for a message: '"a", "b", ... (40 in all)'."""
    every = list(names)
    text = ", ".join(f'"{name}"' for name in every[:most]) or "none"
    return text if len(every) <= most else f"{text}, ... ({len(every)} in all)"


def whole(what: str, value: Any, least: int = -2**63, most: int = 2**63 - 1) -> int:
    """A whole number, also one of NumPy, that the library's type has: ctypes would keep its low bits."""
    try:
        number = int(value.__index__())
    except AttributeError:
        raise InvalidError(f"{what} is {value!r}; it must be a whole number") from None
    if not least <= number <= most:
        raise InvalidError(f"{what} is {number}; it must be from {least} to {most}")
    return number
