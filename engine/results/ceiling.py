"""What this machine can do at most: its loopback, measured, and kept for each machine.

A link that is faster than its host can feed it delivers the host's rate: whoever asks why a link is not faster
needs to know that rate. Both ends share this machine while it is measured, so that an end which has a machine to
itself may do more; a rate near the ceiling is a sign, and no proof, that the host is what limits.

`load_ceiling(directory)` gives what is kept of this machine, or None; `Ceiling.rate(mode, sessions)` a rate of it.
"""

import json
import os
import platform
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from ..host.atomic_write import write_atomically
from ..model.errors import DecodeError, RunLogError
from ..model.plan import Mode
from ..model.serialization import decode, encode

CEILING_FILE_NAME: Final = "ceilings.json"


@dataclass(frozen=True, slots=True)
class CeilingRate:
    """The rate of a mode with a number of sessions; `low` and `high` are the ends of its 95 % interval."""

    mode: Mode
    sessions: int
    bit_s: int
    low_bit_s: int | None = None
    high_bit_s: int | None = None


@dataclass(frozen=True, slots=True)
class Machine:
    """What a ceiling is of: it holds until one of these is another."""

    hostname: str
    system: str
    cores: int

    @property
    def key(self) -> str:
        """What tells machines apart that share a directory."""
        return f"{self.hostname} {self.system} {self.cores}"


@dataclass(frozen=True, slots=True)
class Ceiling:
    """What a machine did on its loopback, when, and with which congestion control."""

    machine: Machine
    measured_utc: str
    congestion: str | None
    rates: tuple[CeilingRate, ...]

    def rate(self, mode: Mode, sessions: int = 1) -> CeilingRate | None:
        """Return the rate of a mode: that of the most sessions up to so many; None where it was not measured."""
        known = [one for one in self.rates if one.mode is mode and one.sessions <= sessions]
        return max(known, key=lambda one: one.sessions, default=None)

    def fastest_mode(self, sessions: int = 1) -> Mode | None:
        """Return the mode that was faster with so many sessions, of those that carry and read payload whole.

        None where one of the two is not known: then it is as good to copy.
        """
        copy, pages = self.rate(Mode.COPY, sessions), self.rate(Mode.SENDFILE, sessions)
        if copy is None or pages is None:
            return None
        return max((copy, pages), key=lambda one: one.bit_s).mode


def identify_machine() -> Machine:
    """Return what the ceiling of this machine is of."""
    return Machine(socket.gethostname(), f"{platform.system()} {platform.release()}", os.cpu_count() or 1)


def load_ceiling(directory: Path, machine: Machine | None = None) -> Ceiling | None:
    """Return what is kept of a machine, this one where none is named.

    None where nothing is: it was never measured, or with another kernel, or the file cannot be read.
    """
    kept = _read(directory).get((machine or identify_machine()).key)
    try:
        return None if kept is None else decode(Ceiling, kept)
    except DecodeError:
        return None


def save_ceiling(directory: Path, ceiling: Ceiling) -> None:
    """Keep a ceiling in place of an earlier one of the same machine; raise StoreError where that cannot be."""
    path = directory / CEILING_FILE_NAME
    kept = {**_read(directory), ceiling.machine.key: encode(ceiling)}
    try:
        directory.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps(kept, indent=1) + "\n")
    except OSError as error:
        raise RunLogError(f"the ceiling cannot be kept in {path}: {error.strerror or error}") from error


def _read(directory: Path) -> dict[str, Any]:
    try:
        value = json.loads((directory / CEILING_FILE_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
