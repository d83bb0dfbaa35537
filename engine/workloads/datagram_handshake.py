"""Open a UDP session at both ends: connect and prove the address at the near end, accept at the far end.

At the far end, its listener sends the challenge (far/datagram_listener.py); this module has its worker's part,
which has the session's own socket. UDP loses datagrams, so the near end repeats each step until an answer comes.
"""

import asyncio
import contextlib
import errno
import logging
import socket
from typing import Final

from ..host.event_loop import wait_until_readable
from ..model.plan import SocketOptions
from ..model.shared_key import constant_time_equal
from ..protocol.datagram_handshake import (
    HELLO_BYTES,
    DatagramAccepted,
    DatagramChallenge,
    DatagramHello,
    decode_handshake,
)
from . import sockets
from .session_handshake import NOT_ACCEPTED, ConnectTarget, SessionSpec, hello_of
from .udp.socket_options import explain_size

ANSWER_DEADLINE_S: Final = 3.0
REPEAT_S: Final = 0.1
_MAX_REFUSALS: Final = 3  # one may be about a datagram of an earlier socket of this port
_ACCEPTANCE_DEADLINE_S: Final = 10.0  # a worker may have to be started first
_log = logging.getLogger(__name__)


async def connect_datagrams(
    sock: socket.socket,
    spec: SessionSpec,
    target: ConnectTarget,
    options: SocketOptions,
    answer_s: float = ANSWER_DEADLINE_S,
    acceptance_s: float = _ACCEPTANCE_DEADLINE_S,
) -> None:
    """Near end: connect a non-blocking UDP socket, prove its address, and wait until the far end accepts.

    Args:
        sock: The socket, which stays the caller's.
        spec: The session.
        target: The far end's address, and the run to name there.
        options: The source address and the device to bind to.
        answer_s: How long to wait for any answer.
        acceptance_s: How long to wait from then on for the acceptance.

    Raises:
        OSError: no answer, a refusal, or an address that cannot be used, with a remedy.
    """
    sockets.bind_source(sock, options, target.local_port)
    await sockets.connect(sock, target.address)
    await _Opening(sock, spec, target, answer_s, acceptance_s).complete()


class _Opening:
    """The near end's part of one handshake."""

    def __init__(
        self,
        sock: socket.socket,
        spec: SessionSpec,
        target: ConnectTarget,
        answer_s: float,
        acceptance_s: float,
    ) -> None:
        self._sock = sock
        self._answer_s, self._acceptance_s = answer_s, acceptance_s
        self._target = target
        self._secret = bytes.fromhex(spec.secret_hex)
        self._header = hello_of(spec, target)
        self._hello = DatagramHello(self._header)
        self._is_challenged = False
        self._is_accepted = False
        self._refusals = 0
        self._failure: OSError | None = None

    async def complete(self) -> None:
        """Repeat the hello until the far end has accepted; raise OSError if it does not."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self._answer_s
        while not self._is_accepted:
            if loop.time() >= deadline_s:
                raise OSError(NOT_ACCEPTED if self._is_challenged else self._silence_text()) from self._failure
            was_challenged = self._is_challenged
            self._send()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(min(loop.time() + REPEAT_S, deadline_s)):
                    while not self._is_accepted and was_challenged is self._is_challenged:
                        await wait_until_readable(self._sock)
                        self._receive()
            if self._is_challenged and not was_challenged:
                deadline_s = loop.time() + self._acceptance_s

    def _silence_text(self) -> str:
        host, port = self._target.host, self._target.port
        return (
            f"no UDP came back from {host} port {port} in {self._answer_s:g} s; a NAT or firewall on the way "
            f"lets no UDP through: allow UDP port {port} there, in both directions"
        )

    def _send(self) -> None:
        try:
            self._sock.send(self._hello.pack())
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self._take_error(error)

    def _receive(self) -> None:
        """Take in the data that have arrived."""
        while True:
            try:
                data = self._sock.recv(HELLO_BYTES + 1)
            except (BlockingIOError, InterruptedError):
                return
            except OSError as error:
                self._take_error(error)
                return
            answer = decode_handshake(data)
            if isinstance(answer, DatagramChallenge) and constant_time_equal(self._header.token, answer.token):
                self._hello = DatagramHello(self._header, answer.cookie)
                self._is_challenged = True
            elif isinstance(answer, DatagramAccepted) and answer.proves(self._secret):
                self._is_accepted = True
                return  # the rest is the session's

    def _take_error(self, error: OSError) -> None:
        """Raise the error unless it may pass before the deadline."""
        _log.debug("datagrams to %s: %r", self._target.address, error)
        self._failure = error
        if error.errno in sockets.NOT_SENT:
            return
        if error.errno == errno.EMSGSIZE:
            raise OSError(explain_size(self._sock, HELLO_BYTES)) from error
        if not isinstance(error, ConnectionRefusedError):
            raise error
        self._refusals += 1
        if self._refusals >= _MAX_REFUSALS:
            host, port = self._target.host, self._target.port
            raise OSError(
                f"{host} answers, but nothing takes UDP on its port {port}: its endpoint could not open that port "
                "for UDP (its log says so), or another host answers TCP in its place"
            ) from error


def accept_datagrams(sock: socket.socket, spec: SessionSpec) -> None:
    """Far end: confirm to the near end that a worker has its session. If this is lost, the near end asks again."""
    with contextlib.suppress(OSError):
        sock.send(DatagramAccepted.of_session(bytes.fromhex(spec.secret_hex)).pack())


def answer_control_datagram(sock: socket.socket, data: bytes | memoryview, spec: SessionSpec) -> bool:
    """Answer a repeated hello of a session that is open already; return whether the data were the handshake's.

    Call it at both ends for data that begin with `CONTROL_MAGIC`. Answers are shorter than their requests.
    """
    datagram = decode_handshake(bytes(data[: HELLO_BYTES + 1]))
    if isinstance(datagram, DatagramHello) and constant_time_equal(
        spec.make_tickets().token(0), datagram.header.token
    ):
        accept_datagrams(sock, spec)
    return datagram is not None
