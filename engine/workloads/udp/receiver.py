"""The receiver of a UDP session: a thread that counts datagrams, and feedback to the sender from the event loop."""

import contextlib
import errno
import socket
import struct
import threading
import time
from typing import Final

from ...model.counters.latency_histogram import bucket_of
from ...model.plan import SECOND_NS, Settings
from ...protocol.payload_datagrams import (
    FEEDBACK_INTERVAL_S,
    MAX_NUMBER,
    PAYLOAD_HEADER,
    Feedback,
    is_control_datagram,
)
from ..session import SessionContext, WorkerResources
from ..socket_io import NO_WAIT, SocketThread
from . import socket_options
from .delay_variation import DelayVariation, Jitter
from .receive_stamps import ReceiveStamps
from .sequence_tracker import SequenceTracker
from .session import OF_EARLIER_DATAGRAMS, RECEIVE_BYTES, DatagramSession
from .socket_options import (
    ANCILLARY_BYTES,
    IP_TOS,
    IPV6_TCLASS,
    SO_TIMESTAMPNS,
    SOL_UDP,
    TELL_WHOLE_SIZE,
    UDP_GRO,
)

_RECEIVE_TIMEOUT_S: Final = 0.1  # then the thread looks whether it is to end
_TIMESPEC: Final = struct.Struct("@qq")
_INT: Final = struct.Struct("@i")
_PROMPT_INTERVAL_S: Final = 0.01
_RECENT_NS: Final = 8_000_000
_REPORTS_IN_BUFFER: Final = 4
_PACKET_OVERHEAD_BITS: Final = 10  # a packet takes a KiB and more besides its payload
_NEVER: Final = 1 << 63
_HEAD_BYTES: Final = 2_048  # hold a header, and any control datagram
_CONGESTED: Final = 3  # the ECN field of a packet that met congestion, RFC 3168
_ECN_MASK: Final = 3
_TRAFFIC_CLASSES: Final = {(socket.IPPROTO_IP, IP_TOS), (socket.IPPROTO_IPV6, IPV6_TCLASS)}


# The state of the loop over datagrams: in another object it would cost each datagram one more look-up.
class DatagramReceiver(DatagramSession):
    """Counts the datagrams of one sender, and reports to it every 50 ms.

    A sender that follows its receiver gets more reports: every 10 ms, and with each quarter of the socket's buffer.

    Within one host a group is what one call of DatagramSender sent, and its numbers follow each other: only the
    first header is copied out of the kernel. A group of 64 KB takes 5 µs of CPU to receive instead of 9.

    A subclass for another header has its size, `_count_group` and `_read_number`; for another program's sender
    also `_is_own_sender`.
    """

    _role = "receiver"
    _is_own_sender = True
    _header_bytes = PAYLOAD_HEADER.size

    def __init__(self, sock: socket.socket, context: SessionContext, resources: WorkerResources) -> None:
        super().__init__(sock, context, resources)
        self._tracker = SequenceTracker()
        self._jitter = Jitter()
        self._delay = DelayVariation()
        self._stamps = ReceiveStamps()
        self._reads_heads = self._is_own_sender and socket_options.stays_within_host(sock)
        self._buffer = memoryview(bytearray(_HEAD_BYTES if self._reads_heads else RECEIVE_BYTES))
        self._received_bytes = 0
        self._invalid = 0
        self._marks = 0
        self._tos: int | None = None
        self._packets = 0  # as the kernel counts them: a group is one
        self._newest_stamp_ns = self._newest_received_ns = 0
        self._delay_sum_ns = self._delay_count = 0
        self._serial = self._reported_ns = 0
        self._gaps = self._gap_longest = 0
        self._drops_at_start = socket_options.read_socket_drops(sock)
        self._receive_buffer_bytes = 0
        self._report_lock = threading.Lock()
        self._report_bytes = self._report_at = _NEVER  # of payload and overhead
        self._received_at, self._advanced_at = (self._datagram_words[name] for name in ("received", "advanced"))
        self._earlier_received, self._earlier_advanced = (self._earlier[name] for name in ("received", "advanced"))
        self._put("received", 0)
        self._put("advanced", 0)
        self._adopt_settings()

    def change_settings(self, settings: Settings) -> None:
        """Take over the rate of new settings."""
        super().change_settings(settings)
        self._adopt_settings()

    def _adopt_settings(self) -> None:
        mode = socket_options.mode_under(self._settings, self._sock, self._requested_mode)
        self._receive_buffer_bytes = socket_options.set_up_receiver(self._sock, mode, self._settings)
        follows = self._settings.follows_receiver
        self._report_bytes = self._receive_buffer_bytes // _REPORTS_IN_BUFFER if follows else _NEVER
        self._report_at = 0 if follows else _NEVER

    def refresh(self) -> None:
        """Store every counter but those that the thread stores."""
        tracker, jitter = self._tracker, self._jitter
        self._stamps.measure()
        if self._newest_received_ns:
            self.last_received_ns = self._newest_received_ns
        self._put("duplicates", tracker.duplicates)
        self._put("late", tracker.late)
        self._put("reordered", tracker.reordered)
        self._put("reordered_3", tracker.reordered_3)
        self._put("extent", tracker.extent_max)
        self._put("jitter_max_ns", jitter.max_ns)
        gaps, longest = tracker.take_bursts()
        self._gaps = max(self._gaps, gaps)  # a counter that falls would be counted again when it rises
        self._gap_longest = max(self._gap_longest, longest)
        self._put("gaps", self._gaps)
        self._put("gap_longest", self._gap_longest)
        self._put("socket_dropped", self._socket_dropped())
        self._put("invalid", self._invalid + tracker.invalid)
        self._put("jitter_sum_ns", jitter.sum_ns)
        self._put("jitter_count", jitter.count)
        self._put("ce_marks", self._marks)
        self._put("received_tos", self._tos)
        self._put("receive_buffer_bytes", self._receive_buffer_bytes)

    def _socket_dropped(self) -> int | None:
        """Return the datagrams for which the socket had no room.

        The kernel counts a dropped group once; it is taken to be as large as the groups that arrived.
        """
        drops = socket_options.read_socket_drops(self._sock) if not self._closed else None
        if drops is None or self._drops_at_start is None:
            return None
        packets = drops - self._drops_at_start
        mean = (self._tracker.received + self._tracker.duplicates) / self._packets if self._packets else 1.0
        return round(packets * max(1.0, mean))

    def _start_io(self) -> None:
        socket_options.set_receive_timeout(self._sock, _RECEIVE_TIMEOUT_S)
        self._socket_thread = SocketThread(self._sock, self._receive_in_thread, self._rest, self._lose)
        self._loop.call_later(FEEDBACK_INTERVAL_S, self._send_feedback)

    def _receive_in_thread(self) -> bool:
        receive, buffers, header_bytes = self._sock.recvmsg_into, [self._buffer], self._header_bytes
        flags = TELL_WHOLE_SIZE if self._reads_heads else 0
        plain_class = None  # the last traffic class, if it has no mark: the same one needs no look
        while not self._is_stopping:
            try:
                size, ancillary, _flags, _address = receive(buffers, ANCILLARY_BYTES, flags)
            except (BlockingIOError, InterruptedError):
                continue
            except OSError as error:
                if error.errno in OF_EARLIER_DATAGRAMS:  # of feedback that did not leave
                    continue
                raise
            segment, received_ns = size, 0
            for level, kind, data in ancillary:
                if kind == SO_TIMESTAMPNS and level == socket.SOL_SOCKET:
                    seconds, nanoseconds = _TIMESPEC.unpack(data)
                    received_ns = seconds * SECOND_NS + nanoseconds - self._stamps.offset_ns
                elif kind == UDP_GRO and level == SOL_UDP:
                    segment = _INT.unpack_from(data)[0]
                elif data != plain_class:
                    plain_class = None if self._take_traffic_class(level, kind, data, size, segment) else data
            if size < header_bytes:
                self._invalid += bool(size)
            else:
                self._count_group(size, segment, received_ns or time.monotonic_ns())
        return True

    def _count_group(self, size: int, segment: int, received_ns: int) -> None:
        """Count the datagrams that the kernel handed over together, all of one size but for the last one."""
        first, stamp_ns, cookie = PAYLOAD_HEADER.unpack_from(self._buffer)
        if cookie != self._keys.cookie or first > MAX_NUMBER:
            self._take_other(size, segment)
        else:
            self._count_payload(first, stamp_ns, received_ns, size, segment)

    def _count_payload(self, first: int, stamp_ns: int, received_ns: int, size: int, segment: int) -> None:
        """Count a group whose first datagram has this number and stamp."""
        count = -(-size // segment)
        self._packets += 1
        new = self._tracker.add_run(first, 1) if count == 1 else self._count_numbers(first, count, size, segment)
        if not new:  # the delay of a datagram is its first copy's
            return
        delay_ns = self._delay.variation_of(stamp_ns, received_ns)
        self._words[self._latency_at + bucket_of(delay_ns)] += new
        self._jitter.count_datagram(stamp_ns, received_ns)
        self._delay_sum_ns += delay_ns
        self._delay_count += 1
        self._newest_stamp_ns, self._newest_received_ns = stamp_ns, received_ns
        self._received_bytes += new * segment
        self._words[self._bytes_at] = self._earlier_bytes + self._received_bytes
        # If they were as old as the last refresh, they would give another rate than the bytes.
        self._words[self._received_at] = self._earlier_received + self._tracker.received
        self._words[self._advanced_at] = self._earlier_advanced + self._tracker.advanced
        taken = self._received_bytes + (self._packets << _PACKET_OVERHEAD_BITS)
        if taken >= self._report_at:
            self._report_at = taken + self._report_bytes
            self._report()

    def _count_numbers(self, first: int, count: int, size: int, segment: int) -> int:
        """Count the numbers of a group; return how many of them are new."""
        tracker = self._tracker
        if size - (count - 1) * segment < self._header_bytes:
            count -= 1
            self._invalid += 1
        if self._reads_heads or self._read_number((count - 1) * segment) == first + count - 1:
            return tracker.add_run(first, count)
        new = 0
        for start in range(0, count * segment, segment):
            number = self._read_number(start)
            if number is None:
                self._invalid += 1
            else:
                new += tracker.add(number)
        return new

    def _read_number(self, start: int) -> int | None:
        """Return the number of the datagram that begins there; None if it is not one of this session."""
        number, _, cookie = PAYLOAD_HEADER.unpack_from(self._buffer, start)
        return number if cookie == self._keys.cookie and number <= MAX_NUMBER else None

    def _take_other(self, size: int, segment: int) -> None:
        """Handle other datagrams than this session's payload: repeated ones of the handshake, or a stranger's."""
        data = bytes(self._buffer[: min(size, segment)])
        if is_control_datagram(data):
            self._loop.call_soon_threadsafe(self._answer_control, self._sock, data)
        else:
            self._invalid += -(-size // segment)

    def _take_traffic_class(self, level: int, kind: int, data: bytes, size: int, segment: int) -> bool:
        """Note the traffic class of a group, if it is one; return whether it has the mark for congestion."""
        if (level, kind) not in _TRAFFIC_CLASSES:
            return False
        tos = data[0] if len(data) < _INT.size else _INT.unpack_from(data)[0]
        self._tos = tos
        if tos & _ECN_MASK != _CONGESTED:
            return False
        self._marks += -(-size // segment)
        return True

    def _send_feedback(self) -> None:
        if self._closed:
            return
        follows = self._settings.follows_receiver
        self._loop.call_later(_PROMPT_INTERVAL_S if follows else FEEDBACK_INTERVAL_S, self._send_feedback)
        if follows and time.monotonic_ns() - self._reported_ns < _RECENT_NS:
            return  # the thread has just reported
        try:
            self._report()
        except OSError as error:
            if error.errno == errno.ECONNREFUSED:
                self._lose(error)

    def _report(self) -> None:
        with self._report_lock:
            feedback = self._make_feedback()
            with contextlib.suppress(BlockingIOError):
                self._sock.send(self._keys.encode_feedback(feedback), NO_WAIT)

    def _make_feedback(self) -> Feedback:
        self._reported_ns = now_ns = time.monotonic_ns()
        self._serial += 1
        delays, count = self._delay_sum_ns, self._delay_count
        self._delay_sum_ns = self._delay_count = 0
        tracker = self._tracker
        return Feedback(
            serial=self._serial,
            echo_ns=self._newest_stamp_ns,
            hold_ns=max(0, now_ns - self._newest_received_ns) if self._newest_stamp_ns else 0,
            sent_ns=now_ns,
            advanced=tracker.advanced,
            received=tracker.received,
            received_bytes=self._received_bytes,
            socket_dropped=self._socket_dropped() or 0,
            delay_ns=delays // count if count else 0,
            buffer_bytes=self._receive_buffer_bytes if self._settings.follows_receiver else 0,
            has_unread=self._settings.follows_receiver and socket_options.has_unread(self._sock),
        )
