"""Notes the delay of each datagram of one flow, by the kernel's own times of arrival.

Both ends have one for each flow. It keeps the newest round only, and no more entries than a round may have.
"""

import socket
import time
from array import array
from typing import Final

from ..protocol.flow_datagrams import ENTRY_NS, ENTRY_ZERO, LATEST, is_twin, read_flow_header
from ..workloads.udp.receive_stamps import ReceiveStamps
from ..workloads.udp.socket_options import read_socket_drops

_MEASURE_DATAGRAMS: Final = 500


class ArrivalClock:
    """The delays of all flows of a session, above the first one: both clocks of the ends run on their own.

    Attributes:
        datagrams: The datagrams of all flows so far.
        payload_bytes: Their payload.
    """

    def __init__(self) -> None:
        self._stamps = ReceiveStamps()
        self._zero_ns: int | None = None
        self.datagrams = self.payload_bytes = 0

    def entry(self, ancillary: list[tuple[int, int, bytes]], stamp_ns: int, size_bytes: int) -> int:
        """Return the entry of a datagram that has come just now."""
        self.datagrams += 1
        self.payload_bytes += size_bytes
        if self.datagrams % _MEASURE_DATAGRAMS == 0:
            self._stamps.measure()
        delay_ns = self._stamps.read(ancillary, 0, time.monotonic_ns()) - stamp_ns
        if self._zero_ns is None:
            self._zero_ns = delay_ns
        return max(1, min(LATEST, (delay_ns - self._zero_ns) // ENTRY_NS + ENTRY_ZERO))


class FlowReceiver:
    """The arrivals of the newest round of a flow.

    Attributes:
        round: The number of the newest round; 0 before the first one.
        entries: The entry of each datagram by its number, 0 for one that has not come.
        reordered: Second datagrams of a sweep that came before the first one.
        duplicates: Datagrams that came again.
    """

    def __init__(self, sock: socket.socket, cookie: int, clock: ArrivalClock) -> None:
        self._sock, self._cookie, self._clock = sock, cookie, clock
        self._drops_before = 0
        self.round = 0
        self.entries = array("I")
        self.reordered = self.duplicates = 0

    def begin(self, round_: int) -> None:
        """Forget the last round, and wait for another one."""
        self.round = round_
        self.entries = array("I")
        self.reordered = self.duplicates = 0
        self._drops_before = read_socket_drops(self._sock) or 0

    def take(self, data: bytes, ancillary: list[tuple[int, int, bytes]]) -> bool:
        """Note a datagram if it belongs to a round of the flow; return whether it does."""
        header = read_flow_header(data, self._cookie)
        if header is None:
            return False
        round_, number, stamp_ns = header
        entry = self._clock.entry(ancillary, stamp_ns, len(data))
        if round_ > self.round:
            self.begin(round_)
        if round_ < self.round:
            return True
        entries = self.entries
        if number >= len(entries):
            entries.extend([0] * (number + 1 - len(entries)))
        elif entries[number]:
            self.duplicates += 1
            return True
        elif number + 1 < len(entries) and is_twin(number + 1) and entries[number + 1]:
            self.reordered += 1
        entries[number] = entry
        return True

    @property
    def unread(self) -> int:
        """The datagrams of the round that found no room in the socket."""
        return (read_socket_drops(self._sock) or 0) - self._drops_before
