"""The sums of one end's host."""

import pytest
from linkgauge.engine.model.counters.samples import CpuWaits, Sample, combine
from linkgauge.engine.model.directions import End
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.engine.results.sums.end_sum import EndSum


def _sample(index: int, process_cpu_ns: int | None, waits: CpuWaits | None = None) -> Sample:
    end_ns = (index + 1) * SECOND_NS
    return Sample(End.NEAR, index, end_ns, SECOND_NS, (), process_cpu_ns=process_cpu_ns, waits=waits)


def test_a_sample_without_cpu_time_lowers_no_share() -> None:
    """Unknown is not idle."""
    sums = combine([EndSum.of(_sample(index, cpu_ns)) for index, cpu_ns in enumerate((SECOND_NS // 2, None))])
    assert sums.span_ns == 2 * SECOND_NS
    assert sums.process_share == 0.5
    assert sums.summary(payload_bytes=0).process_percent == 50


def test_shares_are_unknown_without_a_report() -> None:
    """And no quota is none, not zero."""
    assert EndSum().process_share is None
    assert EndSum().wait_share is None
    sums = EndSum.of(_sample(0, None, CpuWaits(worker_ns=SECOND_NS // 4)))
    assert (sums.wait_share, sums.quota_share) == (0.25, None)


@pytest.mark.parametrize("wait_ns", [SECOND_NS, 3 * SECOND_NS])
def test_no_share_of_time_is_more_than_the_whole(wait_ns: int) -> None:
    """A quota stops several cores at once, and each counts."""
    assert EndSum.of(_sample(0, None, CpuWaits(quota_ns=wait_ns))).quota_share == 1.0
