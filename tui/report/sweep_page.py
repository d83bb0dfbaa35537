"""A sweep as one HTML page that needs nothing else: what was tried, what is best, plots, and every number.

`python -m linkgauge.tui.report.sweep_page GROUP FILE` makes it of a sweep that is kept.
"""

import sys
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Final

from ...engine.host.atomic_write import write_atomically
from ...engine.model.errors import LinkgaugeError, PlanError, RunLogError
from ...engine.results.run_log import RunLog
from ...engine.results.saturation import find_saturation_points
from ...engine.results.sweep import Axis, Sweep, SweepResult
from ..services.config import data_dir
from ..services.sweeps import find_sweep, load_results
from ..text import numbers
from ..text.sweep import (
    AXIS_NAMES,
    axis_value_words,
    best_by_direction,
    best_words,
    expected_rate_of,
    grids,
    saturation_words,
    sort_results,
)

_CSS: Final = """
body { font: 15px/1.5 system-ui, sans-serif; color: #24292f; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
svg { width: 100%; height: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; }
th, td { padding: .2rem .7rem; border-bottom: 1px solid #d8dee4; text-align: right; }
th { color: #57606a; font-weight: 600; } .muted { color: #57606a; }
"""


def check_report_path(path: Path) -> Path:
    """Return a path that a report can be written to; raise PlanError before anything runs where it cannot be."""
    if path.suffix.lower() not in {".html", ".htm"}:
        raise PlanError("report", path, "name a file that ends in .html")
    if not path.parent.is_dir():
        raise PlanError("report", path, "its directory is not there")
    return path


def write_sweep_report(path: Path, sweep: Sweep, cells: Sequence[SweepResult]) -> None:
    """Write the page; raise StoreError where it cannot be written."""
    text = "".join(_page(sweep, cells))
    try:
        write_atomically(path, text)
    except OSError as error:
        raise RunLogError(f"cannot write {path}: {error.strerror or error}") from error


def _page(sweep: Sweep, cells: Sequence[SweepResult]) -> Iterator[str]:
    title = f"Sweep {sweep.group}"
    yield '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
    yield f"<title>{escape(title)}</title><style>{_CSS}</style></head><body><h1>{escape(title)}</h1>"
    yield f"<p>{escape(_what(sweep, cells))}</p>"
    yield "<ul>"
    for found in best_by_direction(sweep, cells):
        way = f"{found.fastest.point.direction.value}: " if len(sweep.directions) > 1 else ""
        yield from (f"<li>{escape(way + line)}</li>" for line in best_words(sweep, found))
    yield from (f"<li>{escape(saturation_words(sweep, knee))}</li>" for knee in find_saturation_points(cells))
    yield "</ul>"
    yield from _plots(sweep, cells)
    yield "<h2>Every run</h2>"
    yield from _table(sweep, cells)
    yield (
        '<p class="muted">± is half of the 95 % confidence interval of a rate, in percent of it. Rates are payload '
        "as the receiving application got it, after the warm-up. Runs were made in a shuffled order.</p>"
        "</body></html>\n"
    )


def _what(sweep: Sweep, cells: Sequence[SweepResult]) -> str:
    duration = numbers.duration(sweep.base.duration_ns)
    words = [f"{len(cells)} of {len(sweep.points)} runs of {duration} against {sweep.peer}"]
    if sweep.preset is not None:
        words.append(f"preset {sweep.preset}")
    if sweep.figure is not None:
        words.append(f"the experiment {sweep.figure}")
    words += [f"{AXIS_NAMES[axis]} {_values(sweep, axis)}" for axis in sweep.varied_axes]
    return "; ".join(words)


def _values(sweep: Sweep, axis: Axis) -> str:
    return ", ".join(axis_value_words(axis, value) for value in sweep.values(axis))


def _plots(sweep: Sweep, cells: Sequence[SweepResult]) -> Iterator[str]:
    from .sweep_plots import heat_map, line_plot

    found = {cell.point: cell for cell in cells}
    alike = {cell.point for one in best_by_direction(sweep, cells) for cell in one.equivalent}
    for grid in grids(sweep):
        yield f"<h2>{escape(grid[0])}</h2>"
        yield line_plot(sweep, grid, found)
        if len(sweep.values(grid[2])) > 1:
            yield heat_map(sweep, grid, found, alike)
            yield '<p class="muted">Mb/s; * may be as fast as the fastest of its direction</p>'


def _table(sweep: Sweep, cells: Sequence[SweepResult]) -> Iterator[str]:
    heads = [
        *(AXIS_NAMES[axis] for axis in AXIS_NAMES),
        *("Mb/s", "±", "of expected", "CPU near", "CPU far", "retransmits", "RTT", "run"),
    ]
    yield f"<table><tr>{''.join(f'<th>{escape(head)}</th>' for head in heads)}</tr>"
    for cell in sort_results(sweep, cells):
        summary, total = cell.summary, cell.summary.total
        steady = None if total is None else total.estimate
        expected = expected_rate_of(cell)
        columns = [
            *(axis_value_words(axis, cell.point.value(axis)) for axis in AXIS_NAMES),
            numbers.mbit(cell.bit_s),
            numbers.UNKNOWN if steady is None else numbers.margin_of_error(steady.half_width_percent),
            numbers.percent(numbers.share(cell.bit_s, None if expected is None else expected.bit_s)),
            numbers.percent(summary.near_cpu.host_percent),
            numbers.percent(summary.far_cpu.host_percent),
            numbers.count(summary.tcp.retransmits),
            numbers.milliseconds(summary.tcp.rtt_us),
            cell.run_id,
        ]
        yield f"<tr>{''.join(f'<td>{escape(column)}</td>' for column in columns)}</tr>"
    yield "</table>"


def main() -> None:
    """Make the page of a sweep that is kept; the reason where it cannot be is what the process ends with."""
    group, path = sys.argv[1:]
    try:
        sweep, _ = find_sweep(group)
        with RunLog.open(data_dir()) as log:
            write_sweep_report(Path(path), sweep, load_results(log, sweep))
    except LinkgaugeError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
