"""The far end's part of a responsiveness test's further probes: it answers handshakes, and echoes datagrams.

Both are answered in the endpoint's own process: a worker is busy with the load. They carry no payload, count as no
session, and are answered at a bounded rate.
"""

import asyncio
import socket
import time
from typing import Final

from ...model.directions import Direction
from ...model.errors import RemoteProtocolError
from ...model.limits import Limits, TokenBucket
from ...model.plan import DATAGRAM_PROBE_SESSION, HANDSHAKE_PROBE_SESSION, Plan
from ...protocol.preamble import DATA_ACCEPTED, DataHello
from ...protocol.probe_datagrams import DATAGRAM_PROBE_BYTES
from ...protocol.tokens import RunSecret, SerialTokens, TicketCheck
from ...workloads.session_handshake import SessionSpec
from ...workloads.sockets import set_dscp
from .echo_responder import ECHOES_S, EchoResponder

_HANDSHAKES_S: Final = 20  # the near end begins ten


class ProbeResponders:
    """Answers the further probes of one run, from its beginning to `close`.

    Args:
        plan: The run's plan: without a responsiveness test there are no such probes.
        limits: The endpoint's limits, which hold for echoes as well.
        tickets: The check of the run's tokens.
    """

    def __init__(self, plan: Plan, limits: Limits, tickets: TicketCheck) -> None:
        self._plan = plan
        self._tickets = tickets
        self._handshakes = TokenBucket(_HANDSHAKES_S, time.monotonic_ns())
        self._handshake_tokens = _handshake_tokens(tickets.secret)
        most_bytes_s = limits.udp_rate_bit_s // 8
        self._echoes_s = max(1, min(ECHOES_S, limits.udp_packets_s, most_bytes_s // DATAGRAM_PROBE_BYTES))
        self._echo: EchoResponder | None = None
        self._is_closed = False

    @property
    def has_datagrams(self) -> bool:
        """Whether the run has the datagram probe."""
        return self._plan.responsiveness is not None

    async def attach(self, sock: socket.socket, hello: DataHello) -> None:
        """Answer a handshake and close it, or echo on a datagram socket from now on.

        Raises RemoteProtocolError for a probe that the run does not have, an invalid or used token, and a probe too
        many; OSError if the near end has gone. If it raises, the caller keeps the socket.
        """
        is_datagram = sock.type == socket.SOCK_DGRAM
        if self._plan.responsiveness is None or is_datagram is not (hello.session == DATAGRAM_PROBE_SESSION):
            raise RemoteProtocolError("the connection of a probe that the test does not have")
        if self._is_closed:
            raise RemoteProtocolError("the test has ended")
        if is_datagram:
            self._open_echo(sock, hello)
        else:
            await self._answer(sock, hello)

    async def _answer(self, sock: socket.socket, hello: DataHello) -> None:
        if not self._handshakes.take(time.monotonic_ns()):
            raise RemoteProtocolError("more handshake probes than the test has")
        if hello.window_bytes is not None or not self._handshake_tokens.redeem(hello.generation, hello.token):
            raise RemoteProtocolError("a handshake probe with an invalid token")
        await asyncio.get_running_loop().sock_sendall(sock, DATA_ACCEPTED)
        sock.close()

    def _open_echo(self, sock: socket.socket, hello: DataHello) -> None:
        settings = (hello.direction, hello.session, hello.generation, hello.window_bytes)
        secret = self._tickets.check(*settings, hello.token)
        if secret is None:
            raise RemoteProtocolError("a data connection with an invalid token")
        if self._echo is not None:
            self._echo.close()
        own = sock.dup()
        dscp = self._plan.socket.dscp
        try:
            if dscp is not None:
                set_dscp(own, dscp)
            self._echo = EchoResponder(own, SessionSpec(*settings, secret.hex()), self._echoes_s)
        except BaseException:
            own.close()
            raise

    def close(self) -> None:
        """Answer no further probes."""
        self._is_closed = True
        if self._echo is not None:
            self._echo.close()
            self._echo = None


def _handshake_tokens(secret: RunSecret) -> SerialTokens:
    """Return the tokens of the handshake probe: by serials, under the secret of the session's first generation."""
    return SerialTokens(secret.session_secret(Direction.OUT, HANDSHAKE_PROBE_SESSION, 0, None))
