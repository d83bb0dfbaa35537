"""Both ends of a session of bursts over loopback: what one sends, the other notes."""

import asyncio

import pytest
from linkgauge.engine.bursts.burst_sender import SentBurst
from linkgauge.engine.bursts.burst_socket import BurstSocket
from linkgauge.engine.protocol.burst_datagrams import BurstRequest

from .socket_pair import connected_sockets

SECRET = b"k" * 32


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_a_burst_arrives_at_the_other_end_with_its_times(host: str) -> None:
    """And every other datagram is passed on; a closed socket sends and reads no more."""
    others: list[bytes] = []
    near, far = (BurstSocket(sock, SECRET, others.append) for sock in connected_sockets(host))
    done: asyncio.Future[SentBurst | None] = asyncio.get_running_loop().create_future()
    try:
        near.send(BurstRequest(1, 300, 0, 1_000), lambda burst, _error: done.set_result(burst))
        assert near.is_sending
        async with asyncio.timeout(20):
            sent = await done
            while len(far.receiver.places) < 300:  # noqa: ASYNC110 - only looking tells
                await asyncio.sleep(0.005)
        assert sent is not None
        assert not near.is_sending
        assert list(far.receiver.places) == list(range(300))
        assert list(far.receiver.stamps_ns) == list(sent.stamps_ns)
        assert list(far.receiver.arrived_ns) == sorted(far.receiver.arrived_ns)
        assert far.receiver.unread == 0
        near.answer(b"something else")
        async with asyncio.timeout(20):
            while not others:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        assert others == [b"something else"]
        assert near.header_bytes == (28 if host == "127.0.0.1" else 48)
        assert near.largest_datagram >= 1_000
    finally:
        near.close()
        far.close()
    assert near.raw.fileno() == -1
    near.close()


async def test_a_socket_that_is_closed_while_it_sends_is_closed_once_its_thread_has_ended() -> None:
    """No thread sends on a descriptor that another socket may have by then."""
    near, far = (BurstSocket(sock, SECRET, lambda _data: None) for sock in connected_sockets())
    near.send(BurstRequest(1, 0, 1_000, 100, 100_000), lambda _burst, _error: pytest.fail("it was closed"))
    near.close()
    far.close()
    async with asyncio.timeout(20):
        while near.raw.fileno() >= 0:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
