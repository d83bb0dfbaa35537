"""The fetch workload: a small request, a large answer, over and over on one connection."""

import os
import socket
from time import perf_counter_ns

from ..model.plan import Mode
from .readiness import ReadyCallback
from .request_response import RrRequester, RrResponder
from .session import SessionContext, WorkerResources


class FetchRequester(RrRequester):
    """Asks for the next answer when one is whole; what arrives is counted as it arrives."""

    def start(self, *, is_alone: bool = False) -> None:  # noqa: ARG002 - a thread of its own gains a fetch nothing
        """Let payload flow."""
        super().start()

    def __init__(self, sock: socket.socket, context: SessionContext, resources: WorkerResources) -> None:
        super().__init__(sock, context, resources)
        self._flags = socket.MSG_TRUNC if resources.mode is Mode.DISCARD else 0

    def _handler(self) -> ReadyCallback:
        return self._pull

    def _pull(self, _what: int) -> None:
        try:
            count = self._sock.recv_into(self._buffer, 0, self._flags)
        except OSError as error:
            self._failed(error)
            return
        if not count:
            self._lose(None)
            return
        self._words[self._bytes_at] += count
        self._got += count
        if self._got >= self._response_bytes:
            answered, self._got = divmod(self._got, self._response_bytes)
            self._answered(answered, perf_counter_ns())

    def _counted(self, answered: int) -> None:
        """Leave the bytes alone: they were counted when they came."""


class FetchResponder(RrResponder):
    """Answers out of the payload, by copy or by sendfile."""

    def start(self, *, is_alone: bool = False) -> None:  # noqa: ARG002 - a thread of its own gains a fetch nothing
        """Let payload flow."""
        super().start()

    def __init__(self, sock: socket.socket, context: SessionContext, resources: WorkerResources) -> None:
        super().__init__(sock, context, resources)
        self._payload = resources.payload
        self._is_copied = resources.payload.fd < 0

    def _handler(self) -> ReadyCallback:
        return self._pull

    def _send(self, owed: int) -> int:
        if self._is_copied:
            return super()._send(owed)
        return os.sendfile(self._fd, self._payload.fd, 0, min(owed, self._payload.size_bytes))
