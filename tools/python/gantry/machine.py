# SPDX-License-Identifier: Apache-2.0
"""The machine: which devices there are, measured, read or invented."""
from __future__ import annotations

import ctypes
import os
import warnings
from ctypes import byref, c_void_p
from typing import Callable, NamedTuple

from . import _data
from ._library import Owned, caller, encoded, lib, made, must, text_from, word
from ._structs import CalibrateOptions, DeviceInfo, ProgressFunction
from .errors import GantryWarning, InvalidError, whole


class Device(NamedTuple):
    id: str
    kind: str
    gpu: bool
    memory: int  # index of the memory it works in
    lanes: int


def usable(backend: str) -> bool:
    """True if the back end ("host", "cuda", "sim") can be used on this computer."""
    i = 0
    while (name := lib.gantry_backend_name(i)) is not None:
        if name.decode() == backend:
            return bool(lib.gantry_backend_usable(i))
        i += 1
    return False


class Machine(Owned):
    """Devices, memories and routes. Never changed once made; may be used by several threads."""

    _free = lib.gantry_machine_free

    def __init__(self, machine: str | os.PathLike[str] | int | None = None, *, _handle: int | None = None) -> None:
        """What `schedule` takes for a machine: the name or path of a file, a number of devices, or this computer."""
        if isinstance(machine, Machine):
            raise InvalidError(f"{machine!r} is a machine already; use it, or machine.select(devices) for some of its devices")
        if _handle is None:
            found = machine_for(machine)
            _handle, found._handle = found.handle, None
        self._handle = _handle

    @classmethod
    def detect(cls) -> Machine:
        """This computer, with what was measured on it before (`gantry machine calibrate`)."""
        here = cls(_handle=made(lib.gantry_machine_detect, None))
        text, known = c_void_p(), c_void_p()
        must(lib.gantry_machine_recall, byref(known), here.handle, byref(text))
        if text.value and known.value == here.handle:  # something is known and cannot be used
            warnings.warn(ctypes.string_at(text.value).decode(), GantryWarning, stacklevel=caller()[1])
        lib.gantry_free(text)
        assert known.value is not None
        return cls(_handle=known.value)

    @classmethod
    def virtual(cls, devices: int) -> Machine:
        """So many virtual devices on the CPU of this computer, each with a memory of its own."""
        return cls(_handle=made(lib.gantry_machine_virtual, whole("the number of virtual devices", devices, 1, 4096)))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Machine:
        """From a file, or one that comes with Gantry by its name, such as "dgx1-v100" (`Machine.known()`)."""
        return cls(_handle=made(lib.gantry_machine_load, encoded(_data.find("machines", path))))

    @staticmethod
    def known() -> list[str]:
        """The names of machines that come with Gantry."""
        return _data.names("machines")

    @classmethod
    def parse(cls, text: str, name: str | None = None) -> Machine:
        """From JSON; `name` stands in messages."""
        data = text.encode()
        return cls(_handle=made(lib.gantry_machine_parse, data, len(data), encoded(name)))

    def calibrate(self, seconds: float = 0.0, patience: float = 0.0, *, keep: bool = False,
                  progress: Callable[[str, int, int], None] | None = None) -> Machine:
        """The same machine with what is measured on its GPUs now: copies, launches, kernels, collectives. It must be this computer, whose
        GPUs nothing else should use meanwhile. `seconds` for all of it, about (0: 45); a device that hangs for `patience` seconds (0: 10)
        is an error. `progress` is told what is measured, how many steps are done, and of how many. `keep`: `detect` knows it from now on."""
        raised: list[BaseException] = []

        def tell(_: object, what: bytes, done: int, of: int) -> None:
            try:
                if progress is not None and not raised:
                    progress(word(what), done, of)
            except BaseException as error:  # noqa: BLE001 - C has no exceptions
                raised.append(error)

        options = CalibrateOptions(seconds=seconds, patience=patience, progress=ProgressFunction(tell))
        measured = Machine(_handle=made(lib.gantry_machine_calibrate, self.handle, byref(options)))
        if raised:
            raise raised[0]
        if keep:
            with Machine(_handle=made(lib.gantry_machine_detect, None)) as here:
                must(lib.gantry_machine_keep, measured.handle, here.handle)
        return measured

    @property
    def calibrated(self) -> bool:
        """True if it has figures that were measured, and says so."""
        return bool(lib.gantry_machine_has_calibration(self.handle))

    def save(self, path: str | os.PathLike[str]) -> None:
        must(lib.gantry_machine_save, self.handle, encoded(path))

    def select(self, devices: str | int) -> Machine:
        """A machine with some of the devices: 4 is the first four, "id:0,2" or "id:gpu0,gpu2" those by index or id."""
        return Machine(_handle=made(lib.gantry_machine_select, self.handle, encoded(str(devices))))

    @property
    def name(self) -> str:
        return word(lib.gantry_machine_name(self.handle))

    @property
    def workers(self) -> int:
        """How many devices nodes are placed on; expressions of a graph call it `devices`."""
        return int(lib.gantry_machine_worker_count(self.handle))

    @property
    def devices(self) -> list[Device]:
        found = []
        for i in range(lib.gantry_machine_device_count(self.handle)):
            info = DeviceInfo()
            must(lib.gantry_machine_device, self.handle, i, byref(info))
            found.append(Device(word(info.id), word(info.kind), bool(info.gpu), info.memory, info.lanes))
        return found

    def json(self) -> str:
        return text_from(lib.gantry_machine_json, self.handle)

    def __repr__(self) -> str:
        if self._handle is None:
            return "<gantry.Machine, closed>"
        return f"<gantry.Machine {self.name!r}: {', '.join(device.id for device in self.devices)}>"


def machine_for(machine: Machine | str | os.PathLike[str] | int | None) -> Machine:
    """What `schedule` takes for a machine, as one. A number counts GPUs where they can be used, else virtual devices."""
    if isinstance(machine, Machine):
        return machine
    if machine is None:
        return Machine.detect()
    if isinstance(machine, bool) or not isinstance(machine, (int, str, os.PathLike)):
        raise InvalidError(f"machine is {machine!r}; give a gantry.Machine, the name or path of a machine file, a number of devices, or "
                           "None")
    if isinstance(machine, int):
        return Machine.detect().select(machine) if usable("cuda") else Machine.virtual(machine)
    return Machine.load(machine)
