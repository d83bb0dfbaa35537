"""Both directions at once: acknowledgements that wait behind the data of the other direction.

Measured: each direction's rate, the rate that a quarter of the receiver's intervals exceeded, the smoothed and the
shortest round trip (tcpi_rtt, tcpi_min_rtt of linux/tcp.h), and the retransmits.

Meaning: TCP sends as acknowledgements arrive. The acknowledgements of one direction share a queue with the other
direction's data (RFC 3449, 3.3). So each round trip includes both queues, and each direction carries its window /
round trip. The direction with more in flight for its rate keeps its queue filled and sets the round trip. The other
one's queue is empty at times, even if the queues are long (Zhang, Shenker and Clark, 1991). So a good line has room
left, although the wire model counts the bytes of acknowledgements: 27 of 108 links with queues of 100 ms carried 72
to 95 % of its rate.

If a direction is at its expected rate, its queue is the full one. If the other direction loses nothing after its
slow start, it does not have a queue: then only acknowledgements hold it up. If it goes on losing packets, it fills
its queue at times, and the fastest quarter of its intervals shows the rate of its path. On good links that was 0.94
of the expected rate or more, on 100 links that were 15 % slow or more 0.93 or less. The rate that the path does not
carry is the path's finding.

BBR does not send by acknowledgements alone, so this rule leaves it out.

Finding: `acks-queued`; `unexplained` if the whole run misses less than a tenth of its expected rate.
"""

from collections.abc import Iterator
from typing import Final

from ....engine.model.directions import Direction
from ...number_text import format_rate, format_time
from .. import remedies
from ..evidence import MIN_SHARE, Evidence, FlowEvidence
from ..finding import NOT_IDENTIFIED, Finding
from ..flow_view import FlowView

_FULL: Final = 0.95  # of the expected rate: a direction that fills its line
# Of the expected rate: a line that was reached. An acknowledgement for each segment, as in a recovery, takes 0.03.
_REACHED: Final = 0.935
_QUIET: Final = 0.7  # of the samples, at the end: earlier losses are those of a slow start
_SMALL_GAP: Final = 0.9  # of the expected rate: above it the missing rate is too small to be sure
_UNSURE: Final = 0.4


def find_waiting_acknowledgements(view: FlowView) -> Iterator[Finding]:
    """Yield the finding about a direction whose acknowledgements wait in the queue of the other one's data."""
    flow, other = view.flow, _other_flow(view)
    if other is None:
        return
    part = waiting_part(view)
    share = view.budget.take("network", limit=part * view.budget.remaining("network"))
    if share < MIN_SHARE:
        return
    is_known = not misses_little(view.evidence)
    waits = view.evidence.tense("wait", "waited")
    alone = remedies.test_alone(flow)
    yield Finding(
        "acks-queued" if is_known else "unexplained",
        share,
        _confidence(view, other, part) if is_known else _UNSURE,
        f"Acknowledgements {waits} behind the other direction's data." if is_known else NOT_IDENTIFIED,
        "; ".join(_signs(view, other)),
        f"{alone.text}; fair queueing (fq_codel, cake) before the slowest link lets acknowledgements pass",
        trial=alone.trial,
    )


def misses_little(evidence: Evidence) -> bool:
    """Return whether a run in both directions misses too little to tell the path from the queues."""
    return evidence.expected_bit_s is not None and evidence.bit_s >= _SMALL_GAP * evidence.expected_bit_s


def _other_flow(view: FlowView) -> FlowEvidence | None:
    """Return the other direction of a run in both; None if there is none."""
    if view.evidence.direction is not Direction.DUPLEX:
        return None
    return next((flow for flow in view.evidence.flows if flow is not view.flow), None)


def waiting_part(view: FlowView) -> float:
    """Return the part of a direction's gap that its path would carry if no acknowledgement waited."""
    flow, other = view.flow, _other_flow(view)
    if other is None or flow.expected_bit_s is None or flow.is_bbr or not view.has_queue:
        return 0.0
    carried_bit_s = float(flow.upper_bit_s or 0)
    if (flow.quiet or 0.0) >= _QUIET:
        carried_bit_s = max(carried_bit_s, other.bit_s)
    if carried_bit_s >= _REACHED * view.target_bit_s:
        return 1.0
    return max(0.0, carried_bit_s - flow.bit_s) / view.gap_bit_s if view.gap_bit_s > 0 else 0.0


def _confidence(view: FlowView, other: FlowEvidence, part: float) -> float:
    """Return how likely it is that acknowledgements wait: most, if the full queue is the other direction's."""
    if part < 1:
        return 0.5
    is_beside_full = view.flow.retransmits == 0 and other.bit_s >= _FULL * view.target_bit_s
    return 0.7 if is_beside_full else 0.6


def _signs(view: FlowView, other: FlowEvidence) -> Iterator[str]:
    flow, evidence = view.flow, view.evidence
    rate = f"{flow.direction}: {format_rate(flow.bit_s)} {evidence.tense('arrives', 'arrived')}"
    if flow.upper_bit_s is not None:
        rate += f", {format_rate(flow.upper_bit_s)} or more in a quarter of the time"
    yield f"{rate}; {other.direction}: {format_rate(other.bit_s)}"
    yield (
        f"both directions {evidence.tense('wait', 'waited')} for both queues: round trip "
        f"{format_time(flow.rtt_us or 0)}, at best {format_time(flow.min_rtt_us or 0)}"
    )
