"""The comparison of stored runs: one plot of all, and a table of differences with their significance."""

from asyncio import to_thread
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from ...engine.model.errors import LinkgaugeError
from ...engine.model.plan import SECOND_NS
from ...engine.results.run_log import RunLog
from ..gauges.plots.overlay_plot import Overlay, OverlayLine, OverlayPlot
from ..kit.actions import ScreenKind, bindings
from ..kit.drawing.styles import KEY, MUTED, SERIES_STYLES
from ..kit.screens.base_screen import ActionScreen
from ..kit.screens.export import prompt_export
from ..kit.screens.feature_app import app_of
from ..kit.widgets.key_footer import KeyFooter
from ..session.run_exports import ExportRuns
from ..session.stored_run import ComparisonTable, StoredRun, compare_stored_runs, rate_points, read_stored_run
from ..words import numbers
from ..words.comparison import LETTERS, SIGNIFICANCE_MARKS, ComparisonRow, Significance
from ..words.run_list import RunLine, run_line

_LEGEND: Final[dict[Significance, str]] = {
    "real": "significant",
    "alike": "not significant",
    "plain": "not tested",
}
_STYLES = {"real": "bold", "alike": "", "plain": MUTED}


class CompareScreen(ActionScreen):
    """Two runs or more, each compared with the first."""

    SCREEN_KIND: ClassVar[ScreenKind] = ScreenKind.COMPARE
    BINDINGS: ClassVar[list[BindingType]] = bindings(ScreenKind.COMPARE)
    DEFAULT_CSS = """
    CompareScreen {
        & #legend { height: auto; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
        & OverlayPlot { height: 2fr; min-height: 6; }
        & VerticalScroll {
            height: 3fr;
            padding: 0 1;
            border-top: solid $foreground 22%;
            border-title-color: $foreground 80%;
            border-title-style: bold;
            scrollbar-size-vertical: 1;
        }
        & VerticalScroll Static { height: auto; }
        &.-tall OverlayPlot, &.-towering OverlayPlot { height: 3fr; }
    }
    """

    @dataclass
    class Loaded(Message):
        """The runs were read."""

        runs: Sequence[StoredRun]
        comparisons: Sequence[ComparisonTable]

    @dataclass
    class LoadFailed(Message):
        """A run could not be read."""

        text: str

    def __init__(self, run_ids: Sequence[str], log: RunLog, export: ExportRuns) -> None:
        super().__init__()
        self._run_ids = run_ids
        self._log = log
        self._export = export

    def compose(self) -> ComposeResult:
        """Compose the legend, the plot and the differences."""
        yield Static(id="head", markup=False)
        yield Static(id="legend", markup=False)
        yield OverlayPlot()
        with VerticalScroll() as differences:
            marks: dict[Significance, str] = {
                "real": "significant",
                "alike": "not significant",
                "plain": "not tested",
            }
            legend = "   ".join(f"{SIGNIFICANCE_MARKS[kind]} {text}" for kind, text in marks.items())
            differences.border_title = Content(f"differences   {legend}")
            yield Static(markup=False)
        yield KeyFooter(self.SCREEN_KIND)

    def on_mount(self) -> None:
        """Read the runs."""
        title = Content.assemble(
            ("linkgauge ", KEY), (" compare  ", "bold"), numbers.quantity(len(self._run_ids), "run")
        )
        self.query_one("#head", Static).update(title)
        self.query_one("#legend", Static).update(Content.styled("loading …", MUTED))
        self.query_one(VerticalScroll).focus()
        self.run_worker(self._load(), exit_on_error=False)

    async def _load(self) -> None:
        def load() -> tuple[list[StoredRun], list[ComparisonTable]]:
            runs = [read_stored_run(self._log, run_id) for run_id in self._run_ids]
            return runs, compare_stored_runs(runs)

        try:
            self.post_message(self.Loaded(*await to_thread(load)))
        except LinkgaugeError as error:
            self.post_message(self.LoadFailed(str(error)))

    @on(Loaded)
    def _show_runs(self, message: Loaded) -> None:
        has_latency = all(run.outcome.summary.plan.has_phases for run in message.runs)
        draw = _latency_line if has_latency else _rate_line
        lines = [draw(letter, run) for letter, run in zip(LETTERS, message.runs, strict=False)]
        self.query_one(OverlayPlot).show(Overlay(lines, unit="ms" if has_latency else "Mb/s"))
        legend = [_legend(letter, run_line(run.row)) for letter, run in zip(LETTERS, message.runs, strict=False)]
        self.query_one("#legend", Static).update(Content("\n").join(legend))
        self.query_one("VerticalScroll Static", Static).update(
            Content("\n").join(_differences(message.comparisons))
        )

    @on(LoadFailed)
    def _show_failure(self, message: LoadFailed) -> None:
        text = Content.assemble(("✗ ", "bold $text-error"), numbers.sanitize(message.text))
        self.query_one("#legend", Static).update(text)

    # Actions of the registry.

    def action_export(self) -> None:
        """Export the runs."""
        prompt_export(self, self._run_ids, self._export)

    def action_back(self) -> None:
        """Return to the history."""
        app_of(self).pop_screen()


def _rate_line(letter: str, run: StoredRun) -> OverlayLine:
    points = rate_points(run)
    return OverlayLine(letter, [point.at_s for point in points], [point.bit_s for point in points])


def _latency_line(letter: str, run: StoredRun) -> OverlayLine:
    """Return the median latency of each interval: what tests with loads in turn are compared by."""
    points = run.readings.load_points
    known = [(point.elapsed_ns / SECOND_NS, point.p50_ns) for point in points if point.p50_ns is not None]
    return OverlayLine(letter, [at_s for at_s, _ in known], [p50_ns for _, p50_ns in known])


def _legend(letter: str, line: RunLine) -> Content:
    when = f"{line.when}  " if line.label else ""  # a run's id begins with it
    result = f"{line.rate_with_unit}  {line.verdict_words}"
    if line.rate == numbers.UNKNOWN and line.grade:
        result = f"grade {line.grade}"
    return Content.assemble(
        (f"{letter} ", f"bold {SERIES_STYLES[letter]}"),
        (f"{line.label or line.run_id}  ", "bold"),
        f"{result}  ",
        (f"{when}{line.preset or 'no preset'} to {line.peer}, {line.test}", MUTED),
    )


def _differences(tables: Sequence[ComparisonTable]) -> list[Content]:
    """Return a section for each run after the first: differences of the plans, then of the figures."""
    rows = [row for table in tables for row in (*table.plan_rows, *table.figure_rows)]
    widths = [max((len(getattr(row, name)) for row in rows), default=0) for name in ("name", "first", "second")]
    lines: list[Content] = []
    for letter, table in zip(LETTERS[1:], tables, strict=False):
        title = f"{letter} compared with A"
        lines.append(
            Content.assemble(
                (f"{title:<{widths[0] + 2}}  {'A':>{widths[1]}}  {letter:>{widths[2]}}", "bold $text-primary")
            )
        )
        lines += [_line(row, widths) for row in (*table.plan_rows, *table.figure_rows)]
        lines.append(Content(""))
    return lines[:-1]


def _line(row: ComparisonRow, widths: Sequence[int]) -> Content:
    mark = SIGNIFICANCE_MARKS[row.significance] if row.difference else " "
    return Content.assemble(
        (f"{mark} ", "bold $text-warning" if row.significance == "real" else MUTED),
        (f"{row.name:<{widths[0]}}  ", MUTED),
        f"{row.first:>{widths[1]}}  {row.second:>{widths[2]}}  ",
        (row.difference, _STYLES[row.significance]),
    )
