"""The table of stored runs: a line for each, in columns that fill the width."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import accumulate
from typing import Final

from rich.cells import cell_len
from textual.content import Content
from textual.events import Click
from textual.message import Message

from ..kit.drawing.styled_lines import table_cell
from ..kit.drawing.styles import MUTED, VERDICT_STYLES
from ..kit.widgets.scroll_views import CursorList
from ..words import numbers
from ..words.run_line import RunLine, short_peers
from .listed_runs import RunLines

MARK: Final = "◆"
_ROOMY: Final = 110
_RIGHT: Final = frozenset({"rate", "%"})
_TITLES: Final = {"rate": "Mb/s", "%": "% exp"}
_GAP: Final = 2
_WIDEST_TEST: Final = 18  # of a run whose settings changed
_NARROW: Final = 60  # a narrower table has fewer columns
_LONGEST_END: Final = len("interrupted")
_NARROWEST: Final = 7  # cells of a column without a fixed width


@dataclass(frozen=True, slots=True)
class RunList:
    """The contents of the table: lines in order, ids of marked runs, and the column they are sorted by."""

    lines: RunLines = field(default_factory=RunLines)
    marked: Collection[str] = ()
    sort: str = "when"
    descending: bool = True


class RunTable(CursorList):
    """Shows a RunList."""

    DEFAULT_CSS = """
    RunTable { height: 1fr; background: $background; padding: 0 1; }
    """

    @dataclass
    class HeaderClicked(Message):
        """The header of a column was clicked."""

        name: str

    @dataclass
    class LineMissing(Message):
        """A line that is in view was not read yet."""

        at: int

    def __init__(self) -> None:
        super().__init__(header_rows=1)
        self._list = RunList()
        self._needs = _needs(())
        self._peers: tuple[str, ...] = ()
        self._has_reported = False

    def show_runs(self, runs: RunList, at: int | None) -> None:
        """Show these lines, with the cursor at a place. The columns fit the lines that are known."""
        self._list = runs
        self._needs = _needs(runs.lines.known)
        self._peers = tuple(dict.fromkeys(line.peer for line in runs.lines.known))
        self._has_reported = False
        self.set_rows(len(runs.lines), at)

    def draw_header(self, width: int) -> Content:
        """Return the titles of the columns, with an arrow at the one they are sorted by."""
        arrow = "▼" if self._list.descending else "▲"
        cells = (
            _cell(_TITLES.get(name, name) + (arrow if name == self._list.sort else ""), name, room, gap)
            for name, room, gap in self._columns(width)
        )
        return Content.styled("".join(cells), f"bold {MUTED}")

    def draw(self, number: int, width: int) -> Content:
        """Return the line of a run."""
        line = self._list.lines[number]
        if line is None:
            if self._list.lines.is_unread(number):
                self._report_missing(number)
            return Content.styled("  …", MUTED)
        is_marked = line.run_id in self._list.marked
        return Content.assemble(
            *(
                (
                    _cell(self._text(line, name, room - gap, is_marked=is_marked), name, room, gap),
                    _style(line, name),
                )
                for name, room, gap in self._columns(width)
            )
        )

    def _columns(self, width: int) -> list[tuple[str, int, int]]:
        """Return each column with its cells, and how many of these are the gap after it: none after the last."""
        widths = _widths(width, self._needs)
        *names, last = widths
        return [*((name, widths[name], _GAP if name else 1) for name in names), (last, widths[last], 0)]

    def _report_missing(self, number: int) -> None:
        """Post that a line in view was not read yet: once until others are shown."""
        if not self._has_reported:
            self._has_reported = True
            self.post_message(self.LineMissing(number))

    def _text(self, line: RunLine, name: str, room: int, *, is_marked: bool) -> str:
        if name == "peer" and line.peer:
            return short_peers(self._peers, room)[line.peer]
        return _text(line, name, room, is_marked=is_marked)

    def on_click(self, event: Click) -> None:
        """Post the column of a clicked header; CursorList handles the rows."""
        offset = event.get_content_offset(self)
        if offset is not None and offset.y == 0:
            widths = _widths(self.scrollable_content_region.width, self._needs)
            for name, end in zip(widths, accumulate(widths.values()), strict=True):
                if offset.x < end:
                    self.post_message(self.HeaderClicked(name))
                    break


def _cell(text: str, name: str, width: int, gap: int) -> str:
    """Return a text in its column's width, including the gap to the next column."""
    return table_cell(text, width, gap=gap, is_right=name in _RIGHT)


def _text(line: RunLine, name: str, room: int, *, is_marked: bool) -> str:
    match name:
        case "":
            return MARK if is_marked else ""
        case "when":
            return line.when if room >= 16 else line.when[5:] or numbers.UNKNOWN
        case "test" if room < cell_len(line.test):
            return line.short_test
        case "%":
            return numbers.number(line.percent, 1)
        case "verdict":
            return _verdict(line, room)
        case _:
            return getattr(line, name) or ("" if name == "label" else numbers.UNKNOWN)


def _style(line: RunLine, name: str) -> str:
    match name:
        case "":
            return "bold $text-primary"
        case "when":
            return MUTED
        case "rate":
            return "bold"
        case "%" | "verdict":
            return VERDICT_STYLES[line.verdict] if line.verdict in {"pass", "short", "fail"} else ""
        case _:
            return ""


def _verdict(line: RunLine, room: int) -> str:
    """Return the verdict in a few words; for a run without one, its grade, its status, or how it ended."""
    if line.verdict != "none" or line.status:
        return line.verdict_words
    if line.grade and line.end_words in {"completed", "stopped"}:
        return f"grade {line.grade}" if len(f"grade {line.grade}") <= room else line.grade
    return "• none" if line.end_words in {"completed", "stopped"} else line.end_words


def _needs(lines: Iterable[RunLine]) -> tuple[tuple[str, int], ...]:
    """Return the length of the longest text of each column without a fixed width."""
    lines = tuple(lines)
    return tuple(
        (name, max([len(name), *(cell_len(getattr(line, name) or "") for line in lines)]))
        for name in ("preset", "peer", "label", "test")
    )


@lru_cache(maxsize=8)
def _widths(width: int, needs: tuple[tuple[str, int], ...]) -> dict[str, int]:
    """Return the width of each column, including its gap; a column without room is left out.

    Args:
        width: The width of the table.
        needs: The longest text of each column that has no fixed width.
    """
    test = max(11, min(dict(needs)["test"] + _GAP, _WIDEST_TEST))
    fixed = {"": 2, "when": 18, "test": test, "rate": 11, "%": 8, "verdict": 14}
    if width < _ROOMY:
        fixed = {"": 2, "when": 13, "test": 7, "rate": 11, "%": 7, "verdict": _LONGEST_END}
    for name in ("test", "%"):
        if width < _NARROW:
            del fixed[name]
    rest = width - sum(fixed.values())
    wanted = {name: length + _GAP for name, length in needs if name not in fixed}
    peer = min(wanted["peer"], max(rest - wanted["preset"], rest * 47 // 100))
    preset = min(wanted["preset"], rest - peer)
    label = rest - peer - preset
    if width < _ROOMY and label - _GAP >= _NARROWEST:  # the verdict is not the last column
        fixed["verdict"], label = fixed["verdict"] + _GAP, label - _GAP
    flexible = {"preset": preset, "peer": peer, "label": label}
    order = ("", "when", "preset", "peer", "test", "rate", "%", "verdict", "label")
    both = fixed | {name: cells for name, cells in flexible.items() if cells >= _NARROWEST}
    return {name: both[name] for name in order if name in both}
