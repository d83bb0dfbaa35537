"""The event loop of this process: uvloop where it imports, asyncio's own elsewhere."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Return what makes the best event loop there is on this machine."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on the best event loop, as asyncio.run does."""
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(main)


async def await_shielded(work: Coroutine[Any, Any, T]) -> T:
    """Carry bounded work out to its end, and be cancelled only then: who is in a hurry may cancel more than once.

    For giving back what outlives the task that holds it: a process that is left alone half-way keeps the event
    loop from being closed.
    """
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return task.result()


def loop_name() -> str:
    """Return the running loop's name for a person: `uvloop` or `asyncio`."""
    return type(asyncio.get_running_loop()).__module__.split(".")[0]
