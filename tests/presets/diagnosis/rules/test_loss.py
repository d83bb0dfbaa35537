"""Lost packets: how many are too many, and which interface has lost them."""

from typing import Any

import pytest
from linkgauge.engine.model.samples import NicCounts
from linkgauge.presets.diagnosis.evidence import flow_views
from linkgauge.presets.diagnosis.finding import Finding
from linkgauge.presets.diagnosis.rules.loss import find_loss_limits

from ..evidence_cases import run


def findings(**case: Any) -> list[Finding]:
    """Return the findings of this rule alone."""
    (view,) = flow_views(run(**case))
    return list(find_loss_limits(view))


@pytest.mark.parametrize(
    ("retransmitted", "rtt_us", "is_limit"),
    [(None, 1_000, False), (0.0001, 30_000, False), (0.001, 1_000, True), (0.001, 100, False), (0.02, 100, True)],
)
def test_loss_limits_where_it_is_high_or_lowers_the_bound_of_tcp(
    retransmitted: float | None, rtt_us: int, *, is_limit: bool
) -> None:
    """A thousandth costs much on a long path and nothing on a short one."""
    codes = [each.code for each in findings(retransmitted=retransmitted, rtt_us=rtt_us, min_rtt_us=rtt_us)]
    assert codes == (["loss"] if is_limit else [])


def test_an_interface_that_counts_the_losses_is_named_instead_of_the_path() -> None:
    """Broken frames come before dropped ones, and a handful of either is no explanation."""
    lossy = {"retransmitted": 0.02, "retransmits": 40}
    for counts, code in (
        (NicCounts(1, 1, 50, 50, 0), "nic-errors"),
        (NicCounts(1, 1, 0, 50, 0), "nic-drops"),
        (NicCounts(1, 1, 9, 9, 0), "loss"),
    ):
        (finding,) = findings(far={"counts": counts}, **lossy)
        assert finding.code == code


def test_the_evidence_of_loss_has_tcps_bound() -> None:
    """By the bound of Mathis and others: MSS / RTT x sqrt(3/2 / loss)."""
    (finding,) = findings(retransmitted=0.02, retransmits=40, rtt_us=10_000, min_rtt_us=10_000)
    assert finding.evidence.startswith("2 % of the payload was sent again (40 segments)")
    assert finding.evidence.endswith("with a round trip of 10 ms that leaves TCP about 10.03 Mb/s")
