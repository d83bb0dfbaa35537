"""The options of a test that does not share its endpoint with others."""

from dataclasses import dataclass, replace
from typing import Final

from ...engine.model.plan import Plan
from ..words import parsing
from .click_extension.option_fields import flag, option
from .options import TEST

_WAIT_REMEDY: Final = "give seconds, or a time such as 5m"


@dataclass(frozen=True, slots=True)
class TurnOptions:
    """Whether a test has the endpoint for itself, and how long it waits for its turn."""

    exclusive: bool = flag(
        TEST, "Have the endpoint alone: it refuses this test while others run, and others while this one runs."
    )
    wait: str | None = option(
        TEST,
        "Wait so long for a turn at a busy endpoint, instead of being refused: 60, 5m.",
        metavar="TIME",
        shown="0",
    )

    def apply_to(self, plan: Plan) -> Plan:
        """Return the plan with these options; raise PlanError for a bad one."""
        wait_ns = plan.wait_ns if self.wait is None else parsing.time_ns(self.wait, "wait", _WAIT_REMEDY)
        return replace(plan, exclusive=plan.exclusive or self.exclusive, wait_ns=wait_ns)
