"""Datagrams as a bad network brings them: some are missing, some come twice, many come late; and their counts."""

import asyncio
import random
from collections.abc import Callable

from linkgauge.engine.model.directions import Direction

from ...waiting import until
from .datagram_pair import DatagramPair

DATAGRAM_BYTES = 100
_SENT, _COPIES = 1_000, 50


class LossyOrder:
    """The numbers of a thousand datagrams in the order in which they arrive, drawn from a seed."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)  # noqa: S311 - repeatable
        self.kept = [number for number in range(_SENT) if draw.random() > 0.1]
        copies = draw.sample(self.kept, _COPIES)
        self.order = sorted(self.kept + copies, key=lambda number: number + draw.uniform(0, 6))

    @property
    def reordered(self) -> int:
        """How many come after one with a higher number, copies left out."""
        highest, seen, reordered = -1, set[int](), 0
        for number in self.order:
            reordered += number < highest and number not in seen
            highest = max(highest, number)
            seen.add(number)
        return reordered

    async def send(self, pair: DatagramPair, payload: Callable[[int], bytes]) -> None:
        """Start a pair without a sender, send it all, and wait until everything has been counted."""
        pair.start()
        for position, number in enumerate(self.order):
            pair.sending_socket.send(payload(number))
            if not position % 50:
                await asyncio.sleep(0.001)
        await until(
            lambda: (
                pair.known("receiver", "received") == len(self.kept)
                and pair.known("receiver", "duplicates") == _COPIES
            )
        )

    def assert_counted(self, pair: DatagramPair) -> None:
        """Check loss, order and bytes of the receiver."""
        assert pair.count("receiver", "advanced") == max(self.kept) + 1
        assert pair.count("receiver", "reordered") == self.reordered
        slot = pair.counters.read(Direction.IN, 1)
        assert slot is not None
        assert slot.bytes == len(self.kept) * DATAGRAM_BYTES
