"""The plots of a report, drawn by matplotlib as SVG that stands inside a page.

matplotlib takes a second to load: import this module where a report is made, and nowhere else.
"""

import io
import re
from collections.abc import Sequence
from typing import Any, Final, cast

import matplotlib as mpl
from matplotlib.figure import Figure

from ...engine.model.plan import Direction, End
from ..services.run_comparison import rate_points
from ..services.stored_run import StoredRun
from ..state.instrument_values import PlotPeriod
from ..text import numbers
from .traces import Traces

_WIDTH_IN: Final = 9.6
_FLOWS: Final = {Direction.OUT: "#1f6feb", Direction.IN: "#1a7f37", Direction.DUPLEX: "#24292f"}
_ENDS: Final = {End.NEAR: "#1f6feb", End.FAR: "#8250df"}
_RUNS: Final = ("#1f6feb", "#bc4c00", "#1a7f37", "#8250df", "#cf222e", "#9a6700", "#0a7ea4", "#57606a")
_DASHES: Final = ("-", "--", "-.", ":")
_EXPECTED: Final = "#bc4c00"
_GROUP_IDS: Final = re.compile(r' id="[a-zA-Z0-9.]+_\d+"')
_STYLE: Final[dict[str, Any]] = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#8c959f",
    "axes.labelcolor": "#57606a",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#d8dee4",
    "grid.linewidth": 0.6,
    "xtick.color": "#57606a",
    "ytick.color": "#57606a",
    "text.color": "#24292f",
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "text.parse_math": False,
}


def throughput(run: StoredRun) -> str:
    """Return the rate of each direction over time, what is expected of it, and each change of settings."""

    def draw(axes: Any) -> None:
        legs = run.readings.periods
        end_s = run.readings.elapsed_ns / 1e9
        flows = {flow for leg in legs for flow in leg.points}
        for flow in Direction:
            if flow in flows:
                _flow(axes, legs, flow, only=len(flows) == 1)
        for number, leg in enumerate(legs):
            _leg(axes, leg, end_s, first=number == 0)
        for mark in run.readings.change_marks:
            axes.axvline(mark.at_s, color="#24292f", linewidth=0.9)
            axes.annotate(
                f" {mark.label}", (mark.at_s, 1.0), xycoords=("data", "axes fraction"), va="bottom", ha="left"
            )
        axes.set_ylabel("Mb/s")
        axes.set_xlim(0, max(end_s, 0.1))

    return _svg(f"{run.row.run_id} throughput", 3.1, draw)


def cpu(run: StoredRun, traces: Traces) -> str:
    """Return CPU of both ends over time: the busiest core, and the mean of all."""

    def draw(axes: Any) -> None:
        for end in End:
            points = traces.cpu[end]
            if points:
                at_s = [p.at_s for p in points]
                axes.plot(at_s, [p.hottest_percent for p in points], color=_ENDS[end], label=f"{end} busiest core")
                mean = [p.host_percent for p in points]
                axes.plot(at_s, mean, color=_ENDS[end], linestyle=":", label=f"{end} mean of all cores")
        axes.set_ylim(0, 105)
        axes.set_ylabel("% busy")
        axes.set_xlim(0, max(run.readings.elapsed_ns / 1e9, 0.1))

    return _svg(f"{run.row.run_id} cpu", 2.1, draw)


def latency(run: StoredRun, traces: Traces) -> str:
    """Return how long transactions took over time, interval by interval."""

    def draw(axes: Any) -> None:
        for flow, points in sorted(traces.latency.items()):
            at_s = [p.at_s for p in points]
            name = f"{flow} " if len(traces.latency) > 1 else ""
            axes.plot(at_s, [p.p99_ms for p in points], color=_FLOWS[flow], linestyle=":", label=f"{name}p99")
            axes.plot(at_s, [p.p50_ms for p in points], color=_FLOWS[flow], label=f"{name}p50")
        axes.set_ylabel("ms")
        axes.set_ylim(bottom=0)
        axes.set_xlim(0, max(run.readings.elapsed_ns / 1e9, 0.1))

    return _svg(f"{run.row.run_id} latency", 2.1, draw)


def overlay(runs: Sequence[tuple[str, StoredRun]]) -> str:
    """Return several runs in one plot, from the same zero, each by its letter."""

    def draw(axes: Any) -> None:
        for number, (letter, run) in enumerate(runs):
            points = rate_points(run)
            axes.plot(
                [p.at_s for p in points],
                [p.bit_s / 1e6 for p in points],
                color=_RUNS[number % len(_RUNS)],
                linestyle=_DASHES[number // 2 % len(_DASHES)],
                label=letter,
            )
        axes.set_ylabel("Mb/s")
        axes.set_ylim(bottom=0)
        axes.set_xlim(left=0)

    return _svg(" ".join(run.row.run_id for _, run in runs), 3.1, draw)


def _flow(axes: Any, legs: Sequence[PlotPeriod], flow: Direction, *, only: bool) -> None:
    at_s = [p.at_s for leg in legs for p in leg.points.get(flow, [])]
    mbit_s = [p.bit_s / 1e6 for leg in legs for p in leg.points.get(flow, [])]
    if at_s:
        at_s, mbit_s = [0.0, *at_s], [mbit_s[0], *mbit_s]  # the first interval began at nothing
    name = "both directions" if flow is Direction.DUPLEX else str(flow)
    axes.plot(at_s, mbit_s, color=_FLOWS[flow], linewidth=1.4, label=f"{numbers.arrow(flow)} {name}")
    if only:
        axes.fill_between(at_s, mbit_s, color=_FLOWS[flow], alpha=0.10, linewidth=0)
    axes.set_ylim(0, max([*mbit_s, axes.get_ylim()[1] / 1.12, 1e-6]) * 1.12)


def _leg(axes: Any, leg: PlotPeriod, end_s: float, *, first: bool) -> None:
    until_s = leg.until_s if leg.until_s is not None else end_s
    expected = leg.expected_rate()
    if expected is not None:
        mbit_s = expected.bit_s / 1e6
        label = "expected" if first else None
        axes.plot([leg.from_s, until_s], [mbit_s] * 2, color=_EXPECTED, linestyle=(0, (5, 3)), label=label)
        axes.set_ylim(0, max(axes.get_ylim()[1], mbit_s * 1.12))
    warm_s = max((p.at_s for points in leg.points.values() for p in points if p.warmup), default=None)
    if warm_s is not None:
        label = "warm-up, not counted" if first else None
        axes.axvspan(leg.from_s, warm_s, facecolor="#d8dee4", alpha=0.55, linewidth=0, label=label)


def _svg(name: str, height_in: float, draw: Any) -> str:
    """Return a figure as SVG: without a header, a date, or anything that has to be fetched."""
    with cast("Any", mpl).rc_context({**_STYLE, "svg.hashsalt": name}):
        figure = cast("Any", Figure(figsize=(_WIDTH_IN, height_in), layout="constrained"))
        axes = figure.add_subplot()
        draw(axes)
        axes.set_xlabel("s")
        if axes.get_legend_handles_labels()[0]:
            figure.legend(loc="outside upper right", ncols=6)
        text = io.StringIO()
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None})
    made = text.getvalue()
    made = made[made.index("<svg") :]
    made = re.sub(r"<metadata>.*?</metadata>", "", made, flags=re.DOTALL)
    made = _GROUP_IDS.sub("", made)  # the same in every plot, and nothing asks for them
    # Widths in points would not shrink with the page.
    return re.sub(r' (?:width|height)="[\d.]+pt"', "", made, count=2)
