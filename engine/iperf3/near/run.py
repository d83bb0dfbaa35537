"""A run against an iperf3 server.

Its events are those of every run, with two differences: a sample of the far end has the local kernel's counts
(`Sample.is_from_sender`), and the results of the server follow the last sample as `Totals`.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

from .... import __version__
from ...control.handshake import HandshakeResult
from ...metering.drain import MAX_DRAIN_S
from ...model.directions import Direction
from ...model.errors import ConnectionClosed, RemoteProtocolError, ServerEnded
from ...model.events import Sampled, Totals
from ...model.peer import Peer
from ...model.plan import (
    MAX_BYTES_LIMIT,
    MAX_DATAGRAM_BYTES,
    MIN_BLOCK_BYTES,
    MIN_DATAGRAM_BYTES,
    SECOND_NS,
    Mode,
    Plan,
    Settings,
)
from ...model.run_end import EndText, Reason, RunEnd
from ...model.texts.warning_text import WarningText
from ...near.base_run import ExpectationFinder, WorkerSetup, conduct, no_expectation
from ...near.foreign.unseen_far_end import UnseenFarEndRun, prepared
from ...near.session_set import SessionSet
from ...near.socket_option_checks import check_binding
from ...protocol.foreign.missing_features import Feature, why_unavailable
from ...workers.ipc import OpenSession
from ...workers.pool import WorkerPool
from ...workloads.session_handshake import ConnectTarget, Iperf3Format, SessionSpec
from ..protocol.cookie_and_streams import list_streams
from ..protocol.parameters import (
    DEFAULT_BLOCK_BYTES,
    DEFAULT_DATAGRAM_BYTES,
    MAX_BLOCK_BYTES,
    TestParameters,
)
from ..protocol.plans import omit_seconds, parameters_of
from ..protocol.results import EndResults
from ..protocol.users import make_token
from .client import Iperf3Client, connect_client
from .totals import NearCounts, build_totals, find_discrepancies

_CLIENT_VERSION: Final = f"linkgauge {__version__}"
FINISH_DEADLINE_S: Final = 5.0
_SLOW_BLOCKS_S: Final = 10
_TAIL_S: Final = 0.25  # for datagrams on their way to the server: it counts until it reads that the test has ended
_REASON_GRACE_S: Final = 0.5  # the server may say why it does not accept a stream
_MIN_CHECK_S: Final = 0.001
_MAX_CHECK_S: Final = 0.01
_CHECK_DIVISOR: Final = 64
_MAX_WARMUP: Final = 0.9  # of the duration in the plan


@asynccontextmanager
async def open_iperf3_run(
    plan: Plan,
    peer: Peer,
    *,
    expectation_for: ExpectationFinder = no_expectation,
    mode: Mode | None = None,
) -> AsyncGenerator["Iperf3Run"]:
    """Start a run against an iperf3 server and yield it; on leaving the block, stop it and wait for its end.

    Args:
        plan: the run to carry out.
        peer: the server.
        expectation_for: returns the rates to expect under given settings.
        mode: how this end moves payload if the plan does not name a mode; None copies.

    Raises:
        PlanError: iperf3 cannot carry out the plan, or this machine lacks something for it.
        PeerError: the server cannot be used, or declines the test.
        WorkerError: a worker process does not start.
    """
    whole_plan = with_whole_blocks(with_whole_warmup(plan))
    if plan.workload.is_datagram and plan.settings.follows_receiver:  # nothing that comes back could be followed
        whole_plan = replace(whole_plan, settings=replace(plan.settings, floods=True))
    async with (
        prepared(plan, peer),
        connect_client(peer, plan.socket, partial(check_binding, plan)) as (client, ends),
    ):
        whole_plan = with_datagram_size(whole_plan, client)
        run = Iperf3Run(whole_plan, peer, client, ends, expectation_for, mode)
        if plan.warmup_auto or (plan.warmup_ns is not None and plan.warmup_ns != whole_plan.warmup_ns):
            run.note(WarningText.IPERF3_WARMUP.format(seconds=omit_seconds(whole_plan)))
        async with conduct(run):
            yield run


def with_whole_warmup(plan: Plan) -> Plan:
    """Return the plan with the warm-up that an iperf3 server leaves out as well: whole seconds."""
    seconds = omit_seconds(plan)
    if plan.duration_ns is not None:
        seconds = min(seconds, int(plan.duration_ns * _MAX_WARMUP) // SECOND_NS)
    return replace(plan, warmup_ns=seconds * SECOND_NS, warmup_auto=False)


def with_whole_blocks(plan: Plan) -> Plan:
    """Return the plan with a limit of whole blocks: servers since 3.16 do not count the part of one."""
    if plan.bytes_limit is None:
        return plan
    size = block_bytes_of(plan)
    return replace(plan, bytes_limit=min(-(-plan.bytes_limit // size) * size, MAX_BYTES_LIMIT // size * size))


def block_bytes_of(plan: Plan) -> int:
    """Return the size of the blocks in which a server reads the streams of a plan.

    If the user did not choose it, it is iperf3's own: the last part of a block of linkgauge's size would be missing
    in a short test. At a low rate it is smaller: a server sends only whole blocks.
    """
    if plan.block_bytes == Plan().block_bytes:
        if plan.rate_bit_s is None:
            return DEFAULT_BLOCK_BYTES
        slow_bytes = plan.rate_bit_s // (8 * plan.settings.sessions * _SLOW_BLOCKS_S)
        return min(DEFAULT_BLOCK_BYTES, max(MIN_BLOCK_BYTES, slow_bytes))
    return min(plan.block_bytes, MAX_BLOCK_BYTES)


def with_datagram_size(plan: Plan, client: Iperf3Client) -> Plan:
    """Return the plan with a size of its datagrams: a server reads no more of each than the parameters say.

    Without one it is the segment size of the control connection, which iperf3 chooses as well.
    """
    settings = plan.settings
    if not plan.workload.is_datagram or settings.datagram_bytes is not None:
        return plan
    size = min(max(client.segment_bytes or DEFAULT_DATAGRAM_BYTES, MIN_DATAGRAM_BYTES), MAX_DATAGRAM_BYTES)
    size = min(size, settings.slow_datagram_bytes or size)
    return replace(plan, settings=replace(settings, datagram_bytes=size))


def make_parameters(plan: Plan, peer: Peer) -> TestParameters:
    """Return the parameters of a run's test."""
    parameters = parameters_of(plan, auth_token=_make_token(peer), client_version=_CLIENT_VERSION)
    if plan.workload.is_datagram:
        return parameters
    return replace(parameters, block_bytes=block_bytes_of(plan))


def _make_token(peer: Peer) -> str | None:
    """Return the token of the peer's user, valid for ten seconds; None without a user."""
    settings = peer.iperf3
    if settings is None or settings.user is None or settings.login is None:
        return None
    login = settings.login
    return make_token(
        settings.user, login.password, login.public_key, datetime.now(UTC).timestamp(), is_pkcs1=login.is_pkcs1
    )


class Iperf3Sessions(SessionSet):
    """Opens the sessions of a test with an iperf3 server one after the other.

    The server identifies streams by the order in which it accepts them: those that it receives come first.
    """

    def __init__(self, pool: WorkerPool, settings: Settings, first_port: int | None) -> None:
        super().__init__()
        self._pool = pool
        self._settings = settings
        self._first_port = first_port

    async def open_all(self, cookie: bytes, address: tuple[str | int, ...]) -> None:
        """Open all sessions; raise PeerUnreachable if one cannot be opened.

        `cookie` names the test, `address` is the server's.
        """
        settings = self._settings
        streams = list_streams(settings.direction, settings.sessions)
        for offset, (_, direction, session) in enumerate(streams):
            spec = SessionSpec(direction, session, 0, settings.window_bytes, cookie.hex())
            port = None if self._first_port is None else self._first_port + offset
            command = OpenSession(spec, ConnectTarget.from_address("", address, port))
            await self.open_one((direction, session), partial(self._pool.send_command, command))


class Iperf3Run(UnseenFarEndRun):
    """A run against an iperf3 server."""

    def __init__(
        self,
        plan: Plan,
        peer: Peer,
        client: Iperf3Client,
        ends: HandshakeResult,
        expectation_for: ExpectationFinder,
        mode: Mode | None,
    ) -> None:
        """Make a run that has not begun.

        Args:
            plan: the run to carry out, with a warm-up of whole seconds.
            peer: the server, named in events and errors.
            client: the control conversation, before its first byte.
            ends: the descriptions of both ends.
            expectation_for: returns the rates to expect under given settings.
            mode: how this end moves payload if the plan does not name a mode; None copies.
        """
        self._parameters = make_parameters(plan, peer)
        super().__init__(
            plan,
            peer,
            ends,
            client.ip_version,
            expectation_for,
            WorkerSetup(mode, Iperf3Format(self._parameters.has_64bit_counters)),
        )
        self._server = peer
        self._client = client
        self._streams = list_streams(plan.settings.direction, plan.settings.sessions)
        self._opener = Iperf3Sessions(self.pool, plan.settings, plan.client_port)
        self._sessions = self._opener
        self._counts = NearCounts()
        self._drained = asyncio.Event()
        self._concluded = asyncio.Event()
        self._failed_end: RunEnd | None = None
        self._why_without_results: str | None = None
        self._totals: Totals | None = None

    def note(self, text: str) -> None:
        """Emit a warning."""
        self._events.warn(text)

    def change_settings(self, settings: Settings) -> None:
        """Warn that an iperf3 server cannot change a test, and leave everything as it is."""
        reason = why_unavailable(self._server, Feature.LIVE_CHANGES)
        if settings != self.settings and not self._ending.done() and reason is not None:
            self._events.warn(WarningText.SETTINGS_FIXED.format(reason=reason))

    async def _open(self) -> None:
        """Open the test and all of its sessions. An iperf3 server has nothing that measures the idle link."""
        await self._client.open_test(self._parameters)
        await self._open_sessions()

    async def _open_sessions(self) -> None:
        """Open the sessions, and return when the server has started the test."""
        starting = asyncio.ensure_future(self._client.await_start())
        opening = asyncio.ensure_future(self._opener.open_all(self._client.cookie, self._client.server_address))
        both = [starting, opening]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_EXCEPTION)
            if opening.done() and opening.exception() is not None:
                await asyncio.wait([starting], timeout=_REASON_GRACE_S)
            for task in both:  # the server's message comes first
                if task.done():
                    task.result()
        finally:
            for task in both:
                task.cancel()
            await asyncio.gather(*both, return_exceptions=True)

    def _listen(self) -> None:
        self._run_task(self._converse())
        if self.plan.bytes_limit is not None:
            self._run_task(self._await_bytes(self.plan.bytes_limit))

    async def _converse(self) -> None:
        """Read the server's messages up to its results; any other message ends the run."""
        try:
            await self._client.await_end()
            await self._drained.wait()
            far = await self._client.exchange_results(self._counts.make_results(self._streams))
            self._take_results(far)
        except ServerEnded as error:
            self._why_without_results = str(error)
            self.stop(Reason.PEER_STOPPED, EndText.IPERF3_ENDED.format(reason=error))
        except ConnectionClosed as error:
            self._why_without_results = str(error)
            self.stop(Reason.PEER_LOST, EndText.FAR_GONE.format(error=error))
        except RemoteProtocolError as error:
            self._failed_end = RunEnd(Reason.FAILED, EndText.FAR_NOT_UNDERSTOOD.format(error=error))
            self.stop(Reason.FAILED, self._failed_end.detail)
        self._concluded.set()

    def _take_results(self, far: EndResults) -> None:
        """Emit the results of the server."""
        totals = build_totals(far, self._counts, self._streams, is_datagram=self.plan.workload.is_datagram)
        if totals is None:
            self._why_without_results = "its results name none of the sessions"
            return
        self._totals = totals

    async def _await_bytes(self, limit: int) -> None:
        """End the run as soon as every direction has carried its bytes: until then the server's clock runs."""
        flows = self.settings.direction.flows
        while min(map(self.pool.counters.flow_bytes, flows)) < limit:
            elapsed_s = self._sampler.elapsed_ns / SECOND_NS
            await asyncio.sleep(min(max(elapsed_s / _CHECK_DIVISOR, _MIN_CHECK_S), _MAX_CHECK_S))
        self.stop(Reason.COMPLETED, EndText.DURATION_UP.value)

    async def _finish(self, end: RunEnd) -> RunEnd:
        """Stop the senders, end the test, and wait for the results of the server."""
        self._stop_sampling()
        self.pool.stop_payload()
        if end.reason in {Reason.PEER_LOST, Reason.PEER_STOPPED}:
            self._client.abort()
            return end
        flows, is_datagram = self.settings.direction.flows, self.plan.workload.is_datagram
        if is_datagram and Direction.OUT in flows:
            await asyncio.sleep(_TAIL_S)
        with contextlib.suppress(ConnectionClosed):  # read as well, with its reason
            await self._client.end_test()
        has_tail = is_datagram and not self._failure
        draining = asyncio.create_task(self._drain_all(has_tail=has_tail))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FINISH_DEADLINE_S + (MAX_DRAIN_S if has_tail else 0)):
                await self._concluded.wait()
        await draining
        self._report_results()
        is_told = self._totals is not None or self._failed_end is not None
        # Only the server knows the fate of datagrams. For TCP the local kernel does, too, while the server lives.
        if not is_told and end.reason.is_regular and (is_datagram or not self._concluded.is_set()):
            return RunEnd(Reason.PEER_LOST, EndText.END_UNCONFIRMED.value)
        return self._failed_end or end

    async def _drain_all(self, *, has_tail: bool) -> None:
        """Count the datagrams that were on their way; the results of this end are complete then."""
        try:
            if has_tail and Direction.IN in self.settings.direction.flows:
                await self._drain()
            elif has_tail:
                self._take_drain_sample()  # the bytes sent after the last sample
        finally:
            self._drained.set()

    def _report_results(self) -> None:
        """Emit the totals of the server, or a warning that there are none."""
        if self._totals is not None:
            self._events.put(self._totals)
            for text in find_discrepancies(self._totals, self._counts):
                self._events.warn(text)
        elif self._failed_end is None:
            reason = self._why_without_results or f"none came within {FINISH_DEADLINE_S:g} s"
            self._events.warn(WarningText.IPERF3_RESULTS_MISSING.format(reason=reason))

    def _note_sample(self, sampled: Sampled) -> None:
        self._counts.add_sample(sampled.sample, is_warmup=sampled.warmup)

    def _poll_far_end(self) -> int | None:
        """Return the time of the last segment from the server, of control or payload.

        None if this kernel does not report it: its keepalive ends the connection then.
        """
        received_ns = self._client.last_received_ns()
        return None if received_ns is None else max(received_ns, self.pool.counters.last_received_ns())
