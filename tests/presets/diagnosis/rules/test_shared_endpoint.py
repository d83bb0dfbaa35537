"""Other tests of the endpoint: the part of the gap that they explain."""

from dataclasses import replace

from linkgauge.engine.model.counters.samples import NicCounts
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.results.summary import OtherTestsSummary
from linkgauge.engine.results.udp.loss_location import LossCauses
from linkgauge.presets.diagnosis.diagnose import diagnose, diagnose_untargeted
from linkgauge.presets.diagnosis.evidence import DatagramEvidence, Evidence

from ..evidence_cases import WANTED_BIT_S, first, run


def beside(evidence: Evidence, received: float = 0.0, sent: float = 0.0, tests: int = 1) -> Evidence:
    """Return the evidence of a run beside other tests, whose rates are in Mb/s."""
    others = OtherTestsSummary(tests, 2 * tests, received * 1e6, sent * 1e6)
    return replace(evidence, others=others)


def test_another_test_that_carries_the_missing_rate_is_the_first_finding() -> None:
    """With its rate, and with a remedy."""
    finding = first(beside(run(500, rtt_us=9_000), received=440))
    assert (finding.code, finding.end) == ("other-tests", None)
    assert finding.text == "Another test on this endpoint shares its link."
    assert finding.evidence == "1 test, 2 sessions: the endpoint receives 440 Mb/s in it, 500 Mb/s in this one"
    assert "--exclusive" in finding.remedy
    assert finding.share is not None
    assert abs(finding.share - 440 / (WANTED_BIT_S / 1e6 - 500)) < 0.01


def test_others_explain_no_more_than_they_carry() -> None:
    """A slow test does not explain a large gap, and one in the other direction takes nothing."""
    codes = [finding.code for finding in diagnose(beside(run(500, rtt_us=9_000), received=0.064))]
    assert codes == ["path-slow"]
    assert "other-tests" not in [f.code for f in diagnose(beside(run(500, rtt_us=9_000), sent=440))]
    findings = diagnose(beside(run(500, rtt_us=9_000), received=100))
    assert {finding.code for finding in findings} == {"path-slow", "other-tests"}
    assert sum(finding.share or 0.0 for finding in findings) <= 1.0


def test_the_direction_in_shares_with_the_payload_that_the_endpoint_sends() -> None:
    """Several tests are named in the plural, and those of an ended run in the past."""
    evidence = beside(run(500, rtt_us=9_000), sent=440, tests=2)
    flows = tuple(replace(flow, direction=Direction.IN) for flow in evidence.flows)
    finding = first(replace(evidence, direction=Direction.IN, flows=flows, has_ended=True))
    assert finding.text == "Other tests on this endpoint shared its link."
    assert "2 tests, 4 sessions: the endpoint sent 440 Mb/s in them" in finding.evidence


def test_the_bytes_of_other_tests_are_not_other_traffic_as_well() -> None:
    """One cause is named once; traffic beyond both is still named."""
    counts = {"counts": NicCounts(600_000_000, 0, 0, 0, 0)}  # 960 Mb/s over 5 s
    alone = run(500, rtt_us=9_000, far=counts)
    assert first(alone).code == "other-traffic"
    assert [f.code for f in diagnose(beside(alone, received=400))][:1] == ["other-tests"]
    assert "other-traffic" not in [f.code for f in diagnose(beside(alone, received=400))]
    assert "other-traffic" in [f.code for f in diagnose(beside(alone, received=200))]


def test_a_test_that_its_window_limits_is_not_explained_by_others() -> None:
    """It would not use more."""
    limited = run(100, window_bytes=65_536, sndbuf_limited=0.9, rtt_us=6_500, min_rtt_us=6_500)
    limited = replace(limited, flows=(replace(limited.flows[0], send_window_bytes=65_536),))
    assert first(limited).code == first(beside(limited, received=300)).code == "window-below-bdp"


def test_without_a_target_others_are_named_unless_the_test_limits_itself() -> None:
    """A test that reaches its own rate does not miss anything."""
    free = run(500, expected_bit_s=None)
    (finding,) = diagnose_untargeted(beside(free, received=440))
    assert (finding.code, finding.share) == ("other-tests", None)
    assert diagnose_untargeted(beside(run(500, expected_bit_s=None, rate_bit_s=500_000_000), received=440)) == ()
    assert diagnose_untargeted(beside(free, received=1)) == ()
    assert diagnose_untargeted(free) == ()


def test_a_run_as_expected_has_no_other_finding() -> None:
    """Even if other tests ran."""
    assert [finding.code for finding in diagnose(beside(run(945), received=500))] == ["at-expected"]


def test_lost_datagrams_are_explained_by_other_tests_and_sent_ones_that_all_arrive_are_not() -> None:
    """The losses remain a result of their own."""
    flow = run(400).flows[0]
    counts = DatagramEvidence(500_000, 250_000, LossCauses(network=250_000), datagram_bytes=1_472)
    lossy = replace(run(400), flows=(replace(flow, datagrams=counts),))
    workload = type(lossy.workload).UDP
    codes = {finding.code for finding in diagnose(beside(replace(lossy, workload=workload), received=500))}
    assert {"other-tests", "loss"} <= codes
    whole = replace(lossy, flows=(replace(flow, datagrams=replace(counts, lost=0)),), workload=workload)
    assert "other-tests" not in {finding.code for finding in diagnose(beside(whole, received=500))}
    assert lossy.of_end(End.FAR) is lossy.far
