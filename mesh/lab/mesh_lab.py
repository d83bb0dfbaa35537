"""Emulated hosts: `with open_mesh_lab(spec) as lab: lab.run([..., "mesh", "--scheduler", lab.scheduler])`.

Each host is a network namespace with a Dask worker in it. The scheduler and the commands have one of their own.
Everything disappears with the keeper, and the keeper ends with this process.
"""

import logging
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from ...engine.lab.hosts_spec import MeshLabSpec
from ...engine.lab.kept_lab import KeptLab, command_beside, start_keeper

_KEEPER: Final = f"{__package__}.mesh_keeper"
_BUILD_DEADLINE_S: Final = 30.0
_HOST_DEADLINE_S: Final = 4.0  # more for each host: a busy core takes a second or two to import Dask
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshLab(KeptLab):
    """Emulated hosts that are up. Commands run beside the scheduler, where every host can be reached.

    `workers` has the pid of each host's worker. Without `is_emulated` the hosts are addresses of loopback, and
    `settings` (the environment of Dask's clients) names the certificate that proves that they belong to the lab.
    """

    spec: MeshLabSpec
    scheduler: str
    workers: Mapping[str, int]
    settings: Mapping[str, str]
    is_emulated: bool

    def run(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> int:
        """Run a command beside the scheduler, as `KeptLab.run` does, with the settings of Dask's clients."""
        return KeptLab.run(self, command, {**self.settings, **(environment or {})})

    def host_command(self, name: str, command: Sequence[str]) -> list[str]:
        """Return a command line that runs a command on a host, as a child of this process and thread."""
        return command_beside(self.workers[name], command)


@contextmanager
def open_mesh_lab(spec: MeshLabSpec) -> Generator[MeshLab]:
    """Build hosts, their network and a Dask cluster on them, yield it, and take it down.

    Raises LabUnavailable if this machine cannot have such labs, LabError if this one cannot be built.
    """
    deadline_s = _BUILD_DEADLINE_S + _HOST_DEADLINE_S * len(spec.hosts)
    with start_keeper(_KEEPER, spec, deadline_s, has_offloads_off=spec.has_offloads_off) as (pid, answer):
        _log.debug("lab of keeper %d is up, with %d hosts at %s", pid, len(spec.hosts), answer["scheduler"])
        yield MeshLab(
            spec=spec,
            scheduler=answer["scheduler"],
            workers=answer["workers"],
            settings=answer["settings"],
            is_emulated=answer["is_emulated"],
            notes=tuple(answer["notes"]),
            keeper_pid=pid,
            has_offloads_off=spec.has_offloads_off,
        )
