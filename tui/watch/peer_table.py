"""The table of watched peers: a row for each, with its last day if there is room for it.

One more figure of a peer is one more column here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from rich.cells import cell_len, set_cell_size
from textual.content import Content

from ...engine.model.plan import SECOND_NS
from ..kit.drawing.styled_lines import table_cell
from ..kit.drawing.styles import BAD, MUTED, SHORT
from ..kit.widgets.scroll_views import CursorList
from ..words import numbers
from ..words.run_line import short_peers
from .last_day import STATE_STYLES, day_line, day_slots
from .watch_view import PeerRow, WatchView
from .watch_words import budget_words, next_words, verdict_words

_GAP: Final = 2
_WIDE: Final = 110
_MOST_DAY: Final = 96
_LEAST_NAME: Final = 8


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the table.

    Args:
        title: its head.
        width: its width in a wide table, with the gap.
        text: its text and style for a peer.
        narrow: its width in a narrow table; 0 for the same.
        gives_way: its turn to give way if the table is narrow; 0 for never.
        is_right: whether its text is at the right.
    """

    title: str
    width: int
    text: Callable[[PeerRow], tuple[str, str]] = lambda _row: ("", "")
    narrow: int = 0
    gives_way: int = 0
    is_right: bool = False


def _percent(row: PeerRow) -> tuple[str, str]:
    percent = None if row.result is None else row.result.percent
    return numbers.number(percent, 1), STATE_STYLES[row.state]


def _rate(row: PeerRow) -> tuple[str, str]:
    if row.is_transactions and row.bit_s is not None:
        return f"{numbers.transaction_number(row.bit_s)}/s", ""
    return numbers.mbit(row.bit_s), ""


def _latency(row: PeerRow) -> tuple[str, str]:
    if row.is_probe_lost:
        return "! lost", BAD
    return numbers.latency(None if row.latency_s is None else row.latency_s * SECOND_NS), ""


def _next(row: PeerRow) -> tuple[str, str]:
    return next_words(row.status, row.now_s), "bold $text-success" if row.is_testing else MUTED


def _data(row: PeerRow) -> tuple[str, str]:
    words = budget_words(row.month_bytes, row.watched.budget_bytes)
    return (f"▲ {words}", SHORT) if row.is_over_budget else (words, MUTED)


_TESTING: Final = _Column("", 2, lambda row: ("●" if row.is_testing else "", "bold $text-success"))
_PEER: Final = _Column("peer", 0)  # takes the room that its names need
_DAY: Final = _Column("last 24 h", 8 + _GAP, gives_way=2)  # takes the rest
_COLUMNS: Final = (
    _TESTING,
    _PEER,
    _Column("last test", 13, lambda row: (verdict_words(row.result), STATE_STYLES[row.state])),
    _Column("% exp", 8, _percent, narrow=7, gives_way=4, is_right=True),
    _Column("Mb/s", 11, _rate, narrow=9, gives_way=6, is_right=True),
    _Column("latency", 10, _latency, gives_way=3, is_right=True),
    _DAY,
    _Column("next test", 15, _next, gives_way=5),
    _Column("this month", 24, _data, gives_way=1),
)


class PeerTable(CursorList):
    """Shows the rows of a WatchView."""

    DEFAULT_CSS = """
    PeerTable { background: $background; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__(header_rows=1)
        self._view = WatchView()

    def show_peers(self, view: WatchView) -> None:
        """Show a watch. The cursor stays at its peer."""
        name = self.name_at_cursor
        self._view = view
        names = [row.name for row in view.rows]
        self.set_rows(len(names), names.index(name) if name in names else self.highlighted)

    @property
    def name_at_cursor(self) -> str | None:
        """The name of the peer at the cursor; None without peers."""
        at, rows = self.highlighted, self._view.rows
        return rows[at].name if at is not None and at < len(rows) else None

    def draw_header(self, width: int) -> Content:
        """Return the titles of the columns."""
        cells = (_fit(column.title, column, room) for column, room in self._columns(width))
        return Content.styled("".join(cells), f"bold {MUTED}")

    def draw(self, number: int, width: int) -> Content:
        """Return the row of a peer."""
        row = self._view.rows[number]
        return Content("").join(self._cell(row, column, room) for column, room in self._columns(width))

    def _cell(self, row: PeerRow, column: _Column, room: int) -> Content:
        if column is _DAY:
            return _day(row, room)
        if column is _PEER:
            names = tuple(each.name for each in self._view.rows)
            return Content.styled(_fit(short_peers(names, room - _GAP)[row.name], column, room), "bold")
        text, style = column.text(row)
        return Content.styled(_fit(text, column, room), style)

    def _columns(self, width: int) -> tuple[tuple[_Column, int], ...]:
        return _columns(width, max((cell_len(row.name) for row in self._view.rows), default=0))


def _day(row: PeerRow, room: int) -> Content:
    if not row.status.day:
        return Content.styled(set_cell_size("no test yet" if room > 12 else "", room), MUTED)
    return day_line(day_slots(row, room - _GAP)) + Content(" " * _GAP)


def _fit(text: str, column: _Column, width: int) -> str:
    return table_cell(text, width, gap=1 if column is _TESTING else _GAP, is_right=column.is_right)


@lru_cache(maxsize=8)
def _columns(width: int, longest: int) -> tuple[tuple[_Column, int], ...]:
    """Return the columns that have room, with their widths, gaps included. The last day takes the rest."""
    widths = {each: each.width if width >= _WIDE else each.narrow or each.width for each in _COLUMNS}
    wanted = max(min(longest, width // 3), _LEAST_NAME) + _GAP
    name = min(wanted, max(width // 5, _LEAST_NAME + _GAP))
    for column in sorted((each for each in _COLUMNS if each.gives_way), key=lambda each: each.gives_way):
        if name + sum(widths.values()) <= width:
            break
        del widths[column]
    name += max(min(wanted - name, width - name - sum(widths.values())), 0)
    rest = width - name - sum(widths.values())
    if _DAY in widths:
        widths[_DAY] = min(widths[_DAY] + rest, _MOST_DAY + _GAP)
    return tuple((widths | {_PEER: name}).items())
