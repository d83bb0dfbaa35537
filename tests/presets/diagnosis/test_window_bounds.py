"""The window that a flow has reached, with or without the kernel's clocks."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.directions import End
from linkgauge.presets.diagnosis.cross_checks import ONE_READING
from linkgauge.presets.diagnosis.diagnose import diagnose
from linkgauge.presets.diagnosis.evidence import Evidence
from linkgauge.presets.diagnosis.flow_view import FlowView, flow_views
from linkgauge.presets.diagnosis.window_bounds import find_full_window, find_reached_bound

from .evidence_cases import TCP, run

KIB = 1_024
RTTS_MS = (2, 10, 50)


def view_of(evidence: Evidence) -> FlowView:
    """Return the view of the only direction."""
    (view,) = flow_views(evidence)
    return view


def windowed(window_bytes: int, rtt_ms: float, sessions: int = 1, filled: float = 1.2, **more: object) -> Evidence:
    """Return a run whose sessions have `filled` windows in flight, of which the kernel's clocks know nothing."""
    mbit_s = filled * window_bytes * sessions * 8 / (rtt_ms * 1e3)
    values = {
        "window_bytes": window_bytes,
        "send_window_bytes": window_bytes,
        "receive_window_bytes": window_bytes,
        "rtt_us": round(rtt_ms * 1e3),
        "min_rtt_us": round(rtt_ms * 980),
        "sessions": sessions,
        "cwnd_bytes": 3 * window_bytes,
        "peer_window_bytes": round(1.33 * window_bytes),
    }
    return run(mbit_s, **values | more)


GRID = [
    (kib, rtt_ms, sessions, filled)
    for kib, rtt_ms, sessions, filled in product((16, 32, 64, 128), RTTS_MS, (1, 2, 4), (1.1, 1.2, 1.3))
    if filled * kib * KIB * sessions * 8 / (rtt_ms * 1e3) < 850  # Mb/s of 948: a larger window has no effect
]


@given(case=st.sampled_from(GRID))
def test_a_full_window_below_the_need_is_the_cause(case: tuple[int, float, int, float]) -> None:
    """Over the grid on which it was measured, the remedy asks for more than there was."""
    kib, rtt_ms, sessions, filled = case
    first = diagnose(windowed(kib * KIB, rtt_ms, sessions, filled))[0]
    assert (first.code, first.confidence) == ("window-below-bdp", ONE_READING)
    assert "--window auto" in first.remedy
    assert "in flight" in first.evidence


def test_a_window_that_is_not_full_is_not_a_cause() -> None:
    """The sessions wait for something else, or the window is not the one in use."""
    for filled in (0.3, 0.9, 2.2):
        view = view_of(windowed(64 * KIB, 10, filled=filled))
        assert find_full_window(view) is None


def test_a_full_window_that_is_large_enough_is_not_a_cause() -> None:
    """A larger one would only fill the queue."""
    view = view_of(windowed(128 * KIB, 1, filled=1.2, expected_bit_s=1.0e9))
    assert find_full_window(view) is not None
    assert find_reached_bound(view) is None


def test_without_an_expected_rate_only_a_window_that_was_set_counts() -> None:
    """The right size of the kernel's own windows is unknown then."""
    small = windowed(16 * KIB, 0.05, expected_bit_s=None)
    bound = find_reached_bound(view_of(small))
    assert bound is not None
    assert bound.kind == "requested"
    own = replace(small, window_bytes=None)
    assert find_reached_bound(view_of(own)) is None


@pytest.mark.parametrize(("sends", "share"), [(True, 0.53), (True, 0.73), (False, 0.65), (False, 1.3)])
@pytest.mark.parametrize(("limit_kib", "rtt_ms"), [(32, 2), (32, 50), (96, 10), (256, 10), (256, 50)])
def test_a_limit_of_the_kernel_is_named_at_its_end(
    *, sends: bool, share: float, limit_kib: int, rtt_ms: float
) -> None:
    """The send buffer's at the sender, the receive window's at the receiver."""
    limit = limit_kib * KIB
    name = "tcp_wmem_max_bytes" if sends else "tcp_rmem_max_bytes"
    small = {"tcp": replace(TCP, **{name: limit})}
    mbit_s = share * limit * 8 / (rtt_ms * 1e3)
    ends = {"near": small} if sends else {"far": small}
    advertised = 3_000_000 if sends else round(share * limit)
    evidence = run(mbit_s, rtt_us=rtt_ms * 1_000, min_rtt_us=rtt_ms * 990, peer_window_bytes=advertised, **ends)
    first = diagnose(evidence)[0]
    assert (first.code, first.end) == ("window-clamped", End.NEAR if sends else End.FAR)
    assert ("tcp_wmem" if sends else "tcp_rmem") in first.remedy


def test_of_several_windows_the_smallest_is_named() -> None:
    """A small window set by hand comes before missing window scaling, and the other way round."""
    both = windowed(16 * KIB, 20, window_scaling=False)
    assert diagnose(both)[0].code == "window-below-bdp"
    large = replace(windowed(512 * KIB, 20, filled=0.11), window_bytes=512 * KIB)
    unscaled = replace(large, flows=(replace(large.flows[0], window_scaling=False),))
    assert diagnose(unscaled)[0].code == "window-scaling-off"


def test_a_window_is_smaller_than_its_request_by_a_kernel_limit() -> None:
    """The end whose kernel grants less is named, and the limit to raise."""
    evidence = windowed(200 * KIB, 20, send_window_bytes=4 * KIB * KIB)
    first = diagnose(replace(evidence, window_bytes=4 * KIB * KIB))[0]
    assert (first.code, first.end) == ("window-clamped", End.FAR)
    assert "net.core.rmem_max" in first.remedy
