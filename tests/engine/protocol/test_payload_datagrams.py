"""Payload's header and the feedback: what is decoded is what was encoded, and nothing else is."""

import random
from dataclasses import replace

import pytest
from linkgauge.engine.model.errors import RemoteProtocolError
from linkgauge.engine.protocol.payload_datagrams import (
    CONTROL_MAGIC,
    FEEDBACK_BYTES,
    MAX_NUMBER,
    PAYLOAD_HEADER,
    DatagramKeys,
    Feedback,
    is_control_datagram,
)

KEYS = DatagramKeys(b"secret")
FEEDBACK = Feedback(1, 2, 3, 4, 5, 6, 7, 8, 9, 10 << 10, has_unread=True)


def test_a_feedback_is_decoded_as_it_was_encoded() -> None:
    """At the least and the largest values."""
    for feedback in (FEEDBACK, Feedback(*([0] * 9)), Feedback(*([MAX_NUMBER] * 9))):
        data = KEYS.encode_feedback(feedback)
        assert len(data) == FEEDBACK_BYTES
        assert KEYS.decode_feedback(data) == feedback
        assert is_control_datagram(data)


def test_no_changed_byte_passes() -> None:
    """Nor a shorter or longer datagram, another session's, or impossible values."""
    data = KEYS.encode_feedback(FEEDBACK)
    changed = [data[:n] + bytes([data[n] ^ 1]) + data[n + 1 :] for n in range(len(data))]
    others = [data[:-1], data + b"x", b"", DatagramKeys(b"other").encode_feedback(FEEDBACK)]
    too_large = KEYS.encode_feedback(replace(FEEDBACK, advanced=MAX_NUMBER + 1))
    draw = random.Random(1)  # noqa: S311 - repeatable
    noise = [draw.randbytes(draw.randrange(2 * FEEDBACK_BYTES)) for _ in range(500)]
    for bad in (*changed, *others, too_large, *noise):
        with pytest.raises(RemoteProtocolError):
            KEYS.decode_feedback(bad)


def test_no_number_looks_like_a_control_datagram() -> None:
    """The first eight bytes tell the two apart."""
    for number in (0, 1, MAX_NUMBER):
        assert not is_control_datagram(PAYLOAD_HEADER.pack(number, 0, 0))
    assert int.from_bytes(CONTROL_MAGIC, "little") > MAX_NUMBER
