"""Functions that tests call on a worker."""

import asyncio

from linkgauge.engine.model.errors import EndpointError


async def double(number: int) -> int:
    """Return a number twice."""
    return 2 * number


async def fail(text: str) -> None:
    """Raise an error of linkgauge."""
    raise EndpointError(text)


async def wait(seconds: float) -> None:
    """Wait."""
    await asyncio.sleep(seconds)
