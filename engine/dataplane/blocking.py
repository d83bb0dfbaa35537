"""A thread that waits in the kernel for a session that has its worker to itself."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Final

_JOIN_S: Final = 1.0


class Blocking:
    """A thread that has a session's socket to itself, until it hands it back, or the connection ends.

    `body()` runs in it, and returns whether the connection is to go on; `resume()` and `lose(error)` are called
    on the event loop.
    """

    def __init__(
        self,
        sock: socket.socket,
        body: Callable[[], bool],
        resume: Callable[[], None],
        lose: Callable[[OSError | None], None],
    ) -> None:
        self._sock = sock
        self._body = body
        self._resume = resume
        self._lose = lose
        self._call = asyncio.get_running_loop().call_soon_threadsafe
        self._is_stopped = False
        sock.setblocking(True)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread: what it waits for ends with the connection."""
        self._is_stopped = True
        if self._thread.is_alive():
            with contextlib.suppress(OSError):
                self._sock.shutdown(socket.SHUT_RDWR)
            self._thread.join(_JOIN_S)

    def _run(self) -> None:
        error: OSError | None = None
        goes_on = False
        try:
            goes_on = self._body()
            if goes_on:
                self._sock.setblocking(False)
        except OSError as caught:
            error = caught
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to be told
            self._call(self._done, goes_on, error)

    def _done(self, goes_on: bool, error: OSError | None) -> None:
        if self._is_stopped:
            return
        if goes_on:
            self._resume()
        else:
            self._lose(error)
