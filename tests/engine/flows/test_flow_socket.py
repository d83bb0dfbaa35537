"""One flow over real sockets: its datagrams, its questions, and a pause for another reader."""

import asyncio

from .flow_pair import flow_pair


async def until(condition: object) -> None:
    """Wait until a condition holds."""
    async with asyncio.timeout(20):
        while not condition():  # type: ignore[operator]  # noqa: ASYNC110 - a receiver tells nobody
            await asyncio.sleep(0.001)


async def test_datagrams_of_a_round_arrive_with_their_delay_and_others_are_passed_on() -> None:
    """A number without an arrival has no entry."""
    others: list[bytes] = []
    with flow_pair(others) as (near, far):
        assert near.send(1, 0, 64)
        assert near.send(1, 2, 64)
        near.answer(b"a question")
        await until(lambda: len(far.receiver.entries) == 3 and others)
        assert [bool(entry) for entry in far.receiver.entries] == [True, False, True]
        assert others == [b"a question"]
        assert near.local_port == far.raw.getpeername()[1]


async def test_a_paused_flow_leaves_what_comes_to_another_reader() -> None:
    """And reads on afterwards."""
    with flow_pair([]) as (near, far):
        far.pause()
        near.send(1, 0, 64)
        await asyncio.sleep(0)
        assert len(far.raw.recv(100)) == 64
        far.resume()
        near.send(1, 1, 64)
        await until(lambda: len(far.receiver.entries) == 2)
        assert far.receiver.entries[0] == 0


async def test_a_datagram_that_is_too_long_is_not_sent_and_is_no_error() -> None:
    """As is one that the other end's host refuses."""
    with flow_pair([]) as (near, far):
        assert near.send(1, 0, 65_600) is False
        far.close()
        for number in range(3):
            assert near.send(1, number, 64) is not None
