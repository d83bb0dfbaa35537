"""The values of gauges, and the contents of the plot."""

import pytest
from linkgauge.engine.model.events import ExpectedRate
from linkgauge.engine.model.plan import Direction, Plan
from linkgauge.engine.results.responsiveness.plan import responsiveness_plan
from linkgauge.tui.readings.instrument_values import FlowReading, PlotContent, plot_contents


@pytest.mark.parametrize(
    ("expected_bit_s", "bit_s", "unit", "expected_text"),
    [
        (94.8e6, 26e9, "Mb/s", "94.80"),
        (94.8e6, 90e6, "Mb/s", "94.80"),
        (9_415e6, 12e9, "Mb/s", "9\u00a0415"),
        (23.5e9, 1e9, "Gb/s", "23.50"),
        (None, 26e9, "Gb/s", "–"),
        (None, 900e6, "Mb/s", "–"),
    ],
)
def test_a_gauge_keeps_the_digits_of_the_expected_rate(
    expected_bit_s: float | None, bit_s: float, unit: str, expected_text: str
) -> None:
    """A run that is far faster than its preset must not turn 94.80 Mb/s into 0.09 Gb/s."""
    expected = None if expected_bit_s is None else ExpectedRate(int(expected_bit_s), "documented", "a table")
    reading = FlowReading(Direction.OUT, bit_s, expected, highest_bit_s=bit_s)
    assert reading.scale.unit == unit
    assert reading.number(expected_bit_s) == expected_text


def test_only_a_test_with_loads_has_their_plot() -> None:
    """It comes first there."""
    assert plot_contents(responsiveness_plan())[0] is PlotContent.LOAD
    assert PlotContent.LOAD not in plot_contents(Plan(probe=True))
