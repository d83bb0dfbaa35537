"""The messages of a control connection: a dataclass for each, validated as it is constructed.

Pure. After its preamble (preamble.py) a control connection carries one message in each frame (framing.py). Which
end may send which message, and when, is the table of state_machine.py.
"""

import re
from dataclasses import dataclass, field
from typing import Final, Literal, get_args

from ..model.counters.path_trace import PathTrace
from ..model.counters.samples import Sample
from ..model.counters.session_counters import SocketInfo
from ..model.directions import Direction, End
from ..model.errors import AddressRefused, DecodeError, EndpointBusy, LimitReached, LinkgaugeError
from ..model.host_info import HostInfo
from ..model.plan import MAX_SESSIONS, Plan, Settings
from ..model.run_end import RunEnd
from ..model.serialization import OMITTED_AT_DEFAULT
from ..model.shared_key import NONCE_BYTES
from .tokens import TOKEN_BYTES

_PROOF_BYTES: Final = 32
_HEXADECIMAL: Final = re.compile(r"(?:[0-9a-f]{2})*")


def _check_hexadecimal(where: str, text: str, count: int) -> None:
    if len(text) != 2 * count or not _HEXADECIMAL.fullmatch(text):
        raise DecodeError(where, f"{2 * count} hexadecimal digits", text)


@dataclass(frozen=True, slots=True)
class Hello:
    """Near: the beginning, with a nonce if this end has a key."""

    nonce: str = ""

    def __post_init__(self) -> None:
        """Raise DecodeError for an invalid nonce."""
        if self.nonce:
            _check_hexadecimal("Hello.nonce", self.nonce, NONCE_BYTES)


@dataclass(frozen=True, slots=True)
class Challenge:
    """Far: a nonce for the near end's proof of the key."""

    nonce: str

    def __post_init__(self) -> None:
        """Raise DecodeError for an invalid nonce."""
        _check_hexadecimal("Challenge.nonce", self.nonce, NONCE_BYTES)


@dataclass(frozen=True, slots=True)
class Proof:
    """Near: the proof of the key."""

    proof: str

    def __post_init__(self) -> None:
        """Raise DecodeError for an invalid proof."""
        _check_hexadecimal("Proof.proof", self.proof, _PROOF_BYTES)


@dataclass(frozen=True, slots=True)
class Welcome:
    """Far: admitted, with a proof after a challenge."""

    proof: str = ""

    def __post_init__(self) -> None:
        """Raise DecodeError for an invalid proof."""
        if self.proof:
            _check_hexadecimal("Welcome.proof", self.proof, _PROOF_BYTES)


@dataclass(frozen=True, slots=True)
class Introduction:
    """Either end: its host, once the other end has proved the key. After both the near end may send `Open`."""

    facts: HostInfo


@dataclass(frozen=True, slots=True)
class Refuse:
    """Far: declined, with a reason for the user. The last message of a connection.

    `about` is the subject for a program: the key, a limit, other tests, or anything else. Other tests end within
    `free_in_s` seconds; None is unknown. Only a near end that `reads_busy` gets this subject and this time.
    """

    text: str
    about: Literal["key", "limit", "busy", "other"] = "other"
    free_in_s: int | None = field(default=None, metadata=OMITTED_AT_DEFAULT)


def refusal_of(error: LinkgaugeError, *, reads_busy: bool = False) -> Refuse:
    """Return the refusal that tells the other end this error."""
    if reads_busy and isinstance(error, EndpointBusy):
        return Refuse(str(error), "busy", error.free_in_s)
    return Refuse(str(error), "limit" if isinstance(error, LimitReached | AddressRefused) else "other")


@dataclass(frozen=True, slots=True)
class Open:
    """Near: prepare this run."""

    plan: Plan


@dataclass(frozen=True, slots=True)
class Ready:
    """Far: workers are up; the tokens of the run's connections are made with this one (see auth.py)."""

    token: str

    def __post_init__(self) -> None:
        """Raise DecodeError for an invalid token."""
        _check_hexadecimal("Ready.token", self.token, TOKEN_BYTES)


def _check_flow(where: str, direction: Direction, session: int) -> None:
    if direction is Direction.DUPLEX:
        raise DecodeError(f"{where}.direction", "a single direction", direction)
    if not 1 <= session <= MAX_SESSIONS:
        raise DecodeError(f"{where}.session", f"1 to {MAX_SESSIONS}", session)


@dataclass(frozen=True, slots=True)
class SessionOpened:
    """Far: a session is open, with the socket options that the kernel granted at this end."""

    facts: SocketInfo

    def __post_init__(self) -> None:
        """Raise DecodeError for an impossible session."""
        _check_flow("SessionOpened.facts", self.facts.direction, self.facts.session)
        if self.facts.end is not End.FAR:
            raise DecodeError("SessionOpened.facts.end", End.FAR, self.facts.end)


@dataclass(frozen=True, slots=True)
class SessionClosed:
    """Far: a session's connection ended. The near end knows whether that was intended."""

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
    """Near: new settings, in force from now on.

    The far end closes connections older than `oldest`, and those up to `generation` that are no longer planned.
    """

    settings: Settings
    generation: int
    oldest: int


@dataclass(frozen=True, slots=True)
class Report:
    """Far: the sample of an interval."""

    sample: Sample

    def __post_init__(self) -> None:
        """Raise DecodeError for an impossible sample: rates divide by its times.

        No number is below 0, because the decoder accepts none.
        """
        sample = self.sample
        if sample.end is not End.FAR:
            raise DecodeError("Report.sample", f"one of the {End.FAR} end", sample.end)
        if not 0 < sample.interval_ns <= sample.elapsed_ns:
            raise DecodeError("Report.sample.interval_ns", "1 to the time since the start", sample.interval_ns)
        for session in sample.sessions:
            _check_flow("Report.sample.sessions", session.direction, session.session)
        if len({(s.direction, s.session) for s in sample.sessions}) < len(sample.sessions):
            raise DecodeError("Report.sample.sessions", "each session once", "one of them twice")
        _check_latency(sample)
        _check_datagrams(sample)
        if sample.probe is not None:
            raise DecodeError("Report.sample.probe", f"nothing: the {End.NEAR} end asks", "something")


def _check_latency(sample: Sample) -> None:
    """Raise DecodeError if latency counts and the sessions' transactions differ."""
    where = "Report.sample.latency"
    totals = {counts.direction: counts.transactions for counts in sample.latency}
    if len(totals) < len(sample.latency) or Direction.DUPLEX in totals:
        raise DecodeError(where, "each single direction once", "another")
    for flow in Direction.DUPLEX.flows:
        counted = sum(s.transactions or 0 for s in sample.sessions if s.direction is flow)
        if counted != totals.get(flow, 0):
            raise DecodeError(where, f"the {counted} transactions of all sessions", totals.get(flow, 0))


def _check_datagrams(sample: Sample) -> None:
    """Raise DecodeError if counts of datagrams cannot be: losses and shares are computed from them."""
    where = "Report.sample.datagrams"
    for session in sample.datagrams:
        _check_flow(where, session.direction, session.session)
    if len({(s.direction, s.session) for s in sample.datagrams}) < len(sample.datagrams):
        raise DecodeError(where, "each session once", "one of them twice")
    flows = [counts.direction for counts in sample.delay_variation]
    if len(set(flows)) < len(flows) or Direction.DUPLEX in flows:
        raise DecodeError("Report.sample.delay_variation", "each single direction once", "another")


@dataclass(frozen=True, slots=True)
class Traced:
    """Far: its trace of the path, after the last sample of a run whose plan asks for it."""

    trace: PathTrace

    def __post_init__(self) -> None:
        """Raise DecodeError for the trace of another end."""
        if self.trace.end is not End.FAR:
            raise DecodeError("Traced.trace.end", End.FAR, self.trace.end)


@dataclass(frozen=True, slots=True)
class Notice:
    """Far: a text for the user at the near end."""

    text: str


@dataclass(frozen=True, slots=True)
class Stop:
    """Near: take the last sample and finish."""

    end: RunEnd


@dataclass(frozen=True, slots=True)
class Finish:
    """Far: the end of the run and its reason, after all samples. The last message of a run."""

    end: RunEnd


@dataclass(frozen=True, slots=True)
class Ping:
    """Either end: a keepalive that asks for a `Pong`."""

    serial: int


@dataclass(frozen=True, slots=True)
class Pong:
    """Either end: the answer to a `Ping`."""

    serial: int


NearMessage = Hello | Proof | Introduction | Open | Start | Change | Stop | Ping | Pong
_News = SessionOpened | SessionClosed | Begun | Report | Traced | Notice
FarMessage = Challenge | Welcome | Introduction | Refuse | Ready | _News | Finish | Ping | Pong
Message = NearMessage | FarMessage
MESSAGES_BY_SENDER: Final[dict[End, tuple[type[Message], ...]]] = {
    End.NEAR: get_args(NearMessage),
    End.FAR: get_args(FarMessage),
}
