"""Commands to a worker process and events from it, and their channel: JSON lines over a socket pair.

Commands and events are two tagged unions of frozen dataclasses. Both ends of the channel are of one version of the
program, so these types may change freely. `Configure` is the first command. `OpenSession` and `AdoptSession` may
follow at any time; their payload waits for `StartPayload`. `WorkerReady` is the first event. Each opened or adopted
session is answered by `ConnectionOpened` or `ConnectionFailed`, unless newer settings have replaced it, and
`StopPayload` by `PayloadStopped`, `StopProbes` by `ProbesStopped`. The further probes of a responsiveness test are
opened like sessions, by their numbers; the handshake probe answers only if it cannot begin.

A line may carry a descriptor (SCM_RIGHTS, unix(7)): so an accepted connection gets to a worker. When one
process ends, the other reads the end of the channel; a worker then ends as well, whatever the reason.
"""

import asyncio
import json
import os
import socket
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar, get_args

from ..model.counters.session_counters import SocketInfo
from ..model.directions import Direction
from ..model.plan import DEFAULT_LOSS_GOAL_PPM, DEFAULT_SETTINGS, Mode, Settings
from ..model.serialization import decode_tagged, encode_tagged
from ..workloads.session_handshake import ConnectTarget, SessionConfig, SessionSpec


@dataclass(frozen=True, slots=True)
class Configure:
    """The part of a plan that a worker needs.

    A stream's sender takes `sending_mode` if there is one: `discard` says nothing about it.
    The worker pins itself to one of `cores`, if any. With `shares_core` the other end of each session runs
    on the same core. Requests `pace_ns` apart make a latency probe; 0 is no pace. `settings` are the run's first
    ones. `rate_bit_s` limits a direction's TCP sessions together; `bytes_limit` is their total. `loss_goal_ppm` is
    the loss goal of a search for the capacity. With `limits_unsent` senders keep little in their buffers that has
    not been sent. With `polls` a session of `rr` that has its worker to itself polls.
    """

    sessions: SessionConfig
    interval_ns: int
    block_bytes: int
    mode: Mode | None = None
    sending_mode: Mode | None = None
    request_bytes: int = 0
    response_bytes: int = 0
    burst: int = 1
    polls: bool = False
    pace_ns: int = 0
    cores: tuple[int, ...] = ()
    shares_core: bool = False
    settings: Settings = DEFAULT_SETTINGS
    rate_bit_s: int | None = None
    bytes_limit: int | None = None
    loss_goal_ppm: int = DEFAULT_LOSS_GOAL_PPM
    limits_unsent: bool = False


@dataclass(frozen=True, slots=True)
class OpenSession:
    """Near end: connect a session to the far end."""

    spec: SessionSpec
    target: ConnectTarget


@dataclass(frozen=True, slots=True)
class AdoptSession:
    """Far end: take over an accepted connection, whose descriptor comes with this command."""

    spec: SessionSpec


@dataclass(frozen=True, slots=True)
class StartPayload:
    """Let payload flow in all sessions, those opened later included."""


@dataclass(frozen=True, slots=True)
class StopPayload:
    """Send no further payload; what is on its way is still received.

    For datagrams, and streams of iperf3: they end before their connections do. A connection that ends
    after this command is not lost. With `ends_streams` this end's part of each connection ends behind its payload.
    """

    ends_streams: bool = False


@dataclass(frozen=True, slots=True)
class ChangeSettings:
    """Close the connections older than `oldest`, and those up to `generation` that `settings` do not have.

    The same fields as protocol.messages.Change, which would bring half of the engine into a worker.
    """

    settings: Settings
    generation: int
    oldest: int


@dataclass(frozen=True, slots=True)
class StopProbes:
    """End the further probes of a responsiveness test, after the answers that are on their way."""


Command = Configure | OpenSession | AdoptSession | StartPayload | StopPayload | ChangeSettings | StopProbes
COMMANDS: Final[tuple[type[Command], ...]] = get_args(Command)


@dataclass(frozen=True, slots=True)
class WorkerReady:
    """The worker process has its configuration."""


@dataclass(frozen=True, slots=True)
class PayloadStopped:
    """The worker has stopped its senders, and stored the counters of all its sessions."""


@dataclass(frozen=True, slots=True)
class ProbesStopped:
    """The worker has ended the further probes: nothing is on its way any more."""


@dataclass(frozen=True, slots=True)
class ConnectionOpened:
    """A session's connection is open."""

    info: SocketInfo


@dataclass(frozen=True, slots=True)
class ConnectionFailed:
    """A session's connection could not be opened."""

    direction: Direction
    session: int
    generation: int
    why: str


@dataclass(frozen=True, slots=True)
class ConnectionLost:
    """An open connection ended, and no command had asked for it."""

    direction: Direction
    session: int
    generation: int
    why: str


@dataclass(frozen=True, slots=True)
class MessageReceived:
    """A text message or a Close frame of a WebSocket, which came between the payload of a session."""

    direction: Direction
    session: int
    opcode: int
    data_hex: str


SessionEvent = ConnectionOpened | ConnectionFailed | ConnectionLost
WorkerEvent = WorkerReady | PayloadStopped | ProbesStopped | MessageReceived | SessionEvent
EVENTS: Final[tuple[type[WorkerEvent], ...]] = get_args(WorkerEvent)


_READ_BYTES: Final = 65_536
_MAX_FDS: Final = 64

M = TypeVar("M")


class WorkerChannel(Generic[M]):
    """One end of a channel on the running loop. `on_message(message, fd)` owns its descriptor.

    Args:
        sock: One socket of the pair, which the channel closes.
        kinds: The dataclasses that this end receives.
        on_message: Called with each message. The descriptor is None if none came, or if this process had reached
            its limit.
        on_eof: Called once when the other process has closed the channel or ended.
    """

    def __init__(
        self,
        sock: socket.socket,
        kinds: tuple[type[M], ...],
        on_message: Callable[[M, int | None], None],
        on_eof: Callable[[], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._sock = sock
        self._kinds = kinds
        self._on_message = on_message
        self._on_eof = on_eof
        self._pending: deque[tuple[bytes, int | None]] = deque()
        self._buffer = bytearray()
        self._fds: deque[int] = deque()
        self._closed = False
        sock.setblocking(False)
        self._loop.add_reader(sock, self._read)

    def send(self, message: object, fd: int | None = None) -> None:
        """Queue a dataclass and, if given, a descriptor, which the channel closes after sending."""
        if self._closed:
            if fd is not None:
                os.close(fd)
            return
        line = json.dumps({"fd": fd is not None, **encode_tagged(message)}).encode() + b"\n"
        self._pending.append((line, fd))
        if len(self._pending) == 1:
            self._loop.add_writer(self._sock, self._write)
            self._write()

    def close(self) -> None:
        """Close the channel and every descriptor in it."""
        if self._closed:
            return
        self._closed = True
        self._loop.remove_reader(self._sock)
        self._loop.remove_writer(self._sock)
        self._sock.close()
        for fd in [*self._fds, *(fd for _, fd in self._pending if fd is not None)]:
            os.close(fd)
        self._fds.clear()
        self._pending.clear()

    def _write(self) -> None:
        while self._pending and not self._closed:
            line, fd = self._pending[0]
            try:
                sent = self._sock.send(line) if fd is None else socket.send_fds(self._sock, [line], [fd])
            except BlockingIOError:
                return
            except OSError:  # the other process has ended; _read reports that
                self._loop.remove_writer(self._sock)
                return
            if fd is not None:
                os.close(fd)
            if sent < len(line):
                self._pending[0] = (line[sent:], None)
            else:
                self._pending.popleft()
        if not self._closed:
            self._loop.remove_writer(self._sock)

    def _read(self) -> None:
        try:
            data, fds, _flags, _address = socket.recv_fds(self._sock, _READ_BYTES, _MAX_FDS)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data, fds = b"", []
        self._fds.extend(fds)
        if not data:
            self._loop.remove_reader(self._sock)
            self._on_eof()
            return
        self._buffer += data
        *lines, rest = self._buffer.split(b"\n")
        self._buffer = bytearray(rest)
        for line in lines:
            if self._closed:
                return
            body = json.loads(line)
            # The descriptor is missing if this process had reached its limit.
            fd = self._fds.popleft() if body.pop("fd") and self._fds else None
            self._on_message(decode_tagged(self._kinds, body), fd)
