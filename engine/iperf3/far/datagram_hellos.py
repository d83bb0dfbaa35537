"""The UDP port of the iperf3 service: hellos of streams, each answered from a connected socket of its own.

A hello does not name its test, and shows only its source address. So the tests of one client address open their
streams one after the other, and a hello belongs to the test whose turn it is.
"""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

from ...far.datagram_sockets import DatagramService, SocketAddress
from ...far.listener import format_host
from ...far.status import LogSink
from ..protocol.datagrams import HELLO, reply_to
from .run import ClientTest


class _Turn:
    """The turn of one client's tests: the test that has it, and how many have it or wait for it."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0
        self.test: ClientTest | None = None


class DatagramHellos(DatagramService):
    """Serves the UDP port beside the listening TCP socket, from `open` to `close`."""

    def __init__(self, log: LogSink) -> None:
        super().__init__(log, len(HELLO) + 1, "tests of UDP")
        self._turns: dict[str, _Turn] = {}
        self._sources: dict[SocketAddress, ClientTest] = {}
        self._serials = Counter[ClientTest]()

    @asynccontextmanager
    async def take_turn(self, client: str, test: ClientTest) -> AsyncGenerator[None]:
        """Wait until no other test of a client opens streams; hellos of its address are this test's meanwhile."""
        turn = self._turns.setdefault(client, _Turn())
        turn.users += 1
        try:
            async with turn.lock:
                turn.test = test
                try:
                    yield
                finally:
                    turn.test = None
        finally:
            turn.users -= 1
            if not turn.users:
                del self._turns[client]

    def forget(self, test: ClientTest) -> None:
        """Forget the sources of a test that has ended: another one may have them next."""
        self._sources = {source: owner for source, owner in self._sources.items() if owner is not test}
        self._serials.pop(test, None)

    def _handle(self, data: bytes, source: SocketAddress, local_host: str | None) -> None:
        """Take a hello as a stream of the test whose turn it is. Do not answer a stranger."""
        if source in self._sources:
            return  # a hello that came twice
        client = format_host(source)
        turn = self._turns.get(client)
        test = None if turn is None else turn.test
        # Each is passed on in the background: data that have come already count, too.
        is_awaited = test is not None and test.takes_streams and self._serials[test] < test.stream_count
        if test is None or not is_awaited or len(data) != len(HELLO):
            self._reject(client, "a UDP datagram that opens no session")
            return
        opened = self._connect(source, local_host, client)
        if opened is None:
            return
        sock, strays = opened
        self._sources[source] = test
        self._serials[test] += 1
        with contextlib.suppress(OSError):
            sock.send(reply_to(data))
        self._pass_on(sock, client, partial(test.attach_stream, sock, self._serials[test]))
        for stray, address in strays:
            self._handle(stray, address, local_host)
