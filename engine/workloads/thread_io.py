"""Threads that wait in the kernel for a session that has its worker to itself."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

JOIN_TIMEOUT_S: Final = 1.0


def start_thread(body: Callable[[], T], on_done: Callable[[T | None, OSError | None], None]) -> threading.Thread:
    """Run `body` in a thread; then `done`, with what it returned or raised, on the event loop that runs now."""
    call = asyncio.get_running_loop().call_soon_threadsafe

    def run() -> None:
        result: T | None = None
        error: OSError | None = None
        try:
            result = body()
        except OSError as caught:
            error = caught
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to be told
            call(on_done, result, error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


class SocketThread:
    """A thread that has a session's socket to itself, until it hands it back, or the connection ends.

    `body()` runs in it, and returns whether the connection is to go on; `resume()` and `lose(error)` are called
    on the event loop.
    """

    def __init__(
        self,
        sock: socket.socket,
        body: Callable[[], bool],
        on_resume: Callable[[], None],
        on_lost: Callable[[OSError | None], None],
    ) -> None:
        self._sock = sock
        self._body = body
        self._resume = on_resume
        self._lose = on_lost
        self._is_stopped = False
        sock.setblocking(True)
        self._thread = start_thread(self._run, self._done)

    def stop(self) -> None:
        """End the thread: what it waits for ends with the connection."""
        self._is_stopped = True
        if self._thread.is_alive():
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)
            self._thread.join(JOIN_TIMEOUT_S)

    def _run(self) -> bool:
        goes_on = self._body()
        if goes_on:
            self._sock.setblocking(False)
        return goes_on

    def _done(self, goes_on: bool | None, error: OSError | None) -> None:
        if self._is_stopped:
            return
        if goes_on:
            self._resume()
        else:
            self._lose(error)
