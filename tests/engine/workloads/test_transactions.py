"""Transactions between two real ends on loopback: real sockets, real worker processes."""

from collections.abc import Callable
from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Event, Sampled
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.workload import Workload, all_workloads
from linkgauge.engine.near.run import Run
from linkgauge.engine.results.figure_codec import encode
from linkgauge.engine.results.meter import replay
from linkgauge.engine.results.run_result import RunResult

from .plans import plan_of

Recorder = Callable[..., Any]
TRANSACTIONAL = [workload for workload in all_workloads() if workload.is_transactional]


@pytest.mark.parametrize(
    ("workload", "direction"),
    [
        pytest.param(workload, direction, marks=[] if direction is main else pytest.mark.every)
        for workload, main in zip(TRANSACTIONAL, Direction, strict=True)
        for direction in Direction
    ],
)
async def test_the_requester_counts_transactions_and_the_bytes_of_responses(
    record_once: Recorder, workload: Workload, direction: Direction
) -> None:
    """The near end requests `out`, the far end `in`; every pair gets responses; the responder counts none."""
    plan = plan_of(workload, direction, 3)
    recorded = await record_once(plan)
    assert recorded.end.reason is Reason.COMPLETED
    for flow in direction.flows:
        asker = End.NEAR if flow is Direction.OUT else End.FAR
        asker_samples = [e.sample for e in recorded.samples if e.sample.end is asker]
        for number in (1, 2, 3):
            parts = [
                s for counts in asker_samples for s in counts.sessions if (s.direction, s.session) == (flow, number)
            ]
            transactions = sum(part.transactions or 0 for part in parts)
            assert transactions > 0, (flow, number)
            arrived = sum(part.bytes for part in parts) / plan.transaction_sizes[1]
            if workload is Workload.FETCH:  # its bytes are counted as they come, and read a moment earlier
                between = max(4, transactions // 20)  # a busy machine makes that moment long
                assert transactions - between <= arrived < transactions + between, (flow, number)
            else:
                assert arrived == transactions, (flow, number)
        others = [e.sample for e in recorded.samples if e.sample.end is asker.other]
        assert all(s.transactions is None for counts in others for s in counts.sessions if s.direction is flow)


@pytest.mark.parametrize("workload", TRANSACTIONAL)
async def test_counts_and_percentiles_of_a_run_agree_everywhere(record_once: Recorder, workload: Workload) -> None:
    """Sessions, histogram, summary and document have the same number, and percentiles rise."""
    recorded = await record_once(plan_of(workload, Direction.DUPLEX, 3))
    for event in recorded.samples:
        for counts in event.sample.latency:
            session_transactions = [
                s.transactions for s in event.sample.sessions if s.direction is counts.direction
            ]
            assert sum(count or 0 for count in session_transactions) == counts.transactions
    summary = replay(recorded.events).summary()
    assert summary.measured.out
    assert summary.measured.in_
    assert summary.measured.total
    assert summary.measured.total.transactions == (summary.measured.out.transactions or 0) + (
        summary.measured.in_.transactions or 0
    )
    assert summary.near_cpu.msec_per_transaction
    measured = encode(RunResult.of_run(summary))["measured"]["total"]
    percentiles = [measured["latency_us"][name] for name in ("min", "p50", "p90", "p99", "p99_9", "max")]
    assert percentiles == sorted(percentiles)
    assert percentiles[0] > 0
    assert measured["transactions_s"] > 0


@pytest.mark.parametrize(
    "workload",
    [
        pytest.param(workload, marks=[] if workload is TRANSACTIONAL[0] else pytest.mark.every)
        for workload in TRANSACTIONAL
    ],
)
async def test_pairs_are_added_and_removed_during_a_run(
    far_end: Peer, record: Recorder, workload: Workload
) -> None:
    """A session closed during a transaction is not a lost session."""

    def act(run: Run, event: Event) -> None:
        if isinstance(event, Sampled) and event.sample.end is End.FAR:
            if event.sample.index >= 5:
                run.change_settings(Settings(Direction.IN, 2, 65_536))
            elif event.sample.index >= 2:
                run.change_settings(Settings(Direction.DUPLEX, 4))

    plan = plan_of(workload, seconds=1.0, warmup_ns=SECOND_NS // 10, rate_bit_s=None)
    recorded = await record(plan, far_end, act)
    assert recorded.end.reason is Reason.COMPLETED
    last = [e.sample for e in recorded.samples if e.sample.end is End.FAR][-1]
    assert {(s.direction, s.session) for s in last.sessions if s.transactions} == {
        (Direction.IN, 1),
        (Direction.IN, 2),
    }
