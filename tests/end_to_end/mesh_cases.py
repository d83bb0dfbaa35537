"""Meshes over emulated hosts with one known fault: what is slow, what must be found, and whether it was."""

import json
import random
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import permutations
from pathlib import Path
from typing import Any, Final

from linkgauge.engine.model.errors import LabUnavailable
from linkgauge.mesh.figures import MeshFindingCode
from linkgauge.mesh.lab.mesh_lab import MeshLab, open_mesh_lab
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.lab_link import Slow, plan_lab_hosts

PRESET: Final = "100mb-fd"
FULL_BIT_S: Final = 94_100_000
_RACKS: Final = 2
_HALF: Final = 0.5
# Of the large packets. With 5 % about 30 Mb/s are left of 94; with 1 % the rate is that of the others.
_LOSS_PERCENTS: Final = (0.5, 1.0, 2.0, 5.0)
_DEADLINE_S: Final = 300.0
_HERE: Final = Path(__file__).parent

Named = tuple[str, str | None, str | None]
"""A finding's code, sender and receiver."""


class Fault(StrEnum):
    """What is wrong with the hosts."""

    NONE = "none"
    HOST = "one host's link at half"
    PAIR = "one direction of one pair lossy"
    GROUPS = "the boundary of two groups slow"


@dataclass(frozen=True)
class MeshCase:
    """Some hosts in two racks, with one fault."""

    fault: Fault
    hosts: int
    slow: Mapping[str, Slow] = field(default_factory=dict)
    lossy: tuple[str, str] | None = None
    loss_percent: float = 0.0

    @property
    def wanted(self) -> frozenset[Named]:
        """The findings that must be there."""
        match self.fault:
            case Fault.NONE:
                return frozenset()
            case Fault.HOST:
                return frozenset((MeshFindingCode.HOST.value, name, None) for name in self.slow)
            case Fault.PAIR:
                assert self.lossy is not None
                return frozenset({(MeshFindingCode.PATH.value, *self.lossy)})
            case Fault.GROUPS:
                racks = [f"rack-{number + 1}" for number in range(_RACKS)]
                return frozenset((MeshFindingCode.GROUPS.value, *pair) for pair in permutations(racks, 2))

    def problems(self, outcome: "Outcome") -> list[str]:
        """Return what is wrong with an outcome: findings that are missing or false, cells without a result."""
        named = outcome.named
        problems = [f"missing {each}" for each in sorted(self.wanted - named, key=str)]
        problems += [f"false {each}" for each in sorted(named - self.wanted, key=str)]
        missing = self.hosts * (self.hosts - 1) - len(outcome.figures) + len(outcome.failures)
        if missing:
            problems.append(f"{missing} cells without a result: {outcome.failures[:1]}")
        if problems and self.lossy is not None:
            problems += [f"the lossy cell: {figure}" for figure in outcome.figures_of(self.lossy)]
        return problems


def draw_case(fault: Fault, hosts: int, seed: int) -> MeshCase:
    """Return a case whose slow host or pair is drawn from the seed."""
    draw = random.Random(f"{fault}{seed}")  # noqa: S311 - chance, not secrets
    first, second = (f"host-{number}" for number in draw.sample(range(1, hosts + 1), 2))
    match fault:
        case Fault.HOST:
            return MeshCase(fault, hosts, {first: Slow(_HALF, _HALF)})
        case Fault.PAIR:
            return MeshCase(fault, hosts, lossy=(first, second), loss_percent=draw.choice(_LOSS_PERCENTS))
        case Fault.GROUPS:
            return MeshCase(fault, hosts, {"rack-1": Slow(_HALF, _HALF)})
        case Fault.NONE:
            return MeshCase(fault, hosts)


@dataclass(frozen=True)
class Outcome:
    """What a mesh found, and its cells."""

    findings: list[dict[str, Any]]
    figures: list[dict[str, Any]]

    @property
    def named(self) -> frozenset[Named]:
        """The findings, with each pair of groups by its names."""
        return frozenset(named for finding in self.findings for named in _pairs(finding))

    @property
    def failures(self) -> list[dict[str, Any]]:
        """Why cells have no result."""
        return [figure for figure in self.figures if figure["failure"] is not None]

    def figures_of(self, cell: tuple[str, str]) -> list[dict[str, Any]]:
        """Return what was measured of a cell."""
        return [figure for figure in self.figures if tuple(figure["cell"]) == cell]

    def rates(self) -> dict[tuple[str, str], float | None]:
        """Return the goodput of each cell, in bits a second."""
        return {tuple(figure["cell"]): figure["bit_s"] for figure in self.figures}


def _pairs(finding: dict[str, Any]) -> list[Named]:
    """Return a finding for each pair of groups that it is about: with two groups, one of them tells the other."""
    code, sender, receiver = finding["code"], finding["sender"], finding["receiver"]
    if code != MeshFindingCode.GROUPS:
        return [(code, sender, receiver)]
    racks = [f"rack-{number + 1}" for number in range(_RACKS)]
    return [
        (code, *pair)
        for pair in permutations(racks, 2)
        if sender in (None, pair[0]) and receiver in (None, pair[1])
    ]


def run_case(case: MeshCase, seconds: float, seed: int) -> Outcome:
    """Build the hosts of a case, measure all pairs, and return what was found."""
    spec = plan_lab_hosts(load_catalog().find(PRESET), case.hosts, _RACKS, case.slow)
    asked = {
        "hosts": [{"name": host.name, "group": host.rack, "address": None} for host in spec.hosts],
        "seconds": seconds,
        "seed": seed,
        "preset": PRESET,
    }
    with open_mesh_lab(spec) as lab, _faults_of(case, lab):
        if not lab.is_emulated:
            raise LabUnavailable(" ".join(lab.notes))
        command = lab.near_end_command([sys.executable, str(_HERE / "mesh_in_lab.py"), lab.scheduler])
        done = subprocess.run(
            command, input=json.dumps(asked), capture_output=True, text=True, timeout=_DEADLINE_S, check=False
        )
    assert done.returncode == 0, done.stderr[-2_000:]
    return Outcome(**json.loads(done.stdout))


def _faults_of(case: MeshCase, lab: MeshLab) -> AbstractContextManager[None]:
    return nullcontext() if case.lossy is None else lose(lab, *case.lossy, case.loss_percent)


@contextmanager
def lose(lab: MeshLab, sender: str, receiver: str, percent: float) -> Generator[None]:
    """Lose a share of what one host sends to one other, as it arrives there."""
    script = [sys.executable, str(_HERE / "xdp_loss.py"), "eth0", f"{percent:g}", lab.spec.address(sender)]
    with subprocess.Popen(
        lab.host_command(receiver, script), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as losing:
        assert losing.stdin is not None
        assert losing.stdout is not None
        assert losing.stdout.readline() == "ready\n"
        yield
        losing.stdin.close()
