"""The bodies that a connection over HTTP/2 has yet to send, and how much of them its client takes now.

Short ones go first: they are the answers to probes, and what waits behind a download measures the download. Of long
ones each sends a frame in turn.
"""

import os
from collections import deque
from dataclasses import dataclass
from typing import Final

from h2.connection import H2Connection

from .frame_guard import MAX_FRAME_BYTES

_RANDOM: Final = os.urandom(MAX_FRAME_BYTES)
# A client that opens its window byte by byte would get a packet, and this host's time, for each byte.
_LEAST_FRAME_BYTES: Final = 1_024


@dataclass(slots=True)
class _Body:
    """The rest of a body: `left` bytes of `content`, or random ones without it."""

    stream: int
    left: int
    content: bytes | None = None

    def piece(self, size: int) -> bytes:
        """Return the next bytes."""
        if self.content is None:
            return _RANDOM if size == len(_RANDOM) else _RANDOM[:size]
        at = len(self.content) - self.left
        return self.content[at : at + size]


class Bodies:
    """The bodies of one connection, whose frames go to `protocol`."""

    def __init__(self, protocol: H2Connection) -> None:
        self._protocol = protocol
        self._short: deque[_Body] = deque()
        self._long: deque[_Body] = deque()

    @property
    def long(self) -> int:
        """The number of long bodies."""
        return len(self._long)

    def has_short(self, stream: int) -> bool:
        """Return whether a part of a short body of a stream has not gone out."""
        return any(body.stream == stream for body in self._short)

    def add_short(self, stream: int, content: bytes) -> None:
        """Add a whole body."""
        self._short.append(_Body(stream, len(content), content))

    def add_long(self, stream: int, size: int) -> None:
        """Add a body of random bytes."""
        self._long.append(_Body(stream, size))

    def remove(self, stream: int) -> None:
        """Drop a body that its client does not want any more."""
        self._short = deque(body for body in self._short if body.stream != stream)
        self._long = deque(body for body in self._long if body.stream != stream)

    def send_short(self) -> list[int]:
        """Send of each short body all that its client takes; return the streams whose body is whole now.

        Nothing may be left that the client would take: it may say nothing more, and wait.
        """
        for body in self._short:
            while body.left and self._send(body, MAX_FRAME_BYTES):
                pass
        ended = [body.stream for body in self._short if not body.left]
        if ended:
            self._short = deque(body for body in self._short if body.left)
        return ended

    def send_long(self, most_bytes: int) -> tuple[int, list[int]]:
        """Send some `most_bytes` of the long bodies; return how many went, and the streams that have ended."""
        sent, ended, idle = 0, list[int](), 0
        while self._long and sent < most_bytes and idle < len(self._long):
            body = self._long[0]
            count = self._send(body, most_bytes - sent)
            sent, idle = sent + count, 0 if count else idle + 1
            if body.left:
                self._long.rotate(-1)
            else:
                ended.append(self._long.popleft().stream)
        return sent, ended

    def _send(self, body: _Body, most_bytes: int) -> int:
        """Send a frame of a body; return its size, 0 if the client takes none now."""
        protocol = self._protocol
        frame_bytes = max(min(most_bytes, protocol.max_outbound_frame_size, MAX_FRAME_BYTES), _LEAST_FRAME_BYTES)
        size = min(protocol.local_flow_control_window(body.stream), body.left, frame_bytes)
        if size < min(body.left, _LEAST_FRAME_BYTES):
            return 0
        data = body.piece(size)
        body.left -= size
        protocol.send_data(body.stream, data, end_stream=not body.left)
        return size
