"""The workloads rr and fetch between two ends on loopback."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Event, Sampled
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import Mode
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.base_run import Run
from linkgauge.engine.results.meter import replay

from .plans import plan_of

Recorder = Callable[..., Any]


async def test_the_responder_sends_what_the_requester_receives(far_end: Peer, record: Recorder) -> None:
    """Both ends count the same responses, except those in flight at the readings."""
    recorded = await record(plan_of(Workload.RR, seconds=1.0), far_end)

    def total(end: End) -> int:
        return sum(s.bytes for e in recorded.samples if e.sample.end is end for s in e.sample.sessions)

    assert 0.8 < total(End.FAR) / total(End.NEAR) < 1.25


@pytest.mark.parametrize(
    ("request_bytes", "response_bytes", "burst"),
    [
        (1, 1, 1_024),
        (7, 3_000_001, 4),
        *(
            pytest.param(*case, marks=pytest.mark.every)
            for case in [(1, 1, 1), (200, 1_000, 16), (3_000_000, 5, 2)]
        ),
    ],
)
async def test_requests_of_any_size_are_answered_in_any_number(
    far_end: Peer, record: Recorder, request_bytes: int, response_bytes: int, burst: int
) -> None:
    """One byte or megabytes, one in flight or a thousand: no deadlock, and whole answers."""
    sizes = {"request_bytes": request_bytes, "response_bytes": response_bytes, "burst": burst}
    recorded = await record(plan_of(Workload.RR, Direction.DUPLEX, **sizes), far_end)
    assert recorded.end.reason is Reason.COMPLETED
    total = replay(recorded.events).summary().measured.total
    assert total
    assert total.transactions


@pytest.mark.parametrize("sizes", [(200, 1_000), pytest.param((3_000_000, 70_001), marks=pytest.mark.every)])
async def test_ends_that_poll_answer_whole_requests_and_end_in_order(
    far_end: Peer, record: Recorder, sizes: tuple[int, int]
) -> None:
    """Also if a message arrives in parts; and the thread that polls ends with the run."""
    request_bytes, response_bytes = sizes
    plan = plan_of(Workload.RR, request_bytes=request_bytes, response_bytes=response_bytes, busy_poll=True)
    recorded = await record(plan, far_end)
    assert recorded.end.reason is Reason.COMPLETED
    total = replay(recorded.events).summary().measured.total
    assert total
    assert total.transactions


async def test_a_pair_that_polls_waits_as_others_do_once_it_shares_its_worker(
    far_end: Peer, record: Recorder
) -> None:
    """Others join while the test runs, and leave again."""
    plan = plan_of(Workload.RR, busy_poll=True, workers=1, seconds=1.0)
    numbers = iter((3, 1))

    def act(run: Run, event: Event) -> None:
        if isinstance(event, Sampled) and event.sample.end is End.NEAR and event.sample.index in {2, 5}:
            run.change_settings(replace(run.settings, sessions=next(numbers)))

    recorded = await record(plan, far_end, act)
    assert recorded.end.reason is Reason.COMPLETED
    assert next(numbers, None) is None
    later = [e.sample for e in recorded.samples if e.sample.end is End.NEAR and e.sample.index >= 7]
    assert sum(s.bytes for sample in later for s in sample.sessions)


@pytest.mark.parametrize(
    "mode", [Mode.SENDFILE, *(pytest.param(mode, marks=pytest.mark.every) for mode in (Mode.COPY, Mode.DISCARD))]
)
async def test_a_fetch_moves_payload_in_each_mode(far_end: Peer, record: Recorder, mode: Mode) -> None:
    """Copy, sendfile and discard carry the same answers."""
    recorded = await record(plan_of(Workload.FETCH, mode=mode, block_bytes=100_000), far_end)
    assert recorded.end.reason is Reason.COMPLETED
    total = replay(recorded.events).summary().measured.total
    assert total
    assert total.transactions
