"""The session handshake: which end has a listener, and what happens where the other end names none."""

import asyncio
import socket

import pytest
from linkgauge.engine.model.plan import Direction, End, SocketOptions
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.workloads.session_handshake import SessionConfig, SessionSpec, negotiate_listener

SPEC = SessionSpec(Direction.OUT, 1, 0, None, "")


@pytest.mark.parametrize("workload", [Workload.STREAM, Workload.RR, Workload.FETCH])
async def test_only_crr_negotiates_a_listener(workload: Workload) -> None:
    """The other workloads send nothing before their payload."""
    near, far = socket.socketpair()
    with near, far:
        far.setblocking(False)
        assert await negotiate_listener(near, SessionConfig(End.NEAR, workload, SocketOptions()), SPEC) is None
        with pytest.raises(BlockingIOError):
            far.recv(1)


@pytest.mark.parametrize(
    ("sent", "text"), [(b"\0\0", "remote: no port is left"), (b"\1", "closed the connection before it named")]
)
async def test_an_end_without_a_listener_is_reported(sent: bytes, text: str) -> None:
    """The other end has no free port, or goes away before it names one."""
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        far.send(sent)
        far.shutdown(socket.SHUT_WR)
        async with asyncio.timeout(10):
            with pytest.raises(OSError, match=text):
                await negotiate_listener(near, SessionConfig(End.NEAR, Workload.CRR, SocketOptions()), SPEC)
