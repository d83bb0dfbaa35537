"""The results of a mesh: the figure of each cell, and findings about hosts and paths. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from ..engine.results.rate_and_loss import percent_of
from ..presets.verdict import NO_LIMITS, AcceptanceLimits, LimitCheck, LimitName
from .events import CellFailure
from .plan import Cell, Host, MeshMode


@dataclass(frozen=True, slots=True)
class CellFigure:
    """The result of a cell.

    A cell that was measured again alone has two results. The second one counts: for findings, marks, verdicts and
    comparisons. The first one shows the cell beside others.

    Args:
        cell: its hosts.
        run_id: its run in the run log; None if it failed.
        bit_s: its goodput, counted by the receiver, in bits a second; None if it was not measured.
        transactions_s: its transactions a second, for a workload that has them.
        expected_bit_s: the expected rate; None without one.
        isolated_bit_s: its goodput when it was measured again alone; None if it was not.
        isolated_run_id: the run of that second measurement.
        loss: the lost share of the sent payload, 0 to 1: retransmitted segments, or lost datagrams. None if it is
            unknown, and for transactions.
        isolated_loss: the loss of the second measurement.
        rise_ns: the rise of latency under its load; None if it was not measured.
        isolated_rise_ns: the rise in the second measurement.
        why: the code of the first finding of the run; None without any.
        failure: why it has no result.
    """

    cell: Cell
    run_id: str | None = None
    bit_s: float | None = None
    transactions_s: float | None = None
    expected_bit_s: float | None = None
    isolated_bit_s: float | None = None
    isolated_run_id: str | None = None
    loss: float | None = None
    isolated_loss: float | None = None
    rise_ns: float | None = None
    isolated_rise_ns: float | None = None
    why: str | None = None
    failure: CellFailure | None = None

    @property
    def is_isolated(self) -> bool:
        """Whether it was measured again alone, so that this result counts."""
        return self.isolated_bit_s is not None

    @property
    def value(self) -> float | None:
        """The figure that counts: transactions a second if it has them, or bits a second."""
        return self.counted_bit_s if self.transactions_s is None else self.counted_transactions_s

    @property
    def first_value(self) -> float | None:
        """The figure of the first test, which every cell has."""
        return self.bit_s if self.transactions_s is None else self.transactions_s

    @property
    def isolated_value(self) -> float | None:
        """The figure of the test alone; None without one."""
        return self.isolated_bit_s if self.transactions_s is None else self.isolated_transactions_s

    @property
    def counted_bit_s(self) -> float | None:
        """The goodput that counts, in bits a second."""
        return self.bit_s if self.isolated_bit_s is None else self.isolated_bit_s

    @property
    def counted_transactions_s(self) -> float | None:
        """The transactions a second that count."""
        return self.transactions_s if self.isolated_transactions_s is None else self.isolated_transactions_s

    @property
    def counted_loss(self) -> float | None:
        """The loss that counts, 0 to 1."""
        return self.isolated_loss if self.is_isolated else self.loss

    @property
    def counted_rise_ns(self) -> float | None:
        """The rise of latency that counts."""
        return self.isolated_rise_ns if self.is_isolated else self.rise_ns

    @property
    def isolated_transactions_s(self) -> float | None:
        """The transactions a second of the test alone; None if there are none."""
        if self.transactions_s is None or self.isolated_bit_s is None or not self.bit_s:
            return None
        return self.transactions_s * self.isolated_bit_s / self.bit_s

    @property
    def percent(self) -> float | None:
        """The goodput that counts in percent of the expected one; None if either is unknown."""
        return percent_of(self.counted_bit_s, self.expected_bit_s)

    def check(self, limits: AcceptanceLimits) -> LimitCheck:
        """Return which limits it breaks, and for which it has no figure; neither if it was not measured."""
        if self.value is None:
            return LimitCheck()
        return limits.check(bit_s=self.counted_bit_s, loss=self.counted_loss, rise_ns=self.counted_rise_ns)


@dataclass(frozen=True, slots=True)
class MeshMatrix:
    """The cells of a mesh so far. `figures` has no entry for a cell that is not measured yet.

    `limits` are what every cell must keep.
    """

    group: str
    mode: MeshMode
    hosts: tuple[Host, ...]
    figures: Mapping[Cell, CellFigure]
    limits: AcceptanceLimits = NO_LIMITS

    def check_limits(self, cell: Cell) -> LimitCheck:
        """Return which limits a cell breaks, and for which it has no figure; neither if it was not measured."""
        figure = self.figures.get(cell)
        return LimitCheck() if figure is None else figure.check(self.limits)

    @property
    def cell_count(self) -> int:
        """The number of cells that the hosts have, measured or not."""
        return len(self.hosts) * max(len(self.hosts) - 1, 0)

    @property
    def is_complete(self) -> bool:
        """Whether every cell has a result."""
        return sum(figure.value is not None for figure in self.figures.values()) == self.cell_count


class MeshFindingCode(StrEnum):
    """The slow or lossy part."""

    HOST_SENDS = "host-sends"
    """A host sends less to everybody."""
    HOST_RECEIVES = "host-receives"
    """A host receives less from everybody."""
    HOST = "host"
    """A host sends and receives less."""
    GROUPS = "groups"
    """Every path from one group to another is slow. Without a receiver: to every other group. Without a sender:
    from every other group. Without both: between any two groups."""
    GROUP = "group"
    """Every path within a group is slow: sender and receiver are the group. Without a receiver, all that its hosts
    send and receive is slow, within the group and outside."""
    PATH = "path"
    """The path from one host to another is slow, in this direction."""
    FABRIC = "fabric"
    """Cells are slow beside others and not when measured alone: the network between the hosts has too little
    capacity. Sender and receiver are groups, as for GROUPS and GROUP, if the capacity is short between these; else
    None."""
    ALL = "all"
    """Every cell is about equally slow: the expected rate may be of another link."""
    LIMIT = "limit"
    """Cells break a limit of the user: which one, `limit` says."""
    HOST_DOWN = "host-down"
    """A host has no results."""


@dataclass(frozen=True, slots=True)
class MeshFinding:
    """A host, a path or a network that is slow, or that is lossy at its usual rate.

    Args:
        code: what is slow.
        sender: the name of the sending host or group; the host if the code is about one host.
        receiver: the name of the receiving host or group; None if the code is about one host. Groups may be None on
            either side: see the code.
        less_percent: how far its median is below the median of the others, or below the expected rate.
        lost_percent: the median loss of its cells, if it is lossy; None if it is slow.
        cells: the cells that show it.
        why: the most frequent first finding of these cells' runs; None without any.
        failure: why a host is down.
        is_of_transactions: whether the cells are transactions, with the sender as the client.
        limit: the limit that the cells break, for LIMIT.
        beyond: what breaks it: `more than 0.1 % lost`.
    """

    code: MeshFindingCode
    sender: str | None = None
    receiver: str | None = None
    less_percent: float | None = None
    cells: tuple[Cell, ...] = ()
    why: str | None = None
    failure: CellFailure | None = None
    is_of_transactions: bool = False
    lost_percent: float | None = None
    limit: LimitName | None = None
    beyond: str = ""
