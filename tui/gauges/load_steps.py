"""The steps of a responsiveness test in one line: what is over, what is measured now, and what is to come."""

from typing import Final

from textual.content import Content

from ...engine.model.plan import Direction, Settings
from ..kit.drawing.styled_lines import first_fit
from ..kit.drawing.styles import GOOD, MUTED
from ..readings.load_step_values import LoadStep, ResponsivenessReading, StepState
from ..words import numbers

STEP_NAMES: Final = {None: "idle", Direction.OUT: "out", Direction.IN: "in", Direction.DUPLEX: "both"}
STEP_MARKS: Final = {StepState.DONE: "✓", StepState.NOW: "●", StepState.TO_COME: "○", StepState.LEFT_OUT: "–"}
MARK_STYLES: Final = {
    StepState.DONE: GOOD,
    StepState.NOW: "bold $text-primary",
    StepState.TO_COME: MUTED,
    StepState.LEFT_OUT: MUTED,
}
NAME_STYLES: Final = {
    StepState.DONE: "",
    StepState.NOW: "bold",
    StepState.TO_COME: MUTED,
    StepState.LEFT_OUT: MUTED,
}
_FIXED: Final = ("d +- []", " fixed until the test ends", " fixed")


def steps_line(reading: ResponsivenessReading, settings: Settings, width: int) -> Content:
    """Return the steps, the sessions of the load, and that the keys of the settings are fixed.

    Args:
        reading: The test that is in progress.
        settings: The settings in force.
        width: The cells of the line.
    """
    steps = Content("  ").join(map(_step, reading.steps))
    is_loading = any(step.state is StepState.NOW and step.direction is not None for step in reading.steps)
    sessions = Content(f"   {numbers.sessions(settings.sessions)}" if is_loading else "")
    keys, *reasons = _FIXED
    fixed = [Content.styled(f"   {keys}{reason}", MUTED) for reason in reasons]
    long, short = (Content.styled(f"{name}  ", MUTED) for name in ("latency under load", "load"))
    return first_fit(
        width,
        *(long + steps + sessions + each for each in fixed),
        *(short + steps + rest for rest in (sessions + fixed[-1], fixed[-1], sessions)),
        short + steps,
        steps,
        *(_step(step) for step in reading.steps if step.state is StepState.NOW),
    )


def _step(step: LoadStep) -> Content:
    return Content.assemble(
        (STEP_MARKS[step.state], MARK_STYLES[step.state]),
        (f"{numbers.NBSP}{STEP_NAMES[step.direction]}", NAME_STYLES[step.state]),
    )
