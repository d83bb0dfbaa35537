"""The table of up to 128 sessions in each direction; only its visible, changed rows are repainted."""

from functools import lru_cache
from itertools import accumulate, islice
from typing import ClassVar, Final

from rich.segment import Segment
from rich.style import Style
from textual.content import Content
from textual.events import Resize
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ..readings.instrument_values import SessionRow
from ..words import datagram_results, numbers

# The columns after the rate, with their widths; those without room are left out from the right.
_COLUMNS: Final = (("RTT", 9), ("retx", 6), ("cwnd", 6))
_DATAGRAM_COLUMNS: Final = (("loss", 8), ("jitter", 9), ("packets/s", 9))
_RATE_CELLS: Final = 13
_BAR_GAP: Final = " " * 4
_NARROWEST_BAR: Final = 8


class SessionTable(ScrollView, can_focus=True):
    """Shows a row for each session: the receiver's rate, and the sender's RTT, retransmits and cwnd.

    One of UDP has loss, jitter and packets a second instead.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "session-table--head",
        "session-table--out",
        "session-table--in",
        "session-table--muted",
    }
    DEFAULT_CSS = """
    SessionTable {
        padding: 0 1;
        overflow-x: hidden;
        scrollbar-size-vertical: 1;
        & .session-table--head { color: $foreground 62%; text-style: bold; }
        & .session-table--out { color: $primary; }
        & .session-table--in { color: $success; }
        & .session-table--muted { color: $foreground 62%; }
    }
    """

    def __init__(self) -> None:
        super().__init__(id="sessions")
        self._rows: tuple[SessionRow, ...] = ()
        self._subtitle_text = ""
        self._response_bits: int | None = None
        self._is_datagram = False
        self._base: Style | None = None
        self._highest_bit_s = 0.0
        self._last_frame: tuple[object, list[tuple[SessionRow, int]]] = (None, [])
        self.border_title = "sessions"

    def show(
        self,
        rows: tuple[SessionRow, ...],
        retransmits: int | None,
        response_bits: int | None = None,
        *,
        is_datagram: bool = False,
    ) -> None:
        """Show these values. With `response_bits`, rates are transactions a second; `is_datagram` is UDP."""
        subtitle = "" if retransmits is None else numbers.quantity(retransmits, "retransmit")
        values = (rows, subtitle, response_bits, is_datagram)
        if values == (self._rows, self._subtitle_text, self._response_bits, self._is_datagram):
            return
        self._response_bits, self._is_datagram = response_bits, is_datagram
        if len(rows) != len(self._rows) or subtitle != self._subtitle_text:
            self.border_title = Content(f"sessions {len(rows)}" if rows else "sessions")
            self.border_subtitle = Content(subtitle)
        self._rows, self._subtitle_text = rows, subtitle
        self._highest_bit_s = max((row.bit_s or 0.0 for row in rows), default=0.0)
        self._fit()
        self._refresh_changed()

    def _refresh_changed(self) -> None:
        """Repaint the visible rows that have changed: of many sessions, few do so in one frame."""
        layout = (self._response_bits, self._is_datagram, len(self._rows), self.size)
        rows = [(row, self._bar_cells(row)) for row in self._rows]
        (last_layout, last_rows), self._last_frame = self._last_frame, (layout, rows)
        if last_layout != layout:
            self.refresh()
            return
        first, (width, height) = 1 - round(self.scroll_y), self.size
        lines = [
            Region(0, y, width, 1)
            for y, (row, last) in enumerate(zip(rows, last_rows, strict=True), first)
            if row != last and 1 <= y < height
        ]
        if lines:
            self.refresh(*lines)

    def _bar_cells(self, row: SessionRow) -> int:
        """Return the length of a row's bar: that of the fastest session fills the table."""
        width = self.scrollable_content_region.width
        room = (
            width
            - _RATE_CELLS
            - sum(cells + 1 for _, cells in _columns(width, is_datagram=self._is_datagram))
            - len(_BAR_GAP)
        )
        if room < _NARROWEST_BAR or self._highest_bit_s <= 0:
            return 0
        return round((row.bit_s or 0.0) / self._highest_bit_s * room)

    def on_resize(self, _event: Resize) -> None:
        """Adapt the scroll range to the new size."""
        self._fit()

    def _fit(self) -> None:
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._rows) + 1)

    def render_line(self, y: int) -> Strip:
        """Return the header for the first line, and the rows in view for those below it."""
        width = self.scrollable_content_region.width
        base = self.rich_style if y == 0 or self._base is None else self._base
        if y == 0:
            self._base = base  # once a frame: it takes as long as drawing a line
            head = base + self.get_component_rich_style("session-table--head", partial=True)
            unit = "Mb/s" if self._response_bits is None else "trans/s"
            titles = f"{'#':>4} {unit:>8}" + "".join(
                f" {name:>{cells}}" for name, cells in _columns(width, is_datagram=self._is_datagram)
            )
            return Strip([Segment(titles, head)]).adjust_cell_length(width, base)
        number = y - 1 + round(self.scroll_y)
        if number >= len(self._rows):
            return Strip.blank(width, base)
        row = self._rows[number]
        return Strip(self._segments(row, base)).adjust_cell_length(width, base)

    def _segments(self, row: SessionRow, base: Style) -> list[Segment]:
        muted = base + self.get_component_rich_style("session-table--muted", partial=True)
        segments = [
            Segment(f"{numbers.arrow(row.direction)}{row.session:>3} ", muted),
            Segment(f"{numbers.rate_number(row.bit_s, self._response_bits):>8}", base + Style(bold=True)),
        ]
        texts = _datagram_texts(row) if self._is_datagram else _tcp_texts(row)
        columns = _columns(self.scrollable_content_region.width, is_datagram=self._is_datagram)
        segments += [Segment(f" {text:>{cells}}", base) for text, (_, cells) in zip(texts, columns, strict=False)]
        if length := self._bar_cells(row):
            style = base + self.get_component_rich_style(f"session-table--{row.direction}", partial=True)
            segments.append(Segment(_BAR_GAP + "▬" * length, style))
        return segments


def _tcp_texts(row: SessionRow) -> tuple[str, ...]:
    return numbers.round_trip(row.rtt_us), numbers.count(row.retransmits), numbers.size(row.cwnd_bytes)


def _datagram_texts(row: SessionRow) -> tuple[str, ...]:
    return (
        datagram_results.loss_percent(row.lost_percent),
        numbers.latency(row.jitter_ns),
        numbers.number(row.packets_s),
    )


@lru_cache(maxsize=8)
def _columns(width: int, *, is_datagram: bool) -> tuple[tuple[str, int], ...]:
    """Return the columns after the rate for which a width has room."""
    columns = _DATAGRAM_COLUMNS if is_datagram else _COLUMNS
    ends = accumulate((cells + 1 for _, cells in columns), initial=_RATE_CELLS)
    return tuple(column for column, end in zip(columns, islice(ends, 1, None), strict=True) if end <= width)
