"""The table of a check by steps."""

import io

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.presets.rate_steps import RateStep, StepFlow, StepGoals, judge_steps
from linkgauge.tui.cli.render.rate_steps import step_line, step_parts
from rich.console import Console

GOALS = StepGoals(95.0, 1_000, 2_000_000)
GOOD = StepFlow(478.5e6, 100.0, 0.0, 31_200.0, ())
BAD = StepFlow(454.5e6, 94.98, 5.02, None, ("rate", "loss", "jitter"))


def text_of(steps: list[RateStep], width: int = 100) -> str:
    """Return the result as a terminal shows it, with plain spaces."""
    console = Console(file=io.StringIO(), width=width, color_system=None)
    for part in step_parts(steps, goals=GOALS, verdict=judge_steps(steps, GOALS)):
        console.print(part)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize("width", [80, 200])
def test_each_step_has_a_row_for_each_direction_and_one_verdict(width: int) -> None:
    """Unknown is a dash, and a share just below the pass mark looks short."""
    steps = [
        RateStep(50, 478_500_000, "a", "pass", {Direction.OUT: GOOD}),
        RateStep(100, 957_000_000, "b", "fail", {Direction.OUT: GOOD, Direction.IN: BAD}),
        RateStep(100, 957_000_000, "c", "none", {}),
    ]
    lines = [line.split() for line in text_of(steps, width).splitlines()]
    assert lines[1] == ["50", "%", "478.5", "out", "→", "478.5", "100.0", "%", "0", "%", "31.2", "µs", "✓", "PASS"]
    assert lines[2] == ["100", "%", "957.0", "out", "→", "478.5", "100.0", "%", "0", "%", "31.2", "µs"]
    assert lines[3] == ["in", "←", "454.5", "94.9", "%", "5.02", "%", "–", "✗", "FAIL"]
    assert lines[4] == ["100", "%", "957.0", "–", "–", "–", "–", "–", "•", "NO", "VERDICT"]


def test_a_step_is_one_line_of_progress() -> None:
    """With what was measured, if anything was."""
    line = step_line(RateStep(90, 1, "a", "pass", {Direction.OUT: GOOD})).replace("\N{NO-BREAK SPACE}", " ")
    assert line == "90 % of the rate: out 478.5 Mb/s, 0 % lost, jitter 31.2 µs: ✓ PASS"
    assert "nothing was measured" in step_line(RateStep(90, 1, "a", "none", {}))
