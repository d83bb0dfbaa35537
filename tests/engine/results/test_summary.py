"""Rates of a measurement, with and without transactions."""

import pytest
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.engine.results.confidence import Estimate
from linkgauge.engine.results.summary import Measurement


def test_rates_are_per_second_of_the_span() -> None:
    """Half a second doubles them."""
    measurement = Measurement(1_000, SECOND_NS // 2, transactions=10)
    assert measurement.bit_s == 16_000
    assert measurement.transactions_s == 20


def test_a_stream_has_no_transactions_a_second() -> None:
    """None is unknown; a workload of transactions that carried none has 0."""
    assert Measurement(1_000, SECOND_NS).transactions_s is None
    assert Measurement(0, SECOND_NS, transactions=0).transactions_s == 0


def test_the_error_of_transactions_is_that_of_the_payload_rate() -> None:
    """Responses are of one size, so that the relative error is the same."""
    estimate = Estimate(8_000.0, 400.0, 15.0, 24)
    transactions = Measurement(1_000, SECOND_NS, transactions=10, estimate=estimate).transactions_estimate
    assert transactions is not None
    assert transactions.mean == pytest.approx(10)
    assert transactions.half_width_percent == pytest.approx(estimate.half_width_percent)


@pytest.mark.parametrize(
    "measurement",
    [
        Measurement(1_000, SECOND_NS, transactions=10),
        Measurement(0, SECOND_NS, transactions=0, estimate=Estimate(0.0, 0.0, 15.0, 24)),
        Measurement(1_000, SECOND_NS, estimate=Estimate(8_000.0, 400.0, 15.0, 24)),
    ],
)
def test_without_transactions_or_an_estimate_there_is_no_error_of_them(measurement: Measurement) -> None:
    """Nothing is divided by zero."""
    assert measurement.transactions_estimate is None
