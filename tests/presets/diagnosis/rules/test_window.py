"""Windows that are too small, and the command that widens them."""

import pytest
from linkgauge.engine.model.plan import End

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
    """The remedy asks for what was asked for, or what is needed, whichever is more."""
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
    """It neither runs nor waits for a core, so that nothing else has its core."""
    still = {"near" if sends else "far": {"waiting": waiting, "busiest_worker": used}}
    clocks = {"busy": 0.3} if sends else {"rwnd_limited": 0.7}
    finding = first(run(300, rtt_us=1_400, peer_window_bytes=9_000_000, **clocks, **still))
    assert (finding.code, finding.end) == (("sender-starved", End.NEAR) if sends else ("receive-window", End.FAR))
    assert finding.confidence == 0.85
    assert f"used {100 * used:.0f} % of a core" in finding.evidence
    assert "T stopped" in finding.remedy
