"""This machine: its identity, and files of measurements that are made once on each machine that shares a directory.

A measurement is valid while the machine has the same name, kernel and number of cores.
"""

import json
import os
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar, cast

from ..model.errors import DecodeError
from ..model.serialization import decode, encode
from .saved_files import PRIVATE_FILE_MODE, create_private_directory, write_atomically

_MAX_FILE_BYTES: Final = 1 << 20  # thousands of machines
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Machine:
    """The identity of a machine. Its measurements are valid while all fields are unchanged."""

    hostname: str
    system: str
    cores: int

    @property
    def key(self) -> str:
        """The key of the machine among those that share a directory."""
        return f"{self.hostname} {self.system} {self.cores}"


def identify_machine() -> Machine:
    """Return the identity of this machine."""
    return Machine(platform.node(), f"{platform.system()} {platform.release()}", os.cpu_count() or 1)


def load_measurement(path: Path, kind: type[T], machine: Machine) -> T | None:
    """Return a machine's measurement in a file; None if there is none, or if the file cannot be read."""
    value = _read(path).get(machine.key)
    try:
        return None if value is None else decode(kind, value)
    except DecodeError:
        return None


def save_measurement(path: Path, machine: Machine, value: object) -> None:
    """Store a value in place of an earlier one of the same machine; raise OSError if that fails."""
    create_private_directory(path.parent)
    _write(path, {**_read(path), machine.key: encode(value)})


def forget_measurement(path: Path, machine: Machine) -> None:
    """Remove the value of a machine; raise OSError if that fails."""
    values = _read(path)
    if values.pop(machine.key, None) is not None:
        _write(path, values)


def _write(path: Path, values: dict[str, Any]) -> None:
    write_atomically(path, json.dumps(values, indent=1) + "\n", mode=PRIVATE_FILE_MODE)


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            value = json.loads(file.read(_MAX_FILE_BYTES))
    except (OSError, ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
