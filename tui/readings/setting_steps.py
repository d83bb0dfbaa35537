"""The steps by which keys change the settings of a test. Pure."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from ...engine.model.directions import Direction
from ...engine.model.errors import PlanError
from ...engine.model.peer import Peer
from ...engine.model.plan import SECOND_NS, Plan, Settings
from ...engine.model.workload import Workload, all_workloads
from ...engine.protocol.foreign.missing_features import most_sessions
from ...engine.results.responsiveness.plan import responsiveness_plan, without_path
from ..words.numbers import KIB

SESSION_STEPS: Final = (1, 2, 3, 5, 8, 10, 16, 32, 64, 128)
WINDOW_STEPS: Final = (None, *(k * KIB for k in (16, 32, 56, 64, 128, 256, 512, 1_024, 2_048, 4_096)))
DURATION_STEPS: Final = (*(s * SECOND_NS for s in (5, 10, 30, 60, 300)), None)
RATE_STEPS: Final = tuple(
    digit * 10**power for power in range(4, 12) for digit in (1, 2, 5) if digit * 10**power <= 10**11
)
DATAGRAM_STEPS: Final = (64, 512, 1_400)
_WITHOUT_MODE: Final = (Workload.RR, Workload.CRR)  # their messages are copied, whatever the plan says
_FIRST_GRANTED_BYTES: Final = 128 * KIB  # net.ipv4.tcp_rmem, the middle value


def session_steps(peer: Peer) -> Sequence[int]:
    """Return the steps of sessions, of those that a far end has."""
    most = most_sessions(peer)
    return [step for step in SESSION_STEPS if most is None or step <= most]


def next_step(steps: Sequence[int | None], value: int | None, by: int) -> int | None:
    """Return the next step above (`by` 1) or below (`by` -1) a value. At the end, return the value itself.

    None is below every number.
    """
    at = -1 if value is None else value
    order = sorted(-1 if step is None else step for step in steps)
    beyond = [step for step in order if step > at] if by > 0 else [step for step in order[::-1] if step < at]
    step_value = beyond[0] if beyond else at
    return None if step_value == -1 else step_value


def next_window(window_bytes: int | None, by: int, used_bytes: int | None) -> int | None:
    """Return the next larger (`by` 1) or smaller (`by` -1) window.

    From `auto` it goes up from the window in use, or from what Linux grants at first if that is larger. A step to
    the smallest window would throttle the test.
    """
    if window_bytes is None and by > 0:
        start_bytes = max(used_bytes or 0, _FIRST_GRANTED_BYTES)
        return next((step for step in WINDOW_STEPS if step is not None and step > start_bytes), WINDOW_STEPS[-1])
    return next_step(WINDOW_STEPS, window_bytes, by)


def next_duration(value: int | None) -> int | None:
    """Return the next longer duration; after `until stopped` the shortest."""
    if value is None:
        return DURATION_STEPS[0]
    longer = next_step(DURATION_STEPS[:-1], value, 1)
    return None if longer == value else longer


def next_direction(value: Direction) -> Direction:
    """Return the next direction; after the last, the first."""
    order = list(Direction)
    return order[(order.index(value) + 1) % len(order)]


def next_workload(value: Workload, is_possible: Callable[[Workload], bool] = lambda _: True) -> Workload:
    """Return the next possible workload; after the last, the first. If none is possible, it stays as it is."""
    order = all_workloads()
    at = order.index(value)
    return next(filter(is_possible, (*order[at + 1 :], *order[:at])), value)


def next_rate(bit_s: int | None, expected_bit_s: int | None, by: int) -> int | None:
    """Return the next higher (`by` 1) or lower (`by` -1) rate of datagrams; None, the highest, means no limit."""
    steps = rate_steps(expected_bit_s)
    if bit_s is None:
        return None if by > 0 else steps[-1]
    if by > 0:
        return next((step for step in steps if step > bit_s), None)
    return next((step for step in reversed(steps) if step < bit_s), bit_s)


def rate_steps(expected_bit_s: int | None) -> tuple[int, ...]:
    """Return the rates of datagrams below no limit.

    The expected rate is a step of its own. The last step is the first one of at least twice the expected rate.
    """
    if expected_bit_s is None:
        return RATE_STEPS
    top = next((step for step in RATE_STEPS if step >= 2 * expected_bit_s), RATE_STEPS[-1])
    return tuple(sorted({expected_bit_s, *(step for step in RATE_STEPS if step <= top)}))


def next_datagram(datagram_bytes: int | None) -> int | None:
    """Return the next larger datagram; after the largest `auto` (None), after `auto` the smallest."""
    if datagram_bytes is None:
        return DATAGRAM_STEPS[0]
    return next((step for step in DATAGRAM_STEPS if step > datagram_bytes), None)


def plan_with_workload(plan: Plan, workload: Workload) -> Plan:
    """Return a plan with another workload and its default sizes, without options that only the former one has."""
    settings, socket = plan.settings, plan.socket
    if workload.is_datagram:
        settings = replace(settings, window_bytes=None)
        socket = replace(socket, congestion=None, mss_bytes=None, nodelay=False)
    else:
        settings = Settings(settings.direction, settings.sessions, settings.window_bytes)
    has_rate_limit = workload.is_bulk and not workload.is_datagram
    fits_payload = plan.mode is not None and plan.mode.is_for_datagrams is workload.is_datagram
    has_mode = fits_payload and workload not in _WITHOUT_MODE
    return replace(
        plan if workload is Workload.STREAM else without_path(plan),
        workload=workload,
        settings=settings,
        socket=socket,
        mode=plan.mode if has_mode else None,
        request_bytes=None,
        response_bytes=None,
        burst=1,
        busy_poll=plan.busy_poll and workload is Workload.RR,
        probe=plan.probe and not workload.is_transactional,
        rate_bit_s=plan.rate_bit_s if has_rate_limit else None,
        bytes_limit=None if workload.is_datagram else plan.bytes_limit,
        client_port=None if workload.is_datagram or workload.opens_connections else plan.client_port,
    )


def check_options_used(plan: Plan) -> None:
    """Raise PlanError for an option that the workload of a plan would ignore.

    A stored plan of an older version may have such options, so the plan itself allows them.
    """
    workload = plan.workload
    if plan.mode is not None and workload in _WITHOUT_MODE:
        raise PlanError("mode", f"{plan.mode} with {workload}", "its messages are always copied; leave it out")
    if plan.socket.nodelay and workload.is_datagram:
        raise PlanError("nodelay", f"with {workload}", "only TCP connections have it; leave it out")


def load_plan(plan: Plan) -> Plan:
    """Return the plan of a responsiveness test in place of the user's plan.

    Every such test has the same settings. The options of sockets, the cores, a limit of the rate and the trace of
    the path are kept.
    """
    return replace(
        responsiveness_plan(socket=plan.socket),
        rate_bit_s=plan.rate_bit_s,
        workers=plan.workers,
        near_cores=plan.near_cores,
        far_cores=plan.far_cores,
        path=plan.path,
    )
