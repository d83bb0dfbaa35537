"""The result of many bursts: kinds, medians with their intervals, and what follows for TCP and for UDP."""

from dataclasses import replace

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.results.shape.burst_reading import BurstReading
from linkgauge.engine.results.shape.shape_result import LimitKind, ShapeResult, Spread, judge_direction

POLICED = BurstReading(100e6, 50e3, 60_000, True, False, 0.0, 0.0, 1e9)
SHAPED = BurstReading(100e6, 50e3, 60_000, True, True, 125e3, 10e6, 1e9)
SIZES = {"datagram_bytes": 1_472, "frame_bytes": 1_514}


@pytest.mark.parametrize(
    ("reading", "kind"),
    [
        (POLICED, LimitKind.POLICER),
        (SHAPED, LimitKind.SHAPER),
        (replace(SHAPED, cbs_bytes=1_514.0), LimitKind.LINE),
        (replace(POLICED, cbs_bytes=1_514.0), LimitKind.POLICER),
        (replace(POLICED, cir_bit_s=None), LimitKind.NONE),
    ],
)
def test_the_kind_is_that_of_most_bursts(reading: BurstReading, kind: LimitKind) -> None:
    """Three of ten that say something else change nothing; a line without a bucket is a line, not a shaper."""
    other = SHAPED if kind in {LimitKind.POLICER, LimitKind.NONE} else POLICED
    shape = judge_direction(Direction.OUT, [reading] * 7 + [other] * 3, **SIZES)
    assert shape.kind is kind


def test_too_few_readings_are_no_result() -> None:
    """Two bursts are no median; none at all are unknown as well."""
    for readings in ([], [POLICED] * 2):
        shape = judge_direction(Direction.IN, readings, **SIZES)
        assert shape.kind is LimitKind.UNKNOWN
        assert shape.fitting_bit_s is None
        assert not ShapeResult("peer", 4, None, (shape,)).stands


def test_the_median_of_ten_has_the_interval_of_its_second_values() -> None:
    """By order statistics: 97.9 % of samples; fewer than six have their range."""
    assert Spread.of_values([float(n) for n in range(10, 0, -1)]) == Spread(5.5, 2.0, 9.0)
    assert Spread.of_values([3.0, 1.0, 2.0]) == Spread(2.0, 1.0, 3.0)
    assert Spread.of_values([7.0]) == Spread(7.0, 7.0, 7.0)


def test_the_fitting_rate_is_payload_a_little_below_cir() -> None:
    """To three digits, from the low end of the interval."""
    shape = judge_direction(Direction.OUT, [POLICED] * 10, **SIZES)
    assert shape.payload_bit_s == pytest.approx(100e6 * 1_472 / 1_514)
    assert shape.fitting_bit_s == 95_200_000


def test_a_bucket_holds_a_round_trip_if_it_is_as_large_as_what_cir_carries_in_it() -> None:
    """At 100 Mb/s a bucket of 50 kB holds 4 ms; a line has no bucket to speak of."""
    shape = judge_direction(Direction.OUT, [POLICED] * 10, **SIZES)
    assert shape.round_trip_bytes(4_000_000) == pytest.approx(50e3)
    assert [shape.holds_round_trip(ns) for ns in (3_900_000, 4_100_000, None)] == [True, False, None]
    line = judge_direction(Direction.OUT, [replace(SHAPED, cbs_bytes=1_514.0)] * 10, **SIZES)
    assert line.holds_round_trip(1_000_000) is None


def test_a_queue_is_of_the_bursts_that_waited() -> None:
    """It is full if most of them lost something; a policer has none."""
    shape = judge_direction(Direction.OUT, [SHAPED] * 8 + [POLICED] * 2, **SIZES)
    assert shape.queue == Spread(125e3, 125e3, 125e3)
    assert shape.queue_is_full
    assert not judge_direction(Direction.OUT, [replace(SHAPED, has_loss=False)] * 8, **SIZES).queue_is_full
    assert judge_direction(Direction.OUT, [POLICED] * 8, **SIZES).queue is None
