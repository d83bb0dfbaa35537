"""The frames of a server, walked through in pieces of any size."""

import struct
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.errors import RemoteProtocolError
from linkgauge.engine.protocol.foreign.websocket_frames import (
    MAX_TEXT_BYTES,
    FrameWalker,
    Message,
    Opcode,
    binary_head,
    close_frame,
    message_head,
)


def frame(opcode: int, data: bytes, *, is_last: bool = True) -> bytes:
    """Return a server's frame."""
    first = bytes([(0x80 if is_last else 0) | opcode])
    if len(data) < 126:
        return first + bytes([len(data)]) + data
    if len(data) < 1 << 16:
        return first + b"\x7e" + struct.pack(">H", len(data)) + data
    return first + b"\x7f" + struct.pack(">Q", len(data)) + data


def walk(data: bytes, pieces: Sequence[int]) -> list[Message]:
    """Return the messages in bytes that come in pieces of these sizes, again and again."""
    walker, at, number = FrameWalker(), 0, 0
    messages: list[Message] = []
    while at < len(data):
        size = pieces[number % len(pieces)]
        if walker.skippable_bytes and number % 3 == 0:
            size = min(size, walker.skippable_bytes)
            walker.skip(min(size, len(data) - at))
        else:
            messages += walker.walk(data[at : at + size])
        at += size
        number += 1
    return messages


_KINDS = st.sampled_from([Opcode.TEXT, Opcode.BINARY, Opcode.PING, Opcode.CLOSE])
_SIZES = st.sampled_from([0, 1, 2, 125, 126, 127, 65_535, 65_536, 70_000])


@given(st.lists(st.tuples(_KINDS, _SIZES), max_size=6), st.lists(st.integers(1, 70_000), min_size=1, max_size=4))
def test_messages_are_found_between_payload_whatever_comes_at_a_time(
    kinds: list[tuple[Opcode, int]], pieces: list[int]
) -> None:
    """Payload is left out, and passing over it changes nothing."""
    sent: list[tuple[Opcode, bytes]] = []
    for kind, size in kinds:
        most = 125 if kind.is_control else MAX_TEXT_BYTES if kind is Opcode.TEXT else size
        sent.append((kind, bytes(min(size, most))))
    data = b"".join(frame(kind, payload) for kind, payload in sent)
    wanted = [Message(kind, payload) for kind, payload in sent if kind is not Opcode.BINARY]
    assert walk(data, pieces) == wanted


def test_a_text_in_parts_is_one_message_and_a_ping_may_stand_between_them() -> None:
    """As RFC 6455, 5.4 allows."""
    data = frame(1, b"a", is_last=False) + frame(9, b"p") + frame(0, b"b", is_last=False) + frame(0, b"c")
    assert walk(data, [1]) == [Message(Opcode.PING, b"p"), Message(Opcode.TEXT, b"abc")]
    data = frame(2, b"a", is_last=False) + frame(0, b"b") + frame(1, b"t")
    assert walk(data, [100]) == [Message(Opcode.TEXT, b"t")]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\x82\x7f" + struct.pack(">Q", 1 << 63), "2\\^63"),
        (b"\xc2\x01a", "must not send"),
        (b"\x82\x81maska", "must not send"),
        (b"\x83\x01a", "unknown kind 3"),
        (b"\x88\x7e\x00\x7e" + bytes(126), "too long"),
        (b"\x09\x00", "too long"),
        (b"\x80\x01a", "without its beginning"),
        (frame(1, b"a", is_last=False) + frame(1, b"b"), "without its end"),
        (b"\x81\x7f" + struct.pack(">Q", MAX_TEXT_BYTES + 1), "a text of more than"),
        (frame(1, bytes(40_000), is_last=False) + frame(0, bytes(40_000)), "a text of more than"),
    ],
)
def test_what_a_server_must_not_send_is_an_error(data: bytes, words: str) -> None:
    """Before anything of its size is kept."""
    with pytest.raises(RemoteProtocolError, match=words):
        walk(data, [7])


@given(st.binary(max_size=200))
def test_any_bytes_are_messages_or_an_error(data: bytes) -> None:
    """Nothing is kept beyond the limit."""
    walker = FrameWalker()
    try:
        for message in walker.walk(data):
            assert len(message.data) <= len(data)
    except RemoteProtocolError as error:
        assert str(error).isprintable()  # noqa: PT017 - most bytes are messages


def test_a_clients_messages_have_a_mask_and_a_length_of_as_few_bytes_as_possible() -> None:
    """A server refuses others."""
    assert binary_head(65_536, is_client=True)[:2] == b"\x82\xff"
    assert len(binary_head(65_536, is_client=True)) == 14
    assert binary_head(125) == b"\x82\x7d"
    assert [len(message_head(size)) for size in (100, 130, 65_536, 1 << 20)] == [2, 4, 4, 10]
    head = message_head(262_144)
    assert len(head) + int.from_bytes(head[2:]) == 262_144
    closing = close_frame()
    assert closing[:2] == b"\x88\x82"
    assert bytes(a ^ b for a, b in zip(closing[6:], closing[2:6], strict=False)) == struct.pack(">H", 1_000)
    assert Message(Opcode.CLOSE, struct.pack(">H", 1_001)).close_code == 1_001
    assert Message(Opcode.CLOSE, b"").close_code is None
