"""Runs beside each other: their lines in one plot, and below it which of their differences are real."""

from asyncio import to_thread
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Footer, Static

from ....engine.model.errors import LinkgaugeError
from ....engine.results.run_log import RunRecord
from ...actions import ScreenKind, bindings
from ...interfaces import ExportRuns, History
from ...rendering.styles import KEY, MUTED
from ...services.run_comparison import (
    LETTERS,
    SIGNIFICANCE_MARKS,
    ComparisonRow,
    ComparisonTable,
    Significance,
    compare_stored_runs,
    rate_points,
)
from ...services.stored_run import StoredRun, load_stored_run
from ...text import numbers
from ...text.run_list import RunLine, run_line
from ...widgets.history.overlay_plot import OverlayLine, OverlayPlot
from ..dialogs.export import ask_export
from ..dialogs.help import HelpScreen
from ..layout import app_of

_STYLES = {"real": "bold", "alike": "", "plain": MUTED}


class CompareScreen(Screen[None]):
    """Two runs or more, the first of them being what the others are held against."""

    SCREEN_KIND: ClassVar[ScreenKind] = ScreenKind.COMPARE
    BINDINGS: ClassVar[list[BindingType]] = bindings(ScreenKind.COMPARE)
    DEFAULT_CSS = """
    CompareScreen {
        background: $background;
        & #head { height: 1; background: $panel; padding: 0 1; }
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

    def __init__(self, rows: Sequence[RunRecord], history: History, export: ExportRuns) -> None:
        super().__init__()
        self._rows = rows
        self._history = history
        self._export = export

    def compose(self) -> ComposeResult:
        """Lay out the runs, the plot and the differences."""
        yield Static(id="head", markup=False)
        yield Static(id="legend", markup=False)
        yield OverlayPlot()
        with VerticalScroll() as differences:
            marks: dict[Significance, str] = {"real": "real", "alike": "none shown", "plain": "no interval"}
            legend = "   ".join(f"{SIGNIFICANCE_MARKS[kind]} {text}" for kind, text in marks.items())
            differences.border_title = Content(f"differences   {legend}")
            yield Static(markup=False)
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Read the runs."""
        head = Content.assemble(
            ("linkgauge ", KEY), (" compare  ", "bold"), numbers.quantity(len(self._rows), "run")
        )
        self.query_one("#head", Static).update(head)
        self.query_one("#legend", Static).update(Content.styled("reading …", MUTED))
        self.query_one(VerticalScroll).focus()
        self.run_worker(self._read(), exit_on_error=False)

    async def _read(self) -> None:
        def read() -> tuple[list[StoredRun], list[ComparisonTable]]:
            runs = [load_stored_run(self._history, row) for row in self._rows]
            return runs, compare_stored_runs(runs)

        try:
            self.post_message(self.Loaded(*await to_thread(read)))
        except LinkgaugeError as error:
            self.post_message(self.LoadFailed(str(error)))

    @on(Loaded)
    def _was_read(self, message: Loaded) -> None:
        plot = self.query_one(OverlayPlot)
        lines: list[OverlayLine] = []
        for letter, run in zip(LETTERS, message.runs, strict=False):
            points = rate_points(run)
            lines.append(OverlayLine(letter, [p.at_s for p in points], [p.bit_s for p in points]))
        plot.show(lines)
        legend = [
            _legend(letter, run_line(run.row), plot) for letter, run in zip(LETTERS, message.runs, strict=False)
        ]
        self.query_one("#legend", Static).update(Content("\n").join(legend))
        self.query_one("VerticalScroll Static", Static).update(
            Content("\n").join(_differences(message.comparisons))
        )

    @on(LoadFailed)
    def _failed(self, message: LoadFailed) -> None:
        text = Content.assemble(("✗ ", "bold $text-error"), numbers.sanitize(message.text))
        self.query_one("#legend", Static).update(text)

    # What the keys do: one method for each action of the registry.

    def action_export(self) -> None:
        """Export the runs."""
        ask_export(self, [row.run_id for row in self._rows], self._export)

    def action_help(self) -> None:
        """Explain every key."""
        app_of(self).push_screen(HelpScreen())

    def action_back(self) -> None:
        """Go back to the list."""
        app_of(self).pop_screen()


def _legend(letter: str, line: RunLine, plot: OverlayPlot) -> Content:
    red, green, blue = plot.colour(letter)
    unit = "" if line.transactions_s is not None else f"{numbers.NBSP}Mb/s"
    return Content.assemble(
        (f"{letter} ", f"bold rgb({red},{green},{blue})"),
        (f"{line.label or line.run_id}  ", "bold"),
        f"{line.rate}{unit}  {line.verdict_words}  ",
        (f"{line.when}  {line.preset or 'no preset'} to {line.peer}, {line.test}", MUTED),
    )


def _differences(found: Sequence[ComparisonTable]) -> list[Content]:
    """Return a section for each run: what was asked for differently, then what came out."""
    rows = [row for one in found for row in (*one.plan_rows, *one.figure_rows)]
    widths = [max((len(getattr(row, name)) for row in rows), default=0) for name in ("name", "first", "second")]
    lines: list[Content] = []
    for letter, one in zip(LETTERS[1:], found, strict=False):
        head = f"{letter} against A"
        lines.append(
            Content.assemble(
                (f"{head:<{widths[0] + 2}}  {'A':>{widths[1]}}  {letter:>{widths[2]}}", "bold $text-primary")
            )
        )
        lines += [_line(row, widths) for row in (*one.plan_rows, *one.figure_rows)]
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
