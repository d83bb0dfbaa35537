"""The program of a far end that ssh starts: control over standard input and output, data over its own TCP port.

It ends with its standard input, at a deadline if something blocks it. A pulled cable does not end that input: then
it ends after a time of silence (keepalive.py). All other output goes to standard error, which ssh passes on.
"""

import asyncio
import io
import json
import os
import signal
import socket
import stat
import sys
import time
from dataclasses import dataclass
from typing import Any, Final

from ..control.connection import ControlConnection
from ..control.keepalive import (
    DEAD_PEER_CHECK_S,
    DEAD_PEER_TIMEOUT_NS,
    KEEPALIVE_INTERVAL_S,
    DeadPeerDetector,
    Liveness,
)
from ..control.multiplexer import Mux, MuxChannel
from ..far.endpoint import Endpoint
from ..far.listener import listen
from ..host.debug_log import configure_debug_log, keep_warnings_in_background
from ..host.event_loop import run
from ..model.directions import End
from ..model.errors import DecodeError, EndpointError
from ..model.limits import Limits
from ..model.plan import SECOND_NS
from ..model.serialization import decode, encode
from ..workloads.fastest_mode import ModeChooser
from ..workloads.sockets import local_address
from .bundle import BOOTSTRAP_MARK

MAX_LINE_BYTES: Final = 4_096
_LOCALLY: Final = "127.0.0.1"
_END_DEADLINE_S: Final = 1.5
_LATE_END_DEADLINE_S: Final = 0.3  # if a near end has been silent before
_REQUEST_DEADLINE_S: Final = 60  # from the start until the request to listen arrives
_CONNECTION_PARTS: Final = 4

AddressPort = tuple[str, int]


@dataclass(frozen=True, slots=True)
class ListenRequest:
    """Near, one line of JSON: where to listen for data connections; 0 takes a free port.

    `is_through`: only for connections that ssh itself forwards.
    """

    data_port: int
    is_through: bool


@dataclass(frozen=True, slots=True)
class ListenReply:
    """Far, one line of JSON after the mark: it listens there, or it cannot, and ends."""

    port: int = 0
    host: str | None = None
    problem: str | None = None


def main() -> None:
    """Serve the near end at the other end of standard input and output."""
    signal.alarm(_REQUEST_DEADLINE_S)
    configure_debug_log(has_stderr=False)
    keep_warnings_in_background()
    streams = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(2, 1)
    os.close(nothing)
    _say(streams[1], "ready")
    line = io.FileIO(streams[0], closefd=False).readline(MAX_LINE_BYTES)
    try:
        request = decode(ListenRequest, json.loads(line))
        listener, host = _listen(request)
    except (EndpointError, DecodeError, ValueError) as error:
        _say(streams[1], "up", ListenReply(problem=str(error)))
        sys.exit(3)
    signal.alarm(0)
    _say(streams[1], "up", ListenReply(listener.getsockname()[1], host))
    run(_serve(listener, streams, is_through=request.is_through))


def _say(fd: int, word: str, up: ListenReply | None = None) -> None:
    os.write(fd, f"{BOOTSTRAP_MARK} {word} {'' if up is None else json.dumps(encode(up))}\n".encode())


def _listen(request: ListenRequest) -> tuple[socket.socket, str | None]:
    """Listen on the address of the ssh connection; on all, if that address is translated or unknown."""
    came_to = _came_over()[1]
    if request.is_through:
        return listen(_LOCALLY, request.data_port, option="--data-port"), None
    if came_to is not None:
        try:
            return listen(came_to[0], request.data_port, option="--data-port"), came_to[0]
        except EndpointError:
            pass
    return listen(None, request.data_port, option="--data-port"), None


def _came_over() -> tuple[AddressPort | None, AddressPort | None]:
    """Return the near and the far address of the ssh connection, from sshd's environment."""
    parts = os.environ.get("SSH_CONNECTION", "").split()
    if len(parts) != _CONNECTION_PARTS or not (parts[1] + parts[3]).isdecimal():
        return None, None
    return (parts[0], int(parts[1])), (parts[2], int(parts[3]))


def _with_scope(address: AddressPort | None) -> tuple[Any, ...]:
    """Return an address as a socket has it: the interface of a link-local one is a number at its end."""
    if address is None or "%" not in address[0]:
        return address or ()
    try:
        return local_address(*address)
    except OSError:  # no such interface
        return address


async def _serve(listener: socket.socket, streams: tuple[int, int], *, is_through: bool) -> None:
    stop = asyncio.Event()
    peer, own = _came_over()
    endpoint = Endpoint(listener, limits=Limits.widest(), mode_chooser=ModeChooser())
    endpoint.accepts_control = False
    async with endpoint:

        def accept(_channel: MuxChannel) -> asyncio.Protocol:
            link = ControlConnection(End.FAR)
            endpoint.serve_connection(link)
            return link

        def lost() -> None:
            _end_within(_END_DEADLINE_S)
            stop.set()

        mux = Mux(accept, lost, extra={"peername": _with_scope(peer), "sockname": _with_scope(own)})
        await _attach(mux, *streams)
        watching = asyncio.create_task(_watch(mux, endpoint, is_through=is_through))
        await stop.wait()
        watching.cancel()


async def _attach(mux: Mux, reading: int, writing: int) -> None:
    """Connect the streams: one socket from sshd, or two pipes from other servers."""
    loop = asyncio.get_running_loop()
    status = os.fstat(reading)
    if stat.S_ISSOCK(status.st_mode) and status.st_ino == os.fstat(writing).st_ino:
        # As a pipe to write to it would be taken for closed as soon as there is something to read.
        os.close(writing)
        await loop.create_unix_connection(lambda: mux, sock=socket.socket(fileno=reading))
        return
    await loop.connect_write_pipe(lambda: mux, open(writing, "wb", 0))  # noqa: ASYNC230, SIM115 - the loop closes it
    await loop.connect_read_pipe(lambda: mux, open(reading, "rb", 0))  # noqa: ASYNC230, SIM115


def _end_within(seconds: float) -> None:
    """Set an alarm that ends this process if something blocks it; its workers end with it."""
    if signal.getitimer(signal.ITIMER_REAL)[0] == 0:
        signal.setitimer(signal.ITIMER_REAL, seconds)


async def _watch(mux: Mux, endpoint: Endpoint, *, is_through: bool) -> None:
    """Send keepalives, and end when the near end has vanished.

    Under load the near end must be heard of all the time. Otherwise its host may be busy, and a near end that is
    only late should not have to log in again. If ssh carries the data, its packets come from this host's sshd.
    """
    now_ns = said_ns = time.monotonic_ns()
    liveness, tether = Liveness(now_ns), DeadPeerDetector(now_ns)
    while True:
        await asyncio.sleep(DEAD_PEER_CHECK_S)
        now_ns, total_bytes, loaded_ns = time.monotonic_ns(), endpoint.total_bytes(), endpoint.last_received_ns()
        if now_ns - said_ns >= KEEPALIVE_INTERVAL_S * SECOND_NS:
            said_ns = now_ns
            mux.send_keepalive()
        packet_ns = 0 if is_through or loaded_ns is None else loaded_ns
        silent_ns = tether.measure_silence_ns(now_ns, max(mux.last_received_ns, packet_ns), total_bytes)
        if loaded_ns is not None and silent_ns > DEAD_PEER_TIMEOUT_NS:
            _end_within(_LATE_END_DEADLINE_S)
            mux.connection_lost(None)
        elif liveness.check_timeout(now_ns, mux.last_received_ns, total_bytes) is not None:
            mux.connection_lost(None)
