"""Attempts at several addresses: the first success wins, and no other attempt outlives it."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.host.happy_eyeballs import Address, first_success, interleave_families, resolve_addresses

SIX, FOUR = socket.AF_INET6, socket.AF_INET
Attempt = Callable[[Address], Awaitable[int]]


def addresses(count: int) -> list[Address]:
    """Return different addresses."""
    return [(FOUR, ("127.0.0.1", port)) for port in range(1, count + 1)]


def test_families_take_turns_in_the_order_of_the_resolver() -> None:
    """Beginning with the family of its first address; each address is tried once."""
    six, four = ([(family, (f"host{n}", 1)) for n in range(3)] for family in (SIX, FOUR))
    assert interleave_families([*six, *four, six[0]]) == [six[0], four[0], six[1], four[1], six[2], four[2]]
    assert interleave_families([four[0], *six]) == [four[0], *six]
    assert interleave_families([]) == []


@given(st.lists(st.tuples(st.sampled_from([SIX, FOUR]), st.tuples(st.text(max_size=2), st.integers(0, 3)))))
def test_no_address_is_lost_or_tried_twice(found: list[Address]) -> None:
    """Whatever the resolver returns."""
    turned = interleave_families(found)
    assert len(turned) == len(set(turned))
    assert set(turned) == set(found)


def test_a_numeric_address_is_itself() -> None:
    """With the port, and of either family."""
    assert resolve_addresses("127.0.0.1", 7) == [(FOUR, ("127.0.0.1", 7))]
    assert resolve_addresses("::1", 7) == [(SIX, ("::1", 7, 0, 0))]


async def test_the_first_success_ends_all_others() -> None:
    """Silent attempts before it are cancelled; none begins after it."""
    ended: list[int] = []

    async def attempt(address: Address) -> int:
        number = address[1][1]
        try:
            if number == 2:
                raise ConnectionRefusedError
            await asyncio.sleep(0 if number == 4 else 3_600)
        finally:
            ended.append(number)
        return number

    failures: dict[Address, OSError] = {}
    discarded: list[int] = []
    async with asyncio.timeout(20):
        assert await first_success(addresses(9), attempt, discarded.append, failures) == 4
    assert sorted(ended) == [1, 2, 3, 4]
    assert [type(error) for error in failures.values()] == [ConnectionRefusedError]
    assert not discarded


async def test_a_success_that_comes_too_late_is_discarded() -> None:
    """Two attempts succeed in the same turn of the loop, or one in spite of its cancellation."""
    both = asyncio.Event()

    async def attempt(address: Address) -> int:
        number = address[1][1]
        if number == 3:
            both.set()
        with contextlib.suppress(asyncio.CancelledError):
            await (asyncio.sleep(3_600) if number == 2 else both.wait())
        return number

    discarded: list[int] = []
    async with asyncio.timeout(20):
        winner = await first_success(addresses(3), attempt, discarded.append, {})
    assert sorted([winner, *discarded]) == [1, 2, 3]  # type: ignore[list-item]


async def test_all_failures_are_reported_and_other_errors_are_raised() -> None:
    """An error other than a failure to connect is a bug, and ends everything."""
    failures: dict[Address, OSError] = {}

    async def refuse(_address: Address) -> int:
        raise ConnectionRefusedError

    async def stumble(address: Address) -> int:
        if address[1][1] == 2:
            raise ZeroDivisionError
        await asyncio.sleep(3_600)
        return 0

    async with asyncio.timeout(20):
        assert await first_success(addresses(5), refuse, print, failures) is None
        assert list(failures) == addresses(5)
        with pytest.raises(ZeroDivisionError):
            await first_success(addresses(5), stumble, print, {})
    assert len(asyncio.all_tasks()) == 1


@pytest.mark.parametrize("turns", range(6))
async def test_a_cancelled_race_leaves_nothing_open(turns: int) -> None:
    """At whatever moment: a result is either returned or discarded."""
    made: list[int] = []
    discarded: list[int] = []

    async def attempt(_address: Address) -> int:
        await asyncio.sleep(0)
        made.append(1)
        return 1

    racing = asyncio.create_task(first_success(addresses(2), attempt, discarded.append, {}))
    for _ in range(turns):
        await asyncio.sleep(0)
    racing.cancel()
    outcome = (await asyncio.gather(racing, return_exceptions=True))[0]
    assert len(made) == len(discarded) + (outcome == 1)
