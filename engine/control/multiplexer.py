"""Several control connections over one pair of byte streams, such as those of a program that ssh runs.

A frame is a channel's number, a length, and that many bytes. A frame without bytes closes the channel. The
connecting end opens a channel by sending its first frame; numbers only rise. Frames of channel 0 are keepalives.
Each channel is a transport like a TCP connection's, so a ControlConnection does not see the difference.
"""

import asyncio
import struct
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

_HEADER: Final = struct.Struct(">II")
_ALIVE: Final = 0
_MAX_FRAME_BYTES: Final = 1 << 20
_MAX_CHANNELS: Final = 64

ProtocolFactory = Callable[["MuxChannel"], asyncio.Protocol]


class MuxChannel(asyncio.Transport):
    """One of the connections: a transport that writes frames of its number."""

    def __init__(self, mux: "Mux", number: int, extra: Mapping[str, Any]) -> None:
        super().__init__(dict(extra))
        self._mux = mux
        self.number = number
        self.protocol: asyncio.Protocol | None = None
        self._closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Queue bytes; drop them after the close."""
        if not self._closing:
            self._mux.send(self.number, bytes(data))

    def close(self) -> None:
        """Close the channel once its queue is sent."""
        if not self._closing:
            self._mux.send(self.number, b"")
            self.handle_close(None)

    def abort(self) -> None:
        """Close at once: a channel has no queue to drop."""
        self.close()

    def is_closing(self) -> bool:
        """Return whether nothing more can be written."""
        return self._closing

    def get_write_buffer_size(self) -> int:
        """Return the queued bytes of all channels: they share the stream."""
        return self._mux.unsent_bytes

    def handle_close(self, error: Exception | None) -> None:
        """Mark the channel as closed, by either end, and notify its protocol."""
        if self._closing:
            return
        self._closing = True
        self._mux.remove_channel(self.number)
        if self.protocol is not None:
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, error)


class Mux(asyncio.Protocol):
    """One end of the streams.

    Args:
        accept: returns the protocol of a channel that the other end opens; None refuses them.
        on_lost: is called once when the streams have ended.
        extra: the `get_extra_info` of every channel.
        why_lost: returns a better cause than the error of the streams, if there is one.
    """

    def __init__(
        self,
        accept: ProtocolFactory | None,
        on_lost: Callable[[], None],
        *,
        extra: Mapping[str, Any],
        why_lost: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._accept = accept
        self._on_lost = on_lost
        self._extra = extra
        self._why_lost = why_lost
        self._transport: asyncio.WriteTransport | None = None
        self._buffer = bytearray()
        self._channels: dict[int, MuxChannel] = {}
        self._newest = 0
        self._lost = False
        self.last_received_ns = time.monotonic_ns()

    # The streams

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the first transport. If reading and writing have one each, connect the writing one first."""
        if self._transport is None:
            self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        """Pass each complete frame to its channel."""
        self.last_received_ns = time.monotonic_ns()
        self._buffer += data
        while len(self._buffer) >= _HEADER.size:
            number, length = _HEADER.unpack_from(self._buffer)
            if length > _MAX_FRAME_BYTES:
                self.connection_lost(ConnectionError(f"a frame of {length} bytes is over the limit"))
                return
            whole = _HEADER.size + length
            if len(self._buffer) < whole:
                return
            body = bytes(self._buffer[_HEADER.size : whole])
            del self._buffer[:whole]
            if number != _ALIVE:
                self._take(number, body)

    def eof_received(self) -> bool:
        """End when the other end does."""
        self.connection_lost(None)
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Close every channel with the cause, then call `on_lost`."""
        if self._lost:
            return
        self._lost = True
        self.close()
        reason = self._why_lost()
        error = exc if reason is None else ConnectionError(reason)
        for channel in list(self._channels.values()):
            channel.handle_close(error)
        self._on_lost()

    def pause_writing(self) -> None:
        """Pause the protocols of all channels."""
        for channel in self._channels.values():
            if channel.protocol is not None:
                channel.protocol.pause_writing()

    def resume_writing(self) -> None:
        """Resume the protocols of all channels."""
        for channel in self._channels.values():
            if channel.protocol is not None:
                channel.protocol.resume_writing()

    # The channels

    @property
    def is_lost(self) -> bool:
        """Whether the streams have ended."""
        return self._lost

    @property
    def unsent_bytes(self) -> int:
        """The number of bytes queued because the other end does not read them."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def open(self, protocol: asyncio.Protocol) -> MuxChannel:
        """Open a channel for a protocol; the other end learns of it from the protocol's first bytes."""
        self._newest += 1
        channel = self._add(self._newest)
        channel.protocol = protocol
        protocol.connection_made(channel)
        return channel

    def send(self, number: int, data: bytes) -> None:
        """Send bytes of a channel; no bytes close it."""
        if self._transport is None or self._transport.is_closing():
            return
        for start in range(0, max(1, len(data)), _MAX_FRAME_BYTES):
            part = data[start : start + _MAX_FRAME_BYTES]
            self._transport.write(_HEADER.pack(number, len(part)) + part)

    def send_keepalive(self) -> None:
        """Send a sign of life."""
        self.send(_ALIVE, b"")

    def remove_channel(self, number: int) -> None:
        """Forget a closed channel."""
        self._channels.pop(number, None)

    def close(self) -> None:
        """Close the streams once the queue is sent."""
        if self._transport is not None:
            self._transport.close()

    def _add(self, number: int) -> MuxChannel:
        channel = self._channels[number] = MuxChannel(self, number, self._extra)
        return channel

    def _take(self, number: int, body: bytes) -> None:
        channel = self._channels.get(number)
        if channel is None:
            if self._accept is None or number <= self._newest or not body or len(self._channels) >= _MAX_CHANNELS:
                return  # it was closed here while this frame was on its way
            self._newest = number
            channel = self._add(number)
            channel.protocol = self._accept(channel)
            channel.protocol.connection_made(channel)
        if not body:
            channel.handle_close(None)
        elif channel.protocol is not None:
            channel.protocol.data_received(body)
