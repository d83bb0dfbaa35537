"""The latency bars: an axis that holds still, bars and ticks on it, and what a run gives them to show."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.events import Changed, Expectation, Sampled, Started
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.latency_histogram import LatencySummary, bucket_of, summarize_latency
from linkgauge.engine.model.plan import SECOND_NS, Direction, End, Plan, Settings
from linkgauge.engine.model.samples import LatencyCounts, ProbeSample, Sample
from linkgauge.tui.state.latency_readings import LatencyReading
from linkgauge.tui.state.live_readings import LiveReadings
from linkgauge.tui.widgets.run.latency_bars import LogAxis, bar_lines, percentiles

LOADED = LatencySummary(9_000_000, 31_000_000, 33_000_000, 40_000_000, 41_000_000, 55_000_000)
IDLE = LatencySummary(300_000, 400_000, 450_000, 600_000, 600_000, 600_000)
TIMES = st.integers(1, 70 * SECOND_NS)
HOST = HostInfo("a", "Linux", 2, "linkgauge", "uvloop")


@given(st.lists(TIMES, min_size=1, max_size=5), st.lists(TIMES, max_size=5))
def test_an_axis_grows_and_never_shrinks(first: list[int], then: list[int]) -> None:
    """Each value has its place on it, by powers of ten, and what had room before has room still."""
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
    """Bars then stand empty, and every value is unknown."""
    assert LogAxis.covering([]) is None
    lines = [line.plain for line in bar_lines(LatencyReading("latency"), None, 40, 8)]
    assert all("–" in line for line in lines[:5])


@pytest.mark.parametrize("width", [17, 24, 32, 44, 60, 120])
@pytest.mark.parametrize("height", [4, 8, 13, 30])
def test_lines_fit_and_tell_every_percentile(width: int, height: int) -> None:
    """At each size: no line is too wide for its place, and a bar is as long as its value."""
    reading = LatencyReading("latency under load", LOADED, IDLE, 30_000)
    axis = LogAxis.covering([ns for one in (LOADED, IDLE) for _, ns in percentiles(one)])
    assert axis == LogAxis(5, 8)
    lines = [line.plain for line in bar_lines(reading, axis, width, height)]
    assert len(lines) <= height
    told = [line for line in lines if (line[:1] in {"p", "m"} and line[:2] != "ma") or line.startswith("max")]
    assert [line.split()[0] for line in told][:4] == ["p50", "p90", "p99", "p99.9"][: len(told)]
    assert all(len(line) == width for line in told)
    if width >= 32 and height >= 8:
        filled = [line.count("█") for line in told]
        assert filled == sorted(filled)
        assert all("┃" in line for line in told)  # the idle one's tick, which needs no colour
        assert any("×78" in line for line in lines)


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
    """What has no room is left out."""
    assert LogAxis(5, 8).scale_line(width).replace("\u00a0", " ") == line


def _probe(*times_ns: int) -> ProbeSample:
    buckets = sorted({bucket_of(ns) for ns in times_ns})
    counts = tuple(sum(bucket_of(ns) == bucket for ns in times_ns) for bucket in buckets)
    return ProbeSample(LatencyCounts(Direction.OUT, tuple(buckets), counts), SECOND_NS // 4, 250)


def _sampled(index: int, probe: ProbeSample, settings: Settings) -> Sampled:
    tick = SECOND_NS // 4
    return Sampled(Sample(End.NEAR, index, (index + 1) * tick, tick, (), probe=probe), settings, False)


def test_a_board_reads_the_probe_since_the_latest_change() -> None:
    """Idle stays, and what was found under other settings does not."""
    plan = Plan(probe=True)
    board = LiveReadings(plan)
    board.feed(Started("2026-11-21T01:15:30Z", "db-02", HOST, HOST, plan, Expectation(), _probe(100_000, 110_000)))
    board.feed(_sampled(0, _probe(5_000_000), plan.settings))
    reading = board.probe.reading
    assert reading.idle == summarize_latency({bucket_of(100_000): 1, bucket_of(110_000): 1})
    assert reading.latency == summarize_latency({bucket_of(5_000_000): 1})
    assert reading.load_ratio is not None
    assert reading.load_ratio > 40
    settings = plan.settings.with_changes(sessions=5)
    board.feed(Changed(SECOND_NS // 2, settings, Expectation()))
    assert board.probe.reading.latency is None
    assert board.probe.reading.idle == reading.idle
    for index in range(1, 100):
        board.feed(_sampled(index, _probe(index * 1_000_000), settings))
    latest = board.probe.reading.latency
    assert latest is not None
    assert latest.min_ns > 55_000_000  # of the last ten seconds
