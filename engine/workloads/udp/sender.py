"""The sender of a UDP session: paced datagrams from a thread, and the receiver's feedback on the event loop."""

import errno
import socket
import time
from typing import Final

from ...model.errors import RemoteProtocolError
from ...model.plan import SECOND_NS, Mode, Settings
from ...protocol.payload_datagrams import Feedback, is_control_datagram
from ..session import SessionContext, WorkerResources
from ..socket_io import NO_WAIT, SocketThread
from ..sockets import NOT_SENT
from . import socket_options
from .capacity_search import CapacitySearch
from .closed_loop import ClosedLoop
from .delay_variation import DelayVariation
from .group import DatagramGroup, StampedGroup, segments_in_group
from .pacing import Pacer
from .session import OF_EARLIER_DATAGRAMS, DatagramSession
from .time_slice import set_short_slice

_FEEDBACK_BYTES: Final = 2_048
_SILENCE_NS: Final = 800_000_000  # without feedback the sender stops: no host is flooded that does not listen
_LOSS_NS: Final = 5 * SECOND_NS
_REFUSED_NS: Final = SECOND_NS
_MIN_SLEEP_NS: Final = 20_000
_MAX_SLEEP_NS: Final = 50_000_000
_PAUSE_S: Final = 0.02
_WINDOW_SLEEP_S: Final = 100e-6
_DROPPED: Final = NOT_SENT | {errno.ENOMEM}
_TOO_LARGE: Final = {errno.EMSGSIZE, errno.EINVAL}  # EINVAL: a group whose segments do not fit the path's MTU
# IPsec cuts no groups up, and a filter may deny their size. Sending one after the other shows whether that was the
# cause.
_NOT_IN_GROUPS: Final = {errno.EIO, errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.ENOSYS}
REPORTS_STOPPED: Final = "the receiver's reports stopped: nothing has come from it for 5 s"


class DatagramSender(DatagramSession):
    """Sends numbered datagrams at the rate of the settings, or as fast as the receiver or the kernel takes them.

    It stops within a second if the receiver's feedback stops, and goes on when it comes again. A subclass for
    another header has `_make_group`; one without feedback sets `_feedback_ns` to a time in the future, and
    `_has_feedback` to False.
    """

    _role = "sender"
    _has_feedback = True

    def __init__(self, sock: socket.socket, context: SessionContext, resources: WorkerResources) -> None:
        super().__init__(sock, context, resources)
        self._number = 0
        self._sent_bytes = 0
        self._dropped = 0
        self._refused_at, self._refused_ns = -1, 0  # the number that the kernel refused, and since when
        self._rtt_us: int | None = None
        self._last_serial = 0
        self._feedback_ns = time.monotonic_ns()
        self._return_delay = DelayVariation()
        self._return_delay_ns: int | None = None
        self._is_grouped = False
        self._can_group = socket_options.set_segment(sock, 0)
        self._search: CapacitySearch | None = None
        self._closed_loop: ClosedLoop | None = None
        self._has_short_slice = False  # of the sending thread
        self._loss_goal = context.loss_goal
        self._adopt_settings()
        sessions = context.settings.sessions
        part = context.slot // 2 % sessions + 1  # a slot for each direction (metering/shared_counters.py)
        self._pacer = Pacer(self._rate_bit_s, self._group.datagram_bytes, time.monotonic_ns(), part, sessions)

    def change_settings(self, settings: Settings) -> None:
        """Take over the rate and the datagram size of new settings, from the next group on."""
        super().change_settings(settings)
        self._adopt_settings()

    def _adopt_settings(self) -> None:
        """Make the group and the pacer of the settings in force; the thread takes both at its next turn."""
        size = socket_options.datagram_size(self._settings, self._sock)
        rate = self._rate_bit_s
        mode = socket_options.mode_under(self._settings, self._sock, self._requested_mode)
        self._is_grouped = mode is Mode.RATE and self._can_group and self._fits_group(size)
        socket_options.set_up_sender(self._sock, rate)
        count = segments_in_group(size) if self._is_grouped else 1
        if not self._settings.follows_receiver:
            self._closed_loop = None
        if not self._settings.searches_rate:
            self._search = None
        elif self._search is None:
            self._search = CapacitySearch(self._settings, size, self._loss_goal)
        self._paced_bit_s = self._adopt_loop(size, count) if self._settings.follows_receiver else rate
        self._group = self._make_group(size, count)

    def _adopt_loop(self, datagram_bytes: int, count: int) -> int | None:
        """Make or change the closed loop of settings without a rate; return its rate."""
        most, now_ns = self._settings.search_max_bit_s, time.monotonic_ns()
        share = None if most is None else max(1, most // self._settings.sessions)
        if not self._has_feedback:
            return share
        if self._closed_loop is None:
            self._closed_loop = ClosedLoop(datagram_bytes, count, share, now_ns)
        else:
            self._closed_loop.change(datagram_bytes, count, share, now_ns)
        return self._closed_loop.rate_bit_s

    def _make_group(self, datagram_bytes: int, count: int) -> StampedGroup:
        return DatagramGroup(datagram_bytes, count, self._keys.cookie)

    def _take_group(self) -> StampedGroup:
        """Return the group of the settings in force, with the socket ready to cut it up: for the sending thread.

        If the event loop's thread changed the socket, the group before would be cut up by the size of the next one.
        """
        group = self._group
        socket_options.set_segment(self._sock, group.datagram_bytes if group.count > 1 else 0)
        is_paced = self._settings.rate_bit_s is not None and not self._settings.searches_rate
        if is_paced != self._has_short_slice:
            self._has_short_slice = is_paced
            set_short_slice(is_short=is_paced)
        return group

    def _fits_group(self, _datagram_bytes: int) -> bool:
        """Return whether the kernel may cut a group into such datagrams; one too long is an error anyway."""
        return True

    def refresh(self) -> None:
        """Store the sender's figures besides its counts; end a session whose receiver has gone."""
        self._put("datagram_bytes", self._group.datagram_bytes)
        self._put("rate_bit_s", 0 if self._closed_loop is not None else self._paced_bit_s or 0)
        if self._search is not None:
            self._put_search(self._search)
        self._put("is_grouped", int(self._is_grouped))
        self._put("sent_tos", socket_options.read_tos(self._sock))
        self._put("rtt_us", self._rtt_us)
        self._put("return_delay_us", None if self._return_delay_ns is None else self._return_delay_ns // 1_000)
        self._put("send_dropped", self._dropped)
        self._put("skipped", self._pacer.skipped)
        if not self._closed and not self._is_stopping and time.monotonic_ns() - self._feedback_ns > _LOSS_NS:
            self._end(REPORTS_STOPPED)

    def _put_search(self, search: CapacitySearch) -> None:
        best = search.best
        self._put("search_phase", search.phase)
        self._put("loss_free_bit_s", search.loss_free_bit_s)
        if best is not None:
            self._put("best_bit_s", best.bit_s)
            self._put("best_lost_ppm", round(best.lost_percent * 10_000))
            self._put("best_delay_us", best.delay_variation_ns // 1_000)
            self._put("best_rtt_us", best.rtt_ns // 1_000)

    def stop_sending(self) -> None:
        """Send no further payload; feedback still comes in."""
        self._is_stopping = True

    def _start_io(self) -> None:
        self._feedback_ns = time.monotonic_ns()
        self._socket_thread = SocketThread(self._sock, self._send_in_thread, self._rest, self._lose)
        self._loop.add_reader(self._sock, self._read_feedback)

    def _send_in_thread(self) -> bool:
        send, clock, words = self._sock.send, time.monotonic_ns, self._words
        sent_at, bytes_at = self._datagram_words["sent"], self._bytes_at
        earlier, earlier_bytes = self._earlier["sent"], self._earlier_bytes
        group, pacer, paced_bit_s = self._take_group(), self._pacer, self._paced_bit_s
        pacer.change(clock(), paced_bit_s, group.datagram_bytes)
        pacer.counts_skipped = self._closed_loop is None
        while not self._is_stopping:
            now_ns = clock()
            if group is not self._group or paced_bit_s != self._paced_bit_s:
                group, paced_bit_s = self._take_group(), self._paced_bit_s
                pacer.change(now_ns, paced_bit_s, group.datagram_bytes)
                pacer.counts_skipped = self._closed_loop is None
            if now_ns - self._feedback_ns > _SILENCE_NS:
                time.sleep(_PAUSE_S)
                pacer.change(clock(), paced_bit_s, group.datagram_bytes)  # nothing is due from the pause
                continue
            # For a whole group, or those of 0.25 ms: sending each as it is due took twice the CPU at 1 Gb/s.
            wait_ns = pacer.wait_ns(now_ns, group.count)
            if wait_ns:
                time.sleep(min(max(wait_ns, _MIN_SLEEP_NS), _MAX_SLEEP_NS) / SECOND_NS)
                continue
            loop = self._closed_loop
            if loop is not None and self._number - loop.acknowledged + group.count > loop.window:
                time.sleep(_WINDOW_SLEEP_S)
                pacer.change(clock(), paced_bit_s, group.datagram_bytes)  # nor from a wait for the receiver
                continue
            count = pacer.take(now_ns, group.count)
            datagrams = group.stamp(self._number, count, now_ns)
            try:
                send(datagrams)
            except OSError as error:
                if group is self._group and not self._survives(error, count):
                    raise
                continue
            self._number += count
            self._sent_bytes += count * group.datagram_bytes
            words[sent_at] = earlier + self._number
            words[bytes_at] = earlier_bytes + self._sent_bytes
        return True

    def _survives(self, error: OSError, count: int) -> bool:
        """Handle a failed send; return whether the session goes on."""
        if self._is_stopping or isinstance(error, BlockingIOError | InterruptedError):
            return True
        if error.errno in _DROPPED:  # this host has no room or no route for them: they count as sent
            self._number += count
            self._dropped += count
            self._put("sent", self._number)
            return True
        if error.errno in _TOO_LARGE:
            size = self._group.datagram_bytes
            if socket_options.datagram_size(self._settings, self._sock) != size:
                self._adopt_in_thread()  # a smaller MTU has come, or settings whose group is being made
                return True
            if self._is_mtu_larger_again(size):
                return True
            raise OSError(self._explain_size(size)) from error
        if self._is_grouped and error.errno in _NOT_IN_GROUPS:
            self._can_group = False
            self._adopt_in_thread()
            return True
        return False

    def _adopt_in_thread(self) -> None:
        """Adopt the settings in the sending thread: again, if the event loop has changed them meanwhile."""
        settings = None
        while settings is not self._settings:
            settings = self._settings
            self._adopt_settings()

    def _is_mtu_larger_again(self, datagram_bytes: int) -> bool:
        """Return whether datagrams fit that the kernel has refused just now: the MTU fell for a moment.

        Without progress for a while the kernel has another reason.
        """
        now_ns = time.monotonic_ns()
        if self._number != self._refused_at:
            self._refused_at, self._refused_ns = self._number, now_ns
        mtu = socket_options.read_path_mtu(self._sock)
        is_fitting = mtu is not None and datagram_bytes + socket_options.header_bytes(self._sock) <= mtu
        if not is_fitting or now_ns - self._refused_ns > _REFUSED_NS:
            return False
        time.sleep(_PAUSE_S)
        return True

    def _read_feedback(self) -> None:
        try:
            data = self._sock.recv(_FEEDBACK_BYTES, NO_WAIT)
        except BlockingIOError:
            error = self._drain_errors()
            if error is not None and error.errno not in OF_EARLIER_DATAGRAMS:
                self._lose(error)
            return
        except OSError as error:
            if error.errno not in OF_EARLIER_DATAGRAMS:
                self._handle_error(error)
            return
        self._take_datagram(data)

    def _take_datagram(self, data: bytes) -> None:
        if not is_control_datagram(data):
            return
        try:
            feedback = self._keys.decode_feedback(data)
        except RemoteProtocolError:
            self._answer_control(self._sock, data)
            return
        if feedback.serial > self._last_serial:
            self._take_feedback(feedback)

    def _take_feedback(self, feedback: Feedback) -> None:
        now_ns = time.monotonic_ns()
        self._last_serial, self._feedback_ns, self.last_received_ns = feedback.serial, now_ns, now_ns
        self._return_delay_ns = self._return_delay.variation_of(feedback.sent_ns, now_ns)
        if feedback.echo_ns:
            rtt_ns = now_ns - feedback.echo_ns - feedback.hold_ns
            if rtt_ns > 0:
                self._rtt_us = max(1, rtt_ns // 1_000)
        if self._search is not None:
            self._paced_bit_s = self._search.take(feedback, (self._rtt_us or 0) * 1_000)
        if self._closed_loop is not None:
            self._closed_loop.take(feedback, (self._rtt_us or 0) * 1_000, self._number, now_ns)
            self._paced_bit_s = self._closed_loop.rate_bit_s

    def _lose(self, error: OSError | None) -> None:
        if error is not None and error.errno is None:  # a text of this module
            self._end(str(error))
        else:
            super()._lose(error)
