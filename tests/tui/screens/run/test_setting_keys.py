"""The keys that change settings, pressed as a person would, on a small and on a large screen."""

# pyright: reportPrivateUsage=false

from typing import Any

import pytest
from linkgauge.engine.model.plan import SECOND_NS, Direction, Plan, Settings

both_sizes = pytest.mark.parametrize("size", [(80, 24), (120, 40)], ids=["80x24", "120x40"])


@both_sizes
async def test_plus_goes_up_the_steps_of_sessions(world: Any, size: tuple[int, int]) -> None:
    """One step a key press, up to the most that a run may have."""
    async with world.cockpit(size) as cockpit:
        await cockpit.press("plus", "equals_sign", "plus")
        assert cockpit.app.cockpit.plan.settings.sessions == 5
        assert "[5]" in cockpit.line(2)
        await cockpit.press(*["plus"] * 8)
        assert cockpit.app.cockpit.plan.settings.sessions == 128


@both_sizes
async def test_minus_goes_down_the_steps_of_sessions(world: Any, size: tuple[int, int]) -> None:
    """From a number that is no step, down to the next one that is; never below one."""
    async with world.cockpit(size, plan=Plan(Settings(sessions=7))) as cockpit:
        await cockpit.press("minus")
        assert cockpit.app.cockpit.plan.settings.sessions == 5
        await cockpit.press("underscore", *["minus"] * 6)
        assert cockpit.app.cockpit.plan.settings.sessions == 1
        assert "[1]" in cockpit.line(2)


@both_sizes
async def test_brackets_go_through_the_windows(world: Any, size: tuple[int, int]) -> None:
    """From auto up, and down to auto again."""
    async with world.cockpit(size) as cockpit:
        await cockpit.press(*["right_square_bracket"] * 3)
        assert cockpit.app.cockpit.plan.settings.window_bytes == 56 * 1024
        assert "[56K]" in cockpit.line(2)
        await cockpit.press(*["right_square_bracket"] * 9)
        assert "[4M]" in cockpit.line(2)
        await cockpit.press(*["left_square_bracket"] * 11)
        assert cockpit.app.cockpit.plan.settings.window_bytes is None
        assert "[auto]" in cockpit.line(2)


@both_sizes
async def test_d_goes_around_the_directions(world: Any, size: tuple[int, int]) -> None:
    """Out, in, duplex, out; the expected rate follows."""
    async with world.cockpit(size) as cockpit:
        seen: list[Direction] = []
        for _ in range(3):
            await cockpit.press("d")
            seen.append(cockpit.app.cockpit.plan.settings.direction)
        assert seen == [Direction.IN, Direction.DUPLEX, Direction.OUT]
        await cockpit.press("d", "d")
        assert "14 400" in cockpit.line(1)


@both_sizes
async def test_t_goes_around_the_durations(world: Any, size: tuple[int, int]) -> None:
    """30 s, 60 s, 5 min, until stopped, and 5 s again."""
    async with world.cockpit(size) as cockpit:
        seen: list[int | None] = []
        for _ in range(4):
            await cockpit.press("t")
            seen.append(cockpit.app.cockpit.plan.duration_ns)
        assert seen == [60 * SECOND_NS, 300 * SECOND_NS, None, 5 * SECOND_NS]
        assert "[5 s]" in cockpit.line(2)


@both_sizes
async def test_setting_keys_change_the_current_run(world: Any, size: tuple[int, int]) -> None:
    """Each change reaches the run at once, and shows in the settings bar and in the plot."""
    async with world.cockpit(size) as cockpit:
        await cockpit.press("space")
        world.script.run_for(8, 7.1e9)
        await cockpit.press("plus", "right_square_bracket", "d")
        world.script.run_for(12, 7.1e9)
        await cockpit.settle()
        assert world.script.changes == [
            Settings(sessions=2),
            Settings(sessions=2, window_bytes=16 * 1024),
            Settings(Direction.IN, 2, 16 * 1024),
        ]
        assert "[2]" in cockpit.line(2)
        assert [mark.label for mark in cockpit.app.cockpit.readings.change_marks] == [
            "2\u00a0sessions",
            "window\u00a016K",
            "in",
        ]


@both_sizes
async def test_the_workload_is_that_of_the_next_run(world: Any, size: tuple[int, int]) -> None:
    """The current run keeps its own; the settings bar names every other workload than stream."""
    async with world.cockpit(size) as cockpit:
        seen: list[str] = []
        for _ in range(4):
            await cockpit.press("w")
            seen.append(str(cockpit.app.cockpit.plan.workload))
        assert seen == ["rr", "crr", "fetch", "stream"]
        await cockpit.press("w")
        await cockpit.press("space")
        await cockpit.press("w")
        assert world.script.plan.workload == "rr"
        assert cockpit.app.cockpit.plan.workload == "crr"
