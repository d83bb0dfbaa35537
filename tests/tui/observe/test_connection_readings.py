"""One connection as a run: rates, TCP values, and the directions that are shown."""

from dataclasses import replace

from linkgauge.engine.model.directions import Direction
from linkgauge.tui.observe.connection_readings import ConnectionReadings, Histories, shown_direction
from linkgauge.tui.readings.flow_reading import flow_reading
from linkgauge.tui.words.numbers import RateUnit

from .example_observations import EXPECTED, connection, observation, received


def test_a_gauge_shows_the_last_interval_and_the_plot_all_of_them() -> None:
    """With the expected rate of the main direction."""
    histories = Histories()
    for second, bit_s in enumerate((8e6, 16e6, 2_400e6), 1):
        histories.update(observation([connection(1, bit_s)], second), [connection(1, bit_s).key])
    row = connection(1, 2_400e6)
    readings = ConnectionReadings(row, histories.of(row.key))
    view = readings.snapshot(RateUnit.MBIT, 95)
    reading = flow_reading(view, Direction.OUT)
    assert (reading.bit_s, reading.expected, reading.source) == (2_400e6, EXPECTED, "acknowledged")
    traces = readings._readings.traces
    assert [point.bit_s for point in traces.periods[0].points[Direction.OUT]] == [8e6, 16e6, 2_400e6]
    assert [(point.at_s, point.rtt_us) for point in traces.tcp[Direction.OUT]] == [
        (1, 20_100),
        (2, 20_100),
        (3, 20_100),
    ]
    assert view.windows == row.windows


def test_a_receiver_has_a_rate_and_no_window() -> None:
    """What arrived is counted at this end."""
    row = received(1, 8e6)
    histories = Histories()
    histories.update(observation([row]), [row.key])
    view = ConnectionReadings(row, histories.of(row.key)).snapshot(RateUnit.MBIT, 95)
    reading = flow_reading(view, Direction.IN)
    assert (reading.bit_s, reading.source) == (8e6, "")
    assert view.windows == ()


def test_both_directions_are_shown_if_each_has_more_payload_than_answers() -> None:
    """A thousandth of it is requests."""
    row = connection(1, 8e6)
    assert shown_direction(row) is Direction.OUT
    assert shown_direction(received(1, 8e6)) is Direction.IN
    assert shown_direction(connection(1, 0.0)) is Direction.OUT
    both = replace(row, in_=replace(row.in_, bit_s=4e6, bytes=4_000_000))
    assert shown_direction(both) is Direction.DUPLEX
    histories = Histories()
    histories.update(observation([both]), [both.key])
    view = ConnectionReadings(both, histories.of(both.key)).snapshot(RateUnit.MBIT, 95)
    assert [flow_reading(view, flow).bit_s for flow in Direction] == [8e6, 4e6, 12e6]


def test_histories_are_of_the_connections_that_are_shown_and_bounded() -> None:
    """Two minutes of an interval of a second."""
    histories = Histories()
    one, two = connection(1, 8e6), connection(2, 8e6)
    for second in range(1, 200):
        histories.update(observation([one, two], second), [one.key, two.key])
    assert len(histories.of(one.key)) == 120
    assert histories.of(one.key)[-1].elapsed_ns == 199 * 10**9
    histories.update(observation([one], 200), [one.key])
    assert histories.of(two.key) == ()


def test_the_line_of_the_expected_rate_comes_when_the_rate_is_near_it() -> None:
    """A tenth of it would be a flat line at the bottom of the plot."""
    slow, fast = connection(1, 24e6), connection(1, 4_000e6)
    readings = ConnectionReadings(slow, ())
    assert readings.fits(slow)
    assert not readings.fits(fast)
    assert not readings.fits(received(1, 4_000e6))
    assert ConnectionReadings(fast, ()).fits(slow)
