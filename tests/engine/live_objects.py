"""How many objects of a class this process has at most, while a block runs."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_LOOK_S = 0.2


class MostAlive:
    """The most objects of a class at any look so far."""

    def __init__(self, kind: type) -> None:
        self._kind = kind
        self.count = 0

    async def look(self) -> None:
        """Look five times a second, until it is cancelled."""
        while True:
            await asyncio.sleep(_LOOK_S)
            self.count = max(self.count, sum(isinstance(each, self._kind) for each in gc.get_objects()))


@asynccontextmanager
async def most_alive(kind: type) -> AsyncIterator[MostAlive]:
    """Count the objects of a class during the block."""
    most = MostAlive(kind)
    looking = asyncio.create_task(most.look())
    try:
        yield most
    finally:
        looking.cancel()
