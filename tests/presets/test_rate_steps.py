"""The acceptance of a rate by steps: what each has to reach, and the verdict of all."""

from dataclasses import replace
from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction, PerDirection
from linkgauge.engine.model.errors import PlanError
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.summary import CpuSummary, DatagramSummary, Measurement, Summary, TcpSummary
from linkgauge.presets.rate_steps import (
    STEP_PERCENTS,
    RateStep,
    StepGoals,
    judge_step,
    judge_steps,
    step_settings,
    steps_json,
)

GOALS = StepGoals(95.0, 1_000, 2_000_000)
RATE = 8_000_000
NAMES = DatagramSummary.__dataclass_fields__


def flow(bit_s: float = RATE, lost: int | None = 0, jitter_ns: float | None = 1e6) -> Measurement:
    """Return a direction of a second in which 100,000 datagrams were sent."""
    received = 100_000 - (lost or 0)
    known: dict[str, Any] = {"received": received, "lost": lost, "jitter_mean_ns": jitter_ns}
    datagrams = DatagramSummary(**dict.fromkeys(NAMES) | known)
    return Measurement(int(bit_s / 8), SECOND_NS, datagrams=datagrams)


def step(
    out: Measurement | None = None,
    in_: Measurement | None = None,
    direction: Direction = Direction.OUT,
    *,
    percent: int = 100,
    reason: Reason = Reason.COMPLETED,
    goals: StepGoals = GOALS,
) -> RateStep:
    """Return a step of 8 Mb/s in each direction with these measurements."""
    cpu = CpuSummary(None, None, None, None)
    summary = Summary(
        plan=Plan(Settings(direction, rate_bit_s=RATE), Workload.UDP),
        measured=PerDirection(out, in_, out or in_),
        expectation=Expectation(),
        periods=(),
        near_cpu=cpu,
        far_cpu=cpu,
        tcp=TcpSummary(None, None, None, None, None, None),
        warnings=(),
        end=RunEnd(reason, "x"),
    )
    return judge_step(percent, RATE, f"run{percent}", summary, goals)


@pytest.mark.parametrize(
    ("measured", "word", "misses"),
    [
        (flow(), "pass", ()),
        (flow(0.95 * RATE, 100, 2e6), "pass", ()),  # all three just within
        (flow(0.9499 * RATE), "short", ("rate",)),
        (flow(0.49 * RATE), "fail", ("rate",)),
        (flow(lost=101), "fail", ("loss",)),
        (flow(lost=None), "fail", ("loss",)),  # unknown is not within
        (flow(jitter_ns=2.1e6), "fail", ("jitter",)),
        (flow(jitter_ns=None), "fail", ("jitter",)),
        (flow(0.9 * RATE, 10_000, 9e6), "fail", ("rate", "loss", "jitter")),
        (replace(flow(), datagrams=None), "fail", ("loss", "jitter")),
        (Measurement(0, SECOND_NS), "fail", ("rate", "loss", "jitter")),
    ],
)
@pytest.mark.parametrize("direction", list(Direction))
def test_a_step_passes_if_rate_loss_and_jitter_hold_in_each_direction(
    direction: Direction, measured: Measurement, word: str, misses: tuple[str, ...]
) -> None:
    """Of two directions the worse one decides."""
    good = flow()
    pairs = {
        Direction.OUT: [(measured, None)],
        Direction.IN: [(None, measured)],
        Direction.DUPLEX: [(measured, good), (good, measured)],
    }
    for out, in_ in pairs[direction]:
        made = step(out, in_, direction)
        assert made.word == word
        bad = Direction.OUT if out is measured else Direction.IN
        assert made.flows[bad].misses == misses


def test_without_a_limit_any_jitter_is_within() -> None:
    """An unknown one as well."""
    goals = replace(GOALS, jitter_ns=None)
    assert step(flow(jitter_ns=1e12), goals=goals).word == step(flow(jitter_ns=None), goals=goals).word == "pass"


@pytest.mark.parametrize("reason", [reason for reason in Reason if not reason.is_regular])
def test_a_step_that_broke_off_has_no_verdict(reason: Reason) -> None:
    """Its measurements are shown."""
    made = step(flow(lost=50_000), reason=reason)
    assert (made.word, made.flows[Direction.OUT].lost_percent) == ("none", 50)


def test_a_direction_that_was_not_measured_leaves_no_verdict() -> None:
    """One direction does not predict the other."""
    assert step(flow(), None, Direction.DUPLEX).word == "none"
    assert step(None).word == "none"


def test_all_steps_have_to_pass() -> None:
    """The worst decides, and the text names the steps and what each misses."""
    good = [step(flow(), percent=percent) for percent in STEP_PERCENTS]
    passed = judge_steps(good, GOALS)
    assert passed.word == "pass"
    assert (
        passed.text == "PASS: every step up to 8 Mb/s arrived with at most 0.1 % lost and at most 2 ms of jitter."
    )
    bad = [*good[:2], step(flow(lost=250), percent=90), step(flow(0.9 * RATE), percent=100)]
    failed = judge_steps(bad, GOALS)
    assert failed.word == "fail"
    assert failed.text == (
        "FAIL: at 90 % out lost 0.25 %, the goal is 0.1 %; at 100 % out 7.2 Mb/s of 8 Mb/s arrived."
    )
    assert judge_steps([*good[:3], bad[-1]], GOALS).word == "short"


def test_steps_that_are_missing_leave_no_verdict_unless_one_has_failed() -> None:
    """An interrupted check is not a pass."""
    good = [step(flow(), percent=percent) for percent in STEP_PERCENTS[:3]]
    assert judge_steps([], GOALS).text == "NO VERDICT: 0 of 4 steps were measured to their end."
    assert judge_steps(good, GOALS).text == "NO VERDICT: 3 of 4 steps were measured to their end."
    assert judge_steps([step(flow(lost=5_000), percent=50)], GOALS).word == "fail"


def test_a_share_that_exceeds_a_goal_of_nothing_never_reads_as_nothing() -> None:
    """One of 100,000 is not 0 %."""
    goals = replace(GOALS, loss_ppm=0)
    steps = [step(flow(lost=1), percent=percent, goals=goals) for percent in STEP_PERCENTS]
    assert "out lost 0.001 %, the goal is 0 %" in judge_steps(steps, goals).text


def test_the_rate_of_a_step_is_its_share() -> None:
    """A test without a rate has no steps."""
    settings = Settings(rate_bit_s=957_087_126)
    assert [step_settings(settings, percent).rate_bit_s for percent in STEP_PERCENTS] == [
        *(478_543_563, 717_815_344, 861_378_413, 957_087_126)
    ]
    with pytest.raises(PlanError, match="steps need a rate"):
        step_settings(Settings(), 50)


@pytest.mark.parametrize("jitter_ns", [0, -1, 10_000_000_001])
def test_a_goal_that_nothing_reaches_is_refused(jitter_ns: int) -> None:
    """Before anything runs."""
    with pytest.raises(PlanError, match="maximum jitter"):
        StepGoals(95.0, 0, jitter_ns)


def test_programs_find_each_step_with_what_it_misses() -> None:
    """Unknown is null."""
    made = steps_json([step(flow(lost=None), percent=50), step(None, percent=75)], replace(GOALS, jitter_ns=None))
    assert made == {
        "goals": {"pass_percent": 95.0, "loss_percent": 0.1, "max_jitter_ms": None},
        "steps": [
            {
                "percent": 50,
                "rate_mbit_s": 8.0,
                "run_id": "run50",
                "verdict": "fail",
                "out": {
                    "mbit_s": 8.0,
                    "percent_of_rate": 100.0,
                    "lost_percent": None,
                    "jitter_ms": 1.0,
                    "misses": ["loss"],
                },
                "in": None,
            },
            {"percent": 75, "rate_mbit_s": 8.0, "run_id": "run75", "verdict": "none", "out": None, "in": None},
        ],
    }
