"""The table of up to 128 sessions in each direction: it draws the rows in view."""

from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, islice
from typing import TYPE_CHECKING, ClassVar, Final

from textual.binding import BindingType
from textual.content import Content
from textual.events import Resize
from textual.geometry import Size
from textual.scroll_view import ScrollView

from ..kit.actions import SCROLL_BINDINGS
from ..kit.drawing.styled_lines import LineWidget
from ..kit.drawing.styles import DIRECTION_STYLES
from ..words import datagram_results, numbers

if TYPE_CHECKING:
    from ..readings.cockpit_snapshot import CockpitSnapshot
    from ..readings.live_readings import SessionRow

# The columns after the rate, with their widths; from the right, columns without room are left out.
_COLUMNS: Final = (("RTT", 9), ("retx", 6), ("cwnd", 6))
_DATAGRAM_COLUMNS: Final = (("loss", 8), ("jitter", 9), ("packets/s", 9))
_RATE_CELLS: Final = 13
_BAR_GAP: Final = " " * 4
_NARROWEST_BAR: Final = 8


@dataclass(frozen=True, slots=True)
class SessionsView:
    """The sessions of a run. With `response_bits`, rates are transactions a second."""

    rows: "tuple[SessionRow, ...]" = ()
    retransmits: int | None = None
    response_bits: int | None = None
    is_datagram: bool = False


class SessionTable(LineWidget[SessionsView], ScrollView, can_focus=True):
    """Shows a row for each session: the receiver's rate, and the sender's RTT, retransmits and cwnd.

    A UDP session has loss, jitter and packets a second instead. New values of 128 sessions take a third of the CPU
    time of Textual's DataTable, which lays out every cell again (bench/own_widgets.py).
    """

    BINDINGS: ClassVar[list[BindingType]] = SCROLL_BINDINGS
    DEFAULT_CSS = """
    SessionTable { padding: 0 1; overflow: hidden auto; scrollbar-size-vertical: 1; }
    """

    def __init__(self) -> None:
        super().__init__(SessionsView(), widget_id="sessions")
        self.set_titles("sessions")

    def show_run(self, view: "CockpitSnapshot") -> None:
        """Show the sessions of a run."""
        readings, is_datagram = view.readings, view.plan.workload.is_datagram
        rows = readings.session_rows() if readings else ()
        retransmits = readings.retransmits() if readings and not is_datagram else None
        self.show(SessionsView(rows, retransmits, view.response_bits, is_datagram=is_datagram))

    def show(self, value: SessionsView) -> None:
        """Show this value."""
        count, retransmits = len(value.rows), value.retransmits
        self.set_titles(
            f"sessions {count}" if count else "sessions",
            "" if retransmits is None else numbers.quantity(retransmits, "retransmit"),
        )
        self.value = value
        self._fit()
        self.redraw()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Draw the rows that have come into view."""
        super().watch_scroll_y(old_value, new_value)
        self.redraw()

    def on_resize(self, _event: Resize) -> None:
        """Adapt the scroll range to the new size; LineWidget fills it."""
        self._fit()

    def _fit(self) -> None:
        self.virtual_size = Size(self.scrollable_content_region.width, len(self.value.rows) + 1)

    def draw(self, value: SessionsView, width: int, height: int) -> list[Content]:
        """Return the header and the rows in view."""
        columns = _columns(width, is_datagram=value.is_datagram)
        unit = "Mb/s" if value.response_bits is None else "trans/s"
        titles = f"{'#':>4} {unit:>8}" + "".join(f" {name:>{cells}}" for name, cells in columns)
        room = width - _RATE_CELLS - sum(cells + 1 for _, cells in columns) - len(_BAR_GAP)
        highest_bit_s = max((row.bit_s or 0.0 for row in value.rows), default=0.0)
        has_bars = room >= _NARROWEST_BAR and highest_bit_s > 0
        first = round(self.scroll_y)
        rows = value.rows[first : first + max(height - 1, 0)]
        return [
            Content.styled(titles, "bold"),
            *(
                _row_line(row, value, columns, round((row.bit_s or 0.0) / highest_bit_s * room) if has_bars else 0)
                for row in rows
            ),
        ]


def _row_line(
    row: "SessionRow", view: SessionsView, columns: tuple[tuple[str, int], ...], bar_cells: int
) -> Content:
    """Return a row; the bar of the fastest session fills the table."""
    texts = _datagram_texts(row) if view.is_datagram else _tcp_texts(row)
    return Content.assemble(
        f"{numbers.arrow(row.direction)}{row.session:>3} ",
        (f"{numbers.rate_number(row.bit_s, view.response_bits):>8}", "bold"),
        "".join(f" {text:>{cells}}" for text, (_, cells) in zip(texts, columns, strict=False)),
        (f"{_BAR_GAP}{'▬' * bar_cells}" if bar_cells else "", DIRECTION_STYLES[row.direction]),
    )


def _tcp_texts(row: "SessionRow") -> tuple[str, ...]:
    return numbers.round_trip(row.rtt_us), numbers.count(row.retransmits), numbers.size(row.cwnd_bytes)


def _datagram_texts(row: "SessionRow") -> tuple[str, ...]:
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
