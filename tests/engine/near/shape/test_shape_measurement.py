"""The measurement of a policer or shaper between two real ends over loopback, and how it ends early."""

import asyncio

import pytest
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.errors import PeerError, PeerRefused, PlanError
from linkgauge.engine.model.limits import Limits
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.near.shape.shape_measurement import ShapeRequest, measure_shape
from linkgauge.engine.results.shape.shape_result import LimitKind

from ..older_end import older_end

pytestmark = pytest.mark.usefixtures("fork_server")
QUICK = ShapeRequest(direction=Direction.OUT, bursts=3, datagram_bytes=1_400)


@pytest.mark.every
@pytest.mark.alone
async def test_loopback_is_not_policed_and_leaves_nothing_behind() -> None:
    """Both directions have a result; the endpoint has no client and no rejected datagram afterwards."""
    lines: list[str] = []
    counts: list[tuple[Direction, int]] = []
    async with Endpoint(listen("127.0.0.1", 0), lines.append) as endpoint:
        async with asyncio.timeout(90):
            request = ShapeRequest(bursts=3, datagram_bytes=1_400)
            result = await measure_shape(
                Peer(*endpoint.address), request, lambda way, count: counts.append((way, count))
            )
        assert [each.direction for each in result.directions] == [Direction.OUT, Direction.IN]
        assert LimitKind.POLICER not in {each.kind for each in result.directions}
        assert {each.frame_bytes for each in result.directions} == {1_442}
        assert result.round_trip_ns is not None
        assert {way for way, _ in counts} == {Direction.OUT, Direction.IN}
        async with asyncio.timeout(20):
            while endpoint.admission.admitted_clients:  # noqa: ASYNC110 - only looking tells
                await asyncio.sleep(0.01)
    assert not [line for line in lines if "rejected" in line]


async def test_an_end_without_udp_is_told_by_its_version() -> None:
    """It closes the connection when it reads the plan."""
    async with asyncio.timeout(20), older_end() as peer:
        with pytest.raises(PeerError, match="may be older than UDP tests: install the same version"):
            await measure_shape(peer, QUICK)


async def test_an_endpoint_that_declines_says_why(endpoint: Endpoint) -> None:
    """Its limits of UDP hold for bursts as for a test."""
    endpoint.admission.limits = Limits(udp_duration_s=10)
    with pytest.raises(PeerRefused, match="too long"):
        await measure_shape(Peer(*endpoint.address), QUICK)


async def test_bursts_above_an_endpoint_s_limit_end_with_its_reason(endpoint: Endpoint) -> None:
    """The endpoint ends the test, which is told at once and not after a deadline."""
    endpoint.admission.limits = Limits(udp_rate_bit_s=1_000)
    with pytest.raises(PeerRefused, match="bits of UDP arrive in a second"):
        async with asyncio.timeout(30):
            await measure_shape(Peer(*endpoint.address), QUICK)


@pytest.mark.parametrize(
    "wrong", [{"bursts": 2}, {"bursts": 51}, {"datagram_bytes": 63}, {"datagram_bytes": 9_001}]
)
def test_a_request_out_of_range_is_refused(wrong: dict[str, int]) -> None:
    """With the range."""
    with pytest.raises(PlanError, match="give"):
        ShapeRequest(**wrong)  # pyright: ignore[reportArgumentType]
