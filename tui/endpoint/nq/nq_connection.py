"""A connection of a client over HTTP/2: its requests, the bodies of their answers, and its deadlines.

h2 has the protocol, and moves no bytes. A long body goes out in pieces, each once the kernel has sent nearly all
before it: what waits in this process would delay the answers to probes on the same connection, and these are what
such a client measures.
"""

import asyncio
import contextlib
import os
import time
from collections.abc import Coroutine
from typing import Any, Final, NamedTuple, Protocol, cast

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    RequestReceived,
    StreamEnded,
    StreamReset,
)
from h2.exceptions import H2Error, NoSuchStreamError, StreamIDTooLowError
from h2.settings import SettingCodes, Settings

from ....engine.far.listener import format_host
from ....engine.far.status import LogEntry
from ....engine.model.directions import Direction
from ....engine.model.errors import RemoteProtocolError
from ....engine.model.plan import SECOND_NS
from .bodies import Bodies
from .frame_guard import MAX_FRAME_BYTES, MAX_HEADER_BYTES, FrameBudget, FrameGuard
from .http2_request import BINARY, Answer, Request

MAX_REQUESTS: Final = 10_000
"""The requests of a connection: h2 remembers how each stream has ended."""
STALL_NS: Final = 15 * SECOND_NS
_MAX_STREAMS: Final = 100
_MAX_LOADS: Final = 8
_IDLE_NS: Final = SECOND_NS
_WINDOW_BYTES: Final = 1 << 25  # what comes is counted and dropped at once, so that a window takes no memory
_FIRST_WINDOW_BYTES: Final = 65_535
_LARGE_BYTES: Final = 1 << 36
_ABORT_S: Final = 0.5
_CLOSE_S: Final = 5.0
_LARGE_HEADERS: Final = [(":status", "200"), ("content-type", BINARY), ("content-length", str(_LARGE_BYTES))]


class ConnectionLoad(Protocol):
    """The part of a connection in its client's test."""

    @property
    def has_begun(self) -> bool:
        """Whether payload may flow."""
        ...

    @property
    def unsent_bytes(self) -> int:
        """The bytes to send at once."""
        ...

    def open(self, direction: Direction, /) -> None:
        """Load the link in a direction from now on."""

    def close(self, direction: Direction, /) -> None:
        """Load the link no more in a direction."""

    def count(self, payload_bytes: int, /) -> None:
        """Count payload of an upload."""

    def lose(self) -> None:
        """Note that the connection stands still: the client may have gone."""

    def end(self) -> None:
        """Load the link no more: the connection has gone."""


class Transfer(NamedTuple):
    """The reply to a request that moves payload: `out` is a download."""

    load: ConnectionLoad
    direction: Direction


Reply = Answer | Transfer | Coroutine[Any, Any, Answer]


class Http2Service(Protocol):
    """What answers the requests of connections."""

    def log(self, entry: LogEntry, /) -> None:
        """Log an event."""

    def budget_of(self, connection: "NqConnection", /) -> FrameBudget:
        """Return what the connections of an address may send; this one counts from now on."""
        ...

    def reply(self, connection: "NqConnection", request: Request, /) -> Reply:
        """Return the answer to a request, or what it moves."""
        ...

    def forget(self, connection: "NqConnection", /) -> None:
        """Forget a connection that has gone."""


class NqConnection(asyncio.Protocol):
    """One connection. `service` answers its requests; `load` is its part of its client's test, once it has one."""

    def __init__(self, service: Http2Service) -> None:
        self._service = service
        self.address = ""
        self.load: ConnectionLoad | None = None
        self._protocol = _make_protocol()
        self._bodies = Bodies(self._protocol)
        self._active: set[int] = set()  # the streams whose answer is not whole yet
        self._uploads: set[int] = set()
        self._requests = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_paused = self._is_closing = self._closes_after = False
        self._abort: asyncio.TimerHandle | None = None
        self._pump_fd = -1
        self._is_pumping = False
        self._moved_ns = time.monotonic_ns()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Greet the client."""
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one by its methods only
        self.address = format_host(transport.get_extra_info("peername"))
        self._guard = FrameGuard(self._service.budget_of(self))
        self._protocol.initiate_connection()
        self._protocol.increment_flow_control_window(_WINDOW_BYTES - _FIRST_WINDOW_BYTES)
        self._send_waiting()

    @property
    def transport(self) -> asyncio.Transport | None:
        """The transport below; None if the connection has gone."""
        return getattr(self, "_transport", None)

    def copy_descriptor(self) -> int | None:
        """Return another descriptor of the connection; None if it has gone."""
        return None if self._is_closing else os.dup(self._transport.get_extra_info("socket").fileno())

    @property
    def moved_ns(self) -> int:
        """The monotonic time at which payload moved last, or a request came."""
        return self._moved_ns

    @property
    def is_idle(self) -> bool:
        """Whether the client awaits no answer, not even the rest of one."""
        return not self._active and not self._is_paused

    def data_received(self, data: bytes) -> None:
        """Act on what the client sends."""
        if self._is_closing:
            return
        now_ns = time.monotonic_ns()
        try:
            self._guard.admit(data, now_ns)
            for event in self._protocol.receive_data(data):
                with contextlib.suppress(NoSuchStreamError, StreamIDTooLowError):  # it was withdrawn meanwhile
                    self._handle(event, now_ns)
        except (RemoteProtocolError, H2Error) as error:
            self._fail(str(error) or type(error).__name__)
            return
        self._send_short()
        self._pump_if_possible()

    def eof_received(self) -> bool | None:
        """Let the connection be closed."""
        return None

    def pause_writing(self) -> None:
        """Read nothing from a client that does not read: its frames would cause further answers."""
        self._is_paused = True
        self._transport.pause_reading()
        self._stop_pump()

    def resume_writing(self) -> None:
        """Read and send again."""
        self._is_paused = False
        if not self._is_closing:
            self._transport.resume_reading()
            self._send_short()
            self._pump_if_possible()

    def connection_lost(self, exc: BaseException | None) -> None:
        """End what depends on the connection."""
        del exc
        self._is_closing = True
        self._stop_pump()
        if self._pump_fd >= 0:
            os.close(self._pump_fd)
            self._pump_fd = -1
        for task in self._tasks:
            task.cancel()
        if self.load is not None:
            self.load.end()
            self.load = None
        if self._abort is not None:
            self._abort.cancel()
        self._service.forget(self)
        del self._transport  # or TLS's 256 KiB of buffers wait for the search for cycles

    def force_close(self) -> None:
        """Close at once."""
        self._is_closing = True
        self._stop_pump()
        with contextlib.suppress(AttributeError):  # in a handshake of TLS there is no transport yet
            self._transport.abort()

    def close(self) -> None:
        """Tell the client that the connection ends, and end it."""
        if self._is_closing:
            return
        self._is_closing = True
        self._stop_pump()
        with contextlib.suppress(H2Error):
            self._protocol.close_connection()
        self._send_waiting()
        self._transport.close()
        self._abort_later(_CLOSE_S)

    def look(self, now_ns: int) -> None:
        """End a connection that awaits nothing, or whose client neither reads nor sends."""
        if self._is_closing:
            return
        still_ns = now_ns - self._moved_ns
        if self.is_idle and still_ns > _IDLE_NS:
            self.close()
        elif still_ns > STALL_NS:
            if self.load is not None:
                self.load.lose()
            self._fail(f"it has neither read nor sent for {STALL_NS // SECOND_NS} s")

    def begin(self) -> None:
        """Send what waits for the beginning of the test."""
        self._moved_ns = time.monotonic_ns()
        self._pump_if_possible()

    def _handle(self, event: Event, now_ns: int) -> None:
        match event:
            case DataReceived():
                self._take_data(event, now_ns)
            case RequestReceived():
                self._moved_ns = now_ns
                self._take_request(event.stream_id, Request.of_headers(event.headers or ()))
            case StreamEnded() if event.stream_id in self._uploads:
                self._end_upload(event.stream_id)
                self._answer(event.stream_id, Answer(200))
            case StreamReset():
                self._bodies.remove(event.stream_id)
                self._end_upload(event.stream_id)
                self._finish(event.stream_id)
            case ConnectionTerminated():
                self.close()
            case _:
                pass

    def _take_data(self, event: DataReceived, now_ns: int) -> None:
        """Count payload, and drop it."""
        if event.stream_id not in self._uploads:  # of an upload that was refused, or of no upload at all
            if self._bodies.has_short(event.stream_id):  # a stream that is reset would lose the reason
                self._protocol.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id)
                return
            self._bodies.remove(event.stream_id)
            self._finish(event.stream_id)
            self._protocol.reset_stream(event.stream_id, ErrorCodes.NO_ERROR)
            return
        if event.data:
            self._moved_ns = now_ns
            if self.load is not None:
                self.load.count(len(event.data))
        self._protocol.acknowledge_received_data(event.flow_controlled_length or 0, event.stream_id)

    def _take_request(self, stream: int, request: Request) -> None:
        self._requests += 1
        self._active.add(stream)
        reply = self._service.reply(self, request)
        if isinstance(reply, Answer):
            self._answer(stream, reply.to_method(request.method))
        elif not isinstance(reply, Transfer):
            task = asyncio.create_task(self._answer_later(stream, reply))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif self._bodies.long + len(self._uploads) >= _MAX_LOADS:
            self._answer(stream, Answer.of_text(429, "too many transfers over one connection", 1, closes=False))
        else:
            reply.load.open(reply.direction)
            if reply.direction is Direction.OUT:
                self._protocol.send_headers(stream, _LARGE_HEADERS)
                self._bodies.add_long(stream, _LARGE_BYTES)
            else:
                self._uploads.add(stream)

    async def _answer_later(self, stream: int, reply: Coroutine[Any, Any, Answer]) -> None:
        answer = await reply
        if self._is_closing or stream not in self._active:
            return
        try:
            self._answer(stream, answer)
        except H2Error as error:
            self._fail(str(error))
        else:
            self._send_short()

    def _answer(self, stream: int, answer: Answer) -> None:
        has_body = bool(answer.body) and answer.sends_body
        self._protocol.send_headers(stream, answer.header_list(), end_stream=not has_body)
        if has_body:
            self._bodies.add_short(stream, answer.body)
        else:
            self._finish(stream)
        if answer.closes or self._requests >= MAX_REQUESTS:
            self._closes_after = True

    def _send_short(self) -> None:
        """Send the short bodies, as far as the client takes them, and what else the protocol has to say."""
        try:
            ended = [] if self._is_paused else self._bodies.send_short()
        except H2Error as error:
            self._fail(str(error))
            return
        for stream in ended:
            self._finish(stream)
        self._send_waiting()

    def _pump_if_possible(self) -> None:
        """Send the long bodies, unless client, kernel or the test's beginning must be waited for."""
        load = self.load
        if self._is_pumping or self._is_paused or self._is_closing or not self._bodies.long:
            return
        if load is None or not load.has_begun:
            return
        if self._pump_fd < 0:
            self._pump_fd = self.copy_descriptor() or -1
        self._is_pumping = True
        asyncio.get_running_loop().add_writer(self._pump_fd, self._pump)

    def _pump(self) -> None:
        """Send the next pieces: the kernel has little left that is unsent (TCP_NOTSENT_LOWAT, tcp(7))."""
        load = self.load
        try:
            sent, ended = self._bodies.send_long(_FIRST_WINDOW_BYTES if load is None else load.unsent_bytes)
        except H2Error as error:
            self._fail(str(error))
            return
        for stream in ended:
            self._finish(stream)
        if not sent:
            self._stop_pump()  # until the client opens its window
            return
        self._moved_ns = time.monotonic_ns()
        self._guard.note_sent(sent)
        self._send_waiting()

    def _stop_pump(self) -> None:
        if self._is_pumping:
            self._is_pumping = False
            asyncio.get_running_loop().remove_writer(self._pump_fd)

    def _send_waiting(self) -> None:
        if self._closes_after and not self._active and not self._is_closing:
            self.close()  # the last answer and the end in one piece: a client sends no request in between
            return
        data = self._protocol.data_to_send()
        if data:
            self._transport.write(data)

    def _finish(self, stream: int) -> None:
        """Note that nothing is awaited on a stream any more."""
        self._active.discard(stream)
        self._moved_ns = time.monotonic_ns()
        if self.load is not None and not self._bodies.long:
            self.load.close(Direction.OUT)

    def _end_upload(self, stream: int) -> None:
        self._uploads.discard(stream)
        if self.load is not None and not self._uploads:
            self.load.close(Direction.IN)

    def _fail(self, reason: str) -> None:
        """End the connection of a client that breaks a rule. Nothing more is read: in TLS a close would read on."""
        self._service.log(
            LogEntry("dropped", f"rejected: an HTTP/2 connection: {reason}", client=self.address or None)
        )
        self._is_closing = True
        self._stop_pump()
        with contextlib.suppress(H2Error):
            self._protocol.close_connection(ErrorCodes.ENHANCE_YOUR_CALM)
        self._send_waiting()
        self._transport.pause_reading()
        self._abort_later(_ABORT_S)

    def _abort_later(self, seconds: float) -> None:
        """Give the client so long to take what waits for it."""
        if self._abort is None:
            self._abort = asyncio.get_running_loop().call_later(seconds, self._transport.abort)


def _make_protocol() -> H2Connection:
    """Return the protocol of a server, with limits that h2 enforces from the first byte on."""
    protocol = H2Connection(H2Configuration(client_side=False, header_encoding=None))
    protocol.local_settings = Settings(
        client=False,
        initial_values={
            SettingCodes.MAX_CONCURRENT_STREAMS: _MAX_STREAMS,
            SettingCodes.MAX_HEADER_LIST_SIZE: MAX_HEADER_BYTES,
            SettingCodes.INITIAL_WINDOW_SIZE: _WINDOW_BYTES,
            SettingCodes.MAX_FRAME_SIZE: MAX_FRAME_BYTES,
        },
    )
    protocol.max_inbound_frame_size = MAX_FRAME_BYTES
    protocol.decoder.max_header_list_size = MAX_HEADER_BYTES
    return protocol
