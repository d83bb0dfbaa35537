"""Runs of chance: settings that change, ends that are late or skip intervals, several sessions, transactions."""

import random
from dataclasses import replace
from typing import TypeVar

from linkgauge.engine.model.counters.samples import (
    CoreTimes,
    CpuWaits,
    HostDrops,
    LatencyCounts,
    NicCounts,
    OtherTests,
    ProbeSample,
    Sample,
    SessionSample,
)
from linkgauge.engine.model.directions import Direction, End, sender_of
from linkgauge.engine.model.events import Changed, Ended, Event, Sampled, Started, Warned
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason, RunEnd

from .log_entries import HOST

_WARMUP_NS = SECOND_NS
_T = TypeVar("_T")


def draw_run(
    chance: random.Random, plan: Plan, intervals: int, *, reason: Reason, changes: int, disorder: float = 0.02
) -> list[Event]:
    """Return the events of a run.

    Args:
        chance: The source of chance.
        plan: The plan, with the first settings.
        intervals: How many intervals the run has.
        reason: Why the run ended.
        changes: How often its settings change.
        disorder: How likely a sample comes twice, which every reader leaves out.
    """
    interval_ns = plan.interval_ns
    events: list[Event] = [Started("2026-11-21T01:15:30Z", "h:1", HOST, HOST, plan, Expectation())]
    times = sorted(chance.randrange(1, intervals * interval_ns) for _ in range(changes))
    periods = [(0, plan.settings), *((at_ns, _settings(chance)) for at_ns in times)]
    waiting: list[Event] = []  # of the far end, which is late
    silent_from = intervals - chance.randrange(1 + 3 * SECOND_NS // interval_ns)
    spans = dict.fromkeys(End, 0)
    for index in range(intervals):
        until_ns = (index + 1) * interval_ns
        begun = [(at_ns, settings) for at_ns, settings in periods[1:] if until_ns - interval_ns < at_ns <= until_ns]
        events += [Changed(at_ns, settings, Expectation()) for at_ns, settings in begun]
        start_ns, settings = [period for period in periods if period[0] < until_ns][-1]
        for end, queue in ((End.NEAR, events), (End.FAR, waiting)):
            spans[end] += interval_ns
            if index < intervals - 1 and chance.random() < 0.1:
                continue  # the next sample has this interval, too
            is_silent = reason is not Reason.COMPLETED and index >= silent_from
            sample = _sample(chance, end, plan, settings, is_silent=is_silent)
            sample = replace(sample, index=index, elapsed_ns=until_ns, interval_ns=spans[end])
            spans[end] = 0
            queue.append(Sampled(sample, settings, until_ns - interval_ns < start_ns + _WARMUP_NS))
        while waiting and chance.random() < 0.8:
            events.append(waiting.pop(0))
        events += [Warned(f"warning {index}")] if chance.random() < 0.03 else []
        events += [event for event in events[-2:] if isinstance(event, Sampled) and chance.random() < disorder]
    return [*events, *waiting, Ended(RunEnd(reason, "the end"))]


def _settings(chance: random.Random) -> Settings:
    return Settings(chance.choice(list(Direction)), chance.choice([1, 2, 3]))


def _sample(chance: random.Random, end: End, plan: Plan, settings: Settings, *, is_silent: bool) -> Sample:
    number = chance.randrange
    flows = settings.direction.flows
    asking_flows = [
        flow for flow in flows if plan.workload.is_transactional and sender_of(flow, plan.workload) is not end
    ]
    return Sample(
        end,
        0,
        0,
        0,
        tuple(
            _session(
                chance, flow, session, plan, is_sender=sender_of(flow, plan.workload) is end, is_silent=is_silent
            )
            for flow in flows
            for session in range(1, settings.sessions + 1)
        ),
        _maybe(chance, tuple(CoreTimes(*(number(10**8) for _ in range(5))) for _ in range(chance.choice([1, 2])))),
        _maybe(chance, number(10**8)),
        tuple(_latency(chance, flow) for flow in asking_flows),
        _maybe(chance, number(10**8)),
        _maybe(chance, NicCounts(*(number(10**6) for _ in range(5)))),
        ProbeSample(_latency(chance, Direction.OUT), number(1, 10**9), _maybe(chance, 150))
        if plan.probe and end is End.NEAR
        else None,
        _maybe(chance, CpuWaits(number(10**6), _maybe(chance, number(10**6)))),
        drops=_maybe(chance, HostDrops(*(_maybe(chance, number(100)) for _ in range(8)))),
        others=OtherTests(*(number(10**6) for _ in range(4))) if end is End.FAR else None,
    )


def _session(
    chance: random.Random, flow: Direction, session: int, plan: Plan, *, is_sender: bool, is_silent: bool
) -> SessionSample:
    number = chance.randrange
    bytes_ = 0 if is_silent or chance.random() < 0.1 else number(1, 10**8)
    if not is_sender:
        return SessionSample(
            flow, session, bytes_, out_of_order=_maybe(chance, number(9)), latency_p50_ns=_maybe(chance, 2_000),
            transactions=number(100) if plan.workload.is_transactional else None,
        )  # fmt: skip
    return SessionSample(
        flow, session, bytes_, retransmits=_maybe(chance, number(5)), rtt_us=200, cwnd_bytes=14_480, mss_bytes=1448,
        busy_us=_maybe(chance, number(250_000)), rwnd_limited_us=number(9), bytes_retrans=_maybe(chance, number(9)),
        min_rtt_us=_maybe(chance, number(1, 200)),
    )  # fmt: skip


def _latency(chance: random.Random, flow: Direction) -> LatencyCounts:
    buckets = tuple(sorted(chance.sample(range(300), chance.randrange(6))))
    return LatencyCounts(flow, buckets, tuple(chance.randrange(1, 50) for _ in buckets))


def _maybe(chance: random.Random, value: _T) -> _T | None:
    return None if chance.random() < 0.1 else value
