"""The session handshake: the listener of `crr`, an end without one, the options of a connection."""

import asyncio
import os
import shutil
import socket
import subprocess
import sys

import pytest
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.plan import SocketOptions
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.workloads.session_handshake import SessionConfig, SessionSpec, negotiate_listener
from linkgauge.engine.workloads.sockets import available_congestion_controls

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


_CONNECT = """
import asyncio, socket, sys
from linkgauge.engine.model.plan import SocketOptions
from linkgauge.engine.workloads import session_handshake, sockets

async def main():
    with socket.create_server(("127.0.0.2", 0)) as listener, socket.socket() as sock:
        options = SocketOptions(congestion=sys.argv[1])
        sockets.prepare(sock, None, options)
        target = session_handshake.ConnectTarget("00", *listener.getsockname())
        await session_handshake.connect_to_target(sock, target, options)
        print(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16).rstrip(b"\\0").decode())

asyncio.run(main())
"""


@pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("ip", "unshare"))), reason="makes a namespace as root"
)
def test_the_congestion_control_of_a_plan_outlasts_that_of_a_route() -> None:
    """The kernel takes the route's as a socket connects (ip-route(8), congctl)."""
    other = next((name for name in available_congestion_controls() if name != "reno"), None)
    if other is None:
        pytest.skip("this kernel has one congestion control")
    commands = f"ip link set lo up; ip route replace local 127.0.0.2 dev lo table local congctl {other}"
    line = f'{commands} || exit 77; exec "$@"'
    done = subprocess.run(
        [
            str(shutil.which("unshare")),
            "--net",
            "sh",
            "-c",
            line,
            "sh",
            sys.executable,
            "-P",
            "-c",
            _CONNECT,
            "reno",
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    if done.returncode == 77 or "unshare" in done.stderr:
        pytest.skip(done.stderr)
    assert done.stdout.strip() == "reno", done.stderr
