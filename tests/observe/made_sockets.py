"""Messages and readings of made-up sockets, for tests without a kernel."""

import socket
import struct
from dataclasses import dataclass, replace

from linkgauge.engine.host.sockets.socket_message import (
    ConnectionReading,
    SocketMessage,
    decode_connection,
    find_info,
)
from linkgauge.engine.model.plan import SECOND_NS

INTERVAL_NS = SECOND_NS // 4
MSS = 1_448


@dataclass(frozen=True)
class Socket:
    """A socket's figures, as the kernel would report them."""

    cookie: int = 7
    port: int = 1
    acked: int = 0
    received: int = 0
    unread: int = 0
    waiting: int = 0
    retransmits: int = 0
    rtt_us: int = 20_000
    min_rtt_us: int = 20_000
    cwnd: int = 20
    unacked: int = 0
    unsent: int = 0
    peer_window: int = 1 << 20
    busy_us: int = 0
    rwnd_us: int = 0
    sndbuf_us: int = 0
    probes: int = 0
    timeouts: int = 0
    idle_ms: int = 0
    options: int = 7
    receive_rtt_us: int = 0
    window: int = 1 << 20
    out_of_order: int = 0
    needless: int = 0
    reordered: int = 0
    memory: tuple[int, ...] = (0, 131_072, 0, 1 << 20, 0, 0, 0, 0, 0)

    def info(self) -> bytes:
        """Return struct tcp_info."""
        head = struct.pack("=8B", 1, 0, self.timeouts, self.probes, 0, self.options, 0, 0)
        words = [0] * 24
        for at, value in (
            (16, MSS),
            (20, MSS),
            (24, self.unacked),
            (52, self.idle_ms),
            (56, self.idle_ms),
            (68, self.rtt_us),
            (80, self.cwnd),
            (92, self.receive_rtt_us),
            (100, self.retransmits),
        ):
            words[(at - 8) // 4] = value
        rates = struct.pack("=4Q", 2**64 - 1, 2**64 - 1, self.acked, self.received)
        segments = struct.pack("=6I", 0, 0, self.unsent, self.min_rtt_us, 0, 0)
        times = struct.pack("=4Q", 0, self.busy_us, self.rwnd_us, self.sndbuf_us)
        again = self.retransmits * MSS
        counts = (self.needless, self.reordered, self.out_of_order, self.peer_window)
        newest = struct.pack("=2I2Q4I", 0, 0, 0, again, *counts)
        return (
            head + struct.pack("=24I", *words) + rates + segments + times + newest + struct.pack("=I", self.window)
        )

    def message(self) -> SocketMessage:
        """Return the message about it."""
        ports, address = struct.pack("!HH", self.port, 80), bytes((192, 0, 2, 1)) + bytes(12)
        id_ = ports + address + address + struct.pack("=IQ", 0, self.cookie)
        info = self.info()
        body = struct.pack("=4B48s5I", socket.AF_INET, 1, 0, 0, id_, 0, self.unread, self.waiting, 0, 6)
        for kind, value in ((7, struct.pack("=9I", *self.memory)), (2, info), (4, b"cubic\0\0\0")):
            body += struct.pack("=HH", 4 + len(value), kind) + value
        return SocketMessage(body, find_info(body))

    def reading(self) -> ConnectionReading:
        """Return the decoded connection."""
        reading = decode_connection(self.message())
        assert reading is not None
        return reading

    def later(self, **changes: object) -> "Socket":
        """Return it with other figures."""
        return replace(self, **changes)  # pyright: ignore[reportArgumentType]
