"""One end of the control protocol against a peer that does as it likes; a million inputs are `fuzz.py`'s."""

import importlib.util
import random
import sys
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from linkgauge.engine.model.directions import End
from linkgauge.engine.model.errors import LinkgaugeError, LocalProtocolError, RemoteProtocolError
from linkgauge.engine.protocol.framing import MAX_FRAME_BYTES, PEER_NAMES, FrameReader, decode_body, encode_frame
from linkgauge.engine.protocol.messages import MESSAGES_BY_SENDER
from linkgauge.engine.protocol.preamble import CONTROL_KIND, encode_preamble
from linkgauge.engine.protocol.state_machine import TRANSITIONS, ControlState, ControlStateMachine


def _bench() -> ModuleType:
    """Return the script that fuzzes by the million: its sayings and its promises are this file's as well."""
    path = Path(__file__).parents[2] / "stress" / "fuzz.py"
    spec = importlib.util.spec_from_file_location("linkgauge_bench_fuzz", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


FUZZ = _bench()
SAYINGS: dict[End, tuple[Any, ...]] = FUZZ.SAYINGS


def broken(data: bytes, seed: int) -> bytes:
    """Return bytes with some of them changed, always the same for a seed."""
    return FUZZ.mutated(data, random.Random(seed))


def test_the_sayings_are_all_there_are() -> None:
    """A new message belongs among what is mutated."""
    for end in End:
        assert {type(each_message) for each_message in SAYINGS[end]} == set(MESSAGES_BY_SENDER[end])


@pytest.mark.parametrize("seed", [1, 2])
def test_some_thousand_broken_inputs_come_to_no_more_than_an_error(seed: int) -> None:
    """Every kind but those that read a file for each input, which are the script's alone."""
    kinds = [kind for kind in FUZZ.KINDS if kind not in {"run log", "preset TOML", "keys file"}]
    assert FUZZ.fuzz(2_000, seed, kinds).total() == 2_000


class AgainstAnything(RuleBasedStateMachine):
    """One end says what it may; the other says anything, in any order, cut anywhere, true or garbage."""

    @initialize(end=st.sampled_from(End), greeted=st.booleans())
    def meet(self, end: End, greeted: bool) -> None:
        """Begin a conversation, with the preamble or without."""
        self.machine = ControlStateMachine(end)
        self.sent = bytearray(self.machine.data_to_send())
        self.state: ControlState = ControlState.HELLO
        self.error: LinkgaugeError | None = None
        if greeted:
            self.machine.receive_data(encode_preamble(CONTROL_KIND))

    def _hear(self, data: bytes) -> None:
        self.machine.receive_data(data)
        self.sent += self.machine.data_to_send()
        received_messages = self.machine.messages_received()
        assert all(type(message) in MESSAGES_BY_SENDER[self.machine.end.other] for message in received_messages)
        if self.error is not None:
            assert received_messages == []

    @rule(number=st.integers(0, 20), cut=st.integers(0, 400))
    def say_something_true(self, number: int, cut: int) -> None:
        """Have the peer say a message, allowed now or not, in two pieces."""
        sayings = SAYINGS[self.machine.end.other]
        frame = encode_frame(sayings[number % len(sayings)])
        self._hear(frame[:cut])
        self._hear(frame[cut:])

    @rule(number=st.integers(0, 20), seed=st.integers(0, 2**32))
    def say_something_broken(self, number: int, seed: int) -> None:
        """Have the peer say a message with some of its bytes changed."""
        sayings = SAYINGS[self.machine.end.other]
        self._hear(broken(encode_frame(sayings[number % len(sayings)]), seed))

    @rule(data=st.binary(max_size=40))
    def say_garbage(self, data: bytes) -> None:
        """Have the peer say anything."""
        self._hear(data)

    @rule(number=st.integers(0, 20))
    def answer(self, number: int) -> None:
        """Say something: it is sent where the table has it, and refused as our own error elsewhere."""
        sayings = SAYINGS[self.machine.end]
        message = sayings[number % len(sayings)]
        if self.machine.may_send(type(message)):
            self.machine.send(message)
            assert self.machine.data_to_send().endswith(encode_frame(message))
        else:
            with pytest.raises(LocalProtocolError):
                self.machine.send(message)
        self.state = self.machine.state

    @precondition(lambda self: self.error is None)
    @rule()
    def hang_up(self) -> None:
        """End the peer's bytes here."""
        self.machine.receive_eof()

    @invariant()
    def it_stands_somewhere_and_keeps_little(self) -> None:
        """Check that an error is linkgauge's own and stays the first, and that little is kept."""
        machine = getattr(self, "machine", None)
        if machine is None:
            return
        assert machine.state in TRANSITIONS
        assert machine.error is not None or len(machine._frames._buffer) <= MAX_FRAME_BYTES[machine.end.other] + 4
        if self.error is not None:
            assert machine.error is self.error
        if machine.error is not None:
            assert isinstance(machine.error, LinkgaugeError)
            assert not isinstance(machine.error, LocalProtocolError)
            assert str(machine.error).isprintable()
            self.error = machine.error


AgainstAnything.TestCase.settings = settings(max_examples=60, stateful_step_count=25)
TestAgainstAnything = AgainstAnything.TestCase


@given(
    st.sampled_from(End),
    st.lists(st.integers(0, 20), max_size=4),
    st.integers(0, 2**32),
    st.lists(st.integers(0, 3_000)),
)
def test_frames_are_cut_out_the_same_however_broken_bytes_are_cut(
    sender: End, numbers: list[int], seed: int, cuts: list[int]
) -> None:
    """What comes out depends on the bytes alone; before a length that is too long all is given out."""
    sayings = SAYINGS[sender]
    stream = b"".join(encode_frame(sayings[number % len(sayings)]) for number in numbers)
    stream = broken(stream, seed)

    def bodies(pieces: list[bytes]) -> tuple[list[bytes], str]:
        reader, found = FrameReader(sender), []
        try:
            for piece in pieces:
                found.extend(reader.read_frames(piece))
        except RemoteProtocolError as error:
            return found, str(error)
        return found, ""

    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    assert bodies([stream]) == bodies([stream[a:b] for a, b in pairwise(edges)])


@given(st.binary(max_size=400), st.sampled_from(End))
def test_squeezed_garbage_is_a_protocol_error(data: bytes, sender: End) -> None:
    """Behind the mark of a squeezed message there may be anything."""
    with pytest.raises(RemoteProtocolError, match=f"a message of the {PEER_NAMES[sender]}"):
        decode_body(b"z" + data, sender)
