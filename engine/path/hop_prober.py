"""The probes of one end: ten a second to each hop of the path to the other end, and the routers' answers.

All probes go from one connected UDP socket to the other end's port, so that every router that shares its load among
parallel links puts them on the same one. A router that takes the last of a probe's TTL says so (ICMP type 11, or
ICMPv6 type 3), and the kernel keeps that in the socket's error queue (IP_RECVERR, ip(7)): no privilege is needed. A
probe with enough TTL comes to the other end, which echoes it. So each end answers the other's.

The prober sends at most 200 probes a second, with a TTL of at most 30, and only to the socket's address, which has
echoed the cookie of its session.
"""

import asyncio
import contextlib
import select
import socket
import sys
import time
from collections.abc import Callable
from typing import Final

from ..model.counters.path_trace import MAX_HOPS, PathTrace
from ..model.directions import Direction, End
from ..model.ip_address import unmap_ip_address
from ..model.plan import PATH_PROBE_SESSION
from ..protocol.probe_datagrams import DATAGRAM_PROBE_BYTES, ProbeDatagram, decode_echo, decode_probe
from ..protocol.tokens import RunSecret
from ..workloads.probes.probe_echo import ProbeEcho
from ..workloads.udp.error_queue import ErrorReport, read_error_queue
from ..workloads.udp.receive_stamps import ReceiveStamps, request_stamps
from ..workloads.udp.socket_options import forbid_fragments, header_bytes, report_errors, ttl_control
from .hop_windows import HopWindows

PROBES_S: Final = 10
MAX_PACKETS_S: Final = 200
ECHOES_S: Final = 40  # the other end sends ten, and in its first round one for each TTL beyond the path's length
_MAX_AWAITED: Final = 1_000
_TURN_DATAGRAMS: Final = 32
_ANCILLARY_BYTES: Final = 128
_RECEIVE_BYTES: Final = 256
_FULL_TTL: Final = 64
_MAX_UDP_BYTES: Final = 65_507
_SIZES: Final = 6  # that are tried for the path's MTU, one after the other
_SIZE_PAUSE_S: Final = 0.2
_SEND_TRIES: Final = 3
_MEASURE_PROBES: Final = 16


def path_secrets(secret: RunSecret, end: End) -> tuple[bytes, bytes]:
    """Return the secrets of an end's own probes and of the other end's: neither takes its own for the other's."""
    out, in_ = (secret.session_secret(flow, PATH_PROBE_SESSION, 0, None) for flow in Direction.DUPLEX.flows)
    return (out, in_) if end is End.NEAR else (in_, out)


class HopProber:
    """Probes from its making to `close`; `begin_load` says when payload begins to flow.

    Args:
        sock: The connected, non-blocking socket of the session, which the prober closes.
        end: This end.
        secrets: Of this end's probes, and of the other end's.
        packets_s: The maximum of probes a second.
        answer_other: Handles what is neither a probe nor an echo.

    Raises:
        OSError: The system cannot trace a path.
    """

    def __init__(
        self,
        sock: socket.socket,
        end: End,
        secrets: tuple[bytes, bytes],
        packets_s: int = MAX_PACKETS_S,
        answer_other: Callable[[bytes], object] = lambda _data: None,
    ) -> None:
        if sys.platform != "linux":
            raise OSError("the path can be traced on Linux only")
        self._sock, self._end, self._answer_other = sock, end, answer_other
        self._secret, other_secret = secrets
        self._peer = unmap_ip_address(str(sock.getpeername()[0]).partition("%")[0])  # a trace has no interfaces
        self._least_gap_s = 1 / max(1, min(packets_s, MAX_PACKETS_S))
        report_errors(sock)
        forbid_fragments(sock, ignores_path=True)
        request_stamps(sock)
        self._stamps = ReceiveStamps()
        self._echo = ProbeEcho(sock, other_secret, ECHOES_S, self._stamps)
        self._windows = HopWindows(time.monotonic_ns())
        self._awaited: dict[int, tuple[int, int]] = {}  # TTL and time of each probe, by its serial
        self._serial = 0
        self._ttl = 0
        self._sizes = _SIZES
        self._loop = asyncio.get_running_loop()
        self._epoll = select.epoll()  # uvloop alone would report one error only
        self._epoll.register(sock.fileno(), select.EPOLLIN)
        self._loop.add_reader(self._epoll.fileno(), self._read)
        self._due_s = self._loop.time()
        self._timer = self._loop.call_soon(self._probe_next)
        self._size_timer = self._loop.call_later(_SIZE_PAUSE_S, self._try_size, _MAX_UDP_BYTES)

    def begin_load(self) -> None:
        """Note that payload begins to flow: the windows of the idle link end here."""
        self._sizes = 0
        self._windows.begin_load(time.monotonic_ns())

    def take_trace(self) -> PathTrace:
        """Return the trace so far."""
        return self._windows.trace(self._end, time.monotonic_ns())

    def stop(self) -> None:
        """Send no more probes; the other end's are still echoed."""
        self._timer.cancel()
        self._size_timer.cancel()

    def close(self) -> None:
        """Send nothing more, and close the socket."""
        if self._epoll.closed:
            return
        self.stop()
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()
        self._sock.close()

    @property
    def _last_ttl(self) -> int:
        return self._windows.reached_ttl or MAX_HOPS

    def _probe_next(self) -> None:
        """Send the probe of the next TTL, and come back when the one after it is due."""
        now_s = self._loop.time()
        self._due_s = max(self._due_s + max(1 / (PROBES_S * self._last_ttl), self._least_gap_s), now_s)
        self._timer = self._loop.call_at(self._due_s, self._probe_next)
        self._ttl = self._ttl % self._last_ttl + 1
        self._serial += 1
        if self._serial % _MEASURE_PROBES == 0:
            self._stamps.measure()
        if len(self._awaited) >= _MAX_AWAITED:
            del self._awaited[next(iter(self._awaited))]
        sent_ns = time.monotonic_ns()
        self._awaited[self._serial] = self._ttl, sent_ns
        self._windows.note_sent(self._ttl, sent_ns)
        self._send(ProbeDatagram(self._serial, sent_ns).pack(self._secret), self._ttl)

    def _try_size(self, size_bytes: int) -> None:
        """Send a longer datagram than a link may carry, while the link is idle: a router reports its MTU."""
        if self._sizes <= 0:
            return
        self._sizes -= 1
        self._read_errors()
        self._send(bytes(size_bytes), _FULL_TTL)

    def _send(self, data: bytes, ttl: int) -> None:
        """Send a datagram with a TTL; a full queue loses it here, as another one on its way."""
        control = ttl_control(self._sock, ttl)
        for _ in range(_SEND_TRIES if len(data) == DATAGRAM_PROBE_BYTES else 1):
            try:
                self._sock.sendmsg([data], [control])
            except (BlockingIOError, InterruptedError):
                return
            except OSError:  # of an earlier probe, which a report explains
                self._read_errors()
            else:
                return

    def _read(self) -> None:
        """Take in what has arrived; a flood must not keep this end from sending."""
        self._read_errors()
        for _ in range(_TURN_DATAGRAMS):
            try:
                data, ancillary, _flags, _address = self._sock.recvmsg(_RECEIVE_BYTES, _ANCILLARY_BYTES)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self._read_errors()
                continue
            self._handle(data, ancillary)

    def _handle(self, data: bytes, ancillary: list[tuple[int, int, bytes]]) -> None:
        now_ns = time.monotonic_ns()
        echo = decode_echo(data, self._secret)
        if echo is not None:
            sent = self._awaited.pop(echo.serial, None)
            if sent is not None:
                held_ns = max(0, echo.answered_ns - echo.arrived_ns)
                self._take_echo(*sent, self._stamps.read(ancillary, sent[1], now_ns) - held_ns)
        elif self._echo.allows(now_ns):
            received = self._echo.received
            if not self._echo.answer(data, ancillary, now_ns):
                self._answer_other(data)
            elif self._echo.received > received:
                self._windows.note_received(now_ns)

    def _take_echo(self, ttl: int, sent_ns: int, answered_ns: int) -> None:
        """Note that the other end is at this TTL, or before it."""
        self._windows.reached_ttl = min(ttl, self._last_ttl)
        self._windows.note_answer(ttl, self._peer, sent_ns, answered_ns - sent_ns)

    def _read_errors(self) -> None:
        if self._sock.fileno() < 0:
            return
        for report in read_error_queue(self._sock, self._stamps, time.monotonic_ns())[0]:
            if report.is_time_exceeded:
                self._take_answer(report)
            elif report.is_too_long:
                self._take_size(report)

    def _take_answer(self, report: ErrorReport) -> None:
        probe = None if report.sender is None else decode_probe(report.quoted[:DATAGRAM_PROBE_BYTES], self._secret)
        sent = None if probe is None else self._awaited.pop(probe.serial, None)
        if sent is None or report.sender is None:
            return  # some routers quote no payload: these are silent hops
        ttl, sent_ns = sent
        if ttl == self._windows.reached_ttl:  # the path has become longer
            self._windows.reached_ttl = None
        self._windows.note_answer(ttl, unmap_ip_address(report.sender), sent_ns, report.arrived_ns - sent_ns)

    def _take_size(self, report: ErrorReport) -> None:
        """Try the MTU that a router or this host's kernel has reported, which a later link may refuse, too."""
        if report.sender is not None:
            self._windows.note_mtu(unmap_ip_address(report.sender), report.info)
        size_bytes = report.info - header_bytes(self._sock)
        if DATAGRAM_PROBE_BYTES < size_bytes <= _MAX_UDP_BYTES:  # a forged report may have 4 GiB
            self._size_timer.cancel()
            self._size_timer = self._loop.call_later(_SIZE_PAUSE_S, self._try_size, size_bytes)
