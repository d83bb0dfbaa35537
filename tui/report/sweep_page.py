"""The report of a sweep: one HTML page with the best settings, plots, and every number.

`python -m linkgauge.tui.report.sweep_page GROUP FILE` writes the page of a stored sweep.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...engine.model.errors import LinkgaugeError
from ...engine.results.rate_and_loss import percent_of
from ...engine.results.run_log import RunLog
from ...engine.results.sweep import Sweep, SweepPoint, SweepResult
from ..session.storage import data_dir
from ..sweep.sweep_session import find_sweep, load_failures, load_results
from ..sweep.sweep_words import (
    AXIS_NAMES,
    axis_value_words,
    best_by_direction,
    expected_rate_of,
    grids,
    missing_lines,
    ranking_lines,
    saturation_lines,
    sort_results,
)
from ..words import numbers
from ..words.summary import margin_cell
from ..words.table import Column, Table
from .html_templates import render, write_page

_FIGURES: Final = ("Mb/s", "± 95 %", "of expected", "CPU local", "CPU remote", "retransmits", "RTT", "run")
_COLUMNS: Final = (Column("direction", is_text=True), *map(Column, (*list(AXIS_NAMES.values())[1:], *_FIGURES)))


@dataclass(frozen=True, slots=True)
class _GridView:
    """The plots of a grid for the template; there is no heat map of a single column."""

    title: str
    lines: str
    heat_map: str


def write_sweep_report(
    path: Path, sweep: Sweep, results: Sequence[SweepResult], failures: Mapping[SweepPoint, str]
) -> None:
    """Write the page of a sweep, with the points that failed.

    Raises:
        RunLogError: The file cannot be written.
    """
    page = render(
        "sweep.html.j2",
        title=f"Sweep {sweep.group}",
        description=_description(sweep, results),
        conclusions=list(_conclusions(sweep, results, failures)),
        grids=list(_grid_views(sweep, results)),
        results=Table(_COLUMNS, [_cells(result) for result in sort_results(sweep, results)]),
    )
    write_page(path, page)


def _description(sweep: Sweep, results: Sequence[SweepResult]) -> str:
    duration, peer = numbers.duration(sweep.base.duration_ns), numbers.sanitize(sweep.peer)
    parts = [f"{len(results)} of {len(sweep.points)} runs of {duration} against {peer}"]
    if sweep.preset is not None:
        parts.append(f"preset {sweep.preset}")
    if sweep.figure is not None:
        parts.append(f"the experiment {sweep.figure}")
    for axis in sweep.varied_axes:
        values = ", ".join(axis_value_words(axis, value) for value in sweep.values(axis))
        parts.append(f"{AXIS_NAMES[axis]} {values}")
    return "; ".join(parts)


def _conclusions(sweep: Sweep, results: Sequence[SweepResult], failures: Mapping[SweepPoint, str]) -> Iterator[str]:
    for _, line in ranking_lines(sweep, results):
        yield line
    yield from saturation_lines(sweep, results)
    yield from missing_lines(sweep, results, failures)


def _grid_views(sweep: Sweep, results: Sequence[SweepResult]) -> Iterator[_GridView]:
    from . import plots

    by_point = {result.point: result for result in results}
    equivalent = {result.point for best in best_by_direction(sweep, results) for result in best.equivalent}
    for grid in grids(sweep):
        title, _, column_axis, _ = grid
        has_columns = len(sweep.values(column_axis)) > 1
        heat_map = plots.sweep_heat_map(sweep, grid, by_point, equivalent) if has_columns else ""
        yield _GridView(title, plots.sweep_lines(sweep, grid, by_point), heat_map)


def _cells(result: SweepResult) -> tuple[str, ...]:
    summary, expected = result.summary, expected_rate_of(result)
    estimate = None if summary.measured.total is None else summary.measured.total.estimate
    return (
        *(axis_value_words(axis, result.point.value(axis)) for axis in AXIS_NAMES),
        numbers.mbit(result.bit_s),
        margin_cell(estimate),
        numbers.percent(percent_of(result.bit_s, None if expected is None else expected.bit_s)),
        numbers.percent(summary.near_cpu.host_percent),
        numbers.percent(summary.far_cpu.host_percent),
        numbers.count(summary.tcp.retransmits),
        numbers.round_trip(summary.tcp.rtt_us),
        result.run_id,
    )


def main() -> None:
    """Write the page of a stored sweep; an error becomes the last line of stderr."""
    group, path = sys.argv[1:]
    try:
        sweep, _ = find_sweep(group)
        with RunLog.open(data_dir()) as log:
            write_sweep_report(Path(path), sweep, load_results(log, sweep), load_failures(log, sweep))
    except LinkgaugeError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
