"""The control conversation with an iperf3 server, in the role of the client.

Every refusal and every silence before the test becomes an error with a remedy.
"""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from ...control.handshake import HandshakeResult
from ...host.description import describe_host
from ...host.tcp_info import read_tcp_info
from ...model.errors import (
    ConnectionClosed,
    LimitReached,
    PeerBusy,
    PeerNotLinkgauge,
    PeerRefused,
    PeerUnreachable,
    RemoteProtocolError,
    ServerEnded,
    SilentPeer,
    explain_os_error,
)
from ...model.ip_address import ip_version_of, unmap_ip_address
from ...model.peer import Peer
from ...model.plan import SocketOptions
from ...near.connect import connect_tcp, describe_server
from ..channel import Iperf3Channel
from ..protocol.cookie_and_streams import make_cookie
from ..protocol.json_bodies import MAX_SERVER_RESULTS_BYTES
from ..protocol.parameters import TestParameters, encode_parameters
from ..protocol.refusals import ErrorNumber, explain_number
from ..protocol.results import EndResults, decode_results, encode_results
from ..protocol.states import State

ANSWER_DEADLINE_S: Final = 10.0
RESULTS_DEADLINE_S: Final = 10.0
_ERROR_WORDS_DEADLINE_S: Final = 1.0
_READ_DEADLINE_S: Final = 60.0
_RETRY_PAUSES_S: Final = (0.1, 0.4)
_QUICK_S: Final = 1.0

_BUSY: Final = "is busy: iperf3 serves one test at a time; try again, or run `linkgauge endpoint --iperf3` there"
_CHECK_LOGIN: Final = (
    "check user, password, public key, and that both clocks agree within 10 s; before 3.17 it needs --iperf3-pkcs1"
)
_REMEDIES: Final[dict[int, str]] = {
    ErrorNumber.AUTHORIZATION: _CHECK_LOGIN,
    ErrorNumber.WINDOW_GRANTED: "give a smaller --window, or raise net.core.rmem_max and wmem_max there",
    ErrorNumber.CONGESTION: "give another --congestion",
    ErrorNumber.MAX_DURATION: "give a shorter --seconds",
    ErrorNumber.DURATION: "give a shorter --seconds",
    ErrorNumber.TOTAL_RATE: "give a lower --rate",
    ErrorNumber.STREAMS: "give fewer --sessions",
    ErrorNumber.WINDOW_SIZE: "give a smaller --window",
    ErrorNumber.BLOCK_SIZE: "give a smaller --block",
    ErrorNumber.DATAGRAM_SIZE: "give another --datagram",
}
_log = logging.getLogger(__name__)


class Iperf3Client:
    """One test, as its client. Call the methods in the order in which they are here, and `aclose` at the end."""

    def __init__(self, channel: Iperf3Channel, peer: Peer) -> None:
        self._channel = channel
        self._peer = peer
        self._has_ended = False
        self.cookie = make_cookie()

    @property
    def server_address(self) -> tuple[str | int, ...]:
        """The address of the server, for further connections."""
        return self._channel.peer_address

    @property
    def local_address(self) -> tuple[str | int, ...]:
        """The address of this end."""
        return self._channel.local_address

    @property
    def remote_address(self) -> str:
        """The IP address of the server, IPv4 in its own notation; empty if unknown."""
        return unmap_ip_address(str(self.server_address[0])) if self.server_address else ""

    @property
    def ip_version(self) -> int:
        """The version of the packets, 4 or 6, whatever the family of the socket."""
        return ip_version_of(self.remote_address)

    @property
    def segment_bytes(self) -> int | None:
        """The payload of a full segment of the connection; None if the kernel does not report it."""
        info = read_tcp_info(self._channel.socket)
        return None if info is None else info.mss_bytes

    async def greet(self) -> None:
        """Name the test; return when the server wants its parameters.

        Raises:
            PeerRefused: The server declines, or is busy with another test.
            PeerNotLinkgauge: It is not an iperf3 server.
            PeerUnreachable: It does not answer, or closed the connection.
        """
        with self._explain("before it answered; check that an iperf3 server listens there"):
            await self._channel.send_cookie(self.cookie)
            await self._expect(State.PARAM_EXCHANGE)

    async def open_test(self, parameters: TestParameters) -> None:
        """Ask for a test; return when the server waits for its streams. Raises as `greet`."""
        has_user = self._peer.iperf3 is not None and self._peer.iperf3.user is not None
        remedy = _CHECK_LOGIN if has_user else "if it wants a user name, give iperf3://USER@HOST"
        with self._explain(f"after the parameters of the test; {remedy}"):
            await self._channel.send_json(encode_parameters(parameters))
            await self._expect(State.CREATE_STREAMS)

    async def await_start(self) -> None:
        """Return when the server has all streams and payload may flow; raise as `greet`."""
        with self._explain("while the sessions were opened; check its output"):
            await self._expect(State.TEST_START)
            await self._expect(State.TEST_RUNNING)

    async def await_end(self) -> None:
        """Return when the server wants the results of this end.

        Raises:
            ServerEnded: The server ends the test by itself.
            ConnectionClosed: The connection ended.
            RemoteProtocolError: It sends a state that it must not send now.
        """
        state = await self._read_next()
        if state is not State.EXCHANGE_RESULTS or not self._has_ended:
            raise RemoteProtocolError(f"it sent {state.name} during the test")

    async def end_test(self) -> None:
        """Tell the server that the test is over; raise ConnectionClosed if it cannot be told."""
        self._has_ended = True
        await self._channel.send_state(State.TEST_END)

    async def exchange_results(self, results: EndResults) -> EndResults:
        """Send the results of this end and return those of the server; raise as `await_end`."""
        await self._channel.send_json(encode_results(results))
        try:
            document = await self._channel.read_json(MAX_SERVER_RESULTS_BYTES, RESULTS_DEADLINE_S)
        except LimitReached as error:
            raise RemoteProtocolError(f"its results are too long: {error}") from error
        far_results = decode_results(document)
        state = await self._read_next()
        if state is not State.DISPLAY_RESULTS:
            raise RemoteProtocolError(f"it sent {state.name} after its results")
        await self._channel.send_state(State.IPERF_DONE)
        return far_results

    async def aclose(self) -> None:
        """Close the connection in order."""
        await self._channel.aclose()

    def abort(self) -> None:
        """Close the connection at once."""
        self._channel.abort()

    def last_received_ns(self) -> int | None:
        """Return the time of the last segment from the server's kernel; None if this kernel does not report it."""
        info = None if self._channel.is_closed else read_tcp_info(self._channel.socket)
        return None if info is None else time.monotonic_ns() - info.receive_idle_ms * 1_000_000

    async def _read_next(self) -> State:
        """Return the next state, however late it comes; raise ServerEnded if the server ends the test."""
        while True:
            try:
                state = await self._channel.read_state(_READ_DEADLINE_S)
            except SilentPeer:  # nothing is due during a test
                continue
            await self._raise_end(state)
            return state

    async def _expect(self, expected: State) -> None:
        state = await self._channel.read_state(ANSWER_DEADLINE_S)
        await self._raise_end(state)
        if state is not expected:
            raise RemoteProtocolError(f"it sent {state.name} in place of {expected.name}")

    async def _raise_end(self, state: State) -> None:
        """Raise ServerEnded if the state ends the test."""
        if state is State.ACCESS_DENIED:
            raise ServerEnded(_BUSY)
        if state is State.SERVER_TERMINATE:
            raise ServerEnded("was stopped there")
        if state is State.SERVER_ERROR:
            number, system_errno = await self._channel.read_error_words(_ERROR_WORDS_DEADLINE_S)
            raise ServerEnded(f"declines: {_explain_words(number, system_errno)}")

    @contextmanager
    def _explain(self, moment: str) -> Generator[None]:
        """Raise a failure before the test as an error that names the peer and a remedy."""
        peer = self._peer
        try:
            yield
        except ServerEnded as error:
            kind = PeerBusy if str(error) == _BUSY else PeerRefused
            raise kind(f"{peer} {error}") from error
        except SilentPeer as error:
            raise PeerUnreachable(
                f"{peer} accepted the connection, but {error}; check that an iperf3 server listens there, and that "
                "its host is not overloaded"
            ) from error
        except ConnectionClosed as error:
            raise PeerUnreachable(f"{peer} closed the connection {moment} ({error})") from error
        except RemoteProtocolError as error:
            raise PeerNotLinkgauge(f"{peer} is not an iperf3 server: {error}; check the port") from error


def _explain_words(number: int | None, system_errno: int | None) -> str:
    text = explain_number(number)
    if system_errno:
        text += f" ({explain_os_error(OSError(system_errno, ''))})"
    remedy = None if number is None else _REMEDIES.get(number)
    return text if remedy is None else f"{text}; {remedy}"


@asynccontextmanager
async def connect_client(
    peer: Peer, binding: SocketOptions, check_address: Callable[[str], None]
) -> AsyncGenerator[tuple[Iperf3Client, HandshakeResult]]:
    """Connect to an iperf3 server and yield its client, greeted, with the facts of both ends; on leaving, close.

    A server stops listening for a moment after each test: a connection that it breaks off at once is tried again.

    Args:
        peer: the server.
        binding: the source and device of the test's connections.
        check_address: called with the IP address of the server before the server receives anything.

    Raises:
        PeerRefused: The server declines, or is busy with another test.
        PeerNotLinkgauge: It is not an iperf3 server.
        PeerUnreachable: It does not answer, or closed the connection.
    """
    loop = asyncio.get_running_loop()
    pauses_s = list(_RETRY_PAUSES_S)
    while True:
        began_s = loop.time()
        try:
            client = await _connect_once(peer, binding, check_address)
            break
        except (PeerUnreachable, PeerRefused) as error:
            if not pauses_s or loop.time() - began_s > _QUICK_S:
                raise
            _log.debug("once more: %s", error)
        await asyncio.sleep(pauses_s.pop(0))
    try:
        near = await describe_host(client.local_address, client.server_address)
        yield client, HandshakeResult(near, describe_server(peer), address=client.remote_address)
    finally:
        client.abort()


async def _connect_once(peer: Peer, binding: SocketOptions, check_address: Callable[[str], None]) -> Iperf3Client:
    client = Iperf3Client(Iperf3Channel(await connect_tcp(peer, binding)), peer)
    try:
        if client.server_address:  # otherwise the connection is reset already
            check_address(str(client.server_address[0]))
        await client.greet()
    except BaseException:
        client.abort()
        raise
    return client
