"""The plan of a responsiveness test: the sessions that load a link, and the longest time."""

from dataclasses import replace
from typing import Final

from ...model.directions import Direction
from ...model.plan import SECOND_NS, Plan, ResponsivenessTest, Settings, SocketOptions

LOAD_SESSIONS: Final = 8
"""The sessions in each direction at first; a test in phases adds some if the rate is not steady."""
LONGEST_TEST_NS: Final = 23 * SECOND_NS
ONE_LOAD_NS: Final = 10 * SECOND_NS
"""The longest test with load in one direction only: 400 ms of queue at 100 Mb/s take 8 s to fill."""
_INTERVAL_NS: Final = SECOND_NS // 5
_WARMUP_NS: Final = SECOND_NS


def responsiveness_plan(
    direction: Direction | None = None,
    sessions: int = LOAD_SESSIONS,
    socket: SocketOptions = SocketOptions(),  # noqa: B008 (frozen)
) -> Plan:
    """Return the plan of a responsiveness test; raise PlanError for a value out of range.

    Args:
        direction: the one direction to load; None loads out, then in, then both, each until rate and latency are
            steady.
        sessions: the TCP connections in each direction, at first.
        socket: the options of their sockets.
    """
    is_whole = direction is None
    return Plan(
        settings=Settings(Direction.OUT if direction is None else direction, sessions),
        duration_ns=LONGEST_TEST_NS if is_whole else ONE_LOAD_NS,
        warmup_ns=_WARMUP_NS,
        interval_ns=_INTERVAL_NS,
        socket=socket,
        probe=True,
        responsiveness=ResponsivenessTest.PHASES if is_whole else ResponsivenessTest.ONE_PHASE,
    )


def with_responsiveness(plan: Plan) -> Plan:
    """Return a plan that measures latency beside its own load; raise PlanError if that cannot be."""
    return replace(plan, probe=True, responsiveness=ResponsivenessTest.ALONGSIDE)


def with_path(plan: Plan) -> Plan:
    """Return a plan that traces the path under its load; raise PlanError if that cannot be."""
    return replace(plan if plan.responsiveness else with_responsiveness(plan), path=True)


def without_path(plan: Plan) -> Plan:
    """Return a plan that does not trace the path, nor measures latency beside its own load. The probe stays."""
    is_alongside = plan.responsiveness is ResponsivenessTest.ALONGSIDE
    return replace(plan, path=False, responsiveness=None if is_alongside else plan.responsiveness)
