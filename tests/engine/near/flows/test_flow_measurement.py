"""A test of many flows between two real ends: both directions, its limits, and far ends that cannot have it."""

import pytest
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.far.status import LogEntry
from linkgauge.engine.host import description
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import PeerError, PeerRefused, PlanError
from linkgauge.engine.model.host_info import READS
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.near.flows.flow_measurement import FlowsRequest, measure_flows
from linkgauge.engine.protocol.flow_datagrams import TWIN_EVERY
from linkgauge.engine.results.flows.loss_judgement import LossKind

from ...waiting import until

pytestmark = pytest.mark.usefixtures("fork_server")
REQUEST = FlowsRequest(flows=24, sweeps=24)


@pytest.mark.parametrize("host", ["127.0.0.1", pytest.param("::1", marks=pytest.mark.every)])
async def test_every_flow_is_counted_in_both_directions(host: str) -> None:
    """Loopback loses nothing, and the endpoint logs a test."""
    log: list[LogEntry] = []
    async with Endpoint(listen(host, 0), log.append) as endpoint:
        result = await measure_flows(Peer(*endpoint.address), REQUEST)
    assert [each.direction for each in result.directions] == list(Direction.DUPLEX.flows)
    for each in result.directions:
        assert len({flow.port for flow in each.flows}) == 24
        assert each.sent == 24 * 24
        assert each.lost <= 5
        assert all(flow.pairs <= 3 for flow in each.flows)
    assert result.silent_ports == ()
    assert "started: udp" in "\n".join(map(str, log))
    await until(lambda: log[-1].event == "run_ended")
    rounds_bytes = 24 * (24 + 24 // TWIN_EVERY) * REQUEST.datagram_bytes
    for way in ("received_bytes", "sent_bytes"):
        assert int(str(log[-1].fields[way])) >= rounds_bytes - 5 * REQUEST.datagram_bytes


async def test_one_direction_and_a_row_of_ports_of_ones_own() -> None:
    """The first port and those behind it."""
    async with Endpoint(listen("127.0.0.1", 0)) as endpoint:
        request = FlowsRequest(Direction.IN, flows=8, sweeps=20, first_port=23_400)
        result = await measure_flows(Peer(*endpoint.address), request)
    (way,) = result.directions
    assert [flow.port for flow in way.flows] == list(range(23_400, 23_408))
    assert way.losses.kind is not LossKind.APART


async def test_an_endpoint_of_an_earlier_version_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would not answer the flows' hellos."""
    monkeypatch.setattr(description, "READS", READS.removeprefix(" (polls) (flows)"))
    async with Endpoint(listen("127.0.0.1", 0)) as endpoint:
        with pytest.raises(PeerError, match="too old for a test of many flows: install this version"):
            await measure_flows(Peer(*endpoint.address), REQUEST)


async def test_the_endpoints_limits_of_udp_hold() -> None:
    """A rate above them is refused before anything is sent."""
    async with Endpoint(listen("127.0.0.1", 0), limits=Limits(udp_rate_bit_s=1_000_000)) as endpoint:
        with pytest.raises(PeerRefused, match="bits of UDP a second are too many"):
            await measure_flows(Peer(*endpoint.address), REQUEST)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"flows": 7}, "give 8 to 512"),
        ({"sweeps": 5}, "give 20 to 4000"),
        ({"datagram_bytes": 10}, "give 64 to 9000"),
        ({"rate_bit_s": 200_000_000}, "datagrams a second"),
        ({"first_port": 65_500}, "room for all flows"),
    ],
)
def test_a_value_out_of_range_says_what_is_right(values: dict[str, int], words: str) -> None:
    """Before anything is sent."""
    with pytest.raises(PlanError, match=words):
        FlowsRequest(**values)  # type: ignore[arg-type]
