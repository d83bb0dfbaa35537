"""The figures of datagrams in one interval."""

from linkgauge.engine.model.counters.samples import DatagramSample, LatencyCounts, Sample, SessionSample
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Sampled
from linkgauge.engine.model.plan import Settings
from linkgauge.engine.results.udp.interval_figures import FIGURES, flow_figures, session_figures

from ..datagram_runs import INTERVAL_NS


def _sampled(end: End, *parts: DatagramSample, delays: tuple[LatencyCounts, ...] = ()) -> Sampled:
    sessions = (SessionSample(Direction.OUT, 1, 9),)
    sample = Sample(end, 0, INTERVAL_NS, INTERVAL_NS, sessions, datagrams=parts, delay_variation=delays)
    return Sampled(sample, Settings(), warmup=False)


def test_an_interval_of_tcp_has_no_figures_of_datagrams() -> None:
    """Its cells are empty, not 0."""
    assert flow_figures(_sampled(End.FAR), _sampled(End.NEAR), Direction.OUT) == {}
    assert session_figures(_sampled(End.FAR), None, Direction.OUT) == {}


def test_a_figure_that_one_end_has_not_reported_is_unknown() -> None:
    """None is unknown, 0 is measured."""
    sender = _sampled(End.NEAR, DatagramSample(Direction.OUT, 1, sent=5, rate_bit_s=0, datagram_bytes=100))
    figures = flow_figures(None, sender, Direction.OUT)
    assert tuple(figures) == FIGURES
    assert {name for name, value in figures.items() if value is not None} == {"sent", "datagram_bytes"}
    receiver = _sampled(End.FAR, DatagramSample(Direction.OUT, 1, advanced=0, received=0, jitter_count=0))
    figures = flow_figures(receiver, None, Direction.OUT)
    assert (figures["lost"], figures["packets_s"]) == (0, 0)
    unknown = ("lost_percent", "jitter_ms", "delay_variation_p50_ms", "delay_variation_p99_ms")
    assert [figures[name] for name in unknown] == [None] * 4


def test_an_interval_without_a_datagram_has_no_delay_variation() -> None:
    """The counts of the other direction are not its own; nor are counts of nothing."""
    receiver = _sampled(
        End.FAR,
        DatagramSample(Direction.OUT, 1, advanced=0, received=0),
        DatagramSample(Direction.IN, 1, advanced=9, received=9),
        delays=(LatencyCounts(Direction.OUT, (), ()), LatencyCounts(Direction.IN, (64,), (9,))),
    )
    figures = flow_figures(receiver, None, Direction.OUT)
    assert (figures["delay_variation_p50_ms"], figures["delay_variation_p99_ms"]) == (None, None)
    assert flow_figures(receiver, None, Direction.IN)["delay_variation_p50_ms"] is not None


def test_a_session_that_is_closed_is_left_out_once_nothing_of_it_arrives() -> None:
    """Its counters stand in shared memory until the end of the run."""
    parts = (
        DatagramSample(Direction.OUT, 1, advanced=9, received=7),
        DatagramSample(Direction.OUT, 2, advanced=3, received=3),
        DatagramSample(Direction.OUT, 3, advanced=0, received=0),
        DatagramSample(Direction.IN, 1, sent=4),
    )
    receiver = _sampled(End.FAR, *parts, delays=(LatencyCounts(Direction.OUT, (64,), (10,)),))
    assert sorted(session_figures(receiver, None, Direction.OUT)) == [1, 2]
    figures = flow_figures(receiver, None, Direction.OUT)
    assert (figures["lost"], figures["packets_s"]) == (2, 40.0)
    assert figures["delay_variation_p50_ms"] == figures["delay_variation_p99_ms"]
