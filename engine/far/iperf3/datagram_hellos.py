"""The UDP port of the iperf3 service: hellos of streams, each answered from a connected socket of its own.

A hello names no test, only its source address has it. So the tests of one client address open their streams one
after the other, and a hello is that of the test whose turn it is.
"""

import asyncio
import contextlib
import socket
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Final, Protocol

from ...model.errors import LinkgaugeError, explain_os_error
from ...protocol.iperf3.datagrams import HELLO, reply_to
from ..datagram_sockets import DatagramPort, SocketAddress
from ..listener import format_host
from ..status import LogEntry, LogSink

_MAX_CLIENTS: Final = 1_024  # whose rejections have an entry of the log at hand


class DatagramTest(Protocol):
    """The part of a test that takes its streams' sockets."""

    @property
    def takes_streams(self) -> bool:
        """Whether a stream of its client is awaited."""
        ...

    async def attach_stream(self, sock: socket.socket, serial: int) -> None:
        """Take over the connected socket of a stream; raise LinkgaugeError where none is awaited."""
        ...


class _Turn:
    """The turn of one client's tests: the test that has it, and how many have it or wait for it."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0
        self.test: DatagramTest | None = None


class DatagramHellos:
    """Serves the UDP port beside the listening TCP socket, from `open` to `close`."""

    def __init__(self, log: LogSink) -> None:
        self._log = log
        self._port = DatagramPort(self._handle, len(HELLO) + 1)
        self._turns: dict[str, _Turn] = {}
        self._sources: dict[SocketAddress, DatagramTest] = {}
        self._attaching: set[asyncio.Task[None]] = set()
        self._serials = Counter[DatagramTest]()

    @property
    def is_open(self) -> bool:
        """Whether the port takes datagrams."""
        return self._port.is_open

    def open(self, listener: socket.socket) -> None:
        """Open the UDP port at the address and port of a listening TCP socket; log it where that is impossible."""
        try:
            self._port.open(listener)
        except OSError as error:
            port, reason = listener.getsockname()[1], explain_os_error(error)
            text = f"UDP port {port} cannot be opened: {reason}; tests of UDP are not possible"
            self._log(LogEntry("no_udp", text))

    async def close(self) -> None:
        """Close the port, and end what has not been passed on."""
        self._port.close()
        for task in self._attaching:
            task.cancel()
        await asyncio.gather(*self._attaching, return_exceptions=True)

    @asynccontextmanager
    async def take_turn(self, client: str, test: DatagramTest) -> AsyncGenerator[None]:
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

    def forget(self, test: DatagramTest) -> None:
        """Forget the sources of a test that has ended: another one may have them next."""
        self._sources = {source: owner for source, owner in self._sources.items() if owner is not test}
        self._serials.pop(test, None)

    def _handle(self, data: bytes, source: SocketAddress, local_host: str | None) -> None:
        """Take a hello as a stream of the test whose turn it is. A stranger gets no answer."""
        if source in self._sources:
            return  # a hello that came twice
        client = format_host(source)
        turn = self._turns.get(client)
        test = None if turn is None else turn.test
        if test is None or not test.takes_streams or len(data) != len(HELLO):
            self._log(_rejection(client, "a UDP datagram that opens no session"))
            return
        try:
            sock, strays = self._port.open_connected(source, local_host)
        except OSError as error:
            self._log(_rejection(client, f"a UDP session could not be opened: {explain_os_error(error)}"))
            return
        self._sources[source] = test
        self._serials[test] += 1
        with contextlib.suppress(OSError):
            sock.send(reply_to(data))
        task = asyncio.create_task(self._pass_on(test, sock, client, self._serials[test]))
        self._attaching.add(task)

        def end(task: asyncio.Task[None]) -> None:
            self._attaching.discard(task)
            sock.close()  # the test has its own descriptor, if any

        task.add_done_callback(end)
        for stray, address in strays:
            self._handle(stray, address, local_host)

    async def _pass_on(self, test: DatagramTest, sock: socket.socket, client: str, serial: int) -> None:
        try:
            await test.attach_stream(sock, serial)
        except (LinkgaugeError, OSError) as error:
            reason = explain_os_error(error) if isinstance(error, OSError) else str(error)
            self._log(_rejection(client, reason))


@lru_cache(_MAX_CLIENTS)
def _rejection(client: str, why: str) -> LogEntry:
    return LogEntry("udp_dropped", f"rejected: {why}", client=client)
