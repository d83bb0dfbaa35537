"""What an NDT7 server reports of its kernel: counters, if they can be."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.counters.samples import SessionSample
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.speedtest.server_reports import ServerReports

INFO: dict[str, Any] = {
    "BytesAcked": 1_000_000, "BytesReceived": 300, "RTT": 20_000, "MinRTT": 10_000, "TotalRetrans": 5,
    "SndMSS": 1_448, "SndCwnd": 10, "Unacked": 4, "DeliveryRate": 125_000, "BusyTime": 900, "SndWnd": 65_536,
}  # fmt: skip


def report(**more: Any) -> bytes:
    """Return a report."""
    return json.dumps({"Origin": "server", "Test": "download", "TCPInfo": {**INFO, **more}}).encode()


def sample_of(reports: ServerReports) -> SessionSample:
    """Return the sample of a new report."""
    sample = reports.sender_sample(Direction.IN, 1)
    assert sample is not None
    return sample


def test_a_sample_has_the_rise_of_what_accumulates_and_the_rest_as_it_stands() -> None:
    """In the units of every other sample."""
    reports = ServerReports()
    assert reports.sender_sample(Direction.IN, 1) is None
    reports.take(report())
    first = sample_of(reports)
    assert (first.bytes, first.retransmits, first.rtt_us, first.min_rtt_us) == (1_000_000, 5, 20_000, 10_000)
    assert (first.cwnd_bytes, first.unacked_bytes, first.delivery_bit_s) == (14_480, 5_792, 1_000_000)
    assert reports.sender_sample(Direction.IN, 1) is None
    reports.take(report(BytesAcked=1_500_000, TotalRetrans=7, RTT=30_000))
    second = sample_of(reports)
    assert (second.bytes, second.retransmits, second.rtt_us) == (500_000, 2, 30_000)


@pytest.mark.parametrize("value", [-1, True, 1.5, "7", None, [], 1 << 60])
def test_a_value_that_is_no_count_is_unknown(value: object) -> None:
    """The rest of the report counts."""
    reports = ServerReports()
    reports.take(report(RTT=value))
    sample = sample_of(reports)
    assert sample.rtt_us is None
    assert sample.min_rtt_us == 10_000


def test_counters_that_fall_are_no_rise() -> None:
    """A server may send anything."""
    reports = ServerReports()
    reports.take(report())
    sample_of(reports)
    reports.take(report(BytesAcked=5, TotalRetrans=1))
    sample = sample_of(reports)
    assert (sample.bytes, sample.retransmits) == (0, 0)


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"1", b'{"TCPInfo": 7}', b"\xff", b"[" * 60_000])
def test_a_report_that_is_not_understood_is_left_out(data: bytes) -> None:
    """It ends nothing."""
    reports = ServerReports()
    reports.take(data)
    assert reports.sender_sample(Direction.IN, 1) is None


@given(st.dictionaries(st.sampled_from([*INFO, "x"]), st.one_of(st.integers(), st.floats(), st.text())))
def test_any_report_gives_possible_counters(values: dict[str, Any]) -> None:
    """Of at most 53 bits, or none."""
    reports = ServerReports()
    reports.take(json.dumps({"TCPInfo": values}).encode())
    sample = reports.sender_sample(Direction.IN, 1)
    if sample is not None:
        counts = [sample.bytes, sample.rtt_us, sample.cwnd_bytes, sample.delivery_bit_s, sample.unacked_bytes]
        assert all(count is None or 0 <= count < 1 << 53 for count in counts)


def test_a_server_that_claims_more_than_was_acknowledged_is_told() -> None:
    """Its counts are evidence, and no rate."""
    reports = ServerReports()
    reports.take(report(BytesReceived=10**12))
    assert len(reports.find_discrepancies(10**9)) == 1
    assert not reports.find_discrepancies(10**12)
