"""Loss, duplicates and reordering, against a count by brute force over the list of arrivals."""

import random
import sys
import threading
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.workloads.udp import sequence_tracker
from linkgauge.engine.workloads.udp.sequence_tracker import (
    MAX_ADVANCE,
    MAX_RANGES,
    TRACKER_BYTES,
    WINDOW,
    SequenceTracker,
)

NAMES = (
    *("advanced", "received", "duplicates", "late", "reordered", "reordered_3"),
    *("extent_max", "gaps", "gap_longest", "invalid", "lost"),
)


def counts_of(tracker: SequenceTracker) -> dict[str, int]:
    """Return all that a tracker counted."""
    return {name: getattr(tracker, name) for name in NAMES}


def count_by_hand(arrivals: list[int], window: int = WINDOW) -> dict[str, int]:
    """Return the counts by their definitions, with the whole list at hand."""
    first_copies: list[int] = []
    duplicates = late = invalid = reordered = reordered_3 = extent_max = advanced = 0
    for number in arrivals:
        if number >= advanced + MAX_ADVANCE:
            invalid += 1
        elif number < advanced - window:
            late += 1
        elif number in first_copies:
            duplicates += 1
        else:
            higher = [position for position, other in enumerate(first_copies) if other > number]
            if higher:
                reordered += 1
                extent_max = max(extent_max, len(first_copies) - higher[0])
            reordered_3 += len(first_copies) >= 3 and min(first_copies[-3:]) > number
            first_copies.append(number)
            advanced = max(advanced, number + 1)
    bursts = [after - before - 1 for before, after in pairwise([-1, *sorted(first_copies)]) if after > before + 1]
    return {
        "advanced": advanced,
        "received": len(first_copies),
        "duplicates": duplicates,
        "late": late,
        "reordered": reordered,
        "reordered_3": reordered_3,
        "extent_max": extent_max,
        "gaps": len(bursts),
        "gap_longest": max(bursts, default=0),
        "invalid": invalid,
        "lost": sum(bursts),
    }


def add_in_runs(tracker: SequenceTracker, arrivals: list[int], rng: random.Random) -> int:
    """Pass arrivals in runs of random lengths, as groups from the kernel are; return how many were new."""
    new = position = 0
    while position < len(arrivals):
        longest = rng.choice((1, 2, 5, 64))
        end = position + 1
        while end < len(arrivals) and end - position < longest and arrivals[end] == arrivals[end - 1] + 1:
            end += 1
        new += tracker.add_run(arrivals[position], end - position)
        position = end
    return new


def disturb(kind: str, rng: random.Random, count: int = 400) -> list[int]:
    """Return the numbers 0 to `count` in order of arrival over a link of some kind."""
    arrivals: list[tuple[float, int]] = []
    is_bad = False
    for number in range(count):
        is_bad = rng.random() < (0.7 if is_bad else 0.05) if "bursts" in kind else rng.random() < 0.05
        if is_bad and ("loss" in kind or "bursts" in kind):
            continue
        moment = float(number)
        if "swap" in kind and rng.random() < 0.1:
            moment += 1.5
        if "delay" in kind and rng.random() < 0.1:
            moment += rng.choice((3, 10, 120))
        arrivals.append((moment, number))
        if "copies" in kind and rng.random() < 0.1:
            arrivals.append((moment + rng.choice((0, 0.1, 40)), number))
        if "groups" in kind and number % 16 == 0 and rng.random() < 0.3:
            arrivals.extend((moment + 50 + i / 100, max(0, number - 8 + i)) for i in range(16))
    return [number for _, number in sorted(arrivals, key=lambda pair: pair[0])]


@pytest.mark.parametrize(
    "kind",
    ["clean", "loss", "bursts", "copies", "swap", "delay", "groups", "loss swap", "bursts delay copies groups"],
)
@pytest.mark.parametrize("seed", range(4))
def test_the_counts_are_those_of_the_definitions(kind: str, seed: int) -> None:
    """Each datagram alone, and in runs."""
    rng = random.Random(f"{kind} {seed}")  # noqa: S311
    arrivals = disturb(kind, rng)
    expected = count_by_hand(arrivals)
    alone, in_runs = SequenceTracker(), SequenceTracker()
    assert sum(alone.add(number) for number in arrivals) == expected["received"]
    assert add_in_runs(in_runs, arrivals, rng) == expected["received"]
    assert counts_of(alone) == expected
    assert counts_of(in_runs) == expected


@given(
    st.lists(st.integers(0, 40) | st.sampled_from([MAX_ADVANCE - 1, MAX_ADVANCE, 2**62]), max_size=60),
    st.randoms(use_true_random=False),
)
def test_any_order_of_arrival_is_counted(numbers: list[int], rng: random.Random) -> None:
    """Numbers from everywhere; those implausibly far ahead leave the others alone."""
    tracker = SequenceTracker()
    near = [number for number in numbers if number != MAX_ADVANCE - 1]  # too many to list by hand
    add_in_runs(tracker, near, rng)
    assert counts_of(tracker) == count_by_hand(near)
    for number in numbers:
        tracker.add(number)
    assert tracker.lost >= 0
    assert 0 <= tracker.gap_longest <= tracker.lost


@pytest.mark.parametrize("seed", range(6))
def test_a_small_window_makes_old_numbers_late(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A number from below the window stays lost, whether or not it was received before."""
    monkeypatch.setattr(sequence_tracker, "WINDOW", 50)
    rng = random.Random(seed)  # noqa: S311
    arrivals = disturb("loss swap delay copies groups", rng)
    expected = count_by_hand(arrivals, window=50)
    tracker = SequenceTracker()
    add_in_runs(tracker, arrivals, rng)
    assert counts_of(tracker) == expected
    assert expected["late"] > 0


def test_a_loss_is_taken_back_by_a_late_arrival_and_never_by_a_duplicate() -> None:
    """The two are one figure in other tools, so that a duplicate hides a loss."""
    tracker = SequenceTracker()
    tracker.add_run(0, 10)
    tracker.add_run(12, 10)
    assert (tracker.lost, tracker.gaps, tracker.gap_longest) == (2, 1, 2)
    assert tracker.add_run(5, 5) == 0
    assert (tracker.lost, tracker.duplicates, tracker.reordered) == (2, 5, 0)
    assert tracker.add_run(10, 2) == 2
    assert (tracker.lost, tracker.gaps, tracker.gap_longest) == (0, 0, 0)
    assert (tracker.duplicates, tracker.reordered, tracker.reordered_3) == (5, 2, 1)
    assert tracker.extent_max == 11


def test_the_window_is_a_million_numbers_wide() -> None:
    """The oldest number in it takes its loss back; the one before it does not."""
    tracker = SequenceTracker()
    tracker.add(4)  # 0 to 3 are missing
    tracker.add_run(5, WINDOW - 3)
    assert tracker.advanced - WINDOW == 2
    assert (tracker.add(1), tracker.add(2)) == (0, 1)
    assert (tracker.late, tracker.reordered, tracker.lost) == (1, 1, 3)


def test_too_many_gaps_make_the_oldest_ones_final() -> None:
    """An arrival for one of them is late: it is not a duplicate, and the loss is not taken back."""
    tracker = SequenceTracker()
    for number in range(1, 2 * MAX_RANGES + 20, 2):
        tracker.add(number)
    assert (tracker.lost, tracker.gaps) == (MAX_RANGES + 10, MAX_RANGES + 10)
    assert (tracker.add(18), tracker.add(20)) == (0, 1)
    assert (tracker.late, tracker.duplicates, tracker.lost, tracker.gaps) == (1, 0, MAX_RANGES + 9, MAX_RANGES + 9)


def bytes_of(tracker: SequenceTracker) -> int:
    """Return what a tracker keeps. tracemalloc would count what other threads of this process allocate."""
    return sum(sys.getsizeof(getattr(tracker, name)) for name in SequenceTracker.__slots__)


@pytest.mark.parametrize("step", ["every other one", "as far ahead as allowed", "backwards", "splits"])
def test_a_hostile_sender_takes_little_memory(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gaps without end, in any order."""
    monkeypatch.setattr(sequence_tracker, "MAX_RANGES", 1_000)
    monkeypatch.setattr(sequence_tracker, "_COMPACTION", 100)
    numbers = {
        "every other one": range(1, 40_000, 2),
        "as far ahead as allowed": range(0, 20_000 * (MAX_ADVANCE - 1), MAX_ADVANCE - 1),
        "backwards": range(40_000, 0, -2),
        "splits": (WINDOW - 1, *(number * 400_009 % (WINDOW - 2) for number in range(20_000))),
    }[step]
    tracker = SequenceTracker()
    most_bytes = most_ranges = 0
    for number in numbers:
        tracker.add(number)
        most_ranges = max(most_ranges, len(tracker._starts))
        most_bytes = max(most_bytes, bytes_of(tracker))
    assert most_ranges <= 1_101  # one jump makes a range, before it makes others final
    assert most_bytes < 40_000
    assert tracker.gap_longest <= tracker.lost
    assert tracker.gaps <= tracker.lost


@pytest.mark.every
def test_a_tracker_stays_within_what_the_far_end_reserves_for_it() -> None:
    """With as many gaps as it may have, and while they are read."""
    tracemalloc.start()
    try:
        tracker = SequenceTracker()
        for number in range(1, 4 * MAX_RANGES, 2):
            tracker.add(number)
        tracker.take_bursts()
        tracker.take_bursts()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= TRACKER_BYTES


def test_a_run_costs_no_more_than_one_datagram() -> None:
    """Runs of a length that nothing could walk through: new, known, filling a gap, below the window."""
    tracker = SequenceTracker()
    many = 1 << 40
    tracker.add_run(0, many)
    tracker.add_run(0, many)
    tracker.add_run(many + 2_000_000, many)
    tracker.add_run(many + 1_500_000, many)
    assert (tracker.advanced, tracker.received) == (2 * many + 2_000_000, 2 * many)
    known = WINDOW - 500_000  # of the last run
    assert (tracker.duplicates, tracker.late) == (WINDOW + known, 2 * many - WINDOW - known)


@pytest.mark.parametrize("seed", range(4))
def test_bursts_are_settled_once_no_late_arrival_can_close_them(seed: int) -> None:
    """A gap that reordering opens for a moment is not a burst of loss, and none counts twice."""
    rng = random.Random(seed)  # noqa: S311
    tracker = SequenceTracker()
    counts: list[int] = []
    longest = 0
    for number, arrival in enumerate(disturb("loss bursts swap copies", rng)):
        tracker.add(arrival)
        if number % 40 == 39:
            count, length = tracker.take_bursts()
            counts.append(count)
            longest = max(longest, length)
    for _ in range(2):
        count, length = tracker.take_bursts()
        counts.append(count)
        longest = max(longest, length)
    assert (counts[-1], longest) == (tracker.gaps, tracker.gap_longest)
    assert counts == sorted(counts)
    assert tracker.take_bursts() == (tracker.gaps, 0)


def test_a_gap_that_reordering_opens_is_no_burst() -> None:
    """Not at the moment of a call either."""
    tracker = SequenceTracker()
    for number in (0, 2):
        tracker.add(number)
    assert tracker.take_bursts() == (0, 0)
    tracker.add(1)
    assert tracker.take_bursts() == (0, 0)
    tracker.add_run(10, 5)
    assert tracker.take_bursts() == (0, 0)
    assert tracker.take_bursts() == (1, 7)


def test_another_thread_sees_no_burst_that_never_was() -> None:
    """While the receiving thread counts datagrams out of order."""
    tracker = SequenceTracker()
    is_done = threading.Event()
    order = [20 * block + number for block in range(4_000) for number in (0, 6, 3, 5, 1, 12)]
    lengths: list[int] = []

    def read() -> None:
        while not is_done.is_set():
            lengths.append(tracker.take_bursts()[1])

    thread = threading.Thread(target=read)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        thread.start()
        for number in order:
            tracker.add(number)
    finally:
        sys.setswitchinterval(interval)
        is_done.set()
        thread.join()
    lengths.extend(tracker.take_bursts()[1] for _ in range(2))
    assert max(lengths) == tracker.gap_longest == 7
