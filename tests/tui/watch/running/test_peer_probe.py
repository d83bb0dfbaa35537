"""Probes over real sockets: of an end that answers, of one without UDP, and of none."""

from collections.abc import AsyncIterator

import pytest
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.model.errors import PeerError, PeerUnreachable
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SocketOptions
from linkgauge.tui.watch.running.peer_probe import _measure_requests, measure_round_trips

pytestmark = pytest.mark.usefixtures("fork_server")


@pytest.fixture
async def far_end() -> AsyncIterator[Peer]:
    """Give a far end in this process, on 127.0.0.1."""
    async with Endpoint(listen("127.0.0.1", 0)) as endpoint:
        yield Peer(*endpoint.address)


async def test_datagrams_come_back_and_none_is_lost_on_loopback(far_end: Peer) -> None:
    """The bytes of both directions are counted, and the endpoint has no run."""
    result = await measure_round_trips(far_end, count=5)
    assert result.median_ns is not None
    assert result.median_ns > 0
    assert result.loss == 0
    assert result.bytes == 2 * 5 * 50


async def test_if_no_datagrams_come_back_requests_measure_the_latency(far_end: Peer) -> None:
    """Then the loss is unknown, and not zero."""
    result = await _measure_requests(far_end, SocketOptions())
    assert result.median_ns is not None
    assert result.loss is None
    assert result.bytes > 0


async def test_an_end_that_is_gone_cannot_be_measured() -> None:
    """The error is the same as for every connection."""
    with listen("127.0.0.1", 0) as listener:
        peer = Peer(*listener.getsockname())
    with pytest.raises(PeerUnreachable, match="nothing listens"):
        await measure_round_trips(peer)


async def test_an_iperf3_server_is_not_asked() -> None:
    """It would take the connection for a test."""
    with pytest.raises(PeerError):
        await measure_round_trips(Peer.parse("iperf3://127.0.0.1"))
