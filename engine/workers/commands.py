"""Commands to a worker process and events from it: two tagged unions of frozen dataclasses.

Both ends of the channel (ipc.py) are always the same version of the program, so these types may change freely.
`Configure` is the first command. `OpenSession` and `AdoptSession` may follow at any time; their payload waits for
`StartPayload`. `WorkerReady` is the first event. Each opened or adopted session is answered by `ConnectionOpened`
or `ConnectionFailed`, unless newer settings have replaced it meanwhile.
"""

from dataclasses import dataclass
from typing import Final

from ..model.plan import Direction, End, Mode, Settings, SocketOptions
from ..model.socket_info import SocketInfo
from ..model.workload import Workload
from ..workloads.session_handshake import ConnectTarget, SessionSpec


@dataclass(frozen=True, slots=True)
class Configure:
    """All that a worker needs of a plan.

    The worker pins itself to one of `cores`, if any. With `shares_core` the other end of each session runs on the
    same core. Requests `pace_ns` apart make a latency probe; 0 is no pace.
    """

    end: End
    interval_ns: int
    block_bytes: int
    mode: Mode | None
    socket: SocketOptions
    workload: Workload
    request_bytes: int
    response_bytes: int
    burst: int
    pace_ns: int
    cores: tuple[int, ...]
    shares_core: bool


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
class ApplyChange:
    """Close the connections older than `oldest`, and those up to `generation` that `settings` do not have.

    The same fields as protocol.messages.Change, which would bring half of the engine into a worker.
    """

    settings: Settings
    generation: int
    oldest: int


Command = Configure | OpenSession | AdoptSession | StartPayload | ApplyChange
COMMANDS: Final = (Configure, OpenSession, AdoptSession, StartPayload, ApplyChange)


@dataclass(frozen=True, slots=True)
class WorkerReady:
    """The worker process reads commands."""


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


SessionEvent = ConnectionOpened | ConnectionFailed | ConnectionLost
WorkerEvent = WorkerReady | SessionEvent
EVENTS: Final = (WorkerReady, ConnectionOpened, ConnectionFailed, ConnectionLost)
