"""The far end of one control connection: greets, prepares one run, carries it out, reports, finishes."""

import asyncio
import contextlib
import errno
import secrets
import socket
import time
from collections.abc import AsyncGenerator, Callable
from typing import Final

from ..control.connection import ControlConnection
from ..control.handshake import handshake_as_far
from ..control.keepalive import PING_INTERVAL_S, Liveness
from ..metering.sampler import Sampler
from ..model.access import SharedKey
from ..model.errors import ConnectionClosed, LimitReached, LinkgaugeError, RemoteProtocolError, RequestDeclined
from ..model.events import Reason, RunEnd
from ..model.host_info import NicInfo
from ..model.ip_address import unmap_ip_address
from ..model.limits import Limits
from ..model.plan import PROBE_SESSION, SECOND_NS, Direction, End, Plan, sender_of
from ..model.samples import Sample
from ..protocol.auth import TOKEN_BYTES, RunSecret, TicketCheck
from ..protocol.messages import (
    Begun,
    Change,
    Finish,
    Message,
    Open,
    Ping,
    Ready,
    Refuse,
    Report,
    SessionClosed,
    SessionOpened,
    Start,
    Stop,
)
from ..protocol.preamble import DataHello
from ..workers.commands import AdoptSession, ConnectionOpened, SessionEvent
from ..workers.pool import WorkerPool
from ..workloads.session_handshake import SessionSpec
from .admission import Admission, AdmittedClient
from .event_log import LogEntry, LogSink
from .status import RunStatus

PREPARATION_DEADLINE_S: Final = 30.0
_OVERTIME_NS: Final = 30 * SECOND_NS  # a near end that never says stop is cut off this long after its duration
_MOST_UNSENT_BYTES: Final = 8 << 20  # half a minute of the largest samples

RunRegistry = dict[bytes, "FarRun"]


async def serve_client(
    link: ControlConnection,
    registry: RunRegistry,
    log: LogSink,
    key: SharedKey | None = None,
    admission: Admission | None = None,
    on_admitted: Callable[[], None] = lambda: None,
) -> None:
    """Serve one near end from its greeting to the end of its run; never raises at what it does.

    Without the key, where there is one, it gets no further than the greeting; `on_let_in` is called where it does.
    """
    admission = admission or Admission()
    limits = admission.limits
    client = unmap_ip_address(str(link.peer_address[0])) if link.peer_address else None
    guests: list[AdmittedClient] = []
    with contextlib.ExitStack() as stack:

        def admit() -> None:
            guests.append(stack.enter_context(admission.admit(client or "", time.monotonic_ns())))
            on_admitted()

        try:
            if client is not None:
                admission.check_address(client)
            async with _deadline(limits.handshake_s, "handshake_s"):
                facts = await handshake_as_far(link, key, admit)
            guests[0].hostname = facts.hostname
            log(LogEntry("client", "let in", client=client))
            async with _deadline(limits.idle_s, "idle_s"):
                message = await link.receive()
            if isinstance(message, Open):
                admission.check_plan(message.plan, sum(run.rate_bit_s for run in registry.values()))
                await _serve_run(link, message.plan, facts.nic, admission.limits, registry, log, guests[0])
        except RequestDeclined as error:
            limit = error.limit if isinstance(error, LimitReached) else None
            link.try_send(Refuse(str(error), "limit" if limit else "other"))
            log(LogEntry("refused", f"refused: {error}", client=client, limit=limit))
        except ConnectionClosed:
            pass  # it came to look, or has seen enough
        except LinkgaugeError as error:
            log(LogEntry("dropped", f"dropped: {error}", client=client))
        finally:
            await link.aclose()


@contextlib.asynccontextmanager
async def _deadline(seconds: int, limit: str) -> AsyncGenerator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise LimitReached(f"it said nothing in {seconds} s", limit, seconds) from error


async def _serve_run(
    link: ControlConnection,
    plan: Plan,
    nic: NicInfo | None,
    limits: Limits,
    registry: RunRegistry,
    log: LogSink,
    guest: AdmittedClient,
) -> None:
    run: FarRun | None = None
    client = guest.address or None
    try:
        run = FarRun(link, plan, nic, limits)
        async with run.pool:
            registry[run.run_tag] = run
            guest.get_run_status = run.get_status
            link.send(Ready(run.nonce.hex()))
            log(LogEntry("run_began", f"run began: {plan.workload}", client=client))
            end = await run.execute()
            text, moved = f"run ended: {end.reason}: {end.detail}", run.pool.counters.total_bytes()
            log(LogEntry("run_ended", text, client=client, reason=end.reason, bytes=moved))
    except (LinkgaugeError, OSError) as error:
        remedy = "; raise the limit there (ulimit -n)" if getattr(error, "errno", None) == errno.EMFILE else ""
        link.try_send(Refuse(f"the run could not be prepared: {error}{remedy}"))
        raise LinkgaugeError(str(error)) from error
    finally:
        guest.get_run_status = None
        if run is not None:
            registry.pop(run.run_tag, None)


class FarRun:
    """One run as the far end carries it out."""

    def __init__(
        self, link: ControlConnection, plan: Plan, nic: NicInfo | None, limits: Limits | None = None
    ) -> None:
        self.rate_bit_s = 0  # what it carries now
        self._limits = limits or Limits()
        self.nonce = secrets.token_bytes(TOKEN_BYTES)
        self._gate = TicketCheck(RunSecret(link.shared_secret, self.nonce))
        self._link = link
        self._plan = plan
        self._ending: asyncio.Future[RunEnd] = asyncio.get_running_loop().create_future()
        self.pool = WorkerPool(End.FAR, plan, self._worker_said, self._worker_lost)
        self._sampler = Sampler(End.FAR, plan, self.pool.counters, None if nic is None else nic.name)
        self._sampling: asyncio.Task[None] | None = None
        self._generation = 0
        self._settings = plan.settings

    def get_status(self) -> RunStatus:
        """Return how far it is; its counters must be there still."""
        carried = {End.NEAR: 0, End.FAR: 0}
        for flow in Direction.DUPLEX.flows:
            carried[sender_of(flow, self._plan.workload)] += self.pool.counters.flow_bytes(flow)
        elapsed_ns = 0 if self._sampling is None else self._sampler.elapsed_ns
        plan = self._plan
        return RunStatus(
            plan.workload, self._settings, plan.duration_ns, elapsed_ns, carried[End.NEAR], carried[End.FAR]
        )

    @property
    def run_tag(self) -> bytes:
        """What the run's connections call it."""
        return self._gate.secret.run_tag

    @property
    def has_started(self) -> bool:
        """Whether payload flows."""
        return self._sampling is not None

    async def execute(self) -> RunEnd:
        """Serve the near end until the run ends, and finish in order: last sample, reason, no more."""
        tasks = [
            asyncio.create_task(self._listen()),
            asyncio.create_task(self._watch()),
        ]
        try:
            end = await self._ending
        finally:
            for task in [*tasks, *([] if self._sampling is None else [self._sampling])]:
                task.cancel()
        if self._sampling is not None:
            last = self._sampler.take_sample()
            if last is not None:
                self._report(last)
        self.rate_bit_s = 0  # before the near end hears of the end, and asks for the next run
        self._link.try_send(Finish(end))
        return end

    def end(self, reason: Reason, detail: str) -> None:
        """End the run; the first reason stands."""
        if not self._ending.done():
            self._ending.set_result(RunEnd(reason, detail))

    async def attach_connection(self, sock: socket.socket, hello: DataHello) -> None:
        """Hand an accepted data connection to the worker that hosts its session.

        Raises RemoteProtocolError where its token is not good, or has been used.
        """
        if hello.session == PROBE_SESSION and not self._plan.probe:
            raise RemoteProtocolError("the connection of a probe that the plan does not have")
        if hello.session > self._limits.sessions:
            text = f"session {hello.session} is one too many"
            raise LimitReached(text, "sessions", self._limits.sessions)
        secret = self._gate.check(hello.direction, hello.session, hello.generation, hello.token)
        if secret is None:
            raise RemoteProtocolError("a data connection with a token that is not good, or no longer")
        spec = SessionSpec(hello.direction, hello.session, hello.generation, hello.window_bytes, secret.hex())
        await self.pool.send_command(AdoptSession(spec), sock.detach())

    async def _listen(self) -> None:
        try:
            async with asyncio.timeout(PREPARATION_DEADLINE_S):
                while self._sampling is None:
                    self._handle(await self._link.receive())
            while True:
                self._handle(await self._link.receive())
        except TimeoutError:
            self.end(Reason.FAILED, "the near end did not start the run in time")
        except ConnectionClosed as error:
            self.end(Reason.PEER_LOST, f"the near end is gone: {error}")
        except LinkgaugeError as error:
            self.end(Reason.FAILED, str(error))

    def _handle(self, message: Message) -> None:
        if isinstance(message, Start):
            self._sampler.start()
            self.pool.start_payload()
            self._link.send(Begun())
            self._sampling = asyncio.create_task(self._sampler.run(self._report, None))
        elif isinstance(message, Change):
            self._keep(message)
        elif isinstance(message, Stop):
            self.end(message.end.reason, message.end.detail)

    def _keep(self, change: Change) -> None:
        if change.generation < self._generation:
            raise RemoteProtocolError("the near end went back to an older generation of sessions")
        if change.settings.sessions > self._limits.sessions:
            text = f"{change.settings.sessions} sessions are too many"
            raise LimitReached(text, "sessions", self._limits.sessions)
        self._generation, self._settings = change.generation, change.settings
        self.pool.apply_change(change)

    def _report(self, sample: Sample) -> None:
        self._link.try_send(Report(sample))
        if self._link.unsent_bytes > _MOST_UNSENT_BYTES:
            self.end(Reason.PEER_LOST, "the near end does not read its samples")

    async def _watch(self) -> None:
        """Notice a near end that vanished without a word, or that never says stop."""
        liveness = Liveness(time.monotonic_ns())
        serial = total_bytes = 0
        while True:
            await asyncio.sleep(PING_INTERVAL_S)
            serial += 1
            self._link.try_send(Ping(serial))
            before, total_bytes = total_bytes, self.pool.counters.total_bytes()
            self.rate_bit_s = round((total_bytes - before) * 8 / PING_INTERVAL_S)
            lost_ns = liveness.check_timeout(time.monotonic_ns(), self._link.last_received_ns, total_bytes)
            if lost_ns is not None:
                self.end(Reason.PEER_LOST, f"the near end has been silent for {lost_ns / SECOND_NS:.0f} s")
            duration_ns = self._plan.duration_ns
            started = self._sampling is not None
            if started and duration_ns is not None and self._sampler.elapsed_ns > duration_ns + _OVERTIME_NS:
                self.end(Reason.FAILED, "the near end did not stop when the run's duration was up")
            longest_s = self._limits.duration_s
            if started and self._sampler.elapsed_ns > longest_s * SECOND_NS:
                reached = LimitReached("the run has lasted as long as one may", "duration_s", longest_s)
                self.end(Reason.PEER_STOPPED, str(reached))

    def _worker_said(self, event: SessionEvent) -> None:
        session = event.info.session if isinstance(event, ConnectionOpened) else event.session
        if session == PROBE_SESSION:
            return  # the near end sees its own end of it
        if isinstance(event, ConnectionOpened):
            self._link.try_send(SessionOpened(event.info))
        else:
            self._link.try_send(SessionClosed(event.direction, session, event.generation, event.why))

    def _worker_lost(self, why: str) -> None:
        self.end(Reason.WORKER_LOST, f"at the far end {why}")
