"""The far end's part of a responsiveness test's further probes: answers to handshakes, echoes, a trace of the path.

All are answered in the endpoint's own process: a worker is busy with the load. They carry no payload, count as no
session, and are answered at a bounded rate. This end traces the path only if the plan asks for it.
"""

import asyncio
import socket
import time
from functools import partial
from typing import Final

from ...model.counters.path_trace import PathTrace
from ...model.directions import Direction, End
from ...model.errors import RemoteProtocolError
from ...model.limits import Limits, TokenBucket
from ...model.plan import HANDSHAKE_PROBE_SESSION, PATH_PROBE_SESSION, Plan
from ...path.hop_prober import MAX_PACKETS_S, HopProber, path_secrets
from ...protocol.preamble import DATA_ACCEPTED, DataHello
from ...protocol.probe_datagrams import DATAGRAM_PROBE_BYTES
from ...protocol.tokens import RunSecret, SerialTokens, TicketCheck
from ...workloads.datagram_handshake import accept_datagrams, answer_control_datagram
from ...workloads.session_handshake import SessionSpec
from ...workloads.sockets import set_dscp
from .echo_responder import ECHOES_S, EchoResponder

_LAST_ECHOES_S: Final = 0.25
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
        self._packets_s = max(1, min(MAX_PACKETS_S, limits.udp_packets_s, most_bytes_s // DATAGRAM_PROBE_BYTES))
        self._echo: EchoResponder | None = None
        self._path: HopProber | None = None
        self._is_closed = False

    @property
    def has_datagrams(self) -> bool:
        """Whether the run has probes of datagrams."""
        return self._plan.responsiveness is not None

    async def attach(self, sock: socket.socket, hello: DataHello) -> None:
        """Answer a handshake and close it, or serve a datagram socket from now on.

        Raises RemoteProtocolError for a probe that the run does not have, an invalid or used token, and a probe too
        many; OSError if the near end has gone. If it raises, the caller keeps the socket.
        """
        is_datagram = sock.type == socket.SOCK_DGRAM
        has_probe = self._plan.path if hello.session == PATH_PROBE_SESSION else self.has_datagrams
        if not has_probe or is_datagram is (hello.session == HANDSHAKE_PROBE_SESSION):
            raise RemoteProtocolError("the connection of a probe that the test does not have")
        if self._is_closed:
            raise RemoteProtocolError("the test has ended")
        if not is_datagram:
            await self._answer(sock, hello)
        elif hello.session == PATH_PROBE_SESSION:
            self._open_path(sock, hello)
        else:
            self._open_echo(sock, hello)

    def begin_load(self) -> None:
        """Note that payload begins to flow."""
        if self._path is not None:
            self._path.begin_load()

    async def end_trace(self) -> PathTrace | None:
        """Send no more probes, and return this end's trace of the path; None if it has none.

        The last echoes are waited for: without their socket they would be logged as a stranger's.
        """
        if self._path is None:
            return None
        self._path.stop()
        trace = self._path.take_trace()
        await asyncio.sleep(_LAST_ECHOES_S)
        return trace

    async def _answer(self, sock: socket.socket, hello: DataHello) -> None:
        if not self._handshakes.take(time.monotonic_ns()):
            raise RemoteProtocolError("more handshake probes than the test has")
        if hello.window_bytes is not None or not self._handshake_tokens.redeem(hello.generation, hello.token):
            raise RemoteProtocolError("a handshake probe with an invalid token")
        await asyncio.get_running_loop().sock_sendall(sock, DATA_ACCEPTED)
        sock.close()

    def _open_echo(self, sock: socket.socket, hello: DataHello) -> None:
        spec = self._check(hello)
        if self._echo is not None:
            self._echo.close()
        own = self._take_over(sock)
        try:
            self._echo = EchoResponder(own, spec, self._echoes_s)
        except BaseException:
            own.close()
            raise

    def _open_path(self, sock: socket.socket, hello: DataHello) -> None:
        """Trace the path back to the address that has echoed the session's cookie."""
        spec = self._check(hello)
        if self._path is not None:
            raise RemoteProtocolError("a second trace of the path")
        own = self._take_over(sock)
        secrets = path_secrets(self._tickets.secret, End.FAR)
        try:
            accept_datagrams(own, spec)
            answer = partial(answer_control_datagram, own, spec=spec)
            self._path = HopProber(own, End.FAR, secrets, self._packets_s, answer)
        except BaseException:
            own.close()
            raise

    def _check(self, hello: DataHello) -> SessionSpec:
        """Return the session of a hello; raise RemoteProtocolError if its token is invalid or used."""
        settings = (hello.direction, hello.session, hello.generation, hello.window_bytes)
        secret = self._tickets.check(*settings, hello.token)
        if secret is None:
            raise RemoteProtocolError("a data connection with an invalid token")
        return SessionSpec(*settings, secret.hex())

    def _take_over(self, sock: socket.socket) -> socket.socket:
        """Return a descriptor of this end's own, with the mark of the run's packets."""
        own = sock.dup()
        if self._plan.socket.dscp is not None:
            try:
                set_dscp(own, self._plan.socket.dscp)
            except BaseException:
                own.close()
                raise
        return own

    def close(self) -> None:
        """Answer no further probes."""
        self._is_closed = True
        if self._echo is not None:
            self._echo.close()
            self._echo = None
        if self._path is not None:
            self._path.close()


def _handshake_tokens(secret: RunSecret) -> SerialTokens:
    """Return the tokens of the handshake probe: by serials, under the secret of the session's first generation."""
    return SerialTokens(secret.session_secret(Direction.OUT, HANDSHAKE_PROBE_SESSION, 0, None))
