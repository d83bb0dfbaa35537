"""What single instruments draw, given values."""

import pytest
from linkgauge.engine.model.events import ExpectedRate
from linkgauge.engine.model.latency_histogram import LatencySummary
from linkgauge.engine.model.plan import Direction, End
from linkgauge.tui.rendering.bar import bar
from linkgauge.tui.rendering.big_digits import DIGIT_FONTS, DigitFont, align_right, big_digits
from linkgauge.tui.state.instrument_values import CpuReading, FlowReading
from linkgauge.tui.widgets.run.cpu_panel import CpuPanel
from linkgauge.tui.widgets.run.flow_gauge import FlowGauge
from textual.app import App, ComposeResult

EXPECTED = ExpectedRate(9_415_000_000, "documented", "AIX table 1")


@pytest.mark.parametrize("fraction", [None, 0.0, 0.001, 0.5, 0.999, 1.0, 7.0])
@pytest.mark.parametrize("tick", [None, 0.0, 0.9, 1.0])
def test_a_bar_always_has_its_width(fraction: float | None, tick: float | None) -> None:
    """Whatever the value, nothing beside it moves; and the tick is there, if it is asked for."""
    drawn = bar(fraction, 40, "green", tick).plain
    assert len(drawn) == 40
    assert ("┃" in drawn) == (tick is not None)


def test_a_bar_is_drawn_in_eighths() -> None:
    """A change of one eighth of a cell can be seen."""
    assert bar(0.5, 4, "green").plain == "██░░"
    assert bar(5 / 32, 4, "green").plain == "▋░░░"
    assert bar(1.0, 0, "green").plain == ""


class Bench(App[None]):
    """One instrument alone on a screen."""

    def __init__(self, instrument: FlowGauge | CpuPanel) -> None:
        super().__init__()
        self.instrument = instrument

    def compose(self) -> ComposeResult:
        """Show it."""
        yield self.instrument


def lines_of(app: Bench) -> list[str]:
    """Return what the instrument shows, with plain spaces."""
    return [line.plain.replace("\u00a0", " ") for line in app.instrument._lines]


@pytest.mark.parametrize("size", [(80, 8), (78, 4), (22, 7)], ids=str)
async def test_the_big_number_keeps_its_width_and_place(size: tuple[int, int]) -> None:
    """From unknown to the highest rate, the units stay where they are."""
    app = Bench(FlowGauge(Direction.OUT))
    async with app.run_test(size=size) as pilot:
        places = set()
        for bit_s in (None, 0.0, 8e6, 941e6, 9_389e6):
            app.instrument.show(FlowReading(Direction.OUT, bit_s, EXPECTED))
            await pilot.pause()
            lines = lines_of(app)
            (line,) = [line for line in lines if "Mb/s" in line]
            places.add((lines.index(line), line.index("Mb/s"), line.rfind("%")))
            assert len(lines) == size[1]
        assert len(places) == 1


@pytest.mark.parametrize(
    ("bit_s", "mark"), [(9_389e6, "✓"), (9_415e6 * 0.95, "✓"), (9_415e6 * 0.94, "▼"), (9_415e6 * 0.4, "✗")]
)
async def test_a_gauge_judges_with_a_mark_and_a_number(bit_s: float, mark: str) -> None:
    """At the pass mark is passed; large or small, in the gauge or in its title."""
    app = Bench(FlowGauge(Direction.OUT))
    async with app.run_test(size=(80, 24)) as pilot:
        app.instrument.show(FlowReading(Direction.OUT, bit_s, EXPECTED))
        await pilot.pause()
        assert mark in "".join(lines_of(app))
        await pilot.resize_terminal(27, 24)
        await pilot.pause()
        assert any(mark in line and "%" in line for line in lines_of(app))
        await pilot.resize_terminal(27, 4)
        await pilot.pause()
        assert mark in str(app.instrument.border_title)


async def test_the_bar_has_a_tick_at_the_expected_and_at_the_peak_rate() -> None:
    """Each with its rate below it, and the scale stays when the one becomes the other."""
    app = Bench(FlowGauge(Direction.OUT))
    one = ExpectedRate(7_200_000_000, "documented", "AIX table 1")
    async with app.run_test(size=(80, 8)) as pilot:
        app.instrument.show(FlowReading(Direction.OUT, 6e9, one, peak=EXPECTED))
        await pilot.pause()
        bar_line, scale = lines_of(app)[-2:]
        assert scale.index("expected 7 200 ▲") + len("expected 7 200 ▲") - 1 == bar_line.index("┃")
        assert scale.rstrip().endswith("peak 9 415 ▲")
        peak_at = bar_line.index("╏")
        app.instrument.show(FlowReading(Direction.OUT, 9e9, EXPECTED, peak=EXPECTED))
        await pilot.pause()
        assert lines_of(app)[-2].index("┃") == peak_at


@pytest.mark.parametrize("face", DIGIT_FONTS, ids=str)
def test_every_digit_takes_the_same_room_and_looks_like_no_other(face: DigitFont) -> None:
    """So that a number that changes moves nothing, and is not misread."""
    glyphs = {digit: tuple(big_digits(digit, face)) for digit in "0123456789"}
    assert {(len(glyph), *map(len, glyph)) for glyph in glyphs.values()} == {(face.rows, *[face.digit] * face.rows)}
    assert len(set(glyphs.values())) == 10


@pytest.mark.parametrize("text", ["-", "0.00", "8.1", "941", "9\u00a0389", "99.7"])
def test_figures_are_right_aligned_to_the_cell(text: str) -> None:
    """Digits, groups and points each have their own width; all are made up for."""
    like = "19\u00a0415.0" if "." in text else "19\u00a0415"
    for face in DIGIT_FONTS:
        assert {len(row) for row in big_digits(align_right(text, like), face)} == {face.width(like)}


async def test_the_cpu_panel_marks_a_busy_core_and_keeps_unknown_apart_from_idle() -> None:
    """`!` goes with the colour; a dash is no zero."""
    app = Bench(CpuPanel(widget_id="cpu"))
    async with app.run_test(size=(46, 8)) as pilot:
        near = CpuReading(End.NEAR, 41.0, 3, 97.2, 61.0, 0.31, tuple([10.0] * 3 + [97.2]))
        app.instrument.show(near, CpuReading(End.FAR, 0.0, 0, 0.0, 0.0, None, (0.0,)), shared_host=True)
        await pilot.pause()
        lines = lines_of(app)
        assert "97 %!" in lines[0]
        assert "0 %" in lines[2]
        assert "near  0.31  far     –" in lines[4]
        assert "both ends share" in lines[5]


async def test_a_gauge_of_transactions_shows_them_and_their_percentiles() -> None:
    """The number, the unit and the expected rate are transactions a second; roomy or not."""
    expected = ExpectedRate(8_000_000, "documented", "a table", 1_000.0)
    latency = LatencySummary(10_000, 17_800, 20_000, 1_250_000, 2_000_000, 3_000_000)
    reading = FlowReading(Direction.OUT, 9_600_000, expected, 9_600_000, response_bits=8_000, latency=latency)
    app = Bench(FlowGauge(Direction.OUT))
    async with app.run_test(size=(80, 24)) as pilot:
        app.instrument.show(reading)
        await pilot.pause()
        text = "\n".join(lines_of(app))
        assert all(words in text for words in ("trans/s", "p50 17.8 µs", "p99 1.25 ms", "of 1 000"))
        await pilot.resize_terminal(27, 7)
        await pilot.pause()
        assert "p50" in "\n".join(lines_of(app))
