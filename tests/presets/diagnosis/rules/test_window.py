"""Windows that are too small, and the command that widens them."""

from dataclasses import replace
from typing import Any

import pytest
from linkgauge.engine.model.directions import End
from linkgauge.presets.diagnosis.diagnose import diagnose
from linkgauge.presets.diagnosis.evidence import HoldShares
from linkgauge.presets.diagnosis.finding import Finding

from ..evidence_cases import first, run


def test_a_slow_receiver_without_a_full_core_is_reported_with_less_confidence() -> None:
    """A window that the payload in flight fills may be one that still grows."""
    finding = first(run(300, rwnd_limited=0.6, peer_window_bytes=66_000, rtt_us=1_400))
    assert (finding.code, finding.end) == ("receive-window", End.FAR)
    assert finding.confidence <= 0.5


# Recorded while the receiving worker stood still for 53 to 90 % of the time, at 100 Mb/s and 1 Gb/s.
@pytest.mark.parametrize(
    ("mbit_s", "rwnd_limited", "rtt_us", "window_bytes", "sessions"),
    [
        (74.7, 0.99, 491, 6_144, 1),
        (47.0, 0.58, 34_843, 160_512, 4),
        (127.6, 0.98, 15_868, 0, 1),
        (516.0, 0.29, 3_041, 330_368, 2),
        (174.9, 0.77, 13_844, 19_968, 2),
    ],
)
def test_a_receiver_that_stands_still_is_named_with_confidence(
    mbit_s: float, rwnd_limited: float, rtt_us: int, window_bytes: int, sessions: int
) -> None:
    """Its window is smaller than any new one, or closes although little of it is in flight."""
    finding = first(
        run(
            mbit_s,
            expected_bit_s=948e6 if mbit_s > 100 else 94.8e6,
            rwnd_limited=rwnd_limited,
            rtt_us=rtt_us,
            min_rtt_us=5,
            peer_window_bytes=window_bytes,
            sessions=sessions,
        )
    )
    assert (finding.code, finding.end) == ("receive-window", End.FAR)
    assert finding.confidence == 0.85
    assert "in flight" in finding.evidence


# Recorded while the reader stood still for 0.2 to 1 s again and again: the kernel's clock missed most of that time.
@pytest.mark.parametrize(
    ("mbit_s", "rwnd_limited", "low_window", "rtt_us", "cwnd_bytes", "sessions"),
    [
        (67.9, 0.03, 0.42, 18_167, 199_100, 2),
        (71.0, 0.06, 0.42, 17_000, 180_000, 1),
        (777.0, 0.03, 0.25, 9_000, 1_600_000, 1),
        (644.0, 0.03, 0.25, 12_000, 900_000, 2),
        (555.0, 0.03, 0.23, 22_000, 4_000_000, 1),
        (420.0, 0.21, 0.58, 20_000, 2_000_000, 1),
        (796.0, 0.0, 0.3, 22_790, 1_119_304, 4),
    ],
)
def test_a_reader_that_stops_again_and_again_is_not_taken_for_a_slow_path(
    mbit_s: float, rwnd_limited: float, low_window: float, rtt_us: int, cwnd_bytes: int, sessions: int
) -> None:
    """It acknowledges late, which looks like a queue: the window that gets smaller tells them apart."""
    values = {
        "expected_bit_s": 948e6 if mbit_s > 100 else 94.8e6,
        "rwnd_limited": rwnd_limited,
        "rtt_us": rtt_us,
        "min_rtt_us": 5,
        "cwnd_bytes": cwnd_bytes,
        "sessions": sessions,
    }
    assert first(run(mbit_s, **values, low_window=0.0)).code == "path-slow"
    finding = first(run(mbit_s, **values, low_window=low_window))
    assert (finding.code, finding.end, finding.confidence) == ("receive-window", End.FAR, 0.85)
    assert f"below its largest size in {100 * low_window:.0f} % of samples" in finding.evidence
    assert ("its window stops the sender" in finding.text) is (rwnd_limited >= 0.05)


def test_a_clamped_window_names_its_sysctl_and_its_value() -> None:
    """The remedy asks for the requested or the needed size, whichever is larger."""
    finding = first(
        run(
            150,
            rwnd_limited=0.8,
            min_rtt_us=10_000,
            rtt_us=10_500,
            window_bytes=4_194_304,
            send_window_bytes=4_194_304,
            receive_window_bytes=212_992,
            peer_window_bytes=277_000,
        )
    )
    assert (finding.code, finding.end) == ("window-clamped", End.FAR)
    assert "net.core.rmem_max is 212\u00a0992 bytes" in finding.evidence
    assert finding.remedy == "at the remote end: sysctl -w net.core.rmem_max=4194304"


def test_the_remedy_raises_the_kernels_limit_before_the_window() -> None:
    """Both steps are in the remedy, in order."""
    finding = first(
        run(
            45,
            sndbuf_limited=0.9,
            min_rtt_us=10_000,
            rtt_us=10_500,
            window_bytes=57_344,
            send_window_bytes=57_344,
            receive_window_bytes=57_344,
        )
    )
    assert finding.code == "window-below-bdp"
    assert finding.remedy.startswith("linkgauge … --window 2M, or --window auto; first at the local end: sysctl -w")


@pytest.mark.parametrize("sends", [True, False])
@pytest.mark.parametrize(("used", "waiting"), [(0.01, 0.0), (0.02, 0.04)])
def test_a_worker_that_stands_still_is_shown_by_its_state(*, sends: bool, used: float, waiting: float) -> None:
    """It neither runs nor waits for a core, so its core is free."""
    still = {"near" if sends else "far": {"waiting": waiting, "busiest_worker": used}}
    clocks = {"busy": 0.3} if sends else {"rwnd_limited": 0.7}
    finding = first(run(300, rtt_us=1_400, peer_window_bytes=9_000_000, **clocks, **still))
    assert (finding.code, finding.end) == (("sender-starved", End.NEAR) if sends else ("receive-window", End.FAR))
    assert finding.confidence == 0.85
    assert f"used {100 * used:.0f} % of a core" in finding.evidence
    assert "T stopped" in finding.remedy


# 100 Mb/s of 948 with a round trip of 10 ms: 125,000 bytes in flight, and nothing waits to be sent or read.
HELD = {
    "mbit_s": 100.0,
    "rtt_us": 10_000,
    "min_rtt_us": 9_900,
    "low_rtt_us": 9_950,
    "unacked_bytes": 125_000,
    "intervals": 16,
    "rate_spread": 0.02,
    "peer_window_bytes": 126_000,
    "receive_buffer_bytes": 262_144,
    "send_buffer_bytes": 800_000,
    "unread": 0.0,
    "window_growth": 1.0,
}


def held(window: float = 0.0, buffer: float = 0.0, **change: Any) -> Finding:
    """Return the first finding about a flow whose window or send buffer is full in a share of its samples."""
    clocks = {"rwnd_limited": window, "sndbuf_limited": buffer}
    return first(run(**HELD | clocks | {"holds": HoldShares(20, window=window, buffer=buffer)} | change))


@pytest.mark.parametrize(
    ("buffer_bytes", "first_try"), [(262_144, "net.ipv4.tcp_moderate_rcvbuf"), (4_000_000, "a route's `window`")]
)
def test_a_window_that_does_not_grow_though_all_is_read_is_fixed_by_its_kernel(
    buffer_bytes: int, first_try: str
) -> None:
    """A slow program would leave data unread. A buffer much larger than the window points to a route."""
    finding = held(window=0.9, receive_buffer_bytes=buffer_bytes)
    assert (finding.code, finding.end) == ("window-clamped", End.FAR)
    assert finding.text == "The receive window of the remote end does not grow."
    assert "though its program reads all that arrives" in finding.evidence
    assert finding.remedy.index(first_try) < finding.remedy.index("; or ")


@pytest.mark.parametrize("change", [{"unread": 0.6}, {"low_window": 0.3}])
@pytest.mark.parametrize("window_bytes", [None, 524_288])
def test_unread_data_makes_any_window_small(change: dict[str, float], window_bytes: int | None) -> None:
    """A set window as well as the kernel's own."""
    finding = held(window=0.9, window_bytes=window_bytes, receive_window_bytes=window_bytes, **change)
    assert (finding.code, finding.end) == ("receive-window", End.FAR)


def test_a_window_that_became_smaller_once_is_not_one_of_a_slow_reader() -> None:
    """Linux advertises more at first than a set window holds. A reader that stops makes the window vary."""
    small = {"window_bytes": 65_536, "receive_window_bytes": 65_536, "low_window": 0.8}
    assert held(window=0.9, **small, least_window_bytes=126_000).code == "window-below-bdp"
    assert held(window=0.9, **small, least_window_bytes=30_000).code == "receive-window"


def test_a_send_buffer_at_the_kernels_limit_is_named_for_any_content() -> None:
    """With one segment a buffer it has little payload in flight: 125,000 bytes of a limit of 4 MiB of memory."""
    finding = held(buffer=0.9, send_buffer_bytes=4_194_304)
    assert (finding.code, finding.end) == ("window-clamped", End.NEAR)
    assert "its send buffer is full of them in 90 % of samples" in finding.evidence.replace("\u00a0", " ")


def test_a_model_never_contradicts_a_measurement() -> None:
    """A flow with a window's worth in flight has another limit if its samples find nothing full."""
    window = 104_000
    modelled = run(**HELD | {"window_bytes": window, "send_window_bytes": window, "receive_window_bytes": window})
    assert first(modelled).code == "window-below-bdp"
    flow = replace(modelled.flows[0], holds=HoldShares(20, congestion=1.0))
    assert first(replace(modelled, flows=(flow,))).code != "window-below-bdp"


def test_a_window_and_losses_share_a_gap() -> None:
    """By the rate that either alone would allow: both are named, and the window has the larger share."""
    evidence = run(
        **HELD
        | {"window_bytes": 104_000, "receive_window_bytes": 104_000, "holds": HoldShares(20, window=0.8)}
        | {"rwnd_limited": 0.6, "retransmitted": 0.0005, "retransmits": 40, "lossy": 0.9, "mss_bytes": 1_448}
    )
    codes = [(each.code, each.share) for each in diagnose(evidence)]
    assert [code for code, _ in codes] == ["window-below-bdp", "loss"]
    assert sum(share or 0.0 for _, share in codes) == pytest.approx(1.0, abs=0.01)
