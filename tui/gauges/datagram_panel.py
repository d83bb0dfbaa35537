"""The datagrams of a UDP run: how many were lost and where, packets a second, jitter and delays."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from textual.content import Content

from ..kit.drawing.styled_lines import LineWidget
from ..kit.drawing.styles import BAD, GOOD, MUTED, SHORT
from ..readings.flow_reading import DatagramReading
from ..words import datagram_results, numbers
from ..words.numbers import NBSP, UNKNOWN

if TYPE_CHECKING:
    from ...engine.results.summary import CapacitySummary

_LABEL_CELLS: Final = 11
_VALUE_CELLS: Final = 10
_BAD_PERCENT: Final = 1.0
_Row = tuple[str, tuple[Content, ...]]


class DatagramPanel(LineWidget[Sequence[DatagramReading]]):
    """Shows the DatagramReading of each direction: one with details, or two side by side."""

    DEFAULT_CSS = """
    DatagramPanel { padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__(widget_id="datagrams")
        self.set_titles("datagrams", "")

    def draw(self, value: Sequence[DatagramReading], width: int, height: int) -> list[Content]:
        """Return a line for each value, the most important first."""
        size = next((each.now.datagram_bytes for each in value if each.now is not None), None)
        mode = next((each.now.mode for each in value if each.now is not None), None)
        words = "datagrams" if size is None else numbers.datagrams(size)
        self.set_titles(words, "" if mode is None else f"{mode} mode")
        if not value or width <= _LABEL_CELLS + _VALUE_CELLS:
            return []
        rows = _detailed_rows(value[0]) if len(value) == 1 else _paired_rows(value)
        return [_line(label, cells, width) for label, cells in rows][:height]


def _line(label: str, cells: Sequence[Content], width: int) -> Content:
    first, *rest = cells
    head = Content.assemble((f"{label:<{_LABEL_CELLS}}", MUTED), first)
    if not rest:
        return head.truncate(width, ellipsis=True)
    gap = " " * max(_LABEL_CELLS + _VALUE_CELLS + 1 - head.cell_length, 1)
    return Content.assemble(head, gap, Content("  ").join(rest)).truncate(width, ellipsis=True)


def _detailed_rows(reading: DatagramReading) -> list[_Row]:
    """Return the rows of a single direction, with a detail behind each value."""
    so_far, now = reading.so_far, reading.now
    delays = None if so_far is None else so_far.delay_variation
    p50, p99 = (None, None) if delays is None else (delays.p50_ns, delays.p99_ns)
    reordered = None if so_far is None else so_far.reordered_percent
    rows: list[_Row] = [
        ("loss", (_loss(reading), _muted(f"{_count(reading, 'lost')} lost"))),
        ("packets/s", (_bold(numbers.number(reading.packets_s)),)),
        ("jitter", (_bold(numbers.latency(reading.jitter_ns)), _muted(f"max {_jitter_max(reading)}"))),
        ("delay var.", (_muted(f"p50 {numbers.latency(p50)}"), _muted(f"p99 {numbers.latency(p99)}"))),
        ("lost in", (_places(reading),)),
        ("reordered", (_bold(datagram_results.loss_percent(reordered)), _muted(_count(reading, "reordered")))),
        ("duplicates", (_bold(_count(reading, "duplicates")), _muted(f"late {_count(reading, 'late')}"))),
    ]
    if so_far is not None and so_far.skipped:  # without it, a sender that is too slow looks like a slow link
        rows.insert(2, ("not sent", (_bold(numbers.count(so_far.skipped)), _muted("sender too slow"))))
    rtt = None if now is None else now.rtt_us
    capacity = None if so_far is None else so_far.capacity
    return [
        *([] if capacity is None else _capacity_rows(capacity)),
        *rows,
        ("bursts", (_bold(_count(reading, "bursts")), _muted(f"longest {_count(reading, 'longest_burst')}"))),
        ("RTT", (_bold(numbers.round_trip(rtt)),)),
    ]


def _paired_rows(readings: Sequence[DatagramReading]) -> list[_Row]:
    """Return the rows of two directions, side by side."""
    values = (
        ("", [_muted(f"{numbers.arrow(each.direction)} {each.direction}") for each in readings]),
        ("loss", [_loss(each) for each in readings]),
        ("packets/s", [_bold(numbers.number(each.packets_s)) for each in readings]),
        ("jitter", [_bold(numbers.latency(each.jitter_ns)) for each in readings]),
        ("delay p99", [_bold(numbers.latency(_delay_p99(each))) for each in readings]),
        ("lost", [_muted(_count(each, "lost")) for each in readings]),
        ("mostly in", [_muted(_worst_place(each)) for each in readings]),
        ("reordered", [_muted(_count(each, "reordered")) for each in readings]),
        ("duplicates", [_muted(_count(each, "duplicates")) for each in readings]),
    )
    return [(label, tuple(cells)) for label, cells in values]


def _loss(reading: DatagramReading) -> Content:
    """Return the share of lost datagrams. Its mark shows without colour whether there are any."""
    percent = reading.loss_percent
    if percent is None:
        return Content(f"{UNKNOWN}{NBSP}%")
    mark, style = ("✓", GOOD) if not percent else ("✗", BAD) if percent >= _BAD_PERCENT else ("▼", SHORT)
    return Content.styled(f"{mark} {datagram_results.loss_percent(percent)}", f"bold {style}")


def _places(reading: DatagramReading) -> Content:
    so_far = reading.so_far
    text = "" if so_far is None else datagram_results.loss_shares_text(so_far.lost_at)
    return Content(text) if text else Content.styled(UNKNOWN, MUTED)


def _capacity_rows(capacity: "CapacitySummary") -> list[_Row]:
    """Return the results of a search so far: the best second, and the highest rate within the loss limit."""
    state = [] if capacity.is_complete else [_muted("searching")]
    loss_free = "none" if capacity.loss_free_bit_s is None else numbers.rate(capacity.loss_free_bit_s)
    if capacity.loss_free_bit_s is None and not capacity.is_complete:
        loss_free = UNKNOWN
    return [
        ("capacity", (_bold(numbers.rate(capacity.bit_s)), *state)),
        ("loss-free", (_bold(loss_free),)),
    ]


def _worst_place(reading: DatagramReading) -> str:
    """Return where most datagrams were lost: `network`, `local` or `remote`."""
    so_far = reading.so_far
    text = "" if so_far is None else datagram_results.loss_shares_text(so_far.lost_at)
    return text.partition(NBSP)[0] or UNKNOWN


def _count(reading: DatagramReading, name: str) -> str:
    return numbers.count(None if reading.so_far is None else getattr(reading.so_far, name))


def _jitter_max(reading: DatagramReading) -> str:
    return numbers.latency(None if reading.so_far is None else reading.so_far.jitter_max_ns)


def _delay_p99(reading: DatagramReading) -> int | None:
    so_far = reading.so_far
    return None if so_far is None or so_far.delay_variation is None else so_far.delay_variation.p99_ns


def _bold(text: str) -> Content:
    return Content.styled(text, "bold")


def _muted(text: str) -> Content:
    return Content.styled(text, MUTED)
