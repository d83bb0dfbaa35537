"""The figures of datagrams in one interval, for the rows of CSV and the lines of JSON. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from ...model.counters.latency_histogram import summarize_latency
from ...model.counters.samples import DatagramSample, latency_counts, sum_known
from ...model.directions import Direction
from ...model.events import Sampled
from ..rate_and_loss import lost_percent, per_second
from .datagram_sums import missing_datagrams

FIGURES: Final[tuple[str, ...]] = (
    "rate_mbit_s",
    "datagram_bytes",
    "packets_s",
    "sent",
    "lost",
    "lost_percent",
    "duplicates",
    "reordered",
    "jitter_ms",
    "delay_variation_p50_ms",
    "delay_variation_p99_ms",
)
"""The names of the figures, which are columns of the CSV."""

Figures = dict[str, int | float | None]


def flow_figures(receiver: Sampled | None, sender: Sampled | None, flow: Direction) -> Figures:
    """Return the figures of all sessions of a single direction; empty without datagrams."""
    received, sent = _sessions(receiver, flow), _sessions(sender, flow)
    if not received and not sent:
        return {}
    delays = () if receiver is None else receiver.sample.delay_variation
    variation = summarize_latency(latency_counts(delays, flow))
    return {
        **_figures(list(received.values()), list(sent.values()), receiver),
        "delay_variation_p50_ms": None if variation is None else variation.p50_ns / 1e6,
        "delay_variation_p99_ms": None if variation is None else variation.p99_ns / 1e6,
    }


def session_figures(receiver: Sampled | None, sender: Sampled | None, flow: Direction) -> Mapping[int, Figures]:
    """Return the figures of each session by its number. The percentile of delays is of all together."""
    received, sent = _sessions(receiver, flow), _sessions(sender, flow)
    return {
        number: _figures(
            [received[number]] if number in received else [], [sent[number]] if number in sent else [], receiver
        )
        for number in {*received, *sent}
    }


def _sessions(sampled: Sampled | None, flow: Direction) -> dict[int, DatagramSample]:
    """Return the open sessions of a direction at one end: those of the settings, and any with counts."""
    if sampled is None:
        return {}
    return {
        part.session: part
        for part in sampled.sample.datagrams
        if part.direction is flow
        and (part.session <= sampled.settings.sessions or part.sent or part.received or part.advanced)
    }


def _figures(
    received: Sequence[DatagramSample], sent: Sequence[DatagramSample], receiver: Sampled | None
) -> Figures:
    rates = [part.rate_bit_s for part in sent]
    sizes = {part.datagram_bytes for part in sent}
    count = sum_known(part.received for part in received)
    lost = sum_known(missing_datagrams(part) for part in received)
    jitters = sum_known(part.jitter_count for part in received)
    jitter_ns = sum_known(part.jitter_sum_ns for part in received)
    span_ns = 0 if receiver is None else receiver.sample.interval_ns
    return {
        # 0 is no limit: then all sessions together have none.
        "rate_mbit_s": sum(rate for rate in rates if rate) / 1e6 if rates and all(rates) else None,
        "datagram_bytes": sizes.pop() if len(sizes) == 1 else None,
        "packets_s": per_second(count, span_ns),
        "sent": sum_known(part.sent for part in sent),
        "lost": lost,
        "lost_percent": lost_percent(lost, count),
        "duplicates": sum_known(part.duplicates for part in received),
        "reordered": sum_known(part.reordered for part in received),
        "jitter_ms": jitter_ns / jitters / 1e6 if jitters and jitter_ns is not None else None,
    }
