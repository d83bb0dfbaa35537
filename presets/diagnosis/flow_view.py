"""A flow as rules see it: figures made of several numbers, and the budget of the missing rate.

The kernel accounts for the sender's time (tcp_info of linux/tcp.h: tcpi_busy_time, tcpi_rwnd_limited,
tcpi_sndbuf_limited). At any moment the sender has nothing to send, is limited by the peer's receive window, is
limited by its own send buffer, or waits for the network. A link at its expected rate is busy for all of the time.
If a link is slower, the busy time beyond its share of that rate and the three other states make up the budget.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Final

from ...engine.model.directions import sender_of
from ...engine.model.plan import SECOND_NS
from ...engine.results.sums.rate_course import RateStep
from .evidence import DatagramEvidence, EndEvidence, Evidence, FlowEvidence

_MICRO: Final = 1e-6
_MIN_FILLED: Final = 0.15  # of the shortest round trip
_MIN_FILLED_US: Final = 1_000
# The spread of intervals' rates, as a share of the mean: behind a slow place it was 0.002 to 0.03. A queue that
# more than doubles the round trip leaves less doubt.
_FLAT: Final = 0.04
_FLAT_BEHIND_LONG_QUEUE: Final = 0.1
_LONG_WAIT_NS: Final = 10_000_000
_SHORT_WAIT_NS: Final = 2_000_000
_STANDING_US: Final = 5_000  # no busy host causes so long a queue, even if rates vary
_FEW_PACKETS: Final = 3  # so much may wait in a software policer, or in the sender's own bursts
_SMALL_QUEUE_US: Final = 1_000
_SMALL_QUEUE: Final = 0.05  # of the shortest round trip
_LATE_US: Final = 1_000
_BURSTS: Final = ((4_000, 15), (9_000, 8))  # longer by so many µs without a queue, but at most by so many packets
# The share of losses that end in a timeout, over the loss, and its length: fitted to 48 runs with 2 to 12 % loss by
# chance over 2 to 35 ms, since Linux probes the tail (RACK-TLP, RFC 8985) and the formula of 1998 waits.
_TIMEOUTS: Final = 6.0
_TIMEOUT_S: Final = 0.045
_SHARED: Final = 0.3
_SHARED_SPREAD: Final = 0.2
_MIN_INTERVALS: Final = 8
_OF_FEW: Final = 0.5  # times 1 / sqrt(packets in an interval)
# Interrupts, delayed acknowledgements and a busy host make round trips this much longer without any queue.
_MIN_QUEUE_US: Final = 300


@dataclass(slots=True)
class GapBudget:
    """Shares of the gap that no rule has explained yet, by the state of the sender.

    They begin with a sum of 1. `starved`: nothing to send; `receiver`: limited by the peer's window; `buffer`:
    limited by the send buffer; `network`: everything else. Each rule takes the shares that it explains.
    """

    starved: float
    receiver: float
    buffer: float
    network: float

    def take(self, *names: str, limit: float = 1.0) -> float:
        """Take the remaining shares with these names, up to `limit`, and return their sum."""
        taken = 0.0
        for name in names:
            part = min(getattr(self, name), max(0.0, limit - taken))
            setattr(self, name, getattr(self, name) - part)
            taken += part
        return taken

    def remaining(self, *names: str) -> float:
        """Return the sum of the remaining shares with these names."""
        return sum(getattr(self, name) for name in names)


@dataclass(frozen=True, slots=True)
class FlowView:
    """One direction with its sender, its receiver, and the budget of its gap."""

    evidence: Evidence
    flow: FlowEvidence
    sender: EndEvidence
    receiver: EndEvidence
    budget: GapBudget

    def other_end(self, end: EndEvidence) -> EndEvidence:
        """Return the end that is not this one."""
        return self.receiver if end is self.sender else self.sender

    @property
    def target_bit_s(self) -> float:
        """The expected rate, or the measured one if there is no expected rate."""
        return self.flow.expected_bit_s or self.flow.bit_s

    @property
    def gap_bit_s(self) -> float:
        """The missing rate."""
        return max(0.0, self.target_bit_s - self.flow.bit_s)

    @property
    def base_rtt_s(self) -> float | None:
        """The round trip of the path without its queues."""
        shortest = self.flow.min_rtt_us or self.flow.rtt_us
        return None if not shortest else shortest * _MICRO

    @property
    def round_trip_share(self) -> float | None:
        """The share of time for which a session of transactions waits for a round trip; None if unknown."""
        rtt_s, evidence = self.base_rtt_s, self.evidence
        batch_bytes = evidence.sessions * evidence.burst * evidence.response_bytes
        return None if rtt_s is None or not batch_bytes else min(1.0, rtt_s * self.flow.bit_s / 8 / batch_bytes)

    @property
    def needed_window_bytes(self) -> float | None:
        """The window that each session needs for all of them to fill the link: bandwidth x delay."""
        rtt_s = self.base_rtt_s
        return None if rtt_s is None else self.target_bit_s / 8 * rtt_s / self.evidence.sessions

    @property
    def in_flight_bytes(self) -> float | None:
        """The payload that each session had in flight: rate x RTT; None without an RTT."""
        rtt_us = self.flow.rtt_us
        return None if not rtt_us else self.flow.bit_s / 8 * rtt_us * _MICRO / self.evidence.sessions

    @property
    def rise_us(self) -> int | None:
        """By how much the round trip is longer than the shortest one; None if either is unknown."""
        rtt_us, shortest_us = self.flow.rtt_us, self.flow.min_rtt_us
        return None if rtt_us is None or shortest_us is None else rtt_us - shortest_us

    @property
    def has_queue(self) -> bool:
        """Whether packets queue on the path: the round trip is at least twice the shortest one."""
        rise_us, shortest_us = self.rise_us, self.flow.min_rtt_us or 0
        return rise_us is not None and rise_us >= max(shortest_us, _MIN_QUEUE_US, self.packet_us)

    @property
    def has_small_queue(self) -> bool:
        """Whether the round trip is longer than a long path's own, as with a small queue at a slow place."""
        rise_us, shortest_us = self.rise_us, self.flow.min_rtt_us or 0
        return rise_us is not None and rise_us >= max(_SMALL_QUEUE_US, _SMALL_QUEUE * shortest_us)

    @property
    def probe_rise_ns(self) -> float | None:
        """How much longer probes took while this flow kept a queue on the path filled; None if it did not.

        Its rate is constant then. With 1 % of loss by chance probes took 0 ms longer in three runs, behind a slow
        place with a long queue 31 ms. Handshakes have the kernel's own times: a busy end does not delay them, so
        that a short queue shows as well.
        """
        result, spread = self.evidence.responsiveness, self.flow.rate_spread
        load = None if result is None else result.load_of(self.evidence.direction)
        if result is None or load is None or load.rise_ns is None or spread is None:
            return None
        rise_ns, least_ns, handshake_ns = load.rise_ns, _LONG_WAIT_NS, load.handshake_rise_ns(result.idle)
        if handshake_ns is not None and result.idle is not None:
            rise_ns, least_ns = handshake_ns, min(least_ns, max(_SHORT_WAIT_NS, result.idle.p50_ns))
        flat = _FLAT_BEHIND_LONG_QUEUE if rise_ns >= _LONG_WAIT_NS else _FLAT
        return rise_ns if rise_ns >= least_ns and spread <= flat + self.spread_of_few_packets else None

    @property
    def has_no_room(self) -> bool:
        """Whether the path has next to no queue: the round trip is longer than the shortest by a few packets.

        Behind policers it was up to 9 ms and 15 packets longer, by late acknowledgements and the sender's bursts.
        Queues of slow paths made it 8 ms and 9 packets longer, or more.
        """
        rise_us = self.rise_us
        late_us = 0 if self.has_queue else _LATE_US + _FEW_PACKETS * self.packet_us
        bursts_us = (min(us, count * self.packet_us) for us, count in _BURSTS)
        return rise_us is not None and rise_us <= max(late_us, *bursts_us)

    @property
    def fills_queue(self) -> bool:
        """Whether the flow keeps a queue filled at a place that is slower than its ends.

        Such a place sends at a constant rate, and three quarters of the samples find the round trip longer than the
        path's, or half of them twice as long. A busy host makes round trips longer as well, but then rates vary.
        """
        flow, low, shortest = self.flow, self.flow.low_rtt_us, self.flow.min_rtt_us
        if low is None or shortest is None or flow.rate_spread is None:
            return False
        # Of many sessions some carry nothing: their round trips are from their beginning.
        is_long = self.has_queue
        least_us = max(_MIN_FILLED_US + _FEW_PACKETS * self.packet_us, _MIN_FILLED * shortest)
        is_queue = is_long or low - shortest >= least_us
        flat = (_FLAT_BEHIND_LONG_QUEUE if is_long else _FLAT) + self.spread_of_few_packets
        stands = low >= 2 * shortest and low - shortest >= max(_STANDING_US, self.packet_us)
        return stands or (is_queue and (flow.rate_spread <= flat or self.shares_limit))

    @property
    def step(self) -> RateStep | None:
        """The change that explains the course of the rate; None while a test runs: only its newest part counts."""
        return self.flow.step if self.evidence.has_ended else None

    @property
    def shares_limit(self) -> bool:
        """Whether the sessions share one limit: together they vary much less than each by itself."""
        joint, spread = self.flow.joint_spread, self.flow.rate_spread
        if joint is None or spread is None or self.flow.intervals < _MIN_INTERVALS:
            return False
        return joint <= _SHARED and spread <= _SHARED_SPREAD

    @property
    def lossy_bit_s(self) -> float | None:
        """The rate that TCP reaches with this loss by chance, of all sessions together; None if it is unknown.

        With less than 1 % it is nearly MSS / RTT x sqrt(3/2 / loss) for each session (Mathis, Semke, Mahdavi and
        Ott, 1997). With more, sessions wait for timeouts as well (Padhye, Firoiu, Towsley and Kurose, 1998).
        """
        rtt_us, mss, loss = self.flow.rtt_us, self.flow.mss_bytes, self.flow.retransmitted
        if not rtt_us or not mss or not loss:
            return None
        halving_s = rtt_us * _MICRO * sqrt(loss * 2 / 3)
        waiting_s = _TIMEOUT_S * min(1.0, _TIMEOUTS * loss) * loss * (1 + 32 * loss**2)
        return mss * 8 / (halving_s + waiting_s) * self.evidence.sessions

    @property
    def packet_us(self) -> float:
        """The time that a packet takes at the measured rate."""
        return (self.flow.mss_bytes or 0) * 8e6 / self.flow.bit_s if self.flow.bit_s else 0.0

    @property
    def spread_of_few_packets(self) -> float:
        """The spread of the rates of intervals, as a share, that comes from counting whole packets."""
        flow = self.flow
        span_s = self.evidence.span_ns / SECOND_NS / max(1, flow.intervals)
        packets = flow.bit_s / 8 * span_s / max(1, flow.mss_bytes or 1_448)
        return _OF_FEW / max(1.0, packets) ** 0.5


def flow_views(evidence: Evidence) -> list[FlowView]:
    """Return the view of each direction, with a full budget."""
    views: list[FlowView] = []
    for flow in evidence.flows:
        sends = sender_of(flow.direction, evidence.workload)
        sender, receiver = evidence.of_end(sends), evidence.of_end(sends.other)
        views.append(FlowView(evidence, flow, sender, receiver, _budget(flow)))
    return views


def _budget(flow: FlowEvidence) -> GapBudget:
    """Return the full budget. Without the kernel's account, all of it is the network's."""
    if flow.datagrams is not None:
        return _budget_of_datagrams(flow, flow.datagrams)
    if flow.busy is None:
        return GapBudget(0.0, 0.0, 0.0, 1.0)
    starved = 1.0 - flow.busy
    receiver, buffer = flow.receiver_limited, flow.sndbuf_limited or 0.0
    used = 0.0 if not flow.expected_bit_s else min(1.0, flow.bit_s / flow.expected_bit_s)
    network = max(0.0, flow.busy - receiver - buffer - used)
    total = starved + receiver + buffer + network
    if total <= 0:
        return GapBudget(0.0, 0.0, 0.0, 1.0)
    return GapBudget(starved / total, receiver / total, buffer / total, network / total)


def _budget_of_datagrams(flow: FlowEvidence, datagrams: DatagramEvidence) -> GapBudget:
    """Return the budget of UDP: unsent datagrams are starved, lost ones are the network's."""
    sent_bit_s = flow.bit_s / (1 - datagrams.loss) if datagrams.loss < 1 else 0.0
    missing = max(0.0, (flow.expected_bit_s or datagrams.asked_bit_s or 0.0) - sent_bit_s)
    lost = max(0.0, sent_bit_s - flow.bit_s)
    if missing + lost <= 0:
        return GapBudget(0.0, 0.0, 0.0, 1.0)
    return GapBudget(missing / (missing + lost), 0.0, 0.0, lost / (missing + lost))
