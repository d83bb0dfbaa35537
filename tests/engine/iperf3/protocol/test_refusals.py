"""Refusals: every number has a sentence, also one that this version does not know."""

import pytest
from linkgauge.engine.iperf3.protocol.refusals import ErrorNumber, explain_number, refuse_by_number


def test_every_number_has_a_sentence() -> None:
    """A refusal without its own text has it."""
    for number in ErrorNumber:
        assert not explain_number(number).startswith("iperf3 error")
        assert str(refuse_by_number(number)) == explain_number(number)


@pytest.mark.parametrize(("number", "text"), [(None, "it gave no reason"), (-5, "iperf3 error -5")])
def test_a_number_that_nobody_knows_is_shown(number: int | None, text: str) -> None:
    """A server sends any 32 bits."""
    assert explain_number(number) == text
