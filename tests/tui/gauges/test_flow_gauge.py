"""The gauge of a direction: its number, mark, bar and percentiles."""

import pytest
from linkgauge.engine.model.counters.latency_histogram import LatencySummary
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.expected_rate import ExpectedRate
from linkgauge.tui.gauges.flow_gauge import FlowGauge
from linkgauge.tui.readings.flow_reading import FlowReading

from .instrument_bench import Bench, lines_of

EXPECTED = ExpectedRate(9_415_000_000, "documented", "AIX table 1")


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
            (line,) = [line for line in lines if "Mb/s" in line and "▲" not in line]
            places.add((lines.index(line), line.index("Mb/s"), line.rfind("%")))
            assert len(lines) == size[1]
        assert len(places) == 1


@pytest.mark.parametrize(
    ("bit_s", "mark"), [(9_389e6, "✓"), (9_415e6 * 0.95, "✓"), (9_415e6 * 0.94, "▼"), (9_415e6 * 0.4, "✗")]
)
async def test_a_gauge_judges_with_a_mark_and_a_number(bit_s: float, mark: str) -> None:
    """A rate at the pass mark passes. The mark is in the gauge, or in the title of a small one."""
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
    """Each has its rate below it. The scale stays when the expected rate becomes the peak."""
    app = Bench(FlowGauge(Direction.OUT))
    expected_rate = ExpectedRate(7_200_000_000, "documented", "AIX table 1")
    async with app.run_test(size=(80, 8)) as pilot:
        app.instrument.show(FlowReading(Direction.OUT, 6e9, expected_rate, peak=EXPECTED, full_bit_s=10.5e9))
        await pilot.pause()
        bar_line, scale = lines_of(app)[-2:]
        assert scale.index("expected 7 200 Mb/s ▲") + len("expected 7 200 Mb/s ▲") - 1 == bar_line.index("┃")
        assert scale.rstrip().endswith("peak 9 415 ▲")  # between the two ticks there is no room for its unit
        peak_at = bar_line.index("╏")
        app.instrument.show(FlowReading(Direction.OUT, 9e9, EXPECTED, peak=EXPECTED, full_bit_s=10.5e9))
        await pilot.pause()
        assert lines_of(app)[-2].index("┃") == peak_at


async def test_a_gauge_of_transactions_shows_them_and_their_percentiles() -> None:
    """The number, the unit and the expected rate are transactions a second, at any size."""
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


@pytest.mark.parametrize("rows", [4, 8])
async def test_the_expected_rate_has_its_unit(rows: int) -> None:
    """In the title of a low gauge, and below the bar of a high one."""
    app = Bench(FlowGauge(Direction.OUT))
    async with app.run_test(size=(80, rows)) as pilot:
        app.instrument.show(FlowReading(Direction.OUT, 9e9, EXPECTED, full_bit_s=10.5e9))
        await pilot.pause()
        text = "".join([str(app.instrument.border_title), *lines_of(app)]).replace("\u00a0", " ")
        assert "expected 9 415 Mb/s" in text


async def test_the_rate_alone_has_the_room_of_a_percentage() -> None:
    """Without an expected rate, the digits fill the gauge."""
    app = Bench(FlowGauge(Direction.DUPLEX))
    async with app.run_test(size=(52, 9)) as pilot:
        app.instrument.show(FlowReading(Direction.DUPLEX, 45.36e9))
        await pilot.pause()
        digits = [line for line in lines_of(app)[:-2] if "█" in line]
        assert len(digits) == 7  # the rows of the largest font; beside a percentage it had three
