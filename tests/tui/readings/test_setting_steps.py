"""The steps of settings: up, down, around, and from a value between two of them."""

from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import Mode, Plan, Settings, SocketOptions
from linkgauge.engine.model.workload import Workload, all_workloads
from linkgauge.engine.results.responsiveness.plan import responsiveness_plan
from linkgauge.tui.readings.setting_steps import (
    DATAGRAM_STEPS,
    DURATION_STEPS,
    SESSION_STEPS,
    WINDOW_STEPS,
    check_options_used,
    load_plan,
    next_datagram,
    next_duration,
    next_rate,
    next_step,
    next_window,
    next_workload,
    plan_with_workload,
)


@pytest.mark.parametrize(
    ("steps", "value", "up", "down"),
    [
        (SESSION_STEPS, 1, 2, 1),
        (SESSION_STEPS, 7, 8, 5),
        (SESSION_STEPS, 128, 128, 64),
        (WINDOW_STEPS, None, 16_384, None),
        (WINDOW_STEPS, 16_384, 32_768, None),
        (WINDOW_STEPS, 100_000, 131_072, 65_536),
        (WINDOW_STEPS, 1 << 30, 1 << 30, 4_194_304),
    ],
)
def test_steps_go_to_the_next_value_and_stop_at_the_ends(steps: Any, value: Any, up: Any, down: Any) -> None:
    """Also from a value that is not a step."""
    assert next_step(steps, value, 1) == up
    assert next_step(steps, value, -1) == down


def test_durations_go_around() -> None:
    """From any value every duration can be reached."""
    seen = [DURATION_STEPS[0]]
    for _ in range(len(DURATION_STEPS) - 1):
        seen.append(next_duration(seen[-1]))
    assert tuple(seen) == DURATION_STEPS
    assert next_duration(None) == DURATION_STEPS[0]


@pytest.mark.parametrize(
    ("window", "by", "used", "expected"),
    [
        (None, 1, None, 256 * 1024),
        (None, 1, 425_984, 512 * 1024),
        (None, 1, 6_291_456, 4_096 * 1024),
        (None, -1, 425_984, None),
        (16 * 1024, -1, 425_984, None),
        (16 * 1024, 1, 425_984, 32 * 1024),
    ],
)
def test_the_window_goes_up_from_the_one_in_use(
    window: int | None, by: int, used: int | None, expected: int | None
) -> None:
    """A step from auto to 16K would throttle the test; the small windows are reached by going down."""
    assert next_window(window, by, used) == expected


@pytest.mark.parametrize(
    ("bit_s", "expected", "up", "down"),
    [
        (10_000_000, None, 20_000_000, 5_000_000),
        (1_000_000, None, 2_000_000, 500_000),
        (64_000, None, 100_000, 50_000),
        (5_000, None, 10_000, 5_000),
        (100_000_000_000, None, None, 50_000_000_000),
        (None, None, None, 100_000_000_000),
        (500_000_000, 957_087_000, 957_087_000, 200_000_000),
        (957_087_000, 957_087_000, 1_000_000_000, 500_000_000),
        (1_000_000_000, 957_087_000, 2_000_000_000, 957_087_000),
        (2_000_000_000, 957_087_000, None, 1_000_000_000),
        (None, 957_087_000, None, 2_000_000_000),
        (5_000_000_000, 957_087_000, None, 2_000_000_000),
    ],
)
def test_rates_step_through_the_expected_one_and_end_without_a_limit(
    bit_s: int | None, expected: int | None, up: int | None, down: int | None
) -> None:
    """Far above the expected rate, further steps would show the same as no limit."""
    assert next_rate(bit_s, expected, 1) == up
    assert next_rate(bit_s, expected, -1) == down


def test_datagram_sizes_go_around() -> None:
    """From any size every other can be reached, and auto."""
    assert [next_datagram(size) for size in (None, *DATAGRAM_STEPS)] == [*DATAGRAM_STEPS, None]
    assert next_datagram(1_000) == 1_400


def test_every_workload_follows_every_other_whatever_the_plan_has() -> None:
    """Options of the former workload are left out, so that no key raises an error."""
    stream = Plan(
        Settings(Direction.DUPLEX, 3, 65_536),
        rate_bit_s=10**8,
        bytes_limit=10**6,
        client_port=5_000,
        mode=Mode.DISCARD,
        probe=True,
        socket=SocketOptions("cubic", 1_400, 46),
    )
    datagrams = Plan(Settings(sessions=3, rate_bit_s=10**8, datagram_bytes=64), Workload.UDP, mode=Mode.QUALITY)
    requests = Plan(workload=Workload.RR, request_bytes=64, response_bytes=64, burst=4)
    for plan in (stream, datagrams, requests):
        for _ in all_workloads():
            plan = plan_with_workload(plan, next_workload(plan.workload))  # noqa: PLW2901 (around the circle)
            assert plan.settings.sessions == (1 if plan.burst > 1 else plan.settings.sessions)
    assert plan_with_workload(stream, Workload.UDP).settings == Settings(Direction.DUPLEX, 3)
    assert plan_with_workload(datagrams, Workload.STREAM).settings == Settings(sessions=3)


def test_a_limit_of_the_rate_and_the_cores_hold_for_the_test(world: Any) -> None:
    """Its direction, its sessions and its window do not come from ordinary tests."""
    plan = Plan(
        Settings(Direction.IN, 3, 65_536), rate_bit_s=10_000_000, near_cores=(0,), socket=SocketOptions(dscp=46)
    )
    made = load_plan(plan)
    assert (made.rate_bit_s, made.near_cores, made.socket.dscp) == (10_000_000, (0,), 46)
    assert made.settings == responsiveness_plan().settings


@pytest.mark.parametrize("workload", all_workloads())
@pytest.mark.parametrize("before", [Workload.STREAM, Workload.FETCH, Workload.UDP])
def test_another_workload_leaves_no_option_that_it_would_ignore(workload: Workload, before: Workload) -> None:
    """The app changes workloads; an option of the command line may have come with the first one."""
    mode = Mode.QUALITY if before.is_datagram else Mode.DISCARD
    settings = Settings(rate_bit_s=10**6) if before.is_datagram else Settings()
    plan = Plan(settings, before, mode=mode, socket=SocketOptions(nodelay=not before.is_datagram))
    check_options_used(plan_with_workload(plan, workload))
