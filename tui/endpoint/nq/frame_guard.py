"""What the frames of a client may cost, before anything decodes them (RFC 9113, 4.1 and 10.5).

An HTTP/2 library takes every frame in: it copies, answers and remembers, and many frames give its user no event at
all. So frames are counted by their heads alone. Pure.
"""

from typing import Final

from ....engine.model.errors import RemoteProtocolError
from ....engine.model.limits import TokenBucket

MAX_FRAME_BYTES: Final = 1 << 16
MAX_HEADER_BYTES: Final = 1 << 13
MAX_SETTINGS: Final = 32  # RFC 9113 has six, and browsers send a few of their own
FRAMES_S: Final = 4_000
"""The frames of an address in a second that carry next to no payload; a test of 100 probes a second sends 700."""
RESETS_S: Final = 100
"""The streams that an address may reset in a second (CVE-2023-44487)."""
_PREFACE_BYTES: Final = 24
_HEAD_BYTES: Final = 9
_DATA, _HEADERS, _RESET, _SETTINGS, _PUSH_PROMISE, _WINDOW_UPDATE, _CONTINUATION = 0, 1, 3, 4, 5, 8, 9
_END_HEADERS: Final = 4
_SETTING_BYTES: Final = 6
_LEAST_PAYLOAD_BYTES: Final = 256
_BYTES_PER_UPDATE: Final = 2_048  # Go's client returns 4 KiB at a time, to the stream and to the connection


class FrameBudget:
    """The frames that all connections of an address may send."""

    def __init__(self, now_ns: int) -> None:
        self._frames = TokenBucket(FRAMES_S, now_ns)
        self._resets = TokenBucket(RESETS_S, now_ns)

    def take(self, now_ns: int, *, is_reset: bool) -> None:
        """Count a frame; raise RemoteProtocolError if it is one too many."""
        if not self._frames.take(now_ns):
            raise RemoteProtocolError(f"more than {FRAMES_S} frames without payload in a second")
        if is_reset and not self._resets.take(now_ns):
            raise RemoteProtocolError(f"more than {RESETS_S} requests that were withdrawn in a second")


class FrameGuard:
    """Looks at what a connection receives, in pieces of any size. Call `admit` with each before it is decoded."""

    def __init__(self, budget: FrameBudget) -> None:
        self._budget = budget
        self._skip = _PREFACE_BYTES  # the bytes up to the next frame's head
        self._head = b""  # the part of a head that has come
        self._header_bytes = 0  # of a block of headers that has not ended
        self._updates = 0

    def note_sent(self, payload_bytes: int) -> None:
        """Let the client return so many bytes to its windows, in frames that count for nothing."""
        self._updates += 1 + payload_bytes // _BYTES_PER_UPDATE

    def admit(self, data: bytes, now_ns: int) -> None:
        """Count the frames that begin in `data`; raise RemoteProtocolError for one that no client of ours sends."""
        at, end = 0, len(data)
        while at < end:
            if self._skip:
                step = min(self._skip, end - at)
                self._skip -= step
                at += step
                continue
            head = self._head + data[at : at + _HEAD_BYTES - len(self._head)]
            at += len(head) - len(self._head)
            if len(head) < _HEAD_BYTES:
                self._head = head
                return
            self._head = b""
            self._skip = int.from_bytes(head[:3], "big")
            self._count(head[3], head[4], self._skip, now_ns)

    def _count(self, kind: int, flags: int, length: int, now_ns: int) -> None:
        if length > MAX_FRAME_BYTES:
            raise RemoteProtocolError(f"a frame of {length} bytes")
        if kind == _DATA and length >= _LEAST_PAYLOAD_BYTES:
            return
        if kind == _SETTINGS and length > MAX_SETTINGS * _SETTING_BYTES:
            raise RemoteProtocolError(f"a frame of {length // _SETTING_BYTES} settings")
        if kind == _WINDOW_UPDATE and self._updates:
            self._updates -= 1
            return
        self._count_headers(kind, flags, length)
        self._budget.take(now_ns, is_reset=kind == _RESET)

    def _count_headers(self, kind: int, flags: int, length: int) -> None:
        """Bound a block of headers as a whole (CVE-2024-27316): it is kept until its last frame has come."""
        if kind not in {_HEADERS, _PUSH_PROMISE, _CONTINUATION}:
            return
        self._header_bytes += length
        if self._header_bytes > MAX_HEADER_BYTES:
            raise RemoteProtocolError(f"a request with more than {MAX_HEADER_BYTES} bytes of headers")
        if flags & _END_HEADERS:
            self._header_bytes = 0
