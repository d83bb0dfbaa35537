"""The values that keys step through."""

from typing import Any

import pytest
from linkgauge.tui.state.setting_steps import DURATION_STEPS, SESSION_STEPS, WINDOW_STEPS, next_duration, next_step


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
    """Also from a value that is no step."""
    assert next_step(steps, value, 1) == up
    assert next_step(steps, value, -1) == down


def test_durations_go_around() -> None:
    """From any value every duration can be reached."""
    seen = [DURATION_STEPS[0]]
    for _ in range(len(DURATION_STEPS) - 1):
        seen.append(next_duration(seen[-1]))
    assert tuple(seen) == DURATION_STEPS
    assert next_duration(None) == DURATION_STEPS[0]
