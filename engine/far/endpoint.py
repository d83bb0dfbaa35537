"""The endpoint: a far end that serves many clients at once on one port, TCP for control and data, UDP for data."""

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, Self

from ..control.accepted_connection import Identification, Identity, ProvedControl, encode_refusal, refuse
from ..control.connection import ControlConnection, limit_messages
from ..control.key_proof import KeyCheck
from ..control.tls import Certificate, HandshakeMemory
from ..model.directions import End
from ..model.errors import (
    LinkgaugeError,
    RemoteProtocolError,
    RequestDeclined,
    explain_os_error,
)
from ..model.limits import Limits
from ..model.peer import DEFAULT_PORT
from ..model.run_end import EndText, Reason
from ..model.shared_key import SharedKey
from ..protocol.messages import refusal_of
from ..protocol.preamble import DataHello
from ..protocol.state_machine import ControlStateMachine
from ..workers.fork_client import ForkServerLease
from ..workloads.fastest_mode import ModeChooser
from .acceptor import Acceptor
from .client_service import ServiceContext, serve_client
from .clients.admission import Admission
from .clients.current_run import CurrentRun
from .datagram_listener import DatagramListener
from .event_log import EventLog
from .listener import listen
from .status import EndpointStatus, LogEntry, LogSink, discard_log
from .unproved_connections import UnprovedConnection, UnprovedConnections

_SHUTDOWN_DEADLINE_S: Final = 3.0
_log = logging.getLogger(__name__)


class Endpoint:
    """Serves clients on a listening socket while its `async with` block lasts.

    `admission.limits`, `keys` and `certificate` may be replaced at any time; they apply to later clients. Set
    `admission.turns.is_exclusive` for one test at a time, those of an `Iperf3Service` included.
    """

    accepts_control = True
    """False accepts only data connections; control then comes by `serve_connection`."""

    def __init__(
        self,
        listener: socket.socket,
        log: LogSink = discard_log,
        *,
        keys: Sequence[SharedKey] | None = None,
        limits: Limits | None = None,
        certificate: Certificate | None = None,
        mode_chooser: ModeChooser | None = None,
    ) -> None:
        """Make an endpoint that does not accept yet.

        Args:
            listener: the listening socket, which the endpoint closes at its end.
            log: receives the entries of the event log.
            keys: the keys of which clients must prove one; None serves everybody.
            limits: the limits for clients and runs; None takes the defaults.
            certificate: the certificate for TLS; None serves without TLS.
            mode_chooser: chooses how this host sends if a plan names no mode; None copies.
        """
        self.keys = keys
        self._listener = listener
        self.certificate = certificate
        self._event_log = EventLog(log)
        self._context = ServiceContext(Admission(limits), {}, self._event_log.log_entry, mode_chooser)
        self._datagrams = DatagramListener(self._context.registry, self.admission, self.log)
        self._tasks: set[asyncio.Task[None]] = set()
        self.unproved = UnprovedConnections(self.admission, self._encode_refusal)
        self._acceptor = Acceptor(listener, self.unproved, self.log, self._identify, refuse, self.track)
        self._fork_server: ForkServerLease | None = None
        self._no_runs = asyncio.Event()
        self._handshake_memory = HandshakeMemory()

    @property
    def admission(self) -> Admission:
        """The clients and the limits."""
        return self._context.admission

    @property
    def mode_chooser(self) -> ModeChooser | None:
        """What chooses how this host sends if a plan names no mode; None copies."""
        return self._context.mode_chooser

    @property
    def log(self) -> LogSink:
        """The receiver of entries of the event log."""
        return self._context.log

    @property
    def address(self) -> tuple[str, int]:
        """The address and port of the listening socket."""
        host, port = self._listener.getsockname()[:2]
        return host, port

    @property
    def _current_runs(self) -> list[CurrentRun]:
        return [client.run for client in self.admission.admitted_clients if client.run is not None]

    async def __aenter__(self) -> Self:
        """Start accepting."""
        self._datagrams.open(self._listener)
        self._acceptor.open()
        self._fork_server = ForkServerLease()  # now, so that the first client does not wait for it
        _log.debug("endpoint listens on %s port %d", *self.address)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop accepting, end every run and notify its near end, and wait until all resources are released."""
        _log.debug("endpoint shuts down: %d runs, %d connections", len(self._current_runs), len(self._tasks))
        await self._acceptor.close()
        await self._datagrams.close()
        self.admission.close(EndText.FAR_SHUTDOWN.value)
        for run in self._current_runs:
            run.end(Reason.PEER_STOPPED, EndText.FAR_SHUTDOWN.value)
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_SHUTDOWN_DEADLINE_S)
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._fork_server is not None:
            lease, self._fork_server = self._fork_server, None
            await lease.close()
        self._event_log.close()
        self._handshake_memory.close()

    def serve_connection(self, control: ControlConnection) -> None:
        """Serve a control connection from elsewhere than the listening socket. It needs no key."""
        check = KeyCheck(control.machine, lambda: None)
        self.track(asyncio.create_task(serve_client(control, self._context, check)))

    def get_status(self) -> EndpointStatus:
        """Return the endpoint's clients, their runs, its limits and its totals at this moment."""
        return EndpointStatus(
            time.monotonic_ns(),
            tuple(client.get_status() for client in self.admission.admitted_clients),
            self.unproved.total,
            self.admission.limits,
            self.admission.is_closed,
            self._event_log.counts.read(),
            tuple(dict.fromkeys(key.name for key in self.keys or ())),
        )

    def total_bytes(self) -> int:
        """Return the payload of all current runs: a sign of life of their near ends."""
        return sum(run.pool.counters.total_bytes() for run in self._current_runs)

    def last_received_ns(self) -> int | None:
        """Return when the data connections of started runs received something last; None without such runs."""
        return max(
            (run.pool.counters.last_received_ns() for run in self._current_runs if run.has_started),
            default=None,
        )

    async def drain(self, deadline_s: float) -> None:
        """Refuse new clients, and return when the last run has ended or the deadline has passed."""
        self.admission.close("the endpoint is shutting down")
        self._no_runs.clear()
        if self._current_runs:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(deadline_s):
                    await self._no_runs.wait()

    def track(self, task: asyncio.Task[None]) -> None:
        """Have the end of the endpoint wait for a task that serves a connection."""
        self._tasks.add(task)
        task.add_done_callback(self._forget)

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not self._current_runs:
            self._no_runs.set()

    def _identify(self, connection: UnprovedConnection) -> Coroutine[Any, Any, None] | None:
        """Read what a connection has sent; return the coroutine that serves it once it has identified itself."""
        identification = connection.identification
        if identification is None:
            identification = connection.identification = Identification(
                connection.sock,
                lambda: self.keys,
                self.admission.limits,
                has_tls=self.certificate is not None,
                accepts_control=self.accepts_control,
            )
            connection.encode_refusal = identification.encode_refusal
        try:
            identity = identification.read()
        except (LinkgaugeError, OSError):
            connection.last_words = identification.last_words
            raise
        if identity is None:
            return None
        if isinstance(identity, DataHello):
            if identity.run_tag not in self._context.registry:
                raise RemoteProtocolError("a data connection of an unknown test")
            self.unproved.discard(connection)
        return self._serve(connection, identity)

    def _encode_refusal(self, why: RequestDeclined) -> bytes:
        """Return the words for a connection that was not read from; a client of TLS would not understand any."""
        return b"" if self.certificate is not None else encode_refusal(refusal_of(why))

    async def _serve(self, connection: UnprovedConnection, identity: Identity) -> None:
        """Serve a connection as a control or as a data connection."""
        connection.is_served = True
        sock, deadline_s = connection.sock, self.admission.limits.handshake_s
        try:
            async with asyncio.timeout(deadline_s):
                check = await self._open(connection, identity)
        except (LinkgaugeError, OSError) as error:
            self._give_up(sock)
            reason = explain_os_error(error) if isinstance(error, OSError) else str(error)
            if isinstance(error, TimeoutError):
                reason = f"nothing received for {deadline_s} s (limit handshake_s)"
            self.log(LogEntry("dropped", f"rejected: {reason}", client=connection.client))
            return
        except asyncio.CancelledError:
            self._give_up(sock)
            raise
        if check is not None and connection.control is not None:
            await serve_client(connection.control, self._context, check, lambda: self.unproved.discard(connection))

    def _give_up(self, sock: socket.socket) -> None:
        sock.close()
        if self.certificate is not None:
            self._handshake_memory.note_end()

    async def _open(self, connection: UnprovedConnection, identity: Identity) -> KeyCheck | None:
        """Make a connection the control connection of a client, or pass it to its run, and return None then."""
        if isinstance(identity, DataHello):
            run = self._context.registry.get(identity.run_tag)
            if run is None:
                raise RemoteProtocolError("a data connection of an unknown test")
            await run.attach_connection(connection.sock, identity)
            return None
        if isinstance(identity, ProvedControl):
            await self._connect(connection, identity.machine)
            return identity.check
        certificate = self.certificate
        if certificate is None:
            raise RemoteProtocolError("TLS is not offered any more")
        machine = ControlStateMachine(End.FAR)
        limit_messages(machine, self.admission.limits)
        await self._connect(connection, machine, certificate)
        return KeyCheck(machine, lambda: self.keys, certificate.fingerprint)

    async def _connect(
        self, connection: UnprovedConnection, machine: ControlStateMachine, certificate: Certificate | None = None
    ) -> None:
        # With TLS, uvloop returns its own protocol: so the connection is made here.
        binding = b"" if certificate is None else certificate.fingerprint
        connection.control = control = ControlConnection(End.FAR, machine, channel_binding=binding)
        context = None if certificate is None else certificate.context
        await asyncio.get_running_loop().connect_accepted_socket(lambda: control, connection.sock, ssl=context)


async def serve_endpoint(
    bind: str | None = None,
    port: int = DEFAULT_PORT,
    *,
    stop: asyncio.Event,
    keys: Sequence[SharedKey] | None = None,
    limits: Limits | None = None,
    on_listening: Callable[[tuple[str, int]], None] = lambda _: None,
) -> None:
    """Serve clients until `stop` is set.

    Args:
        bind: the address to listen on; None listens on all addresses of both families.
        port: the TCP port; 0 takes a free one.
        stop: ends the endpoint once it is set.
        keys: the keys of which clients must prove one; None serves everybody.
        limits: the limits for clients and runs; None takes the defaults.
        on_listening: called with the address and port once the endpoint listens.

    Raises:
        EndpointError: the address cannot be listened on.
    """
    async with Endpoint(listen(bind, port), keys=keys, limits=limits, mode_chooser=ModeChooser()) as endpoint:
        on_listening(endpoint.address)
        await stop.wait()
