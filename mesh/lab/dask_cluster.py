"""Dask in a lab: the command lines of its scheduler and of a host's worker, and whether all of them are there.

The programs are those of Dask, started as they would be on real hosts; nothing of it is imported here.
"""

import http.client
import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Literal, Self

from ...engine.model.errors import LabUnavailable, explain_extra

SETTINGS: Final[Mapping[str, str]] = {"DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False"}
"""The environment of Dask's processes: a profile would take each of them 100 samples a second."""
Protocol = Literal["tcp", "tls"]
_DASK: Final = "distributed"
_ASK_DEADLINE_S: Final = 5.0
_MOST_BYTES: Final = 65_536


def check_dask() -> None:
    """Raise LabUnavailable if Dask is not installed."""
    if find_spec(_DASK) is None:
        raise LabUnavailable(explain_extra("a lab of several hosts needs Dask", "mesh"))


def scheduler_command(protocol: Protocol, address: str, file: Path) -> list[str]:
    """Return a scheduler's command line. It listens on a free port, and writes to the file where."""
    return [*_program("dask_scheduler", protocol, address), "--port", "0", "--scheduler-file", str(file)]


def worker_command(protocol: Protocol, scheduler: str, name: str, address: str, folder: Path) -> list[str]:
    """Return the command line of a host's worker, which has one network interface to lend."""
    return [
        *_program("dask_worker", protocol, address),
        scheduler,
        "--no-nanny",
        *("--name", name),
        *("--nthreads", "2"),
        *("--resources", "nic=1"),
        *("--memory-limit", "0"),
        *("--local-directory", str(folder)),
    ]


def _program(name: str, protocol: Protocol, address: str) -> list[str]:
    # Dask serves counts and metrics by HTTP even without a dashboard: on a free port, since 8787 may be taken.
    http_address = ("--no-dashboard", "--dashboard-address", f"{address}:0")
    listening = ("--protocol", protocol, "--host", address)
    return [sys.executable, "-P", "-m", f"{_DASK}.cli.{name}", *listening, *http_address]


@dataclass(frozen=True, slots=True)
class DaskScheduler:
    """A scheduler that listens: its address as workers and clients take it, and the port of its HTTP service."""

    address: str
    host: str
    http_port: int

    @classmethod
    def read(cls, file: Path, host: str) -> Self | None:
        """Return what a scheduler wrote to its file; None before it has."""
        with suppress(OSError, ValueError, KeyError, TypeError):
            facts: dict[str, Any] = json.loads(file.read_bytes())
            return cls(str(facts["address"]), host, int(facts["services"]["dashboard"]))
        return None

    def count_workers(self) -> int:
        """Return how many workers have registered; 0 where it does not answer."""
        connection = http.client.HTTPConnection(self.host, self.http_port, timeout=_ASK_DEADLINE_S)
        with suppress(OSError, ValueError, KeyError, TypeError, http.client.HTTPException):
            connection.request("GET", "/json/counts.json")
            return int(json.loads(connection.getresponse().read(_MOST_BYTES))["workers"])
        return 0
