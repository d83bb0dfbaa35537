"""JSON documents of iperf3: any bytes are a value or a protocol error."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.iperf3.protocol.json_bodies import (
    LENGTH,
    as_object,
    decode_body,
    encode_body,
    read_number,
    read_text,
    read_whole,
)
from linkgauge.engine.model.errors import RemoteProtocolError

from .json_values import FINITE_JSON as JSON


@given(st.dictionaries(st.text(), JSON))
def test_a_document_arrives_as_it_was(document: dict[str, object]) -> None:
    """Its length is before it."""
    data = encode_body(document)
    assert LENGTH.unpack(data[: LENGTH.size]) == (len(data) - LENGTH.size,)
    assert decode_body(data[LENGTH.size :]) == document


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_bytes_are_a_value_or_a_protocol_error(body: bytes) -> None:
    """Nothing else comes out of the parser."""
    try:
        value = decode_body(body)
    except RemoteProtocolError:
        return
    assert as_object(value) is None or isinstance(value, dict)


@pytest.mark.parametrize("body", [b"[" * 8_192, b'{"a":' * 1_600, b"9" * 8_192, b"Infinity", b"-NaN", b"1e"])
def test_depth_digits_and_constants_are_protocol_errors(body: bytes) -> None:
    """As long as a document of parameters may be."""
    with pytest.raises(RemoteProtocolError):
        decode_body(body)


@pytest.mark.parametrize(
    ("value", "number", "whole"),
    [
        (1.9, 1.9, 1),
        (2**63 - 1, 2**63 - 1, 2**63 - 1),
        (18_446_744_073_709_551_615, None, None),
        (2**63, None, None),
        (-1, None, None),
        (float("inf"), None, None),
        (True, None, None),
        ("5", None, None),
        (None, None, None),
    ],
)
def test_numbers_that_mean_unknown_are_none(value: object, number: float | None, whole: int | None) -> None:
    """Until 3.13 iperf3 wrote -1 as 2**64-1."""
    assert read_number({"key": value}, "key") == number
    assert read_whole({"key": value}, "key") == whole


def test_text_has_no_control_characters_and_a_length() -> None:
    """A title is shown in a terminal."""
    assert read_text({"title": "a\x1b[2J\nb" * 50}, "title", 6) == "a\ufffd[2J\ufffd"
    assert read_text({"title": 5}, "title", 6) is None
