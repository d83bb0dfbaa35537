"""The table of connections: a row for each, in columns that give way if the table is narrow.

Only rows in view are made. One more figure of a connection is one more column here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from typing import Final

from rich.cells import cell_len
from textual.content import Content
from textual.events import Click
from textual.message import Message
from textual.strip import Strip

from ...observe.observation import ConnectionKey, ObservedConnection, Status
from ..kit.drawing.styled_lines import cut_words, table_cell
from ..kit.drawing.styles import DIRECTION_STYLES, GOOD, MUTED, SHORT
from ..kit.widgets.scroll_views import CursorList
from ..words import numbers
from .connection_words import STATUS_MARKS, local_text, long_reason, peer_text, process_text, short_reason
from .observe_lines import SAVING
from .observed_rows import Order

_GAP: Final = 2
_LEAST_WHY: Final = 19
_SENTENCE: Final = 60  # from this width on, the reason is a sentence
_STYLES: Final = {Status.LIMITED: SHORT, Status.HEALTHY: GOOD, Status.UNKNOWN: "$text-primary"}


@dataclass(frozen=True, slots=True)
class _Column:
    """A column of the table.

    Args:
        title: its head, and the name of its order.
        width: its width with the gap.
        text: its text and style for a connection.
        gives_way: its turn to give way if the table is narrow; 0 for never.
        is_right: whether its text is at the right.
        most: the width that it may grow to for its texts; 0 for a fixed one.
    """

    title: str
    width: int
    text: Callable[[ObservedConnection], tuple[str, str]]
    gives_way: int = 0
    is_right: bool = False
    most: int = 0


def _rate(row: ObservedConnection) -> tuple[str, str]:
    return (numbers.UNKNOWN, "") if row.status is Status.ENDED else (numbers.mbit(row.bit_s), "bold")


def _retransmits(row: ObservedConnection) -> tuple[str, str]:
    return numbers.count(row.out.retransmits), SHORT if row.out.retransmits else ""


def _share(row: ObservedConnection) -> tuple[str, str]:
    if row.expected is None or not row.expected.bit_s:
        return numbers.UNKNOWN, ""
    return numbers.number(100 * row.bit_s / row.expected.bit_s, 0), ""


def _trip(name: str) -> Callable[[ObservedConnection], tuple[str, str]]:
    return lambda row: (numbers.round_trip(None if row.out.sample is None else getattr(row.out.sample, name)), "")


def _size(name: str) -> Callable[[ObservedConnection], tuple[str, str]]:
    return lambda row: (numbers.size(None if row.out.sample is None else getattr(row.out.sample, name)), "")


_STATUS: Final = _Column("", 2, lambda row: (STATUS_MARKS[row.status], f"bold {_STYLES.get(row.status, MUTED)}"))
_WHY: Final = _Column("why", _LEAST_WHY, lambda row: (short_reason(row), _STYLES.get(row.status, "")))
_COLUMNS: Final = (
    _STATUS,
    _Column("Mb/s", 9, _rate, is_right=True),
    _Column("", 2, lambda row: (numbers.arrow(row.direction), DIRECTION_STYLES[row.direction])),
    _Column("process", 15, lambda row: (process_text(row), "" if row.owner else MUTED), gives_way=11, most=24),
    _Column("user", 10, lambda row: (row.user, MUTED), gives_way=4),
    _Column("local", 20, lambda row: (local_text(row), MUTED), gives_way=1, most=28),
    _Column("peer", 18, lambda row: (peer_text(row), ""), gives_way=10, most=30),
    _Column("% exp", 7, _share, gives_way=2, is_right=True),
    _Column("RTT", 9, _trip("rtt_us"), gives_way=9, is_right=True),
    _Column("min RTT", 9, _trip("min_rtt_us"), gives_way=5, is_right=True),
    _Column("cwnd", 7, _size("cwnd_bytes"), gives_way=7, is_right=True),
    _Column("in flight", 11, _size("unacked_bytes"), gives_way=6, is_right=True),
    _Column("retx", 7, _retransmits, gives_way=8, is_right=True),
    _WHY,
)


class ConnectionTable(CursorList):
    """Shows connections; the cursor stays at its connection when their order changes."""

    DEFAULT_CSS = """
    ConnectionTable { height: 1fr; background: $background; padding: 0 1; }
    """

    @dataclass
    class HeaderClicked(Message):
        """The title of a column was clicked."""

        title: str

    def __init__(self) -> None:
        super().__init__(header_rows=1)
        self._rows: Sequence[ObservedConnection] = ()
        self._saved: frozenset[ConnectionKey] = frozenset()
        self._order = Order()
        self._empty = ""
        self._is_moved = False

    def show_rows(
        self,
        rows: Sequence[ObservedConnection],
        order: Order,
        empty: str,
        saved: frozenset[ConnectionKey] = frozenset(),
    ) -> None:
        """Show connections in this order, with a mark at those that are being saved; without any, a sentence."""
        key, at = self.key_at_cursor if self._is_moved else None, self.highlighted
        self._rows, self._order, self._empty, self._saved = rows, order, empty, saved
        places = (number for number, row in enumerate(rows) if row.key == key)
        self.set_rows(len(rows), next(places, at))

    def move_to(self, at: int | None) -> None:
        """Move the cursor. From then on it stays at its connection; before, it is at the first row."""
        self._is_moved = True
        super().move_to(at)

    @property
    def key_at_cursor(self) -> ConnectionKey | None:
        """The connection at the cursor; None without rows."""
        at = self.highlighted
        return self._rows[at].key if at is not None and at < len(self._rows) else None

    def draw_header(self, width: int) -> Content:
        """Return the titles of the columns, with an arrow at the one they are sorted by; nothing without rows."""
        if not self._rows:
            return Content("")
        arrow = "▼" if self._order.is_descending else "▲"
        cells = (
            _fit(f"{each.title}{arrow}" if each.title == self._order.column else each.title, each, room)
            for each, room in self._columns(width)
        )
        return Content.styled("".join(cells), f"bold {MUTED}")

    def draw(self, number: int, width: int) -> Content:
        """Return the row of a connection."""
        row = self._rows[number]
        has_ended = row.status is Status.ENDED
        parts: list[tuple[str, str]] = []
        for column, room in self._columns(width):
            text, style = column.text(row)
            if column is _WHY:
                text = cut_words(long_reason(row) if room >= _SENTENCE else text, room)
            parts.append((_fit(text, column, room), MUTED if has_ended else style))
            if column is _STATUS and row.key in self._saved:
                parts[-1:] = [(text, parts[-1][1]), SAVING]
        return Content.assemble(*parts)

    def render_line(self, y: int) -> Strip:
        """Return the header or a row in view; without rows, a sentence in their place."""
        if self.row_count or y != 1 or not self._empty:
            return super().render_line(y)
        width = self.scrollable_content_region.width
        return self.to_strip(Content.styled(f"  {cut_words(self._empty, width - 2)}", MUTED), width)

    def on_click(self, event: Click) -> None:
        """Post the column of a clicked title; CursorList handles the rows."""
        offset = event.get_content_offset(self)
        if offset is None or offset.y:
            return
        columns = self._columns(self.scrollable_content_region.width)
        for (column, _), end in zip(columns, accumulate(room for _, room in columns), strict=True):
            if offset.x < end:
                self.post_message(self.HeaderClicked(column.title))
                break

    def _columns(self, width: int) -> tuple[tuple[_Column, int], ...]:
        """Return the columns that have room. They fit the rows in view, in steps, so that they rarely move."""
        first = round(self.scroll_y)
        rows = self._rows[first : first + self.visible_rows]
        wanted = tuple(_wanted(column, rows) for column in _COLUMNS)
        return _columns(width, wanted)


def _wanted(column: _Column, rows: Sequence[ObservedConnection]) -> int:
    """Return the width that a column would have for its texts, a multiple of 4 above its least one."""
    if not column.most:
        return column.width
    longest = max((cell_len(column.text(row)[0]) for row in rows), default=0) + _GAP
    return min(max(column.width, -(-longest // 4) * 4), column.most)


def _fit(text: str, column: _Column, width: int) -> str:
    gap = 0 if column is _WHY else min(_GAP, column.width - 1)
    return table_cell(text, width, gap=gap, is_right=column.is_right)


@lru_cache(maxsize=32)
def _columns(width: int, wanted: tuple[int, ...]) -> tuple[tuple[_Column, int], ...]:
    """Return the columns that have room, with their widths, gaps included. The reason takes the rest."""
    widths = {number: column.width for number, column in enumerate(_COLUMNS)}
    turns = ((column.gives_way, number) for number, column in enumerate(_COLUMNS) if column.gives_way)
    for _, number in sorted(turns):
        if sum(widths.values()) <= width:
            break
        del widths[number]
    rest = max(width - sum(widths.values()), 0)
    for number, least in widths.items():
        more = min(wanted[number] - least, rest)
        widths[number] = least + more
        rest -= more
    columns = {_COLUMNS[number]: room for number, room in widths.items()}
    return tuple((columns | {_WHY: columns[_WHY] + rest}).items())
