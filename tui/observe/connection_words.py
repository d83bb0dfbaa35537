"""An observed connection in words: why it is slow, its figures, its process. Pure.

Names of processes come cleaned. Addresses get their stand-ins here, because a shortened one is not recognized
later.
"""

from collections.abc import Callable
from typing import Final

from ...engine.model.plan import SECOND_NS
from ...observe.observation import Observation, ObservedConnection, Status
from ...presets.diagnosis.finding_words import why_words
from ..words import numbers
from ..words.observed import owner_text
from ..words.redaction import REDACTION

STATUS_WORDS: Final = {
    Status.NEW: "new",
    Status.IDLE: "idle",
    Status.APP_LIMITED: "program sets the rate",
    Status.HEALTHY: "fills its path",
    Status.LIMITED: "limited",
    Status.UNKNOWN: "not seen at this end",
    Status.ENDED: "ended",
}
STATUS_MARKS: Final = {
    Status.NEW: "◌",
    Status.IDLE: "·",
    Status.APP_LIMITED: "○",
    Status.HEALTHY: "✓",
    Status.LIMITED: "▼",
    Status.UNKNOWN: "?",
    Status.ENDED: "■",
}
SEVERITY: Final = {
    status: number
    for number, status in enumerate(
        (
            Status.ENDED,
            Status.IDLE,
            Status.NEW,
            Status.HEALTHY,
            Status.APP_LIMITED,
            Status.UNKNOWN,
            Status.LIMITED,
        )
    )
}
"""The order of the results, the worst last."""


def process_text(row: ObservedConnection) -> str:
    """Return the process of a connection and its number, or its user: `iperf3/1234`."""
    return owner_text(row.owner, row.user)


def peer_text(row: ObservedConnection) -> str:
    """Return the remote address."""
    return REDACTION.text(str(row.key.remote))


def local_text(row: ObservedConnection) -> str:
    """Return the local address."""
    return REDACTION.text(str(row.key.local))


def short_reason(row: ObservedConnection) -> str:
    """Return why a connection is as fast as it is, in a few words."""
    first = why_words(row.findings[0].code) if row.findings else ""
    if row.status is Status.ENDED:
        return f"ended: {first}" if first else "ended"
    return first or STATUS_WORDS[row.status]


def status_sentence(row: ObservedConnection) -> str:
    """Return the result of a connection without its findings as a sentence."""
    if row.status is Status.ENDED:
        return "It has ended. The findings until then:" if row.findings else "It has ended."
    return numbers.sanitize(row.reason) or STATUS_WORDS[row.status]


def long_reason(row: ObservedConnection) -> str:
    """Return why a connection is as fast as it is, as a sentence."""
    if row.status is Status.ENDED:
        return short_reason(row)
    return numbers.sanitize(row.findings[0].text) if row.findings else status_sentence(row)


FIELDS: Final[dict[str, Callable[[ObservedConnection], str]]] = {
    "process": process_text,
    "user": lambda row: row.user,
    "peer": lambda row: str(row.key.remote),
    "local": lambda row: str(row.key.local),
    "nic": lambda row: "" if row.nic is None else row.nic.name,
    "why": lambda row: f"{row.status} {short_reason(row)} {long_reason(row)}",
    "cc": lambda row: row.congestion or "",
}
"""The fields that a word of the filter can name: `process:nginx`, `why:loss`."""


def searched_text(row: ObservedConnection, field: str = "") -> str:
    """Return the text of a field, or of all of them, in lower case."""
    texts = (FIELDS[field](row),) if field else (text(row) for text in FIELDS.values())
    return " ".join(texts).lower()


def figures(row: ObservedConnection) -> list[str]:
    """Return the figures of the sender that a connection has: `RTT 21.6 ms, minimum 20.1 ms`, `cwnd 1.25M`."""
    sample, out = row.out.sample, row.out
    parts: list[str] = []
    if sample is not None and sample.rtt_us is not None:
        least = "" if sample.min_rtt_us is None else f", minimum {numbers.round_trip(sample.min_rtt_us)}"
        parts.append(f"RTT {numbers.round_trip(sample.rtt_us)}{least}")
    if sample is not None and sample.cwnd_bytes is not None:
        flight = "" if sample.unacked_bytes is None else f", in flight {numbers.size(sample.unacked_bytes)}"
        parts.append(f"cwnd {numbers.size(sample.cwnd_bytes)}{flight}")
    if out.retransmits is not None:
        share = f" ({numbers.percent(100 * out.retransmitted)})" if out.retransmitted else ""
        parts.append(f"{numbers.quantity(out.retransmits, 'retransmit')}{share} in 3 s")
    for name, value in (
        ("waits for the peer's window", out.rwnd_limited),
        ("waits for the send buffer", out.sndbuf_limited),
        ("receive buffer unread", row.in_.unread),
    ):
        if value is not None and value >= 0.005:
            parts.append(f"{name} {numbers.percent(100 * value, 0)}")
    return parts


def facts(row: ObservedConnection) -> list[str]:
    """Return what a connection is: its state, interface, congestion control, age and payload."""
    parts = [row.state]
    if row.nic is not None:
        parts.append(row.nic.name)
    if row.congestion is not None:
        parts.append(numbers.sanitize(row.congestion))
    parts.append(f"seen for {numbers.rough_time(max(row.observed_ns, SECOND_NS))}")
    sent, received = (numbers.payload(each.bytes) for each in (row.out, row.in_))
    parts.append(f"sent {sent}, received {received}")
    return parts


def notes(observation: Observation) -> list[str]:
    """Return what is not visible and why, and the UDP socket that drops most, if one does."""
    texts = [*map(numbers.sanitize, observation.notes)]
    dropping = [each for each in observation.datagrams if each.dropped]
    if dropping:
        worst = max(dropping, key=lambda each: each.dropped)
        at = f"{owner_text(worst.owner, worst.user)} at {REDACTION.text(str(worst.key.local))}"
        texts.insert(0, f"UDP: the receive buffer of {at} dropped {numbers.quantity(worst.dropped, 'datagram')}.")
    return texts


def empty_text(observation: Observation | None, *, target: str | None, filter_text: str, total: int) -> str:
    """Return why there are no rows."""
    if observation is None:
        return "Reading the connections of this host …"
    if total:
        return f"None of the {numbers.quantity(total, 'connection')} matches {filter_text!r}."
    if target is not None:
        return f"No connection matches {REDACTION.text(numbers.sanitize(target))}."
    if observation.totals.sockets:
        held = numbers.quantity(observation.totals.sockets, "connection")
        return f"This host has {held}, and none of them moves payload."
    return "This host has no TCP connection yet. A new one appears here by itself."
