"""The state of a mesh as its screen shows it, from its events: each cell, each host, the progress. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Final

from ...mesh.events import CellBegan, CellEnded, FailureCode, HostLost, MeshBegan, MeshEnded, MeshEvent, RoundBegan
from ...mesh.figures import CellFigure, MeshFinding, MeshMatrix
from ...mesh.plan import Cell, Host, MeshMode, cells_of_host, estimate_ns, mean_overhead_ns
from ...presets.verdict import DEFAULT_PASS_PERCENT, NO_LIMITS, AcceptanceLimits
from ..words.redaction import REDACTION
from .mesh_verdict import CellScale, CellState


@dataclass(frozen=True, slots=True)
class MeshCell:
    """A cell as it is drawn; `percent` is of the expected rate, or of the median cell if there is none."""

    state: CellState
    percent: float | None = None
    figure: CellFigure | None = None


_NO_MATRIX: Final = MeshMatrix("", MeshMode.ROUNDS, (), {})
WAITING_CELL: Final = MeshCell(CellState.WAITING)
SELF_CELL: Final = MeshCell(CellState.SELF)


@dataclass(frozen=True, slots=True)
class HostFigures:
    """The medians of a host's row and column, in the percent of cells, and the number of cells in each."""

    host: Host
    sends_percent: float | None
    sends: int
    receives_percent: float | None
    receives: int
    lost: str = ""


@dataclass(frozen=True, slots=True)
class MeshMap:
    """The matrix as it is drawn: the hosts in order, and the cells row by row."""

    hosts: tuple[Host, ...] = ()
    rows: tuple[tuple[MeshCell, ...], ...] = ()
    scale: CellScale = field(default_factory=lambda: CellScale(_NO_MATRIX))
    pass_percent: float = DEFAULT_PASS_PERCENT


@dataclass(frozen=True, slots=True)
class MeshProgress:
    """The progress of a mesh, and its results so far.

    `left_ns` is None if nothing is left or nothing runs. `findings` counts findings of lost packets as well, whose
    cells need not be slow.
    """

    matrix: MeshMatrix
    failed: int
    slow: int
    left_ns: int | None
    round: RoundBegan | None
    running: tuple[Cell, ...]
    is_recheck: bool
    is_running: bool
    is_stopping: bool
    problem: str | None
    lost: tuple[str, ...]
    findings: int = 0
    beyond_limits: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether every cell has ended, with a result or without."""
        return len(self.matrix.figures) >= self.matrix.cell_count


@dataclass(slots=True)
class _InProgress:
    """The cells that run now; when the first cell began and how many have ended since, for their mean time."""

    round: RoundBegan | None = None
    running: set[Cell] = field(default_factory=set[Cell])
    began_ns: int | None = None
    ended: int = 0


@dataclass(slots=True)
class MeshState:
    """The state of a mesh: call `load` for a stored one, `feed` for each event of one in progress.

    Args:
        clock: counts nanoseconds, for the time left.
        pass_percent: the pass mark of cells.
    """

    clock: Callable[[], int]
    pass_percent: float = DEFAULT_PASS_PERCENT
    group: str = ""
    mode: MeshMode = MeshMode.ROUNDS
    hosts: tuple[Host, ...] = ()
    figures: dict[Cell, CellFigure] = field(default_factory=dict[Cell, CellFigure])
    limits: AcceptanceLimits = NO_LIMITS
    findings: tuple[MeshFinding, ...] = ()
    rechecks: int = 0
    lost: dict[str, HostLost] = field(default_factory=dict[str, HostLost])
    problem: str | None = None
    is_running: bool = False
    is_stopping: bool = False
    order: tuple[str, ...] | None = None
    _began: MeshBegan | None = None
    _now: _InProgress = field(default_factory=_InProgress)

    def load(self, matrix: MeshMatrix, findings: Sequence[MeshFinding]) -> None:
        """Take the hosts, the figures and the findings as they are."""
        self.group, self.mode, self.hosts = matrix.group, matrix.mode, matrix.hosts
        REDACTION.learn_hosts(self.hosts)
        self.figures, self.limits = dict(matrix.figures), matrix.limits
        self.findings = tuple(findings)

    def start(self) -> None:
        """Note that the mesh has begun, before its first event."""
        self.is_running, self.problem = True, None

    def handle_event(self, event: MeshEvent, figure: CellFigure | None = None) -> None:
        """Take an event, and the figure of the cell that it ended."""
        if figure is not None:
            self.figures[figure.cell] = figure
        match event:
            case MeshBegan(plan):
                self._began, self.limits = event, plan.limits
                self.group, self.mode, self.hosts = plan.group, plan.mode, plan.hosts
                REDACTION.learn_hosts(self.hosts)
            case HostLost(host, failure):
                self.lost[host] = event
                for cell in cells_of_host(host, self.hosts):
                    self.figures.setdefault(cell, CellFigure(cell, failure=failure))
            case RoundBegan():
                self._now.round = event
            case CellBegan(cell):
                self._now.running.add(cell)
                if self._now.began_ns is None:
                    self._now.began_ns = self.clock()
            case CellEnded():
                self._end_cell(event, figure)
            case MeshEnded(is_complete, detail):
                self.end(None if is_complete or self.is_stopping else detail)

    def _end_cell(self, event: CellEnded, figure: CellFigure | None) -> None:
        self._now.running.discard(event.cell)
        failure = event.failure
        # The cells of a lost host end at once: they do not count for the mean time.
        self._now.ended += failure is None or failure.code is not FailureCode.HOST_LOST
        if figure is None and failure is not None:
            self.figures.setdefault(event.cell, CellFigure(event.cell, failure=failure))

    def end(self, problem: str | None) -> None:
        """Note that the mesh has ended, and the problem that ended it, if any."""
        self.is_running = self.is_stopping = False
        self.problem = problem
        self._now.running.clear()

    @property
    def ordered_hosts(self) -> tuple[Host, ...]:
        """The hosts as they are drawn: as given, or in `order` if that names exactly these hosts."""
        if self.order is None:
            return self.hosts
        by_name = {host.name: host for host in self.hosts}
        return tuple(by_name[name] for name in self.order) if set(self.order) == set(by_name) else self.hosts

    @property
    def matrix(self) -> MeshMatrix:
        """The figures so far."""
        return MeshMatrix(self.group, self.mode, self.hosts, dict(self.figures), self.limits)

    def map(self) -> MeshMap:
        """Return the matrix as it is drawn."""
        hosts, scale = self.ordered_hosts, self._scale
        rows = tuple(
            tuple(
                SELF_CELL if sender is receiver else self._cell(Cell(sender.name, receiver.name), scale)
                for receiver in hosts
            )
            for sender in hosts
        )
        return MeshMap(hosts, rows, scale, self.pass_percent)

    def progress(self) -> MeshProgress:
        """Return how far the mesh is."""
        matrix, scale, running = self.matrix, self._scale, self._now.running
        states = [scale.rate_state(cell) for cell in matrix.figures]
        return MeshProgress(
            matrix,
            failed=states.count(CellState.NO_RESULT),
            beyond_limits=sum(scale.state(cell) is CellState.LIMIT for cell in matrix.figures),
            slow=states.count(CellState.SHORT) + states.count(CellState.FAIL),
            left_ns=self._left_ns(matrix.cell_count - len(matrix.figures)),
            round=self._now.round,
            running=tuple(sorted(running)),
            is_recheck=bool(running) and all(cell in self.figures for cell in running),
            is_running=self.is_running,
            is_stopping=self.is_stopping,
            problem=self.problem,
            lost=tuple(self.lost),
            findings=len(self.findings),
        )

    def state_of(self, cell: Cell) -> MeshCell:
        """Return a cell as it is drawn now."""
        return SELF_CELL if cell.sender == cell.receiver else self._cell(cell, self._scale)

    def host_figures(self, host: Host) -> HostFigures:
        """Return the medians of a host's row and column."""
        scale = self._scale
        sends = [scale.percent(cell) for cell in self.figures if cell.sender == host.name]
        receives = [scale.percent(cell) for cell in self.figures if cell.receiver == host.name]
        return HostFigures(
            host,
            *_median(sends),
            *_median(receives),
            lost=self.lost[host.name].failure.detail if host.name in self.lost else "",
        )

    def slow_cells(self) -> frozenset[Cell]:
        """Return the cells that are below the pass mark, or that failed."""
        scale = self._scale
        fine = {CellState.PASS, CellState.WAITING}
        return frozenset(cell for cell in self.figures if scale.state(cell) not in fine)

    @property
    def is_of_expected(self) -> bool:
        """Whether cells are compared with an expected rate, and not with the median of all."""
        return self._scale.has_expected

    @property
    def _scale(self) -> CellScale:
        return CellScale(self.matrix, self.pass_percent)

    def _cell(self, cell: Cell, scale: CellScale) -> MeshCell:
        if cell in self._now.running:
            return MeshCell(CellState.RUNNING, None, self.figures.get(cell))
        figure = self.figures.get(cell)
        return WAITING_CELL if figure is None else MeshCell(scale.state(cell), scale.percent(cell), figure)

    def _left_ns(self, cells_left: int) -> int | None:
        """Return an estimate of the time left: by the mean time of a cell so far, at first by the plan."""
        if not self.is_running or cells_left <= 0 or self._began is None:
            return None
        plan, overhead_ns = self._began.plan, self._began.overhead_ns
        if self._now.ended and self._now.began_ns is not None:
            overhead_ns = mean_overhead_ns(plan, self._now.ended, self.clock() - self._now.began_ns)
        return estimate_ns(plan, cells_left, overhead_ns, self.rechecks if self._now.ended else None)


def _median(percents: Sequence[float | None]) -> tuple[float | None, int]:
    known = [percent for percent in percents if percent is not None]
    return (median(known) if known else None), len(percents)
