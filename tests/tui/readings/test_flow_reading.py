"""The values of gauges: the last second of a run in progress, and the results of one that has ended."""

from typing import Any

import pytest
from linkgauge.engine.model.counters.samples import Sample, SessionSample
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Sampled
from linkgauge.engine.model.expected_rate import ExpectedRate
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.tui.readings.flow_reading import FlowReading, flow_reading

from ..scripted_loads import state_after
from ..scripted_run import readings_of, view_of


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


def test_the_rate_is_what_the_receiver_got_in_the_last_second(world: Any) -> None:
    """The far end counts what goes out. Samples older than a second do not count."""
    board = readings_of(world, Plan(), lambda script: (script.run_for(20, 1e9), script.run_for(8, 5e9)))
    reading = flow_reading(view_of(board), Direction.OUT)
    assert reading.bit_s == pytest.approx(5e9, rel=0.02)
    assert reading.expected is not None
    assert reading.expected.bit_s == pytest.approx(7.2e9, rel=0.02)
    assert board.elapsed_ns == 7 * SECOND_NS


def test_a_late_sample_does_not_count_for_the_same_settings_again(world: Any) -> None:
    """It is from before two changes, and the second change reversed the first."""

    def drive(script: Any) -> None:
        script.run_for(4, 9e9)
        script.change_settings(Settings(sessions=5))
        script.change_settings(Settings())
        late = script.elapsed_ns
        sample = Sample(End.FAR, script.index, late, late, (SessionSample(Direction.OUT, 1, 10**6),))
        script.emit(Sampled(sample, Settings(), warmup=False))

    view = view_of(readings_of(world, Plan(), drive))
    assert flow_reading(view, Direction.OUT).bit_s is None


def test_a_gauge_has_at_the_end_the_rate_of_its_direction_alone(world: Any) -> None:
    """A mean over loads in different directions would mean nothing."""
    snapshot = state_after(world, None).snapshot()
    for direction, rate in ((Direction.OUT, 94.1e6), (Direction.IN, 94.1e6), (Direction.DUPLEX, 188.2e6)):
        flow = flow_reading(snapshot, direction)
        assert flow.bit_s == pytest.approx(rate, rel=0.01)
        assert flow.expected is not None
