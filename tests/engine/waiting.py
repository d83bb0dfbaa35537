"""Waiting with a deadline: for an answer, and for what has no event."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")
DEADLINE_S = 30.0


async def soon(awaitable: Awaitable[T]) -> T:
    """Await with a deadline."""
    async with asyncio.timeout(DEADLINE_S):
        return await awaitable


async def until(condition: Callable[[], object]) -> None:
    """Wait until a condition is true."""
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - only looking tells
            await asyncio.sleep(0.005)
