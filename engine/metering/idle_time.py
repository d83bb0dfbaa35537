"""How long the latency of the idle link is measured before payload flows."""

from typing import Final

from ..model.plan import SECOND_NS, Plan

_IDLE_NS: Final = SECOND_NS
RESPONSIVENESS_IDLE_NS: Final = 2 * SECOND_NS  # the results of a responsiveness test are rises above it


def idle_ns(plan: Plan) -> int:
    """Return how long the latency of the idle link is measured before payload flows; 0 without a probe."""
    if not plan.probe:
        return 0
    return _IDLE_NS if plan.responsiveness is None else RESPONSIVENESS_IDLE_NS
