"""Connections of TCP as flows: between two real ends, and their counts by the sender's samples."""

import pytest
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.model.counters.samples import Sample, SessionSample
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import PlanError
from linkgauge.engine.model.events import Sampled
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Settings
from linkgauge.engine.near.flows.tcp_flows import SegmentCounts, TcpFlowsRequest, measure_tcp_flows


@pytest.mark.usefixtures("fork_server")
@pytest.mark.alone
async def test_every_connection_is_a_flow_with_its_segments_and_rate() -> None:
    """In both directions, each with source ports of its own."""
    async with Endpoint(listen("127.0.0.1", 0)) as endpoint:
        request = TcpFlowsRequest(flows=8, rate_bit_s=8_000_000, seconds=2.0)
        result = await measure_tcp_flows(Peer(*endpoint.address), request)
    assert [each.direction for each in result.directions] == list(Direction.DUPLEX.flows)
    for each in result.directions:
        assert len({flow.port for flow in each.flows}) == 8
        assert all(flow.sent > 0 and (flow.bit_s or 0) > 0 for flow in each.flows)


def sampled(end: End, elapsed_ns: int, *sessions: SessionSample) -> Sampled:
    """Return a sample of an end."""
    return Sampled(Sample(end, elapsed_ns, elapsed_ns, SECOND_NS, sessions), Settings(), warmup=False)


def test_the_senders_samples_count_in_the_half_that_they_belong_to() -> None:
    """Those of the other end, or of the other direction, do not."""
    counts = SegmentCounts(Direction.OUT, 20_000, 2, SECOND_NS)
    part = SessionSample(Direction.OUT, 2, 10_000, retransmits=3, min_rtt_us=40, mss_bytes=1_000)
    counts.feed(sampled(End.NEAR, SECOND_NS, part))
    counts.feed(sampled(End.NEAR, 2 * SECOND_NS, part))
    counts.feed(sampled(End.FAR, SECOND_NS, part))
    counts.feed(sampled(End.NEAR, SECOND_NS, SessionSample(Direction.IN, 2, 10_000)))
    first, second = counts.flows()
    assert (first.port, second.port) == (20_000, 20_001)
    assert first.sent == 0
    assert [each.segments for each in second.rounds] == [(13, 3), (13, 3)]
    assert second.least_ns == 40_000


@pytest.mark.parametrize("values", [{"flows": 200}, {"flows": 4}, {"first_port": 65_530}])
def test_a_value_out_of_range_is_refused(values: dict[str, int]) -> None:
    """An endpoint has at most 128 sessions."""
    with pytest.raises(PlanError):
        TcpFlowsRequest(**values)  # type: ignore[arg-type]
