"""The counts of a flow over its rounds."""

from linkgauge.engine.results.flows.flow_counts import LATE_NS, FlowCounts, FlowRound


def test_rounds_add_up() -> None:
    """A datagram without a delay is lost; one far behind the least delay is late."""
    rounds = [FlowRound(1, [5, None, 7], 1, 1, 2, 3), FlowRound(2, [6, LATE_NS + 6, None], 2)]
    flow = FlowCounts(40_000, rounds)
    assert (flow.sent, flow.lost, flow.late, flow.least_ns) == (6, 2, 1, 5)
    assert (flow.pairs, flow.reordered, flow.duplicates, flow.unread) == (3, 1, 2, 3)
    assert flow.median_ns == 6.5
    assert flow.bit_s is None


def test_a_flow_without_arrivals_has_no_delay() -> None:
    """Unknown, not 0."""
    flow = FlowCounts(1, [FlowRound(1, [None, None])])
    assert (flow.least_ns, flow.median_ns, flow.late, flow.lost) == (None, None, 0, 2)


def test_a_flow_of_tcp_counts_segments_and_payload() -> None:
    """Its delays are round trips, and no losses."""
    flow = FlowCounts(1, [FlowRound(1, [None, 3], segments=(100, 4), payload=(1_000_000, 10**9))])
    assert (flow.sent, flow.lost, flow.bit_s) == (100, 4, 8_000_000)
