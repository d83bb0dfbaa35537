"""The limits of UDP payload at an endpoint, for plans, for senders and for receivers.

TCP slows down on a narrow path, and UDP does not. So an endpoint has limits for it: it refuses a plan over them,
its senders stay below them, and it ends a run that brings more.
"""

from dataclasses import replace
from typing import Final

from ..metering.shared_counters import SharedCounters
from ..model.counters.session_counters import DATAGRAM_COUNTER_NAMES
from ..model.directions import Direction
from ..model.errors import LimitReached
from ..model.limits import Limits
from ..model.plan import MIN_RATE_BIT_S, SECOND_NS, Plan, Settings
from ..model.workload import Workload

_TOLERANCE: Final = 1.02  # the clocks of both ends differ
_FREE_BIT_S: Final = 200 * 10**9  # no host sends as much, so a sender without a rate needs no pacing
_FREE_PACKETS_S: Final = 50_000_000
_ARRIVALS: Final = [DATAGRAM_COUNTER_NAMES.index(name) for name in ("received", "duplicates", "late")]
_LEAST_AUTO_BYTES: Final = 1_232  # of UDP in the smallest packet that every IPv6 path carries (RFC 8200, section 5)


class DatagramLimits:
    """The limits of one run's datagrams; without effect on a run of another workload."""

    def __init__(self, limits: Limits, workload: Workload) -> None:
        self._limits = limits
        self._has_datagrams = workload.is_datagram

    @property
    def longest_s(self) -> tuple[int, str]:
        """The longest duration of the run, and the name of its limit."""
        limits = self._limits
        if self._has_datagrams and limits.udp_duration_s < limits.duration_s:
            return limits.udp_duration_s, "udp_duration_s"
        return limits.duration_s, "duration_s"

    def check_plan(self, plan: Plan) -> None:
        """Raise LimitReached if a plan lasts too long or asks for too much."""
        longest_s, limit = self.longest_s
        if plan.duration_ns is not None and plan.duration_ns > longest_s * SECOND_NS:
            raise LimitReached(f"a run of {plan.duration_ns / SECOND_NS:g} s is too long", limit, longest_s)
        self.check_settings(plan.settings)

    def check_settings(self, settings: Settings) -> None:
        """Raise LimitReached if settings ask for too many bits or packets a second. Without a rate they do not."""
        rate_bit_s, limits = settings.rate_bit_s, self._limits
        if not self._has_datagrams or rate_bit_s is None:
            return
        if rate_bit_s > limits.udp_rate_bit_s:
            text = f"{rate_bit_s:,} bits of UDP a second are too many; give a lower --rate"
            raise LimitReached(text, "udp_rate_bit_s", limits.udp_rate_bit_s)
        packets_s = 0 if settings.datagram_bytes is None else rate_bit_s // (8 * settings.datagram_bytes)
        if packets_s > limits.udp_packets_s:
            text = f"{packets_s:,} datagrams a second are too many; give a lower --rate or a larger --datagram"
            raise LimitReached(text, "udp_packets_s", limits.udp_packets_s)

    def cap(self, settings: Settings) -> Settings:
        """Return the settings for senders of this end, with a rate, or the highest rate, within the limits."""
        limits = self._limits
        most_bit_s = [
            *([limits.udp_rate_bit_s] if limits.udp_rate_bit_s < _FREE_BIT_S else []),
            *([self._packets_bit_s(settings)] if limits.udp_packets_s < _FREE_PACKETS_S else []),
        ]
        if not self._has_datagrams or not most_bit_s:
            return settings

        def bound(bit_s: int | None) -> int:
            return max(MIN_RATE_BIT_S, min([*most_bit_s, *([] if bit_s is None else [bit_s])]))

        if settings.follows_receiver:
            return replace(settings, search_max_bit_s=bound(settings.search_max_bit_s))
        capped = replace(settings, rate_bit_s=bound(settings.rate_bit_s), floods=False)
        return (
            replace(capped, search_max_bit_s=bound(settings.search_max_bit_s)) if settings.searches_rate else capped
        )

    def _packets_bit_s(self, settings: Settings) -> int:
        """Return the rate at which datagrams of the settings reach the limit of their number."""
        return self._limits.udp_packets_s * 8 * (settings.datagram_bytes or _LEAST_AUTO_BYTES)


class DatagramTraffic:
    """Watches the payload that one direction brings to this end, and tells if it exceeds the limits.

    The excess over a limit adds up, and a second's worth is too much: counters are as old as an interval, and
    pacing catches up.
    """

    def __init__(self, limits: Limits, now_ns: int) -> None:
        self._limits = limits
        self._then_ns = now_ns
        self._bits = self._packets = 0
        self._excess_bits = self._excess_packets = 0.0

    def check_counters(self, now_ns: int, counters: SharedCounters) -> None:
        """Take in the payload of the near end's sessions; raise LimitReached if it is too much."""
        packets = sum(
            sum(filter(None, map(values.__getitem__, _ARRIVALS)))
            for session in counters.used_sessions(Direction.OUT)
            for values in [counters.read_datagrams(Direction.OUT, session)]
        )
        self.check(now_ns, counters.flow_bytes(Direction.OUT), packets)

    def check(self, now_ns: int, total_bytes: int, total_packets: int) -> None:
        """Take in the counts since the start of the run; raise LimitReached if they are too many."""
        limits, bits = self._limits, total_bytes * 8
        seconds = max(0.001, (now_ns - self._then_ns) / SECOND_NS)
        new_bits, new_packets = bits - self._bits, total_packets - self._packets
        self._then_ns, self._bits, self._packets = now_ns, bits, total_packets
        self._excess_bits = max(0.0, self._excess_bits + new_bits - limits.udp_rate_bit_s * _TOLERANCE * seconds)
        allowed_packets = limits.udp_packets_s * _TOLERANCE * seconds
        self._excess_packets = max(0.0, self._excess_packets + new_packets - allowed_packets)
        if self._excess_bits > limits.udp_rate_bit_s:
            text = f"{round(new_bits / seconds):,} bits of UDP arrive in a second; give a lower --rate"
            raise LimitReached(text, "udp_rate_bit_s", limits.udp_rate_bit_s)
        if self._excess_packets > limits.udp_packets_s:
            text = f"{round(new_packets / seconds):,} datagrams arrive in a second; give a lower --rate"
            raise LimitReached(text, "udp_packets_s", limits.udp_packets_s)
