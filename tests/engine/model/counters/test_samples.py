"""Samples: latency counts that cannot be are refused, the busy share of a core, and how samples combine."""

from dataclasses import is_dataclass
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.counters.latency_histogram import BUCKET_COUNT
from linkgauge.engine.model.counters.samples import (
    CoreTimes,
    DatagramSample,
    LatencyCounts,
    NicCounts,
    Sample,
    SessionSample,
    combine,
    difference,
)
from linkgauge.engine.model.directions import Direction, End


@pytest.mark.parametrize(
    ("buckets", "counts"),
    [
        ((1,), ()),
        ((1,), (1, 1)),
        ((1,), (0,)),
        ((2, 1), (1, 1)),
        ((1, 1), (1, 1)),
        ((-1,), (1,)),
        ((BUCKET_COUNT,), (1,)),
    ],
)
def test_latency_counts_that_no_histogram_has_are_refused(
    buckets: tuple[int, ...], counts: tuple[int, ...]
) -> None:
    """Percentiles are computed from them."""
    with pytest.raises(ValueError, match="latency"):
        LatencyCounts(Direction.OUT, buckets, counts)


def test_the_transactions_are_the_sum_of_the_counts() -> None:
    """The first and the last bucket are valid."""
    assert LatencyCounts(Direction.OUT, (0, BUCKET_COUNT - 1), (2, 3)).transactions == 5
    assert LatencyCounts(Direction.OUT, (), ()).transactions == 0


COUNTS = st.dictionaries(st.integers(0, 300), st.integers(1, 50), max_size=4)


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Return any values of a field's type, with small numbers."""
    if hint is LatencyCounts:
        flows = st.sampled_from(Direction.DUPLEX.flows)
        return st.builds(lambda flow, counts: LatencyCounts(flow, *_columns(counts)), flows, COUNTS)
    if is_dataclass(hint):
        names = get_type_hints(hint)
        members = {name: values_of(each) for name, each in names.items() if name not in MEANS}
        return st.builds(hint, **members)
    if get_origin(hint) is tuple:
        return st.lists(values_of(get_args(hint)[0]), max_size=3).map(tuple)
    if kinds := get_args(hint):
        return st.one_of(map(values_of, kinds))
    return st.integers(0, 9) if hint is int else st.from_type(hint)


def _columns(counts: dict[int, int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return tuple(sorted(counts)), tuple(counts[bucket] for bucket in sorted(counts))


MEANS = {"backlog_bytes", "driver_bytes"}  # whole numbers, rounded in each piece


@given(parts=st.lists(values_of(Sample), min_size=2, max_size=5), cut=st.integers(1, 4))
def test_samples_combine_at_once_as_in_pieces(parts: list[Sample], cut: int) -> None:
    """Each field of each part of a sample."""
    first, rest = parts[:cut], parts[cut:]
    assert combine(parts) == combine([combine(first), *([combine(rest)] if rest else [])])


@given(parts=st.lists(st.none() | st.integers(0, 100), min_size=1))
def test_each_kind_of_counter_leaves_the_unknown_out(parts: list[int | None]) -> None:
    """Nothing known is unknown, not 0; and 0 is known."""
    known = [value for value in parts if value is not None] or [None]
    sessions = [
        SessionSample(Direction.OUT, 1, 1, retransmits=value, rtt_us=value, min_rtt_us=value) for value in parts
    ]
    datagrams = [DatagramSample(Direction.OUT, 1, extent=value) for value in parts]
    tcp, udp = combine(sessions), combine(datagrams)
    assert tcp.bytes == len(parts)
    assert tcp.retransmits == (None if known == [None] else sum(map(int, known)))
    assert tcp.rtt_us == known[-1]
    assert (tcp.min_rtt_us, udp.extent) == (min(known, key=_size), max(known, key=_size))


def _size(value: int | None) -> int:
    return value or 0


def test_a_core_that_is_switched_on_later_has_its_own_sum() -> None:
    """Cores are told apart by their place, sessions by direction and number."""
    busy, idle = CoreTimes(30, 20, 10, 0, 40), CoreTimes(0, 10, 0, 0, 90)
    flows = [(Direction.OUT, 1), (Direction.IN, 1), (Direction.OUT, 1)]
    whole = combine(
        [
            Sample(End.NEAR, index, index, 1, (SessionSample(*flow, 5),), cores)
            for index, (flow, cores) in enumerate(zip(flows, ((busy,), (busy, idle), None), strict=True))
        ]
    )
    assert whole.cores == (CoreTimes(60, 40, 20, 0, 80), idle)
    assert whole.sessions == (SessionSample(Direction.OUT, 1, 10), SessionSample(Direction.IN, 1, 5))


def test_counts_of_an_interval_never_fall_below_nothing() -> None:
    """An interface that was taken down and up starts anew."""
    assert difference(NicCounts(10, 10, 1, 0, 5), NicCounts(30, 5, 1, 2, 5)) == NicCounts(20, 0, 0, 2, 0)
