"""Short plans of each workload."""

from typing import Any

from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.workload import Workload

from ..conftest import RATE_BIT_S


def plan_of(
    workload: Workload, direction: Direction = Direction.OUT, sessions: int = 1, seconds: float = 0.6, **more: Any
) -> Plan:
    """Return a short plan that samples ten times a second; a fetch is small, so that there are several."""
    if workload is Workload.FETCH:
        more = {"response_bytes": 2_000_000, "rate_bit_s": 10 * RATE_BIT_S} | more
    settings = Settings(direction, sessions)
    return Plan(settings, workload, int(seconds * SECOND_NS), interval_ns=SECOND_NS // 10, **more)
