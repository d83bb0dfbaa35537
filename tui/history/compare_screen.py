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
from ..session.run_exports import ExportRuns
from ..session.stored_run import StoredRun, compare_stored_runs, rate_points, read_stored_run
from ..words import numbers
from ..words.comparison import LETTERS, MARKS, MARKS_LEGEND
from ..words.run_line import RunLine, run_line
from ..words.table import Table

_STYLES: Final = {MARKS[True]: "bold", MARKS[None]: MUTED}


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
        comparisons: Sequence[Table]

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
            differences.border_title = Content("   ".join(("differences", *MARKS_LEGEND)))
            yield Static(markup=False)
        yield self.footer()

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
        def load() -> tuple[list[StoredRun], list[Table]]:
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
        self.query_one("VerticalScroll Static", Static).update(Content("\n").join(_lines(message.comparisons)))

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
        (f"{when}{line.subject} to {line.peer}, {line.test}", MUTED),
    )


def _lines(tables: Sequence[Table]) -> list[Content]:
    """Return the tables below each other, with columns of the same widths."""
    columns = zip(*(row for table in tables for row in table.rows), strict=True)
    widths = [max(map(len, cells)) for cells in columns] or [0] * 5
    lines: list[Content] = []
    for table in tables:
        _, first, second, _ = (column.title for column in table.columns[1:])
        head = f"{table.title:<{widths[1] + 2}}  {first:>{widths[2]}}  {second:>{widths[3]}}"
        lines.append(Content.styled(head, "bold $text-primary"))
        lines += [_line(row, widths) for row in table.rows]
        lines.append(Content(""))
    return lines[:-1]


def _line(row: Sequence[str], widths: Sequence[int]) -> Content:
    mark, name, first, second, difference = row
    return Content.assemble(
        (f"{mark or ' '} ", "bold $text-warning" if mark == MARKS[True] else MUTED),
        (f"{name:<{widths[1]}}  ", MUTED),
        f"{first:>{widths[2]}}  {second:>{widths[3]}}  ",
        (difference, _STYLES.get(mark, "")),
    )
