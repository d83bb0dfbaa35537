"""Plausibility of the far end's figures and names: its clock against this end's, its bytes against any wire's.

Pure: time is an argument. The receiver's count is the result of a run, and the far end may be the receiver.
Impossible figures end the run; unlikely ones are a warning. Impossible names are made possible: they change no
figure, and a host with an odd name can be tested.
"""

import re
from collections.abc import Callable
from dataclasses import replace
from operator import attrgetter
from typing import Final

from ..model.counters.samples import CpuWaits, Sample, SessionSample
from ..model.counters.session_counters import BUFFER_COUNTER_NAMES
from ..model.directions import End, sender_of
from ..model.errors import RemoteProtocolError
from ..model.host_info import HostInfo
from ..model.plan import MAX_DATAGRAM_BYTES, MAX_SESSIONS, SECOND_NS, Plan
from ..model.texts.warning_text import WarningText, bytes_implausible, clocks_differ, seconds_text

MIN_INTERVAL_DIVISOR: Final = 20  # of an interval: no end takes a sample that is shorter than that
_MIN_LIMITED_NS: Final = 1_000_000  # a number of bytes may be carried in no time
_AHEAD_NS: Final = 30 * SECOND_NS  # the far clock starts first, and `Begun` may take long to arrive
_DRIFT_PERCENT: Final = 2  # crystals differ by 0.01 %, clocks of virtual machines by more
_MAX_BYTES_NS: Final = 12_500  # 100 Tb/s
_MAX_CORES: Final = 65_536
_BUFFERS_BYTES: Final = 1 << 30
_MAX_DATAGRAMS_NS: Final = 150  # those bytes in the shortest frames of Ethernet
_BUFFERED_DATAGRAMS: Final = 1 << 24
_MAX_TOS: Final = 255
_MAX_QUEUED_BYTES: Final = 1 << 40  # beyond any host's memory for packets
_read_buffers: Callable[[SessionSample], tuple[int | None, ...]] = attrgetter(
    *(name for name in BUFFER_COUNTER_NAMES if name.endswith("_bytes"))
)
_MIN_READING_NS: Final = 1_000_000
_SETTLED_NS: Final = 2 * SECOND_NS
_SETTLED_INTERVALS: Final = 4
_MAX_NEWS: Final = 1_024  # a setting's 256 sessions are opened and closed, and reopened once more
_MAX_NOTICES: Final = 64
_NAME_CHARACTERS: Final = 15  # of an interface: IFNAMSIZ without its NUL, on Linux and the BSDs
_TOKEN_CHARACTERS: Final = 32  # of a driver, a link's kind, a queueing discipline or a congestion control
_NOT_IN_NAME: Final = re.compile(r"[\s/:]|^-")  # as dev_valid_name of Linux; a dash would begin an option
_NOT_IN_TOKEN: Final = re.compile(r"[^\w.-]|^-", re.ASCII)
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"


def replace_impossible_names(host: HostInfo) -> HostInfo:
    """Return a peer's description in which a kernel could have each name of its kernel.

    Impossible characters are replaced, and a name that is too long is cut. The host's own name and system are only
    for the user, and stay as they are.
    """
    nic, tcp = host.nic, host.tcp
    if nic is not None:
        name = _NOT_IN_NAME.sub(_REPLACEMENT, nic.name[:_NAME_CHARACTERS])
        name = _REPLACEMENT if name in {"", ".", ".."} else name
        nic = replace(nic, name=name, kind=_replace_in_token(nic.kind), qdisc=_replace_in_token(nic.qdisc))
    if tcp is not None:
        tcp = replace(tcp, congestion=_replace_in_token(tcp.congestion))
    return replace(host, nic=nic, tcp=tcp)


def _replace_in_token(text: str | None) -> str | None:
    return None if text is None else _NOT_IN_TOKEN.sub(_REPLACEMENT, text[:_TOKEN_CHARACTERS])


def min_interval_ns(plan: Plan) -> int:
    """Return the shortest time that any sample of a run covers."""
    shortest_ns = plan.interval_ns // MIN_INTERVAL_DIVISOR
    return shortest_ns if plan.bytes_limit is None else min(shortest_ns, _MIN_LIMITED_NS)


class _DatagramCounts:
    """The datagrams that both ends have reported so far."""

    def __init__(self) -> None:
        self._total = 0
        self._sent = dict.fromkeys(End, 0)
        self._received = dict.fromkeys(End, 0)
        self._drained: set[End] = set()

    def count_sample(self, sample: Sample) -> None:
        """Add a sample of either end."""
        if sample.is_drain:
            self._drained.add(sample.end)
        for part in sample.datagrams:
            self._sent[sample.end] += part.sent or 0
            self._received[sample.end] += part.received or 0

    def check(self, sample: Sample) -> None:
        """Raise RemoteProtocolError for a sample of the far end that no run has."""
        if End.FAR in self._drained:
            raise RemoteProtocolError("a sample came after those of its datagrams that were still on their way")
        for part in sample.datagrams:
            counts = (part.sent, part.advanced, part.received, part.duplicates, part.late, part.invalid)
            self._total += sum(count or 0 for count in counts)
            if max(part.sent_tos or 0, part.received_tos or 0) > _MAX_TOS or (part.is_grouped or 0) > 1:
                raise RemoteProtocolError("it reports settings of datagrams that no packet has")
            if (part.datagram_bytes or 0) > MAX_DATAGRAM_BYTES:
                raise RemoteProtocolError(f"it reports datagrams of {part.datagram_bytes} bytes")
        self._total += sum(count for part in sample.delay_variation for count in part.counts)
        if self._total > sample.elapsed_ns * _MAX_DATAGRAMS_NS + _BUFFERED_DATAGRAMS:
            raise RemoteProtocolError(
                f"it reports more datagrams in {seconds_text(sample.elapsed_ns)} than any link carries"
            )

    @property
    def discrepancy(self) -> str | None:
        """A warning about more datagrams received than sent; known once none is on its way any more."""
        if len(self._drained) < len(End):
            return None
        for end in End:
            received, sent = self._received[end], self._sent[end.other]
            if received > sent:
                return WarningText.DATAGRAMS_IMPLAUSIBLE.format(
                    receiver=end.label, received=received, sender=end.other.label, sent=sent
                )
        return None


# Each attribute is a sum or a bound that a further sample is checked against.
class PeerValidator:
    """Checks the far end of one run. Methods raise RemoteProtocolError for impossible figures."""

    def __init__(self, plan: Plan) -> None:
        self._workload = plan.workload
        self._measures_queues = plan.responsiveness is not None
        self._interval_ns = plan.interval_ns
        self._min_interval_ns = min_interval_ns(plan)
        self._index = -1
        self._elapsed_ns = 0
        self._arrived_ns = 0  # the last sample, by this end's clock
        self._bytes = 0
        self._cpu_ns = 0
        self._waits_ns = 0
        self._others_bytes = 0
        self._received = {End.NEAR: 0, End.FAR: 0}
        self._sent = {End.NEAR: 0, End.FAR: 0}
        self._datagrams = _DatagramCounts()
        self._news_left = _MAX_NEWS
        self._notices_left = _MAX_NOTICES

    def add_near_sample(self, sample: Sample) -> None:
        """Add a sample of this end."""
        self._count(sample)

    def check_far_sample(self, sample: Sample, now_ns: int) -> None:
        """Check and add a sample of the far end that arrived `now_ns` after this end's start."""
        if sample.index <= self._index:
            raise RemoteProtocolError(f"sample {sample.index} came after sample {self._index}")
        if sample.elapsed_ns - sample.interval_ns < self._elapsed_ns:
            raise RemoteProtocolError("its clock went backwards")
        if sample.interval_ns < self._min_interval_ns:
            raise RemoteProtocolError(f"a sample of {sample.interval_ns / 1e6:g} ms is far shorter than requested")
        if sample.elapsed_ns > now_ns + now_ns * _DRIFT_PERCENT // 100 + _AHEAD_NS:
            raise RemoteProtocolError(
                f"its clock counts {seconds_text(sample.elapsed_ns)} of a test that has lasted "
                f"{seconds_text(now_ns)} here"
            )
        if sample.index > sample.elapsed_ns * MIN_INTERVAL_DIVISOR // self._interval_ns + 1:
            raise RemoteProtocolError(f"a run of {seconds_text(sample.elapsed_ns)} has no sample {sample.index}")
        has_datagrams = sample.is_drain or sample.datagrams or sample.delay_variation
        if has_datagrams and not self._workload.is_datagram:
            raise RemoteProtocolError("it reports datagrams of a test over TCP")
        self._datagrams.check(sample)
        self._check_queues(sample)
        self._index, self._elapsed_ns, self._arrived_ns = sample.index, sample.elapsed_ns, now_ns
        self._bytes += sum(session.bytes for session in sample.sessions)
        self._cpu_ns += sample.process_cpu_ns or 0
        if self._bytes > self._elapsed_ns * _MAX_BYTES_NS + _BUFFERS_BYTES:
            raise RemoteProtocolError(
                f"it reports more bytes in {seconds_text(self._elapsed_ns)} than any link carries"
            )
        if self._cpu_ns > self._elapsed_ns * _MAX_CORES:
            raise RemoteProtocolError("it reports more CPU time than any host has")
        waits = sample.waits or CpuWaits()
        self._waits_ns += (waits.worker_ns or 0) + (waits.quota_ns or 0)
        if self._waits_ns > self._elapsed_ns * _MAX_CORES:
            raise RemoteProtocolError("it reports more time without a core than any host's processes have")
        self._check_others(sample)
        self._count(sample)

    def _check_others(self, sample: Sample) -> None:
        others = sample.others
        if others is None:
            return
        self._others_bytes += others.received_bytes + others.sent_bytes
        if not others.tests <= others.sessions <= others.tests * MAX_SESSIONS:
            raise RemoteProtocolError(f"it reports {others.tests} other tests with {others.sessions} sessions")
        if self._others_bytes > self._elapsed_ns * _MAX_BYTES_NS + _BUFFERS_BYTES:
            raise RemoteProtocolError("it reports more payload of other tests than any link carries")

    def _check_queues(self, sample: Sample) -> None:
        queue = sample.queue
        if queue is not None and not self._measures_queues:
            raise RemoteProtocolError("it reports what waits to be sent, in a test that does not ask for it")
        held = (_read_buffers(session) for session in sample.sessions)
        if max((size for sizes in held for size in sizes if size is not None), default=0) > _MAX_QUEUED_BYTES:
            raise RemoteProtocolError("it reports more bytes in its sockets than any host holds")
        if queue is None:
            return
        backlog_bytes, most_bytes = queue.backlog_bytes or 0, queue.most_backlog_bytes or 0
        if max(most_bytes, queue.driver_bytes or 0) > _MAX_QUEUED_BYTES or backlog_bytes > most_bytes:
            raise RemoteProtocolError("it reports a queue that no interface has")
        if not 1 <= queue.readings <= sample.interval_ns // _MIN_READING_NS + 1:
            raise RemoteProtocolError(f"it reports {queue.readings} readings of its queue in one sample")
        if (queue.dropped or 0) > sample.elapsed_ns * _MAX_DATAGRAMS_NS:
            raise RemoteProtocolError("it reports more dropped packets than any link carries")

    def note_settings_change(self) -> None:
        """Allow for the sessions of changed settings."""
        self._news_left += _MAX_NEWS

    def count_session_event(self) -> None:
        """Count a session that was opened or closed. They fill the run log, so their number is limited."""
        self._news_left -= 1
        if self._news_left < 0:
            raise RemoteProtocolError("it reports more sessions than requested")

    def count_notice(self) -> None:
        """Count a text for the user; their number is limited."""
        self._notices_left -= 1
        if self._notices_left < 0:
            raise RemoteProtocolError("it sends too many notices")

    def find_discrepancies(self, now_ns: int) -> list[str]:
        """Return warnings about a run that ended in order `now_ns` after its start, after its last sample."""
        warnings = [self._check_clock(now_ns), self._check_bytes(now_ns), self._datagrams.discrepancy]
        return [text for text in warnings if text is not None]

    def _check_clock(self, now_ns: int) -> str | None:
        """Return a warning if the far clock counts another time than has passed here.

        The far end stops after this end's message and before its own last sample arrives. On a slow link both wait
        in queues for seconds, which is not the clock's fault.
        """
        allowed_ns = _SETTLED_NS + now_ns * _DRIFT_PERCENT // 100
        if now_ns - allowed_ns <= self._elapsed_ns <= max(now_ns, self._arrived_ns) + allowed_ns:
            return None
        return clocks_differ(near_ns=now_ns, far_ns=self._elapsed_ns)

    def _check_bytes(self, now_ns: int) -> str | None:
        sent, received = self._sent[End.NEAR], self._received[End.FAR]
        # A short run's last acknowledgements are read after its last bytes.
        if now_ns < max(_SETTLED_NS, _SETTLED_INTERVALS * self._interval_ns):
            return None
        if received <= 2 * sent + _BUFFERS_BYTES // 16:
            return None
        return bytes_implausible(received=received, acknowledged=sent)

    def _count(self, sample: Sample) -> None:
        end = sample.end
        self._datagrams.count_sample(sample)
        for session in sample.sessions:
            counts = self._sent if sender_of(session.direction, self._workload) is end else self._received
            counts[end] += session.bytes
