"""The request for a mesh: its tests, its hosts and the way to them, and how its cells are judged.

The command makes a `MeshSpec`, everything below takes it, and the file of a stored mesh has it.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from random import SystemRandom
from typing import Self

from ...engine.model.errors import DecodeError, PlanError
from ...engine.model.serialization import decode, encode
from ...engine.results.run_log import new_run_id
from ...mesh.events import CellFailure
from ...mesh.figures import CellFigure, MeshMatrix
from ...mesh.plan import GROUP_PREFIX, Cell, Host, MeshMode, MeshPlan
from ...presets.catalog import Catalog
from ...presets.verdict import DEFAULT_PASS_PERCENT
from ...presets.wire import DEFAULT_VARIANT, Variant
from ..session.run_spec import Judging, find_preset
from ..words.redaction import REDACTION


@dataclass(frozen=True, slots=True)
class EmulatedHosts:
    """Hosts that this machine emulates for a mesh. A mesh that is resumed has the same ones.

    Args:
        preset: the preset of each host's link.
        hosts: how many hosts.
        racks: how many racks they are in.
        slow: the hosts and racks that have half of their rate.
    """

    preset: str
    hosts: int
    racks: int = 1
    slow: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the hosts that `to_json` has written. Raises PlanError."""
        try:
            return decode(cls, json.loads(text))
        except (ValueError, DecodeError) as error:
            raise PlanError("--emulated", repr(text), "linkgauge gives it to itself") from error

    def to_json(self) -> str:
        """Return the hosts as an argument of a command."""
        return json.dumps(encode(self))


@dataclass(frozen=True, slots=True)
class FailedCell:
    """A cell without a result, and its failure."""

    sender: str
    receiver: str
    failure: CellFailure


@dataclass(frozen=True, slots=True)
class MeshSpec:
    """A mesh as the user asked for it, and its state: enough to resume it, and to show it.

    Args:
        plan: its tests and hosts. Without hosts they are all workers of the scheduler.
        scheduler: the address of the Dask scheduler whose workers are the hosts; None for hosts that ssh reaches.
        remote_python: the Python of hosts that ssh reaches; None for the usual one.
        variant: the options of the preset's link.
        pass_percent: the pass mark in percent of the expected rate.
        failures: the cells without a run.
        emulated: the hosts, if this machine emulates them.
        has_rechecks_left: whether slow cells must still be measured again, alone.
    """

    plan: MeshPlan
    scheduler: str | None = None
    remote_python: str | None = None
    variant: Variant = DEFAULT_VARIANT
    pass_percent: float = DEFAULT_PASS_PERCENT
    failures: tuple[FailedCell, ...] = ()
    emulated: EmulatedHosts | None = None
    has_rechecks_left: bool = False

    def __post_init__(self) -> None:
        """Note the hosts, whose names outputs may have to hide."""
        REDACTION.learn_hosts(self.plan.hosts)

    @property
    def hosts(self) -> tuple[Host, ...]:
        """The hosts that it names, without the addresses of an earlier session: they are found anew."""
        return tuple(replace(host, address=None) for host in self.plan.hosts)

    def judging(self, catalog: Catalog) -> Judging:
        """Return the preset, the pass mark and the limit of latency for its cells. Raises UnknownPreset."""
        preset = find_preset(self.plan.preset or None, catalog)
        return Judging(preset, self.variant, self.pass_percent, self.plan.limits.latency)

    def begin(self, hosts: tuple[Host, ...]) -> "MeshSpec":
        """Return the mesh of these hosts as each session of it begins. Raises PlanError for too few."""
        return replace(
            self,
            plan=replace(self.plan, hosts=hosts),
            failures=(),
            has_rechecks_left=self.plan.mode is not MeshMode.ISOLATED,
        )

    def is_over(self, matrix: MeshMatrix) -> bool:
        """Return whether nothing is left to measure after these results."""
        return matrix.is_complete and not self.has_rechecks_left

    def with_failures(self, figures: Mapping[Cell, CellFigure]) -> "MeshSpec":
        """Return the same mesh with the failures among these results."""
        failures = tuple(
            FailedCell(*cell, figure.failure) for cell, figure in figures.items() if figure.failure is not None
        )
        return replace(self, failures=failures)


def new_mesh_name() -> str:
    """Return the name of a new mesh: `mesh-20261121-011530-k3f9`."""
    return f"{GROUP_PREFIX}{new_run_id(datetime.now(UTC), SystemRandom())}"
