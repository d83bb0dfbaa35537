"""A stream as messages of a WebSocket, read by the rules of RFC 6455."""

import asyncio
import socket
import struct

import pytest
from linkgauge.engine.metering.shared_counters import SharedCounters
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import Mode
from linkgauge.engine.protocol.foreign.websocket_frames import message_head
from linkgauge.engine.workloads.framed.message_sender import MessageSender
from linkgauge.engine.workloads.session import Payload, SessionContext, WorkerResources
from linkgauge.engine.workloads.socket_io import create_poller

from ...tcp_pair import pair

DEADLINE_S = 20.0
MESSAGES = 40


async def read_exactly(sock: socket.socket, count: int) -> bytes:
    """Read bytes in pieces of changing size, as a slow reader does."""
    data = b""
    while len(data) < count:
        part = await asyncio.get_running_loop().sock_recv(sock, min(count - len(data), 1 + len(data) % 70_001))
        assert part
        data += part
    return data


@pytest.mark.every
@pytest.mark.parametrize("mode", [Mode.COPY, Mode.SENDFILE])
@pytest.mark.parametrize("block_bytes", [1_024, 65_535, 65_536, 262_144])
@pytest.mark.parametrize("is_alone", [True, False], ids=["thread", "event loop"])
async def test_every_message_is_whole_whatever_the_reader_takes_at_a_time(
    mode: Mode, block_bytes: int, is_alone: bool
) -> None:
    """A partial send is followed by the rest of the same message, in a thread and on the event loop."""
    head = message_head(block_bytes)
    counters, poller = SharedCounters.create(), create_poller()
    payload = Payload(block_bytes, mode, head)
    near, far = pair()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 30_000)
    far.setblocking(False)
    lost: list[str] = []
    resources = WorkerResources(payload, memoryview(bytearray(1 << 20)), mode, Payload(0), poller)
    sender = MessageSender(near, SessionContext(counters, 0, 0, lost.append), resources)
    try:
        sender.start(is_alone=is_alone)
        async with asyncio.timeout(DEADLINE_S):
            for _ in range(MESSAGES):
                assert await read_exactly(far, 1) == b"\x82"
                (length,) = await read_exactly(far, 1)
                if length == 126:
                    (length,) = struct.unpack(">H", await read_exactly(far, 2))
                    assert length > 125
                elif length == 127:
                    (length,) = struct.unpack(">Q", await read_exactly(far, 8))
                    assert length > 65_535
                assert len(head) + length == block_bytes
                await read_exactly(far, length)
            sender.refresh()
        slot = counters.read(Direction.OUT, 1)
        assert slot is not None
        assert slot.bytes >= (MESSAGES - 1) * block_bytes
        assert not lost
    finally:
        sender.close()
        far.close()
        poller.close()
        payload.close()
        counters.close()
