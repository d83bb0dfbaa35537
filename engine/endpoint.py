"""The far end as a daemon: one TCP port for control and data, many clients at once."""

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import Callable
from typing import Final, Self

from .auth import Key
from .errors import LinkgaugeError, RemoteProtocolError
from .far import GREETING_DEADLINE_S, Registry, serve_client
from .link import ControlLink
from .messages import (
    CONTROL_KIND,
    DATA_HELLO_BYTES,
    PREAMBLE_BYTES,
    PROTOCOL_VERSION,
    DataHello,
    Refuse,
    encode_frame,
    preamble,
    read_preamble,
)
from .nic import prepare as prepare_nic
from .plan import DEFAULT_PORT, End
from .samples import Reason

_BACKLOG: Final = 1_024
_ACCEPT_PAUSE_S: Final = 0.2
_REFUSE_DEADLINE_S: Final = 0.3  # one at a time: others wait behind it
_OUT_OF_ROOM: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_NO_DESCRIPTOR: Final = "it has no descriptor left for another connection; raise the limit there (ulimit -n)"
_SHUTDOWN_DEADLINE_S: Final = 3.0


class EndpointError(LinkgaugeError):
    """The endpoint cannot listen where it was asked to."""


def listen(bind: str | None, port: int, *, option: str = "--port") -> socket.socket:
    """Return a listening socket; without an address, on all of both families. EndpointError where taken.

    `option` is what the port is chosen with, for the error's text.
    """
    try:
        if bind is None:
            if socket.has_dualstack_ipv6():
                with contextlib.suppress(OSError):
                    return socket.create_server(
                        ("", port), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True
                    )
            return socket.create_server(("", port), backlog=_BACKLOG)
        family, _type, _protocol, _name, address = socket.getaddrinfo(
            bind, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        return socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        where = f"port {port}" if bind is None else f"{bind} port {port}"
        hint = ""
        if error.errno == errno.EADDRINUSE:
            hint = f"; another endpoint may be running there already, or choose another with {option}"
        elif error.errno == errno.EACCES:
            hint = f"; ports below 1024 need privileges, choose another with {option}"
        elif isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL:
            hint = "; --bind takes an address of this host"
        raise EndpointError(f"cannot listen on {where}: {error.strerror or error}{hint}") from error


class Endpoint:
    """Serves clients on a listening socket while its `async with` block lasts: those with the key, if any.

    Without `takes_control` only data connections come there, and control comes by `serve`.
    """

    def __init__(
        self,
        listener: socket.socket,
        log: Callable[[str], None] = lambda _: None,
        *,
        key: Key | None = None,
        takes_control: bool = True,
    ) -> None:
        self._listener = listener
        self._key = key
        self._log = log
        self._takes_control = takes_control
        self._registry: Registry = {}
        self._tasks: set[asyncio.Task[None]] = set()
        # Those that have not said what they are, the oldest first.
        self._silent: dict[asyncio.Task[None], socket.socket] = {}
        self._spare: int | None = None  # given up for a moment where there is none to refuse a client with
        self._accepting: asyncio.Task[None] | None = None

    @property
    def address(self) -> tuple[str, int]:
        """The address and port it listens on."""
        host, port = self._listener.getsockname()[:2]
        return host, port

    async def __aenter__(self) -> Self:
        """Start accepting."""
        prepare_nic()
        self._listener.setblocking(False)
        self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._accepting = asyncio.create_task(self._accept())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop accepting, end every run with a word to its near end, and wait for all to be given back."""
        assert self._accepting is not None  # noqa: S101 - entered
        self._accepting.cancel()
        await asyncio.wait([self._accepting])
        self._listener.close()
        self._give_up_spare()
        for run in self._registry.values():
            run.end(Reason.PEER_STOPPED, "the far end is shutting down")
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_SHUTDOWN_DEADLINE_S)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def serve(self, link: ControlLink) -> None:
        """Serve a control connection that came another way than by the listening socket."""
        self._keep(asyncio.create_task(serve_client(link, self._registry, self._log)))

    def total_bytes(self) -> int:
        """Return the payload of all runs that go on: a sign of life of their near ends."""
        return sum(run.pool.counters.total_bytes() for run in self._registry.values())

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, _address = await loop.sock_accept(self._listener)
            except OSError as error:
                # Out of descriptors, or a client that was gone again: the next one may fare better.
                if error.errno not in _OUT_OF_ROOM or not await self._make_room():
                    self._log(f"a connection could not be accepted: {error.strerror}")
                    await asyncio.sleep(_ACCEPT_PAUSE_S)
                continue
            task = asyncio.create_task(self._greet(sock))
            self._silent[task] = sock
            self._keep(task)

    def _has_spoken(self) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._silent.pop(task, None)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._silent.pop(task, None)

    async def _make_room(self) -> bool:
        """Drop the connection that has been silent for longest; where there is none, refuse who waits.

        Who speaks linkgauge says so at once: a crowd that says nothing keeps nobody out. Returns whether it helped.
        """
        if self._silent:
            task, sock = next(iter(self._silent.items()))
            task.cancel()
            await asyncio.wait([task])
            sock.close()  # a task that is cancelled before it begins closes nothing
            return True
        if self._spare is None:
            return False
        self._give_up_spare()
        with contextlib.suppress(OSError):
            await _refuse(self._listener.accept()[0], _NO_DESCRIPTOR)
        try:
            self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        return True

    def _give_up_spare(self) -> None:
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None

    async def _greet(self, sock: socket.socket) -> None:
        """Find out what a connection is, from its first bytes, and pass it on."""
        try:
            async with asyncio.timeout(GREETING_DEADLINE_S):
                opening, hello = await _read_opening(sock)
            self._has_spoken()
            if hello is not None:
                await self._adopt(sock, hello)
                return
            if not self._takes_control:
                # Who has control already looks whether data would get here.
                await asyncio.get_running_loop().sock_sendall(sock, preamble(CONTROL_KIND))
                sock.close()
                return
            link = await self._link(sock, opening)
        except (LinkgaugeError, OSError) as error:
            sock.close()
            reason = "it said nothing in time" if isinstance(error, TimeoutError) else str(error)
            self._log(f"a connection was dropped: {reason}")
            return
        except asyncio.CancelledError:
            sock.close()
            raise
        await serve_client(link, self._registry, self._log, self._key)

    async def _adopt(self, sock: socket.socket, hello: DataHello) -> None:
        run = self._registry.get(hello.run)
        if run is None:
            raise RemoteProtocolError("a data connection of no run")
        await run.adopt(sock, hello)

    @staticmethod
    async def _link(sock: socket.socket, opening: bytes) -> ControlLink:
        loop = asyncio.get_running_loop()
        _transport, link = await loop.connect_accepted_socket(lambda: ControlLink(End.FAR, opening), sock)
        return link


async def _refuse(sock: socket.socket, why: str) -> None:
    """Tell a client why it is not served, and close once it has heard, or does not listen."""
    loop = asyncio.get_running_loop()
    with sock, contextlib.suppress(OSError):
        sock.setblocking(False)
        async with asyncio.timeout(_REFUSE_DEADLINE_S):
            await loop.sock_sendall(sock, preamble(CONTROL_KIND) + encode_frame(Refuse(why)))
            sock.shutdown(socket.SHUT_WR)
            while await loop.sock_recv(sock, 4_096):  # closing over what was not read would take the word back
                pass


async def _read_opening(sock: socket.socket) -> tuple[bytes, DataHello | None]:
    """Return a connection's preamble, and what it says of itself where it carries data."""
    sock.setblocking(False)
    opening = await _read_exactly(sock, PREAMBLE_BYTES)
    found = read_preamble(opening)
    if found is None:
        raise RemoteProtocolError("a client that does not speak linkgauge")
    version, kind = found
    if version != PROTOCOL_VERSION:
        await asyncio.get_running_loop().sock_sendall(sock, preamble(CONTROL_KIND))
        raise RemoteProtocolError(f"a client speaks protocol {version}, this endpoint {PROTOCOL_VERSION}")
    if kind == CONTROL_KIND:
        return opening, None
    return opening, DataHello.unpack(await _read_exactly(sock, DATA_HELLO_BYTES))


async def _read_exactly(sock: socket.socket, count: int) -> bytes:
    """Read no byte more: what follows may be payload, and belongs to a worker."""
    loop = asyncio.get_running_loop()
    data = b""
    while len(data) < count:
        more = await loop.sock_recv(sock, count - len(data))
        if not more:
            raise RemoteProtocolError("a client closed before it said anything")
        data += more
    return data


async def serve(
    bind: str | None = None,
    port: int = DEFAULT_PORT,
    *,
    stop: asyncio.Event,
    key: Key | None = None,
    on_listening: Callable[[tuple[str, int]], None] = lambda _: None,
    log: Callable[[str], None] = lambda _: None,
) -> None:
    """Serve clients until `stop` is set; raise EndpointError where it cannot listen."""
    async with Endpoint(listen(bind, port), log, key=key) as endpoint:
        on_listening(endpoint.address)
        await stop.wait()
