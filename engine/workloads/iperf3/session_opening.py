"""Open the sessions of an iperf3 test at both ends: the test's cookie over TCP, a hello and its reply over UDP.

Over TCP nothing comes back. A server recognizes a test's streams by the cookie, and each of them by the order in
which they connect: the near end opens one after the other. At the far end the listener has read the cookie, or
answered the hello, before a worker gets the socket.
"""

import asyncio
import socket
from importlib import import_module
from typing import Final

from ...host.event_loop import wait_until_readable
from ...iperf3.protocol.datagrams import HELLO, is_reply
from ...model.plan import DEFAULT_SETTINGS, Mode, Settings, SocketOptions
from .. import sockets
from ..session_handshake import ConnectTarget, SessionConfig, SessionSpec, connect_to_target
from ..udp import socket_options

HELLO_DEADLINE_S: Final = 5.0
_MAX_REPLY_BYTES: Final = 4
_MAX_EARLY_DATAGRAMS: Final = 4_096


async def open_session(
    sock: socket.socket,
    spec: SessionSpec,
    target: ConnectTarget | None,
    config: SessionConfig,
    settings: Settings = DEFAULT_SETTINGS,
) -> None:
    """Set a session's socket up, and open the session at the near end.

    A server that sends datagrams begins once it has answered the last hello: the socket has its buffer by then.

    Args:
        sock: The socket, which the caller keeps.
        spec: The session, whose secret is the test's cookie.
        target: The server's address at the near end; None at the far end, whose socket is connected.
        config: The workload and its socket options.
        settings: The rate, which decides the buffer of a receiver of datagrams.

    Raises:
        OSError: the kernel declines an option, or the server cannot be reached, with a remedy.
    """
    if config.workload.is_datagram:
        allows_fragments = config.iperf3 is not None and config.iperf3.allows_fragments
        socket_options.set_up(sock, config.options, allows_fragments=allows_fragments)
        if not config.is_sender(spec.direction):
            import_module(".datagram_sessions", __package__)  # now, and not while datagrams wait
            socket_options.set_up_receiver(sock, Mode.QUALITY, settings)
        if target is None:
            drop_early_datagrams(sock)
        else:
            await connect_datagrams(sock, target, config.options)
    else:
        sockets.prepare(sock, spec.window_bytes, config.session_options)
        if target is not None:
            await connect_stream(sock, spec, target, config.options)


async def connect_stream(
    sock: socket.socket, spec: SessionSpec, target: ConnectTarget, options: SocketOptions
) -> None:
    """Near end: connect, and send the test's cookie."""
    await connect_to_target(sock, target, options)
    await asyncio.get_running_loop().sock_sendall(sock, bytes.fromhex(spec.secret_hex))


async def connect_datagrams(sock: socket.socket, target: ConnectTarget, options: SocketOptions) -> None:
    """Near end: connect a UDP socket, send a hello, and wait for the reply; raise OSError without one.

    A second hello would be a second stream, or payload of the first: it is sent once.
    """
    await connect_to_target(sock, target, options)
    try:
        sock.send(HELLO)
        async with asyncio.timeout(HELLO_DEADLINE_S):
            for _ in range(_MAX_EARLY_DATAGRAMS):
                if is_reply(await _receive(sock)):
                    return
            raise OSError(f"{target.host} sends no reply to the hello over UDP, but payload")
    except TimeoutError as error:
        raise OSError(
            f"{target.host} answers on TCP port {target.port}, and nothing came back from its UDP port in "
            f"{HELLO_DEADLINE_S:g} s; allow UDP port {target.port} in every firewall on the way, in both directions"
        ) from error
    except ConnectionRefusedError as error:
        raise OSError(
            f"{target.host} answers on TCP port {target.port}, and nothing takes UDP on that port there; if a NAT "
            "or a container is on the way, let it pass the UDP port as well"
        ) from error


async def _receive(sock: socket.socket) -> bytes:
    """Return the next datagram of a few bytes; of a longer one its beginning."""
    while True:
        try:
            return sock.recv(_MAX_REPLY_BYTES + 1)
        except (BlockingIOError, InterruptedError):
            await wait_until_readable(sock)


def drop_early_datagrams(sock: socket.socket) -> None:
    """Far end: drop datagrams from before the socket was connected. No payload comes before the test."""
    for _ in range(_MAX_EARLY_DATAGRAMS):
        try:
            sock.recv(1)
        except (BlockingIOError, InterruptedError):
            return
