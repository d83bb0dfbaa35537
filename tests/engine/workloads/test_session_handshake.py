"""The session handshake of crr: where a listener cannot be reached, both ends name the remedy."""

import asyncio
import socket

import pytest
from linkgauge.engine.model.plan import Direction, End, SocketOptions
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.workloads.session_handshake import SessionConfig, SessionSpec, negotiate_listener


async def test_a_listener_that_cannot_be_reached_is_an_error_at_its_end() -> None:
    """The error names both ends and a remedy; no listener is left."""
    with socket.create_server(("127.0.0.1", 0)) as anchor:
        near = socket.create_connection(anchor.getsockname())
        far, _ = anchor.accept()
    spec = SessionSpec(Direction.IN, 1, 0, None, "")
    text = r"the remote host cannot connect to 127\.0\.0\.1 port \d+ of the local one .*--direction out"
    with near, far:
        near.setblocking(False)
        far.setblocking(False)
        answering = asyncio.create_task(
            negotiate_listener(near, SessionConfig(End.NEAR, Workload.CRR, SocketOptions()), spec)
        )
        async with asyncio.timeout(10):
            await asyncio.get_running_loop().sock_recv(far, 2)
            far.close()
            with pytest.raises(OSError, match=text):
                await answering


async def test_a_refused_requester_names_the_remedy() -> None:
    """The port is closed when the requester connects."""
    with socket.create_server(("127.0.0.1", 0)) as anchor:
        near = socket.create_connection(anchor.getsockname())
        far, _ = anchor.accept()
        port = anchor.getsockname()[1]
    with near, far:
        near.setblocking(False)
        far.send(port.to_bytes(2, "big"))
        opening = SessionConfig(End.NEAR, Workload.CRR, SocketOptions())
        async with asyncio.timeout(10):
            with pytest.raises(OSError, match=r"local host cannot connect .*refused.*--direction in"):
                await negotiate_listener(near, opening, SessionSpec(Direction.OUT, 1, 0, None, ""))
