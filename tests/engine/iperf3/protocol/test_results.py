"""Results of iperf3: what every version sends, and what a hostile end might."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.iperf3.protocol.results import EndResults, StreamResult, decode_results, encode_results
from linkgauge.engine.model.errors import RemoteProtocolError

from .json_values import JSON

OLD_STREAM = {"id": 1, "bytes": 5, "retransmits": 18446744073709551615, "jitter": 0, "errors": 0, "packets": 0}
OLD = {"cpu_util_total": 1.5, "cpu_util_user": 0.5, "cpu_util_system": 1, "streams": [OLD_STREAM]}
STREAM_KEYS = [*OLD_STREAM, "omitted_errors", "omitted_packets", "start_time", "end_time"]


def test_results_arrive_as_they_were() -> None:
    """Of TCP and of UDP."""
    tcp, udp = (
        StreamResult(1, 10**15, retransmits=3, span_s=2.5),
        StreamResult(
            3, 900, jitter_s=0.001, errors=7, omitted_errors=2, packets=100, omitted_packets=10, span_s=1.0
        ),
    )
    results = EndResults((tcp, udp), 150.5, 100.0, 50.5, 1, "cubic", "one line\nand another")
    assert decode_results(encode_results(results)) == results
    assert encode_results(results)["streams"][1]["retransmits"] == -1


def test_results_of_old_versions_have_unknown_parts() -> None:
    """No end, nothing of the omitted part, and -1 without its sign."""
    results = decode_results(OLD | {"sender_has_retransmits": 18446744073709551615})
    assert results.has_retransmits == -1
    assert results.streams == (StreamResult(1, 5, omitted_errors=None, omitted_packets=None),)
    assert results.cpu_total_percent == 1.5


@pytest.mark.parametrize(
    "change",
    [
        {"streams": None},
        {"streams": [{}]},
        {"streams": [OLD_STREAM, OLD_STREAM]},
        {"streams": [OLD_STREAM | {"id": 0}]},
        {"streams": [OLD_STREAM | {"id": 10**9}]},
        {"streams": [OLD_STREAM | {"bytes": -5}]},
        {"streams": [OLD_STREAM | {"bytes": 2**63}]},
        {"streams": [OLD_STREAM | {"id": number} for number in range(1, 300)]},
    ],
)
def test_results_that_cannot_be_used_are_a_protocol_error(change: dict[str, object]) -> None:
    """Whose stream, and how many bytes: without these there is no result."""
    with pytest.raises(RemoteProtocolError):
        decode_results(OLD | change)


def test_what_a_server_printed_drives_no_terminal() -> None:
    """Its lines stay lines."""
    results = decode_results(OLD | {"server_output_text": "a\x1b[2J\tb\r\nc\x00\n"})
    assert results.server_output == "a\ufffd[2J   b\nc\ufffd"


@given(
    JSON
    | st.fixed_dictionaries(
        {"streams": st.lists(st.dictionaries(st.sampled_from(STREAM_KEYS), JSON))},
        optional=dict.fromkeys(("cpu_util_total", "sender_has_retransmits", "server_output_json"), JSON),
    )
)
def test_any_document_gives_bounded_results_or_a_protocol_error(document: object) -> None:
    """Every number is finite and in range."""
    try:
        results = decode_results(document)
    except RemoteProtocolError:
        return
    assert 0 <= results.cpu_total_percent <= 10**7
    for stream in results.streams:
        counts = (stream.bytes, stream.errors, stream.packets, stream.retransmits or 0)
        assert all(0 <= count <= 2**62 for count in counts)
        assert 0 <= stream.jitter_s <= 10**6
