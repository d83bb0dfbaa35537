"""One test of an iperf3 client: its states, its streams in worker processes, its results."""

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from ...far.base_run import BaseFarRun
from ...far.clients.admission import Grant
from ...model.counters.session_counters import SocketInfo
from ...model.directions import Direction, End
from ...model.errors import (
    ConnectionClosed,
    LimitReached,
    LinkgaugeError,
    RemoteProtocolError,
)
from ...model.plan import SECOND_NS
from ...model.run_end import EndText, Reason, RunEnd
from ...workers.ipc import AdoptSession, ConnectionFailed, ConnectionOpened, SessionEvent
from ...workers.pool import WorkerPool
from ...workloads.byte_budget import extend_amount
from ...workloads.session_handshake import Iperf3Format, SessionSpec
from ..channel import Iperf3Channel
from ..protocol.cookie_and_streams import list_streams
from ..protocol.json_bodies import MAX_CLIENT_RESULTS_BYTES
from ..protocol.refusals import ErrorNumber, Iperf3Refusal, refuse_by_number
from ..protocol.results import EndResults, decode_results, encode_results
from ..protocol.states import State
from .requests import KNOWS_TIME_EXPIRED, TestRequest, choose_workers, version_of
from .server_output import Iperf3Options, Observation, ServerOutput
from .stream_counts import TestCounts, totals_of_client

STREAMS_DEADLINE_S: Final = 8.0  # for the streams, and for each answer after the end: a client takes a moment
_FURTHER_STREAM_S: Final = 0.25  # for each stream in addition: over a long path they come one after the other
_LOSS_GRACE_S: Final = 1.0  # from the loss of a stream to the end: the client may be about to say why
_SILENCE_NS: Final = 120 * SECOND_NS  # without payload, as a stock server waits
_LEAST_PAYLOAD_BYTES: Final = 1_000  # between two looks, 16 kb/s: a trickle does not make a test worth its place
_PLACE_GIVEN_UP: Final = "it moved no payload for {idle_s:.0f} s, and another test needed its place"
_QUIET_S: Final = 1.0  # without progress, while the last bytes are on their way
_QUIET_DATAGRAMS_S: Final = 0.3
_MAX_REST_S: Final = 5.0
_REST_LOOK_S: Final = 0.02
_WHOLE_TEST_S: Final = 1e7  # the watch has the deadline of a test
_UNCOUNTED_NS: Final = 2 * SECOND_NS  # a client looks at its counts once a second
_UNCOUNTED_PARTS: Final = 100
_CLIENT_STOPPED: Final = "the client stopped the test"
_log = logging.getLogger(__name__)


class ClientTest(BaseFarRun):
    """A test between its parameters and its end. Meanwhile `attach_stream` takes the sockets of its streams."""

    LOOK_S = 0.5

    def __init__(
        self,
        channel: Iperf3Channel,
        request: TestRequest,
        options: Iperf3Options,
        grant: Grant,
        opening: "Callable[[ClientTest], AbstractAsyncContextManager[None]]",
    ) -> None:
        """Make a test that has no workers yet.

        Args:
            channel: The control connection, whose client has sent its parameters.
            request: The client's request.
            options: How the service makes the output of the server.
            grant: The endpoint's grant.
            opening: It is held while the test's streams are opened.
        """
        plan, parameters = request.plan, request.parameters
        super().__init__(plan, grant)
        self._channel, self._request, self._opening = channel, request, opening
        self._options = options
        own_plan = replace(plan, bytes_limit=parameters.sent_bytes, workers=choose_workers(parameters))
        self.pool = WorkerPool(
            End.FAR,
            self._limited(own_plan),
            self._handle_worker_event,
            self._handle_worker_loss,
            grant.limits.workers,
            Iperf3Format(parameters.has_64bit_counters, allows_fragments=not parameters.dont_fragment),
            sending_mode=request.mode,
        )
        self._streams = list_streams(parameters.direction, parameters.parallel)
        self._counts = TestCounts(self.pool.counters, self._streams, is_udp=parameters.is_udp)
        self._refusal: Iperf3Refusal | None = None
        self._takes_streams, self._attached = False, 0
        self._carried_bytes: int = 0  # at the last look
        self._arrived: list[tuple[int, socket.socket]] = []
        self._opened: list[SocketInfo] = []
        self._all_opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._moved_ns = time.monotonic_ns()  # when payload moved last
        self._idle_since_ns = self._moved_ns  # when it opened a stream, began, or moved more than a trickle
        self.has_payload = False  # it has moved more than a trickle
        self._lost_at_s: float | None = None
        self._observation: Observation | None = None

    @property
    def client(self) -> str:
        """The address of its client."""
        return self._request.client

    @property
    def takes_streams(self) -> bool:
        """Whether a stream of its client is awaited."""
        return self._takes_streams

    @property
    def stream_count(self) -> int:
        """The number of its streams in both directions."""
        return len(self._streams)

    @property
    def awaited_connections(self) -> int:
        """The number of TCP connections that its client is about to open."""
        is_awaiting = self._takes_streams and not self.has_datagrams
        return len(self._streams) - len(self._arrived) - self._attached if is_awaiting else 0

    def refuse(self, refusal: Iperf3Refusal, reason: Reason = Reason.FAILED) -> None:
        """End the test by a number of iperf3."""
        if not self._ending.done():
            self._refusal = refusal
            self.end(reason, str(refusal))

    def idle_ns(self, now_ns: int) -> int:
        """Return for how long it has not come nearer to its payload, or moved no more than a trickle of it."""
        if self._is_over and self.has_payload:  # it exchanges its results, for which there are deadlines
            return 0
        self._note_payload(now_ns, self.pool.counters.total_bytes())  # on a busy host the watch comes late
        return now_ns - self._idle_since_ns

    def give_up_place(self) -> None:
        """End the test for another one: it carries nothing, and the places are taken."""
        text = _PLACE_GIVEN_UP.format(idle_s=self.idle_ns(time.monotonic_ns()) / SECOND_NS)
        self.refuse(Iperf3Refusal(ErrorNumber.NO_DATA, text), Reason.PEER_STOPPED)

    async def attach_stream(self, sock: socket.socket, serial: int) -> None:
        """Take over the socket of a stream. `serial` orders the connections as they were accepted.

        Only the order identifies the streams of TCP, so they wait for the last one. Raises
        RemoteProtocolError if no stream is awaited.
        """
        if not self._takes_streams:
            raise RemoteProtocolError("a stream of an iperf3 test that awaits none")
        self._arrived.append((serial, socket.socket(fileno=sock.detach())))
        # As a long path needs; a stream now and then does not keep the place.
        self._idle_since_ns += round(_FURTHER_STREAM_S * SECOND_NS)
        self._takes_streams = len(self._arrived) + self._attached < len(self._streams)
        if self.has_datagrams or not self._takes_streams:
            arrived, self._arrived = sorted(self._arrived, key=lambda arrival: arrival[0]), []
            first, self._attached = self._attached, self._attached + len(arrived)
            streams = [stream for _, stream in arrived]
            try:
                for position, stream in enumerate(streams, first):
                    await self._pass_to_worker(position, stream)
            finally:
                for stream in streams:
                    stream.close()

    async def _pass_to_worker(self, position: int, stream: socket.socket) -> None:
        """Have a worker take over the socket of the stream at a position in the order of creation."""
        _, direction, session = self._streams[position]
        window_bytes = self._request.plan.settings.window_bytes
        spec = SessionSpec(direction, session, 0, window_bytes, self._request.cookie.hex())
        await self.pool.send_command(AdoptSession(spec), stream.detach())

    async def execute(self) -> RunEnd:
        """Serve the client until the test ends, and close its connection."""
        try:
            end = await self._serve(self._converse())
        finally:
            self._takes_streams = False
            for _, sock in self._arrived:
                sock.close()
            self._arrived.clear()
        self._give_back()
        await self._take_leave(end)
        return end

    def release(self) -> None:
        """Drop the references back to this test."""
        super().release()
        self._observation = None

    async def _take_leave(self, end: RunEnd) -> None:
        """Say the last word that this end of the test has for its client, and close the connection."""
        channel = self._channel
        if self._refusal is not None:
            await channel.send_error(self._refusal.number, self._refusal.system_errno)
        elif end.reason is Reason.PEER_LOST:
            channel.abort()
        else:
            if end.reason in {Reason.PEER_STOPPED, Reason.WORKER_LOST, Reason.FAILED}:
                with contextlib.suppress(ConnectionClosed):
                    await channel.send_state(State.SERVER_TERMINATE)
            await channel.aclose()

    async def _converse(self) -> None:
        """Go through the states of the test, and end it."""
        try:
            async with self._awaiting_state() as state:
                async with self._opening(self):
                    await self._open_streams(state)
                await self._channel.send_state(State.TEST_START)
                self._start()
                await self._channel.send_state(State.TEST_RUNNING)
                received = await state
            if received is State.TEST_END:
                await self._exchange_results()
                self.end(Reason.COMPLETED, "")
            else:
                self._check_state(received, State.TEST_END)
        except Iperf3Refusal as refusal:
            self.refuse(refusal)
        except ConnectionClosed as error:
            self.end(Reason.PEER_LOST, EndText.NEAR_GONE.format(error=error))
        except RemoteProtocolError as error:
            self.refuse(Iperf3Refusal(ErrorNumber.MESSAGE, str(error)))
        except LinkgaugeError as error:
            self.refuse(Iperf3Refusal(ErrorNumber.CREATE_STREAM, str(error)))

    @asynccontextmanager
    async def _awaiting_state(self) -> AsyncGenerator["asyncio.Task[State]"]:
        """Read the next state in the background: a client may stop, or go, at any time."""
        task = asyncio.create_task(self._read_next_state())
        try:
            yield task
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _read_next_state(self) -> State:
        try:
            state = await self._channel.read_state(_WHOLE_TEST_S)
        except ConnectionClosed as error:
            self.end(Reason.PEER_LOST, EndText.NEAR_GONE.format(error=error))
            raise
        if state is State.CLIENT_TERMINATE:
            self.end(Reason.STOPPED, _CLIENT_STOPPED)
        return state

    def _check_state(self, state: State, expected: State) -> None:
        """Raise RemoteProtocolError unless a state is the expected one, or the client has stopped the test."""
        if state is State.CLIENT_TERMINATE:
            self.end(Reason.STOPPED, _CLIENT_STOPPED)
        elif state is not expected:
            raise RemoteProtocolError(f"iperf3 sent {state.name} in the place of {expected.name}")

    async def _open_streams(self, state: "asyncio.Task[State]") -> None:
        """Have the client open its streams, and wait until workers have all of them."""
        self._takes_streams = True
        await self._channel.send_state(State.CREATE_STREAMS)
        opened, deadline_s = self._all_opened, STREAMS_DEADLINE_S + _FURTHER_STREAM_S * len(self._streams)
        await asyncio.wait({opened, state}, timeout=deadline_s, return_when=asyncio.FIRST_COMPLETED)
        if state.done():
            raise RemoteProtocolError(f"iperf3 sent {state.result().name} before the test began")
        if not opened.done():
            text = f"{self._attached + len(self._arrived)} of {len(self._streams)} streams came in {deadline_s:g} s"
            raise Iperf3Refusal(ErrorNumber.STREAM_ACCEPT, text)

    def _start(self) -> None:
        """Let payload flow: the clocks of both ends start now."""
        self._counts.begin(time.monotonic_ns())
        self._begin()
        self._idle_since_ns = time.monotonic_ns()
        omit_s = self._request.parameters.omit_s
        if omit_s:
            self._run_task(self._end_omitted_part(omit_s))
        observe = self._options.observe
        if self._request.parameters.asks_output and observe is not None:
            utc = datetime.now(UTC).isoformat(timespec="milliseconds")
            others = self.turn.read_others()
            self._observation = Observation(observe(), self._request, self.pool.counters, others)
            self._observation.begin(utc, self._channel.local_address, self._opened)
            self._run_task(self._observation.sample())

    async def _end_omitted_part(self, omit_s: int) -> None:
        await asyncio.sleep(omit_s)
        self._counts.begin(time.monotonic_ns())
        self._send_more(self._request.parameters.sent_bytes or 0)

    def _send_more(self, count: int) -> None:
        """Send more bytes than the client has asked for."""
        with self.pool.counters.claims(Direction.IN) as claims:
            extend_amount(claims, count)

    def _send_uncounted(self, now_ns: int) -> None:
        """Send a part of the bytes again if the client has all of them and does not end the test.

        The threads of a client share one count, and sometimes one overwrites what another has added.
        """
        parameters = self._request.parameters
        acknowledged_ns = self.pool.counters.last_received_ns()
        if parameters.sent_bytes is not None and now_ns - acknowledged_ns > _UNCOUNTED_NS:
            blocks = parameters.parallel * parameters.block_bytes
            self._send_more(max(blocks, parameters.sent_bytes // _UNCOUNTED_PARTS))

    async def _exchange_results(self) -> None:
        """Take the final counts, exchange results, and wait until the client is done."""
        channel, parameters, now_ns = self._channel, self._request.parameters, time.monotonic_ns()
        self._is_over = True
        self._counts.end(now_ns, Direction.OUT)
        # A client up to 3.15 reads its streams to their end before it reads further.
        self.pool.stop_payload(ends_streams=True)
        await channel.send_state(State.EXCHANGE_RESULTS)
        theirs = decode_results(await channel.read_json(MAX_CLIENT_RESULTS_BYTES, STREAMS_DEADLINE_S))
        await self.pool.await_stopped()
        self._counts.end(now_ns, Direction.IN)
        if parameters.bytes_limit or parameters.block_limit:
            await self._await_rest(theirs)
        results = self._counts.results(self._opened[0].congestion if self._opened else None)
        if self._observation is not None:
            results = replace(results, server_output=self._make_output(self._observation, theirs))
        await channel.send_json(encode_results(results))
        await channel.send_state(State.DISPLAY_RESULTS)
        self._check_state(await channel.read_state(STREAMS_DEADLINE_S), State.IPERF_DONE)

    async def _await_rest(self, theirs: EndResults) -> None:
        """Wait until all bytes that the client has sent are in, while they come."""
        out_ids = {number for number, direction, _ in self._streams if direction is Direction.OUT}
        sent = sum(result.bytes for result in theirs.streams if result.id in out_ids)
        loop = asyncio.get_running_loop()
        began_s = moved_s = loop.time()
        quiet_s = _QUIET_DATAGRAMS_S if self.has_datagrams else _QUIET_S
        carried = self._counts.measured_bytes(Direction.OUT)
        moved_ns = 0
        while carried < sent:
            await asyncio.sleep(_REST_LOOK_S)
            before, carried = carried, self._counts.measured_bytes(Direction.OUT)
            now_s = loop.time()
            if carried != before:
                moved_s, moved_ns = now_s, time.monotonic_ns()
            if now_s - moved_s >= quiet_s or now_s - began_s >= _MAX_REST_S:
                break
        self._counts.end(moved_ns, Direction.OUT)

    def _make_output(self, observation: Observation, theirs: EndResults) -> ServerOutput | None:
        """Return the output of the server, with the counts of both ends."""
        totals = totals_of_client(theirs, self._streams, self._counts.span_ns, is_udp=self.has_datagrams)
        return observation.make_output(totals)

    def _note_payload(self, now_ns: int, total_bytes: int) -> None:
        if total_bytes - self._carried_bytes >= _LEAST_PAYLOAD_BYTES:
            self._idle_since_ns, self.has_payload = now_ns, True

    def _look(self, now_ns: int, total_bytes: int) -> None:
        """End the test when it carries nothing, or has lost a stream."""
        self._note_payload(now_ns, total_bytes)
        if total_bytes != self._carried_bytes or not self.has_started:
            self._moved_ns, self._carried_bytes = now_ns, total_bytes
        still_ns = now_ns - self._moved_ns
        if still_ns > _UNCOUNTED_NS:
            self._send_uncounted(now_ns)
        if still_ns > _SILENCE_NS:
            self.refuse(refuse_by_number(ErrorNumber.NO_DATA), Reason.PEER_LOST)
        lost_at_s = self._lost_at_s
        if lost_at_s is not None and asyncio.get_running_loop().time() - lost_at_s > _LOSS_GRACE_S:
            self.refuse(Iperf3Refusal(ErrorNumber.STREAM_READ, "a stream was closed"), Reason.SESSION_LOST)

    def _stop_for_limit(self, error: LimitReached) -> None:
        if error.limit in {"duration_s", "udp_duration_s"}:
            self._stop_overdue(str(error), Reason.PEER_STOPPED)
        else:
            self.refuse(Iperf3Refusal(ErrorNumber.TOTAL_RATE, str(error)), Reason.PEER_STOPPED)

    def _stop_overdue(self, text: str, reason: Reason = Reason.FAILED) -> None:
        """End a test that lasts too long, with a number that its client's version knows."""
        if version_of(self._request.parameters) >= KNOWS_TIME_EXPIRED:
            self.refuse(Iperf3Refusal(ErrorNumber.TIME_EXPIRED, text), reason)
        else:
            self.end(reason, text)

    def _handle_worker_event(self, event: SessionEvent) -> None:
        if isinstance(event, ConnectionOpened):
            self._opened.append(event.info)
            if len(self._opened) == len(self._streams) and not self._all_opened.done():
                self._all_opened.set_result(None)
        elif isinstance(event, ConnectionFailed):
            self.refuse(Iperf3Refusal(ErrorNumber.CREATE_STREAM, event.why))
        elif not self._is_over and self._lost_at_s is None:
            _log.debug("iperf3 stream %s %s is lost: %s", event.direction, event.session, event.why)
            self._lost_at_s = asyncio.get_running_loop().time()
