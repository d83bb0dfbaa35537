"""The far end as a daemon: one TCP port for control and data, many clients at once."""

import asyncio
import contextlib
import errno
import os
import socket
import time
from collections.abc import Callable
from typing import Final, Self

from ..control.accept import read_connection_header, refuse
from ..control.connection import ControlConnection
from ..control.tls import Certificate, is_client_hello
from ..model.access import SharedKey
from ..model.errors import EndpointError, LinkgaugeError, RemoteProtocolError
from ..model.events import Reason
from ..model.ip_address import unmap_ip_address
from ..model.limits import Limits
from ..model.peer import DEFAULT_PORT
from ..model.plan import End
from ..protocol.preamble import CONTROL_KIND, DataHello, encode_preamble
from ..workers.fork_client import ForkServerLease
from .admission import Admission
from .event_log import LogEntry, LogSink, discard_log
from .run import RunRegistry, serve_client
from .status import EndpointStatus

_BACKLOG: Final = 1_024
_ACCEPT_PAUSE_S: Final = 0.2
_OUT_OF_ROOM: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_NO_DESCRIPTOR: Final = "it has no descriptor left for another connection; raise the limit there (ulimit -n)"
_GIVE_FINGERPRINT: Final = "it speaks TLS: give its fingerprint, which it says at its start, with --tls-fingerprint"
_SHUTDOWN_DEADLINE_S: Final = 3.0


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
        log: LogSink = discard_log,
        *,
        key: SharedKey | None = None,
        limits: Limits | None = None,
        certificate: Certificate | None = None,
        accepts_control: bool = True,
    ) -> None:
        self.admission = Admission(limits)
        self.key = key  # of those who come from here on
        self._listener = listener
        self._certificate = certificate
        self._log = log
        self._takes_control = accepts_control
        self._registry: RunRegistry = {}
        self._tasks: set[asyncio.Task[None]] = set()
        # Those that have not said who they are, and proved the key: the oldest first.
        self._silent: dict[asyncio.Task[None], socket.socket] = {}
        self._spare: int | None = None  # given up for a moment where there is none to refuse a client with
        self._accepting: asyncio.Task[None] | None = None
        self._starter: ForkServerLease | None = None
        self._quiet = asyncio.Event()

    @property
    def address(self) -> tuple[str, int]:
        """The address and port it listens on."""
        host, port = self._listener.getsockname()[:2]
        return host, port

    async def __aenter__(self) -> Self:
        """Start accepting."""
        self._listener.setblocking(False)
        self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._accepting = asyncio.create_task(self._accept())
        self._starter = ForkServerLease()  # before anybody comes, so that nobody waits for it
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
        if self._starter is not None:
            await self._starter.close()

    def serve_connection(self, link: ControlConnection) -> None:
        """Serve a control connection that came another way than by the listening socket: it needs no key here."""
        self._keep(asyncio.create_task(serve_client(link, self._registry, self._log, None, self.admission)))

    def get_status(self) -> EndpointStatus:
        """Return what it does at this moment."""
        return EndpointStatus(
            time.monotonic_ns(),
            tuple(guest.get_status() for guest in self.admission.admitted_clients),
            len(self._silent),
            self.admission.limits,
            self.admission.is_closed,
        )

    def total_bytes(self) -> int:
        """Return the payload of all runs that go on: a sign of life of their near ends."""
        return sum(run.pool.counters.total_bytes() for run in self._registry.values())

    def last_received_ns(self) -> int | None:
        """Return when anything came last on a data connection of runs that have started; None without any."""
        return max(
            (run.pool.counters.last_received_ns() for run in self._registry.values() if run.has_started),
            default=None,
        )

    async def drain(self, deadline_s: float) -> None:
        """Let nobody in any more, and return when no run goes on, or the deadline has come."""
        self.admission.close("the endpoint is about to end")
        self._quiet.clear()
        if self._registry:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(deadline_s):
                    await self._quiet.wait()

    def _keep(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, address = await loop.sock_accept(self._listener)
            except OSError as error:
                # Out of descriptors, or a client that was gone again: the next one may fare better.
                if error.errno not in _OUT_OF_ROOM or not await self._make_room():
                    self._log(LogEntry("not_accepted", f"a connection could not be accepted: {error.strerror}"))
                    await asyncio.sleep(_ACCEPT_PAUSE_S)
                continue
            if len(self._silent) >= self.admission.limits.pending:
                await self._make_room()
            task = asyncio.create_task(self._greet(sock, unmap_ip_address(str(address[0]))))
            self._silent[task] = sock
            self._keep(task)

    def _has_spoken(self) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._silent.pop(task, None)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._silent.pop(task, None)
        if not self._registry:
            self._quiet.set()

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
            await refuse(self._listener.accept()[0], _NO_DESCRIPTOR)
        try:
            self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        return True

    def _give_up_spare(self) -> None:
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None

    async def _greet(self, sock: socket.socket, client: str) -> None:
        """Find out what a connection is, from its first bytes, and pass it on."""
        deadline_s = self.admission.limits.handshake_s
        try:
            link = await self._link_of(sock, client, deadline_s)
        except (LinkgaugeError, OSError) as error:
            sock.close()
            timed_out = isinstance(error, TimeoutError)
            reason = f"it said nothing in {deadline_s} s (limit handshake_s)" if timed_out else str(error)
            self._log(LogEntry("dropped", f"a connection was dropped: {reason}", client=client))
            return
        except asyncio.CancelledError:
            sock.close()
            raise
        if link is not None:
            await serve_client(link, self._registry, self._log, self.key, self.admission, self._has_spoken)

    async def _link_of(self, sock: socket.socket, client: str, deadline_s: float) -> ControlConnection | None:
        """Return the control connection that a connection is; None where it is none, and seen to."""
        sock.setblocking(False)
        async with asyncio.timeout(deadline_s):
            if self._certificate is not None and await is_client_hello(sock):
                return await self._link(sock, b"", self._certificate)
            opening, hello = await read_connection_header(sock)
        if hello is not None:
            self._has_spoken()
            self.admission.check_address(client)
            await self._adopt(sock, hello)
            return None
        if not self._takes_control:
            # Who has control already looks whether data would get here.
            await asyncio.get_running_loop().sock_sendall(sock, encode_preamble(CONTROL_KIND))
            sock.close()
            return None
        if self._certificate is not None:
            await refuse(sock, _GIVE_FINGERPRINT)
            raise RemoteProtocolError("a client that does not speak TLS")
        return await self._link(sock, opening)

    async def _adopt(self, sock: socket.socket, hello: DataHello) -> None:
        run = self._registry.get(hello.run_tag)
        if run is None:
            raise RemoteProtocolError("a data connection of no run")
        await run.attach_connection(sock, hello)

    async def _link(
        self, sock: socket.socket, opening: bytes, certificate: Certificate | None = None
    ) -> ControlConnection:
        # uvloop returns its own protocol where TLS is between: the link is made here.
        link = ControlConnection(End.FAR, opening, b"" if certificate is None else certificate.fingerprint)
        link.apply_limits(self.admission.limits)
        context = None if certificate is None else certificate.context
        await asyncio.get_running_loop().connect_accepted_socket(lambda: link, sock, ssl=context)
        return link


async def serve_endpoint(
    bind: str | None = None,
    port: int = DEFAULT_PORT,
    *,
    stop: asyncio.Event,
    key: SharedKey | None = None,
    limits: Limits | None = None,
    on_listening: Callable[[tuple[str, int]], None] = lambda _: None,
    log: LogSink = discard_log,
) -> None:
    """Serve clients until `stop` is set; raise EndpointError where it cannot listen."""
    async with Endpoint(listen(bind, port), log, key=key, limits=limits) as endpoint:
        on_listening(endpoint.address)
        await stop.wait()
