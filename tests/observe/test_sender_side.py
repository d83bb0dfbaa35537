"""Findings of a connection of another program, at the end that sends."""

from typing import Any

import pytest
from linkgauge.engine.model.directions import End
from linkgauge.engine.model.events import ObservedSocket
from linkgauge.observe.sender_side import describe_decision, diagnose_observed, lacks_data
from linkgauge.presets.diagnosis.evidence import Evidence, HoldShares
from linkgauge.presets.diagnosis.flow_view import flow_views

from ..presets.diagnosis.evidence_cases import run

SOCKET = ObservedSocket("[2001:db8::1]:5", "[2001:db8::2]:443", "eve", "rsync", 812)


def observed(mbit_s: float = 6.0, **figures: Any) -> Evidence:
    """Return the evidence of a busy sender over 20 ms, whose other end is not seen."""
    unseen = {"nic": None, "tcp": None, "cores": (), "process": None, "busiest_worker": None}
    busy = {"rtt_us": 25_900, "min_rtt_us": 20_100, "cwnd_bytes": 82_536, "unacked_bytes": 17_376}
    return run(mbit_s, far=unseen, observed=SOCKET, unseen_end=End.FAR, **busy | figures)


def test_a_program_that_writes_little_and_often_is_no_slow_path() -> None:
    """Something is in flight all the time, and yet TCP lacked data in most samples."""
    holds = HoldShares(12, pace=0.6, empty=0.4)
    assert [each.code for each in diagnose_observed(observed(holds=holds, app_limited=0.0))] == ["path-slow"]
    evidence = observed(holds=holds, app_limited=0.9)
    assert diagnose_observed(evidence) == ()
    assert lacks_data(flow_views(evidence)[0])


@pytest.mark.parametrize(
    "figures",
    [
        {"sndbuf_limited": 0.9, "holds": HoldShares(12, buffer=0.9, empty=0.1), "send_buffer_bytes": 65_536},
        {"sndbuf_limited": 0.5, "holds": HoldShares(12, buffer=0.3, pace=0.3, empty=0.4)},
        {"rwnd_limited": 0.91, "sndbuf_limited": 0.07, "holds": HoldShares(12, window=0.4, empty=0.6)},
    ],
)
def test_a_small_buffer_or_window_has_nothing_unsent_either(figures: dict[str, Any]) -> None:
    """The kernel notes a lack of data then, too, but the buffer, or the peer's window, is the limit."""
    assert not lacks_data(flow_views(observed(app_limited=0.9, **figures))[0])


def test_what_the_far_end_could_refute_is_less_certain_and_the_remedy_says_what_decides() -> None:
    """By the address of the peer, which a shell takes as one word; no option of a test is a remedy."""
    (finding,) = diagnose_observed(observed(app_limited=0.0))
    assert finding.confidence <= 0.7
    assert finding.remedy.endswith(describe_decision(SOCKET.remote_host))
    assert "linkgauge check '[2001:db8::2]' would decide" in finding.remedy
    assert finding.trial is None
    assert "this host's interface" in finding.text


def test_a_connection_at_its_expected_rate_has_no_finding() -> None:
    """Nothing holds it back."""
    evidence = observed(990.0)
    assert evidence.is_as_expected
    assert diagnose_observed(evidence) == ()
