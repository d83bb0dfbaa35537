"""The place of the queue that delays all traffic under load: at a sender's own host, or in the path.

Measured: the rise of latency under load (engine/results/responsiveness), in each direction by the one-way delays of
datagrams, if these pass; the queues in the queueing discipline and the driver of the sender's interface, and the
rate at which that interface sent; and the round trips of the loaded sessions (tcpi_rtt).

Meaning: a packet waits for the packets before it in its queue, bytes / rate. If that explains at least half of the
rise, the queue is at the sender's host; else it is in the path, before a slower link. Data in the sender's sockets
waits too, and delays no other traffic. With fair queueing the sessions wait in queues of their own: their round
trips rise, and those of the probes do not, which is not a fault. If the probes' round trips rise, and those of the
sessions, which the kernel measures, do not, the reason is not a queue: a busy CPU answers late.

A load can fill the queue of the other direction too: a download's acknowledgements fill a slow uplink.

Findings: `queue-local`, `queue-remote`, `queue-path`, and `no-queue` if there is none of these.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from ....engine.model.directions import Direction, End, sender_of
from ....engine.model.workload import Workload
from ....engine.results.responsiveness.result import Latency, LoadedLatency, Responsiveness, SenderQueue
from ...number_text import LOAD_NAMES, format_quantity, format_rate, format_share, format_time
from .. import remedies
from ..core_load import hottest_busy
from ..evidence import EndEvidence, Evidence, end_name
from ..finding import Finding

_LEAST_LOCAL_NS: Final = 1_000_000  # less is one burst of an interface with offloads
_LEAST_PATH_NS: Final = 5_000_000
_NOTHING_NS: Final = 50_000
_EXPLAINED: Final = 0.5
_HALF: Final = 0.5
_WAYS: Final = {Direction.OUT: "on the way out", Direction.IN: "on the way in", Direction.DUPLEX: "in the path"}


@dataclass(frozen=True, slots=True)
class _Rise:
    """A rise of latency under a load, in the direction `flow`: the part of it whose place this rule finds."""

    evidence: Evidence
    idle: Latency
    load: LoadedLatency
    flow: Direction
    rise_ns: float
    queue: SenderQueue | None

    @property
    def one_way_ns(self) -> float | None:
        """The rise of the one-way delay; None if no datagrams tell it."""
        return None if self.flow is Direction.DUPLEX else self.load.one_way_rise_ns[self.flow]

    @property
    def local_ns(self) -> float | None:
        """How long a packet waited at the sender's own host; None if it is unknown."""
        return None if self.queue is None else self.queue.delay_ns

    @property
    def local_share(self) -> float:
        """The part of the rise that the sender's own host explains."""
        return min(1.0, (self.local_ns or 0.0) / self.rise_ns) if self.rise_ns > 0 else 0.0

    @property
    def jitter_ns(self) -> float:
        """The difference of the slowest probes and the median without any load."""
        return self.idle.p99_ns - self.idle.p50_ns

    @property
    def tcp_rise_ns(self) -> float | None:
        """The rise of the loaded sessions' own round trips."""
        trips = self.load.tcp_rtt
        return None if trips is None else max(0.0, trips.mean_ns - self.idle.mean_ns)

    @property
    def kernel_rise_ns(self) -> float | None:
        """The same by handshakes if the senders of the sessions are not seen: a kernel measures both."""
        handshakes_ns = self.load.handshake_rise_ns(self.idle)
        if self.tcp_rise_ns is not None or handshakes_ns is None:
            return self.tcp_rise_ns
        return max(0.0, handshakes_ns)

    @property
    def is_confirmed(self) -> bool:
        """Whether a kernel's clock confirms the rise: no process that waits for a core affects it."""
        clocks = [rise for rise in (self.one_way_ns, self.kernel_rise_ns) if rise is not None]
        return not clocks or max(clocks) >= _HALF * self.rise_ns


def find_queues(evidence: Evidence) -> tuple[Finding, ...]:
    """Return the findings about the queues of a responsiveness test, the longest first, or `no-queue`.

    Empty until a load has been measured.
    """
    result = evidence.responsiveness
    if result is None or result.idle is None:
        return ()
    rises = [rise for load in result.graded_loads for rise in _rises(evidence, result.idle, load)]
    if not rises:
        return ()
    rises.sort(key=lambda rise: -rise.rise_ns)
    found = [finding for rise in rises for finding in _place(rise)]
    unconfirmed = [rise for rise in rises if _is_long(rise) and not rise.is_confirmed]
    if found:
        return tuple(_once_each_direction(found))
    return (_busy_host(unconfirmed[0]),) if unconfirmed else (_no_queue(result, rises),)


def _rises(evidence: Evidence, idle: Latency, load: LoadedLatency) -> Iterator[_Rise]:
    """Yield the rises of a load by direction: the loaded one, and the other one if the queue is there."""
    if load.rise_ns is None:
        return
    flows = load.direction.flows
    queues = {queue.end: queue for queue in load.queues}
    one_way = {flow: load.one_way_rise_ns[flow] for flow in Direction.DUPLEX.flows}
    if load.direction is not Direction.DUPLEX:
        flow, other = flows[0], flows[0].opposite
        back_ns = one_way[other]
        if back_ns is not None and back_ns >= _HALF * load.rise_ns and back_ns > (one_way[flow] or 0.0):
            yield _Rise(evidence, idle, load, other, back_ns, queues.get(_sender(other)))
        else:
            yield _Rise(evidence, idle, load, flow, load.rise_ns, queues.get(_sender(flow)))
        return
    known = {flow: rise_ns for flow, rise_ns in one_way.items() if rise_ns is not None}
    if len(known) == len(one_way):
        for flow, rise_ns in known.items():
            yield _Rise(evidence, idle, load, flow, rise_ns, queues.get(_sender(flow)))
        return
    # Only a wait at a sender's own host tells the direction.
    longest = max(load.queues, key=lambda queue: queue.delay_ns or 0.0, default=None)
    local_ns = None if longest is None else longest.delay_ns
    if longest is not None and local_ns is not None and local_ns >= _EXPLAINED * load.rise_ns:
        yield _Rise(evidence, idle, load, _sent_by(longest.end), load.rise_ns, longest)
    else:
        yield _Rise(evidence, idle, load, Direction.DUPLEX, load.rise_ns, longest)


def _sender(flow: Direction) -> End:
    return sender_of(flow, Workload.STREAM)


def _sent_by(end: End) -> Direction:
    return Direction.OUT if end is End.NEAR else Direction.IN


def _is_long(rise: _Rise) -> bool:
    return rise.rise_ns >= max(_LEAST_PATH_NS, rise.jitter_ns)


def _place(rise: _Rise) -> Iterator[Finding]:
    """Yield the finding about a rise that is long enough for one."""
    local_ns = rise.local_ns or 0.0
    is_local = local_ns >= max(_LEAST_LOCAL_NS, _EXPLAINED * rise.rise_ns)
    # A long queue that does not delay probes is the sessions' own.
    if is_local and rise.rise_ns >= max(_LEAST_LOCAL_NS, _HALF * local_ns) and rise.queue is not None:
        yield _at_sender(rise, rise.queue)
    elif not is_local and _is_long(rise) and rise.is_confirmed:
        yield _in_path(rise)


def _once_each_direction(findings: list[Finding]) -> Iterator[Finding]:
    """Yield the first finding of each direction: its longest rise."""
    seen: set[Direction | None] = set()
    for finding in findings:
        if finding.direction not in seen:
            seen.add(finding.direction)
            yield finding


def _at_sender(rise: _Rise, queue: SenderQueue) -> Finding:
    evidence, end = rise.evidence, rise.evidence.of_end(queue.end)
    delays = evidence.tense("delays", "delayed")
    return Finding(
        "queue-local" if queue.end is End.NEAR else "queue-remote",
        rise.local_share,
        0.9 if rise.load.is_steady else 0.75,
        f"A queue at {end_name(queue.end)} {delays} what it {evidence.tense('sends', 'sent')}.",
        "; ".join([_rise_text(rise), *_queue_texts(rise, queue)]),
        _remedy_at_sender(end, queue),
        queue.end,
        weight=rise.local_share,
        direction=rise.flow,
    )


def _remedy_at_sender(end: EndEvidence, queue: SenderQueue) -> str:
    if (queue.driver_bytes or 0.0) > (queue.backlog_bytes or 0.0):
        return remedies.shorten_send_ring(end)
    return remedies.manage_queue(end, queue.qdisc, queue.drain_bit_s)


def _in_path(rise: _Rise) -> Finding:
    evidence, share = rise.evidence, 1.0 - rise.local_share
    builds = evidence.tense("fills", "filled")
    return Finding(
        "queue-path",
        share,
        _path_confidence(rise),
        f"A queue {_WAYS[rise.flow]}, between the hosts, {builds} under load.",
        "; ".join([_rise_text(rise), *_queue_texts(rise, rise.queue)]),
        _remedy_in_path(rise),
        weight=share,
        direction=None if rise.flow is Direction.DUPLEX else rise.flow,
    )


def _remedy_in_path(rise: _Rise) -> str:
    if rise.flow is Direction.DUPLEX:  # with load both ways and round trips alone, it may be either
        return remedies.find_slow_direction()
    sender = rise.evidence.of_end(_sender(rise.flow))
    return remedies.shape_before_path(sender, _rate_before_path(rise), is_far=sender.end is End.FAR)


def _path_confidence(rise: _Rise) -> float:
    """Return the confidence of the place: one-way delays tell the direction, the sender's queue excludes a host."""
    confidence = 0.7 if rise.one_way_ns is None else 0.9
    if rise.local_ns is None:
        confidence -= 0.2
    return round(confidence if rise.load.is_steady else max(0.5, confidence - 0.1), 2)


def _rate_before_path(rise: _Rise) -> float | None:
    """Return the rate with all headers at which the sender's interface fed the slow link."""
    is_loaded = rise.flow in rise.load.direction.flows
    if rise.queue is not None and rise.queue.drain_bit_s and is_loaded:
        return rise.queue.drain_bit_s
    return rise.load.bit_s[rise.flow] if is_loaded else None


def _rise_text(rise: _Rise) -> str:
    load = rise.load
    text = f"latency rose by {_time(load.rise_ns or 0.0)} with load {LOAD_NAMES[load.direction]}"
    if rise.one_way_ns is None:
        return text
    return f"{text}, {_time(rise.one_way_ns)} of it one way {LOAD_NAMES[rise.flow]}"


def _queue_texts(rise: _Rise, queue: SenderQueue | None) -> Iterator[str]:
    """Yield the queues at the sender's host, and in its sockets."""
    sender = end_name(_sender(rise.flow) if rise.flow is not Direction.DUPLEX else End.NEAR)
    if queue is None or queue.delay_ns is None:
        yield f"the queue in the interface of {sender} is unknown"
    else:
        yield _waited_text(queue, queue.delay_ns)
    if queue is not None and queue.unsent_ns is not None and queue.unsent_ns >= _LEAST_LOCAL_NS:
        yield f"another {_time(queue.unsent_ns)} of test data waited in its sockets, which delays no other traffic"
    if queue is not None and queue.dropped:
        yield f"the queue dropped {format_quantity(queue.dropped, 'packet')}"


def _waited_text(queue: SenderQueue, delay_ns: float) -> str:
    if delay_ns < _NOTHING_NS:
        return f"nothing waited in the interface of {end_name(queue.end)}"
    name = remedies.qdisc_name(queue.qdisc) or "its queueing discipline"
    parts = [
        f"{_kilobytes(part)} in {where}"
        for part, where in ((queue.backlog_bytes, name), (queue.driver_bytes, "the driver"))
        if part
    ]
    rate = "" if queue.drain_bit_s is None else f" at {format_rate(queue.drain_bit_s)}"
    return f"a packet waited {_time(delay_ns)} at {end_name(queue.end)}: {' and '.join(parts)}{rate}"


def _no_queue(result: Responsiveness, rises: list[_Rise]) -> Finding:
    evidence = rises[0].evidence
    texts = [
        f"{_time(load.rise_ns)} with load {LOAD_NAMES[load.direction]}"
        for load in result.graded_loads
        if load.rise_ns is not None
    ]
    reason = f"latency rose by {' and '.join(texts)}"
    hidden = next((rise for rise in rises if rise.rise_ns >= _LEAST_PATH_NS and not _is_long(rise)), None)
    if hidden is not None:
        return _hidden_by_jitter(hidden, reason)
    fair = next((rise for rise in rises if _has_own_queues(rise)), None)
    if fair is not None and fair.tcp_rise_ns is not None:
        reason += (
            f"; the round trips of the loaded sessions rose by {_time(fair.tcp_rise_ns)}: "
            "they waited in queues of their own, which delays no other traffic"
        )
    return Finding(
        "no-queue",
        None,
        0.9 if all(rise.load.is_steady for rise in rises) else 0.75,
        evidence.tense("No queue delays other traffic.", "No queue delayed other traffic under load."),
        reason,
        "nothing to do",
        weight=1.0,
    )


def _hidden_by_jitter(rise: _Rise, reason: str) -> Finding:
    """Return the finding about a rise that is not longer than the variation of latency without load."""
    return Finding(
        "no-queue",
        None,
        0.5,
        "No queue can be told: latency varies as much without load.",
        f"{reason}; without load, one probe in a hundred took {_time(rise.jitter_ns)} longer than the median",
        "test again while the link and both hosts are otherwise idle",
        weight=1.0,
    )


def _has_own_queues(rise: _Rise) -> bool:
    tcp_ns = rise.tcp_rise_ns
    return tcp_ns is not None and tcp_ns >= _LEAST_PATH_NS and rise.rise_ns < _HALF * tcp_ns


def _busy_host(rise: _Rise) -> Finding:
    """Return the finding about answers that come late without any queue."""
    evidence, tcp_ns = rise.evidence, rise.kernel_rise_ns
    busiest = max((evidence.near, evidence.far), key=hottest_busy)
    reasons = [_rise_text(rise)]
    if tcp_ns is not None:
        reasons.append(f"the round trips that the kernel measured rose by {_time(tcp_ns)}")
    if busiest.cores:
        busy = format_share(hottest_busy(busiest))
        reasons.append(f"the busiest core of {end_name(busiest.end)} was {busy} busy")
    return Finding(
        "no-queue",
        None,
        0.6,
        evidence.tense(
            "Answers are late without a queue: a host is busy.",
            "Answers were late without a queue: a host was busy.",
        ),
        "; ".join(reasons),
        remedies.show_processes(busiest),
        weight=1.0,
        direction=rise.flow,
    )


def _time(ns: float) -> str:
    return format_time(ns / 1_000)


def _kilobytes(size_bytes: float) -> str:
    return f"{size_bytes / 1_000:.0f} kB" if size_bytes >= 10_000 else f"{size_bytes / 1_000:.1f} kB"
