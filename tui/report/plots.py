"""The plots of runs and sweeps, drawn by matplotlib as SVG elements for a page.

matplotlib takes a second to load: import this module only to make a report.
"""

import contextlib
import io
import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

# It reads settings from the current directory, which may be another user's: they could make it run LaTeX.
with contextlib.chdir(Path(__file__).parent):
    # Without a home its cache is temporary: no news for the user.
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    import matplotlib as mpl
    from matplotlib.figure import Figure

from ...engine.model.directions import Direction, End
from ...engine.results.responsiveness.result import ResponsivenessPoint
from ...engine.results.sums.traces import PlotPeriod
from ...engine.results.sweep import Axis, Sweep, SweepPoint, SweepResult
from ..readings.live_readings import ChangeMark
from ..session.stored_run import StoredRun, rate_points
from ..sweep.sweep_words import AXIS_NAMES, axis_value_words, expected_rate_of
from ..words import numbers
from ..words.responsiveness import load_name

SweepGrid = tuple[str, Axis, Axis, list[SweepPoint]]

_WIDTH_IN: Final = 9.6
# All plots over time have the same margins, so that one moment is below the other.
_LEFT_IN, _RIGHT_IN, _BOTTOM_IN, _TOP_IN = 0.75, 0.15, 0.5, 0.35
_PLOT_WIDTH_IN: Final = _WIDTH_IN - _LEFT_IN - _RIGHT_IN
_LABEL_ROW_IN: Final = 0.17
_CHARACTER_IN: Final = 0.085  # of a label, the widest letters included
_INK: Final = "#24292f"
_MUTED: Final = "#57606a"
_FAINT: Final = "#d8dee4"
_BLUE, _GREEN, _VIOLET, _ORANGE = "#1f6feb", "#1a7f37", "#8250df", "#bc4c00"
_SERIES: Final = (_BLUE, _ORANGE, _GREEN, _VIOLET, "#cf222e", "#9a6700", "#0a7ea4", _MUTED)
_DIRECTIONS: Final = {Direction.OUT: _BLUE, Direction.IN: _GREEN, Direction.DUPLEX: _INK}
_ENDS: Final = {End.NEAR: _BLUE, End.FAR: _VIOLET}
_DASHES: Final = ("-", "--", "-.", ":")
_MARKERS: Final = "osD^v<>P"
_EXPECTED: Final[dict[str, Any]] = {"color": _ORANGE, "linestyle": (0, (5, 3))}
_GROUP_IDS: Final = re.compile(r' id="[a-zA-Z0-9.]+_\d+"')
_STYLE: Final[dict[str, Any]] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#8c959f",
    "axes.labelcolor": _MUTED,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": _FAINT,
    "grid.linewidth": 0.6,
    "xtick.color": _MUTED,
    "ytick.color": _MUTED,
    "text.color": _INK,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "text.parse_math": False,
}


def throughput(run: StoredRun) -> str:
    """Return the rate of each direction over time, the expected rate, and each change of settings."""
    periods, end_s = run.readings.periods, run.readings.elapsed_ns / 1e9
    labels = place_labels(run.readings.change_marks, end_s)

    def draw(axes: Any) -> None:
        measured = {direction for period in periods for direction in period.points}
        for direction in Direction:
            if direction in measured:
                _rate_line(axes, periods, direction, is_only=len(measured) == 1)
        for number, period in enumerate(periods):
            _expected_and_warmup(axes, period, end_s, is_first=number == 0)
        _mark_labels(axes, labels)
        _time_axis(axes, run)
        axes.set_ylabel("Mb/s")

    rows = max((label.row + 1 for label in labels), default=0)
    return _svg(f"{run.row.run_id} throughput", 3.1, draw, time_axis_rows=rows)


def cpu(run: StoredRun) -> str:
    """Return the CPU use of both ends over time: the busiest core, and the mean of all cores."""

    def draw(axes: Any) -> None:
        for end, points in run.readings.traces.cpu.items():
            if points:
                at_s = [point.at_s for point in points]
                busiest = [point.hottest_percent for point in points]
                mean = [point.host_percent for point in points]
                axes.plot(at_s, busiest, color=_ENDS[end], label=f"{end.label} busiest core")
                axes.plot(at_s, mean, color=_ENDS[end], linestyle=":", label=f"{end.label} mean of all cores")
        _time_axis(axes, run)
        axes.set_ylim(0, 105)
        axes.set_ylabel("% busy")

    return _svg(f"{run.row.run_id} cpu", 2.1, draw, time_axis_rows=0)


def losses(run: StoredRun) -> str:
    """Return the lost share of datagrams over time, interval by interval."""

    def draw(axes: Any) -> None:
        traces = run.readings.traces.datagrams
        highest = 0.0
        for direction in Direction.DUPLEX.flows:
            points = traces.get(direction)
            if not points:
                continue
            shares = [point.lost_percent or 0.0 for point in points]
            name = f"{numbers.arrow(direction)} " if len(traces) > 1 else ""
            starts = [0.0, *(point.at_s for point in points[:-1])]
            ends = [point.at_s for point in points]
            widths = [end - start for start, end in zip(starts, ends, strict=True)]
            colour = _DIRECTIONS[direction]
            axes.bar(starts, shares, widths, align="edge", color=colour, alpha=0.55, label=f"{name}lost")
            highest = max([highest, *shares])
        _time_axis(axes, run)
        axes.set_ylabel("% lost")
        axes.set_ylim(0, highest * 1.12 or 1.0)

    return _svg(f"{run.row.run_id} losses", 1.8, draw, time_axis_rows=0)


def latency(run: StoredRun) -> str:
    """Return the latency of transactions over time, interval by interval."""

    def draw(axes: Any) -> None:
        traces = run.readings.traces
        for direction, points in sorted(traces.latency.items()):
            at_s = [point.at_s for point in points]
            name = f"{direction} " if len(traces.latency) > 1 else ""
            colour = _DIRECTIONS[direction]
            axes.plot(at_s, [point.p99_ms for point in points], color=colour, linestyle=":", label=f"{name}p99")
            axes.plot(at_s, [point.p50_ms for point in points], color=colour, label=f"{name}p50")
        _time_axis(axes, run)
        axes.set_ylabel("ms")
        axes.set_ylim(bottom=0)

    return _svg(f"{run.row.run_id} latency", 2.1, draw, time_axis_rows=0)


def latency_under_load(run: StoredRun) -> str:
    """Return the rates of a responsiveness test above its latency, on one time axis, with each load marked."""
    result = run.outcome.summary.responsiveness
    least_ns = run.outcome.summary.plan.interval_ns // 2  # the last interval may be too short for a rate
    points = [point for point in run.readings.load_points if point.interval_ns >= least_ns]
    idle_ns = None if result is None or result.idle is None else result.idle.p50_ns
    labels = place_labels(_load_marks(points), run.readings.elapsed_ns / 1e9)
    at_s = [point.elapsed_ns / 1e9 for point in points]

    def draw(rates: Any) -> None:
        left, bottom, width, height = rates.get_position().bounds
        latencies = rates.figure.add_axes((left, bottom, width, 0.55 * height))
        rates.set_position((left, bottom + 0.63 * height, width, 0.37 * height))
        for flow, values in (
            (Direction.OUT, [point.out_bit_s for point in points]),
            (Direction.IN, [point.in_bit_s for point in points]),
        ):
            rates.plot(at_s, _scaled(values), color=_DIRECTIONS[flow], label=f"{numbers.arrow(flow)} {flow}")
        _draw_latencies(latencies, at_s, points, idle_ns)
        _mark_labels(rates, labels)
        for label in labels:
            latencies.axvline(label.at_s, color=_INK, linewidth=0.9)
        for axes, unit in ((rates, "Mb/s"), (latencies, "ms")):
            _time_axis(axes, run)
            axes.set_ylim(bottom=0)
            axes.set_ylabel(unit)
        rates.set_xlabel("")
        rates.tick_params(labelbottom=False)

    rows = max((label.row + 1 for label in labels), default=0)
    return _svg(f"{run.row.run_id} latency under load", 4.4, draw, time_axis_rows=rows)


def _draw_latencies(
    axes: Any, at_s: Sequence[float], points: Sequence[ResponsivenessPoint], idle_ns: int | None
) -> None:
    """Draw the percentiles of latency, the idle one, and how much each direction's one-way delay has risen."""
    axes.plot(at_s, _scaled([point.p99_ns for point in points]), color=_INK, linestyle=":", label="p99")
    axes.plot(at_s, _scaled([point.p50_ns for point in points]), color=_INK, label="p50")
    for flow, values in (
        (Direction.OUT, [point.rise_out_ns for point in points]),
        (Direction.IN, [point.rise_in_ns for point in points]),
    ):
        if any(value is not None for value in values):
            label = f"{numbers.arrow(flow)} one-way rise"
            axes.plot(at_s, _scaled(values), color=_DIRECTIONS[flow], linestyle="--", linewidth=1.0, label=label)
    if idle_ns is not None:
        axes.axhline(idle_ns / 1e6, linewidth=1.0, label="idle", **_EXPECTED)


def _load_marks(points: Sequence[ResponsivenessPoint]) -> list[ChangeMark]:
    """Return the beginning of each load, with its name."""
    before = [None, *(point.direction for point in points)]
    return [
        ChangeMark((point.elapsed_ns - point.interval_ns) / 1e9, load_name(point.direction))
        for point, earlier in zip(points, before, strict=False)
        if point.direction is not earlier
    ]


def _scaled(values: Sequence[float | None]) -> list[float]:
    """Return bits per second in Mb/s, nanoseconds in ms; an unknown value is not drawn."""
    return [float("nan") if value is None else value / 1e6 for value in values]


@dataclass(frozen=True, slots=True)
class MarkLabel:
    """The label of a change of settings above a plot; rows count upwards from the plot."""

    at_s: float
    text: str
    row: int
    is_right_of_mark: bool


def place_labels(marks: Sequence[ChangeMark], end_s: float) -> list[MarkLabel]:
    """Return the labels of changes, each in the lowest row in which it covers no other one.

    A label without room on the right of its mark stands on the left.
    """
    in_per_s = _PLOT_WIDTH_IN / max(end_s, 0.1)
    taken_in: list[list[tuple[float, float]]] = []
    labels: list[MarkLabel] = []
    for mark in marks:
        at_in, width_in = mark.at_s * in_per_s, (len(mark.label) + 2) * _CHARACTER_IN
        is_right = at_in + width_in <= _PLOT_WIDTH_IN
        span = (at_in, at_in + width_in) if is_right else (at_in - width_in, at_in)
        free = (row for row, spans in enumerate(taken_in) if all(span[1] <= a or b <= span[0] for a, b in spans))
        row = next(free, len(taken_in))
        if row == len(taken_in):
            taken_in.append([])
        taken_in[row].append(span)
        labels.append(MarkLabel(mark.at_s, mark.label, row, is_right))
    return labels


def overlay(runs: Sequence[tuple[str, StoredRun]]) -> str:
    """Return the rates of several runs in one plot, from the same zero, each named by its letter."""

    def draw(axes: Any) -> None:
        for number, (letter, run) in enumerate(runs):
            points = rate_points(run)
            axes.plot(
                [point.at_s for point in points],
                [point.bit_s / 1e6 for point in points],
                color=_SERIES[number % len(_SERIES)],
                linestyle=_DASHES[number // 2 % len(_DASHES)],
                label=letter,
            )
        axes.set_xlabel("s")
        axes.set_ylabel("Mb/s")
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)

    return _svg(" ".join(run.row.run_id for _, run in runs), 3.1, draw)


def sweep_heat_map(
    sweep: Sweep, grid: SweepGrid, results: dict[SweepPoint, SweepResult], equivalent: set[SweepPoint]
) -> str:
    """Return a grid's rates as shades with their numbers; a star marks points equivalent to the fastest."""
    _, row_axis, column_axis, points = grid
    rows, columns = sweep.values(row_axis), sweep.values(column_axis)
    cells = {(point.value(row_axis), point.value(column_axis)): point for point in points}
    rates: list[list[float]] = []
    labels: list[list[str]] = []
    for row in rows:
        row_points = [cells.get((row, column)) for column in columns]
        row_results = [None if point is None else results.get(point) for point in row_points]
        bit_rates = [None if result is None else result.bit_s for result in row_results]
        stars = ["*" if point in equivalent else "" for point in row_points]
        rates.append([float("nan") if bit_s is None else bit_s / 1e6 for bit_s in bit_rates])
        labels.append([numbers.mbit(bit_s) + star for bit_s, star in zip(bit_rates, stars, strict=True)])

    def draw(axes: Any) -> None:
        highest = max((rate for line in rates for rate in line if rate == rate), default=1.0)  # noqa: PLR0124 (not NaN)
        axes.imshow(rates, aspect="auto", cmap="Blues", vmin=0, vmax=highest * 1.15)
        axes.grid(visible=False)
        axes.set_xticks(range(len(columns)), [axis_value_words(column_axis, value) for value in columns])
        axes.set_yticks(range(len(rows)), [axis_value_words(row_axis, value) for value in rows])
        axes.set_xlabel(AXIS_NAMES[column_axis])
        axes.set_ylabel(AXIS_NAMES[row_axis])
        for y, line in enumerate(labels):
            for x, text in enumerate(line):
                colour = "#ffffff" if rates[y][x] > highest * 0.6 else _INK
                axes.text(x, y, text, ha="center", va="center", color=colour)

    return _svg(f"{sweep.group} {grid[0]} heat", max(1.6, 0.32 * len(rows) + 0.8), draw)


def sweep_lines(sweep: Sweep, grid: SweepGrid, results: dict[SweepPoint, SweepResult]) -> str:
    """Return a grid's rates over its row axis, a line for each column, with 95 % intervals as bars."""
    _, row_axis, column_axis, points = grid
    rows = list(sweep.values(row_axis))
    measured = [results[point] for point in points if point in results]

    def draw(axes: Any) -> None:
        for number, column in enumerate(sweep.values(column_axis)):
            line = [
                (rows.index(result.point.value(row_axis)), result.bit_s / 1e6, _half_width_mbit(result))
                for result in measured
                if result.point.value(column_axis) == column and result.bit_s is not None
            ]
            line.sort()
            axes.errorbar(
                [x for x, _, _ in line],
                [mbit_s for _, mbit_s, _ in line],
                yerr=[half_width for _, _, half_width in line],
                color=_SERIES[number % len(_SERIES)],
                linestyle=_DASHES[number // len(_SERIES) % len(_DASHES)],
                marker=_MARKERS[number % len(_MARKERS)],
                markersize=4,
                linewidth=1.4,
                capsize=2.5,
                label=f"{AXIS_NAMES[column_axis]} {axis_value_words(column_axis, column)}",
            )
        expected = {rate.bit_s for result in measured if (rate := expected_rate_of(result)) is not None}
        if len(expected) == 1:
            axes.axhline(expected.pop() / 1e6, linewidth=1.2, label="expected", **_EXPECTED)
        axes.set_xticks(range(len(rows)), [axis_value_words(row_axis, value) for value in rows])
        axes.set_xlabel(AXIS_NAMES[row_axis])
        axes.set_ylabel("Mb/s")
        axes.set_ylim(bottom=0)

    return _svg(f"{sweep.group} {grid[0]} lines", 3.4, draw)


def _rate_line(axes: Any, periods: Sequence[PlotPeriod], direction: Direction, *, is_only: bool) -> None:
    points = [point for period in periods for point in period.points.get(direction, [])]
    at_s, mbit_s = [point.at_s for point in points], [point.bit_s / 1e6 for point in points]
    if points:
        at_s, mbit_s = [0.0, *at_s], [mbit_s[0], *mbit_s]  # the first interval began at 0
    name = "both directions" if direction is Direction.DUPLEX else str(direction)
    colour = _DIRECTIONS[direction]
    axes.plot(at_s, mbit_s, color=colour, linewidth=1.4, label=f"{numbers.arrow(direction)} {name}")
    if is_only:
        axes.fill_between(at_s, mbit_s, color=colour, alpha=0.10, linewidth=0)
    axes.set_ylim(0, max([*mbit_s, axes.get_ylim()[1] / 1.12, 1e-6]) * 1.12)


def _expected_and_warmup(axes: Any, period: PlotPeriod, end_s: float, *, is_first: bool) -> None:
    until_s = period.until_s if period.until_s is not None else end_s
    expected = period.expected_rate()
    if expected is not None:
        mbit_s = expected.bit_s / 1e6
        label = "expected" if is_first else None
        axes.plot([period.from_s, until_s], [mbit_s] * 2, label=label, **_EXPECTED)
        axes.set_ylim(0, max(axes.get_ylim()[1], mbit_s * 1.12))
    warmups_s = [point.at_s for points in period.points.values() for point in points if point.warmup]
    if warmups_s:
        label = "warm-up, not counted" if is_first else None
        axes.axvspan(period.from_s, max(warmups_s), facecolor=_FAINT, alpha=0.55, linewidth=0, label=label)


def _mark_labels(axes: Any, labels: Sequence[MarkLabel]) -> None:
    for label in labels:
        axes.axvline(label.at_s, color=_INK, linewidth=0.9)
        axes.annotate(
            f" {label.text} ",
            (label.at_s, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 2 + label.row * _LABEL_ROW_IN * 72),
            textcoords="offset points",
            va="bottom",
            ha="left" if label.is_right_of_mark else "right",
        )


def _time_axis(axes: Any, run: StoredRun) -> None:
    axes.set_xlabel("s")
    axes.set_xlim(0, max(run.readings.elapsed_ns / 1e9, 0.1))


def _half_width_mbit(result: SweepResult) -> float:
    """Return half of a result's interval, but no more than its rate."""
    estimate = None if result.summary.measured.total is None else result.summary.measured.total.estimate
    return 0.0 if estimate is None else min(estimate.half_width(), estimate.mean) / 1e6


def _svg(name: str, height_in: float, draw: Callable[[Any], None], *, time_axis_rows: int | None = None) -> str:
    """Return a figure as an SVG element without date or external references.

    Args:
        name: a name that is unique in the page; the ids inside are hashes of it, so that they stay the same.
        height_in: the height in inches, at a width of 9.6.
        draw: the function that draws on the figure's axes.
        time_axis_rows: for a plot over time, which has fixed margins: the rows of labels above it.
    """
    with cast("Any", mpl).rc_context({**_STYLE, "svg.hashsalt": name}):
        is_fixed = time_axis_rows is not None
        height_in += (time_axis_rows or 0) * _LABEL_ROW_IN
        figure = cast("Any", Figure(figsize=(_WIDTH_IN, height_in), layout=None if is_fixed else "constrained"))
        if time_axis_rows is None:
            axes = figure.add_subplot()
        else:
            axes = figure.add_axes(_time_plot_box(height_in, time_axis_rows))
        draw(axes)
        if axes.get_legend_handles_labels()[0]:
            figure.legend(loc="upper right" if is_fixed else "outside upper right", ncols=7)
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    svg = text.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    svg = _GROUP_IDS.sub("", svg)  # these ids are the same in every figure, and nothing refers to them
    # Sizes in points would keep the figure from shrinking with the page.
    return re.sub(r' (?:width|height)="[\d.]+pt"', "", svg, count=2)


def _time_plot_box(height_in: float, rows: int) -> tuple[float, float, float, float]:
    """Return the place of a plot over time in its figure: left, bottom, width and height as fractions."""
    plot_in = height_in - _BOTTOM_IN - _TOP_IN - rows * _LABEL_ROW_IN
    return _LEFT_IN / _WIDTH_IN, _BOTTOM_IN / height_in, _PLOT_WIDTH_IN / _WIDTH_IN, plot_in / height_in
