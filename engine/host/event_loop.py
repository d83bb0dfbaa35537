"""The event loop of this process (uvloop if it imports, else asyncio's own), and what asyncio lacks."""

import asyncio
import contextlib
import errno
import gc
import os
import select
import socket
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from ..model.errors import LinkgaugeError, WorkerError, explain_resource_error

T = TypeVar("T")

_LOOP_DESCRIPTORS = 12  # of uvloop, and of its signals


def loop_factory() -> Callable[[], asyncio.AbstractEventLoop]:
    """Return the constructor of the fastest event loop of this machine."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop
    return uvloop.new_event_loop


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on the fastest event loop, as asyncio.run does.

    Raises LinkgaugeError if there are too few descriptors for a loop.
    """
    if problem := _lack_of_descriptors():
        main.close()
        raise LinkgaugeError(problem)
    if not gc.isenabled():  # the program's start (__main__); what it imported is not looked through again
        gc.freeze()
        gc.enable()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        return runner.run(main)


def _lack_of_descriptors() -> str:
    """Return why a loop would find too few descriptors, if so: uvloop then neither runs nor closes, and hangs."""
    with contextlib.ExitStack() as taken:
        try:
            for _ in range(_LOOP_DESCRIPTORS):
                taken.callback(os.close, os.open(os.devnull, os.O_RDONLY))
        except OSError as error:
            return explain_resource_error(error)
    return ""


async def await_shielded(work: Coroutine[Any, Any, T]) -> T:
    """Run bounded work to its end, however often the caller is cancelled; the cancellation follows.

    It is for releasing things that outlive a task: a child process that is abandoned half-way keeps the loop from
    closing.
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
    """Return the running loop's name for the user: `uvloop` or `asyncio`."""
    return type(asyncio.get_running_loop()).__module__.split(".")[0]


async def wait_until_readable(sock: "socket.socket | select.epoll") -> None:
    """Return once data, an end or an error waits at a socket, or at one of an epoll, and leave it there.

    The loops' own calls for datagrams differ; this one does not.
    """
    loop = asyncio.get_running_loop()
    await _wait_until_ready(sock, loop.add_reader, loop.remove_reader)


async def _wait_until_ready(
    sock: "socket.socket | select.epoll", add: Callable[..., None], remove: Callable[[Any], bool]
) -> None:
    """Wait for a socket with one of the loop's watchers, which is gone afterwards."""
    is_ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def ready() -> None:
        # Here and not below: uvloop still uses the descriptor until this turn of the loop ends, and a
        # transport created in the same turn would receive nothing.
        remove(sock)
        if not is_ready.done():
            is_ready.set_result(None)

    add(sock, ready)
    try:
        await is_ready
    except asyncio.CancelledError:
        remove(sock)
        raise


async def read_exactly(sock: socket.socket, count: int) -> bytes:
    """Read `count` bytes of a non-blocking socket, none beyond; raise EOFError if it is closed earlier."""
    loop = asyncio.get_running_loop()
    data = b""
    while len(data) < count:
        part = await loop.sock_recv(sock, count - len(data))
        if not part:
            raise EOFError(f"{len(data)} of {count} bytes")
        data += part
    return data


async def connect_socket(sock: socket.socket, address: tuple[Any, ...]) -> None:
    """Connect a non-blocking socket to a resolved address; raise the kernel's OSError.

    The loops' own sock_connect resolves once more, and uvloop's then loses the scope of an IPv6 address.
    """
    failure = sock.connect_ex(address)
    if failure == errno.EINPROGRESS:
        loop = asyncio.get_running_loop()
        await _wait_until_ready(sock, loop.add_writer, loop.remove_writer)
        failure = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if failure:
        raise OSError(failure, os.strerror(failure))


async def call_in_thread(function: Callable[[], T], *, name: str, deadline_s: float | None = None) -> T:
    """Return the result of a blocking call, or raise its error; raise TimeoutError after the deadline.

    Raises WorkerError if this user may have no more threads.

    It runs in a thread that can be abandoned: the loop's own executor waits for its threads at exit, and a resolver
    or a driver may block far longer than the user waits. The thread ends when its call does, or with the process.
    """
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

    try:
        threading.Thread(target=call, name=name, daemon=True).start()
    except RuntimeError as error:
        raise WorkerError("no thread can be started: raise ulimit -u, or the limits of the service") from error
    async with asyncio.timeout(deadline_s):
        return await future
