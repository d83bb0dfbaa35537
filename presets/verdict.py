"""The verdict: the measured rates compared with the expected ones, as a word and a text.

Pure. An incomplete run is not judged, even if the user ended it; its text only states the measured rates. Latency
under load is judged only if the user has set a limit for it. Then the rates and the latency decide together.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import floor, inf
from typing import TYPE_CHECKING, Final, Literal

from ..engine.model.directions import Direction, PerDirection
from ..engine.model.errors import PlanError
from ..engine.model.expected_rate import Expectation, ExpectedRate
from ..engine.model.plan import SECOND_NS
from ..engine.model.run_end import STILL_RUNNING
from ..engine.results.responsiveness.grade import GRADES, is_worse
from .number_text import (
    LOAD_NAMES,
    format_percent,
    format_quantity,
    format_rate,
    format_time,
    format_transaction_rate,
)

if TYPE_CHECKING:
    from ..engine.results.responsiveness.grade import Grade
    from ..engine.results.responsiveness.result import LoadedLatency, Responsiveness
    from ..engine.results.run_result import LimitFigures
    from ..engine.results.summary import Measurement, Period, Summary

VerdictCode = Literal["pass", "short", "fail", "none"]

DEFAULT_PASS_PERCENT: Final = 95.0
FAIL_PERCENT: Final = 50.0
_LARGEST_SHOWN: Final = 10**300  # a larger integer is not a float
# Above this share of the expected rate, the preset is probably for another link.
_DOUBT_PERCENT: Final = 110.0
WRONG_PRESET_HINT: Final = "choose another preset, or auto"
_MILLISECOND_NS: Final = 1_000_000
_MOST_MS: Final = 1e9
_MOST_UNKNOWN_NS: Final = 1_500_000_000  # an end's last sample, and the difference of two clocks
_NAMES: Final = {Direction.OUT: "out", Direction.IN: "in", Direction.DUPLEX: "duplex total"}
_BADNESS: Final[tuple[VerdictCode, ...]] = ("fail", "short", "none", "pass")


@dataclass(frozen=True, slots=True)
class LatencyLimit:
    """The limits that a test is judged by; None is no limit.

    `max_rise_ns` is the maximum rise of latency under load in any direction, `worst_grade` the lowest grade that
    passes.
    """

    max_rise_ns: int | None = None
    worst_grade: "Grade | None" = None


LimitName = Literal["max-loss", "min-rate", "max-rise"]
"""A limit of `AcceptanceLimits`, by its option."""


@dataclass(frozen=True, slots=True)
class AcceptanceLimits:
    """What every test of a mesh must keep, whatever rate its link should have; None is no limit.

    `max_loss` is the largest lost share of what was sent, 0 to 1, `min_rate_bit_s` the lowest goodput, and
    `max_rise_ns` the largest rise of latency under load.
    """

    max_loss: float | None = None
    min_rate_bit_s: int | None = None
    max_rise_ns: int | None = None

    @property
    def latency(self) -> LatencyLimit | None:
        """The limit of latency, as a run has it."""
        return None if self.max_rise_ns is None else LatencyLimit(self.max_rise_ns)

    def check(self, *, bit_s: float | None, loss: float | None, rise_ns: float | None) -> "LimitCheck":
        """Compare the figures of a test with the limits; None is an unknown figure."""
        broken: list[LimitName] = []
        unknown: list[LimitName] = []
        rate_bit_s = None if bit_s is None else -bit_s  # a minimum
        least_bit_s = None if self.min_rate_bit_s is None else -self.min_rate_bit_s
        limits: tuple[tuple[LimitName, float | None, float | None], ...] = (
            ("max-loss", loss, self.max_loss),
            ("min-rate", rate_bit_s, least_bit_s),
            ("max-rise", rise_ns, self.max_rise_ns),
        )
        for name, value, most in limits:
            if most is not None and value is None:
                unknown.append(name)
            elif most is not None and value is not None and value > most:
                broken.append(name)
        return LimitCheck(tuple(broken), tuple(unknown))

    def describe(self, name: LimitName) -> str:
        """Return what breaks a limit: `more than 0.1 % lost`."""
        match name:
            case "max-loss":
                return f"more than {format_percent(self.max_loss or 0.0)} lost"
            case "min-rate":
                return f"less than {format_rate(self.min_rate_bit_s or 0)}"
            case "max-rise":
                return f"latency up by more than {format_time((self.max_rise_ns or 0) / 1_000)}"


NO_LIMITS: Final = AcceptanceLimits()


@dataclass(frozen=True, slots=True)
class LimitCheck:
    """The limits that a test breaks, and those that it has no figure for."""

    broken: tuple[LimitName, ...] = ()
    unknown: tuple[LimitName, ...] = ()


@dataclass(frozen=True, slots=True)
class Verdict:
    """A word for programs, and a sentence or two for the user.

    `percent` is the rate that decided, in percent of its expected rate; None without one. `periods` has a verdict
    for each period of a run with several.
    """

    word: VerdictCode
    text: str
    percent: float | None = None
    periods: tuple["Verdict", ...] = ()

    @property
    def label(self) -> str:
        """The word for the user: `PASS`, `NO VERDICT`."""
        return "NO VERDICT" if self.word == "none" else self.word.upper()

    @property
    def explanation(self) -> str:
        """The text without its label."""
        return self.text.removeprefix(f"{self.label}: ")


def observed_verdict(reason: str | None) -> Verdict:
    """Return the verdict on a connection of another program: it is not a test, and its result stands in for one."""
    return Verdict("none", f"NO VERDICT: {reason or 'the result is unknown.'}")


def limit_figures(limit: LatencyLimit | None) -> "LimitFigures | None":
    """Return the limits as figures of a run's result."""
    from ..engine.results.figure_codec import figures_of
    from ..engine.results.run_result import LimitFigures  # a pass mark is read before any result: this takes time

    return None if limit is None else figures_of(LimitFigures, limit)


def read_limit(figures: "LimitFigures | None") -> LatencyLimit | None:
    """Return the limits of a stored run; None if it has none, or if they are damaged."""
    if figures is None:
        return None
    rise_ms, worst = figures.max_rise_ms, figures.worst_grade
    rise_ns = None if rise_ms is None or not 0 <= rise_ms < _MOST_MS else round(rise_ms * _MILLISECOND_NS)
    grade: Grade | None = next((each for each in GRADES if each == worst), None)
    return None if rise_ns is None and grade is None else LatencyLimit(rise_ns, grade)


def worst_word(words: Iterable[VerdictCode]) -> VerdictCode:
    """Return the word that decides among several: a failure, then a missing verdict, then a pass."""
    return min(words, key=_BADNESS.index)


def rate_word(percent: float, pass_percent: float = inf) -> Literal["pass", "short", "fail"]:
    """Return the word for a rate in percent of the expected one; without a pass mark, for one below its mark."""
    return "pass" if percent >= pass_percent else "short" if percent >= FAIL_PERCENT else "fail"


def check_pass_percent(percent: float) -> float:
    """Return the pass mark; raise PlanError if no rate can be compared with it."""
    if not 0 < percent <= 100:
        is_beyond_float = isinstance(percent, int) and abs(percent) > _LARGEST_SHOWN
        text = "such a number" if is_beyond_float else f"{percent:g} %"
        raise PlanError("pass mark", text, "give more than 0 and at most 100")
    return percent


def judge(
    summary: "Summary", *, pass_percent: float = DEFAULT_PASS_PERCENT, limit: LatencyLimit | None = None
) -> Verdict:
    """Return the verdict of a run. The worst of its directions decides, both for rates and for latency under load.

    `fail` is a rate under half of the expected one, no payload at all, or latency beyond `limit`. `short` is a rate
    under the pass mark. `none` is an incomplete run, a run without an expected or a measured rate and without a
    limit of latency, or a rate beyond the capacity of the preset's link: then the preset is for another link.
    """
    check_pass_percent(pass_percent)
    if not summary.is_whole:
        return Verdict("none", f"NO VERDICT: {_unfinished_text(summary)}. {_measured_text(summary)}")
    if summary.unknown_ns > _MOST_UNKNOWN_NS:
        unknown = f"what the receiver got in the last {summary.unknown_ns / SECOND_NS:.1f} s is unknown"
        return Verdict("none", f"NO VERDICT: {unknown}. {_measured_text(summary)}")
    if _nothing_arrived(summary):
        return Verdict("fail", "FAIL: no payload arrived.")
    latency = None if limit is None else _judge_latency(summary, limit)
    if summary.plan.has_phases:
        if latency is not None:
            return latency
        remedy = "set a limit for the latency under load, with --max-rise or --grade"
        return Verdict("none", f"NO VERDICT: {remedy}. {_measured_text(summary)}")
    return _judge_run(summary, pass_percent, latency)


def _judge_run(summary: "Summary", pass_percent: float, latency: Verdict | None) -> Verdict:
    """Return the verdict on a run's rates, and on its latency if `latency` is given."""
    periods = tuple(judge_period(period, pass_percent) for period in summary.periods)
    if len({period.settings for period in summary.periods}) > 1:  # even if one was too short to be measured
        text = "NO VERDICT: the settings changed during the run, so each period has its own verdict."
        return Verdict("none", f"{text} {_measured_text(summary)}", periods=periods)
    verdict = _judge_rates(summary.measured, summary.expectation, pass_percent)
    if verdict is None:
        verdict = latency or Verdict("none", f"NO VERDICT: no expected rate. {_measured_text(summary)}")
    elif latency is not None:
        verdict = _both(verdict, latency)
    return replace(verdict, periods=periods) if len(periods) > 1 else verdict


def _both(rate: Verdict, latency: Verdict) -> Verdict:
    """Return the worse of two verdicts, with the texts of both."""
    worst = rate if worst_word((rate.word, latency.word)) == rate.word else latency
    second = latency.explanation[:1].upper() + latency.explanation[1:]
    return Verdict(worst.word, f"{worst.label}: {rate.explanation} {second}", rate.percent)


def _judge_latency(summary: "Summary", limit: LatencyLimit) -> Verdict:
    """Return the verdict on latency under load. It passes only if each direction was measured."""
    result = summary.responsiveness
    loads = () if result is None else result.graded_loads
    if result is None or not loads or any(load.rise_ns is None for load in loads):
        return Verdict("none", "NO VERDICT: latency under load was not measured.")
    word: VerdictCode = "fail" if _exceeds(result, loads, limit) else "pass"
    rises = " and ".join(f"{_rise_text(load)} with load {LOAD_NAMES[load.direction]}" for load in loads)
    text = f"latency rose by {rises}; {' and '.join(_limit_texts(result, limit))}."
    verdict = Verdict(word, "")
    return replace(verdict, text=f"{verdict.label}: {text}")


def _exceeds(result: "Responsiveness", loads: "Sequence[LoadedLatency]", limit: LatencyLimit) -> bool:
    if limit.max_rise_ns is not None and any((load.rise_ns or 0.0) > limit.max_rise_ns for load in loads):
        return True
    return limit.worst_grade is not None and result.grade is not None and is_worse(result.grade, limit.worst_grade)


def _limit_texts(result: "Responsiveness", limit: LatencyLimit) -> Iterator[str]:
    if limit.max_rise_ns is not None:
        yield f"the limit is {format_time(limit.max_rise_ns / 1_000)}"
    if limit.worst_grade is not None:
        yield f"its grade is {result.grade}, {limit.worst_grade} or better passes"


def _rise_text(load: "LoadedLatency") -> str:
    return "an unknown time" if load.rise_ns is None else format_time(load.rise_ns / 1_000)


def judge_period(period: "Period", pass_percent: float = DEFAULT_PASS_PERCENT) -> Verdict:
    """Judge one period of a run as a run of its own."""
    if period.measured.total is None:
        return Verdict("none", "NO VERDICT: nothing was measured after the warm-up.")
    return _judge_rates(period.measured, period.expectation, pass_percent) or Verdict(
        "none", "NO VERDICT: no expected rate."
    )


def _judge_rates(
    measured: "PerDirection[Measurement | None]", expectation: Expectation, pass_percent: float
) -> Verdict | None:
    """Return the worst verdict on the rates with an expectation; None if no rate has one."""
    verdicts = [
        _judge_direction(name, expected, measured[direction], pass_percent)
        for direction, name in _NAMES.items()
        if (expected := expectation[direction]) is not None
    ]
    if not verdicts:
        return None
    word = worst_word(verdict.word for verdict in verdicts)
    worst = next(verdict for verdict in verdicts if verdict.word == word)
    return replace(worst, text=f"{worst.label}: {' '.join(verdict.text for verdict in verdicts)}")


def _judge_direction(
    name: str, expected: ExpectedRate, measured: "Measurement | None", pass_percent: float
) -> Verdict:
    if measured is None or measured.span_ns <= 0:
        return Verdict("none", f"{name} was not measured after the warm-up.")
    if measured.counted_by == "sender" and measured.datagrams is not None:
        text = f"{name} {format_rate(measured.bit_s)} was sent; how much of it arrived was not reported."
        return Verdict("none", text)
    was, wanted = _compared(expected, measured)
    percent = measured.percent_of(expected) or 0.0
    word = rate_word(percent, pass_percent)
    text = f"{name} {was} is {_percent(percent, pass_percent)} of {wanted} ({expected.basis}: {expected.source})"
    if expected.is_exceeded_by(measured.result_bit_s):
        most = format_rate(expected.most_bit_s or 0)
        return Verdict("none", f"{text}, and more than the {most} that such a link can carry: {WRONG_PRESET_HINT}.")
    if word != "pass":
        text += f"; the pass mark is {pass_percent:g} %."
    elif percent > _DOUBT_PERCENT:
        text += ". That is far above: the host is faster than the document's, or this is another link."
    else:
        text += "."
    return Verdict(word, text, percent)


def _compared(expected: ExpectedRate, measured: "Measurement") -> tuple[str, str]:
    """Return the measured and the expected rate as text."""
    transactions_s = measured.transactions_s
    if expected.transactions_s is None or transactions_s is None:
        return format_rate(measured.result_bit_s), format_rate(expected.bit_s)
    return format_transaction_rate(transactions_s), format_transaction_rate(expected.transactions_s)


def _words(measured: "Measurement") -> str:
    transactions_s = measured.transactions_s
    if transactions_s is None:
        return format_rate(measured.bit_s)
    return f"{format_transaction_rate(transactions_s)} ({format_rate(measured.bit_s)})"


def _nothing_arrived(summary: "Summary") -> bool:
    flows = _measured_flows(summary)
    return bool(flows) and all(measured.bytes == 0 for measured in flows.values())


def _measured_flows(summary: "Summary") -> "dict[str, Measurement]":
    """Return the measurements of the directions, by their names."""
    flows = {"out": summary.measured.out, "in": summary.measured.in_}
    return {name: each for name, each in flows.items() if each is not None and each.span_ns > 0}


def _unfinished_text(summary: "Summary") -> str:
    """Return how far the run came: `stopped after 2.0 of 30 s` if the user ended it, or else its failure."""
    if not summary.was_cut_short:
        return f"the run did not finish: {summary.end.detail.rstrip('.')}"
    plan = summary.plan
    elapsed = f"{(summary.elapsed_ns or 0) / SECOND_NS:.1f}"
    if summary.end == STILL_RUNNING:
        return f"still running, after {elapsed} s"
    if plan.duration_ns is None:
        return f"stopped after {elapsed} s, before {format_quantity(plan.bytes_limit or 0, 'byte')} were through"
    most = "at most " if plan.has_phases or plan.bytes_limit is not None else ""
    return f"stopped after {elapsed} of {most}{plan.duration_ns / SECOND_NS:g} s"


def _measured_text(summary: "Summary") -> str:
    if summary.plan.has_phases and summary.responsiveness is not None:
        return _loads_text(summary.responsiveness)
    rates = [f"{name} {_words(measured)}" for name, measured in _measured_flows(summary).items()]
    return f"Measured: {', '.join(rates)}." if rates else "Nothing was measured."


def _loads_text(result: "Responsiveness") -> str:
    """Return the rates and rises of a test whose directions ran one after the other."""
    parts = [
        f"{LOAD_NAMES[load.direction]} {format_rate(load.bit_s.total)}, latency +{_rise_text(load)}"
        for load in result.loads
        if load.bit_s.total is not None and load.rise_ns is not None
    ]
    return f"Measured: {'; '.join(parts)}." if parts else "Nothing was measured."


def _percent(percent: float, pass_percent: float) -> str:
    """Return a percentage as text. One below the pass mark never reads as the mark."""
    rounded = round(percent, 1)
    if percent < pass_percent <= rounded:
        rounded = floor(percent * 10) / 10
    return f"{rounded:.1f} %"
