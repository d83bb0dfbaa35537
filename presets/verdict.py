"""The verdict: the measured rates compared with the expected ones, as a word and a text.

Pure. An incomplete run is not judged; its text only states the measured rates.
"""

from dataclasses import dataclass
from math import floor
from typing import Final, Literal

from ..engine.model.errors import PlanError
from ..engine.model.events import ExpectedRate
from ..engine.model.plan import Direction
from ..engine.results.summary import Measurement, Summary
from .number_text import format_rate, format_transaction_rate

VerdictCode = Literal["pass", "short", "fail", "none"]

DEFAULT_PASS_PERCENT: Final = 95.0
FAIL_PERCENT: Final = 50.0
# Above this share of the expected rate, the preset is probably that of another link.
_DOUBT_PERCENT: Final = 110.0
WRONG_PRESET_HINT: Final = (
    "this is another link, so choose its preset, or let both ends' interfaces do it (check auto)"
)
_NAMES: Final = {Direction.OUT: "out", Direction.IN: "in", Direction.DUPLEX: "duplex total"}
_BADNESS: Final[tuple[VerdictCode, ...]] = ("fail", "short", "none", "pass")


@dataclass(frozen=True, slots=True)
class Verdict:
    """A word for programs, and a sentence or two for people."""

    word: VerdictCode
    text: str


def check_pass_percent(percent: float) -> float:
    """Return the pass mark; raise PlanError if no rate can be compared with it."""
    if not 0 < percent <= 100:
        raise PlanError("pass mark", f"{percent:g} %", "give more than 0 and at most 100")
    return percent


def judge(summary: Summary, *, pass_percent: float = DEFAULT_PASS_PERCENT) -> Verdict:
    """Return the verdict of a run. The worst of its directions decides.

    `fail` is under half of the expected rate, or no payload at all; `short` is under the pass mark. `none` is a run
    without an expected or a measured rate, an incomplete run, or a rate beyond the capacity of the preset's link,
    which is then not the link of this run.
    """
    check_pass_percent(pass_percent)
    if not summary.end.reason.is_regular:
        text = f"NONE: the run did not run to its end: {summary.end.detail.rstrip('.')}. {_measured_text(summary)}"
        return Verdict("none", text)
    if _nothing_arrived(summary):
        return Verdict("fail", "FAIL: no payload arrived at all.")
    comparisons = [
        (name, expected, summary.measured[direction])
        for direction, name in _NAMES.items()
        if (expected := summary.expectation[direction]) is not None
    ]
    if not comparisons:
        return Verdict("none", f"NONE: the preset expects nothing of this run. {_measured_text(summary)}")
    verdicts = [_judge_direction(*comparison, pass_percent) for comparison in comparisons]
    word = min(verdicts, key=lambda verdict: _BADNESS.index(verdict.word)).word
    return Verdict(word, f"{word.upper()}: " + " ".join(verdict.text for verdict in verdicts))


def _judge_direction(
    name: str, expected: ExpectedRate, measured: Measurement | None, pass_percent: float
) -> Verdict:
    if measured is None or measured.span_ns <= 0:
        return Verdict("none", f"nothing was measured of {name} after the warm-up.")
    was, wanted, percent = _compared(expected, measured)
    word: VerdictCode = "pass" if percent >= pass_percent else "short" if percent >= FAIL_PERCENT else "fail"
    text = f"{name} {was} is {_percent(percent, pass_percent)} of the {wanted} that {expected.source} expects"
    if expected.is_exceeded_by(measured.bit_s):
        most = format_rate(expected.most_bit_s or 0)
        return Verdict("none", f"{text}, and no such link carries more than {most}: {WRONG_PRESET_HINT}.")
    if word != "pass":
        return Verdict(word, f"{text}; the pass mark is {pass_percent:g} %.")
    if percent > _DOUBT_PERCENT:
        return Verdict(word, f"{text}. That is well above it: a faster host than the document's, or another link.")
    return Verdict(word, f"{text}.")


def _compared(expected: ExpectedRate, measured: Measurement) -> tuple[str, str, float]:
    """Return the measured and the expected rate as text, and the percentage."""
    transactions_s = measured.transactions_s
    if expected.transactions_s is None or transactions_s is None:
        percent = measured.bit_s * 100 / expected.bit_s
        return format_rate(measured.bit_s), format_rate(expected.bit_s), percent
    percent = transactions_s * 100 / expected.transactions_s
    return format_transaction_rate(transactions_s), format_transaction_rate(expected.transactions_s), percent


def _words(measured: Measurement) -> str:
    transactions_s = measured.transactions_s
    if transactions_s is None:
        return format_rate(measured.bit_s)
    return f"{format_transaction_rate(transactions_s)} ({format_rate(measured.bit_s)})"


def _nothing_arrived(summary: Summary) -> bool:
    rates = [
        measured
        for measured in (summary.measured.out, summary.measured.in_)
        if measured is not None and measured.span_ns > 0
    ]
    return bool(rates) and all(measured.bytes == 0 for measured in rates)


def _measured_text(summary: Summary) -> str:
    rates = [
        f"{name} {_words(measured)}"
        for name, measured in (("out", summary.measured.out), ("in", summary.measured.in_))
        if measured is not None and measured.span_ns > 0
    ]
    return f"Measured: {', '.join(rates)}." if rates else "Nothing was measured."


def _percent(percent: float, pass_percent: float) -> str:
    """Return a percentage as text, never one below the pass mark that reads as the mark."""
    rounded = round(percent, 1)
    if percent < pass_percent <= rounded:
        rounded = floor(percent * 10) / 10
    return f"{rounded:.1f} %"
