"""A stream of frames of a WebSocket: all bytes count, and messages between them reach the owner."""

import asyncio
import socket
import struct

import pytest
from linkgauge.engine.metering.shared_counters import SharedCounters
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import Mode
from linkgauge.engine.protocol.foreign.websocket_frames import Opcode
from linkgauge.engine.workloads.framed.frame_receiver import FrameReceiver
from linkgauge.engine.workloads.session import Payload, SessionContext, WorkerResources
from linkgauge.engine.workloads.socket_io import create_poller

from ...tcp_pair import pair

DEADLINE_S = 20.0
BINARY = b"\x82\x7f" + struct.pack(">Q", 300_000) + bytes(300_000)
TEXT = b"\x81\x05hello"
PING = b"\x89\x00"
CLOSE = b"\x88\x02" + struct.pack(">H", 1_000)


async def receive(data: bytes, mode: Mode, *, is_alone: bool) -> tuple[int, list[tuple[int, bytes]], list[str]]:
    """Return the counted bytes, the messages and the reasons of the end."""
    counters, poller = SharedCounters.create(), create_poller()
    near, far = pair()
    near.setblocking(False)
    far.setblocking(False)
    messages: list[tuple[int, bytes]] = []
    lost: list[str] = []
    ended = asyncio.Event()

    def on_lost(why: str) -> None:
        lost.append(why)
        ended.set()

    context = SessionContext(
        counters, 0, 0, on_lost, on_message=lambda opcode, text: messages.append((opcode, text))
    )
    buffer = memoryview(bytearray(1 << 20))
    receiver = FrameReceiver(near, context, WorkerResources(Payload(65_536), buffer, mode, Payload(0), poller))
    try:
        receiver.start(is_alone=is_alone)
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.get_running_loop().sock_sendall(far, data)
            far.shutdown(socket.SHUT_WR)
            await ended.wait()
        reading = counters.read(Direction.OUT, 1)
        assert reading is not None
        return reading.bytes, messages, lost
    finally:
        receiver.close()
        poller.close()
        counters.close()
        far.close()


@pytest.mark.parametrize("mode", [Mode.COPY, Mode.DISCARD])
@pytest.mark.parametrize("is_alone", [True, False], ids=["thread", "event loop"])
async def test_every_byte_counts_and_reports_reach_the_owner(mode: Mode, is_alone: bool) -> None:
    """In a thread and on the event loop; pings are left out, and texts that come too fast."""
    data = BINARY + TEXT + BINARY + PING + TEXT * 3 + BINARY + CLOSE
    counted, messages, lost = await receive(data, mode, is_alone=is_alone)
    assert counted == len(data)
    assert messages[0] == (Opcode.TEXT, b"hello")
    assert messages[-1] == (Opcode.CLOSE, struct.pack(">H", 1_000))
    assert 2 <= len(messages) <= 5
    assert lost == ["closed by the other host"]


@pytest.mark.parametrize("is_alone", [True, False], ids=["thread", "event loop"])
async def test_a_frame_that_a_server_must_not_send_ends_the_session_with_that_reason(is_alone: bool) -> None:
    """The owner tells the user."""
    _, _, lost = await receive(BINARY + b"\x82\x7f" + struct.pack(">Q", 1 << 63), Mode.COPY, is_alone=is_alone)
    assert len(lost) == 1
    assert "2^63" in lost[0]
