"""The far end of one client: its handshake, its plan's admission, its run, the entries of the log.

`serve_client` serves one control connection, which carries at most one run.
"""

import asyncio
import contextlib
import errno
import time
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from ..control.connection import ControlConnection
from ..control.handshake import HandshakeResult, handshake_as_far
from ..control.keepalive import MAX_SILENCE_NS, PING_INTERVAL_S
from ..control.key_proof import KeyCheck
from ..model.errors import (
    ConnectionClosed,
    LimitReached,
    LinkgaugeError,
    RemoteProtocolError,
    RequestDeclined,
    SilentPeer,
    explain_os_error,
)
from ..model.plan import SECOND_NS, Mode, Plan
from ..model.run_end import Reason, RunEnd
from ..model.shared_key import SharedKey
from ..protocol.messages import Open, Ping, Ready, Refuse, refusal_of
from ..workloads.fastest_mode import ModeChooser
from .base_run import BaseFarRun
from .clients.admission import Admission, Grant
from .clients.admitted_client import AdmittedClient
from .clients.turns import Turn
from .listener import format_host
from .run import FarRun, RunRegistry
from .status import LogEntry, LogSink, LogValue, discard_log, rejection

_CLOSE_DEADLINE_S: Final = 10.0  # as long as the client waits for the end of its run


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """The state that all clients of an endpoint share.

    Args:
        admission: the clients and the limits.
        registry: the current runs by their tag, for data connections.
        log: receives the entries of the event log.
        mode_chooser: chooses how this host sends if a plan names no mode; None copies.
    """

    admission: Admission = field(default_factory=Admission)
    registry: RunRegistry = field(default_factory=dict[bytes, FarRun])
    log: LogSink = discard_log
    mode_chooser: ModeChooser | None = None


async def serve_client(
    control: ControlConnection,
    context: ServiceContext,
    check: KeyCheck,
    on_admitted: Callable[[], None] = lambda: None,
) -> None:
    """Serve one near end from its handshake to the end of its run. Never raises because of what it sends.

    Args:
        control: the connection to the near end, before the handshake.
        context: what it shares with other clients.
        check: checks the near end's key, or has checked it.
        on_admitted: called once the near end has proved the key and is admitted.
    """
    address, log = format_host(control.peer_address) if control.peer_address else None, context.log
    with contextlib.ExitStack() as stack:
        service = _ClientService(control, address, context, check, stack)
        try:
            await service.serve(on_admitted)
        except ConnectionClosed:
            pass  # a near end that only asked for the host's facts
        except LinkgaugeError as error:
            if isinstance(error, RequestDeclined):
                control.try_send(refusal_of(error, reads_busy=service.reads_busy))
            log(rejection(address, error, service.key_name))
        except MemoryError:
            control.try_send(Refuse("the remote host is out of memory"))
            log(LogEntry("dropped", "rejected: out of memory", client=address, key=service.key_name))
        finally:
            await control.aclose()


@dataclass(slots=True)
class _ClientService:
    """One client on its way to its run. `stack` gives back what the client takes from the endpoint."""

    control: ControlConnection
    address: str | None
    context: ServiceContext
    check: KeyCheck
    stack: contextlib.ExitStack
    reads_busy: bool = False

    @property
    def key_name(self) -> str | None:
        """The name of the key that the client proved; None without a name."""
        return None if self.check.key is None else self.check.key.name or None

    async def serve(self, on_admitted: Callable[[], None]) -> None:
        """Serve the client from its handshake to the end of its run; raise LinkgaugeError otherwise."""
        admission, limits = self.context.admission, self.context.admission.limits
        clients: list[AdmittedClient] = []

        def admit() -> None:
            client = self.stack.enter_context(admission.admit(self.address or "", time.monotonic_ns()))
            client.key_name = self.key_name
            clients.append(client)
            on_admitted()
            self.context.log(LogEntry("admitted", "admitted", client=self.address, key=self.key_name))

        if self.address is not None:
            admission.check_address(self.address)
        async with _deadline(limits.handshake_s, "handshake_s"):
            ends = await handshake_as_far(self.control, self.check, admit)
        clients[0].hostname, self.reads_busy = ends.near.hostname, ends.near.reads_busy
        async with _deadline(limits.idle_s, "idle_s"):
            message = await self.control.receive()
        if isinstance(message, Open):
            await self._serve_plan(message.plan, ends, clients[0])

    async def _serve_plan(self, plan: Plan, ends: HandshakeResult, client: AdmittedClient) -> None:
        control, admission = self.control, self.context.admission
        self._check_plan(plan)
        turn = await _take_turn(control, admission, client, plan)
        self.stack.callback(turn.end)
        self._check_plan(plan)
        grant = admission.grant(client, plan, turn)
        mode = await choose_mode(plan, self.context.mode_chooser, is_idle=not admission.has_runs)
        end = await self._serve_run(plan, mode, ends, client, grant)
        if end.reason is not Reason.PEER_LOST:
            await _await_close(control)

    async def _serve_run(
        self, plan: Plan, mode: Mode | None, ends: HandshakeResult, client: AdmittedClient, grant: Grant
    ) -> RunEnd:
        control, registry, run = self.control, self.context.registry, None
        try:
            run = FarRun(control, plan, mode, ends, grant)
            async with run.pool:
                registry[run.run_tag] = run
                control.send(Ready(run.nonce.hex()))
                return await carry_out(run, client, self.context.log, str(plan.workload))
        except (LinkgaugeError, OSError) as error:
            reason = explain_os_error(error) if isinstance(error, OSError) else str(error)
            if isinstance(error, OSError) and error.errno == errno.EMFILE:
                reason += "; raise the limit of open files there (ulimit -n)"
            control.try_send(Refuse(f"the test could not be prepared: {reason}"))
            raise LinkgaugeError(reason) from error
        finally:
            if run is not None:
                registry.pop(run.run_tag, None)
                run.release()

    def _check_plan(self, plan: Plan) -> None:
        """Raise RequestDeclined for a plan that the client may not have, now.

        Keys and lists may have changed while it waited, with its plan or for its turn.
        """
        admission = self.context.admission
        if self.address is not None:
            admission.check_address(self.address)
        _check_key_counts(self.check.key, self.check.get_keys())
        admission.check_plan(plan, admission.carried_bit_s)


async def _take_turn(control: ControlConnection, admission: Admission, client: AdmittedClient, plan: Plan) -> Turn:
    """Return a turn for a client's test; stop waiting for one when the client leaves."""
    if not plan.wait_ns:
        return await admission.turns.take(client, plan)
    leaving = asyncio.create_task(control.receive())
    taking = asyncio.create_task(admission.turns.take(client, plan))
    try:
        for serial in count(1):
            pair = {leaving, taking}
            await asyncio.wait(pair, timeout=PING_INTERVAL_S, return_when=asyncio.FIRST_COMPLETED)
            if taking.done() or leaving.done():
                break
            control.try_send(Ping(serial))
            _check_alive(control)
        if taking.done():
            return taking.result()
        leaving.result()
        raise RemoteProtocolError("it did not wait for its turn")
    finally:
        if not taking.done():
            taking.cancel()
        leaving.cancel()
        await asyncio.gather(taking, leaving, return_exceptions=True)


async def _await_close(control: ControlConnection) -> None:
    """Wait until the client has closed: bytes that it still sends would reset the connection and its last message.

    On a slow link, the end arrives seconds later, behind this end's payload.
    """
    with contextlib.suppress(LinkgaugeError, TimeoutError):
        async with asyncio.timeout(_CLOSE_DEADLINE_S):
            while True:
                await control.receive()


def _check_alive(control: ControlConnection) -> None:
    """Raise SilentPeer if a waiting client has not answered for long."""
    silent_ns = time.monotonic_ns() - control.last_received_ns
    if silent_ns > MAX_SILENCE_NS:
        raise SilentPeer(f"nothing received for {silent_ns / SECOND_NS:.0f} s")


def _check_key_counts(proved: SharedKey | None, current: Sequence[SharedKey] | None) -> None:
    """Raise RequestDeclined if the key that the client proved is not one of the endpoint's any more."""
    if current is not None and (proved is None or proved.reveal() not in {key.reveal() for key in current}):
        raise RequestDeclined("its key has changed since you connected; connect again with the new key")


@contextlib.asynccontextmanager
async def _deadline(seconds: int, limit: str) -> AsyncGenerator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError as error:
        raise LimitReached(f"nothing received for {seconds} s", limit, seconds) from error


async def choose_mode(plan: Plan, chooser: ModeChooser | None, *, is_idle: bool) -> Mode | None:
    """Return the mode of a plan, or the one in which this host sends faster."""
    if chooser is None or not plan.sender_chooses_mode:
        return plan.mode
    return await chooser.choose(is_idle=is_idle)


async def carry_out(
    run: BaseFarRun, client: AdmittedClient, log: LogSink, what: str, **further: LogValue
) -> RunEnd:
    """Carry out a client's run, with the entries of its beginning and end in the log; return its end.

    Meanwhile it is the client's run. Afterwards its bytes count as an ended run's, and its counters are not read
    any more. A run that ends in order without payload was a probe. Call this within the block of the run's pool.
    """
    address, key = client.address or None, client.key_name

    def log_beginning() -> None:
        software, facts = "", {"hostname": client.hostname}
        if client.software is not None:
            software, facts = f": {client.software}", further
        log(LogEntry("client", f"connected{software}", client=address, key=key, **facts))
        log(LogEntry("run_began", f"started: {what}", client=address, key=key, **further))

    client.run = run
    run.on_start = log_beginning
    try:
        end = await run.execute()
    finally:
        run.turn.end()
        client.run = None
        run.on_start = None
    if not run.has_started and end.reason in {Reason.STOPPED, Reason.COMPLETED}:
        log(LogEntry("probe", "probed", client=address, key=key))
        return end
    if not run.has_started:
        log_beginning()
    log(_end_entry(end, run, client=address, key=key, **further))
    return end


def _end_entry(end: RunEnd, run: BaseFarRun, **further: LogValue) -> LogEntry:
    """Return the log entry of a run's end: its text is the reason, its fields have the figures."""
    status = run.get_status()
    text = {Reason.COMPLETED: "finished", Reason.STOPPED: "stopped"}.get(end.reason, f"INTERRUPTED: {end.detail}")
    return LogEntry(
        "run_ended",
        text,
        reason=end.reason,
        bytes=status.received_bytes + status.sent_bytes,
        received_bytes=status.received_bytes,
        sent_bytes=status.sent_bytes,
        milliseconds=status.elapsed_ns // 1_000_000,
        **further,
    )
