"""The amount that the sessions of a direction share: never exceeded, and used up."""

import os
from concurrent.futures import ProcessPoolExecutor

import pytest
from linkgauge.engine.metering.shared_counters import SharedCounters
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import MAX_SESSIONS
from linkgauge.engine.workloads.byte_budget import ByteBudget

LIMIT = 10_000_019


def take_all(fd: int, session: int, count: int) -> int:
    """Take blocks until nothing is left, in another process; return the sum."""
    counters = SharedCounters(os.dup(fd))  # one process may take several turns
    claims = counters.claims(Direction.IN)
    budget, total = ByteBudget(claims, session, LIMIT), 0
    while taken := budget.take(count):
        total += taken
    claims.release()
    counters.close()
    return total


@pytest.mark.parametrize("count", [1_000, 65_536, 2 * LIMIT])
def test_processes_together_take_the_amount_and_not_a_byte_more(count: int) -> None:
    """The two directions have an amount each."""
    counters = SharedCounters.create()
    with ProcessPoolExecutor(3) as processes:
        totals = processes.map(take_all, [counters.fd] * 3, range(3), [count] * 3)
        taken = sum(totals)
    claims = counters.claims(Direction.IN)
    assert taken <= LIMIT
    # Two that claim the last bytes at one moment both let go of them; a session asks again later.
    rest = ByteBudget(claims, MAX_SESSIONS - 1, LIMIT)
    while more := rest.take(count):
        taken += more
    assert taken == LIMIT
    claims.release()
    claims = counters.claims(Direction.OUT)
    assert not any(claims)
    claims.release()
    counters.close()


def test_what_a_closed_connection_did_not_carry_is_there_for_the_others() -> None:
    """A session that is opened again continues its own count."""
    counters = SharedCounters.create()
    claims = counters.claims(Direction.OUT)
    first, second = ByteBudget(claims, 0, LIMIT), ByteBudget(claims, 1, LIMIT)
    assert first.take(LIMIT) == LIMIT
    assert not second.take(1)
    assert not second.take_whole(1)
    first.settle(LIMIT - 10)
    assert not first.take(0)
    assert second.take_whole(7)
    assert second.take(100) == 3
    claims.release()
    counters.close()
