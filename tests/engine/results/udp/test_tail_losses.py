"""Only whole sessions have a tail, and only once both ends have drained."""

import pytest
from linkgauge.engine.model.counters.samples import DatagramSample, Sample
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Opened, Sampled
from linkgauge.engine.model.plan import Settings
from linkgauge.engine.results.udp.tail_losses import TailLosses

from ..datagram_runs import INTERVAL_NS, draw_datagram_run


@pytest.mark.parametrize("pause", [0, 2])
def test_a_session_that_is_opened_again_begins_anew(pause: int) -> None:
    """Datagrams on their way at its end are not lost; if it is opened again at once, its tail is unknown."""
    events, _ = draw_datagram_run(3, Direction.OUT, intervals=4, sessions=1, is_drained=False)
    opened = [event for event in events if isinstance(event, Opened)]
    tails = TailLosses()
    for event in opened:
        tails.open_session(event)
    counts = {End.NEAR: (100, *[0] * pause), End.FAR: (90, *[0] * pause)}
    for end, values in counts.items():
        for value in values:
            tails.add_event(_count(end, value))
    for event in opened:
        tails.open_session(event)
    for end, value in ((End.NEAR, 50), (End.FAR, 47)):
        tails.add_event(_count(end, value))
        assert tails.of_flow(Direction.OUT, 1) == []
        tails.add_event(_count(end, 0, is_drain=True))
    assert tails.of_flow(Direction.OUT, 1) == ([3] if pause else [])
    assert tails.of_flow(Direction.IN, 1) == []


def _count(end: End, value: int, *, is_drain: bool = False) -> Sampled:
    part = DatagramSample(Direction.OUT, 1, **{"sent" if end is End.NEAR else "advanced": value})
    sample = Sample(end, 0, INTERVAL_NS, INTERVAL_NS, (), datagrams=(part,), is_drain=is_drain)
    return Sampled(sample, Settings(), warmup=False)
