"""Confirmation: the same test once more with one option changed, and its verdict on a finding.

Pure. An option in a remedy takes the limit away, so that the rate rises, or keeps the sender below a limit, so that
losses end. If the remedy is a command for an end, more sessions show as much. A window limits each session, and so
does loss: four sessions have four times the rate of one. A slow path carries the same. Of both directions at once
one is tried alone: if acknowledgements waited behind the other direction's data, it carries at least half of the
missing rate. More sessions carry more there on a slow path, too.

A finding is the limit if the rate rises by at least a tenth of the missing rate, and beyond the confidence
intervals of both rates. Without an expected rate a tenth of the first rate is enough. Less does not count.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from ...engine.model.plan import SECOND_NS, Plan
from ...engine.results.comparison import compare_estimates
from ...engine.results.figure_codec import mbit, round_figure
from ...engine.results.rate_and_loss import percent_of
from ...engine.results.shape.shape_document import shape_document
from ...engine.results.shape.shape_result import DirectionShape, LimitKind, ShapeResult
from ...engine.results.summary import Measurement, Summary
from ..number_text import format_percent, format_quantity, format_rate, format_transaction_rate
from .finding import Finding
from .remedies import more_sessions
from .trial import Trial

Sign = Literal["faster", "follows", "same", "no-loss", "alone"]
"""The result that confirms a finding.

A higher rate, one that follows the sessions, the same rate, the end of losses, or the rate of one direction alone.
"""

_MIN_RISE: Final = 0.1  # of the missing rate
# Of the missing rate: without acknowledgements on its way, a slow path carries a little more as well.
_ALONE: Final = 0.5
_PATH_CARRIES: Final = 0.75  # of the missing rate: beside the other direction a slow path carries even less
_FOLLOWS: Final = 0.5  # of the rise that sessions without a common limit would have
_LOSS_ENDED: Final = 0.25  # of the first run's loss
_SESSIONS: Final = 4
_NO_MORE: Final = "more sessions carry no more: confirmed"
_WITHOUT_LIMIT: Final = {"another-link", "no-queue", "unexplained"}
_OF_A_BUCKET: Final = {"policer", "path-slow"}
_LIMITS_OF_A_SESSION: Final = {"window-clamped", "window-scaling-off", "loss"}


@dataclass(frozen=True, slots=True)
class Experiment:
    """A second test: the finding that it is about, the options that it changes, and the sign that confirms it."""

    finding: Finding
    trial: Trial
    sign: Sign

    @property
    def heading(self) -> str:
        """The change, for the beginning of a line: `with --window 512K`."""
        return str(self.trial) if self.trial.without_rate else f"with {self.trial}"

    def announce(self, plan: Plan) -> str:
        """Return the announcement of the test: `confirming: --window 512K, 5 s`."""
        duration_ns = self.trial.apply_to(plan).duration_ns
        seconds = "" if duration_ns is None else f", {duration_ns / SECOND_NS:g} s"
        return f"confirming: {self.trial}{seconds}"


@dataclass(frozen=True, slots=True)
class Confirmation:
    """The result of an experiment, or why there was none.

    `is_confirmed` is None if nothing was tried, or if the result does not tell. `first` and `second` are the
    results of both tests, `percent` is the second rate in percent of the expected one; None if unknown. Loss is in
    percent of what was sent. `shape` has the numbers of a policer or shaper, if bursts were sent for them.
    """

    text: str
    experiment: Experiment | None = None
    is_confirmed: bool | None = None
    run_id: str | None = None
    first: Measurement | None = None
    second: Measurement | None = None
    percent: float | None = None
    first_loss: float | None = None
    second_loss: float | None = None
    shape: ShapeResult | None = None


def find_experiments(findings: tuple[Finding, ...], plan: Plan) -> Iterator[Experiment]:
    """Yield the experiments on the first finding, the best one first: a host may not support one of them."""
    if not findings or plan.has_phases:
        return
    finding = findings[0]
    trial, sessions = finding.trial, None
    if plan.workload.is_bulk and not plan.workload.is_datagram:
        sessions = more_sessions(plan.settings.sessions, _SESSIONS)
    if trial is not None and trial.rate_bit_s is not None:
        yield Experiment(finding, trial, "no-loss")
    elif trial is not None and not _is_slower(finding, trial):
        yield Experiment(finding, trial, "faster" if trial.direction is None else "alone")
    if sessions is not None and finding.code in _LIMITS_OF_A_SESSION:
        yield Experiment(finding, sessions, "follows")
    elif sessions is not None and finding.code == "path-slow" and trial is None:
        yield Experiment(finding, sessions, "same")


def _is_slower(finding: Finding, trial: Trial) -> bool:
    """Return whether a comparison is useless: TCP that heeds loss is slower than BBR under any limit."""
    return finding.code == "loss" and trial.congestion == "cubic"


def nothing_to_confirm(findings: tuple[Finding, ...], *, is_whole: bool) -> Confirmation:
    """Return why no experiment follows the findings of a run."""
    code = findings[0].code if findings else "unexplained"
    reason = "no option of a test shows whether this is the limit"
    if not is_whole:
        reason = "the test did not finish"
    elif code == "at-expected":
        reason = "the run is at its expected rate"
    elif code in _WITHOUT_LIMIT:
        reason = "no limit was found"
    return Confirmation(f"nothing to confirm: {reason}")


def asks_for_bursts(findings: tuple[Finding, ...]) -> bool:
    """Return whether bursts tell more of the first finding: the rate and burst of a policer or shaper."""
    return bool(findings) and findings[0].code in _OF_A_BUCKET


def with_shape(confirmation: Confirmation, shape: ShapeResult) -> Confirmation:
    """Return a confirmation with the numbers of a policer or shaper as its evidence."""
    lines = [confirmation.text, *filter(None, (describe_shape(each) for each in shape.directions))]
    return replace(confirmation, text="; ".join(lines), shape=shape)


def describe_shape(shape: DirectionShape) -> str:
    """Return what bursts show of a direction, in one phrase."""
    if shape.cir is None or shape.cbs is None:
        found = "no limit" if shape.kind is LimitKind.NONE else "nothing that can be read"
        return f"bursts {shape.direction} show {found}"
    payload = format_rate(shape.payload_bit_s or 0.0)
    cir = format_rate(shape.cir.median)
    text = f"bursts {shape.direction} show a {shape.kind} of {cir} (CIR; {payload} of payload)"
    if shape.kind is LimitKind.LINE:
        return text
    return f"{text} and {format_quantity(round(shape.cbs.median), 'byte')} (CBS)"


def failed_confirmation(experiment: Experiment, reason: str, run_id: str | None = None) -> Confirmation:
    """Return the confirmation of an experiment without a result, with the reason."""
    return Confirmation(f"{experiment.heading}: {reason}; nothing is confirmed", experiment, run_id=run_id)


def judge_experiment(experiment: Experiment, first: Summary, second: Summary, run_id: str) -> Confirmation:
    """Return the verdict of the second test on the finding of the first.

    Args:
        experiment: the change between the tests.
        first: the result of the test with the finding.
        second: the result of the test that followed, which has the id `run_id`.
        run_id: the id of the second run.
    """
    before, after = first.total_of_one_time, second.total_of_one_time
    if experiment.sign == "alone":
        before = first.measured[second.plan.settings.direction]
    if not second.is_whole:
        return failed_confirmation(experiment, second.end.detail.rstrip("."), run_id)
    if before is None or after is None:
        return failed_confirmation(experiment, "nothing was measured", run_id)
    losses = _lost_percent(first), _lost_percent(second)
    if experiment.sign == "no-loss":
        is_confirmed, words = _judge_loss(*losses)
    elif experiment.sign == "alone":
        is_confirmed, words = _judge_alone(experiment.finding.code, first, before, second, after)
    else:
        is_confirmed, words = _judge_rates(experiment, first, before, second, after)
    percent = percent_of(after.bit_s, _expected_bit_s(second))
    return Confirmation(
        f"{experiment.heading}: {words}", experiment, is_confirmed, run_id, before, after, percent, *losses
    )


def _judge_rates(
    experiment: Experiment, first: Summary, before: Measurement, second: Summary, after: Measurement
) -> tuple[bool | None, str]:
    """Return whether two rates confirm a finding, and the words for that."""
    rise_bit_s, gap_bit_s = after.bit_s - before.bit_s, _gap_bit_s(first, before)
    if abs(rise_bit_s) < _MIN_RISE * min(gap_bit_s, before.bit_s):
        is_path = experiment.sign == "same"
        words = _NO_MORE if is_path else "no difference, so that is not the limit"
        return is_path, f"{_rate_text(second, after)}: {words}"
    changed = f"{_rate_text(second, after)} instead of {_rate_text(first, before)}{_share_text(second, after)}"
    least_bit_s, most_bit_s = _rise_limits(before, after)
    enough_bit_s = before.bit_s if experiment.sign == "same" else gap_bit_s
    if least_bit_s <= 0 <= most_bit_s and most_bit_s >= _MIN_RISE * enough_bit_s:
        return None, f"{changed}: the rates vary too much to tell; test longer"
    more_sessions_bit_s = before.bit_s * (second.plan.settings.sessions / first.plan.settings.sessions - 1)
    is_confirmed, words = _judge_change(experiment.sign, rise_bit_s, gap_bit_s, more_sessions_bit_s)
    return is_confirmed, f"{changed}: {words}"


def _judge_change(sign: Sign, rise_bit_s: float, gap_bit_s: float, more_sessions_bit_s: float) -> tuple[bool, str]:
    """Return whether a change of the rate confirms a finding, and the words for that.

    Args:
        sign: the result that would confirm it.
        rise_bit_s: the rise of the rate; negative if the second rate is lower.
        gap_bit_s: the rate that was missing at first.
        more_sessions_bit_s: the rate of the further sessions if each had the first rate.
    """
    if sign == "same":
        more = "more sessions carry more, so the path is not the limit"
        return rise_bit_s < 0, _NO_MORE if rise_bit_s < 0 else more
    if rise_bit_s < 0:
        return False, "slower, so that is not the limit"
    if sign == "follows":
        follows = rise_bit_s >= _FOLLOWS * min(gap_bit_s, more_sessions_bit_s)
        not_so = "the rate does not follow the sessions, so that is not the limit"
        return follows, "the rate follows the sessions: confirmed" if follows else not_so
    is_much = rise_bit_s >= _MIN_RISE * gap_bit_s
    return is_much, "confirmed" if is_much else "little of what is missing, so that is not the limit"


def _judge_alone(
    code: str, first: Summary, before: Measurement, second: Summary, after: Measurement
) -> tuple[bool | None, str]:
    """Return whether the rate of a direction alone confirms a finding about both, and the words for that.

    If it carries the missing rate alone, acknowledgements waited, and the path is not slow. The variation of its
    rate in the first test does not matter: waiting acknowledgements make it vary.
    """
    changed = f"{_rate_text(second, after)} instead of {_rate_text(first, before)}{_share_text(second, after)}"
    part = _PATH_CARRIES if code == "path-slow" else _ALONE
    least_bit_s = before.bit_s + part * _gap_bit_s(second, before)
    low, high = (after.bit_s, after.bit_s) if after.estimate is None else (after.estimate.low, after.estimate.high)
    if low < least_bit_s <= high:
        return None, f"{changed}: the rate varies too much to tell; test longer"
    carries = low >= least_bit_s
    words = "alone it carries what was missing" if carries else "alone it carries little of what was missing"
    if code == "unexplained":
        return None, f"{changed}: {words}"
    is_confirmed = carries is not (code == "path-slow")
    refuted = f"so {'the path' if code == 'path-slow' else 'the other direction'} is not the limit"
    return is_confirmed, f"{changed}: {'confirmed' if is_confirmed else f'{words}, {refuted}'}"


def _judge_loss(before: float | None, after: float | None) -> tuple[bool | None, str]:
    """Return whether losses ended, and the words for that."""
    if before is None or after is None:
        return None, "the losses are unknown"
    lost, was = (f"{format_percent(percent / 100)}" for percent in (after, before))
    if after <= _LOSS_ENDED * before:
        return True, f"{lost} lost instead of {was}: confirmed"
    return False, f"{lost} lost, {was} before: losses go on below that rate, so that is not the limit"


def _expected_bit_s(summary: Summary) -> float | None:
    expected = summary.expectation[summary.plan.settings.direction]
    return None if expected is None else expected.bit_s


def _gap_bit_s(summary: Summary, measured: Measurement) -> float:
    """Return the missing rate; without an expected one, the measured rate itself."""
    expected_bit_s = _expected_bit_s(summary)
    return measured.bit_s if expected_bit_s is None else max(0.0, expected_bit_s - measured.bit_s)


def _rise_limits(before: Measurement, after: Measurement) -> tuple[float, float]:
    """Return the ends of the confidence interval of the rise; without one, the rise itself twice."""
    rise_bit_s = after.bit_s - before.bit_s
    if before.estimate is None or after.estimate is None:
        return rise_bit_s, rise_bit_s
    difference = compare_estimates(before.estimate, after.estimate)
    if difference is None or difference.low is None or difference.high is None:
        return rise_bit_s, rise_bit_s
    return before.bit_s * difference.low / 100, before.bit_s * difference.high / 100


def _lost_percent(summary: Summary) -> float | None:
    """Return the lost datagrams, or the payload that TCP sent again, in percent of what was sent."""
    total = summary.measured.total
    if total is not None and total.datagrams is not None:
        return total.datagrams.lost_percent
    return None if summary.efficiency_percent is None else 100 - summary.efficiency_percent


def _rate_text(summary: Summary, measured: Measurement) -> str:
    """Return a rate in words: of payload, or of transactions for their workloads."""
    if summary.plan.workload.is_bulk or measured.transactions_s is None:
        return format_rate(measured.bit_s)
    return format_transaction_rate(measured.transactions_s)


def _share_text(summary: Summary, measured: Measurement) -> str:
    percent = percent_of(measured.bit_s, _expected_bit_s(summary))
    return "" if percent is None else f", {percent:.1f} % of expected"


def confirmation_document(confirmation: Confirmation) -> dict[str, Any]:
    """Return a confirmation for programs."""
    experiment = confirmation.experiment
    return {
        "code": None if experiment is None else experiment.finding.code,
        "option": None if experiment is None else str(experiment.trial),
        "run_id": confirmation.run_id,
        "confirmed": confirmation.is_confirmed,
        "mbit_s_before": mbit(confirmation.first and confirmation.first.bit_s),
        "mbit_s": mbit(confirmation.second and confirmation.second.bit_s),
        "percent_of_expected": round_figure(confirmation.percent),
        "lost_percent_before": round_figure(confirmation.first_loss),
        "lost_percent": round_figure(confirmation.second_loss),
        **({} if confirmation.shape is None else {"shape": shape_document(confirmation.shape)}),
        "text": confirmation.text,
    }
