"""One direction of a run, as rules look at it: the kernel's own account of the sender's time, turned into shares.

A sender's TCP (tcp_info of linux/tcp.h) is always in one of four states: it has nothing to send, it is held by the
peer's window, by its own send buffer, or it has data that may not go yet: the network's doing. A link that delivers
all that is expected is busy for that very share of the time; whatever else there is, is what is missing.
"""

from dataclasses import dataclass

from ...engine.model.plan import End, sender_of
from .evidence import EndEvidence, Evidence, FlowEvidence

_MICRO = 1e-6


@dataclass(slots=True)
class GapBudget:
    """What is missing of one direction, by the state that the sender was in; rules take of it what they explain.

    Shares of the gap that add up to 1: `starved` nothing to send, `receiver` held by the peer's window, `buffer` by
    the send buffer, `network` by everything beyond.
    """

    starved: float
    receiver: float
    buffer: float
    network: float

    def take(self, *names: str, limit: float = 1.0) -> float:
        """Take away all that is left under these names, up to `most`; return how much that was."""
        taken = 0.0
        for name in names:
            part = min(getattr(self, name), max(0.0, limit - taken))
            setattr(self, name, getattr(self, name) - part)
            taken += part
        return taken

    def remaining(self, *names: str) -> float:
        """Return what is left under these names."""
        return sum(getattr(self, name) for name in names)


@dataclass(frozen=True, slots=True)
class FlowView:
    """One direction with both its ends; `budget` is what is still to be explained."""

    evidence: Evidence
    flow: FlowEvidence
    sender: EndEvidence
    receiver: EndEvidence
    budget: GapBudget

    @property
    def target_bit_s(self) -> float:
        """What this direction should carry; where nothing is expected, what it does."""
        return self.flow.expected_bit_s or self.flow.bit_s

    @property
    def gap_bit_s(self) -> float:
        """What is missing of it."""
        return max(0.0, self.target_bit_s - self.flow.bit_s)

    @property
    def base_rtt_s(self) -> float | None:
        """The path's own round trip, without the queues on it."""
        shortest = self.flow.min_rtt_us or self.flow.rtt_us
        return None if not shortest else shortest * _MICRO

    @property
    def needed_window_bytes(self) -> float | None:
        """What one session must have under way for all of them to fill the link: bandwidth times delay."""
        trip = self.base_rtt_s
        return None if trip is None else self.target_bit_s / 8 * trip / self.evidence.sessions

    @property
    def has_queue(self) -> bool:
        """Whether packets wait on the way: a round trip of twice the shortest, and not by a hair."""
        rtt, least = self.flow.rtt_us, self.flow.min_rtt_us
        return rtt is not None and least is not None and rtt >= 2 * least and rtt - least >= _QUEUE_US


# Interrupts, delayed acknowledgements and a busy host make round trips this much longer without any queue.
_QUEUE_US = 300


def flow_views(evidence: Evidence) -> list[FlowView]:
    """Return each direction of a run."""
    found: list[FlowView] = []
    for flow in evidence.flows:
        sends = sender_of(flow.direction, evidence.workload)
        sender, receiver = evidence.of_end(sends), evidence.of_end(sends.other)
        found.append(FlowView(evidence, flow, sender, receiver, _budget(flow)))
    return found


def _budget(flow: FlowEvidence) -> GapBudget:
    """Return the parts of what is missing; all of it the network's where the kernel does not tell."""
    if flow.busy is None:
        return GapBudget(0.0, 0.0, 0.0, 1.0)
    starved = 1.0 - flow.busy
    receiver, buffer = flow.rwnd_limited or 0.0, flow.sndbuf_limited or 0.0
    used = 0.0 if not flow.expected_bit_s else min(1.0, flow.bit_s / flow.expected_bit_s)
    network = max(0.0, flow.busy - receiver - buffer - used)
    whole = starved + receiver + buffer + network
    if whole <= 0:
        return GapBudget(0.0, 0.0, 0.0, 1.0)
    return GapBudget(starved / whole, receiver / whole, buffer / whole, network / whole)


def end_name(end: End) -> str:
    """Return how a sentence calls an end: `the near end`."""
    return f"the {end} end"
