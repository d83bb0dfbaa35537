"""What became of the datagrams of a UDP run: tables and sentences. Pure."""

from typing import TYPE_CHECKING, Final

from ...engine.model.counters.latency_histogram import LatencySummary
from ...engine.model.directions import Direction
from ...engine.results.rate_and_loss import percent_of
from . import numbers
from .numbers import NBSP, UNKNOWN
from .table import NAMES, Column, Table

if TYPE_CHECKING:
    from ...engine.results.summary import CapacitySummary, DatagramSummary, LossByHost, Summary

_DSCP_SHIFT: Final = 2  # the upper six bits of the byte of IP are the DSCP, the others ECN (RFC 2474, RFC 3168)
_ECN_NAMES: Final = ("no ECN", "ECT(1)", "ECT(0)", "CE")


_JITTER_COLUMNS: Final = (NAMES, Column("jitter"), Column("max"))
_DELAY_COLUMNS: Final = (
    Column("delay p50"),
    Column("p90", rank=1),
    Column("p99"),
    Column("p99.9", rank=2),
    Column("max"),
)
_LOSS_COLUMNS: Final = (
    NAMES,
    Column("packets/s"),
    Column("sent", rank=1),
    Column("lost"),
    Column("loss", is_key=True),
    Column("duplicates"),
    Column("late", rank=2),
    Column("reordered"),
)


def loss_table(summary: "Summary") -> Table:
    """Return what became of the datagrams: a row for each direction that had any, and the total of both."""
    return Table(
        _LOSS_COLUMNS,
        [
            (
                numbers.direction_name(direction),
                numbers.number(measured.packets_s),
                numbers.count(datagrams.sent),
                numbers.count(datagrams.lost),
                loss_percent(datagrams.lost_percent),
                numbers.count(datagrams.duplicates),
                numbers.count(datagrams.late),
                numbers.count(datagrams.reordered),
            )
            for direction, measured in summary.measurements
            if (datagrams := measured.datagrams) is not None
        ],
    )


def delay_table(summary: "Summary") -> Table:
    """Return jitter (RFC 3550) and delay variation (RFC 5481) of each direction; a total of both means nothing."""
    return Table(
        (*_JITTER_COLUMNS, *_DELAY_COLUMNS),
        [
            (
                numbers.direction_name(direction),
                numbers.latency(datagrams.jitter_mean_ns),
                numbers.latency(datagrams.jitter_max_ns),
                *_delay_cells(datagrams.delay_variation),
            )
            for direction, datagrams in single_directions(summary)
        ],
    )


def _delay_cells(delays: LatencySummary | None) -> tuple[str, ...]:
    if delays is None:
        return (UNKNOWN,) * len(_DELAY_COLUMNS)
    values = (delays.p50_ns, delays.p90_ns, delays.p99_ns, delays.p99_9_ns, delays.max_ns)
    return tuple(map(numbers.latency, values))


def loss_percent(percent: float | None) -> str:
    """Return a share of lost datagrams: `0 %`, `0.004 %`, `1.25 %`; a small one is never rounded to nothing."""
    if percent is None:
        return f"{UNKNOWN}{NBSP}%"
    if not percent:
        return f"0{NBSP}%"
    if percent < 0.001:
        return f"<0.001{NBSP}%"
    places = 3 if percent < 0.0995 else 2 if percent < 9.995 else 1
    return numbers.percent(percent, places, mark=100.0)


def loss_text(datagrams: "DatagramSummary") -> str:
    """Return the loss in words: `no loss`, `1 234 lost (0.02 %)`."""
    if datagrams.lost is None:
        return "loss unknown"
    if not datagrams.lost:
        return "no loss"
    return f"{numbers.count(datagrams.lost)} lost ({loss_percent(datagrams.lost_percent)})"


def loss_places_text(places: "LossByHost | None") -> str:
    """Return where datagrams were lost: `network 1 222, remote host 12`; empty if none were, or if unknown."""
    if places is None:
        return ""
    parts = (("local host", places.near), ("network", places.network), ("remote host", places.far))
    known = [f"{name}{NBSP}{numbers.count(value)}" for name, value in parts if value]
    return ", ".join(known)


def loss_shares_text(places: "LossByHost | None") -> str:
    """Return the shares of the places of loss, the largest first: `network 70 %, remote 30 %`; empty if unknown."""
    if places is None:
        return ""
    parts = (("network", places.network), ("remote", places.far), ("local", places.near))
    known = sorted(((value, name) for name, value in parts if value), key=lambda part: -part[0])
    if len(known) < 2:
        return next((name for _, name in known), "")
    whole = sum(value for value, _ in known)
    return ", ".join(f"{name}{NBSP}{numbers.percent(percent_of(value, whole), 0)}" for value, name in known)


def bursts_text(datagrams: "DatagramSummary") -> str:
    """Return the bursts of loss: `12 bursts of loss, the longest 5`; empty without any."""
    if not datagrams.bursts:
        return ""
    longest = "" if datagrams.longest_burst is None else f", the longest {numbers.count(datagrams.longest_burst)}"
    return f"{numbers.quantity(datagrams.bursts, 'burst')} of loss{longest}"


def reordering_text(datagrams: "DatagramSummary") -> str:
    """Return the reordering: `34 reordered by up to 3`; empty without any."""
    if not datagrams.reordered:
        return ""
    extent = "" if datagrams.max_extent is None else f" by up to {numbers.count(datagrams.max_extent)}"
    return f"{numbers.count(datagrams.reordered)} reordered{extent}"


def datagram_facts(datagrams: "DatagramSummary") -> list[str]:
    """Return what else is known of a direction: mode, bursts, reordering, RTT, one-way delays, type of service."""
    mode = "" if datagrams.mode is None else f"mode {datagrams.mode}"
    size = "" if datagrams.datagram_bytes is None else numbers.datagrams(datagrams.datagram_bytes)
    late = "" if not datagrams.late else f"{numbers.count(datagrams.late)} too late"
    skipped = "" if not datagrams.skipped else f"{numbers.count(datagrams.skipped)} not sent in time"
    marks = "" if not datagrams.ce_marks else f"{numbers.count(datagrams.ce_marks)} marked for congestion"
    rtt = "" if datagrams.rtt_us is None else f"median RTT {numbers.round_trip(datagrams.rtt_us)}"
    rises = [
        f"one-way delay {name}{numbers.latency(value_ns)} above the minimum"
        for name, value_ns in (("", datagrams.delay_rise_ns), ("of the reports back ", datagrams.return_rise_ns))
        if value_ns is not None
    ]
    bursts, reordering = bursts_text(datagrams), reordering_text(datagrams)
    return list(
        filter(None, (size, mode, rtt, bursts, reordering, late, skipped, *rises, marks, service_text(datagrams)))
    )


def capacity_text(capacity: "CapacitySummary") -> str:
    """Return what a search has found: the best second, and the highest rate that loses no more than allowed."""
    best = (
        f"{numbers.rate(capacity.bit_s)} in the best second ({loss_percent(capacity.lost_percent)} lost, "
        f"delay variation {numbers.latency(capacity.delay_variation_ns)}, RTT {numbers.latency(capacity.rtt_ns)})"
    )
    if capacity.loss_free_bit_s is not None:
        return f"{best}, {numbers.rate(capacity.loss_free_bit_s)} within the loss goal for 5{NBSP}s"
    return f"{best}, no rate within the loss goal" if capacity.is_complete else f"{best}; the search was cut off"


def capacity_texts(summary: "Summary") -> list[str]:
    """Return what the search of each direction has found; nothing for a run without one."""
    rows = single_directions(summary)
    arrows = {direction: f"{numbers.arrow(direction)} " if len(rows) > 1 else "" for direction, _ in rows}
    return [
        f"{arrows[direction]}{capacity_text(datagrams.capacity)}"
        for direction, datagrams in rows
        if datagrams.capacity is not None
    ]


def service_text(datagrams: "DatagramSummary") -> str:
    """Return DSCP and ECN as sent and as arrived: `DSCP 46 sent, 0 arrived`; empty if they are the same."""
    sent, arrived = datagrams.sent_tos, datagrams.received_tos
    if sent is None or arrived is None or sent == arrived:
        return ""
    parts: list[str] = []
    if sent >> _DSCP_SHIFT != arrived >> _DSCP_SHIFT:
        parts.append(f"DSCP {sent >> _DSCP_SHIFT} sent, {arrived >> _DSCP_SHIFT} arrived")
    if sent & 3 != arrived & 3:
        parts.append(f"{_ECN_NAMES[sent & 3]} sent, {_ECN_NAMES[arrived & 3]} arrived")
    return ", ".join(parts)


def run_losses(summary: "Summary") -> list[str]:
    """Return the losses of each direction in words, with their places: `→ 3 lost (0.02 %): network 3`."""
    rows = single_directions(summary)
    texts: list[str] = []
    for direction, datagrams in rows:
        arrow = f"{numbers.arrow(direction)} " if len(rows) > 1 else ""
        places = loss_places_text(datagrams.lost_at)
        texts.append(f"{arrow}{loss_text(datagrams)}{places and f': {places}'}")
    return texts


def single_directions(summary: "Summary") -> "list[tuple[Direction, DatagramSummary]]":
    """Return each direction with datagrams, without the total of both."""
    return [
        (direction, measured.datagrams)
        for direction, measured in summary.measurements
        if measured.datagrams is not None and direction is not Direction.DUPLEX
    ]


def udp_text(summary: "Summary") -> str:
    """Return the facts of each direction in one line: `→ 1 472-byte datagrams, mode quality, …`."""
    rows = single_directions(summary)
    texts = [", ".join(datagram_facts(datagrams)) for _, datagrams in rows]
    if len(set(texts)) < 2:
        return next(iter(texts), "")
    return "; ".join(f"{numbers.arrow(direction)} {text}" for (direction, _), text in zip(rows, texts, strict=True))
