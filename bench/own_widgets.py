"""The cost of the app's own widgets beside Textual's: CPU time and bytes to the terminal for one step of each.

Usage: .venv/bin/python bench/own_widgets.py [WORD OF THE STEP]

Both are in the same app, of 120 columns and 40 lines, which writes changed cells only. The pairs run in turn.
Textual's HelpPanel has the keys of the focused widgets alone: no marks, no words, no keys of other screens.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Any

from linkgauge.engine.model.directions import Direction
from linkgauge.tui.gauges.session_table import SessionsView, SessionTable
from linkgauge.tui.kit.actions import ScreenKind, bindings
from linkgauge.tui.kit.drawing.message_line import MessageApp
from linkgauge.tui.kit.drawing.screen_diff import DiffApp, DiffScreen
from linkgauge.tui.kit.drawing.styled_lines import LineWidget
from linkgauge.tui.kit.key_map import KeyMap
from linkgauge.tui.kit.screens.help import HelpScreen
from linkgauge.tui.kit.widgets.key_footer import KeyFooter
from linkgauge.tui.kit.widgets.scroll_views import CursorList, TextPage
from linkgauge.tui.readings.live_readings import SessionRow
from linkgauge.tui.words import numbers
from textual.app import App, ComposeResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import DataTable, Footer, OptionList, Static

_SIZE = (120, 40)
_ROWS = 300
_SESSIONS = 128
_STEPS = 15
_TURNS = 3
_TEXT = "\n".join(f"{number:>4}  a key and what it does, in a sentence of a help page" for number in range(200))
_COUNTERS = [Content(f"{name:<12}") for name in ("rate", "RTT", "cwnd", "retransmits", "window", "cpu", "jitter")]

Step = Callable[[Any, int], object]


class _Counted:
    """Counts the bytes of the frames of an app."""

    written = 0
    key_map = KeyMap()

    def _display(self, _screen: Any, renderable: Any) -> None:
        if renderable is None:
            return
        diff = self._diff  # pyright: ignore[reportAttributeAccessIssue]
        diff.resize(*_SIZE)
        diff.put_update(renderable)
        self.written += len(diff.render_changes().encode())


class _Rows(CursorList):
    def draw(self, number: int, width: int) -> Content:
        del width
        return Content(f"row {number} of the list")


class _Lines(LineWidget[int]):
    def draw(self, value: int, width: int, height: int) -> list[Content]:
        del width, height
        return [*_COUNTERS, Content(f"interval {value}")]


def _options() -> OptionList:
    return OptionList(*(f"row {number} of the list" for number in range(_ROWS)))


def _table() -> DataTable[str]:
    table = DataTable[str](cursor_type="row")
    table.add_column("row")
    for number in range(_ROWS):
        table.add_row(f"row {number} of the list")
    return table


def _rows() -> CursorList:
    rows = _Rows()
    rows.set_rows(_ROWS, 0)
    return rows


def _page() -> TextPage:
    page = TextPage()
    page.show_text(_TEXT)
    return page


def _session_rows(number: int) -> list[SessionRow]:
    return [
        SessionRow(Direction.OUT, session, 7e6 + (number * 37 + session) % 90 * 1e4, 212 + number, number, 65_536)
        for session in range(1, _SESSIONS + 1)
    ]


def _session_cells(row: SessionRow) -> tuple[str, ...]:
    return (
        f"{numbers.arrow(row.direction)}{row.session:>3}",
        f"{numbers.rate_number(row.bit_s, None):>8}",
        f"{numbers.round_trip(row.rtt_us):>9}",
        f"{numbers.count(row.retransmits):>6}",
        f"{numbers.size(row.cwnd_bytes):>6}",
    )


def _session_data() -> DataTable[str]:
    table = DataTable[str](cursor_type="none")
    for name in ("#", "Mb/s", "RTT", "retx", "cwnd"):
        table.add_column(name, key=name)
    for row in _session_rows(0):
        table.add_row(*_session_cells(row), key=str(row.session))
    return table


@dataclass(frozen=True)
class Candidate:
    """A widget in an app of its own, and the step whose cost is measured."""

    step_name: str
    name: str
    make: Callable[[], list[Widget]]
    step: Step
    app: type[App[None]] = DiffApp


def _focus(app: Any, _number: int) -> None:
    app.screen.focus_next()


def _notify(app: Any, number: int) -> None:
    app.notify(f"message {number} to the user")


def _of(kind: type[Widget], action: str) -> Step:
    return lambda app, _number: getattr(app.screen.query_one(kind), action)()


def candidates() -> Iterator[Candidate]:
    """Yield the widgets, those of one step one after the other."""
    focus, cursor, scroll, change, sessions = (
        "move the focus",
        "move the cursor",
        "scroll by 30 lines",
        "change one line of 8",
        f"update {_SESSIONS} sessions",
    )
    yield Candidate(focus, "KeyFooter", lambda: [TextPage(), TextPage(), KeyFooter(ScreenKind.COCKPIT)], _focus)
    yield Candidate(focus, "textual Footer", lambda: [TextPage(), TextPage(), Footer()], _focus)
    yield Candidate(cursor, "CursorList", lambda: [_rows()], _of(CursorList, "action_cursor_down"))
    yield Candidate(cursor, "textual OptionList", lambda: [_options()], _of(OptionList, "action_cursor_down"))
    yield Candidate(cursor, "textual DataTable", lambda: [_table()], _of(DataTable, "action_cursor_down"))
    yield Candidate(scroll, "TextPage", lambda: [_page()], _scroll(TextPage))
    yield Candidate(scroll, "textual Static", lambda: [VerticalScroll(Static(_TEXT))], _scroll(VerticalScroll))
    another = "show another text"
    yield Candidate(another, "TextPage", lambda: [_page()], _show_page)
    yield Candidate(another, "textual Static", lambda: [VerticalScroll(Static(_TEXT))], _update_page)
    yield Candidate(change, "LineWidget", lambda: [_Lines(0)], _show_lines)
    yield Candidate(change, "textual Static", lambda: [Static()], _update_static)
    yield Candidate(sessions, "SessionTable", lambda: [SessionTable()], _show_sessions)
    yield Candidate(sessions, "textual DataTable", lambda: [_session_data()], _update_sessions)
    yield Candidate("open or close the help", "HelpScreen", lambda: [_rows()], _toggle_help)
    yield Candidate("open or close the help", "textual HelpPanel", lambda: [_rows()], _toggle_panel)
    yield Candidate("show a message", "MessageLine", lambda: [_rows()], _notify, MessageApp)
    yield Candidate("show a message", "textual Toast", lambda: [_rows()], _notify)


def _show_sessions(app: Any, number: int) -> None:
    app.screen.query_one(SessionTable).show(SessionsView(tuple(_session_rows(number)), number))


def _update_sessions(app: Any, number: int) -> None:
    table = app.screen.query_one(DataTable)
    for row in _session_rows(number):
        for name, cell in zip(("#", "Mb/s", "RTT", "retx", "cwnd"), _session_cells(row), strict=True):
            table.update_cell(str(row.session), name, cell)


def _toggle_help(app: Any, number: int) -> None:
    if number % 2 == 0:
        app.push_screen(HelpScreen())
    else:
        app.pop_screen()


def _toggle_panel(app: Any, number: int) -> None:
    if number % 2 == 0:
        app.action_show_help_panel()
    else:
        app.action_hide_help_panel()


def _show_page(app: Any, number: int) -> None:
    app.screen.query_one(TextPage).show_text(f"{number} {_TEXT}")


def _update_page(app: Any, number: int) -> None:
    app.screen.query_one(Static).update(f"{number} {_TEXT}")


def _show_lines(app: Any, number: int) -> None:
    app.screen.query_one(_Lines).show(number)


def _scroll(kind: type[Widget]) -> Step:
    def step(app: Any, number: int) -> None:
        view = app.screen.query_one(kind)
        view.scroll_to(y=(number % 5) * 30, animate=False)

    return step


def _update_static(app: Any, number: int) -> None:
    app.screen.query_one(Static).update(Content("\n").join([*_COUNTERS, Content(f"interval {number}")]))


async def measure(candidate: Candidate) -> tuple[float, float]:
    """Return the milliseconds of CPU time and the bytes of a step."""

    class Main(DiffScreen):
        BINDINGS = bindings(ScreenKind.COCKPIT)

        def compose(self) -> ComposeResult:
            yield from candidate.make()

    class Measured(_Counted, candidate.app):
        def get_default_screen(self) -> Screen[None]:
            return Main()

    app = Measured()
    async with app.run_test(size=_SIZE, notifications=True) as pilot:
        await pilot.pause()
        for number in range(3):
            candidate.step(app, number)
            await pilot.pause()
        before, began = app.written, time.process_time()
        for number in range(_STEPS):
            candidate.step(app, 3 + number)
            await pilot.pause()
        return (time.process_time() - began) * 1e3 / _STEPS, (app.written - before) / _STEPS


def main() -> None:
    """Measure all widgets in turn, and print a table."""
    word = " ".join(sys.argv[1:])
    results: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for _ in range(_TURNS):
        for each in candidates():
            if word not in each.step_name:
                continue
            results.setdefault((each.step_name, each.name), []).append(asyncio.run(measure(each)))
    for (step, name), measured in results.items():
        cpu, written = (median(column) for column in zip(*measured, strict=True))
        print(f"{step:<24}{name:<20}{cpu:6.1f} ms CPU  {written:7.0f} bytes")


if __name__ == "__main__":
    main()
