"""An outage: for a part of the time nothing arrived.

Measured, at the receiver: the times of 0.4 s or more without payload. At the sender: the share of the payload, and
of the samples, in which it sent something again.

Meaning: a link that is down, a path that is computed anew, or a stopped relay lets nothing through, and TCP waits
for longer and longer timeouts (RFC 6298). Afterwards the path is as fast as before. Loss by chance makes silences
as well, if it hits the same segment again and again. Then much is lost, and in most samples. Over a long path
payload comes once a round trip, and over a slow one packet by packet: a silence is longer than several of these. A
sender without data, and a receiver that does not read, make silences that are their own.

Finding: `outage`.
"""

from collections.abc import Iterator
from typing import Final

from ...number_text import format_percent, format_quantity, format_time
from .. import remedies
from ..evidence import MIN_SHARE
from ..finding import Finding
from ..flow_view import FlowView

_ROUND_TRIPS: Final = 4
_PACKETS: Final = 20
_OFTEN: Final = 0.3  # of the samples
_MUCH: Final = 0.03  # of the payload


def find_outages(view: FlowView) -> Iterator[Finding]:
    """Yield the finding about the times in which the path carried nothing, with what they cost."""
    evidence, silent = view.evidence, view.flow.silent
    if not silent or not is_interrupted(view):
        return
    missing = silent if view.gap_bit_s <= 0 else silent * view.target_bit_s / view.gap_bit_s
    waits = _waits(view)
    if min(missing, view.budget.remaining(*waits)) < MIN_SHARE:
        return
    yield Finding(
        "outage",
        view.budget.take(*waits, limit=min(1.0, missing)),
        0.85,
        f"The path {evidence.tense('is', 'was')} interrupted: for a time, nothing "
        f"{evidence.tense('arrives', 'arrived')}.",
        f"nothing arrived for {_describe_silences(view)}, {format_percent(silent)} of the time, although the "
        "sender had data",
        remedies.find_interruption(view.sender, view.receiver),
    )


def is_interrupted(view: FlowView) -> bool:
    """Return whether a time without payload is an outage, and not a wait of TCP after losses."""
    flow = view.flow
    least_us = max(_ROUND_TRIPS * (flow.rtt_us or 0), _PACKETS * view.packet_us)
    loses_always = (flow.retransmitted or 0.0) >= _MUCH and (flow.lossy or 0.0) >= _OFTEN
    return flow.silences > 0 and flow.longest_silence_us >= least_us and not loses_always


def _describe_silences(view: FlowView) -> str:
    silences, longest = view.flow.silences, format_time(view.flow.longest_silence_us)
    return longest if silences == 1 else f"{format_quantity(silences, 'time')}, {longest} at most"


def _waits(view: FlowView) -> tuple[str, ...]:
    """Return the states in which TCP waits in an outage: a full window stays full, as does a full buffer.

    If nothing was sent again, a full window was a receiver that did not read: TCP probes a closed window without
    sending data again. That holds also if the far end's buffer is unknown.
    """
    flow = view.flow
    is_receiver = flow.leaves_unread or flow.retransmitted == 0
    return ("network", "buffer") if is_receiver else ("network", "buffer", "receiver")
