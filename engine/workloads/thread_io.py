"""Threads with blocking socket calls, for a session that has its worker to itself."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

JOIN_TIMEOUT_S: Final = 1.0


def start_thread(body: Callable[[], T], on_done: Callable[[T | None, OSError | None], None]) -> threading.Thread:
    """Run `body` in a thread, then `on_done` with its result or its OSError on the running event loop."""
    call = asyncio.get_running_loop().call_soon_threadsafe

    def run() -> None:
        result: T | None = None
        error: OSError | None = None
        try:
            result = body()
        except OSError as caught:
            error = caught
        with contextlib.suppress(RuntimeError):  # the loop is closed
            call(on_done, result, error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


class SocketThread:
    """A thread that owns a session's socket until it returns the socket or the connection ends.

    Args:
        sock: The socket, which is blocking while the thread runs.
        body: Runs in the thread; returns True to continue on the event loop, False at the end of the connection.
        on_resume: Called on the event loop after True, when the socket is non-blocking again.
        on_lost: Called on the event loop after False, with None, or with the OSError that `body` raised.
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
        self._on_resume = on_resume
        self._on_lost = on_lost
        self._is_stopped = False
        sock.setblocking(True)
        self._thread = start_thread(self._run, self._on_done)

    def stop(self) -> None:
        """End the thread by shutting the connection down; neither callback is called any more."""
        self._is_stopped = True
        if self._thread.is_alive():
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)
            self._thread.join(JOIN_TIMEOUT_S)

    def _run(self) -> bool:
        continues = self._body()
        if continues:
            self._sock.setblocking(False)
        return continues

    def _on_done(self, continues: bool | None, error: OSError | None) -> None:
        if self._is_stopped:
            return
        if continues:
            self._on_resume()
        else:
            self._on_lost(error)
