"""The answers of hops in windows: whatever comes when, a trace is one that the other end would accept."""

from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.counters.path_trace import (
    MAX_ANSWER_NS,
    MAX_MTU_BYTES,
    MAX_WINDOWS,
    WINDOW_NS,
    PathTrace,
)
from linkgauge.engine.model.directions import End
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.engine.model.serialization import decode, encode
from linkgauge.engine.path.hop_windows import HopWindows

MS = 1_000_000
ROUTER, FAR = "192.0.2.1", "198.51.100.7"


def test_windows_are_cut_at_the_beginning_of_the_load() -> None:
    """A probe counts in the window in which it was sent, and the window that has not ended is left out."""
    windows = HopWindows(0)
    windows.note_sent(1, 900 * MS)
    windows.begin_load(SECOND_NS)
    windows.begin_load(2 * SECOND_NS)
    windows.note_answer(1, ROUTER, 900 * MS, 5 * MS)
    for at_ns in (SECOND_NS, SECOND_NS + 100 * MS, SECOND_NS + WINDOW_NS):
        windows.note_sent(1, at_ns)
        windows.note_answer(1, ROUTER, at_ns, at_ns // 1_000)
    windows.note_received(SECOND_NS + 1)
    windows.note_mtu(ROUTER, 1_400)
    trace = windows.trace(End.NEAR, SECOND_NS + 2 * WINDOW_NS - 1)
    (hop,) = trace.hops
    assert (trace.idle_windows, trace.is_reached) == (1, False)
    assert hop.sent == (1, 2)
    assert hop.answered == (1, 2)
    assert hop.least_ns == (5 * MS, MS)
    assert trace.received == (0, 1)
    assert [(each.router, each.mtu_bytes) for each in trace.mtus] == [(ROUTER, 1_400)]
    assert list(trace.loaded_window(0, WINDOW_NS)) == [1]


def test_answers_and_sizes_that_no_path_has_do_not_count() -> None:
    """An echo may be held back for minutes, and a forged report of ICMPv6 may have any 32 bits."""
    windows = HopWindows(0)
    windows.begin_load(0)
    for at_ns in (0, WINDOW_NS):
        windows.note_sent(1, at_ns)
    windows.note_answer(1, ROUTER, 0, MAX_ANSWER_NS + 1)
    windows.note_answer(1, ROUTER, WINDOW_NS, MAX_ANSWER_NS)
    for mtu_bytes in (0, MAX_MTU_BYTES + 1, (1 << 32) - 1):
        windows.note_mtu(ROUTER, mtu_bytes)
    trace = windows.trace(End.FAR, 2 * WINDOW_NS)
    assert [(hop.answered, hop.least_ns) for hop in trace.hops] == [((0, 1), (None, MAX_ANSWER_NS))]
    assert trace.mtus == ()


def test_probes_with_more_ttl_than_the_path_has_hops_are_the_other_ends() -> None:
    """They were sent before its place was known."""
    windows = HopWindows(0)
    windows.begin_load(0)
    for ttl in (1, 2, 3):
        windows.note_sent(ttl, 0)
    windows.note_answer(3, FAR, 0, 3)
    windows.reached_ttl = 2
    windows.note_answer(2, FAR, 0, 2)
    trace = windows.trace(End.NEAR, WINDOW_NS)
    assert [hop.routers for hop in trace.hops] == [(), (FAR,)]
    assert (trace.hops[1].sent, trace.hops[1].answered, trace.hops[1].least_ns) == ((2,), (2,), (2,))


def test_a_run_of_a_day_has_longer_windows_and_not_more_of_them() -> None:
    """The idle link's stay as they were."""
    windows = HopWindows(0)
    windows.note_sent(1, 0)
    windows.begin_load(WINDOW_NS)
    for second in range(86_400):
        windows.note_sent(1, (1 + second) * SECOND_NS)
    trace = windows.trace(End.FAR, 86_401 * SECOND_NS)
    assert trace.idle_windows == 1
    assert len(trace.received) <= MAX_WINDOWS
    windows.note_answer(1, ROUTER, 0, 1)
    (hop,) = windows.trace(End.FAR, 86_401 * SECOND_NS).hops
    assert hop.answered[0] == hop.sent[0] == 1
    assert sum(hop.sent) > 80_000


_EVENTS = st.lists(
    st.tuples(st.integers(1, 30), st.integers(0, 40 * SECOND_NS), st.none() | st.integers(0, 10 * SECOND_NS)),
    max_size=30,
)


@given(_EVENTS, st.integers(0, 12 * SECOND_NS), st.none() | st.integers(1, 30))
def test_any_trace_is_accepted_and_comes_back_as_it_was(
    probes: list[tuple[int, int, int | None]], loaded_ns: int, reached: int | None
) -> None:
    """Answers never outnumber probes, in any window."""
    windows = HopWindows(0)
    windows.reached_ttl = reached
    is_loaded = False
    for ttl, sent_ns, took_ns in sorted(probes, key=lambda probe: probe[1]):
        if sent_ns >= loaded_ns and not is_loaded:
            windows.begin_load(loaded_ns)
            is_loaded = True
        windows.note_sent(ttl, sent_ns)
        if took_ns is not None:
            windows.note_answer(ttl, ROUTER, sent_ns, took_ns)
    trace = windows.trace(End.FAR, 41 * SECOND_NS)
    assert decode(PathTrace, encode(trace)) == trace
