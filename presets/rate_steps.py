"""The acceptance of a UDP rate by steps of 50, 75, 90 and 100 % of it, as in ITU-T Y.1564.

Pure. Each step is a run of its own. It passes if the rate arrives and the loss and the jitter of both directions
stay within their goals. The service passes if every step does. A failed step says more than a run at the full rate:
loss that begins at 90 % is a policer or a queue, loss at 50 % is a bad line.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from ..engine.model.directions import Direction
from ..engine.model.errors import PlanError
from ..engine.model.plan import Settings
from ..engine.results.figure_codec import mbit, ms, round_figure
from ..engine.results.rate_and_loss import percent_of
from ..engine.results.summary import Measurement, Summary
from .number_text import format_number, format_rate, format_time
from .verdict import Verdict, VerdictCode, rate_word, worst_word

STEP_PERCENTS: Final = (50, 75, 90, 100)
MAX_JITTER_NS: Final = 10 * 1_000_000_000
_NAMES: Final = {Direction.OUT: "out", Direction.IN: "in"}

Miss = Literal["rate", "loss", "jitter"]
"""A goal that a direction of a step missed."""


@dataclass(frozen=True, slots=True)
class StepGoals:
    """The goals for each direction of a step.

    `pass_percent` is the minimum share of the step's rate that has to arrive, `loss_ppm` the maximum number of lost
    datagrams in a million. `jitter_ns` is the maximum of the mean jitter (RFC 3550); None is no limit.
    """

    pass_percent: float
    loss_ppm: int
    jitter_ns: int | None = None

    def __post_init__(self) -> None:
        """Raise PlanError for a jitter that no network has."""
        if self.jitter_ns is not None and not 0 < self.jitter_ns <= MAX_JITTER_NS:
            raise PlanError(
                "maximum jitter", f"{self.jitter_ns / 1e6:g} ms", "give more than 0 and at most 10000 ms"
            )


@dataclass(frozen=True, slots=True)
class StepFlow:
    """The measurement of one direction of a step, and the goals that it misses; `jitter_ns` is the mean."""

    bit_s: float
    rate_percent: float
    lost_percent: float | None
    jitter_ns: float | None
    misses: tuple[Miss, ...]


@dataclass(frozen=True, slots=True)
class RateStep:
    """One step: its share of the whole rate, its rate in each direction, its run, and the measurements."""

    percent: int
    rate_bit_s: int
    run_id: str
    word: VerdictCode
    flows: dict[Direction, StepFlow]


def step_settings(settings: Settings, percent: int) -> Settings:
    """Return the settings of a step of these settings, which must have a rate."""
    if settings.rate_bit_s is None:
        raise PlanError("rate", "max", "steps need a rate: give one such as 100M, or a preset that has one")
    return replace(settings, rate_bit_s=settings.rate_bit_s * percent // 100)


def judge_step(percent: int, rate_bit_s: int, run_id: str, summary: Summary, goals: StepGoals) -> RateStep:
    """Return a step with its verdict: the worst of its directions.

    Args:
        percent: Its share of the whole rate.
        rate_bit_s: The rate that each direction had to send.
        run_id: The id of its run.
        summary: The results of the run.
        goals: The goals of each direction.
    """
    flows: dict[Direction, StepFlow] = {}
    for direction in summary.plan.settings.direction.flows:
        measured = summary.measured[direction]
        if measured is not None and measured.span_ns > 0:
            flows[direction] = _judge_flow(measured, rate_bit_s, goals)
    is_complete = summary.is_whole and len(flows) == len(summary.plan.settings.direction.flows)
    words: list[VerdictCode] = [_word(flow) for flow in flows.values()] if is_complete else ["none"]
    return RateStep(percent, rate_bit_s, run_id, worst_word(words), flows)


def _judge_flow(measured: Measurement, rate_bit_s: int, goals: StepGoals) -> StepFlow:
    datagrams = measured.datagrams
    lost_percent = None if datagrams is None else datagrams.lost_percent
    jitter_ns = None if datagrams is None else datagrams.jitter_mean_ns
    rate_percent = percent_of(measured.bit_s, rate_bit_s) or 0.0
    misses: list[Miss] = []
    if rate_percent < goals.pass_percent:
        misses.append("rate")
    if lost_percent is None or lost_percent * 10_000 > goals.loss_ppm:
        misses.append("loss")
    if goals.jitter_ns is not None and (jitter_ns is None or jitter_ns > goals.jitter_ns):
        misses.append("jitter")
    return StepFlow(measured.bit_s, rate_percent, lost_percent, jitter_ns, tuple(misses))


def _word(flow: StepFlow) -> VerdictCode:
    """Return `short` if only the rate is below the pass mark, `fail` for anything worse."""
    if not flow.misses:
        return "pass"
    return rate_word(flow.rate_percent) if flow.misses == ("rate",) else "fail"


def judge_steps(steps: Sequence[RateStep], goals: StepGoals) -> Verdict:
    """Return the verdict of the service: the worst of its steps. If steps are missing, it cannot pass."""
    words: list[VerdictCode] = [step.word for step in steps]
    if len(steps) < len(STEP_PERCENTS):
        words.append("none")
    word = worst_word(words)
    bad = [step for step in steps if step.word in {"fail", "short"}]
    if word == "pass":
        text = f"every step up to {format_rate(steps[-1].rate_bit_s)} arrived with at most {_loss_goal(goals)} lost"
        jitter = "" if goals.jitter_ns is None else f" and at most {format_time(goals.jitter_ns / 1e3)} of jitter"
        return Verdict(word, f"PASS: {text}{jitter}.")
    if word == "none":
        done = sum(step.word == "pass" for step in steps)
        return Verdict(word, f"NO VERDICT: {done} of {len(STEP_PERCENTS)} steps were measured to their end.")
    reasons = "; ".join(f"at {step.percent} % {_misses_text(step, goals)}" for step in bad)
    return Verdict(word, f"{word.upper()}: {reasons}.")


def _misses_text(step: RateStep, goals: StepGoals) -> str:
    return ", ".join(
        f"{_NAMES[direction]} {_miss_text(miss, flow, step, goals)}"
        for direction, flow in step.flows.items()
        for miss in flow.misses
    )


def _miss_text(miss: Miss, flow: StepFlow, step: RateStep, goals: StepGoals) -> str:
    if miss == "rate":
        return f"{format_rate(flow.bit_s)} of {format_rate(step.rate_bit_s)} arrived"
    if miss == "loss":
        lost = "an unknown share was lost" if flow.lost_percent is None else f"lost {_share(flow.lost_percent)}"
        return f"{lost}, the goal is {_loss_goal(goals)}"
    jitter = "unknown" if flow.jitter_ns is None else format_time(flow.jitter_ns / 1e3)
    return f"has a jitter of {jitter}, the goal is {format_time((goals.jitter_ns or 0) / 1e3)}"


def _share(percent: float) -> str:
    """Return a share of lost datagrams as text, which is never 0 for a small one."""
    return "less than 0.001 %" if percent < 0.001 else f"{format_number(round(percent, 3))} %"


def _loss_goal(goals: StepGoals) -> str:
    return f"{format_number(goals.loss_ppm / 10_000)} %"


def steps_json(steps: Sequence[RateStep], goals: StepGoals) -> dict[str, Any]:
    """Return the steps and their goals for programs."""
    return {
        "goals": {
            "pass_percent": goals.pass_percent,
            "loss_percent": goals.loss_ppm / 10_000,
            "max_jitter_ms": ms(goals.jitter_ns),
        },
        "steps": [
            {
                "percent": step.percent,
                "rate_mbit_s": mbit(step.rate_bit_s),
                "run_id": step.run_id,
                "verdict": step.word,
                **{name: _flow_json(step.flows.get(direction)) for direction, name in _NAMES.items()},
            }
            for step in steps
        ],
    }


def _flow_json(flow: StepFlow | None) -> dict[str, Any] | None:
    if flow is None:
        return None
    return {
        "mbit_s": mbit(flow.bit_s),
        "percent_of_rate": round_figure(flow.rate_percent),
        "lost_percent": round_figure(flow.lost_percent),
        "jitter_ms": ms(flow.jitter_ns),
        "misses": list(flow.misses),
    }
