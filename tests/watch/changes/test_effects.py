"""What a change must amount to."""

import pytest
from linkgauge.watch.changes.effects import EFFECTS
from linkgauge.watch.events import Metric


def test_every_metric_has_a_least_effect() -> None:
    """A new metric needs a decision."""
    assert set(EFFECTS) == set(Metric)


@pytest.mark.parametrize(
    ("metric", "before", "after", "is_reached"),
    [
        (Metric.GOODPUT_BIT_S, 1e9, 0.96e9, False),
        (Metric.GOODPUT_BIT_S, 1e9, 0.94e9, True),
        (Metric.GOODPUT_BIT_S, 0.94e9, 1e9, True),
        (Metric.LATENCY_S, 0.000_05, 0.000_2, False),
        (Metric.LATENCY_S, 0.000_3, 0.000_6, True),
        (Metric.LATENCY_S, 0.030, 0.033, False),
        (Metric.LOSS, 0.0, 0.000_5, False),
        (Metric.LOSS, 0.0, 0.002, True),
        (Metric.LOSS, 0.01, 0.012, False),
        (Metric.RETRANSMITS, 0.0, 50.0, False),
        (Metric.RETRANSMITS, 0.0, 500.0, True),
    ],
)
def test_a_change_counts_from_a_share_and_an_amount_on(
    metric: Metric, before: float, after: float, is_reached: bool
) -> None:
    """Both must be reached: 0.1 ms is no change, however large a share it is."""
    assert EFFECTS[metric].is_reached(before, after) is is_reached
