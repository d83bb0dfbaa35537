"""How long the idle link is measured, by the kind of a run's probe."""

import pytest
from linkgauge.engine.metering.idle_time import idle_ns
from linkgauge.engine.model.plan import SECOND_NS, Plan, ResponsivenessTest


@pytest.mark.parametrize(
    ("plan", "seconds"),
    [
        (Plan(), 0),
        (Plan(probe=True), 1),
        (Plan(probe=True, responsiveness=ResponsivenessTest.ALONGSIDE), 2),
    ],
)
def test_a_plan_with_a_probe_has_an_idle_time(plan: Plan, seconds: int) -> None:
    """The rises of a responsiveness test need a better base."""
    assert idle_ns(plan) == seconds * SECOND_NS
