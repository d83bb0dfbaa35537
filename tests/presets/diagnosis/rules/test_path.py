"""A slow path: its queue, and its other direction. A sender that paces itself on any path."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.directions import End
from linkgauge.engine.results.sums.rate_course import RateStep
from linkgauge.presets.diagnosis.evidence import Evidence

from ..evidence_cases import FULL, IDLE, NIC, first, probed, run, unseen_sender

# Recorded while SO_MAX_PACING_RATE limited every socket: on a link without a delay the round trip varies without a
# queue, by the sender's own timers. Mb/s, round trip and the shortest one in microseconds, cwnd, sessions.
PACED = (
    (60.3, 798, 2, 30_408, 4),
    (12.3, 968, 3, 82_536, 1),
    (34.4, 1_362, 2, 36_924, 4),
    (22.2, 546, 6, 121_632, 1),
    (430.1, 420, 8, 256_296, 4),
    (30.4, 19_902, 17_040, 121_632, 2),
    (5.43, 18_043, 14_533, 37_648, 1),
)


def test_rare_loss_with_a_full_queue_is_a_slow_path() -> None:
    """A path whose queue overflows now and then is slow, and not lossy."""
    finding = first(run(retransmitted=0.0005, retransmits=30, rtt_us=30_000))
    assert finding.code == "path-slow"
    assert "--direction in" in finding.evidence


@pytest.mark.parametrize(
    ("recorded", "ratio", "congestion"), product(PACED, (0.98, 1.0, 1.05), ("cubic", "reno")), ids=str
)
def test_a_paced_sender_is_told_from_a_slow_path(
    recorded: tuple[float, int, int, int, int], ratio: float, congestion: str
) -> None:
    """It has far less in flight than its congestion window, so the path does not hold a queue."""
    mbit_s, rtt_us, min_rtt_us, cwnd_bytes, sessions = recorded
    finding = first(
        run(
            mbit_s,
            rtt_us=rtt_us,
            min_rtt_us=min_rtt_us,
            cwnd_bytes=cwnd_bytes,
            sessions=sessions,
            congestion=congestion,
            pacing_bit_s=round(mbit_s * ratio * 1e6 / sessions),
        )
    )
    assert (finding.code, finding.end) == ("pacing", End.NEAR)
    assert "SO_MAX_PACING_RATE" in finding.remedy


@pytest.mark.parametrize("filled", [0.8, 1.0, 1.2])
@pytest.mark.parametrize("mbit_s", [20.0, 300.0, 700.0])
def test_a_full_queue_is_not_a_pace(mbit_s: float, filled: float) -> None:
    """The sender paces a little above the path's rate, and its congestion window is in the queue."""
    in_flight = mbit_s * 1e6 / 8 * 0.03
    slow = run(mbit_s, rtt_us=30_000, cwnd_bytes=round(in_flight / filled), pacing_bit_s=round(mbit_s * 1.05e6))
    assert first(slow).code == "path-slow"


LO = {"nic": replace(NIC, name="lo", sort="loopback", line_rate_bit_s=None, mtu_bytes=65_536)}


def within_one_host(mbit_s: float, ends: dict[str, Any] = LO, **more: Any) -> Evidence:
    """Return a run over loopback, whose round trip is short."""
    values = {"expected_bit_s": None, "rtt_us": 60, "min_rtt_us": 20, "congestion": "bbr"} | more
    return run(mbit_s, near=ends, far=ends, link=None, **values)


@given(
    sessions=st.sampled_from([1, 8]),
    ratio=st.sampled_from([0.75, 1.0, 1.25, 2.2]),
    mbit_s=st.sampled_from([1_200.0, 21_000.0]),
    expected_bit_s=st.sampled_from([None, 60e9]),
)
def test_bbr_that_paces_within_one_host_is_named_with_its_rates(
    expected_bit_s: float | None, mbit_s: float, ratio: float, sessions: int
) -> None:
    """No path can be slow there, so its pace does not come from one."""
    finding = first(
        within_one_host(
            mbit_s,
            expected_bit_s=expected_bit_s,
            sessions=sessions,
            pacing_bit_s=round(mbit_s * ratio * 1e6 / sessions),
            delivery_bit_s=round(mbit_s * 1e6 / sessions),
        )
    )
    assert (finding.code, finding.end) == ("pacing", End.NEAR)
    assert finding.confidence == (0.8 if ratio <= 1.25 else 0.6)
    assert "delivered" in finding.evidence
    assert "--congestion cubic" in finding.remedy
    assert "sysctl -w net.ipv4.tcp_congestion_control=cubic" in finding.remedy


@pytest.mark.parametrize(("congestion", "ratio"), [("bbr", 2.6), ("bbr", 4.0), ("cubic", 1.0), ("bbr", None)])
def test_a_sender_within_one_host_that_is_slower_than_its_pace_waits_for_something_else(
    congestion: str, ratio: float | None
) -> None:
    """A rate that the kernel does not report is not a reason either."""
    pacing_bit_s = None if ratio is None else round(21e9 * ratio)
    evidence = within_one_host(21_000, congestion=congestion, pacing_bit_s=pacing_bit_s)
    assert first(evidence).code == "unexplained"


def test_a_full_core_comes_before_the_pace_of_bbr() -> None:
    """BBR paces at the rate of the core."""
    ends = LO | {"cores": FULL, "busiest_worker": 0.97}
    assert first(within_one_host(21_000, ends, pacing_bit_s=21_000_000_000)).code == "core-saturated"


@pytest.mark.parametrize("congestion", ["cubic", "bbr"])
def test_a_limit_that_a_program_has_set_is_read_from_its_sockets(congestion: str) -> None:
    """Any congestion control obeys it, and the round trip does not show it."""
    finding = first(run(93, sessions=2, max_pacing_bit_s=50_000_000, congestion=congestion, rtt_us=30_000))
    assert (finding.code, finding.confidence, finding.end) == ("pacing", 0.95, End.NEAR)
    assert "SO_MAX_PACING_RATE is 100 Mb/s" in finding.evidence.replace("\u00a0", " ")
    assert first(run(60, sessions=2, max_pacing_bit_s=50_000_000, congestion=congestion)).code != "pacing"


def test_a_path_that_carried_the_expected_rate_for_a_while_is_not_said_to_be_slow() -> None:
    """A good link that TCP did not fill all the time has a guess at most."""
    slow = {"mbit_s": 880.0, "rtt_us": 30_000, "min_rtt_us": 10_000}
    assert first(run(**slow, upper_bit_s=885_000_000)).code == "path-slow"
    assert first(run(**slow, upper_bit_s=930_000_000)).code == "unexplained"


def test_losses_that_go_on_keep_a_window_from_growing() -> None:
    """So does a queue that the flow fills."""
    small = {"mbit_s": 300.0, "rtt_us": 10_000, "min_rtt_us": 9_500, "cwnd_bytes": 380_000}
    assert first(run(**small)).code == "congestion-window"
    assert first(run(**small, lossy=0.8)).code != "congestion-window"


@pytest.mark.parametrize(
    ("before", "then", "says"),
    [(94.8, 38.0, "The path became slower during the test."), (30.0, 94.8, "The path was slower at first.")],
)
def test_a_path_with_two_rates_is_slow_although_it_carried_the_expected_rate(
    before: float, then: float, says: str
) -> None:
    """A quarter of the intervals had it. Without a queue nothing says that it was the path."""
    step = RateStep(4.0, round(before * 1e6), round(then * 1e6))
    fields: dict[str, Any] = {"upper_bit_s": 941_000_000, "step": step, "min_rtt_us": 900}
    slow = replace(run(600.0, rtt_us=30_000, **fields), has_ended=True)
    found = first(slow)
    assert (found.code, found.text) == ("path-slow", says)
    assert f"{before:g} Mb/s in the first 4 s, {then:g} Mb/s after that" in found.evidence
    assert first(replace(slow, has_ended=False)).code == "unexplained"
    assert first(replace(run(600.0, rtt_us=1_000, **fields), has_ended=True)).code == "unexplained"
    assert first(run(600.0, rtt_us=30_000, **fields | {"step": None})).code == "unexplained"


@pytest.mark.parametrize(
    ("rise_ms", "handshake_ms", "rate_spread", "is_path"),
    [
        (31.0, None, 0.03, True),
        (31.0, None, 0.3, False),  # a busy device delays probes, and its rate varies
        (5.0, None, 0.03, False),
        (31.0, 29.0, 0.08, True),
        (11.0, 3.7, 0.03, True),  # a short queue behind a device that answers late
        (11.0, 3.7, 0.08, False),
        (31.0, 1.2, 0.03, False),  # the device alone is late
        (None, None, 0.03, False),
    ],
)
@pytest.mark.parametrize("cores", [IDLE, FULL], ids=["idle", "full"])
def test_probes_show_the_queue_of_a_sender_that_is_not_seen(
    rise_ms: float | None, handshake_ms: float | None, rate_spread: float, cores: Any, *, is_path: bool
) -> None:
    """Its path is slow then, even if this host's cores are busy with other work."""
    case = unseen_sender(200.0, retransmits=None, retransmitted=None, rate_spread=rate_spread)
    case = replace(case, near=replace(case.near, cores=cores, waiting=0.2))
    finding = first(probed(case, rise_ms, handshake_ms=handshake_ms))
    assert (finding.code == "path-slow") is is_path
    if is_path:
        assert finding.confidence == 0.6
        assert "the remote host is not seen" in finding.evidence
