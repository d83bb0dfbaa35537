"""A link in simulated time, with a capacity and a queue, between a sender in a closed loop and its receiver."""

from collections import deque
from dataclasses import dataclass, field
from random import Random

from linkgauge.engine.protocol.payload_datagrams import Feedback
from linkgauge.engine.workloads.udp.closed_loop import ClosedLoop

_MS = 1_000_000
_STEP_NS = _MS // 4
_DATAGRAM_BYTES = 1_400
_DATAGRAM_BITS = _DATAGRAM_BYTES * 8
_CATCH_UP_NS = _MS
_MAX_BIT_S = 20e9  # of the sender's host


@dataclass
class SimulatedLink:
    """The link, its sender and its receiver; `run` carries them on.

    Attributes:
        bit_s: The capacity.
        queue_ms: The length of the queue, in time at the capacity.
        rtt_ms: The round trip without a queue.
        loss: The share that it loses at any rate.
        noise_ms: The mean of a random delay of each group.
        feedback_ms: The time between reports.
        buffer_bytes: The receiver's buffer, if it tells.
        stalls: The share of the time in which the sender's host is busy.
    """

    bit_s: float
    queue_ms: float = 20
    rtt_ms: float = 0.2
    loss: float = 0.0
    noise_ms: float = 0.0
    feedback_ms: float = 10
    buffer_bytes: int = 16 << 20
    stalls: float = 0.0
    loop: ClosedLoop = field(default_factory=lambda: ClosedLoop(_DATAGRAM_BYTES, 40, None, 0))
    sent: int = 0
    received: int = 0
    lowest_bit_s: float = float("inf")  # the lowest rate since `run` began
    queues_ms: list[float] = field(default_factory=list[float])

    def __post_init__(self) -> None:
        self._random = Random(7)  # noqa: S311 - repeatable
        self._now_ns = self._serial = self._advanced = self._delays_ns = self._delayed = 0
        self._newest = 0, 0
        self._due = self._queue = 0.0
        self._on_way: deque[tuple[float, int, int, int]] = deque()
        self._reports: deque[tuple[float, Feedback]] = deque()
        self._report_ns = 0.0
        self._stalled_until_ns = 0.0

    def run(self, seconds: float) -> tuple[float, float]:
        """Go on for a time; return the rate that arrived, and the share of what was sent that did not."""
        sent, received, until_ns, began_ns = self.sent, self.received, self._now_ns + seconds * 1e9, self._now_ns
        self.lowest_bit_s, self.queues_ms = float("inf"), []
        while self._now_ns < until_ns:
            self._now_ns += _STEP_NS
            self._send()
            self._receive()
            self._report()
            rate = self.loop.rate_bit_s
            self.lowest_bit_s = min(self.lowest_bit_s, _MAX_BIT_S if rate is None else rate)
            self.queues_ms.append(self._queue * _DATAGRAM_BITS / self.bit_s * 1e3)
        new = self.received - received
        share = 1 - new / max(1, self.sent - sent)
        return new * _DATAGRAM_BITS / ((self._now_ns - began_ns) / 1e9), share

    def _send(self) -> None:
        rate = min(_MAX_BIT_S, self.loop.rate_bit_s or _MAX_BIT_S)
        self._queue = max(0.0, self._queue - self.bit_s * _STEP_NS / 1e9 / _DATAGRAM_BITS)
        self._due = min(
            self._due + rate * _STEP_NS / 1e9 / _DATAGRAM_BITS, rate * _CATCH_UP_NS / 1e9 / _DATAGRAM_BITS + 2
        )
        if self._now_ns < self._stalled_until_ns:
            return
        if self._random.random() < self.stalls * _STEP_NS / (4 * _MS):
            self._stalled_until_ns = self._now_ns + 4 * _MS
        count = min(int(self._due), max(0, self.loop.window - (self.sent - self.loop.acknowledged)))
        self._due -= count
        taken = max(0, min(count, int(self.queue_ms / 1e3 * self.bit_s / _DATAGRAM_BITS - self._queue)))
        self._queue += taken
        delay_ns = self._queue * _DATAGRAM_BITS / self.bit_s * 1e9 + self.rtt_ms * _MS / 2
        if self.noise_ms:
            delay_ns += self._random.expovariate(1 / (self.noise_ms * _MS))
        kept = taken - sum(self._random.random() < self.loss for _ in range(taken if self.loss else 0))
        if taken:
            self._on_way.append((self._now_ns + delay_ns, self.sent + taken, kept, self._now_ns))
        self.sent += count

    def _receive(self) -> None:
        while self._on_way and self._on_way[0][0] <= self._now_ns:
            arrived_ns, advanced, kept, stamp_ns = self._on_way.popleft()
            self._advanced = max(self._advanced, advanced)
            self.received += kept
            self._newest = stamp_ns, int(arrived_ns)
            self._delays_ns += int(arrived_ns - stamp_ns - self.rtt_ms * _MS / 2) * kept
            self._delayed += kept

    def _report(self) -> None:
        if self._now_ns >= self._report_ns:
            self._report_ns += self.feedback_ms * _MS
            self._serial += 1
            stamp_ns, arrived_ns = self._newest
            delay_ns = self._delays_ns // self._delayed if self._delayed else 0
            self._delays_ns = self._delayed = 0
            counts = self._advanced, self.received, self.received * _DATAGRAM_BYTES, 0, delay_ns, self.buffer_bytes
            feedback = Feedback(self._serial, stamp_ns, self._now_ns - arrived_ns, self._now_ns, *counts)
            self._reports.append((self._now_ns + self.rtt_ms * _MS / 2, feedback))
        while self._reports and self._reports[0][0] <= self._now_ns:
            _at_ns, feedback = self._reports.popleft()
            self.loop.take(feedback, int(self.rtt_ms * _MS), self.sent, self._now_ns)
