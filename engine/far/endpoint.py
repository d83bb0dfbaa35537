"""The endpoint: a far end that serves many clients at once on one TCP port for control and data."""

import asyncio
import contextlib
import errno
import logging
import os
import socket
import time
from collections.abc import Callable
from typing import Final, Self

from ..control.connection import ControlConnection
from ..control.handshake import read_connection_header, refuse
from ..control.tls import Certificate, is_client_hello
from ..model.errors import LinkgaugeError, RemoteProtocolError, explain_os_error
from ..model.events import EndText, Reason
from ..model.limits import Limits
from ..model.peer import DEFAULT_PORT, SharedKey, unmap_ip_address
from ..model.plan import End
from ..protocol.preamble import CONTROL_KIND, DataHello, encode_preamble
from ..workers.fork_client import ForkServerLease
from .admission import Admission
from .listener import listen
from .run import RunRegistry, serve_client
from .status import EndpointStatus, LogEntry, LogSink, discard_log

_ACCEPT_PAUSE_S: Final = 0.2
_OUT_OF_ROOM: Final = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}
_NO_DESCRIPTOR: Final = "it has too many open files for another connection; raise its limit (ulimit -n)"
_GIVE_FINGERPRINT: Final = "it requires TLS: give the fingerprint that it prints, with --tls-fingerprint"
_SHUTDOWN_DEADLINE_S: Final = 3.0
_log = logging.getLogger(__name__)


class Endpoint:
    """Serves clients on a listening socket while its `async with` block lasts.

    `admission.limits` and `key` may be replaced at any time; they apply to later clients.
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
        """Make an endpoint that does not accept yet.

        Args:
            listener: the listening socket, which the endpoint closes at its end.
            log: receives the entries of the event log.
            key: the key that clients must prove; None serves everybody.
            limits: the limits for clients and runs; None takes the defaults.
            certificate: the certificate for TLS; None serves without TLS.
            accepts_control: False accepts only data connections; control then comes by `serve_connection`.
        """
        self.admission = Admission(limits)
        self.key = key
        self._listener = listener
        self._certificate = certificate
        self._log = log
        self._accepts_control = accepts_control
        self._registry: RunRegistry = {}
        self._tasks: set[asyncio.Task[None]] = set()
        # Connections that have not identified themselves and proved the key yet: the oldest first.
        self._pending: dict[asyncio.Task[None], socket.socket] = {}
        self._spare: int | None = None  # a descriptor to release when a client is to be refused and none is free
        self._accept_task: asyncio.Task[None] | None = None
        self._fork_server: ForkServerLease | None = None
        self._no_runs = asyncio.Event()

    @property
    def address(self) -> tuple[str, int]:
        """The address and port of the listening socket."""
        host, port = self._listener.getsockname()[:2]
        return host, port

    async def __aenter__(self) -> Self:
        """Start accepting."""
        self._listener.setblocking(False)
        self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._accept_task = asyncio.create_task(self._accept())
        self._fork_server = ForkServerLease()  # now, so that the first client does not wait for it
        _log.debug("endpoint listens on %s port %d", *self.address)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop accepting, end every run and notify its near end, and wait until all resources are released."""
        assert self._accept_task is not None  # noqa: S101 - entered
        _log.debug("endpoint shuts down: %d runs, %d connections", len(self._registry), len(self._tasks))
        self._accept_task.cancel()
        await asyncio.wait([self._accept_task])
        self._listener.close()
        self._release_spare()
        for run in self._registry.values():
            run.end(Reason.PEER_STOPPED, EndText.FAR_SHUTDOWN.value)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_SHUTDOWN_DEADLINE_S)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._fork_server is not None:
            await self._fork_server.close()

    def serve_connection(self, control: ControlConnection) -> None:
        """Serve a control connection from elsewhere than the listening socket. It needs no key."""
        self._track(asyncio.create_task(serve_client(control, self._registry, self._log, None, self.admission)))

    def get_status(self) -> EndpointStatus:
        """Return the endpoint's clients, their runs and its limits at this moment."""
        return EndpointStatus(
            time.monotonic_ns(),
            tuple(client.get_status() for client in self.admission.admitted_clients),
            len(self._pending),
            self.admission.limits,
            self.admission.is_closed,
        )

    def total_bytes(self) -> int:
        """Return the payload of all current runs: a sign of life of their near ends."""
        return sum(run.pool.counters.total_bytes() for run in self._registry.values())

    def last_received_ns(self) -> int | None:
        """Return when the data connections of started runs received something last; None without such runs."""
        return max(
            (run.pool.counters.last_received_ns() for run in self._registry.values() if run.has_started),
            default=None,
        )

    async def drain(self, deadline_s: float) -> None:
        """Refuse new clients, and return when the last run has ended or the deadline has passed."""
        self.admission.close("the endpoint is shutting down")
        self._no_runs.clear()
        if self._registry:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(deadline_s):
                    await self._no_runs.wait()

    def _track(self, task: asyncio.Task[None]) -> None:
        self._tasks.add(task)
        task.add_done_callback(self._forget)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                sock, address = await loop.sock_accept(self._listener)
            except OSError as error:
                # Out of descriptors, or the client has gone already: the next connection may succeed.
                if error.errno not in _OUT_OF_ROOM or not await self._make_room():
                    self._log(
                        LogEntry(
                            "not_accepted",
                            f"a connection could not be accepted: {explain_os_error(error)}",
                        )
                    )
                    await asyncio.sleep(_ACCEPT_PAUSE_S)
                continue
            if len(self._pending) >= self.admission.limits.pending:
                await self._make_room()
            task = asyncio.create_task(self._serve(sock, unmap_ip_address(str(address[0]))))
            self._pending[task] = sock
            self._track(task)

    def _mark_identified(self) -> None:
        task = asyncio.current_task()
        if task is not None:
            self._pending.pop(task, None)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._pending.pop(task, None)
        if not self._registry:
            self._no_runs.set()

    async def _make_room(self) -> bool:
        """Drop the oldest pending connection; without one, refuse the next client. Return whether it helped.

        A linkgauge client identifies itself at once, so a crowd of silent connections cannot keep it out.
        """
        if self._pending:
            task, sock = next(iter(self._pending.items()))
            _log.debug("the oldest of %d pending connections is dropped", len(self._pending))
            task.cancel()
            await asyncio.wait([task])
            sock.close()  # a task that is cancelled before its start does not close it
            return True
        if self._spare is None:
            return False
        self._release_spare()
        with contextlib.suppress(OSError):
            await refuse(self._listener.accept()[0], _NO_DESCRIPTOR)
        try:
            self._spare = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        return True

    def _release_spare(self) -> None:
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None

    async def _serve(self, sock: socket.socket, client: str) -> None:
        """Read a connection's first bytes, and serve it as a control or as a data connection."""
        deadline_s = self.admission.limits.handshake_s
        try:
            control = await self._identify(sock, client, deadline_s)
        except (LinkgaugeError, OSError) as error:
            sock.close()
            timed_out = isinstance(error, TimeoutError)
            reason = explain_os_error(error) if isinstance(error, OSError) else str(error)
            if timed_out:
                reason = f"nothing received for {deadline_s} s (limit handshake_s)"
            self._log(LogEntry("dropped", f"rejected: {reason}", client=client))
            return
        except asyncio.CancelledError:
            sock.close()
            raise
        if control is not None:
            await serve_client(control, self._registry, self._log, self.key, self.admission, self._mark_identified)

    async def _identify(self, sock: socket.socket, client: str, deadline_s: float) -> ControlConnection | None:
        """Return a control connection over the socket; None for any other connection, which is then dealt with."""
        sock.setblocking(False)
        async with asyncio.timeout(deadline_s):
            if self._certificate is not None and await is_client_hello(sock):
                return await self._open_control(sock, b"", self._certificate)
            opening, hello = await read_connection_header(sock)
        if hello is not None:
            self._mark_identified()
            self.admission.check_address(client)
            await self._attach_data(sock, hello)
            return None
        if not self._accepts_control:
            # A near end that has control already tests whether data connections would get here.
            await asyncio.get_running_loop().sock_sendall(sock, encode_preamble(CONTROL_KIND))
            sock.close()
            return None
        if self._certificate is not None:
            await refuse(sock, _GIVE_FINGERPRINT)
            raise RemoteProtocolError("a client without TLS (--tls-fingerprint)")
        return await self._open_control(sock, opening)

    async def _attach_data(self, sock: socket.socket, hello: DataHello) -> None:
        run = self._registry.get(hello.run_tag)
        if run is None:
            raise RemoteProtocolError("a data connection of an unknown test")
        await run.attach_connection(sock, hello)

    async def _open_control(
        self, sock: socket.socket, opening: bytes, certificate: Certificate | None = None
    ) -> ControlConnection:
        # With TLS, uvloop returns its own protocol: so the connection is made here.
        control = ControlConnection(End.FAR, opening, b"" if certificate is None else certificate.fingerprint)
        control.apply_limits(self.admission.limits)
        context = None if certificate is None else certificate.context
        await asyncio.get_running_loop().connect_accepted_socket(lambda: control, sock, ssl=context)
        return control


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
    """Serve clients until `stop` is set.

    Args:
        bind: the address to listen on; None listens on all addresses of both families.
        port: the TCP port; 0 takes a free one.
        stop: ends the endpoint once it is set.
        key: the key that clients must prove; None serves everybody.
        limits: the limits for clients and runs; None takes the defaults.
        on_listening: called with the address and port once the endpoint listens.
        log: receives the entries of the event log.

    Raises:
        EndpointError: the address cannot be listened on.
    """
    async with Endpoint(listen(bind, port), log, key=key, limits=limits) as endpoint:
        on_listening(endpoint.address)
        await stop.wait()
