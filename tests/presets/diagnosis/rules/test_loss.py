"""Lost packets: how many are too many, and which interface has lost them."""

from typing import Any

import pytest
from linkgauge.engine.model.counters.samples import NicCounts
from linkgauge.presets.diagnosis.diagnose import diagnose
from linkgauge.presets.diagnosis.finding import Finding
from linkgauge.presets.diagnosis.flow_view import flow_views
from linkgauge.presets.diagnosis.rules.loss import find_loss_limits

from ..evidence_cases import probed, run, unseen_sender


def findings(**case: Any) -> list[Finding]:
    """Return the findings of this rule alone."""
    (view,) = flow_views(run(**case))
    return list(find_loss_limits(view))


@pytest.mark.parametrize(
    ("retransmitted", "rtt_us", "is_limit"),
    [(None, 1_000, False), (0.0001, 30_000, False), (0.001, 1_000, True), (0.001, 100, False), (0.02, 100, True)],
)
def test_loss_limits_if_it_is_high_or_lowers_the_bound_of_tcp(
    retransmitted: float | None, rtt_us: int, *, is_limit: bool
) -> None:
    """A thousandth costs much on a long path and nothing on a short one."""
    codes = [each.code for each in findings(retransmitted=retransmitted, rtt_us=rtt_us, min_rtt_us=rtt_us)]
    assert codes == (["loss"] if is_limit else [])


def test_an_interface_that_counts_the_losses_is_named_instead_of_the_path() -> None:
    """Broken frames come before dropped ones, and a few of either do not explain the losses."""
    lossy = {"retransmitted": 0.02, "retransmits": 40}
    for counts, code in (
        (NicCounts(1, 1, 50, 50, 0), "nic-errors"),
        (NicCounts(1, 1, 0, 50, 0), "nic-drops"),
        (NicCounts(1, 1, 9, 9, 0), "loss"),
    ):
        (finding,) = findings(far={"counts": counts}, **lossy)
        assert finding.code == code


def test_the_evidence_of_loss_has_tcps_bound() -> None:
    """By the bound of Padhye and others, which is near that of Mathis for a small loss."""
    (finding,) = findings(retransmitted=0.004, retransmits=40, rtt_us=450, min_rtt_us=450)
    assert finding.evidence.startswith("0.4 % of the payload was sent again (40 segments)")
    assert finding.evidence.endswith("with a round trip of 450 µs that leaves TCP about 420.3 Mb/s")


# 500 Mb/s in flight with a round trip of 525 us fill the congestion window; 160 of 16 intervals are 10 for each.
POLICED = {
    "retransmitted": 0.0035,
    "retransmits": 160,
    "rtt_us": 525,
    "min_rtt_us": 500,
    "cwnd_bytes": 33_000,
    "intervals": 16,
    "rate_spread": 0.05,
}


def test_loss_at_a_steady_rate_without_a_queue_is_a_policers() -> None:
    """Its remedy tests a lower rate, at which nothing is lost."""
    (finding,) = findings(**POLICED)
    assert finding.code == "policer"
    assert finding.text == "A policer on the path drops all packets above its rate."
    assert finding.evidence.startswith("it lets about 500 Mb/s pass; ")
    assert "the rate stays the same within 5 %, and no queue builds: round trip 525 µs, at best 500 µs" in (
        finding.evidence.replace("\u00a0", " ")
    )
    assert "--rate 475M" in finding.remedy
    assert "tc qdisc replace dev eth0 root tbf rate 475mbit" in finding.remedy


@pytest.mark.parametrize(
    "change",
    [
        {"rate_spread": 0.06},  # 0.17 / sqrt(10) is 0.054
        {"rate_spread": None},
        {"retransmits": None},
        {"retransmits": 29},  # too few to know their spread
        {"intervals": 7},
        {"rtt_us": 2_500},  # a queue of 2 ms, in which a link of 500 Mb/s has 80 packets
        {"rtt_us": 1_100},
        {"min_rtt_us": None},
        {"cwnd_bytes": 60_000},  # the flow waits for something else, which makes it steady
        {"cwnd_bytes": None},
    ],
)
def test_other_loss_is_not_a_policers(change: dict[str, Any]) -> None:
    """A policer is named only if all its signs are there: a lossy long path has some of them."""
    (finding,) = findings(**POLICED | change)
    assert finding.code == "loss"


@pytest.mark.parametrize(
    "change",
    [
        {
            "rtt_us": 1_900,
            "low_rtt_us": 1_800,
            "rate_spread": 0.09,
        },  # a queue that is never empty, at a constant rate
        {"rtt_us": 7_000, "low_rtt_us": 6_800, "min_rtt_us": 5_500, "rate_spread": 0.03},  # a shorter one
        {  # shared by sessions
            "rtt_us": 7_000,
            "low_rtt_us": 6_800,
            "min_rtt_us": 5_500,
            "rate_spread": 0.15,
            "joint_spread": 0.1,
        },
        {"lossy": 0.2, "rate_spread": 0.3},  # all of it in a fifth of the time: a slow start
        {"congestion": "bbr", "rtt_us": 2_500},  # it keeps its rate in spite of loss
    ],
)
def test_losses_of_a_queue_that_the_flow_fills_do_not_limit_it(change: dict[str, Any]) -> None:
    """Ordinary congestion of a full link is not named before the link."""
    assert findings(**POLICED | change) == []


@pytest.mark.parametrize(
    "change",
    [
        {"retransmitted": 0.02, "rate_spread": 0.3},  # five times the rate that this loss by chance allows
        {"retransmitted": 0.008, "lossy": 0.2, "rate_spread": 0.3},  # twice, and seldom: a large bucket
        {"retransmitted": 0.02, "loss_dispersion": 6.0, "rate_spread": 0.3, "rtt_us": 950},  # with a short queue
        {"rtt_us": 700, "rate_spread": 0.03},  # nine packets: as late as acknowledgements may be
        {"joint_spread": 0.1, "rate_spread": 0.15},  # together the sessions vary little
        {"congestion": "bbr", "cwnd_bytes": 66_000, "rate_spread": 0.3},
    ],
)
def test_a_policer_shows_in_other_ways_as_well(change: dict[str, Any]) -> None:
    """A large bucket lets TCP grow until much is lost at once; sessions share its rate; BBR keeps its rate."""
    assert [each.code for each in findings(**POLICED | change)] == ["policer"]


@pytest.mark.parametrize("intervals", [8, 40, 1_000])
@pytest.mark.parametrize("lost_in_each", [4, 25, 400])
def test_the_rate_of_a_policer_may_spread_less_the_more_packets_are_lost(intervals: int, lost_in_each: int) -> None:
    """Chance evens out over many losses, in short and long tests."""
    limit = 0.17 / lost_in_each**0.5
    lost = {"intervals": intervals, "retransmits": intervals * lost_in_each}
    for spread, code in ((0.99 * limit, "policer"), (1.01 * limit, "loss")):
        assert [each.code for each in findings(**POLICED | lost | {"rate_spread": spread})] == [code]


def test_an_interface_that_counts_the_losses_is_named_instead_of_a_policer() -> None:
    """A full receive ring keeps a rate steady as well."""
    (finding,) = findings(far={"counts": NicCounts(1, 1, 0, 160, 0)}, **POLICED)
    assert finding.code == "nic-drops"


def test_losses_without_selective_acknowledgements_have_a_second_finding() -> None:
    """Runs know the option as well as observed connections; without losses it costs nothing."""
    codes = [each.code for each in diagnose(run(500, retransmitted=0.02, retransmits=900, sack=False))]
    assert codes == ["loss", "sack-off"]
    assert "sack-off" not in [each.code for each in diagnose(run(500, sack=False, rtt_us=9_000))]


# 50 Mb/s and 200 ms with a queue of 200 KB: one slow start lost 320 segments, and TCP has not grown back.
ONE_SLOW_START = {
    "mbit_s": 28.5,
    "retransmitted": 0.0214,
    "retransmits": 320,
    "rtt_us": 200_624,
    "min_rtt_us": 200_000,
    "cwnd_bytes": 848_528,
    "intervals": 24,
    "rate_spread": 0.454,
    "lossy": 0.08,
    "quiet": 0.68,
}


def test_losses_of_one_slow_start_are_not_a_policers() -> None:
    """A short queue of a long path drops much at once, and the rate is above the bound by chance."""
    assert "policer" not in [each.code for each in findings(**ONE_SLOW_START)]


def test_losses_that_come_again_but_seldom_are_only_guessed_to_be_a_policers() -> None:
    """A full queue of few packets looks the same."""
    (finding,) = findings(**{**ONE_SLOW_START, "quiet": 0.1})
    assert (finding.code, finding.confidence) == ("policer", 0.5)
    assert finding.evidence.endswith("a full queue of few packets would look the same")
    (finding,) = findings(**{**ONE_SLOW_START, "lossy": 0.6, "quiet": 0.1})
    assert (finding.code, finding.confidence) == ("policer", 0.5)
    (finding,) = findings(**{**ONE_SLOW_START, "lossy": 0.6, "quiet": 0.1, "rate_spread": 0.2})
    assert (finding.code, finding.confidence) == ("policer", 0.8)


@pytest.mark.parametrize(
    ("rise_ms", "rate_spread", "is_lossy"),
    [(31.2, 0.03, False), (0.0, 0.03, True), (31.2, 0.5, True), (None, 0.03, True)],
)
def test_packets_out_of_order_behind_a_full_queue_are_not_loss(
    rise_ms: float | None, rate_spread: float, *, is_lossy: bool
) -> None:
    """If the sender is not seen, probes find the queue; a busy device delays them as well, but then rates vary."""
    case = unseen_sender(200.0, out_of_order=2_000, retransmits=None, retransmitted=None, rate_spread=rate_spread)
    (view,) = flow_views(probed(case, rise_ms))
    assert [each.code for each in find_loss_limits(view)] == (["loss"] if is_lossy else [])
