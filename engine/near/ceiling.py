"""The ceiling of a machine: the rates that it reaches on its loopback, measured and stored per machine.

A link faster than its host can feed delivers the host's rate, so a diagnosis needs to know that rate. Both ends
share the machine during the measurement, and an end on a machine of its own may be faster: a rate near the
ceiling suggests, but does not prove, that the host is the limit.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..host.machine_measurements import Machine, identify_machine, load_measurement, save_measurement
from ..model.errors import RunLogError, explain_os_error
from ..model.plan import Mode

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
class Ceiling:
    """The rates of a machine's loopback, with the time and the congestion control of the measurement."""

    machine: Machine
    measured_utc: str
    congestion: str | None
    rates: tuple[CeilingRate, ...]

    def rate(self, mode: Mode, sessions: int = 1) -> CeilingRate | None:
        """Return a mode's rate with the most sessions measured up to `sessions`; None if there is none."""
        candidates = [rate for rate in self.rates if rate.mode is mode and rate.sessions <= sessions]
        return max(candidates, key=lambda rate: rate.sessions, default=None)

    def fastest_mode(self, sessions: int = 1) -> Mode | None:
        """Return the faster of the two modes that transfer and read the whole payload; None if one is unknown."""
        copy, pages = self.rate(Mode.COPY, sessions), self.rate(Mode.SENDFILE, sessions)
        if copy is None or pages is None:
            return None
        return max((copy, pages), key=lambda rate: rate.bit_s).mode


def load_ceiling(directory: Path, machine: Machine | None = None) -> Ceiling | None:
    """Return the stored ceiling of a machine, by default this one.

    None if it was never measured, or with another kernel, or if the file cannot be read.
    """
    return load_measurement(directory / CEILING_FILE_NAME, Ceiling, machine or identify_machine())


def save_ceiling(directory: Path, ceiling: Ceiling) -> None:
    """Store a ceiling in place of an earlier one of the same machine; raise RunLogError if that fails."""
    path = directory / CEILING_FILE_NAME
    try:
        save_measurement(path, ceiling.machine, ceiling)
    except OSError as error:
        raise RunLogError(f"the ceiling cannot be saved in {path}: {explain_os_error(error)}") from error
