"""Blocking calls in a thread that can be abandoned.

The loop's own executor waits for its threads at exit, and a resolver or a driver may block far longer than a person
waits. An abandoned thread ends when its call does, or with the process.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

T = TypeVar("T")


async def call_in_thread(function: Callable[[], T], *, name: str, deadline_s: float | None = None) -> T:
    """Return the result of `function`, or raise its error; raise TimeoutError after the deadline."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(set_outcome: Callable[[], None]) -> None:
        if not future.done():
            set_outcome()

    def call() -> None:
        try:
            result = function()
        except Exception as error:  # noqa: BLE001 - raised in the waiting task
            outcome = partial(future.set_exception, error)
        else:
            outcome = partial(future.set_result, result)
        with contextlib.suppress(RuntimeError):  # the loop is closed: there is no waiting task
            loop.call_soon_threadsafe(settle, outcome)

    threading.Thread(target=call, name=name, daemon=True).start()
    async with asyncio.timeout(deadline_s):
        return await future
