"""Parameters of iperf3: what stock clients send, and what others might."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.iperf3.protocol.parameters import (
    DEFAULT_DATAGRAM_BYTES,
    TestParameters,
    decode_parameters,
    encode_parameters,
)
from linkgauge.engine.iperf3.protocol.refusals import ErrorNumber, Iperf3Refusal

from .json_values import JSON

E = ErrorNumber
KEYS = [
    *encode_parameters(TestParameters()),
    "udp",
    "sctp",
    "reverse",
    "bidirectional",
    "bandwidth",
    "fqrate",
    "MSS",
]
KEYS += ["nodelay", "window", "TOS", "congestion", "title", "get_server_output", "zerocopy", "authtoken", "burst"]


def test_a_client_that_names_nothing_gets_the_defaults_of_iperf3() -> None:
    """Ten seconds of TCP, one stream, blocks of 128 KiB."""
    parameters = decode_parameters({})
    assert parameters == TestParameters()
    assert (parameters.duration_s, parameters.parallel, parameters.block_bytes) == (10, 1, 131_072)
    assert decode_parameters({"udp": True}).block_bytes == DEFAULT_DATAGRAM_BYTES


@pytest.mark.parametrize(
    "parameters",
    [
        TestParameters(duration_s=0, bytes_limit=10**12, window_bytes=65_536, mss_bytes=1_400, nodelay=True),
        TestParameters(is_udp=True, block_bytes=1_200, rate_bit_s=10**9, has_64bit_counters=True, parallel=128),
        TestParameters(is_bidirectional=True, omit_s=600, tos=184, congestion="bbr", title="a title"),
        TestParameters(is_reverse=True, is_zerocopy=True, auth_token="dG9rZW4=", client_version="3.21"),  # noqa: S106
        TestParameters(skips_copy=True, asks_output=True, block_limit=7, duration_s=0, pacing_bit_s=10**6),
    ],
)
def test_what_a_client_asks_for_arrives(parameters: TestParameters) -> None:
    """Every field has a key."""
    assert decode_parameters(encode_parameters(parameters)) == parameters


def test_a_wrong_type_is_ignored() -> None:
    """As stock servers ignore it since 3.18; only true is true."""
    wrong = {"time": "5", "parallel": [2], "reverse": 1, "bidirectional": "true", "len": None, "omit": True}
    wrong |= {"bandwidth": {"a": 1}, "title": 5, "congestion": 7, "get_server_output": "1", "TOS": "16"}
    assert decode_parameters(wrong) == TestParameters()


@pytest.mark.parametrize(
    ("key", "value", "number"),
    [
        ("time", 86_401, E.DURATION),
        ("time", -1, E.DURATION),
        ("omit", 601, E.OMIT),
        ("parallel", 0, E.STREAMS),
        ("parallel", 129, E.STREAMS),
        ("parallel", 2**70, E.STREAMS),
        ("parallel", float("inf"), E.STREAMS),
        ("parallel", float("nan"), E.STREAMS),
        ("len", 0, E.BLOCK_SIZE),
        ("len", 2**20 + 1, E.BLOCK_SIZE),
        ("window", 2**29 + 1, E.WINDOW_SIZE),
        ("window", -5, E.WINDOW_SIZE),
        ("MSS", 32_768, E.MSS),
        ("MSS", 5, E.SET_MSS),
        ("TOS", 256, E.TOS),
        ("num", -1, E.PARAMETERS),
        ("blockcount", 2**63, E.PARAMETERS),
        ("bandwidth", 10**18, E.TOTAL_RATE),
        ("fqrate", -1, E.TOTAL_RATE),
        ("sctp", True, E.PROTOCOL),
        ("congestion", "../../etc", E.CONGESTION),
        ("congestion", "a" * 300, E.CONGESTION),
    ],
)
def test_an_impossible_value_is_refused_by_its_number(key: str, value: object, number: ErrorNumber) -> None:
    """A stock client prints the sentence of that number."""
    with pytest.raises(Iperf3Refusal) as caught:
        decode_parameters({key: value})
    assert caught.value.number is number


def test_combinations_that_no_test_can_have_are_refused() -> None:
    """Both directions twice, datagrams without room for a header, a rate that only all streams have."""
    for document, number in (
        ({"reverse": True, "bidirectional": True}, E.BOTH_DIRECTIONS),
        ({"udp": True, "len": 4}, E.DATAGRAM_SIZE),
        ({"udp": True, "len": 65_508}, E.DATAGRAM_SIZE),
        ({"bandwidth": 10**12, "parallel": 100}, E.TOTAL_RATE),
        ([], E.PARAMETERS),
        (None, E.PARAMETERS),
    ):
        with pytest.raises(Iperf3Refusal) as caught:
            decode_parameters(document)
        assert caught.value.number is number


def test_what_people_will_read_has_no_control_characters() -> None:
    """A title drives no terminal."""
    parameters = decode_parameters({"title": "\x1b]0;x\x07" * 100, "client_version": "3\n3"})
    assert parameters.title is not None
    assert parameters.title.isprintable()
    assert len(parameters.title) <= 200
    assert parameters.client_version == "3\ufffd3"


@given(JSON | st.dictionaries(st.sampled_from(KEYS), JSON))
def test_any_document_gives_bounded_parameters_or_a_refusal(document: object) -> None:
    """Nothing that a client names is used without a bound."""
    try:
        parameters = decode_parameters(document)
    except Iperf3Refusal:
        return
    assert 1 <= parameters.streams <= 256
    assert 1 <= parameters.block_bytes <= 2**20
    assert 0 <= parameters.duration_s <= 86_400
    assert (parameters.rate_bit_s or 0) * parameters.parallel <= 10**13
