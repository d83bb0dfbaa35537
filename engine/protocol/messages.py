"""The messages of a control connection: a dataclass for each, validated as it is constructed.

Pure. After its preamble (preamble.py) a control connection carries one message in each frame (framing.py). Which
end may send which message, and when, is the table of state_machine.py.
"""

from collections.abc import Callable
from dataclasses import dataclass
from operator import attrgetter
from typing import Final, Literal

from ..model.errors import DecodeError
from ..model.events import RunEnd
from ..model.host_info import HostInfo
from ..model.plan import MAX_SESSIONS, Direction, End, Plan, Settings
from ..model.samples import Sample, SessionSample
from ..model.socket_info import TCP_COUNTER_NAMES, SocketInfo
from .auth import HEX_PATTERN, NONCE_BYTES, TOKEN_BYTES

_PROOF_BYTES: Final = 32
_tcp_counters: Callable[[SessionSample], tuple[int | None, ...]] = attrgetter(*TCP_COUNTER_NAMES)


def _check_hexadecimal(where: str, text: str, count: int) -> None:
    if len(text) != 2 * count or not HEX_PATTERN.fullmatch(text):
        raise DecodeError(where, f"{2 * count} hexadecimal digits", text)


@dataclass(frozen=True, slots=True)
class Hello:
    """Near: I am here. One that has a key gives a nonce to prove it over, and tells who it is later."""

    facts: HostInfo | None
    nonce: str = ""

    def __post_init__(self) -> None:
        """Refuse what is no nonce."""
        if self.nonce:
            _check_hexadecimal("Hello.nonce", self.nonce, NONCE_BYTES)


@dataclass(frozen=True, slots=True)
class Challenge:
    """Far: prove over this nonce that you have the key."""

    nonce: str

    def __post_init__(self) -> None:
        """Refuse what is no nonce."""
        _check_hexadecimal("Challenge.nonce", self.nonce, NONCE_BYTES)


@dataclass(frozen=True, slots=True)
class Proof:
    """Near: I have the key, and this is who I am."""

    proof: str
    facts: HostInfo

    def __post_init__(self) -> None:
        """Refuse what is no proof."""
        _check_hexadecimal("Proof.proof", self.proof, _PROOF_BYTES)


@dataclass(frozen=True, slots=True)
class Welcome:
    """Far: who I am, and that I have the key where I asked for one; a plan may come."""

    facts: HostInfo
    proof: str = ""

    def __post_init__(self) -> None:
        """Refuse what is no proof."""
        if self.proof:
            _check_hexadecimal("Welcome.proof", self.proof, _PROOF_BYTES)


@dataclass(frozen=True, slots=True)
class Refuse:
    """Far: declined, with a reason for a person. The last message of a connection.

    `about` tells a program what it is about: the key, a limit, or anything else.
    """

    text: str
    about: Literal["key", "limit", "other"] = "other"


@dataclass(frozen=True, slots=True)
class Open:
    """Near: prepare this run."""

    plan: Plan


@dataclass(frozen=True, slots=True)
class Ready:
    """Far: workers are up; the tokens of the run's connections are made with this one (see auth.py)."""

    token: str

    def __post_init__(self) -> None:
        """Refuse what is no token."""
        _check_hexadecimal("Ready.token", self.token, TOKEN_BYTES)


def _check_flow(where: str, direction: Direction, session: int) -> None:
    if direction is Direction.DUPLEX:
        raise DecodeError(f"{where}.direction", "a single direction", direction)
    if not 1 <= session <= MAX_SESSIONS:
        raise DecodeError(f"{where}.session", f"1 to {MAX_SESSIONS}", session)


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """Far: a session is open, with what the kernel granted it at this end."""

    facts: SocketInfo

    def __post_init__(self) -> None:
        """Refuse a session that cannot be."""
        _check_flow("SessionOpened.facts", self.facts.direction, self.facts.session)
        if self.facts.end is not End.FAR:
            raise DecodeError("SessionOpened.facts.end", End.FAR, self.facts.end)


@dataclass(frozen=True, slots=True)
class SessionClosed:
    """Far: a session's connection ended. The near end knows whether it was meant to."""

    direction: Direction
    session: int
    generation: int
    why: str


@dataclass(frozen=True, slots=True)
class Start:
    """Near: all sessions are open, start the clock."""


@dataclass(frozen=True, slots=True)
class Begun:
    """Far: the clock has started."""


@dataclass(frozen=True, slots=True)
class Change:
    """Near: from now on these settings.

    Let go of connections older than `oldest`, and of those no newer than `generation` that are not among them.
    """

    settings: Settings
    generation: int
    oldest: int


@dataclass(frozen=True, slots=True)
class Report:
    """Far: the sample of an interval."""

    sample: Sample

    def __post_init__(self) -> None:
        """Refuse a sample that cannot have been taken: what is made of it divides by its times."""
        sample = self.sample
        if sample.end is not End.FAR or sample.index < 0:
            raise DecodeError("Report.sample", f"one of the {End.FAR} end", f"{sample.end} {sample.index}")
        if not 0 < sample.interval_ns <= sample.elapsed_ns:
            raise DecodeError("Report.sample.interval_ns", "1 to the time since the start", sample.interval_ns)
        for session in sample.sessions:
            _check_flow("Report.sample.sessions", session.direction, session.session)
            if session.bytes < 0 or any(value is not None and value < 0 for value in _tcp_counters(session)):
                raise DecodeError("Report.sample.sessions", "nothing below 0", session)
        nic = sample.nic
        if nic is not None and min(nic.received_bytes, nic.sent_bytes, nic.errors, nic.dropped, nic.collisions) < 0:
            raise DecodeError("Report.sample.nic", "nothing below 0", nic)
        if len({(s.direction, s.session) for s in sample.sessions}) < len(sample.sessions):
            raise DecodeError("Report.sample.sessions", "each session once", "one of them twice")
        _check_latency(sample)
        if sample.probe is not None:
            raise DecodeError("Report.sample.probe", f"nothing: the {End.NEAR} end asks", "something")


def _check_latency(sample: Sample) -> None:
    """Refuse latency that does not go with the sessions' own counts."""
    where = "Report.sample.latency"
    told = {one.direction: one.transactions for one in sample.latency}
    if len(told) < len(sample.latency) or Direction.DUPLEX in told:
        raise DecodeError(where, "each single direction once", "another")
    if any(s.transactions is not None and s.transactions < 0 for s in sample.sessions):
        raise DecodeError(where, "0 transactions or more", "fewer")
    for flow in Direction.DUPLEX.flows:
        counted = sum(s.transactions or 0 for s in sample.sessions if s.direction is flow)
        if counted != told.get(flow, 0):
            raise DecodeError(where, f"the {counted} transactions of all sessions", told.get(flow, 0))


@dataclass(frozen=True, slots=True)
class Notice:
    """Far: something a person should know."""

    text: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Near: take the last sample and finish."""

    end: RunEnd


@dataclass(frozen=True, slots=True)
class Finish:
    """Far: all samples are sent, and why the run ended. The last message of a run."""

    end: RunEnd


@dataclass(frozen=True, slots=True)
class Ping:
    """Either end: I am alive, say that you are."""

    serial: int


@dataclass(frozen=True, slots=True)
class Pong:
    """Either end: I am."""

    serial: int


NearMessage = Hello | Proof | Open | Start | Change | Stop | Ping | Pong
_News = SessionOpened | SessionClosed | Begun | Report | Notice
FarMessage = Challenge | Welcome | Refuse | Ready | _News | Finish | Ping | Pong
Message = NearMessage | FarMessage
MESSAGES_BY_SENDER: Final[dict[End, tuple[type[Message], ...]]] = {
    End.NEAR: (Hello, Proof, Open, Start, Change, Stop, Ping, Pong),
    End.FAR: (
        Challenge,
        Welcome,
        Refuse,
        Ready,
        SessionOpened,
        SessionClosed,
        Begun,
        Report,
        Notice,
        Finish,
        Ping,
        Pong,
    ),
}
