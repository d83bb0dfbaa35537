"""The time of an end's cores and workers."""

from linkgauge.engine.model.directions import End
from linkgauge.presets.diagnosis.core_load import (
    crowded_out,
    describe_core_load,
    has_full_core,
    hottest_core,
    throttled_share,
    used_or_waited,
)
from linkgauge.presets.diagnosis.evidence import CoreLoad

from .evidence_cases import FULL, IDLE, end, run


def test_a_wait_is_for_a_quota_or_for_another_process() -> None:
    """A quota's part of a worker's wait is never more than the wait."""
    stopped = end(End.NEAR, waiting=0.5, throttled=0.2, busiest_worker=0.3)
    assert (throttled_share(stopped), crowded_out(stopped)) == (0.2, 0.3)
    assert used_or_waited(stopped) == 0.8
    assert throttled_share(end(End.NEAR, waiting=0.1, throttled=0.4)) == 0.1
    assert used_or_waited(end(End.NEAR)) is None
    assert used_or_waited(end(End.NEAR, waiting=0.9, busiest_worker=0.4)) == 1.0


def test_the_busiest_core_is_one_of_those_given() -> None:
    """Another one may be full."""
    crowded = end(End.NEAR, cores=(CoreLoad(0.5, 0.5, 0.0, 0.0), CoreLoad(0.1, 0.0, 0.0, 0.0)))
    assert hottest_core(crowded) == (0, crowded.cores[0])
    assert hottest_core(crowded, (1,)) == (1, crowded.cores[1])
    assert "core 1 is 10 % busy" in describe_core_load(run(), crowded, (1,)).replace("\u00a0", " ")
    assert (has_full_core(end(End.NEAR, cores=FULL)), has_full_core(end(End.NEAR, cores=IDLE))) == (True, False)
