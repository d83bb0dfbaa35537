"""The live line of a headless test."""

from linkgauge.engine.model.events import Sampled
from linkgauge.engine.model.plan import SECOND_NS, Direction, End, Plan, Settings
from linkgauge.engine.model.samples import CoreTimes, Sample, SessionSample
from linkgauge.engine.results.meter import Interval
from linkgauge.tui.cli.live_line import interval_text


def test_the_live_line_shows_time_rates_and_load_of_both_ends() -> None:
    """A far end that has not told yet is a dash."""
    core = CoreTimes(100_000_000, 0, 0, 0, 150_000_000)
    sent = SessionSample(Direction.IN, 1, 31_250_000)
    sample = Sample(End.NEAR, 3, SECOND_NS, SECOND_NS // 4, (sent,), (core, core), 0)
    near = Sampled(sample, Settings(Direction.IN), warmup=True)
    text = interval_text(Interval(3, near, None), Plan(duration_ns=10 * SECOND_NS))
    assert text.replace("\N{NO-BREAK SPACE}", " ") == (
        "00:01 / 00:10  in ←    1 000 Mb/s  CPU local  40 %, remote   – %  warming up"
    )
