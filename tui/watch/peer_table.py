"""The table of watched peers: a row for each, with its last day as far as there is room for it."""

from functools import lru_cache
from typing import Final

from rich.cells import cell_len, set_cell_size
from textual.content import Content

from ...engine.model.plan import SECOND_NS
from ..kit.drawing.styled_lines import table_cell
from ..kit.drawing.styles import BAD, MUTED, SHORT
from ..kit.widgets.scroll_views import CursorList
from ..words import numbers
from ..words.run_list import short_peers
from .day_line import STATE_STYLES, day_line
from .watch_figures import verdict_words
from .watch_values import PeerRow, WatchView, day_slots

_GAP: Final = 2
_TITLES: Final = {
    "": "",
    "name": "peer",
    "test": "last test",
    "%": "% exp",
    "rate": "Mb/s",
    "latency": "latency",
    "day": "last 24 h",
    "next": "next test",
    "data": "this month",
}
_WIDTHS: Final = {"": 2, "test": 13, "%": 8, "rate": 11, "latency": 10, "next": 15, "data": 24}
_NARROW_WIDTHS: Final = _WIDTHS | {"%": 7, "rate": 9}
_RIGHT: Final = frozenset({"%", "rate", "latency"})
_LEAST_DAY: Final = 8
_MOST_DAY: Final = 96
_LEAST_NAME: Final = 8
# What gives way first where the table is narrow.
_GIVING_WAY: Final = ("data", "day", "latency", "%", "next", "rate")


class PeerTable(CursorList):
    """Shows the rows of a WatchView."""

    DEFAULT_CSS = """
    PeerTable { background: $background; padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__(header_rows=1)
        self._view = WatchView()

    def show(self, view: WatchView) -> None:
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
        cells = (_cell(_TITLES[name], name, room) for name, room in self._columns(width).items())
        return Content.styled("".join(cells), f"bold {MUTED}")

    def draw(self, number: int, width: int) -> Content:
        """Return the row of a peer."""
        row = self._view.rows[number]
        parts: list[Content] = []
        for name, room in self._columns(width).items():
            if name == "day":
                parts.append(self._day(row, room))
            else:
                text, style = self._text(row, name, room)
                parts.append(Content.styled(_cell(text, name, room), style))
        return Content("").join(parts)

    def _day(self, row: PeerRow, room: int) -> Content:
        if not row.status.day:
            return Content.styled(set_cell_size("no test yet" if room > 12 else "", room), MUTED)
        slots = day_slots(row, self._view.now_s, room - _GAP)
        return day_line(slots) + Content(" " * _GAP)

    def _text(self, row: PeerRow, name: str, room: int) -> tuple[str, str]:
        """Return the text of a column with its style."""
        match name:
            case "":
                text, style = ("●" if row.is_testing else ""), "bold $text-success"
            case "name":
                names = tuple(each.name for each in self._view.rows)
                text, style = short_peers(names, room - _GAP)[row.name], "bold"
            case "test":
                text, style = verdict_words(row.result), STATE_STYLES[row.state]
            case "%":
                percent = None if row.result is None else row.result.percent
                text, style = numbers.number(percent, 1), STATE_STYLES[row.state]
            case "rate":
                text, style = _rate(row), ""
            case "latency":
                latency_ns = None if row.latency_s is None else row.latency_s * SECOND_NS
                text = "! lost" if row.is_probe_lost else numbers.latency(latency_ns)
                style = BAD if row.is_probe_lost else ""
            case "data":
                text = f"▲ {row.data_words}" if row.is_over_budget else row.data_words
                style = SHORT if row.is_over_budget else MUTED
            case _:
                text, style = row.next_words, "bold $text-success" if row.is_testing else MUTED
        return text, style

    def _columns(self, width: int) -> dict[str, int]:
        return _columns(width, max((cell_len(row.name) for row in self._view.rows), default=0))


def _rate(row: PeerRow) -> str:
    if row.is_transactions and row.bit_s is not None:
        return f"{numbers.transaction_number(row.bit_s)}/s"
    return numbers.mbit(row.bit_s)


def _cell(text: str, name: str, width: int) -> str:
    return table_cell(text, width, gap=_GAP if name else 1, is_right=name in _RIGHT)


@lru_cache(maxsize=8)
def _columns(width: int, longest: int) -> dict[str, int]:
    """Return the width of each column, including its gap. Columns without room are left out, the last day grows."""
    widths = dict(_WIDTHS if width >= 110 else _NARROW_WIDTHS)
    wanted = max(min(longest, width // 3), _LEAST_NAME) + _GAP
    order = ["", "name", "test", "%", "rate", "latency", "day", "next", "data"]
    name = min(wanted, max(width // 5, _LEAST_NAME + _GAP))
    giving_way = iter(_GIVING_WAY)
    while True:
        day = _LEAST_DAY + _GAP if "day" in order else 0
        rest = width - name - day - sum(widths.get(each, 0) for each in order)
        if rest >= 0 or (least := next(giving_way, None)) is None:
            break
        order.remove(least)
    name += max(min(wanted - name, rest), 0)
    rest = width - name - sum(widths.get(each, 0) for each in order)
    sizes = widths | {"name": name, "day": max(min(rest, _MOST_DAY + _GAP), 0)}
    return {each: sizes[each] for each in order}
