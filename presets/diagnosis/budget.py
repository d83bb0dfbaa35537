"""The budget of a flow: the missing rate, divided by the states that the sender's TCP was in.

The kernel accounts for the sender's time (tcp_info of linux/tcp.h: tcpi_busy_time, tcpi_rwnd_limited,
tcpi_sndbuf_limited). At any moment the sender has nothing to send, is limited by the peer's receive window, is
limited by its own send buffer, or waits for the network. A link at its expected rate is busy for all of the time;
of a slower one, the busy time beyond its share of that rate, and the three other states, are what is missing.
"""

from dataclasses import dataclass
from typing import Final

from ...engine.model.plan import End, sender_of
from .evidence import EndEvidence, Evidence, FlowEvidence

MIN_SHARE: Final = 0.05
"""A smaller share of the gap is no reason for a finding."""

_MICRO: Final = 1e-6
# Interrupts, delayed acknowledgements and a busy host make round trips this much longer without any queue.
_MIN_QUEUE_US: Final = 300


@dataclass(slots=True)
class GapBudget:
    """Shares of the gap that no rule has explained yet, by the state of the sender; they begin with a sum of 1.

    `starved`: nothing to send; `receiver`: limited by the peer's window; `buffer`: limited by the send buffer;
    `network`: everything else. Each rule takes the shares that it explains.
    """

    starved: float
    receiver: float
    buffer: float
    network: float

    def take(self, *names: str, limit: float = 1.0) -> float:
        """Take what is left under these names, up to `limit`, and return it."""
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
    """One direction with its sender and receiver, and the budget that is still to be explained."""

    evidence: Evidence
    flow: FlowEvidence
    sender: EndEvidence
    receiver: EndEvidence
    budget: GapBudget

    @property
    def target_bit_s(self) -> float:
        """The expected rate; if nothing is expected, the measured one."""
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
    def needed_window_bytes(self) -> float | None:
        """The window that each session needs for all of them to fill the link: bandwidth x delay."""
        rtt_s = self.base_rtt_s
        return None if rtt_s is None else self.target_bit_s / 8 * rtt_s / self.evidence.sessions

    @property
    def has_queue(self) -> bool:
        """Whether packets wait on the way: the round trip is twice the shortest one, and clearly longer."""
        rtt, shortest = self.flow.rtt_us, self.flow.min_rtt_us
        return rtt is not None and shortest is not None and rtt >= 2 * shortest and rtt - shortest >= _MIN_QUEUE_US


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
    if flow.busy is None:
        return GapBudget(0.0, 0.0, 0.0, 1.0)
    starved = 1.0 - flow.busy
    receiver, buffer = flow.rwnd_limited or 0.0, flow.sndbuf_limited or 0.0
    used = 0.0 if not flow.expected_bit_s else min(1.0, flow.bit_s / flow.expected_bit_s)
    network = max(0.0, flow.busy - receiver - buffer - used)
    total = starved + receiver + buffer + network
    if total <= 0:
        return GapBudget(0.0, 0.0, 0.0, 1.0)
    return GapBudget(starved / total, receiver / total, buffer / total, network / total)


def end_name(end: End) -> str:
    """Return the name of an end for a sentence: `the near end`."""
    return f"the {end} end"
