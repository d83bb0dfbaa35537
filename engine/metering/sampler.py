"""Samples of the counters of one end, each on that end's own monotonic clock."""

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from ..host.cpu import find_cpu_quotas, read_core_times, read_quota_wait, subtract_core_times
from ..host.nics.nic_counters import read_nic_counts
from ..model.counters.latency_histogram import diff_histograms, merge_counts, summarize_latency
from ..model.counters.samples import (
    CoreTimes,
    CpuWaits,
    DatagramProbeSample,
    DatagramSample,
    HandshakeSample,
    LatencyCounts,
    NicCounts,
    ProbeSample,
    Sample,
    SessionSample,
    difference,
)
from ..model.counters.session_counters import (
    DATAGRAM_COUNTER_NAMES,
    DATAGRAM_COUNTERS,
    TCP_COUNTER_NAMES,
    since_last,
)
from ..model.directions import Direction, End, sender_of
from ..model.plan import PROBE_SESSION, SECOND_NS, Plan
from ..protocol.peer_validation import MIN_INTERVAL_DIVISOR, min_interval_ns
from .idle_time import idle_ns
from .shared_counters import EMPTY_HISTOGRAM, ProbeCount, ProbeHistogram, SharedCounters, SlotReading

if TYPE_CHECKING:
    from ..host.queues.drop_counters import HostDropReader
    from ..host.queues.transmit_queue import TransmitQueueReader

_Key = tuple[Direction, int]
_Counts = dict[int, int]

_SHORTEST_SLEEP_NS: Final = 1_000_000
_LONGEST_CHECK_NS: Final = 10_000_000
_CHECK_DIVISOR: Final = 64  # a run of a number of bytes is measured for at most 1/64 of its time, or 1 ms, too long
_DATAGRAM_CUMULATIVE: Final = tuple(
    position for position, counter in enumerate(DATAGRAM_COUNTERS) if counter.kind == "cumulative"
)
_RTT_COUNTER: Final = TCP_COUNTER_NAMES.index("rtt_us")


class Sampler:
    """Takes the samples of one end of one run. `nic` names the interface that carries it, if that is known.

    Call `measure_idle` before payload flows, `start` when it does, then `run`, `take_sample` for the rest, and
    `close`.
    """

    def __init__(self, end: End, plan: Plan, counters: SharedCounters, nic: str | None = None) -> None:
        self._end = end
        self._interval_ns = plan.interval_ns
        self._min_interval_ns = plan.interval_ns // MIN_INTERVAL_DIVISOR
        self._min_limited_ns = min_interval_ns(plan)
        self._limit_bytes = plan.bytes_limit  # None once this end has received them
        self._has_received_all = False
        self._counters = counters
        self._started_ns = 0
        self._elapsed_ns = 0
        self._index = -1
        self._sessions = _SessionReader(end, plan, counters)
        self._probe = ProbeReader(counters, plan) if plan.probe and end is End.NEAR else None
        self._host = _HostReader(counters, nic)
        self._drops = _open_drop_reader(nic) if plan.workload.is_datagram else None
        has_queue = plan.responsiveness is not None and nic is not None
        self._queue = _open_queue_reader(nic) if has_queue and nic is not None else None

    def start(self) -> None:
        """Take the first reading: everything before it stays out of the samples."""
        self._started_ns = time.monotonic_ns()
        self._sessions.take()
        if self._probe is not None:
            self._probe.take_sample()
        self._host.take()
        if self._drops is not None:
            self._drops.take()
        if self._queue is not None:
            self._queue.start()

    def close(self) -> None:
        """End the readings in the background. Samples may still be taken."""
        if self._queue is not None:
            self._queue.close()

    async def measure_idle(self) -> ProbeSample | None:
        """Return a sample of the probe before payload flows; None if the plan has no probe."""
        return None if self._probe is None else await self._probe.measure_idle()

    @property
    def unsampled_ns(self) -> int:
        """Time since the last sample."""
        return self.elapsed_ns - self._elapsed_ns

    @property
    def elapsed_ns(self) -> int:
        """Time since the start."""
        return time.monotonic_ns() - self._started_ns

    async def run(
        self, on_sample: Callable[[Sample], None], until_ns: int | None, is_due: Callable[[], bool] = lambda: True
    ) -> None:
        """Pass a sample to `on_sample` each interval, until `until_ns` after the start; None is without end.

        If no sample `is_due` at the end of an interval, the interval is part of the next sample.
        """
        tick = 0
        while until_ns is None or self.elapsed_ns < until_ns:
            least_ns = max(self._elapsed_ns + self._min_interval_ns, tick)
            tick = (least_ns // self._interval_ns + 1) * self._interval_ns
            await self._sleep_until(tick if until_ns is None else min(tick, until_ns))
            sample = self.take_sample() if is_due() else None
            if sample is not None:
                on_sample(sample)

    async def _sleep_until(self, target_ns: int) -> None:
        """Sleep at least once, until the time or until this end has received all bytes of a limit.

        uvloop's timers are early by up to a millisecond: a sample would be a sliver.
        """
        is_early = True
        while is_early and not self._has_just_received_all():
            left_ns = target_ns - self.elapsed_ns
            if self._limit_bytes is not None:
                left_ns = min(left_ns, self.elapsed_ns // _CHECK_DIVISOR, _LONGEST_CHECK_NS)
            await asyncio.sleep(max(left_ns, _SHORTEST_SLEEP_NS) / SECOND_NS)
            is_early = self.elapsed_ns < target_ns

    def _has_just_received_all(self) -> bool:
        """Return, once, whether the receivers of this end have counted as many bytes as the run has to carry."""
        limit, flow_bytes = self._limit_bytes, self._counters.flow_bytes
        if limit is None or max(map(flow_bytes, self._sessions.received_flows)) < limit:
            return False
        self._limit_bytes = None
        self._has_received_all = True
        return True

    def take_sample(self, *, is_drain: bool = False, is_last: bool = False) -> Sample | None:
        """Return a sample of the time since the last one; None if that time is too short.

        With `is_drain` it has the datagrams that came after the end of the run. With `is_last` it may be as short
        as a whole run of a number of bytes: otherwise its counts would be in no sample.
        """
        elapsed_ns = self.elapsed_ns
        interval_ns = elapsed_ns - self._elapsed_ns
        # The rate of a shorter one would be noise. But all bytes of a limit may come in less time.
        is_whole, self._has_received_all = self._has_received_all or self._index < 0 or is_last, False
        if interval_ns < (self._min_limited_ns if is_whole else self._min_interval_ns):
            return None
        sessions, host = self._sessions.take(), self._host.take()
        # If this process was held up, the index skips, so that both ends' samples stay aligned in time.
        self._index = max(self._index + 1, round(elapsed_ns / self._interval_ns) - 1)
        self._elapsed_ns = elapsed_ns
        return Sample(
            end=self._end,
            index=self._index,
            elapsed_ns=elapsed_ns,
            interval_ns=interval_ns,
            sessions=sessions.sessions,
            cores=host.cores,
            process_cpu_ns=host.process_cpu_ns,
            latency=sessions.latency,
            datagrams=sessions.datagrams,
            delay_variation=sessions.delay_variation,
            is_drain=is_drain,
            busiest_worker_ns=host.busiest_worker_ns,
            nic=host.nic,
            probe=None if self._probe is None else self._probe.take_sample(),
            waits=host.waits,
            drops=None if self._drops is None else self._drops.take(),
            queue=None if self._queue is None else self._queue.take(),
        )


class _SessionParts(NamedTuple):
    """The parts of a sample about sessions."""

    sessions: tuple[SessionSample, ...]
    latency: tuple[LatencyCounts, ...]
    datagrams: tuple[DatagramSample, ...]
    delay_variation: tuple[LatencyCounts, ...]


class _SessionReader:
    """Reads the counts of each session since the last reading."""

    def __init__(self, end: End, plan: Plan, counters: SharedCounters) -> None:
        self._counters = counters
        self.received_flows = [f for f in Direction.DUPLEX.flows if sender_of(f, plan.workload) is end.other]
        self._requested_flows = self.received_flows if plan.workload.is_transactional else []
        self._has_datagrams = plan.workload.is_datagram
        # The histograms of transactions are at the end that requests them, those of datagrams at their receiver.
        self._delayed_flows = self.received_flows if self._has_datagrams else []
        # Whole answers are counted by their transactions: bytes that were read a moment earlier would disagree.
        self._answer_bytes = plan.transaction_sizes[1] if not plan.workload.is_bulk else None
        self._slots: dict[_Key, SlotReading] = {}
        self._latency: dict[_Key, bytes] = {}
        self._datagrams: dict[_Key, tuple[int | None, ...]] = {}

    def take(self) -> _SessionParts:
        """Read everything now.

        A slot is read right before its histogram: only counts between these two readings can differ.
        """
        slots: dict[_Key, SlotReading] = {}
        latency: dict[_Key, bytes] = {}
        datagrams: dict[_Key, tuple[int | None, ...]] = {}
        for direction in (Direction.OUT, Direction.IN):
            for session in self._counters.used_sessions(direction):
                slot = self._counters.read(direction, session)
                if slot is None:
                    continue
                slots[direction, session] = slot
                if direction in self._delayed_flows or direction in self._requested_flows:
                    latency[direction, session] = self._counters.read_latency(direction, session)
                if self._has_datagrams:
                    datagrams[direction, session] = self._counters.read_datagrams(direction, session)
        parts = self._since_last(slots, latency, datagrams)
        self._slots, self._latency, self._datagrams = slots, latency, datagrams
        return parts

    def _since_last(
        self,
        slots: dict[_Key, SlotReading],
        latency: dict[_Key, bytes],
        datagrams: dict[_Key, tuple[int | None, ...]],
    ) -> _SessionParts:
        """Return the counts since the last reading. A closed session without any is left out."""
        before = self._slots
        counts = {
            key: diff_histograms(self._latency.get(key, EMPTY_HISTOGRAM), words) for key, words in latency.items()
        }
        return _SessionParts(
            tuple(
                _session_sample(
                    before.get(key), slot, None if self._has_datagrams else counts.get(key), self._answer_bytes
                )
                for key, slot in slots.items()
                if slot.is_open or slot.bytes != _bytes_of(before.get(key)) or counts.get(key)
            ),
            tuple(_merge_sessions(flow, counts) for flow in self._requested_flows),
            tuple(_datagram_sample(key, self._datagrams.get(key), now) for key, now in datagrams.items()),
            tuple(_merge_sessions(flow, counts) for flow in self._delayed_flows),
        )


class _HostParts(NamedTuple):
    """The parts of a sample about the host."""

    cores: tuple[CoreTimes, ...] | None
    process_cpu_ns: int
    busiest_worker_ns: int
    nic: NicCounts | None
    waits: CpuWaits | None


class _HostReader:
    """Reads the work of the host's cores, the engine's processes and the interface since the last reading."""

    def __init__(self, counters: SharedCounters, nic: str | None) -> None:
        self._counters = counters
        self._nic = nic
        self._cores: tuple[CoreTimes, ...] | None = None
        self._process_ns = 0
        self._workers_ns: list[int] = []
        self._waits_ns: list[int | None] = []
        self._quotas = find_cpu_quotas()
        self._quota_ns: int | None = None
        self._nic_counts: NicCounts | None = None

    def take(self) -> _HostParts:
        """Read everything now."""
        cores, workers_ns = read_core_times(), self._counters.workers_cpu_ns()
        process_ns, nic_counts = time.process_time_ns() + sum(workers_ns), read_nic_counts(self._nic)
        parts = _HostParts(
            subtract_core_times(self._cores, cores),
            max(0, process_ns - self._process_ns),
            max((now - before for before, now in zip(self._workers_ns, workers_ns, strict=False)), default=0),
            self._nic_counts and nic_counts and difference(self._nic_counts, nic_counts),
            self._take_waits(),
        )
        self._cores, self._workers_ns = cores, workers_ns
        self._process_ns, self._nic_counts = process_ns, nic_counts
        return parts

    def _take_waits(self) -> CpuWaits | None:
        """Return the waits for a core since the last call; None if the system counts none."""
        before, quota_ns = self._waits_ns, self._quota_ns
        self._waits_ns, self._quota_ns = self._counters.workers_wait_ns(), read_quota_wait(self._quotas)
        rises = [now - was for was, now in zip(before, self._waits_ns, strict=False) if was is not None and now]
        waits = CpuWaits(max(rises, default=None), _rise(quota_ns, self._quota_ns))
        return None if waits == CpuWaits() else waits


def _open_drop_reader(nic: str | None) -> "HostDropReader":
    from ..host.queues.drop_counters import HostDropReader  # only a UDP run needs it

    return HostDropReader(nic)


def _open_queue_reader(nic: str) -> "TransmitQueueReader":
    from ..host.queues.transmit_queue import TransmitQueueReader  # only a responsiveness test needs it

    return TransmitQueueReader(nic)


def _merge_sessions(flow: Direction, counts: dict[_Key, _Counts]) -> LatencyCounts:
    """Return the latency of all sessions of a direction together."""
    merged: _Counts = {}
    for (direction, _), session_counts in counts.items():
        if direction is flow:
            merge_counts(merged, session_counts.items())
    return _latency_counts(flow, merged)


def _latency_counts(direction: Direction, counts: _Counts) -> LatencyCounts:
    buckets = sorted(counts)
    return LatencyCounts(direction, tuple(buckets), tuple(counts[bucket] for bucket in buckets))


def _datagram_sample(
    key: _Key, before: tuple[int | None, ...] | None, after: tuple[int | None, ...]
) -> DatagramSample:
    """Return the sample of a session's datagrams; without an earlier reading it started from zero."""
    values = list(after)
    for position in _DATAGRAM_CUMULATIVE:
        values[position] = _rise(None if before is None else before[position], values[position])
    return DatagramSample(*key, **dict(zip(DATAGRAM_COUNTER_NAMES, values, strict=True)))


def _bytes_of(slot: SlotReading | None) -> int:
    return 0 if slot is None else slot.bytes


def _rise(before: int | None, after: int | None) -> int | None:
    return None if after is None else max(0, after - (before or 0))


def _session_sample(
    before: SlotReading | None,
    after: SlotReading,
    counts: _Counts | None,
    answer_bytes: int | None,
) -> SessionSample:
    """Return the sample of a slot between two readings; without an earlier reading it started from zero.

    Args:
        before: the earlier reading, if any.
        after: the later reading.
        counts: the slot's transactions by latency; None if this end does not ask for any.
        answer_bytes: the size of each answer, if bytes are counted by whole answers.
    """
    latency = summarize_latency(counts or {})
    transactions = None if counts is None else sum(counts.values())
    bytes_ = max(0, after.bytes - _bytes_of(before))
    if transactions is not None and answer_bytes is not None:
        bytes_ = transactions * answer_bytes
    return SessionSample(
        after.direction,
        after.session,
        bytes_,
        transactions=transactions,
        latency_p50_ns=latency and latency.p50_ns,
        latency_p99_ns=latency and latency.p99_ns,
        **since_last(before and before.tcp, after.tcp),
    )


class ProbeReader:
    """Reads the probes' measurements since the last reading, at the near end, which sends their requests."""

    def __init__(self, counters: SharedCounters, plan: Plan) -> None:
        self._counters = counters
        self._words = EMPTY_HISTOGRAM
        self._read_ns = time.monotonic_ns()
        self._idle_ns = idle_ns(plan)
        self._further = None if plan.responsiveness is None else FurtherProbesReader(counters)

    def take_sample(self) -> ProbeSample:
        """Read everything now."""
        now_ns = time.monotonic_ns()
        words = self._counters.read_latency(Direction.OUT, PROBE_SESSION)
        slot = self._counters.read(Direction.OUT, PROBE_SESSION)
        latency = _latency_counts(Direction.OUT, diff_histograms(self._words, words))
        handshakes, datagrams = (None, None) if self._further is None else self._further.take()
        sample = ProbeSample(
            latency,
            now_ns - self._read_ns,
            None if slot is None else slot.tcp[_RTT_COUNTER],
            handshakes,
            datagrams,
        )
        self._words, self._read_ns = words, now_ns
        return sample

    async def measure_idle(self) -> ProbeSample:
        """Return a sample of a second or two with every session open and without payload."""
        self.take_sample()
        await asyncio.sleep(self._idle_ns / SECOND_NS)
        return self.take_sample()


class FurtherProbesReader:
    """Reads the measurements of the other two probes of a responsiveness test since the last reading."""

    def __init__(self, counters: SharedCounters) -> None:
        self._counters = counters
        self._words = dict.fromkeys(ProbeHistogram, EMPTY_HISTOGRAM)
        self._counts = dict.fromkeys(ProbeCount, 0)

    def take(self) -> tuple[HandshakeSample, DatagramProbeSample | None]:
        """Read everything now; None for datagrams if none was ever sent."""
        has_datagrams = self._counters.read_probe_count(ProbeCount.DATAGRAMS_SENT) > 0
        connect, answer = (self._take_histogram(each) for each in (ProbeHistogram.CONNECT, ProbeHistogram.ANSWER))
        handshakes = HandshakeSample(connect, answer, self._take_count(ProbeCount.HANDSHAKES_FAILED))
        if not has_datagrams:
            return handshakes, None
        latency = self._take_histogram(ProbeHistogram.ROUND_TRIP)
        rise_out = self._take_histogram(ProbeHistogram.RISE_OUT)
        rise_in = self._take_histogram(ProbeHistogram.RISE_IN, Direction.IN)
        sent = self._take_count(ProbeCount.DATAGRAMS_SENT)
        return handshakes, DatagramProbeSample(sent, sum(latency.counts), latency, rise_out, rise_in)

    def _take_histogram(self, histogram: ProbeHistogram, direction: Direction = Direction.OUT) -> LatencyCounts:
        before, self._words[histogram] = self._words[histogram], self._counters.read_probe_histogram(histogram)
        return _latency_counts(direction, diff_histograms(before, self._words[histogram]))

    def _take_count(self, count: ProbeCount) -> int:
        before, self._counts[count] = self._counts[count], self._counters.read_probe_count(count)
        return self._counts[count] - before
