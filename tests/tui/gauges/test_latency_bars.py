"""The latency bars: an axis that stays, with bars and ticks on it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.counters.latency_histogram import LatencySummary
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.tui.gauges.latency_bars import LogAxis, bar_lines, percentiles
from linkgauge.tui.readings.latency_reading import LatencyReading

LOADED = LatencySummary(9_000_000, 31_000_000, 33_000_000, 40_000_000, 41_000_000, 55_000_000)
IDLE = LatencySummary(300_000, 400_000, 450_000, 600_000, 600_000, 600_000)
TIMES = st.integers(1, 70 * SECOND_NS)


@given(st.lists(TIMES, min_size=1, max_size=5), st.lists(TIMES, max_size=5))
def test_an_axis_grows_and_never_shrinks(first: list[int], then: list[int]) -> None:
    """Each value has its position on it, by powers of ten. Earlier values still fit."""
    before = LogAxis.covering(first)
    assert before is not None
    after = LogAxis.covering(then, before)
    assert after is not None
    assert after.low <= before.low
    assert after.high >= before.high
    assert after.high - after.low >= 2
    for value in [*first, *then]:
        assert 10**after.low <= value <= 10**after.high
        assert 0 <= after.fraction(value) <= 1


def test_nothing_known_has_no_axis() -> None:
    """The bars are empty then, and every value is unknown."""
    assert LogAxis.covering([]) is None
    lines = [line.plain for line in bar_lines(LatencyReading("latency"), None, 40, 8)]
    assert all("–" in line for line in lines[:5])


@given(width=st.sampled_from([17, 24, 32, 44, 60, 120]), height=st.sampled_from([4, 8, 13, 30]))
def test_lines_fit_and_tell_every_percentile(width: int, height: int) -> None:
    """At each size, no line is too wide, and a bar is as long as its value."""
    reading = LatencyReading("latency under load", LOADED, IDLE, 30_000)
    axis = LogAxis.covering([ns for readings in (LOADED, IDLE) for _, ns in percentiles(readings)])
    assert axis == LogAxis(5, 8)
    lines = [line.plain for line in bar_lines(reading, axis, width, height)]
    assert len(lines) <= height
    labels = [line for line in lines if (line[:1] in {"p", "m"} and line[:2] != "ma") or line.startswith("max")]
    assert [line.split()[0] for line in labels][:4] == ["p50", "p90", "p99", "p99.9"][: len(labels)]
    assert all(len(line) == width for line in labels)
    if width >= 32 and height >= 8:
        filled = [line.count("█") for line in labels]
        assert filled == sorted(filled)
        assert all("┃" in line for line in labels)  # the idle one's tick, which needs no colour
        assert any("loaded 78x" in line for line in lines)


@pytest.mark.parametrize(
    ("width", "line"),
    [
        (42, "╷100 µs       ╷1 ms         ╷10 ms 100 ms╷"),
        (31, "╷100 µs   ╷1 ms         100 ms╷"),
        (9, "╷100 µs  "),
        (3, "   "),
    ],
)
def test_the_scale_names_its_ends_first(width: int, line: str) -> None:
    """Powers that do not fit are left out."""
    assert LogAxis(5, 8).scale_line(width).replace("\u00a0", " ") == line
