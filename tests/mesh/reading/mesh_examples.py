"""Meshes with known faults, and whether findings fit them."""

import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import exp

from linkgauge.mesh.events import CellFailure, FailureCode
from linkgauge.mesh.figures import CellFigure, MeshFinding, MeshFindingCode, MeshMatrix
from linkgauge.mesh.plan import Cell, Host, MeshMode
from linkgauge.mesh.reading import cells_to_recheck

LINE_RATE = 941e6
Named = tuple[MeshFindingCode, str | None, str | None]


def same_rate(_sender: Host, _receiver: Host) -> float:
    """Return the rate of a healthy cell where all links are equal."""
    return LINE_RATE


@dataclass(frozen=True)
class Fault:
    """A slow part: its names in a finding, and its share of the usual rate."""

    code: MeshFindingCode
    sender: str | None = None
    receiver: str | None = None
    share: float = 0.5

    @property
    def named(self) -> Named:
        """The finding that names this fault."""
        return self.code, self.sender, self.receiver

    def slows(self, sender: Host, receiver: Host) -> bool:
        """Return whether this fault slows a cell down."""
        code = MeshFindingCode
        is_between = sender.group != receiver.group
        whole = self.code is code.GROUP and self.receiver is None
        return {
            code.HOST_SENDS: sender.name == self.sender,
            code.HOST_RECEIVES: receiver.name == self.sender,
            code.HOST: self.sender in {sender.name, receiver.name},
            code.PATH: (sender.name, receiver.name) == (self.sender, self.receiver),
            code.GROUP: self.sender == sender.group == receiver.group
            or (whole and self.sender in {sender.group, receiver.group}),
            code.GROUPS: is_between
            and self.sender in {None, sender.group}
            and self.receiver in {None, receiver.group},
        }.get(self.code, True)


@dataclass(frozen=True)
class MeshExample:
    """A mesh that is made from a seed.

    `noise` is the standard deviation of a cell as a share of its rate; `tail` is the share of cells with four times
    as much. `rate` gives the rate of a healthy cell. The slowest of several slow parts decides; for transactions
    their delays add up.
    """

    hosts: int
    faults: tuple[Fault, ...] = ()
    groups: int = 0
    noise: float = 0.02
    tail: float = 0.0
    missing: float = 0.0
    failed: float = 0.0
    expected: bool = True
    transactions: bool = False
    mode: MeshMode = MeshMode.ROUNDS
    seed: int = 1
    host_noise: float = 0.0
    rate: Callable[[Host, Host], float] = same_rate

    def make(self) -> MeshMatrix:
        """Return its matrix."""
        draw = random.Random(f"{self.seed} {self.hosts} {self.noise}")  # noqa: S311 - no secret
        hosts = make_hosts(self.hosts, self.groups)
        own = {(host.name, side): draw.gauss(0, self.host_noise) for host in hosts for side in (0, 1)}
        figures: dict[Cell, CellFigure] = {}
        for sender in hosts:
            for receiver in hosts:
                chance, noise = draw.random(), draw.gauss(0, self.noise)
                is_wild = draw.random() < self.tail
                if sender == receiver or chance < self.missing:
                    continue
                cell = Cell(sender.name, receiver.name)
                if chance < self.missing + self.failed:
                    failure = CellFailure(FailureCode.FAILED, "the test broke off")
                    figures[cell] = CellFigure(cell, failure=failure)
                    continue
                wild = noise * (4 if is_wild else 1) + own[sender.name, 0] + own[receiver.name, 1]
                figures[cell] = self._figure(sender, receiver, exp(wild))
        return MeshMatrix("mesh-1", self.mode, hosts, figures)

    def make_again(self) -> MeshMatrix:
        """Return its matrix, with second measurements of the cells that ask for one."""
        matrix, second = self.make(), replace(self, seed=self.seed + 10_000).make()
        figures = dict(matrix.figures)
        for cell in cells_to_recheck(matrix):
            again = second.figures.get(cell)
            if again is not None:
                figures[cell] = replace(figures[cell], isolated_bit_s=again.bit_s, isolated_run_id="again")
        return replace(matrix, figures=figures)

    def seen(self, matrix: MeshMatrix) -> tuple[Fault, ...]:
        """Return the faults that a matrix can show, without paths that have no result."""
        measured = {tuple(cell) for cell, figure in matrix.figures.items() if figure.value is not None}
        is_path = MeshFindingCode.PATH
        return tuple(
            each for each in self.faults if each.code is not is_path or (each.sender, each.receiver) in measured
        )

    def _figure(self, sender: Host, receiver: Host, noise: float) -> CellFigure:
        shares = [fault.share for fault in self.faults if fault.slows(sender, receiver)]
        rate, cell = self.rate(sender, receiver), Cell(sender.name, receiver.name)
        if self.transactions:
            slower = 1 + sum(1 / share - 1 for share in shares)
            return CellFigure(cell, "run", bit_s=rate / 10 / slower * noise, transactions_s=2e4 / slower * noise)
        slowest = min(shares, default=1.0)
        expected = rate if self.expected else None
        return CellFigure(cell, "run", bit_s=rate * slowest * noise, expected_bit_s=expected)


def make_hosts(count: int, groups: int = 0) -> tuple[Host, ...]:
    """Return hosts in groups of about equal size."""
    return tuple(
        Host(f"db-{number:02}", f"rack-{number * groups // count}" if groups else None) for number in range(count)
    )


def names(findings: Iterable[MeshFinding]) -> list[Named]:
    """Return the names of findings."""
    return [(finding.code, finding.sender, finding.receiver) for finding in findings]


def fits(findings: Sequence[MeshFinding], faults: Iterable[Fault], hosts: Sequence[Host] = ()) -> bool:
    """Return whether findings name exactly these faults, each once.

    A group whose hosts are all slow stands for these hosts.
    """
    members = {host.group: [each.name for each in hosts if each.group == host.group] for host in hosts}

    def in_hosts(named: Iterable[Named]) -> list[str]:
        plain: list[Named] = []
        for code, sender, receiver in named:
            if code is MeshFindingCode.GROUP and receiver is None and sender in members:
                plain += [(MeshFindingCode.HOST, each, None) for each in members[sender]]
            else:
                plain.append((code, sender, receiver))
        return sorted(map(str, plain))

    return in_hosts(names(findings)) == in_hosts(fault.named for fault in faults)
