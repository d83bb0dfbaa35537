"""The probe of datagrams: a hundred a second, echoed by the far end, whatever their latency.

It does not wait for an echo before it sends the next one: a full queue is measured as often as an empty one, and a
lost datagram delays none. The kernel's times of arrival keep both hosts' programs out of the figures: neither the
far end's time to answer nor a late start of this thread counts.
"""

import errno
import logging
import select
import socket
import threading
from collections.abc import Callable
from time import monotonic_ns
from typing import Final

from ...metering.shared_counters import (
    ProbeCount,
    ProbeHistogram,
    SharedCounters,
    probe_count_word,
    probe_histogram_offset,
)
from ...model.counters.latency_histogram import bucket_of
from ...model.errors import explain_os_error
from ...model.plan import SECOND_NS
from ...protocol.probe_datagrams import DATAGRAM_PROBE_BYTES, EchoDatagram, ProbeDatagram, decode_echo
from ..socket_io import begin_thread
from ..udp.receive_stamps import ReceiveStamps, request_stamps
from .one_way_delay import OneWayDelays

DATAGRAM_PACE_NS: Final = SECOND_NS // 100
SILENCE_NS: Final = 3 * SECOND_NS  # without any echo: a warning
_MAX_AWAITED: Final = 1_000  # 10 s: later ones count as lost
_MAX_REFUSALS: Final = 10  # one after the other
_TURN_DATAGRAMS: Final = 32
_CLOCK_PROBES: Final = 10
_HELD_TOLERANCE_NS: Final = 1_000_000
_ANCILLARY_BYTES: Final = 128
_MILLISECOND_NS: Final = 1_000_000
_JOIN_S: Final = 2.0
_log = logging.getLogger(__name__)


# State that its thread and the worker's loop share, and the places of its counters.
class DatagramProbe:
    """Sends datagrams and counts their echoes, from `start` to `stop`.

    Args:
        sock: the connected socket of the probe's session, after its handshake. The probe closes it.
        secret: the session's secret.
        counters: the counters to count in.
        on_lost: called once, in the probe's thread, with the reason if the far end does not answer any more.
    """

    def __init__(
        self, sock: socket.socket, secret: bytes, counters: SharedCounters, on_lost: Callable[[str], None]
    ) -> None:
        self._sock = sock
        self._secret = secret
        self._on_lost = on_lost
        self._words = counters.words
        self._sent_at = probe_count_word(ProbeCount.DATAGRAMS_SENT)
        self._round_trip_at = probe_histogram_offset(ProbeHistogram.ROUND_TRIP)
        self._rise_out_at = probe_histogram_offset(ProbeHistogram.RISE_OUT)
        self._rise_in_at = probe_histogram_offset(ProbeHistogram.RISE_IN)
        self._stamps = ReceiveStamps()
        self._delays = OneWayDelays()
        self._awaited: dict[int, int] = {}  # when each was sent, by its serial
        self._serial = 0
        self._refusals = 0
        self._answered_ns = monotonic_ns()
        self._is_lost = False
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="datagram probe", daemon=True)

    def start(self) -> None:
        """Send the first datagram; raise OSError if the system gives no further thread."""
        request_stamps(self._sock)
        self._sock.setblocking(False)
        begin_thread(self._thread)

    def stop(self) -> None:
        """Send no more, and close the socket."""
        self._is_stopping = True
        if self._thread.is_alive():
            self._thread.join(_JOIN_S)
        self._sock.close()

    def _run(self) -> None:
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        due_ns = monotonic_ns()
        while not self._is_stopping:
            now_ns = monotonic_ns()
            if now_ns >= due_ns:
                due_ns = max(due_ns + DATAGRAM_PACE_NS, now_ns)
                self._send()
                self._check_silence(now_ns)
            poll.poll(max(0, due_ns - monotonic_ns()) / _MILLISECOND_NS)
            for _ in range(_TURN_DATAGRAMS):  # a flood must not keep it from sending
                if self._is_stopping or not self._receive():
                    break

    def _send(self) -> None:
        self._serial += 1
        if self._serial % _CLOCK_PROBES == 0:
            self._stamps.measure()
        if len(self._awaited) >= _MAX_AWAITED:
            del self._awaited[next(iter(self._awaited))]
        self._words[self._sent_at] += 1
        sent_ns = monotonic_ns()
        self._awaited[self._serial] = sent_ns
        try:
            self._sock.send(ProbeDatagram(self._serial, sent_ns).pack(self._secret))
        except OSError as error:  # it is lost here, as on its way
            self._take_error(error)

    def _receive(self) -> bool:
        """Take in the next datagram; return whether there was one, or an error."""
        try:
            data, ancillary, _flags, _address = self._sock.recvmsg(DATAGRAM_PROBE_BYTES + 1, _ANCILLARY_BYTES)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            self._take_error(error)
            return True
        now_ns = monotonic_ns()
        echo = decode_echo(data, self._secret)
        sent_ns = None if echo is None else self._awaited.pop(echo.serial, None)
        if echo is not None and sent_ns is not None:
            self._count(echo, sent_ns, self._stamps.read(ancillary, sent_ns, now_ns))
        return True

    def _count(self, echo: EchoDatagram, sent_ns: int, received_ns: int) -> None:
        """Count an echo, unless the far end reports a longer time than its round trip."""
        held_ns, away_ns = echo.answered_ns - echo.arrived_ns, received_ns - sent_ns
        if not 0 <= held_ns <= away_ns + _HELD_TOLERANCE_NS:
            return
        self._answered_ns, self._refusals = received_ns, 0
        rise_out_ns, rise_in_ns = self._delays.rises_of(sent_ns, echo.arrived_ns, echo.answered_ns, received_ns)
        words = self._words
        words[self._rise_out_at + bucket_of(rise_out_ns)] += 1
        words[self._rise_in_at + bucket_of(rise_in_ns)] += 1
        words[self._round_trip_at + bucket_of(max(0, away_ns - held_ns))] += 1

    def _take_error(self, error: OSError) -> None:
        _log.debug("datagram probe: %r", error)
        if error.errno == errno.ECONNREFUSED:
            self._refusals += 1
            if self._refusals >= _MAX_REFUSALS:
                self._lose(explain_os_error(error))

    def _check_silence(self, now_ns: int) -> None:
        if now_ns - self._answered_ns >= SILENCE_NS:
            self._lose(f"no echo came back for {SILENCE_NS / SECOND_NS:g} s")

    def _lose(self, why: str) -> None:
        """Report it once; the probe goes on, because the path may carry it again."""
        if not self._is_lost:
            self._is_lost = True
            self._on_lost(why)
