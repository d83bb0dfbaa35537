"""Directions, ends, and which end sends."""

import pytest
from linkgauge.engine.model.directions import Direction, End, PerDirection, sender_of
from linkgauge.engine.model.workload import Workload, all_workloads


def test_a_duplex_run_is_both_single_directions() -> None:
    """Each has a sender, and the other end counts."""
    assert Direction.DUPLEX.flows == (Direction.OUT, Direction.IN)
    assert Direction.IN.flows == (Direction.IN,)
    assert sender_of(Direction.OUT, Workload.STREAM) is End.NEAR
    assert sender_of(Direction.IN, Workload.STREAM) is End.FAR
    assert [end.label for end in End] == ["local", "remote"]
    assert End.NEAR.other is End.FAR
    assert End.FAR.other is End.NEAR


@pytest.mark.parametrize("workload", [w for w in all_workloads() if w.is_transactional])
def test_the_responding_end_sends_the_payload(workload: Workload) -> None:
    """Out asks at the near end, so the far end sends."""
    assert sender_of(Direction.OUT, workload) is End.FAR
    assert sender_of(Direction.IN, workload) is End.NEAR


def test_a_value_per_direction_is_indexed_by_direction() -> None:
    """Duplex is both directions together."""
    values = PerDirection(1, 2, 3)
    assert [values[direction] for direction in (Direction.OUT, Direction.IN, Direction.DUPLEX)] == [1, 2, 3]
