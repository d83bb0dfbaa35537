"""The messages between the endpoint and a page: JSON objects with a `type`, over the page's first WebSocket.

The page sends `start`, then `pong` for each `ping`, `stop`, `unopened` for a connection that it could not open, and
`hidden` when the user turns to another page. The endpoint sends `hello`, and for each test `open`, `begin`,
`interval` and `result`, or `refused`. To an app that waits for a device the page sends `join` in place of `start`,
and is answered `joined` or `unjoined`. Pure.
"""

import json
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from ..model.directions import Direction
from ..model.errors import RemoteProtocolError
from ..model.plan import MAX_BROWSER_SESSIONS, SECOND_NS, Plan, ResponsivenessTest, Settings

Way = Literal["down", "up", "both"]
DIRECTIONS: Final[dict[str, Direction]] = {"down": Direction.OUT, "up": Direction.IN, "both": Direction.DUPLEX}
"""The directions of a test by the page's words for them."""
WAYS: Final[dict[Direction, Way]] = {Direction.OUT: "down", Direction.IN: "up", Direction.DUPLEX: "both"}
MAX_SECONDS: Final = 60
MIN_SECONDS: Final = 3
MAX_MESSAGE_BYTES: Final = 2_048
BLOCK_BYTES: Final = 256 * 1024
_INTERVAL_NS: Final = SECOND_NS // 5
_WARMUP_NS: Final = SECOND_NS
_MAX_PRESET: Final = 64
_MAX_CODE: Final = 64
_MAX_GENERATION: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class StartTest:
    """The user of the page starts a test. `preset` is an id, `auto` or `none`; whether it exists is not checked."""

    direction: Direction
    sessions: int
    seconds: int
    preset: str

    def plan(self) -> Plan:
        """Return the plan of the test, which measures latency as well."""
        return with_page(
            Plan(
                settings=Settings(self.direction, self.sessions),
                duration_ns=self.seconds * SECOND_NS,
                warmup_ns=_WARMUP_NS,
                interval_ns=_INTERVAL_NS,
            )
        )


def with_page(plan: Plan) -> Plan:
    """Return a plan as a test with a page: in messages of its size, with the latency measured alongside."""
    return replace(plan, block_bytes=BLOCK_BYTES, probe=True, responsiveness=ResponsivenessTest.ALONGSIDE)


@dataclass(frozen=True, slots=True)
class JoinTest:
    """The user of the page joins the tests of an app, by its code, or by the pass of an earlier join."""

    code: str


@dataclass(frozen=True, slots=True)
class StopTest:
    """The user of the page ends the test."""


@dataclass(frozen=True, slots=True)
class Pong:
    """The page has received the ping of this number."""

    number: int


@dataclass(frozen=True, slots=True)
class Hidden:
    """The page is in the background, where browsers slow it down."""


@dataclass(frozen=True, slots=True)
class Unopened:
    """The page could not open a connection."""

    direction: Direction
    session: int
    generation: int


PageMessage = StartTest | JoinTest | StopTest | Pong | Hidden | Unopened


def decode_message(text: str) -> PageMessage:
    """Return the message of a page; raise RemoteProtocolError for anything else."""
    if len(text) > MAX_MESSAGE_BYTES:
        raise RemoteProtocolError(f"a page's message of {len(text)} characters")
    try:
        message: Any = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RemoteProtocolError("a page's message that is not JSON") from error
    match message:
        case {"type": "pong", "n": int(number)}:
            return Pong(number)
        case {"type": "start", "direction": str(way), "sessions": int(), "seconds": int(), "preset": str()}:
            return _decode_start(message, way)
        case {"type": "join", "code": str(code)} if len(code) <= _MAX_CODE:
            return JoinTest(code)
        case {"type": "unopened", "flow": "down" | "up" as flow, "n": int(number), "g": int(generation)}:
            return Unopened(DIRECTIONS[flow], *read_place(number, generation))
        case {"type": "stop"}:
            return StopTest()
        case {"type": "hidden"}:
            return Hidden()
        case _:
            raise RemoteProtocolError("a page's message of an unknown kind")


def read_place(number: int, generation: int) -> tuple[int, int]:
    """Return the number of a session and its generation; raise RemoteProtocolError for impossible ones."""
    if not (1 <= number <= MAX_BROWSER_SESSIONS and 0 <= generation <= _MAX_GENERATION):
        raise RemoteProtocolError("a page's connection without a place")
    return number, generation


def _decode_start(message: dict[str, Any], way: str) -> StartTest:
    sessions, seconds, preset = message["sessions"], message["seconds"], message["preset"]
    is_allowed = (
        way in DIRECTIONS
        and 1 <= sessions <= MAX_BROWSER_SESSIONS
        and MIN_SECONDS <= seconds <= MAX_SECONDS
        and len(preset) <= _MAX_PRESET
        and not {type(sessions), type(seconds)} & {bool}
    )
    if not is_allowed:
        raise RemoteProtocolError("a page's test that its page does not offer")
    return StartTest(DIRECTIONS[way], sessions, seconds, preset)


def encode(kind: str, **members: Any) -> str:
    """Return a message for a page."""
    return json.dumps({"type": kind, **members}, ensure_ascii=False, allow_nan=False)
