"""The figures of one interval of a responsiveness test, for its row of CSV and its JSON line. Pure.

The probe's requests have columns of their own in every run with a probe.
"""

from typing import Final

from ...model.directions import End
from ...model.events import Sampled
from .distribution import mean_ns, percentile_ns

FIGURES: Final = (
    "datagram_p50_us",
    "datagram_p99_us",
    "rise_out_us",
    "rise_in_us",
    "near_backlog_bytes",
    "far_backlog_bytes",
)
"""The columns: latency of datagrams, mean one-way rises, and the queues at the interfaces of both ends."""


def interval_figures(near: Sampled | None, far: Sampled | None) -> dict[str, float | int | None]:
    """Return the figures of both ends' samples; empty if the run is not a responsiveness test."""
    figures: dict[str, float | int | None] = {}
    for end, sampled in ((End.NEAR, near), (End.FAR, far)):
        if sampled is not None and sampled.sample.queue is not None:
            figures[f"{end.value}_backlog_bytes"] = sampled.sample.queue.backlog_bytes
    probe = None if near is None else near.sample.probe
    if probe is not None and probe.datagrams is not None:
        latency = probe.datagrams.latency.by_bucket
        figures["datagram_p50_us"] = _us(percentile_ns(latency, 50))
        figures["datagram_p99_us"] = _us(percentile_ns(latency, 99))
        figures["rise_out_us"] = _us(mean_ns(probe.datagrams.rise_out.by_bucket))
        figures["rise_in_us"] = _us(mean_ns(probe.datagrams.rise_in.by_bucket))
    return figures


def _us(ns: float | None) -> float | None:
    return None if ns is None else ns / 1_000
