"""Runs as rows of CSV, one a run: what was tested, over which address, and the figures of its document. Pure.

Every value is one of the run's document, or of its entry in the run log. An empty cell is unknown. Columns are only
ever added, at the end.
"""

from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, fields
from typing import Final

from ..csv_export import cell_text
from ..json_document import exact, figure, figures_of
from ..run_result import RunResult
from .store import RunRecord


@dataclass(frozen=True, slots=True)
class _RunRow:
    """The columns of a run's figures, a field each: the settings are those that its results are of."""

    address: str | None = figure("subject.address")
    ip_version: int | None = figure("subject.ip_version")
    near_host: str | None = figure("subject.near.hostname")
    far_host: str | None = figure("subject.far.hostname")
    workload: str | None = figure("plan.workload")
    direction: str | None = figure()
    sessions: int | None = figure()
    window_bytes: int | None = figure()
    seconds: float | None = figure("measured.total.seconds", exact)
    out_mbit_s: float | None = figure("measured.out.mbit_s")
    in_mbit_s: float | None = figure("measured.in_.mbit_s")
    total_mbit_s: float | None = figure("measured.total.mbit_s")
    transactions_s: float | None = figure("measured.total.transactions_s")
    expected_mbit_s: float | None = figure("expected.total.mbit_s")
    percent_of_expected: float | None = figure("measured.total.percent_of_expected")
    lost_percent: float | None = figure("measured.total.udp.lost_percent")
    retransmits: int | None = figure("tcp.retransmits")
    rtt_us: int | None = figure("tcp.rtt_us")
    end_reason: str | None = figure()
    end_detail: str | None = figure()
    periods: int | None = figure()


_NAMES: Final = ("run_id", "started_utc", "peer", "label", "preset", "verdict")
RUN_COLUMNS: Final = (*_NAMES, *(field.name for field in fields(_RunRow)))


def run_rows(runs: Iterable[RunRecord]) -> Iterator[list[str]]:
    """Yield the rows of runs, the header first."""
    yield list(RUN_COLUMNS)
    for run in runs:
        figures = _figures(RunResult.of(run.document))
        named = (run.run_id, run.started_utc, run.peer, run.label, run.preset, run.verdict)
        yield [cell_text(value) for value in (*named, *astuple(figures))]


def _figures(result: RunResult) -> _RunRow:
    periods = result.stretches
    measured = [each for each in periods if each.measured.total and each.measured.total.bytes is not None]
    newest = measured[-1].settings if measured else result.plan
    return figures_of(
        _RunRow,
        result,
        direction=newest.direction,
        sessions=newest.sessions,
        window_bytes=newest.window_bytes,
        periods=len(periods) or None,
    )
