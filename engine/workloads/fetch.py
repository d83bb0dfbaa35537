"""The fetch workload: a small request and a large response, repeatedly on one connection."""

import os
import socket
from time import perf_counter_ns

from ..model.plan import Mode
from .poller import ReadyCallback
from .request_response import RrRequester, RrResponder
from .session import SessionContext, WorkerResources


class FetchRequester(RrRequester):
    """Sends the next request after each whole response; bytes are counted as they arrive."""

    def __init__(self, sock: socket.socket, context: SessionContext, resources: WorkerResources) -> None:
        super().__init__(sock, context, resources)
        self._flags = socket.MSG_TRUNC if resources.mode is Mode.DISCARD else 0

    def start(self, *, is_alone: bool = False) -> None:  # noqa: ARG002 - a thread makes a fetch no faster
        """Let payload flow."""
        super().start()

    def _handler(self) -> ReadyCallback:
        return self._on_readable

    def _on_readable(self, _events: int) -> None:
        try:
            count = self._sock.recv_into(self._buffer, 0, self._flags)
        except OSError as error:
            self._handle_error(error)
            return
        if not count:
            self._lose(None)
            return
        self._words[self._bytes_at] += count
        self._received += count
        if self._received >= self._response_bytes:
            completed, self._received = divmod(self._received, self._response_bytes)
            self._complete(completed, perf_counter_ns())

    def _count_bytes(self, completed: int) -> None:
        """Do nothing: the bytes were counted on arrival."""


class FetchResponder(RrResponder):
    """Sends its responses from the payload, by copy or by sendfile."""

    def __init__(self, sock: socket.socket, context: SessionContext, resources: WorkerResources) -> None:
        super().__init__(sock, context, resources)
        self._payload = resources.payload
        self._is_copied = resources.payload.fd < 0

    def start(self, *, is_alone: bool = False) -> None:  # noqa: ARG002 - a thread makes a fetch no faster
        """Let payload flow."""
        super().start()

    def _handler(self) -> ReadyCallback:
        return self._on_readable

    def _send(self, unsent: int) -> int:
        if self._is_copied:
            return super()._send(unsent)
        return os.sendfile(self._fd, self._payload.fd, 0, min(unsent, self._payload.size_bytes))
