"""How many datagrams are due, over rates, sizes, late wake-ups, changes and stalls."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.workloads.udp.pacing import Pacer

MS = 1_000_000
SECOND = 1_000_000_000
START = 7 * SECOND
RATES = [1_000_000, 9_999_999, 100_000_000, 1_000_000_000, 5_000_000_000]
SIZES = [24, 64, 1_400, 1_472, 9_000]


class Sender:
    """Sends the due datagrams in groups, and wakes up late."""

    def __init__(self, bit_s: int | None, datagram_bytes: int, *, seed: int = 0, group: int = 1) -> None:
        self.pacer = Pacer(bit_s, datagram_bytes, START)
        self.now_ns = START
        self.sent = 0
        self.largest = 0
        self._group = group
        self._rng = random.Random(seed)  # noqa: S311

    def run(self, until_ns: int, *, late_ns: int) -> None:
        """Send until a time, waking up to `late_ns` after each deadline."""
        while True:
            burst = 0
            while count := self.pacer.take(self.now_ns, 64):
                burst += count
            self.sent += burst
            self.largest = max(self.largest, burst)
            wake_ns = self.now_ns + self.pacer.wait_ns(self.now_ns, self._group) + self._rng.randint(0, late_ns)
            if wake_ns > until_ns:
                return
            assert wake_ns > self.now_ns or late_ns
            self.now_ns = wake_ns


@given(bit_s=st.sampled_from(RATES), datagram_bytes=st.sampled_from(SIZES))
def test_the_rate_is_exact_to_one_datagram(bit_s: int, datagram_bytes: int) -> None:
    """With wake-ups up to 0.9 ms late, as a busy machine makes them."""
    sender = Sender(bit_s, datagram_bytes, seed=bit_s + datagram_bytes)
    sender.run(START + SECOND // 2, late_ns=900_000)
    assert sender.sent == 1 + (sender.now_ns - START) * bit_s // (datagram_bytes * 8 * SECOND)
    assert sender.pacer.skipped == 0


@given(bit_s=st.sampled_from(RATES), datagram_bytes=st.sampled_from(SIZES))
def test_groups_are_exact_and_small(bit_s: int, datagram_bytes: int) -> None:
    """A sender of groups waits for a whole one, but never for longer than the rate takes 0.25 ms for."""
    sender = Sender(bit_s, datagram_bytes, seed=1, group=64)
    sender.run(START + SECOND // 20, late_ns=500_000)
    assert sender.sent == 1 + (sender.now_ns - START) * bit_s // (datagram_bytes * 8 * SECOND)
    assert sender.largest * datagram_bytes * 8 <= bit_s * 0.75e-3 + 2 * datagram_bytes * 8


@given(bit_s=st.sampled_from(RATES), datagram_bytes=st.sampled_from(SIZES))
def test_a_sender_that_was_held_up_does_not_burst(bit_s: int, datagram_bytes: int) -> None:
    """It catches up on 1 ms of the rate, or one datagram; the rest is skipped, and both together are the rate."""
    pacer = Pacer(bit_s, datagram_bytes, START)
    after = START + 50 * MS
    sent = pacer.take(after, 1 << 40)
    assert 1 <= sent <= 1 + max(1, bit_s // 1_000 // (datagram_bytes * 8))
    assert sent + pacer.skipped == 1 + 50 * bit_s // 1_000 // (datagram_bytes * 8)
    assert pacer.take(after, 64) == 0


@pytest.mark.parametrize("datagram_bytes", SIZES)
def test_changes_add_up_without_a_burst(datagram_bytes: int) -> None:
    """Twenty changes of the rate a second, as the search for a rate makes them, from the slowest to the fastest."""
    rates = [1_000_000, 5_000_000_000, 2_000_000, 40_000_000, 1_000_000_000, 3_000_000] * 4
    pacer = Pacer(rates[0], datagram_bytes, START)
    sent, now_ns, bits = 0, START, datagram_bytes * 8
    for bit_s in rates:
        pacer.change(now_ns, bit_s, datagram_bytes)
        assert pacer.take(now_ns, 64) <= 2
        for _ in range(100):
            now_ns += MS // 2
            count = pacer.take(now_ns, 1 << 40)
            assert count * datagram_bytes * 8 <= bit_s // 2_000 + 2 * datagram_bytes * 8
            sent += count
        bits += bit_s // 20
    assert pacer.skipped == 0
    assert abs(sent * datagram_bytes * 8 - bits) <= len(rates) * datagram_bytes * 8


def test_a_pause_is_not_skipped_and_a_change_of_size_keeps_the_rate() -> None:
    """A stop because of the receiver's silence does not count as a slow host."""
    pacer = Pacer(8_000_000, 1_000, START)
    assert pacer.take(START, 64) == 1
    pacer.change(START + 5 * SECOND, 8_000_000, 1_000)
    assert 1 <= pacer.take(START + 5 * SECOND, 64) <= 2
    pacer.change(START + 5 * SECOND, 8_000_000, 100)
    assert sum(pacer.take(START + 5 * SECOND + i * MS, 64) for i in range(1, 101)) == pytest.approx(1_000, abs=1)
    assert pacer.skipped == 0


def test_without_a_rate_all_that_can_be_sent_is_due() -> None:
    """And a rate that is set later begins with one datagram."""
    pacer = Pacer(None, 1_400, START)
    assert (pacer.take(START, 64), pacer.take(START, 64), pacer.wait_ns(START, 64)) == (64, 64, 0)
    pacer.change(START + SECOND, 1_000_000, 1_400)
    assert (pacer.take(START + SECOND, 64), pacer.take(START + SECOND, 64)) == (1, 0)
    assert pacer.wait_ns(START + SECOND) == 11_200_000
    pacer.change(START + SECOND, None, 1_400)
    assert pacer.take(START + SECOND, 64) == 64
    assert pacer.skipped == 0


@given(
    st.integers(1, 10**12),
    st.integers(1, 65_507),
    st.lists(st.tuples(st.integers(-(10**6), 10**10), st.integers(1, 128)), max_size=30),
)
def test_any_times_give_what_the_rate_allows(bit_s: int, datagram_bytes: int, steps: list[tuple[int, int]]) -> None:
    """A clock that stands still, goes back or leaps gives no credit."""
    pacer = Pacer(bit_s, datagram_bytes, START)
    now_ns = latest_ns = START
    sent = 0
    for step_ns, limit in steps:
        now_ns += step_ns
        latest_ns = max(latest_ns, now_ns)
        count = pacer.take(now_ns, limit)
        assert 0 <= count <= limit
        sent += count
        wait_ns = pacer.wait_ns(now_ns)
        assert wait_ns >= 0
        if count < limit:
            assert wait_ns > 0
    assert sent + pacer.skipped <= 1 + (latest_ns - START) * bit_s // (datagram_bytes * 8 * SECOND)


@pytest.mark.parametrize(("bit_s", "datagram_bytes"), [(0, 1_400), (-1, 1_400), (1_000_000, 0)])
def test_an_impossible_pace_is_refused(bit_s: int, datagram_bytes: int) -> None:
    """A rate of 0 would never be due."""
    with pytest.raises(ValueError, match="no pace"):
        Pacer(bit_s, datagram_bytes, START)


@pytest.mark.parametrize(("sessions", "span_ms"), [(1, 1_000), (16, 750), (16, 1_000), (5, 430)])
def test_sessions_that_begin_together_send_at_their_rate_from_the_start(sessions: int, span_ms: int) -> None:
    """Each sends four datagrams a second; together their count matches the rate, to one."""
    paces = [Pacer(4 * 8 * 24, 24, 0, part, sessions) for part in range(1, sessions + 1)]
    sent = sum(pace.take(now_ns, 100) for now_ns in range(0, span_ms * 1_000_000, 1_000_000) for pace in paces)
    assert abs(sent - 4 * sessions * span_ms / 1_000) <= 1


def test_nothing_is_skipped_at_a_rate_that_nobody_has_asked_for() -> None:
    """A sender that follows its receiver is never too slow for it; a later rate of the user's counts again."""
    pacer = Pacer(8_000_000, 1_000, START)
    pacer.counts_skipped = False
    assert pacer.take(START + SECOND, 100) > 0
    assert pacer.skipped == 0
    pacer.counts_skipped = True
    pacer.take(START + 2 * SECOND, 100)
    assert pacer.skipped > 900
