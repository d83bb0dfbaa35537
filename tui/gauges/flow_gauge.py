"""The gauge of one direction: the rate in large digits, its share of the expected rate, and a bar."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from textual.content import Content
from textual.events import Resize
from textual.message import Message

from ...engine.model.counters.latency_histogram import LatencySummary
from ...engine.model.directions import Direction
from ...engine.model.expected_rate import ExpectedRate
from ..kit.drawing.big_digits import DigitFont, align_right, big_digits, largest_font, style_digits
from ..kit.drawing.canvas import EXPECTED_TICK, PEAK_TICK, bar, tick_cell
from ..kit.drawing.styled_lines import LineWidget, cut_words, first_fit, join_fit
from ..kit.drawing.styles import DIRECTION_STYLES, KEY, MUTED, RATING_CHIP_STYLES, RATING_STYLES
from ..readings.flow_reading import DatagramReading, FlowReading, flow_reading
from ..words import datagram_results, numbers

if TYPE_CHECKING:
    from ..readings.cockpit_snapshot import CockpitSnapshot

_RATE_NOTE, _DATAGRAM_NOTE = 13, 14  # cells right of the rate; with datagrams, because their jitter is longer
_PERCENT_NOTE, _GAP = 10, 2  # cells right of the percentage, between both
_ROOM_FOR_TICKS: Final = 60  # from this width on, the title explains the ticks
_LOW_ROWS: Final = 3  # up to this height, large digits leave no rows for text
_SCALE_FROM: Final = 6  # rows
_END_GAP: Final = 12  # cells between a tick and the end of the bar, from which on the end is labelled
_STACKED_ROWS: Final = 11  # from this height on, the rate may stand above its percentage
_NAMES: Final = {Direction.OUT: "out →", Direction.IN: "in ←", Direction.DUPLEX: "total ⇄"}
_SENDERS: Final = {Direction.OUT: "local sends", Direction.IN: "remote sends", Direction.DUPLEX: "both send"}
_ASKERS: Final = {Direction.OUT: "local asks", Direction.IN: "remote asks", Direction.DUPLEX: "both ask"}
_RATING_WORDS: Final = {"pass": "✓ PASS", "short": "▼ SHORT", "fail": "✗ FAIL", "other": "≠ preset?"}
_TOO_FAST: Final = " ≠ faster than preset? "


class FlowGauge(LineWidget[FlowReading]):
    """Shows a FlowReading in the largest digits that fit."""

    DEFAULT_CSS = """
    FlowGauge { padding: 0 1; }
    """

    def __init__(self, direction: Direction) -> None:
        super().__init__(FlowReading(direction), widget_id=f"gauge-{direction}")
        self._reading = FlowReading(direction)  # as drawn
        self.most_width: int | None = None  # of the digits: gauges side by side have them in one size

    @dataclass
    class Resized(Message):
        """The gauge has another width."""

    def show_run(self, view: "CockpitSnapshot") -> None:
        """Show this direction of a run, or nothing if the run does not have it. Duplex has all three."""
        running = (view.readings.settings if view.readings else view.plan.settings).direction
        direction = self._reading.direction
        self.display = direction in {*running.flows, running}
        if self.display:
            self.show(flow_reading(view, direction))

    def on_resize(self, _event: Resize) -> None:
        """Report the new width; LineWidget fills it."""
        self.post_message(self.Resized())

    def draw(self, value: FlowReading, width: int, height: int) -> Sequence[Content]:
        """Return the digits and the bar; from six rows on also its scale."""
        reading = self._reading = value
        is_scaled = height >= _SCALE_FROM
        rows = max(height - 1 - is_scaled, 1)
        room = min(width, self.most_width or width)
        font = _font_of_both(reading, room, rows)
        self.set_titles(
            self._heading(width, is_wide=font is not None or reading.is_idle, is_scaled=is_scaled),
            _source(reading.expected, width),
        )
        if reading.is_idle:
            lines = _idle(width, rows)
        elif stacked := _stacked_font(reading, room, rows):
            lines = self._stacked(stacked, width, rows)
        else:
            lines = self._narrow(room, rows) if font is None else self._wide(font, width, rows)
        return [*lines, self._bar(width), *([_scale(reading, width)] if is_scaled else [])]

    def _heading(self, width: int, *, is_wide: bool, is_scaled: bool) -> Content:
        """Return the title: the direction and its sender, and values that do not fit into the gauge."""
        reading = self._reading
        name = _NAMES[reading.direction]
        initiators = _SENDERS if reading.response_bits is None else _ASKERS
        if not is_wide and not is_scaled:
            parts = [Content(name), Content(reading.scale.unit), self._rated_percent()]
            if reading.source:
                parts = [*filter(None, parts), Content(reading.source)]
            return join_fit(width, parts, " ")
        title = Content(f"{name} {initiators[reading.direction]}")
        if reading.source:
            short = Content(f"{name} {reading.source}")
            return first_fit(width, title + f", {reading.source}", short, Content(name))
        if is_scaled or reading.expected is None or width < _ROOM_FOR_TICKS:
            return first_fit(width, title, Content(name))
        ticks = f"   {EXPECTED_TICK} expected {reading.number(reading.expected.bit_s)}"
        if reading.peak_above_expected is not None:
            ticks += f"   {PEAK_TICK} peak {reading.number(reading.peak_above_expected.bit_s)}"
        ticks += f"{numbers.NBSP}{reading.scale.unit}"
        return Content.assemble(title, (ticks, MUTED))

    def _wide(self, font: DigitFont, width: int, rows: int) -> list[Content]:
        """Return the rate and its percentage side by side, each with its unit and details."""
        reading = self._reading
        rate = big_digits(align_right(_number(reading), _widest(reading)), font)
        rating = reading.rating
        percent, percent_notes = [""] * rows, [Content("")] * rows
        if reading.expected is not None:
            percent = big_digits(align_right(self._percent(), "99.9"), font)
            room = width - len(rate[0]) - _note_cells(reading) - _GAP - len(percent[0]) - 1
            chip = self._chip(rating, room)
            of = Content.styled(f"of {reading.number(reading.expected.bit_s)}", MUTED)
            percent_notes = _spread([Content.styled("%", "bold"), of, chip], font.rows)
        lines = [
            Content.assemble(
                style_digits(left, "$foreground"),
                " ",
                rate_note.truncate(_note_cells(reading), pad=True),
                " " * (_GAP - 1),
                style_digits(right, RATING_STYLES[rating]),
                " ",
                percent_note,
            )
            for left, rate_note, right, percent_note in zip(
                rate, _spread(self._rate_notes(), font.rows), percent, percent_notes, strict=False
            )
        ]
        return [*lines, *[Content("")] * (rows - len(lines))]

    def _stacked(self, font: DigitFont, width: int, rows: int) -> list[Content]:
        """Return the rate above its percentage, in the middle of many rows."""
        reading, rating = self._reading, self._reading.rating
        of = Content.styled(f"of {reading.number(reading.expected.bit_s)}" if reading.expected else "", MUTED)
        chip = self._chip(rating, width - font.width("99.9") - 1)
        blocks = [(_number(reading), _widest(reading), "$foreground", self._rate_notes())]
        if reading.expected is not None:
            blocks.append((self._percent(), "99.9", RATING_STYLES[rating], [Content.styled("%", "bold"), of, chip]))
        lines: list[Content] = []
        for text, widest, style, notes in blocks:
            digits = big_digits(align_right(text, widest), font)
            lines += [Content("")] if lines else []
            lines += [
                Content.assemble(style_digits(row, style), " ", note)
                for row, note in zip(digits, _spread(notes, font.rows), strict=True)
            ]
        spare = rows - len(lines)
        return [*[Content("")] * (spare // 2), *lines, *[Content("")] * (spare - spare // 2)]

    def _narrow(self, width: int, rows: int) -> list[Content]:
        """Return the rate in large digits, and below it as much of the rest as fits, as text."""
        reading = self._reading
        font = largest_font(_widest(reading), width, rows if rows <= _LOW_ROWS else rows - 2)
        if font is None:
            lines = [Content.styled(_number(reading), "bold")]
        else:
            digits = big_digits(align_right(_number(reading), _widest(reading)), font)
            lines = [style_digits(row, "$foreground") for row in digits]
        unit, *details = self._rate_notes()
        below = [join_fit(width, (unit, details[0]), "  ")]
        if reading.expected is not None:
            percent = self._rated_percent()
            of = Content.styled(f" of {reading.number(reading.expected.bit_s)}", MUTED)
            below.append(first_fit(width, percent + of, percent))
        below += [first_fit(width, line) for line in details[1:]]
        lines = [*lines, *below][:rows]
        return [*lines, *[Content("")] * (rows - len(lines))]

    @staticmethod
    def _chip(rating: str, room: int) -> Content:
        """Return the word of a rating on a background that is seen from across a room."""
        if not rating:
            return Content("")
        style = RATING_CHIP_STYLES[rating]
        word = Content.styled(f" {_RATING_WORDS[rating]} ", style)
        if rating != "other":
            return word
        return first_fit(room, Content.styled(_TOO_FAST, style), word, Content.styled("≠", style))

    def _rated_percent(self) -> Content:
        """Return the percentage with its mark: `▼ 78.0 %`; empty if no rate is expected."""
        if self._reading.expected is None:
            return Content("")
        rating = self._reading.rating
        mark = f"{_RATING_WORDS[rating][0]} " if rating else ""
        return Content.styled(f"{mark}{self._percent()}{numbers.NBSP}%", f"bold {RATING_STYLES[rating]}")

    def _percent(self) -> str:
        """Return the percentage without its sign, in three digits so that its width is constant."""
        percent = self._reading.percent
        if percent is None:
            return numbers.UNKNOWN
        return numbers.percent(percent, 1 if percent < 99.95 else 0, mark=self._reading.pass_percent)[:-2]

    def _rate_notes(self) -> list[Content]:
        """Return the texts right of the rate: its unit, the rate in another unit or the latency, its margin."""
        reading = self._reading
        lines = [Content.styled(reading.scale.unit, "bold")]
        if reading.datagrams is not None:
            lines += _datagram_notes(reading.datagrams)
        elif reading.response_bits is not None:
            lines += [Content.styled(text, MUTED) for text in _percentiles(reading.latency)]
        else:
            lines.append(Content.styled(numbers.rate_with_unit(reading.bit_s, reading.units.other), MUTED))
        if reading.is_final:
            lines.append(Content.styled(f"mean {numbers.margin_of_error(reading.margin_percent)}".rstrip(), MUTED))
        return lines

    def _bar(self, width: int) -> Content:
        reading, full = self._reading, self._reading.full_bit_s
        tick, peak = (
            None if rate is None or not full else rate.bit_s / full
            for rate in (reading.expected, reading.peak_above_expected)
        )
        fraction = (reading.bit_s or 0.0) / full if full else None
        return bar(fraction, width, DIRECTION_STYLES[reading.direction], tick, peak)


def _idle(width: int, rows: int) -> list[Content]:
    """Return the lines of a gauge before the first run, in place of digits."""
    key = Content.styled("space", KEY)
    text = first_fit(width, key + Content.styled(" measures it", MUTED), key)
    above = (rows - 1) // 2
    return [*[Content("")] * above, text, *[Content("")] * (rows - 1 - above)]


def _number(reading: FlowReading) -> str:
    return reading.number(reading.bit_s, reading.scale.decimals(reading.top_bit_s))


def _widest(reading: FlowReading) -> str:
    """Return the widest number of this gauge. All other numbers are padded to its width."""
    top = reading.top_bit_s
    return reading.number(top, reading.scale.decimals(top)) if top else "000"


def _note_cells(reading: FlowReading) -> int:
    """Return the cells right of the rate."""
    return _RATE_NOTE if reading.datagrams is None else _DATAGRAM_NOTE


def _font_of_both(reading: FlowReading, width: int, rows: int) -> DigitFont | None:
    """Return the largest font in which the rate and its percentage, if any, fit side by side, or None."""
    if reading.expected is None:
        return largest_font(_widest(reading), width - 1 - _note_cells(reading), rows)
    return largest_font(_widest(reading) + "99.9", width - 2 - _note_cells(reading) - _GAP - _PERCENT_NOTE, rows)


def _stacked_font(reading: FlowReading, width: int, rows: int) -> DigitFont | None:
    """Return the font for the rate above its percentage, if it is larger than the font for both side by side."""
    if rows < _STACKED_ROWS:
        return None
    each = rows if reading.expected is None else (rows - 1) // 2
    font = largest_font(_widest(reading), width - 1 - _note_cells(reading), each)
    if reading.expected is not None and font is not None:
        percent = largest_font("99.9", width - 1 - _PERCENT_NOTE, font.rows)
        font = min(font, percent, key=lambda font: font.rows) if percent is not None else None
    side_by_side = _font_of_both(reading, width, rows)
    return font if font is not None and (side_by_side is None or font.rows > side_by_side.rows) else None


def _spread(parts: Sequence[Content], rows: int) -> list[Content]:
    """Return `rows` lines: the parts from the top, and the last of several at the bottom."""
    if len(parts) >= rows:
        return list(parts[:rows])
    head, last = (parts[:-1], parts[-1:]) if len(parts) > 1 else (parts, ())
    return [*head, *[Content("")] * (rows - len(parts)), *last]


def _percentiles(latency: LatencySummary | None) -> tuple[str, str]:
    """Return the median and the 99th percentile of latency."""
    p50, p99 = (latency.p50_ns, latency.p99_ns) if latency else (None, None)
    return f"p50 {numbers.latency(p50)}", f"p99 {numbers.latency(p99)}"


def _datagram_notes(reading: DatagramReading) -> list[Content]:
    """Return the loss and the jitter: they matter as much as the rate."""
    percent = reading.loss_percent
    style = MUTED if not percent else "bold $text-warning"
    jitter = numbers.latency(reading.jitter_ns)
    return [
        Content.styled(f"loss {datagram_results.loss_percent(percent)}", style),
        Content.styled(f"jitter {jitter}", MUTED),
    ]


def _source(expected: ExpectedRate | None, width: int) -> Content:
    if expected is None:
        return first_fit(width, *map(Content, ("no expected rate", "none expected")))
    return Content(cut_words(f"{EXPECTED_TICK} {expected.basis}: {numbers.sanitize(expected.source)}", width))


def _scale(reading: FlowReading, width: int) -> Content:
    """Return the line below the bar: zero, the rate of each tick, and the rate at the bar's end if it fits."""
    line, full = list("0".ljust(width)), reading.full_bit_s
    free_from = 2
    rates = ((reading.expected, "expected"), (reading.peak_above_expected, "peak"))
    ticks = [(tick_cell(rate.bit_s / full, width), rate, name) for rate, name in rates if rate and full]
    for at, rate, name in ticks:
        number = reading.number(rate.bit_s)
        for text in (
            f"{name} {number}{numbers.NBSP}{reading.scale.unit} ▲",
            f"{name} {number} ▲",
            f"{number} ▲",
            "▲",
        ):
            start = at + 1 - len(text)
            if start >= free_from:
                line[start : at + 1] = text
                free_from = at + 2
                break
    end = numbers.axis_number(full / reading.scale.bit_s) if full else ""
    if end and width - len(end) >= max([free_from, *(at + _END_GAP for at, _, _ in ticks)]):
        line[-len(end) :] = end
    return Content.styled("".join(line), MUTED)
