"""The control protocol as a state machine without I/O: bytes in, messages out, and the reverse.

Pure: it does not know sockets, clocks or event loops. An adapter feeds it what arrives (`receive_data`,
`receive_eof`), takes `messages_received`, and writes `data_to_send` after every call. Both ends hold
the same table and apply it to what they send and to what they receive. Messages may cross on the way: a
state's row therefore also lists what the other end may still have sent before it knew.

The machine never raises at what a peer sent: it records the error, and takes nothing more in.
"""

from enum import StrEnum
from typing import Final

from ..model.errors import (
    LimitReached,
    LinkgaugeError,
    LocalProtocolError,
    PeerForeign,
    PeerVersion,
    RemoteProtocolError,
)
from ..model.events import Reason, RunEnd
from ..model.plan import End
from ..model.serialization import printable
from .framing import FrameReader, decode_body, encode_frame, framed
from .messages import (
    Begun,
    Challenge,
    Change,
    Finish,
    Hello,
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
    Welcome,
)
from .preamble import CONTROL_KIND, MAGIC, PREAMBLE_BYTES, PROTOCOL_VERSION, preamble, read_preamble


class State(StrEnum):
    """Where a conversation stands."""

    HELLO = "hello"
    WELCOME = "welcome"
    CHALLENGED = "challenged"
    PROVING = "proving"
    IDLE = "idle"
    OPENING = "opening"
    READY = "ready"
    STARTING = "starting"
    RUNNING = "running"
    STOPPING = "stopping"
    OVER = "over"


_Row = dict[tuple[End, type[Message]], State]
N: Final = End.NEAR
F: Final = End.FAR


def _stay(state: State, *pairs: tuple[End, type[Message]]) -> _Row:
    return dict.fromkeys(pairs, state)


_TALK: Final[tuple[tuple[End, type[Message]], ...]] = ((N, Ping), (F, Ping), (N, Pong), (F, Pong))
_NEWS: Final[tuple[tuple[End, type[Message]], ...]] = ((F, SessionOpened), (F, SessionClosed), (F, Notice))

TABLE: Final[dict[State, _Row]] = {
    State.HELLO: {(N, Hello): State.WELCOME, (F, Refuse): State.OVER},
    State.WELCOME: {(F, Challenge): State.CHALLENGED, (F, Welcome): State.IDLE, (F, Refuse): State.OVER},
    State.CHALLENGED: {(N, Proof): State.PROVING, (F, Refuse): State.OVER},
    State.PROVING: {(F, Welcome): State.IDLE, (F, Refuse): State.OVER},
    State.IDLE: {
        (N, Open): State.OPENING,
        (F, Refuse): State.OVER,
        **_stay(State.IDLE, *_TALK),
    },
    State.OPENING: {
        (F, Ready): State.READY,
        (F, Refuse): State.OVER,
        (N, Stop): State.STOPPING,
        **_stay(State.OPENING, *_TALK),
    },
    State.READY: {
        (N, Start): State.STARTING,
        (N, Stop): State.STOPPING,
        (F, Finish): State.OVER,
        **_stay(State.READY, *_TALK, *_NEWS),
    },
    State.STARTING: {
        (F, Begun): State.RUNNING,
        (N, Stop): State.STOPPING,
        (F, Finish): State.OVER,
        **_stay(State.STARTING, *_TALK, *_NEWS, (N, Change)),
    },
    State.RUNNING: {
        (N, Stop): State.STOPPING,
        (F, Finish): State.OVER,
        **_stay(State.RUNNING, *_TALK, *_NEWS, (N, Change), (F, Report)),
    },
    State.STOPPING: {
        (F, Finish): State.OVER,
        (F, Refuse): State.OVER,
        **_stay(State.STOPPING, *_TALK, *_NEWS, (F, Ready), (F, Begun), (F, Report)),
    },
    State.OVER: _stay(State.OVER, *_TALK, (N, Hello), (N, Proof), (N, Open), (N, Start), (N, Change), (N, Stop)),
}


class Control:
    """One end of one control connection."""

    def __init__(self, end: End) -> None:
        self.end = end
        self.state = State.HELLO
        self.error: LinkgaugeError | None = None
        self._transcript = bytearray(preamble(CONTROL_KIND))
        self._greeted = False
        self._opening = bytearray()
        self._frames = FrameReader(end.other)
        self._received: list[Message] = []
        self._to_send = bytearray()
        self._introduced = False
        # The near end speaks first; the far end answers with its own preamble once it has seen that one.
        if end is End.NEAR:
            self._introduce()

    def send(self, message: Message) -> None:
        """Queue a message; raise LocalProtocolError where the conversation does not allow it."""
        if self.error is not None:
            raise LocalProtocolError(f"{type(message).__name__} after a failed conversation")
        state = TABLE[self.state].get((self.end, type(message)))
        if state is None:
            raise LocalProtocolError(f"the {self.end} end cannot say {type(message).__name__} in {self.state}")
        self.state = state
        self._introduce()
        frame = encode_frame(message)
        self._to_send += frame
        self._note(type(message), frame)

    @property
    def transcript(self) -> bytes:
        """What both ends have said, in order and to the byte, before the first of them had to prove anything."""
        return bytes(self._transcript)

    def _introduce(self) -> None:
        if not self._introduced:
            self._introduced = True
            self._to_send += preamble(CONTROL_KIND)

    def _note(self, kind: type[Message], frame: bytes) -> None:
        if kind in {Hello, Challenge}:
            self._transcript += frame

    def may_send(self, kind: type[Message]) -> bool:
        """Return whether a message of this kind is allowed now."""
        return self.error is None and (self.end, kind) in TABLE[self.state]

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
        """Take in bytes from the peer."""
        if self.error is not None:
            return
        try:
            if not self._greeted:
                data = self._receive_preamble(data)
            if self._greeted:
                for body in self._frames.feed(data):
                    message = decode_body(body, self.end.other)
                    self._receive_message(message)
                    self._note(type(message), framed(body))
        except LimitReached as error:
            self.fail(error)
        except LinkgaugeError as error:
            self.error = error

    def fail(self, error: LinkgaugeError) -> None:
        """End the conversation because this end has had enough, and say so where that is allowed."""
        if self.error is not None:
            return
        for last in (Refuse(str(error), "limit"), Finish(RunEnd(Reason.FAILED, str(error)))):
            if self.may_send(type(last)):
                self.send(last)
                break
        self.error = error

    def limit_messages(self, longest_bytes: int) -> None:
        """Take no longer messages from the other end."""
        self._frames.limit = longest_bytes

    def receive_eof(self) -> None:
        """Take in the end of the peer's bytes; before its preamble was whole that is an error."""
        if self.error is None and not self._greeted:
            said = printable(self._opening[:40].decode("latin-1"))
            answer = f"answered {said!r} and closed" if said else "closed the connection without a word"
            self.error = PeerForeign(f"it {answer}")

    def _receive_preamble(self, data: bytes) -> bytes:
        self._opening += data
        opening = bytes(self._opening)
        length = min(len(opening), len(MAGIC))
        if opening[:length] != MAGIC[:length]:
            line = opening.split(b"\n")[0][:40]
            raise PeerForeign(f"it answered {printable(line.decode('latin-1').strip())!r}")
        if len(opening) < PREAMBLE_BYTES:
            return b""
        found = read_preamble(opening[:PREAMBLE_BYTES])
        if found is None:
            raise PeerForeign("it answered with a broken greeting")
        self._introduce()
        version, kind = found
        if version != PROTOCOL_VERSION:
            raise PeerVersion(f"it speaks protocol {version}, this linkgauge speaks {PROTOCOL_VERSION}")
        if kind != CONTROL_KIND:
            raise PeerForeign("it answered with the greeting of a data connection")
        self._greeted = True
        self._opening.clear()
        return opening[PREAMBLE_BYTES:]

    def _receive_message(self, message: Message) -> None:
        state = TABLE[self.state].get((self.end.other, type(message)))
        if state is None:
            name = type(message).__name__
            raise RemoteProtocolError(f"the {self.end.other} end said {name} in state {self.state}")
        self.state = state
        self._received.append(message)
