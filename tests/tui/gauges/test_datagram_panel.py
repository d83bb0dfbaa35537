"""The panel of datagrams: loss first, with a mark that needs no colour, and dashes for unknown values."""

from dataclasses import replace

import pytest
from linkgauge.engine.model.counters.latency_histogram import LatencySummary
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.results.summary import CapacitySummary, DatagramSummary, LossByHost
from linkgauge.tui.gauges.datagram_panel import DatagramPanel
from linkgauge.tui.readings.flow_reading import DatagramReading

from .instrument_bench import Bench, lines_of

NOTHING = DatagramSummary(*[None] * 25)
SOME = replace(
    NOTHING,
    received=999_000,
    lost=1_000,
    lost_at=LossByHost(0, 250, 750),
    duplicates=3,
    late=1,
    reordered=40,
    bursts=12,
    longest_burst=90,
    jitter_mean_ns=31_000.0,
    jitter_max_ns=420_000,
    delay_variation=LatencySummary(0, 12_000, 20_000, 310_000, 310_000, 400_000),
    rtt_us=212,
    datagram_bytes=1_472,
    mode="rate",
)


async def drawn(*readings: DatagramReading, size: tuple[int, int] = (39, 12)) -> list[str]:
    """Return the lines of the panel."""
    app = Bench(DatagramPanel())
    async with app.run_test(size=size) as pilot:
        app.instrument.show(readings)
        await pilot.pause()
        return lines_of(app)


async def test_one_direction_has_each_value_with_its_detail() -> None:
    """The most important values come first: a low panel has only them."""
    reading = DatagramReading(Direction.OUT, 81_620.0, SOME, SOME)
    lines = [" ".join(line.split()) for line in await drawn(reading)]
    assert lines == [
        "loss ▼ 0.10 % 1 000 lost",
        "packets/s 81 620",
        "jitter 31.0 µs max 420 µs",
        "delay var. p50 12.0 µs p99 310 µs",
        "lost in network 75 %, remote 25 %",
        "reordered 0.004 % 40",
        "duplicates 3 late 1",
        "bursts 12 longest 90",
        "RTT 212 µs",
    ]
    assert [" ".join(line.split()) for line in await drawn(reading, size=(39, 3))] == lines[:3]


async def test_what_was_not_sent_and_what_a_search_has_found_have_rows_of_their_own() -> None:
    """Without them, a sender that is too slow would look like a slow link."""
    found = CapacitySummary(941_000_000, 0.4, 1_250_000, 8_000_000, None, is_complete=False)
    some = replace(SOME, skipped=1_229, capacity=found)
    lines = [" ".join(line.split()) for line in await drawn(DatagramReading(Direction.OUT, 1.0, some, some))]
    assert lines[:2] == ["capacity 941 Mb/s searching", "loss-free –"]
    assert lines[4] == "not sent 1 229 sender too slow"
    for capacity, words in (
        (replace(found, is_complete=True), "none"),
        (replace(found, loss_free_bit_s=900_000_000), "900 Mb/s"),
    ):
        other = replace(some, capacity=capacity)
        assert (await drawn(DatagramReading(Direction.OUT, 1.0, other, other)))[1].endswith(words)


async def test_two_directions_are_side_by_side() -> None:
    """Each has its own mark."""
    lossless = replace(SOME, lost=0)
    lines = await drawn(
        DatagramReading(Direction.OUT, 1_000.0, SOME, SOME), DatagramReading(Direction.IN, 2_000.0, SOME, lossless)
    )
    assert lines[0].split() == ["→", "out", "←", "in"]
    assert lines[1].split() == ["loss", "▼", "0.10", "%", "✓", "0", "%"]
    assert lines[2].split() == ["packets/s", "1", "000", "2", "000"]


@pytest.mark.parametrize("summary", [None, NOTHING])
async def test_an_unknown_value_is_a_dash(summary: DatagramSummary | None) -> None:
    """A zero would be a measured value."""
    for line in await drawn(DatagramReading(Direction.OUT, None, summary, summary)):
        assert "–" in line
        assert "0" not in line.replace("p50", "")
