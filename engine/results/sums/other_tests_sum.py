"""The payload of the endpoint's other tests beside a run, in one interval and in the whole run. Pure."""

from typing import Final

from ...model.counters.samples import OtherTests
from ...model.events import Sampled
from ..summary import Measurement, OtherTestsSummary

FIGURES: Final = ("other_tests", "other_received_mbit_s", "other_sent_mbit_s")
"""The columns of an interval: how many tests, and the payload that the endpoint received and sent in them."""


def summarize_others(others: OtherTests | None, span_ns: int) -> OtherTestsSummary | None:
    """Return the rates of the other tests over the time that is known; None if no sample has them."""
    if others is None:
        return None
    rates = (Measurement(count, span_ns).bit_s for count in (others.received_bytes, others.sent_bytes))
    return OtherTestsSummary(others.tests, others.sessions, *rates)


def interval_figures(far: Sampled | None) -> dict[str, float | int | None]:
    """Return the figures of the endpoint's sample; empty if it has none."""
    others = None if far is None else far.sample.others
    if far is None or others is None:
        return {}
    counts, span_ns = (others.received_bytes, others.sent_bytes), far.sample.interval_ns
    rates = (Measurement(count, span_ns).bit_s / 1e6 for count in counts)
    return dict(zip(FIGURES, (others.tests, *rates), strict=True))
