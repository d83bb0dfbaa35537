"""Calls that block, in a thread of their own that nobody has to wait for.

The loop's own executor waits at exit for what it has begun; a resolver or a driver may take far longer
than a person waits. A thread that is given up ends when its call does, or with the process.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

T = TypeVar("T")


async def call_in_thread(function: Callable[[], T], *, name: str, deadline_s: float | None = None) -> T:
    """Return what `function` returns, or raise what it raises; TimeoutError where it takes too long."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(set_outcome: Callable[[], None]) -> None:
        if not future.done():
            set_outcome()

    def call() -> None:
        try:
            result = function()
        except Exception as error:  # noqa: BLE001 - it is raised where it is waited for
            outcome = partial(future.set_exception, error)
        else:
            outcome = partial(future.set_result, result)
        with contextlib.suppress(RuntimeError):  # nobody waits any more: the loop is closed
            loop.call_soon_threadsafe(settle, outcome)

    threading.Thread(target=call, name=name, daemon=True).start()
    async with asyncio.timeout(deadline_s):
        return await future
