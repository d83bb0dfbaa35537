"""Sends a burst: datagrams one after the other as fast as the kernel takes them, the last ones at a pace.

The datagrams go one by one and not in groups (UDP_SEGMENT): a token bucket of Linux takes a group as one packet,
so a group either passes or is dropped whole. It blocks: call it in a thread.
"""

import errno
import select
import socket
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from ..model.plan import SECOND_NS
from ..protocol.burst_datagrams import BurstRequest, burst_number
from ..workloads.sockets import NOT_SENT
from ..workloads.udp.group import DatagramGroup
from ..workloads.udp.session import OF_EARLIER_DATAGRAMS

MAX_BURST_S: Final = 6.0
_POLL_MS: Final = 200
_TRIES: Final = 30
_AT_ONCE: Final = 32  # datagrams between two looks at the clock
_MIN_SLEEP_S: Final = 20e-6


@dataclass(frozen=True, slots=True)
class SentBurst:
    """What was sent: the time of each datagram, on this host's monotonic clock, and how many its kernel dropped."""

    stamps_ns: "array[int]"
    dropped: int

    @property
    def sent(self) -> int:
        """The number of datagrams."""
        return len(self.stamps_ns)


def send_burst(
    sock: socket.socket,
    cookie: int,
    request: BurstRequest,
    *,
    most_bit_s: int | None = None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> SentBurst:
    """Send a burst on a connected, non-blocking socket; end early after `MAX_BURST_S`, or if `is_stopped`.

    Args:
        sock: The socket.
        cookie: The cookie of the session's payload.
        request: The burst.
        most_bit_s: The highest rate of the payload; None without a limit.
        is_stopped: Asked before each datagram of the paced part, and now and then.

    Raises:
        OSError: The kernel refuses to send.
    """
    sender = _Sender(sock, cookie, request, is_stopped)
    sender.send(request.head, most_bit_s)
    tail_bit_s = request.tail_bit_s or most_bit_s
    if tail_bit_s is not None and most_bit_s is not None:
        tail_bit_s = min(tail_bit_s, most_bit_s)
    sender.send(request.tail, tail_bit_s)
    return SentBurst(sender.stamps_ns, sender.dropped)


class _Sender:
    """The state of one burst."""

    def __init__(
        self, sock: socket.socket, cookie: int, request: BurstRequest, is_stopped: Callable[[], bool]
    ) -> None:
        self._sock = sock
        self._group = DatagramGroup(request.datagram_bytes, 1, cookie)
        self._burst = request.burst
        self._is_stopped = is_stopped
        self._until_ns = time.monotonic_ns() + round(MAX_BURST_S * SECOND_NS)
        self._poll = select.poll()
        self._poll.register(sock.fileno(), select.POLLOUT)
        self.stamps_ns: array[int] = array("Q")
        self.dropped = 0

    def send(self, count: int, bit_s: int | None) -> None:
        """Send so many datagrams, on average at a rate if there is one: a sender that was held up catches up."""
        left, clock = count, time.monotonic_ns
        began_ns = clock()
        each_ns = 0.0 if bit_s is None else self._group.datagram_bytes * 8 * SECOND_NS / bit_s
        while left:
            now_ns = clock()
            if now_ns > self._until_ns or self._is_stopped():
                return
            early_ns = (count - left) * each_ns - (now_ns - began_ns)
            if early_ns > 0:
                time.sleep(max(_MIN_SLEEP_S, early_ns / SECOND_NS))
                continue
            due = _AT_ONCE if not each_ns else int(-early_ns / each_ns) + 1
            due = min(left, due, _AT_ONCE)
            for _ in range(due):
                self._send_one()
            left -= due

    def _send_one(self) -> None:
        """Send the next datagram, once the socket has room for it."""
        number, refusal = burst_number(self._burst, len(self.stamps_ns)), errno.ETIMEDOUT
        for _ in range(_TRIES):
            now_ns = time.monotonic_ns()
            try:
                self._sock.send(self._group.stamp(number, 1, now_ns))
            except (BlockingIOError, InterruptedError):
                self._poll.poll(_POLL_MS)
                continue
            except OSError as error:
                if error.errno == errno.ENOBUFS or error.errno in NOT_SENT:
                    self.dropped += 1
                elif error.errno in OF_EARLIER_DATAGRAMS or isinstance(error, ConnectionRefusedError):
                    refusal = error.errno or refusal
                    continue
                else:
                    raise
            self.stamps_ns.append(now_ns)
            return
        raise OSError(refusal, "the kernel takes no more datagrams")
