"""The control protocol as a state machine without I/O: bytes in, messages out, and the reverse.

Pure: it does not know sockets, clocks or event loops. An adapter feeds it what arrives (`receive_data`,
`receive_eof`), takes `messages_received`, and writes `data_to_send` after every call. Both ends hold
the same table and apply it to what they send and to what they receive. Messages may cross on the way: a
state's row therefore also lists messages that the other end may have sent before it learned of a change.

The machine never raises because of a peer's bytes: it records the error, and ignores all further bytes.
"""

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from ..model.directions import End
from ..model.errors import (
    ConnectionTampered,
    LimitReached,
    LinkgaugeError,
    LocalProtocolError,
    PeerNotLinkgauge,
    PeerVersionMismatch,
    RemoteProtocolError,
)
from ..model.run_end import Reason, RunEnd
from ..model.shared_key import FAR_ROLE, NEAR_ROLE
from .framing import PEER_NAMES, FrameCodes, FrameReader, add_length_prefix, decode_body, encode_frame
from .messages import (
    Begun,
    Challenge,
    Change,
    Finish,
    Hello,
    Introduction,
    Message,
    Notice,
    Open,
    Ping,
    Pong,
    Proof,
    Ready,
    Refuse,
    Report,
    SessionClosed,
    SessionOpened,
    Start,
    Stop,
    Traced,
    Welcome,
    refusal_of,
)
from .preamble import (
    CONTROL_KIND,
    MAGIC,
    PREAMBLE_BYTES,
    PROTOCOL_VERSION,
    decode_preamble,
    describe_other_protocol,
    describe_version_mismatch,
    encode_preamble,
)


class ControlState(StrEnum):
    """The states of a conversation."""

    HELLO = "hello"
    WELCOME = "welcome"
    CHALLENGED = "challenged"
    PROVING = "proving"
    FAR_INTRODUCTION = "far introduction"
    NEAR_INTRODUCTION = "near introduction"
    IDLE = "idle"
    OPENING = "opening"
    READY = "ready"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    OVER = "over"


_Row = dict[tuple[End, type[Message]], ControlState]
N: Final = End.NEAR
F: Final = End.FAR


def _stay(state: ControlState, *pairs: tuple[End, type[Message]]) -> _Row:
    return dict.fromkeys(pairs, state)


_TALK: Final[tuple[tuple[End, type[Message]], ...]] = ((N, Ping), (F, Ping), (N, Pong), (F, Pong))
_NEWS: Final[tuple[tuple[End, type[Message]], ...]] = ((F, SessionOpened), (F, SessionClosed), (F, Notice))

TRANSITIONS: Final[dict[ControlState, _Row]] = {
    ControlState.HELLO: {(N, Hello): ControlState.WELCOME, (F, Refuse): ControlState.OVER},
    ControlState.WELCOME: {
        (F, Challenge): ControlState.CHALLENGED,
        (F, Welcome): ControlState.FAR_INTRODUCTION,
        (F, Refuse): ControlState.OVER,
    },
    ControlState.CHALLENGED: {(N, Proof): ControlState.PROVING, (F, Refuse): ControlState.OVER},
    ControlState.PROVING: {(F, Welcome): ControlState.FAR_INTRODUCTION, (F, Refuse): ControlState.OVER},
    ControlState.FAR_INTRODUCTION: {
        (F, Introduction): ControlState.NEAR_INTRODUCTION,
        (F, Refuse): ControlState.OVER,
    },
    ControlState.NEAR_INTRODUCTION: {(N, Introduction): ControlState.IDLE, (F, Refuse): ControlState.OVER},
    ControlState.IDLE: {
        (N, Open): ControlState.OPENING,
        (F, Refuse): ControlState.OVER,
        **_stay(ControlState.IDLE, *_TALK),
    },
    ControlState.OPENING: {
        (F, Ready): ControlState.READY,
        (F, Refuse): ControlState.OVER,
        (N, Stop): ControlState.STOPPING,
        **_stay(ControlState.OPENING, *_TALK),
    },
    ControlState.READY: {
        (N, Start): ControlState.STARTING,
        (N, Stop): ControlState.STOPPING,
        (F, Finish): ControlState.OVER,
        **_stay(ControlState.READY, *_TALK, *_NEWS),
    },
    ControlState.STARTING: {
        (F, Begun): ControlState.RUNNING,
        (N, Stop): ControlState.STOPPING,
        (F, Finish): ControlState.OVER,
        **_stay(ControlState.STARTING, *_TALK, *_NEWS, (N, Change)),
    },
    ControlState.RUNNING: {
        (N, Stop): ControlState.STOPPING,
        (F, Finish): ControlState.OVER,
        **_stay(ControlState.RUNNING, *_TALK, *_NEWS, (N, Change), (F, Report), (F, Traced)),
    },
    ControlState.STOPPING: {
        (F, Finish): ControlState.OVER,
        (F, Refuse): ControlState.OVER,
        **_stay(ControlState.STOPPING, *_TALK, *_NEWS, (F, Ready), (F, Begun), (F, Report), (F, Traced)),
    },
    ControlState.OVER: _stay(
        ControlState.OVER,
        *_TALK,
        *((N, kind) for kind in (Hello, Proof, Introduction, Open, Start, Change, Stop)),
    ),
}
_ROLES: Final = {End.NEAR: NEAR_ROLE, End.FAR: FAR_ROLE}


class ControlStateMachine:
    """One end of one control connection.

    After each call that takes bytes or queues a message, write `data_to_send`. Once `error` is set, close.
    """

    def __init__(self, end: End) -> None:
        self.end = end
        self.state = ControlState.HELLO
        self.error: LinkgaugeError | None = None
        self._transcript = bytearray(encode_preamble(CONTROL_KIND))
        self._greeted = False
        self._opening = bytearray()
        self._frames = FrameReader(end.other)
        self._received: list[Message] = []
        self._to_send = bytearray()
        self._introduced = False
        self.shared_secret = b""  # of two ends with a key, once `authenticate_frames` was called
        self._codes_to_send: FrameCodes | None = None
        self.open_frame = b""  # of the message `Open`, without a code
        # The near end speaks first; the far end answers with its own preamble once it has seen that one.
        if end is End.NEAR:
            self._introduce()

    def send(self, message: Message) -> None:
        """Queue a message; raise LocalProtocolError if the conversation does not allow it."""
        if self.error is not None:
            raise LocalProtocolError(f"{type(message).__name__} after a failed conversation")
        state = TRANSITIONS[self.state].get((self.end, type(message)))
        if state is None:
            raise LocalProtocolError(f"the {self.end} end cannot say {type(message).__name__} in {self.state}")
        self.state = state
        self._introduce()
        frame = encode_frame(message)
        self._to_send += frame
        if self._codes_to_send is not None:
            self._to_send += self._codes_to_send.next_code(frame)
        elif self.shared_secret and isinstance(message, Proof | Welcome):
            self._codes_to_send = FrameCodes(self.shared_secret, _ROLES[self.end])
        self._note(type(message), frame)

    def authenticate_frames(self, shared_secret: bytes) -> None:
        """Give every frame after the proofs a code, and require one.

        The near end calls it before it sends its proof, the far end once it has checked that proof.
        """
        self.shared_secret = shared_secret
        if self.end is End.FAR:
            self._require_codes()

    def _require_codes(self) -> None:
        self._frames.codes = FrameCodes(self.shared_secret, _ROLES[self.end.other])

    @property
    def requires_codes(self) -> bool:
        """Whether every message that is received from now on is proved to come from the other end."""
        return self._frames.codes is not None

    @property
    def is_greeted(self) -> bool:
        """Whether the other end's greeting has arrived."""
        return self._greeted

    @property
    def is_silent(self) -> bool:
        """Whether the other end has sent nothing at all."""
        return not self._greeted and not self._opening

    @property
    def transcript(self) -> bytes:
        """The bytes of both ends, in order, up to the first proof."""
        return bytes(self._transcript)

    def _introduce(self) -> None:
        if not self._introduced:
            self._introduced = True
            self._to_send += encode_preamble(CONTROL_KIND)

    def _note(self, kind: type[Message], frame: bytes) -> None:
        if kind in {Hello, Challenge}:
            self._transcript += frame
        elif kind is Open:
            self.open_frame = frame

    def may_send(self, kind: type[Message]) -> bool:
        """Return whether a message of this kind is allowed now."""
        return self.error is None and (self.end, kind) in TRANSITIONS[self.state]

    def data_to_send(self) -> bytes:
        """Return the bytes to write now; you must call this after each call that may have queued some."""
        data = bytes(self._to_send)
        self._to_send.clear()
        return data

    def messages_received(self) -> list[Message]:
        """Return the messages that arrived since the last call, in order."""
        messages = self._received
        self._received = []
        return messages

    def receive_data(self, data: bytes) -> None:
        """Take in bytes of the peer; then call `messages_received` and `data_to_send`, and look at `error`."""
        if self.error is not None:
            return
        try:
            if not self._greeted:
                data = self._receive_preamble(data)
            if self._greeted:
                for body in self._frames.read_frames(data):
                    message = decode_body(body, self.end.other)
                    self._receive_message(message)
                    self._note(type(message), add_length_prefix(body))
        except (LimitReached, ConnectionTampered) as error:
            self.fail(error)
        except LinkgaugeError as error:
            self.error = error

    def fail(self, error: LinkgaugeError) -> None:
        """End the conversation with this error, and send it to the other end if that is allowed."""
        if self.error is not None:
            return
        end = RunEnd(Reason.FAILED, str(error))
        for last in (refusal_of(error), Finish(end), Stop(end)):
            if self.may_send(type(last)):
                self.send(last)
                break
        self.error = error

    def apply_limits(self, longest_bytes: int, charge: Callable[[], None]) -> None:
        """Refuse longer messages of the other end from now on, and those for which `charge` raises LimitReached.

        `charge` is called for each message before it is decoded.
        """
        self._frames.max_frame_bytes = longest_bytes
        self._frames.charge = charge

    def receive_eof(self) -> None:
        """Take in the end of the peer's bytes: an error if its preamble was not complete."""
        if self.error is None and not self._greeted:
            where = "without a word" if self.is_silent else "in the middle of its greeting"
            self.error = PeerNotLinkgauge(f"it closed the connection {where}")

    def _receive_preamble(self, data: bytes) -> bytes:
        self._opening += data
        opening = bytes(self._opening)
        length = min(len(opening), len(MAGIC))
        if opening[:length] != MAGIC[:length]:
            raise PeerNotLinkgauge(f"it sent {describe_other_protocol(opening)}")
        if len(opening) < PREAMBLE_BYTES:
            return b""
        preamble = decode_preamble(opening[:PREAMBLE_BYTES])
        if preamble is None:
            raise PeerNotLinkgauge("it sent a broken greeting")
        self._introduce()
        version, kind = preamble
        if version != PROTOCOL_VERSION:
            raise PeerVersionMismatch(describe_version_mismatch(version))
        if kind != CONTROL_KIND:
            raise PeerNotLinkgauge("it sent the greeting of a data connection")
        self._greeted = True
        self._opening.clear()
        return opening[PREAMBLE_BYTES:]

    def _receive_message(self, message: Message) -> None:
        state = TRANSITIONS[self.state].get((self.end.other, type(message)))
        if state is None:
            name = type(message).__name__
            raise RemoteProtocolError(f"the {PEER_NAMES[self.end.other]} sent {name} in state {self.state}")
        self.state = state
        self._received.append(message)
        if self.shared_secret and isinstance(message, Welcome):
            self._require_codes()
