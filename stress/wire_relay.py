"""`python wire_relay.py NEAR_DEVICE FAR_DEVICE WIRE`: carries frames between two devices as a wire would.

The devices are those of the namespace between the two ends. The process reads their frames by AF_PACKET, so that no
queue of a kernel has a part in it: each direction has a policer if wanted, a drop-tail queue, a line rate, random
loss and a delay. The ends keep their offloads, so that a frame may be several packets joined up to 64 KiB. Each of
them takes its own time on the line, is lost for itself, and finds room in the queue or does not.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import json
import os
import random
import select
import socket
import struct
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from linkgauge.engine.lab.link_spec import LabLink
from linkgauge.engine.model.serialization import decode

# linux/if_packet.h, linux/if_ether.h, linux/virtio_net.h, asm-generic/socket.h
_SOL_PACKET: Final = 263
_PACKET_VNET_HDR: Final = 15
_PACKET_IGNORE_OUTGOING: Final = 23
_ETH_P_ALL: Final = 3
_SO_SNDBUFFORCE: Final = 32
_SO_RCVBUFFORCE: Final = 33
_VNET: Final = struct.Struct("=BBHHHH")  # flags, kind of segments, header bytes, segment bytes, checksum's place
_NEEDS_CHECKSUM: Final = 1

_ETHERNET_BYTES: Final = 14
_IP: Final = _VNET.size + _ETHERNET_BYTES
_FIN_AND_PUSH: Final = 0x09
_MOST_BYTES: Final = _IP + 65_536
_SOCKET_BYTES: Final = 64 << 20
_FRAMES_AT_ONCE: Final = 32  # read from one end before the other end's turn
_SECOND_NS: Final = 1_000_000_000
# The relay may run late by so much without a loss of the line's time. A token bucket of the kernel has 5 ms.
_LATE_NS: Final = 2_000_000


@dataclass(frozen=True, slots=True)
class Wire:
    """What happens to the frames of each direction.

    The link's buffer is the queue before the line. A policer drops what is faster than `policed_bit_s` on average,
    with a bucket of so many bytes.
    """

    link: LabLink
    policed_bit_s: int | None = None
    bucket_bytes: int = 0


class Bucket:
    """A rate with room for some bytes: the line with its queue, or a policer with its bucket."""

    def __init__(self, link: LabLink, bit_s: int, room_bytes: int, late_ns: int = 0) -> None:
        self._link = link
        self._bit_s = bit_s
        self._room_ns = room_bytes * 8 * _SECOND_NS // bit_s
        self._late_ns = late_ns
        self._times: dict[int, int] = {}
        self.free_ns = 0  # the time at which all that was admitted has left

    def admit(self, now_ns: int, count: int, each_bytes: int, last_bytes: int) -> int:
        """Return how many of a frame's packets find room, and account for them."""
        self.free_ns = max(self.free_ns, now_ns - self._late_ns)
        room_ns = now_ns + self._room_ns - self.free_ns
        each_ns = self._time_ns(each_bytes)
        all_ns = (count - 1) * each_ns + self._time_ns(last_bytes)
        if all_ns > room_ns:
            count = max(0, min(count - 1, room_ns // each_ns))
            all_ns = count * each_ns
        self.free_ns += all_ns
        return count

    def _time_ns(self, frame_bytes: int) -> int:
        known = self._times.get(frame_bytes)
        if known is None:
            known = self._times[frame_bytes] = self._link.wire_bytes(frame_bytes) * 8 * _SECOND_NS // self._bit_s
        return known


class Flow:
    """One direction of a wire. It has no clock: each call says the time."""

    def __init__(self, wire: Wire, draw: Callable[[], float]) -> None:
        """Make a direction. `draw` returns a number from 0 to 1 that decides each packet's loss."""
        link = wire.link
        self._loss = link.loss_percent / 100
        self._draw = draw
        self._delay_ns = link.delay_ns
        self._buckets = [Bucket(link, link.rate_bit_s, link.buffer_bytes, _LATE_NS)]
        if wire.policed_bit_s is not None:
            self._buckets.insert(0, Bucket(link, wire.policed_bit_s, wire.bucket_bytes))
        self.under_way: deque[tuple[int, bytes]] = deque()

    def send(self, frame: bytes, now_ns: int) -> None:
        """Accept a frame with its header of virtio."""
        count, each_bytes, last_bytes = _sizes(frame)
        first_count = count
        for bucket in self._buckets:
            kept = bucket.admit(now_ns, count, each_bytes, last_bytes)
            if kept < count:
                count, last_bytes = kept, each_bytes
        if not count:
            return
        arrival_ns = max(now_ns, self._buckets[-1].free_ns) + self._delay_ns
        if self._loss or count < first_count:
            self.under_way.extend((arrival_ns, piece) for piece in self._survivors(frame, first_count, count))
        else:
            self.under_way.append((arrival_ns, frame))

    def _survivors(self, frame: bytes, count: int, kept: int) -> Iterator[bytes]:
        """Yield what is left of a frame of `count` packets: of the first `kept`, those that chance leaves."""
        first = 0
        for number in range(kept):
            if self._loss and self._draw() < self._loss:
                if number > first:
                    yield cut(frame, first, number)
                first = number + 1
        if kept > first:
            yield frame if (first, kept) == (0, count) else cut(frame, first, kept)


def _sizes(frame: bytes) -> tuple[int, int, int]:
    """Return how many packets a frame joins, and the bytes of a frame of each, and of the last one."""
    length = len(frame) - _VNET.size
    segment = int.from_bytes(frame[4:6], sys.byteorder)
    if not frame[1] or not segment:
        return 1, length, length
    around = _headers_end(frame) - _VNET.size
    count = -(-(length - around) // segment)
    return count, around + segment, length - (count - 1) * segment


def _headers_end(frame: bytes) -> int:
    """Return where the payload of a TCP packet begins, over IPv4."""
    tcp = _IP + (frame[_IP] & 0x0F) * 4
    return tcp + (frame[tcp + 12] >> 4) * 4


def cut(frame: bytes, first: int, end: int) -> bytes:
    """Return some of the packets that a frame joins, as one frame of TCP over IPv4 without its checksum."""
    flags, kind, header_bytes, segment, start, offset = _VNET.unpack_from(frame)
    begin, tcp = _headers_end(frame), _IP + (frame[_IP] & 0x0F) * 4
    payload = frame[begin + first * segment : begin + end * segment]
    headers = bytearray(frame[:begin])
    identity, sequence = struct.unpack_from("!H", frame, _IP + 4)[0], struct.unpack_from("!I", frame, tcp + 4)[0]
    struct.pack_into("!HH", headers, _IP + 2, begin - _IP + len(payload), (identity + first) & 0xFFFF)
    struct.pack_into("!H", headers, _IP + 10, 0)
    struct.pack_into("!H", headers, _IP + 10, _sum(headers[_IP:tcp]) ^ 0xFFFF)
    struct.pack_into("!I", headers, tcp + 4, (sequence + first * segment) & 0xFFFFFFFF)
    if begin + end * segment < len(frame):
        headers[tcp + 13] &= ~_FIN_AND_PUSH
    pseudo = headers[_IP + 12 : _IP + 20] + struct.pack("!HH", socket.IPPROTO_TCP, begin - tcp + len(payload))
    struct.pack_into("!H", headers, tcp + 16, _sum(pseudo))
    kind, segment = (kind, segment) if len(payload) > segment else (0, 0)
    start, offset = tcp - _VNET.size, 16
    _VNET.pack_into(headers, 0, flags | _NEEDS_CHECKSUM, kind, header_bytes, segment, start, offset)
    return bytes(headers) + payload


def _sum(data: bytes | bytearray) -> int:
    """Return the sum of RFC 1071, not complemented."""
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def _open_device(name: str) -> socket.socket:
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sock.setsockopt(_SOL_PACKET, _PACKET_VNET_HDR, 1)
    sock.setsockopt(_SOL_PACKET, _PACKET_IGNORE_OUTGOING, 1)
    sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _SOCKET_BYTES)
    sock.setsockopt(socket.SOL_SOCKET, _SO_SNDBUFFORCE, _SOCKET_BYTES)
    sock.setblocking(False)
    sock.bind((name, _ETH_P_ALL))
    return sock


def relay_frames(devices: tuple[str, str], wire: Wire, until_ended: int) -> None:
    """Carry frames between two devices until a descriptor becomes readable: its other end is closed."""
    sockets = [_open_device(name) for name in devices]
    chance = random.Random(wire.link.seed)
    flows = [Flow(wire, chance.random) for _ in sockets]
    while True:
        due = [flow.under_way[0][0] for flow in flows if flow.under_way]
        wait = max(0, min(due) - time.monotonic_ns()) / _SECOND_NS if due else None
        readable, _, _ = select.select([*sockets, until_ended], [], [], wait)
        if until_ended in readable:
            return
        for sock, flow in zip(sockets, flows, strict=True):
            if sock in readable:
                for frame in _frames(sock):
                    flow.send(frame, time.monotonic_ns())
        now_ns = time.monotonic_ns()
        for other, flow in zip(reversed(sockets), flows, strict=True):
            while flow.under_way and flow.under_way[0][0] <= now_ns:
                with suppress(OSError):  # the device goes down, or a frame of something else is too long
                    other.send(flow.under_way.popleft()[1])


def _frames(sock: socket.socket) -> Iterator[bytes]:
    with suppress(OSError):
        for _ in range(_FRAMES_AT_ONCE):
            yield sock.recv(_MOST_BYTES)


def main() -> None:
    """Carry one wire's frames."""
    near, far, wire = sys.argv[1:]
    with suppress(OSError):
        os.nice(-20)  # a wire is not late because its ends are busy
    relay_frames((near, far), decode(Wire, json.loads(wire)), sys.stdin.fileno())


if __name__ == "__main__":
    main()
