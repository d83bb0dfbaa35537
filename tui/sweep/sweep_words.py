"""A sweep as text, as CSV rows and as JSON. Pure."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final, Literal

from ...engine.model.expected_rate import ExpectedRate
from ...engine.model.plan import SECOND_NS
from ...engine.results.csv_export import cell_text
from ...engine.results.figure_codec import DOCUMENT_VERSION, encode, mbit, round_figure
from ...engine.results.rate_and_loss import percent_of
from ...engine.results.run_result import RunResult
from ...engine.results.sweep import (
    AXES,
    MAX_HIDDEN_GAIN_PERCENT,
    Axis,
    BestSettings,
    SaturationPoint,
    Sweep,
    SweepPoint,
    SweepResult,
    find_best,
    find_saturation_points,
    noisy_leader,
    reliable_estimate,
)
from ..words import numbers

_MAX_FAILURES: Final = 5
_TEST_LONGER: Final = "test longer (--seconds 10)"
RankingMark = Literal["fastest", "less", "noisy"]

AXIS_NAMES: Final[dict[Axis, str]] = {
    "direction": "direction",
    "sessions": "sessions",
    "window_bytes": "window",
    "message_bytes": "message size",
}
CSV_COLUMNS: Final = (
    "group",
    "run_id",
    "preset",
    "direction",
    "sessions",
    "window_bytes",
    "message_bytes",
    "mbit_s",
    "ci95_low_mbit_s",
    "ci95_high_mbit_s",
    "expected_mbit_s",
    "percent_of_expected",
    "near_cpu_percent",
    "far_cpu_percent",
    "near_cpu_msec_per_mib",
    "far_cpu_msec_per_mib",
    "retransmits",
    "rtt_us",
)


def estimated_duration_ns(sweep: Sweep, runs: int) -> int:
    """Return the estimated time of a number of a sweep's runs: each takes a second more than its duration."""
    return runs * ((sweep.base.duration_ns or 0) + SECOND_NS)


def axis_value_words(axis: Axis, value: int | str | None) -> str:
    """Return a value of an axis as it is written on the command line."""
    if axis in {"window_bytes", "message_bytes"} and not isinstance(value, str):
        return numbers.window(value)
    return str(value)


def point_words(point: SweepPoint, axes: Iterable[Axis] = AXES) -> str:
    """Return a point's settings on some axes as text: `out, 5 sessions, window 64K, message size 1K`."""
    words: list[str] = []
    for axis in axes:
        value = axis_value_words(axis, point.value(axis))
        if axis == "direction":
            words.append(value)
        elif axis == "sessions":
            words.append(numbers.sessions(point.sessions))
        else:
            words.append(f"{AXIS_NAMES[axis]}{numbers.NBSP}{value}")
    return ", ".join(words)


def result_words(cell: SweepResult) -> str:
    """Return a cell's rate with its margin of error: `94.15 Mb/s ±0.31 %`."""
    total = cell.summary.measured.total
    estimate = None if total is None else total.estimate
    margin = numbers.margin_of_error(None if estimate is None else estimate.half_width_percent)
    return f"{numbers.rate(cell.bit_s)} {margin}".rstrip()


def saturation_words(sweep: Sweep, knee: SaturationPoint) -> str:
    """Return an axis's saturation as a sentence: `window: no gain beyond 256K (at most 0.8 %)`."""
    others: list[Axis] = [axis for axis in sweep.varied_axes if axis != knee.axis]
    where = f" ({point_words(knee.point, others)})" if others else ""
    name, value = AXIS_NAMES[knee.axis], axis_value_words(knee.axis, knee.value)
    if knee.max_gain_percent is None:
        return f"{name}{where}: {value} is the largest value tested, and the rate still rises: test larger values"
    gain = max(0.0, knee.max_gain_percent)
    at_most = numbers.factor(gain) if numbers.is_factor(gain) else numbers.percent(gain)
    if knee.max_gain_percent > MAX_HIDDEN_GAIN_PERCENT:
        return f"{name}{where}: beyond {value} no gain is significant; it may be up to {at_most}: {_TEST_LONGER}"
    if knee.is_first:
        return f"{name}{where}: no gain from {value} on (at most {at_most})"
    return f"{name}{where}: no gain beyond {value} (at most {at_most})"


def ranking_lines(sweep: Sweep, cells: Sequence[SweepResult]) -> list[tuple[RankingMark, str]]:
    """Return a line for each direction's fastest settings, and one for those that are as fast with less.

    While points are missing, the fastest settings are the fastest so far. If the highest rate of a direction is too
    noisy, a line says so, and there are no fastest settings. A direction with a single result has no line.
    """
    axes = sweep.varied_axes or ("sessions", "window_bytes")
    lines: list[tuple[RankingMark, str]] = []
    for flow, results in _by_direction(sweep, cells):
        if len(results) < 2:
            continue
        prefix = f"{flow}: " if len(sweep.directions) > 1 else ""
        total = sum(point.direction == flow for point in sweep.points)
        so_far = f" so far of {len(results)} of {total} points" if len(results) < total else ""
        if leader := noisy_leader(results):
            rate = f"{numbers.rate(leader.bit_s)} with {point_words(leader.point, axes)}"
            winner = f"no winner,{so_far}" if so_far else "no winner"
            text = f"{winner}: the highest rate, {rate}, is too noisy to rank; {_TEST_LONGER}"
            lines.append(("noisy", prefix + text))
        elif best := find_best(results):
            words = f"{result_words(best.fastest)} with {point_words(best.fastest.point, axes)}"
            lines.append(("fastest", f"{prefix}fastest{so_far}: {words}"))
            if best.least_demanding.point != best.fastest.point:
                less = f"{point_words(best.least_demanding.point, axes)} ({result_words(best.least_demanding)})"
                lines.append(("less", f"{prefix}as fast, with less: {less}"))
    return lines


def saturation_lines(sweep: Sweep, cells: Sequence[SweepResult]) -> list[str]:
    """Return the saturation of each axis as sentences, which begin with `so far` while points are missing."""
    so_far = "so far, " if len(cells) < len(sweep.points) else ""
    return [so_far + saturation_words(sweep, point) for point in find_saturation_points(cells)]


def missing_lines(sweep: Sweep, cells: Iterable[SweepResult], failures: Mapping[SweepPoint, str]) -> list[str]:
    """Return a line for each point that failed, with the reason, and one for the number of those not run yet.

    Args:
        sweep: The sweep.
        cells: The results so far.
        failures: Why points have no result.
    """
    done = {cell.point for cell in cells}
    missing = [point for point in sweep.points if point not in done]
    failed = [point for point in missing if point in failures]
    axes = sweep.varied_axes or ("sessions", "window_bytes")
    lines = [
        f"failed: {point_words(point, axes)}: {numbers.sanitize(failures[point])}"
        for point in failed[:_MAX_FAILURES]
    ]
    if len(failed) > _MAX_FAILURES:
        lines.append(f"{numbers.quantity(len(failed) - _MAX_FAILURES, 'more point')} failed")
    if rest := len(missing) - len(failed):
        lines.append(f"{numbers.quantity(rest, 'point')} not run yet")
    return lines


def noise_words(cells: Sequence[SweepResult]) -> str | None:
    """Return how many results are too noisy to rank, as a sentence; None if all count."""
    noisy = sum(reliable_estimate(cell) is None for cell in cells)
    if not noisy:
        return None
    are = "is" if noisy == 1 else "are"
    return f"{numbers.quantity(noisy, 'result')} {are} too noisy to rank; {_TEST_LONGER}"


def best_by_direction(sweep: Sweep, cells: Sequence[SweepResult]) -> list[BestSettings]:
    """Return the best settings of each direction that has any."""
    return [best for _, results in _by_direction(sweep, cells) if (best := find_best(results)) is not None]


def _by_direction(sweep: Sweep, cells: Sequence[SweepResult]) -> list[tuple[str, list[SweepResult]]]:
    return [(flow.value, [cell for cell in cells if cell.point.direction is flow]) for flow in sweep.directions]


def sweep_start_json(sweep: Sweep, cells: Sequence[SweepResult]) -> dict[str, Any]:
    """Return the object of a sweep's start: its axes, and how many of its runs are there already."""
    return {
        "type": "sweep_start",
        "schema": DOCUMENT_VERSION,
        "group": sweep.group,
        "peer": sweep.peer,
        "preset": sweep.preset,
        "figure": sweep.figure,
        "axes": {axis: list(sweep.values(axis)) for axis in AXES},
        "runs": len(sweep.points),
        "runs_done": len(cells),
    }


def sweep_end_json(sweep: Sweep, cells: Sequence[SweepResult]) -> dict[str, Any]:
    """Return the object of a sweep's end, with the document of the whole sweep."""
    return {"type": "sweep_end", "group": sweep.group, "summary": sweep_json(sweep, cells)}


def sweep_json(sweep: Sweep, cells: Sequence[SweepResult]) -> dict[str, Any]:
    """Return a sweep as one document."""
    return {
        "schema": DOCUMENT_VERSION,
        "group": sweep.group,
        "peer": sweep.peer,
        "preset": sweep.preset,
        "figure": sweep.figure,
        "is_complete": len(cells) == len(sweep.points),
        "axes": {axis: list(sweep.values(axis)) for axis in AXES},
        "cells": [_cell_json(cell) for cell in sort_results(sweep, cells)],
        "knees": [
            {
                "axis": knee.axis,
                **{axis: knee.point.value(axis) for axis in AXES if axis != knee.axis},
                "value": knee.value,
                "gain_at_most_percent": round_figure(knee.max_gain_percent),
                "words": saturation_words(sweep, knee),
            }
            for knee in find_saturation_points(cells)
        ],
        "best": [
            {
                "direction": best.fastest.point.direction.value,
                "fastest": best.fastest.run_id,
                "most_modest_alike": best.least_demanding.run_id,
                "alike": [cell.run_id for cell in best.equivalent],
            }
            for best in best_by_direction(sweep, cells)
        ],
    }


def _cell_json(cell: SweepResult) -> dict[str, Any]:
    whole = encode(RunResult.of_run(cell.summary, run_id=cell.run_id))
    settings = {axis: cell.point.value(axis) for axis in AXES}
    return {"run_id": cell.run_id, **settings, **{name: whole[name] for name in ("measured", "cpu", "tcp")}}


def csv_rows(sweep: Sweep, cells: Sequence[SweepResult]) -> Iterator[list[str]]:
    """Yield the rows of the CSV, the header first; an empty cell is unknown."""
    yield list(CSV_COLUMNS)
    for cell in sort_results(sweep, cells):
        summary, point = cell.summary, cell.point
        estimate = None if summary.measured.total is None else summary.measured.total.estimate
        expected = expected_rate_of(cell)
        figures = (
            mbit(cell.bit_s),
            mbit(estimate and estimate.low),
            mbit(estimate and estimate.high),
            mbit(expected and expected.bit_s),
            percent_of(cell.bit_s, None if expected is None else expected.bit_s),
            summary.near_cpu.host_percent,
            summary.far_cpu.host_percent,
            summary.near_cpu.msec_per_mib,
            summary.far_cpu.msec_per_mib,
            summary.tcp.retransmits,
            summary.tcp.rtt_us,
        )
        settings = [point.direction.value, point.sessions, point.window_bytes, point.message_bytes]
        values = [sweep.group, cell.run_id, sweep.preset, *settings, *map(_round, figures)]
        yield [cell_text(each) for each in values]


def expected_rate_of(cell: SweepResult) -> ExpectedRate | None:
    """Return the expected rate of a cell."""
    expectation = cell.summary.expectation
    return expectation.total or expectation.out or expectation.in_


def sort_results(sweep: Sweep, cells: Iterable[SweepResult]) -> list[SweepResult]:
    """Return the cells in the order of their values on the sweep's axes."""
    places = {axis: {value: place for place, value in enumerate(sweep.values(axis))} for axis in AXES}
    return sorted(cells, key=lambda cell: [places[axis].get(cell.point.value(axis), -1) for axis in AXES])


def grids(sweep: Sweep) -> Iterator[tuple[str, Axis, Axis, list[SweepPoint]]]:
    """Yield the sweep's tables: the title, the axis of the rows, the axis of the columns, and the points.

    The two axes with the most values span each table; there is a table for each combination of the others.
    """
    candidates: list[Axis] = [axis for axis in AXES if axis != "direction"]
    by_length = sorted(candidates, key=lambda axis: -len(sweep.values(axis)))
    row_axis, column_axis = by_length[0], by_length[1]
    rest: list[Axis] = [axis for axis in AXES if axis not in {row_axis, column_axis}]

    def others(point: SweepPoint) -> list[str]:
        return [str(point.value(axis)) for axis in rest]

    for _, group in groupby(sorted(sweep.points, key=others), key=others):
        points = list(group)
        yield point_words(points[0], rest), row_axis, column_axis, points


def _round(value: float | None) -> float | None:
    return value if value is None or isinstance(value, int) else round_figure(value)
