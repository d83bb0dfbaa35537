"""A relay between a near end and an endpoint that breaks one connection of a run, at a chosen moment."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import array
import asyncio
import contextlib
import fcntl
import socket
import struct
import termios
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar

from linkgauge.engine.control.connection import ControlConnection
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.protocol.messages import Message
from linkgauge.engine.protocol.preamble import DATA_KIND, PREAMBLE_BYTES, decode_preamble

ACCESS = {"keyed": (True, False), "open": (False, False), "tls": (True, True)}
"""The kinds of endpoints: whether each has a key, and whether it has TLS."""

_RATE_BIT_S = 20_000_000
_CHUNK_BYTES = 65_536
_UNREAD_DEADLINE_S = 0.5
_GARBAGE = b"\xff"
_TLS_RECORD = b"\x16"


class Damage(StrEnum):
    """How a connection breaks, as the other end sees it."""

    RESET = "reset"
    HALF_CLOSE = "half-close"
    SILENCE = "silence"
    CLOSE_UNREAD = "close unread"
    GARBAGE = "garbage"


class Kind(StrEnum):
    """The two kinds of connections."""

    CONTROL = "control"
    DATA = "data"


@dataclass(frozen=True)
class Break:
    """Which connection breaks, how, and after how many bytes of the end that breaks it.

    `after_bytes` None leaves the moment to `BreakingRelay.break_now` and `break_at_next_chunk`.
    """

    kind: Kind
    damage: Damage
    after_bytes: int | None = None


@dataclass(frozen=True)
class State:
    """A moment of a conversation: so many bytes of the end that breaks it, or a message that it is about to send.

    Args:
        name: What a person calls it.
        kind: The connection that breaks.
        after_bytes: The bytes that have passed, where bytes say it.
        message: The message's name, where a message says it.
        number: Which of these messages.
        share: The share of the message that passes; None breaks the connection before it.
    """

    name: str
    kind: Kind = Kind.CONTROL
    after_bytes: int | None = None
    message: str = ""
    number: int = 1
    share: float | None = None


@dataclass(frozen=True)
class BrokenRun:
    """A run at an endpoint of a kind of ACCESS, and how one of its connections breaks."""

    sessions: ClassVar[int] = 1

    access: str
    loop: str
    state: State
    damage: Damage
    workload: Workload
    direction: Direction

    def __str__(self) -> str:
        return f"{self.access} {self.loop} {self.state.name} {self.damage} {self.workload} {self.direction}"

    @property
    def seconds(self) -> float:
        """The length of the run."""
        return 0.5

    @property
    def plan(self) -> Plan:
        """The plan of the run. It is slow: many run at once."""
        return Plan(
            Settings(self.direction, self.sessions),
            self.workload,
            duration_ns=int(self.seconds * SECOND_NS),
            interval_ns=SECOND_NS // 10,
            rate_bit_s=_RATE_BIT_S if self.workload.is_bulk else None,
            workers=1,
        )


before_send: ContextVar[Callable[[str], None]] = ContextVar("before_send")
"""Is called with the name of each message that a WatchedControl of this context is about to send."""


class WatchedControl(ControlConnection):
    """A control connection that reports each message before it is sent."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._before_send = before_send.get(lambda _name: None)

    def send(self, message: Message) -> None:
        """Report a message, then send it."""
        self._before_send(type(message).__name__)
        super().send(message)


class _Pair:
    """The two sockets of a relayed connection: towards the end that suffers, and towards the one that breaks it."""

    def __init__(self, suffering: socket.socket, breaking: socket.socket, kind: Kind) -> None:
        self.suffering, self.breaking, self.kind = suffering, breaking, kind
        self.passed_bytes = 0
        self.is_broken = False
        self.pumps: list[asyncio.Task[None]] = []


class BreakingRelay:
    """A relay whose one break happens once. `port` is where the near end connects.

    A control connection that breaks takes all other connections with it: they fall silent and stay open, which is
    the worst that an end can do. After the break of a data connection the others are relayed on.
    """

    def __init__(self, target: tuple[str, int], suffering: End, planned: Break) -> None:
        self.has_broken = asyncio.Event()
        self._target = target
        self._suffering = suffering
        self._planned = planned
        self._pairs: list[_Pair] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._at_next: tuple[End, float] | None = None
        family = socket.AF_INET6 if ":" in target[0] else socket.AF_INET
        self._listener = socket.create_server((target[0], 0), family=family)
        self._listener.setblocking(False)
        self.port: int = self._listener.getsockname()[1]

    def watch(self, state: State, sender: End) -> Callable[[str], None]:
        """Return a function to call before each message of an end; it breaks the connection at its state."""
        names: list[str] = []

        def note(name: str) -> None:
            names.append(name)
            if name != state.message or names.count(name) != state.number:
                return
            if state.share is None:
                self.break_now()
            else:
                self.break_at_next_chunk(sender, state.share)

        return note

    def break_now(self) -> None:
        """Break the planned connection, of several the latest: nothing more passes."""
        for pair in [pair for pair in self._pairs if pair.kind is self._planned.kind][-1:]:
            self._break(pair)

    def break_at_next_chunk(self, sender: End, share: float = 1.0) -> None:
        """Break the control connection once this share of the next bytes of an end has passed."""
        self._at_next = sender, share

    def _break(self, pair: _Pair) -> None:
        if self.has_broken.is_set():
            return
        self.has_broken.set()
        for each in self._pairs if pair.kind is Kind.CONTROL else [pair]:
            each.is_broken = True
        self._start(self._damage(pair))

    async def _damage(self, pair: _Pair) -> None:
        for pump in pair.pumps:
            pump.cancel()
        if pair.pumps:
            await asyncio.wait(pair.pumps)
        sock, loop = pair.suffering, asyncio.get_running_loop()
        with contextlib.suppress(OSError):
            match self._planned.damage:
                case Damage.RESET:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    sock.close()
                case Damage.HALF_CLOSE:
                    sock.shutdown(socket.SHUT_WR)
                    await _discard(sock)
                case Damage.CLOSE_UNREAD:
                    async with asyncio.timeout(_UNREAD_DEADLINE_S):
                        while not _unread_bytes(sock):  # noqa: ASYNC110 - nothing tells
                            await asyncio.sleep(0.005)
                    sock.close()
                case Damage.GARBAGE:
                    await loop.sock_sendall(sock, _GARBAGE)
                    await _discard(sock)
                case Damage.SILENCE:
                    pass
        if self._planned.damage is Damage.CLOSE_UNREAD:
            sock.close()

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def serve(self) -> None:
        """Accept connections until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            near, _address = await loop.sock_accept(self._listener)
            near.setblocking(False)
            self._start(self._relay(near))

    async def _relay(self, near: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        far = socket.socket(self._listener.family)
        far.setblocking(False)
        is_far = self._suffering is End.FAR
        pair = _Pair(far if is_far else near, near if is_far else far, Kind.CONTROL)
        self._pairs.append(pair)
        with contextlib.suppress(OSError):
            await loop.sock_connect(far, self._target)
            first = b""
            while len(first) < PREAMBLE_BYTES and not first.startswith(_TLS_RECORD):
                part = await loop.sock_recv(near, _CHUNK_BYTES)
                if not part:
                    return
                first += part
            preamble = decode_preamble(first[:PREAMBLE_BYTES]) if len(first) >= PREAMBLE_BYTES else None
            if preamble is not None and preamble[1] == DATA_KIND:
                pair.kind = Kind.DATA
            from_near = self._pump(pair, near, far, End.NEAR, first)
            pair.pumps = [self._start(from_near), self._start(self._pump(pair, far, near, End.FAR))]

    async def _pump(
        self, pair: _Pair, source: socket.socket, sink: socket.socket, sender: End, chunk: bytes = b""
    ) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):
            if self._is_due(pair, sender):
                self._break(pair)
                return
            while chunk or (chunk := await loop.sock_recv(source, _CHUNK_BYTES)):
                if pair.is_broken:
                    return
                if not await self._pass(pair, sink, sender, chunk):
                    return
                chunk = b""
            if not pair.is_broken:
                sink.shutdown(socket.SHUT_WR)

    def _is_due(self, pair: _Pair, sender: End) -> bool:
        planned = self._planned
        if pair.kind is not planned.kind or planned.after_bytes is None or sender is self._suffering:
            return False
        return pair.passed_bytes >= planned.after_bytes

    async def _pass(self, pair: _Pair, sink: socket.socket, sender: End, chunk: bytes) -> bool:
        """Pass bytes on; return whether the connection still holds."""
        planned, loop = self._planned, asyncio.get_running_loop()
        is_breaking = sender is not self._suffering
        if pair.kind is planned.kind and not self.has_broken.is_set():
            if is_breaking and planned.after_bytes is not None:
                chunk = chunk[: max(0, planned.after_bytes - pair.passed_bytes)]
            if self._at_next is not None and self._at_next[0] is sender and pair.kind is Kind.CONTROL:
                await loop.sock_sendall(sink, chunk[: max(1, int(len(chunk) * self._at_next[1]))])
                self._break(pair)
                return False
        await loop.sock_sendall(sink, chunk)
        if is_breaking:
            pair.passed_bytes += len(chunk)
        if not self.has_broken.is_set() and self._is_due(pair, sender):
            self._break(pair)
            return False
        return True

    async def close(self) -> None:
        """Close every socket."""
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        self._listener.close()
        for pair in self._pairs:
            pair.suffering.close()
            pair.breaking.close()


async def _discard(sock: socket.socket) -> None:
    while await asyncio.get_running_loop().sock_recv(sock, _CHUNK_BYTES):
        pass


def _unread_bytes(sock: socket.socket) -> int:
    count = array.array("i", [0])
    fcntl.ioctl(sock.fileno(), termios.FIONREAD, count)
    return count[0]


@contextlib.asynccontextmanager
async def open_breaking_relay(
    target: tuple[str, int], suffering: End, planned: Break
) -> AsyncGenerator[BreakingRelay]:
    """Relay connections to a target until the end of the block."""
    relay = BreakingRelay(target, suffering, planned)
    serving = asyncio.create_task(relay.serve())
    try:
        yield relay
    finally:
        serving.cancel()
        await asyncio.wait([serving])
        await relay.close()
