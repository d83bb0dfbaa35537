"""Sums of the endpoint's other tests: unknown, none, some."""

from linkgauge.engine.model.counters.samples import OtherTests, Sample, combine
from linkgauge.engine.model.directions import End
from linkgauge.engine.model.events import Sampled
from linkgauge.engine.model.plan import SECOND_NS, Settings
from linkgauge.engine.results.summary import OtherTestsSummary
from linkgauge.engine.results.sums.end_sum import EndSum
from linkgauge.engine.results.sums.other_tests_sum import interval_figures


def sample(index: int, others: OtherTests | None) -> Sample:
    """Return the far end's sample of a second."""
    return Sample(End.FAR, index, (index + 1) * SECOND_NS, SECOND_NS, (), others=others)


def summarize(*others: OtherTests | None) -> OtherTestsSummary | None:
    """Return the summary of some seconds."""
    return combine([EndSum.of(sample(index, each)) for index, each in enumerate(others)]).others_summary


def test_rates_are_means_over_all_of_the_time_that_is_known() -> None:
    """Half of the time with 80 Mb/s are 40 Mb/s."""
    both = summarize(OtherTests(2, 3, 10_000_000, 1_000_000), OtherTests(), None)
    assert both == OtherTestsSummary(2, 3, 40e6, 4e6)


def test_no_other_test_is_zero_and_an_endpoint_without_counts_is_unknown() -> None:
    """0 is measured."""
    assert summarize(OtherTests(), OtherTests()) == OtherTestsSummary(0, 0, 0.0, 0.0)
    assert summarize(None, None) is None


def test_an_interval_has_its_own_rates() -> None:
    """Or no columns."""
    sampled = Sampled(sample(0, OtherTests(1, 4, 125_000, 0)), Settings(), warmup=False)
    assert interval_figures(sampled) == {
        "other_tests": 1,
        "other_received_mbit_s": 1.0,
        "other_sent_mbit_s": 0.0,
    }
    assert interval_figures(Sampled(sample(0, None), Settings(), warmup=False)) == interval_figures(None) == {}
