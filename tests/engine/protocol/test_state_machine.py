"""The control protocol's machine: its table, both ends against each other, and what breaks the rules."""

import struct
from collections import deque
from collections.abc import Callable, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from linkgauge.engine.model.counters.path_trace import WINDOW_NS, PathTrace
from linkgauge.engine.model.counters.samples import Sample
from linkgauge.engine.model.counters.session_counters import SocketInfo
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import (
    LocalProtocolError,
    PeerNotLinkgauge,
    PeerVersionMismatch,
    RemoteProtocolError,
)
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.plan import Plan, Settings
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.protocol.framing import PEER_NAMES, encode_frame
from linkgauge.engine.protocol.messages import (
    MESSAGES_BY_SENDER,
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
)
from linkgauge.engine.protocol.preamble import CONTROL_KIND, DATA_KIND, PREAMBLE_BYTES, encode_preamble
from linkgauge.engine.protocol.state_machine import TRANSITIONS, ControlState, ControlStateMachine

HOST = HostInfo("web-07", "Linux 6.1", 2, "linkgauge 1", "uvloop")
END = RunEnd(Reason.STOPPED, "enough")
EXAMPLES: dict[type[Message], Message] = {
    type(message): message
    for message in (
        Hello(),
        Challenge("ab" * 32),
        Proof("cd" * 32),
        Welcome(),
        Introduction(HOST),
        Refuse("busy"),
        Open(Plan()),
        Ready("ab" * 16),
        SessionOpened(SocketInfo(End.FAR, Direction.OUT, 1, "cubic", None, 1448, True, True, True)),
        SessionClosed(Direction.OUT, 1, 0, "closed by the other end"),
        Start(),
        Begun(),
        Change(Settings(Direction.IN), 1, 1),
        Report(Sample(End.FAR, 0, 1, 1, ())),
        Traced(PathTrace(End.FAR, 0, WINDOW_NS, (), False, ())),
        Notice("a word"),
        Stop(END),
        Finish(END),
        Ping(1),
        Pong(1),
    )
}
GREETING: tuple[tuple[End, Message], ...] = tuple(
    (end, EXAMPLES[kind])
    for end, kind in (
        *((End.NEAR, Hello), (End.FAR, Challenge), (End.NEAR, Proof), (End.FAR, Welcome)),
        *((End.FAR, Introduction), (End.NEAR, Introduction)),
    )
)
RUN: tuple[tuple[End, Message], ...] = GREETING + tuple(
    (End.NEAR if kind in {Open, Start, Change, Stop, Pong} else End.FAR, EXAMPLES[kind])
    for kind in (
        *(Open, Ready, SessionOpened, Start, Begun, Report, Ping, Pong, Change),
        *(SessionClosed, SessionOpened, Notice, Report, Stop, Report, Finish),
    )
)


def carry(sender: ControlStateMachine, receiver: ControlStateMachine) -> None:
    """Bring the bytes of one end to the other."""
    receiver.receive_data(sender.data_to_send())


def greeted(end: End, state: ControlState = ControlState.HELLO) -> ControlStateMachine:
    """Return a machine that has seen its peer's preamble, in a state."""
    machine = ControlStateMachine(end)
    machine.receive_data(encode_preamble(CONTROL_KIND))
    machine.data_to_send()
    machine.state = state
    return machine


def sayings(end: End) -> Iterable[tuple[ControlState, Message]]:
    """Give every message of an end in every state."""
    return ((state, EXAMPLES[kind]) for state in ControlState for kind in MESSAGES_BY_SENDER[end])


def test_the_table_has_a_row_for_every_state_and_only_messages_that_an_end_can_say() -> None:
    """Nothing in the table is out of reach of the wire."""
    assert set(TRANSITIONS) == set(ControlState)
    for row in TRANSITIONS.values():
        assert all(kind in MESSAGES_BY_SENDER[end] for end, kind in row)
    assert set(EXAMPLES) == {*MESSAGES_BY_SENDER[End.NEAR], *MESSAGES_BY_SENDER[End.FAR]}


@pytest.mark.parametrize("end", End)
def test_every_message_is_sent_where_the_table_says_so_and_nowhere_else(end: End) -> None:
    """An allowed message leads to the listed state; all others are our own error and change nothing."""
    for state, message in sayings(end):
        machine = greeted(end, state)
        follows = TRANSITIONS[state].get((end, type(message)))
        assert machine.may_send(type(message)) == (follows is not None)
        if follows is None:
            with pytest.raises(LocalProtocolError, match=rf"the {end} end cannot say .* in {state}"):
                machine.send(message)
            assert (machine.state, machine.data_to_send()) == (state, b"")
        else:
            machine.send(message)
            assert (machine.state, machine.data_to_send()) == (follows, encode_frame(message))


@pytest.mark.parametrize("end", End)
def test_every_message_is_received_where_the_table_says_so_and_nowhere_else(end: End) -> None:
    """All others are the other end's error, which names it, the message and the state."""
    for state, message in sayings(end.other):
        machine = greeted(end, state)
        follows = TRANSITIONS[state].get((end.other, type(message)))
        machine.receive_data(encode_frame(message))
        if follows is None:
            assert isinstance(machine.error, RemoteProtocolError)
            assert (
                str(machine.error) == f"the {PEER_NAMES[end.other]} sent {type(message).__name__} in state {state}"
            )
            assert (machine.state, machine.messages_received()) == (state, [])
        else:
            assert (machine.error, machine.state) == (None, follows)
            assert machine.messages_received() == [message]


def test_two_ends_carry_a_whole_run_out_over_bytes() -> None:
    """From the first preamble to the last message both machines agree on where they stand."""
    ends = {End.NEAR: ControlStateMachine(End.NEAR), End.FAR: ControlStateMachine(End.FAR)}
    for speaker, message in RUN:
        carry(ends[End.NEAR], ends[End.FAR])
        carry(ends[End.FAR], ends[End.NEAR])
        ends[speaker].send(message)
        carry(ends[speaker], ends[speaker.other])
        carry(ends[speaker.other], ends[speaker])
        assert ends[speaker.other].messages_received() == [message]
        assert ends[End.NEAR].state is ends[End.FAR].state
    assert ends[End.NEAR].state is ControlState.OVER
    assert ends[End.NEAR].error is ends[End.FAR].error is None


def test_the_near_end_may_say_hello_before_it_has_been_greeted() -> None:
    """The near end need not wait for a preamble; the far end speaks only when spoken to."""
    near, far = ControlStateMachine(End.NEAR), ControlStateMachine(End.FAR)
    assert far.data_to_send() == b""
    near.send(EXAMPLES[Hello])
    carry(near, far)
    assert far.messages_received() == [EXAMPLES[Hello]]
    assert far.data_to_send() == encode_preamble(CONTROL_KIND)


_World = tuple[ControlState, ControlState, tuple[type[Message], ...], tuple[type[Message], ...]]


def _steps(world: _World, in_flight: int) -> Iterable[_World]:
    """Give the possible next steps: either end sends a message, or receives the next one on its way."""
    near, far, to_far, to_near = world
    if len(to_far) < in_flight:
        for (end, kind), follows in TRANSITIONS[near].items():
            if end is End.NEAR:
                yield follows, far, (*to_far, kind), to_near
    if len(to_near) < in_flight:
        for (end, kind), follows in TRANSITIONS[far].items():
            if end is End.FAR:
                yield near, follows, to_far, (*to_near, kind)
    if to_far:
        yield near, _hears(far, End.NEAR, world), to_far[1:], to_near
    if to_near:
        yield _hears(near, End.FAR, world), far, to_far, to_near[1:]


def _hears(state: ControlState, speaker: End, world: _World) -> ControlState:
    message = (world[2] if speaker is End.NEAR else world[3])[0]
    assert (speaker, message) in TRANSITIONS[state], f"{speaker} {message.__name__} is refused in {world}"
    return TRANSITIONS[state][speaker, message]


def test_messages_that_cross_are_never_taken_for_a_broken_rule() -> None:
    """In every reachable state, with up to two messages under way each way, both ends accept the messages."""
    start: _World = (ControlState.HELLO, ControlState.HELLO, (), ())
    seen = {start}
    todo = deque(seen)
    while todo:
        for world in _steps(todo.popleft(), 2):
            if world not in seen:
                seen.add(world)
                todo.append(world)
    assert {near for near, *_ in seen} == set(ControlState)
    assert {far for _, far, *_ in seen} == set(ControlState)


@given(st.data())
def test_received_messages_do_not_depend_on_how_the_bytes_are_split(data: st.DataObject) -> None:
    """Valid talk with garbage in or after it gives the same messages and the same error, cut anywhere."""
    talk = data.draw(st.lists(st.sampled_from([Ping, Pong, Notice, Report, SessionClosed, Finish]), max_size=6))
    stream = b"".join(encode_frame(EXAMPLES[kind]) for kind in talk)
    stream += data.draw(st.binary(max_size=40) | st.just(struct.pack(">I", 2**32 - 1)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    whole, cut = greeted(End.NEAR, ControlState.RUNNING), greeted(End.NEAR, ControlState.RUNNING)
    whole.receive_data(stream)
    for start, stop in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        cut.receive_data(stream[start:stop])
    assert cut.messages_received() == whole.messages_received()
    assert (cut.state, str(cut.error)) == (whole.state, str(whole.error))


@given(st.lists(st.binary(max_size=60), max_size=6), st.sampled_from(End), st.booleans())
def test_garbage_never_raises_and_is_always_blamed(chunks: list[bytes], end: End, after: bool) -> None:
    """Before or after the greeting, any bytes cause an error that names the culprit, or none yet."""
    machine = greeted(end) if after else ControlStateMachine(end)
    for chunk in chunks:
        machine.receive_data(chunk)
    machine.receive_eof()
    assert machine.messages_received() == []
    if not after:
        assert isinstance(machine.error, PeerNotLinkgauge)
    elif machine.error is not None:
        assert isinstance(machine.error, RemoteProtocolError)
    assert machine.error is None or str(machine.error).isprintable()


@given(st.integers(0, 400), st.sampled_from([ControlState.RUNNING, ControlState.STOPPING]))
def test_a_stream_that_breaks_off_leaves_only_whole_messages(length: int, state: ControlState) -> None:
    """Half a frame is neither a message nor an error."""
    frames = [encode_frame(EXAMPLES[kind]) for kind in (Report, Notice, SessionOpened)]
    machine = greeted(End.NEAR, state)
    machine.receive_data(b"".join(frames)[:length])
    machine.receive_eof()
    ends = [sum(map(len, frames[: count + 1])) for count in range(len(frames))]
    assert len(machine.messages_received()) == sum(1 for end in ends if end <= length)
    assert machine.error is None


def test_after_an_error_nothing_is_received_and_nothing_can_be_sent() -> None:
    """The first error stands; more bytes and the end of them change nothing."""
    machine = greeted(End.FAR, ControlState.RUNNING)
    machine.receive_data(encode_frame(EXAMPLES[Ping]) + encode_frame(EXAMPLES[Hello]))
    first = machine.error
    assert isinstance(first, RemoteProtocolError)
    machine.receive_data(encode_frame(EXAMPLES[Stop]))
    machine.receive_eof()
    assert machine.error is first
    assert machine.messages_received() == [EXAMPLES[Ping]]  # it came before
    assert not machine.may_send(Ping)
    with pytest.raises(LocalProtocolError, match="Pong after a failed conversation"):
        machine.send(EXAMPLES[Pong])


def test_an_impossible_plan_is_the_near_ends_broken_rule() -> None:
    """Plans are checked where they are made: one that cannot be did not come from a linkgauge."""
    machine = greeted(End.FAR, ControlState.IDLE)
    body = b'{"type":"Open","plan":{"settings":{"sessions":1000000}}}'
    machine.receive_data(struct.pack(">I", len(body)) + body)
    assert isinstance(machine.error, RemoteProtocolError)
    assert "the client" in str(machine.error)
    assert "give 1 to 128" in str(machine.error)


@pytest.mark.parametrize(
    ("output", "excerpt"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "SSH ('SSH-2.0-OpenSSH_9.2')"),
        (b"Linkgauge", "('Linkgauge')"),
        (b"x" * 5000, "('" + "x" * 16 + "')"),
        (b"linkgauge\x01X\n", "a broken greeting"),
        (b"linkgauge\x01C\r", "a broken greeting"),
        (encode_preamble(DATA_KIND), "greeting of a data connection"),
    ],
)
def test_output_of_another_program_is_quoted_without_control_characters(output: bytes, excerpt: str) -> None:
    """The likely protocol, and its first words, at most 40 characters, all printable."""
    machine = ControlStateMachine(End.NEAR)
    machine.receive_data(output)
    assert isinstance(machine.error, PeerNotLinkgauge)
    assert excerpt in str(machine.error)
    assert str(machine.error).isprintable()


@pytest.mark.parametrize("count", range(PREAMBLE_BYTES))
def test_a_peer_that_closes_within_its_greeting_is_foreign(count: int) -> None:
    """Its first words are quoted, and silence is reported as well."""
    machine = ControlStateMachine(End.NEAR)
    machine.receive_data(encode_preamble(CONTROL_KIND)[:count])
    assert machine.error is None
    machine.receive_eof()
    assert isinstance(machine.error, PeerNotLinkgauge)
    assert ("without a word" if count == 0 else "in the middle of its greeting") in str(machine.error)
    assert str(machine.error).isprintable()


@pytest.mark.parametrize("version", [0, 1, 255])
@pytest.mark.parametrize("end", End)
def test_another_version_is_named_and_answered_with_ours(end: End, version: int) -> None:
    """The far end sends its own version before it gives up, so that the near end can name both."""
    machine = ControlStateMachine(end)
    machine.data_to_send()
    greeting = bytearray(encode_preamble(CONTROL_KIND))
    greeting[9] = version
    machine.receive_data(bytes(greeting))
    assert isinstance(machine.error, PeerVersionMismatch)
    assert f"speaks protocol {version}, this linkgauge speaks 2; install the same" in str(machine.error)
    assert machine.data_to_send() == (encode_preamble(CONTROL_KIND) if end is End.FAR else b"")


class TwoEnds(RuleBasedStateMachine):
    """Both ends send any allowed message at any time; bytes arrive late and in pieces, but in order."""

    def __init__(self) -> None:
        super().__init__()
        self.ends = {end: ControlStateMachine(end) for end in End}
        self.wire = {end: bytearray() for end in End}
        self.said: dict[End, list[Message]] = {end: [] for end in End}
        self.heard: dict[End, list[Message]] = {end: [] for end in End}

    @rule(end=st.sampled_from(End), data=st.data())
    def say(self, end: End, data: st.DataObject) -> None:
        """Say anything that is allowed here and now."""
        allowed = [kind for kind in MESSAGES_BY_SENDER[end] if self.ends[end].may_send(kind)]
        if allowed:
            message = EXAMPLES[data.draw(st.sampled_from(allowed))]
            self.ends[end].send(message)
            self.said[end].append(message)
        self.wire[end] += self.ends[end].data_to_send()

    @rule(end=st.sampled_from(End), data=st.data())
    @precondition(lambda self: any(self.wire.values()))
    def arrive(self, end: End, data: st.DataObject) -> None:
        """Let some of the bytes under way arrive."""
        count = data.draw(st.integers(0, len(self.wire[end])))
        piece = bytes(self.wire[end][:count])
        del self.wire[end][:count]
        self._hear(end, piece)

    def _hear(self, speaker: End, piece: bytes) -> None:
        receiver = self.ends[speaker.other]
        receiver.receive_data(piece)
        self.heard[speaker] += receiver.messages_received()
        self.wire[speaker.other] += receiver.data_to_send()

    @invariant()
    def nobody_broke_a_rule(self) -> None:
        """Check that each has received the beginning of the other's messages."""
        for end in End:
            assert self.ends[end].error is None
            assert self.heard[end] == self.said[end][: len(self.heard[end])]

    def teardown(self) -> None:
        """Once all has arrived, all was heard and both stand at the same place."""
        while any(self.wire.values()):
            for end in End:
                piece = bytes(self.wire[end])
                self.wire[end].clear()
                self._hear(end, piece)
        self.nobody_broke_a_rule()
        assert self.heard == self.said


TestTwoEnds = TwoEnds.TestCase


def conversation(near_nonce: str, far_nonce: str) -> tuple[ControlStateMachine, ControlStateMachine]:
    """Return both machines of a conversation that is as far as the far end's challenge."""
    near, far = ControlStateMachine(End.NEAR), ControlStateMachine(End.FAR)
    near.send(Hello(near_nonce))
    far.receive_data(near.data_to_send())
    far.send(Challenge(far_nonce))
    near.receive_data(far.data_to_send())
    assert near.error is far.error is None
    return near, far


def test_both_machines_have_the_same_transcript_and_a_replay_another() -> None:
    """It has each end's nonce in it: a proof of yesterday's conversation is not valid today."""
    near, far = conversation("ab" * 32, "cd" * 32)
    assert near.transcript == far.transcript
    replayed, fresh = conversation("ab" * 32, "ef" * 32)
    assert replayed.transcript == fresh.transcript != near.transcript


@pytest.mark.parametrize(
    "tamper",
    [
        lambda data: data.replace(b"ab" * 32, b"ba" * 32),
        lambda data: data.replace(b'"type":"Hello"', b'"type": "Hello"'),
        lambda data: data.replace(b'"type":"Hello",', b"").replace(b'"}', b'","type":"Hello"}'),
    ],
    ids=["nonce", "length", "order"],
)
def test_a_hello_that_was_changed_on_its_way_gives_another_transcript(tamper: Callable[[bytes], bytes]) -> None:
    """Even if it means the same: the transcript has the bytes on the wire."""
    near, far = ControlStateMachine(End.NEAR), ControlStateMachine(End.FAR)
    near.send(Hello("ab" * 32))
    sent = near.data_to_send()
    received = tamper(sent)
    assert received != sent
    far.receive_data(received[:12] + (len(received) - 16).to_bytes(4, "big") + received[16:])
    assert far.error is None
    assert far.messages_received()
    far.send(Challenge("cd" * 32))
    near.receive_data(far.data_to_send())
    assert near.transcript != far.transcript


def test_messages_after_the_challenge_are_not_part_of_the_transcript() -> None:
    """Both ends can compute both proofs from the same bytes."""
    near, far = conversation("ab" * 32, "cd" * 32)
    before = near.transcript
    near.send(Proof("ef" * 32))
    far.receive_data(near.data_to_send())
    far.send(Welcome("ef" * 32))
    near.receive_data(far.data_to_send())
    assert near.transcript == far.transcript == before
