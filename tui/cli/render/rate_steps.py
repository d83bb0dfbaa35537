"""The steps of a UDP rate in a terminal: a row for each step and direction, findings, and the verdict."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import RenderableType
from rich.text import Text

from ....presets.diagnosis.finding import Finding
from ....presets.rate_steps import RateStep, StepGoals
from ....presets.verdict import Verdict
from ...kit.drawing.printed_table import indented
from ...words import numbers
from ...words.datagram_results import loss_percent
from ...words.table import Column, Table
from .summary import VERDICT_STYLES, findings_part

_COLUMNS: Final = (
    Column("step"),
    Column("sent at"),
    Column(is_text=True),
    Column("Mb/s"),
    Column("share"),
    Column("loss"),
    Column("jitter"),
    Column("verdict", is_text=True),
)


def step_parts(
    steps: Sequence[RateStep], *, goals: StepGoals, verdict: Verdict, findings: tuple[Finding, ...] = ()
) -> Iterator[RenderableType]:
    """Yield the parts of the result: the table, the findings, then the verdict, which stays above the prompt.

    Args:
        steps: The steps that were run.
        goals: What each had to reach.
        verdict: The verdict of all.
        findings: Why the first step that does not pass is not better.
    """
    yield indented(Table(_COLUMNS, [row for step in steps for row in _rows(step, goals)]))
    yield Text()
    if findings:
        yield findings_part(findings)
        yield Text()
    mark = numbers.verdict(verdict.word)
    yield Text.assemble((mark, VERDICT_STYLES[verdict.word]), "  ", numbers.sanitize(verdict.explanation))


def step_line(step: RateStep) -> str:
    """Return a step in one line, for the progress of a check."""
    flows = [
        f"{direction} {numbers.rate(flow.bit_s)}, {loss_percent(flow.lost_percent)} lost, "
        f"jitter {numbers.latency(flow.jitter_ns)}"
        for direction, flow in step.flows.items()
    ]
    words = "; ".join(flows) or "nothing was measured"
    return f"{step.percent}{numbers.NBSP}% of the rate: {words}: {numbers.verdict(step.word)}"


def _rows(step: RateStep, goals: StepGoals) -> Iterator[tuple[str, ...]]:
    """Yield a row for each direction; the first one has the step, and the last one its verdict."""
    name = f"{step.percent}{numbers.NBSP}%"
    verdict = numbers.verdict(step.word)
    if not step.flows:
        yield name, numbers.mbit(step.rate_bit_s), *(numbers.UNKNOWN,) * 5, verdict
    for number, (direction, flow) in enumerate(step.flows.items(), start=1):
        is_first, is_last = number == 1, number == len(step.flows)
        yield (
            name if is_first else "",
            numbers.mbit(step.rate_bit_s) if is_first else "",
            f"{direction} {numbers.arrow(direction)}",
            numbers.mbit(flow.bit_s),
            numbers.percent(flow.rate_percent, mark=goals.pass_percent),
            loss_percent(flow.lost_percent),
            numbers.latency(flow.jitter_ns),
            verdict if is_last else "",
        )
