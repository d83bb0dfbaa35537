"""Merged samples: one for each end and second, and every sum of a run as it was."""

import csv
import random
import re
from dataclasses import fields, replace
from io import StringIO
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from linkgauge.engine.model.counters.latency_histogram import bucket_midpoint_ns
from linkgauge.engine.model.counters.samples import (
    CoreTimes,
    CpuWaits,
    DatagramProbeSample,
    DatagramSample,
    HandshakeSample,
    HostDrops,
    LatencyCounts,
    NicCounts,
    OtherTests,
    ProbeSample,
    QueueSample,
    Sample,
    SessionSample,
)
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Ended, Event, Sampled, Started, Totals
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.csv_export import CsvWriter
from linkgauge.engine.results.meter import Meter, may_end_silent, replay
from linkgauge.engine.results.sample_merging import SampleMerger, merge_samples

from .datagram_runs import draw_datagram_run
from .drawn_runs import draw_run
from .iperf3_runs import iperf3_run, reported, total
from .log_entries import ENDED
from .simple_run import OUT, TICK, sampled, started


def merge_all(events: list[Event], size: int) -> list[Event]:
    """Return the events of a run, merged in pieces of this many."""
    first, last = events[0], events[-1]
    assert isinstance(first, Started)
    assert isinstance(last, Ended)
    merger = SampleMerger(first.plan, has_silent_end=may_end_silent(first.plan, last.end.reason))
    done: list[Event] = []
    piece: list[Event] = []
    for at in range(0, len(events), size):
        merged = merger.merge([*piece, *events[at : at + size]], is_last=at + size >= len(events))
        done += merged.events
        piece = merged.remaining
    assert piece == []
    return done


def figures(meter: Meter) -> object:
    """Return the figures that must not change: all of a summary but medians, and the senders' sums."""
    summary = meter.summary()
    sent = [
        (flow, sums.span_ns, sums.sessions, sums.counters, sums.min_rtt_us)
        for period in meter.periods
        for flow, sums in period.sums.sent.items()
    ]
    received = [
        (flow, sums.bytes, sums.span_ns, sums.out_of_order, sums.latency)
        for period in meter.periods
        for flow, sums in period.sums.received.items()
    ]
    ends = [sums for period in meter.periods for sums in period.sums.ends.values()]
    return summary, sent, received, ends


@given(
    st.randoms(use_true_random=True),
    st.sampled_from([Workload.STREAM, Workload.RR]),
    st.sampled_from([SECOND_NS // 20, TICK, 300_000_000, 700_000_000]),
    st.sampled_from([Reason.COMPLETED, Reason.PEER_LOST]),
)
@settings(max_examples=40)
def test_the_sums_of_a_run_are_the_same_after_its_samples_are_merged(
    chance: random.Random, workload: Workload, interval_ns: int, reason: Reason
) -> None:
    """Of each period, direction and end, for any pieces; merging again changes nothing."""
    intervals, size, disorder = chance.randrange(1, 40), chance.randrange(50, 100), chance.choice([0, 0.02])
    events = draw_run(
        chance,
        Plan(workload=workload, interval_ns=interval_ns, probe=workload is Workload.STREAM),
        intervals,
        reason=reason,
        changes=chance.randrange(4),
        disorder=disorder,
    )
    merged = merge_all(events, size)
    again = merge_all(merged, size)
    assert figures(replay(events)) == figures(replay(merged)) == figures(replay(again))
    assert disorder or sorted(map(repr, again)) == sorted(map(repr, merged))
    others = [event for event in events if not isinstance(event, Sampled)]
    assert [event for event in merged if not isinstance(event, Sampled)] == others


@pytest.mark.parametrize("seed", range(4))
def test_an_end_has_one_sample_for_a_second_of_the_same_settings(seed: int) -> None:
    """Both ends number it alike, although they have skipped intervals."""
    events = draw_run(
        random.Random(seed),  # noqa: S311 (no secret)
        Plan(), 120, reason=Reason.COMPLETED, changes=3, disorder=0,
    )  # fmt: skip
    merged = [event for event in merge_all(events, 100) if isinstance(event, Sampled)]
    keys: dict[End, list[object]] = {end: [] for end in End}
    whole: dict[End, set[int]] = {end: set() for end in End}
    for event in merged:
        sample = event.sample
        keys[sample.end].append((sample.index // 4, event.settings, event.warmup, sample.process_cpu_ns is None))
        whole[sample.end] |= {sample.index // 4} if sample.index % 4 == 3 else set()
    for end in End:
        assert all(first != second for first, second in pairwise(keys[end]))
        assert whole[end] == set(range(30))


def test_a_second_of_samples_becomes_one_with_sums_last_values_and_the_minimum_rtt() -> None:
    """Percentiles of a session are those of its direction if it is the only one."""
    requests = replace(started(OUT, Expectation()), plan=Plan(workload=Workload.RR))
    samples = [
        sampled(
            End.NEAR,
            index,
            SessionSample(Direction.OUT, 1, 100, transactions=2, latency_p50_ns=7, rtt_us=200 + index),
            latency=(LatencyCounts(Direction.OUT, (index, 10), (1, 1)),),
            process_cpu_ns=5,
        )
        for index in range(4)
    ]
    _, merged = merge_all([requests, *samples, ENDED], 50)[:2]
    assert isinstance(merged, Sampled)
    sample = merged.sample
    (session,) = sample.sessions
    assert (sample.index, sample.elapsed_ns, sample.interval_ns) == (3, 4 * TICK, 4 * TICK)
    assert sample.latency == (LatencyCounts(Direction.OUT, (0, 1, 2, 3, 10), (1, 1, 1, 1, 4)),)
    assert (session.bytes, session.transactions, session.rtt_us, sample.process_cpu_ns) == (400, 8, 203, 20)
    assert (session.latency_p50_ns, session.latency_p99_ns) == (bucket_midpoint_ns(3), bucket_midpoint_ns(10))
    assert sample.cores is sample.nic is sample.probe is session.retransmits is None


def test_a_csv_of_merged_samples_has_the_same_bytes() -> None:
    """With a row for each second, direction and session."""
    events = draw_run(
        random.Random(1),  # noqa: S311 (no secret)
        Plan(),
        60,
        reason=Reason.COMPLETED,
        changes=2,
    )
    sums: list[dict[tuple[str, str], int]] = []
    for run in (events, merge_all(events, 100)):
        text = StringIO()
        CsvWriter(text, "text").write_run(run, run_id="r", preset="")
        sums.append({})
        for row in csv.DictReader(StringIO(text.getvalue())):
            key = (row["direction"], row["session"])
            sums[-1][key] = sums[-1].get(key, 0) + int(row["bytes"] or 0)
    assert sums[0] == sums[1]
    assert len(sums[0]) > 2


def _fill(kind: type[Any], **values: object) -> Any:
    """Return a dataclass with 7 for each number that is not given."""
    return kind(**{field.name: values.get(field.name, 7) for field in fields(kind)})


def test_no_field_of_a_sample_is_lost() -> None:
    """A new one has to be merged, too: here each has a value, and none is unknown afterwards."""
    counts = LatencyCounts(Direction.OUT, (7,), (7,))
    sample = _fill(
        Sample,
        end=End.NEAR,
        sessions=(_fill(SessionSample, direction=Direction.OUT),),
        cores=(_fill(CoreTimes),),
        latency=(counts,),
        nic=_fill(NicCounts),
        probe=_fill(
            ProbeSample,
            latency=counts,
            handshakes=_fill(HandshakeSample, connect=counts, answer=counts),
            datagrams=_fill(DatagramProbeSample, latency=counts, rise_out=counts, rise_in=counts),
        ),
        waits=_fill(CpuWaits),
        drops=_fill(HostDrops),
        datagrams=(_fill(DatagramSample, direction=Direction.OUT),),
        delay_variation=(counts,),
        is_drain=True,
        is_from_sender=True,
        queue=_fill(QueueSample),
        others=_fill(OtherTests),
    )
    merged = merge_samples([sample, sample], 9)
    texts = [re.sub(r"\d+", "0", repr(value)) for value in (sample, merged)]
    assert texts[0] == texts[1]
    known = (7, 9, 14, bucket_midpoint_ns(7))  # standing, the index, summed, a percentile
    assert {int(number) for number in re.findall(r"(?<![\w])\d+", repr(merged))} == set(known)


def test_a_queue_is_the_mean_over_all_its_readings() -> None:
    """A sample with more of them counts for more; the most stays the most."""
    samples = [
        Sample(End.NEAR, index, 10**8 * (index + 1), 10**8, (), queue=queue)
        for index, queue in enumerate((QueueSample(1, 900, 900, 2, None), None, QueueSample(9, 100, 400, None, 50)))
    ]
    assert merge_samples(samples, 2).queue == QueueSample(10, 180, 900, 2, 50)


@pytest.mark.parametrize("direction", list(Direction))
def test_merged_samples_have_the_same_datagrams_and_the_drain_stays_apart(direction: Direction) -> None:
    """Thinning does not change losses, peaks and percentiles."""
    events, _ = draw_datagram_run(7, direction, intervals=22)
    merged = merge_all(events, 50)
    before, after = replay(events).summary(), replay(merged).summary()
    assert sum(isinstance(event, Sampled) and event.sample.is_drain for event in merged) == len(End)
    assert len(merged) < len(events) / 2
    for flow in (*direction.flows, Direction.DUPLEX):
        assert after.measured[flow] == before.measured[flow]


@pytest.mark.parametrize("workload", [Workload.STREAM, Workload.UDP])
def test_a_merged_run_against_an_iperf3_has_its_totals_and_still_says_who_counted(workload: Workload) -> None:
    """Thinning must not turn the sender's counts into the receiver's, nor lose the result."""
    parts = total(Direction.OUT, 1, 11_000_000, received=11_000, lost=1_000)
    for totals in (None, reported(parts)):
        events = iperf3_run(Direction.DUPLEX, workload=workload, totals=totals)
        merged = merge_all(events, 7)
        assert len(merged) < len(events)
        assert sum(event in merged for event in events if isinstance(event, Totals)) == (totals is not None)
        assert all(event.sample.is_from_sender is (event.sample.end is End.FAR) for event in _samples(merged))
        before, after = replay(events).summary().measured, replay(merged).summary().measured
        assert (after.out, after.in_, after.total) == (before.out, before.in_, before.total)


def _samples(events: list[Event]) -> list[Sampled]:
    return [event for event in events if isinstance(event, Sampled)]
