"""The 95 % confidence interval of a mean rate, computed from the rates of its sampling intervals.

Pure. Neighbouring intervals of a link are not independent: a slow sender stays slow for a while, and bytes that a
shaper delays arrive in the next interval. So the confidence interval is computed from batch means: 16 to 31 batches
of neighbouring intervals (10 to 15 in short runs). The spread of the batches gives the error of their mean, with a
correction for the remaining correlation between neighbouring batches, and with Student's t.

Positively correlated batches get the correction of a first-order autoregression (as in Skart: Tafazzoli and others,
2011), with as many degrees of freedom as they have independent batches.

Behind a shaper, the next interval makes up for the shortfall of one. Batches then differ only by the bytes that
cross their ends: the variance of a sum grows slowly with its length, or not at all. It is extrapolated along the
line through the variances of one batch and of two together, as for a first-order moving average. The correction of
an autoregression made the interval behind a shaper three times too wide. The moving average is used if both the
intervals and their batches are negatively correlated beyond chance.

On simulated series of 36 to 240 intervals the confidence interval covers the true mean in 91 to 96 % of cases for
autoregressions of -0.5 to 0.5, in 88 to 95 % at 0.9, and in 98 to 100 % of moving averages without a lasting error.

A confidence interval is about one period of one run: the link at that time, under one setting. It does not include
changes from one hour to the next.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from math import exp, lgamma, log, sqrt
from statistics import NormalDist
from typing import Final

from .rate_and_loss import percent_of

CONFIDENCE: Final = 0.95
MIN_INTERVALS: Final = 6  # fewer give no usable spread
SERIES_INTERVAL_NS: Final = 100_000_000
"""The sampling interval of the short runs of a series: 24 of them in 3 s, enough for a confidence interval."""
_BATCHES: Final = 16  # up to 31: 10 to 30 are enough (Schmeiser, 1982); more are more correlated
_PAIRED: Final = 20  # from this many intervals on, a batch has at least two
_MOST_BINS: Final = 128
_LEAST_CORRELATION: Final = -0.9
_MOST_CORRELATION: Final = 0.9
# Correlations beyond this many standard errors of zero correlation are not chance: of intervals, and of batches.
_INTERVALS_BEYOND: Final = 2.0
_BATCHES_BEYOND: Final = 1.5
_LEAST_DEGREES: Final = 3.0  # fewer make the interval many times wider for hardly more coverage
_NORMAL_DEGREES: Final = 10_000.0  # Student's t is the normal distribution's quantile there, to four digits


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its standard error, the error's degrees of freedom, and the number of sampling intervals."""

    mean: float
    standard_error: float
    degrees_of_freedom: float
    interval_count: int

    def half_width(self, confidence: float = CONFIDENCE) -> float:
        """Return how far the interval reaches to each side of the mean."""
        return self.standard_error * student_t(self.degrees_of_freedom, confidence) if self.standard_error else 0.0

    @property
    def low(self) -> float:
        """The lower end of the 95 % interval, at least 0."""
        return max(0.0, self.mean - self.half_width())

    @property
    def high(self) -> float:
        """The upper end of the 95 % interval."""
        return self.mean + self.half_width()

    @property
    def half_width_percent(self) -> float | None:
        """Half of the 95 % interval in percent of the mean; None for a mean of 0."""
        return percent_of(self.half_width(), self.mean)

    def scaled(self, factor: float) -> "Estimate":
        """Return the estimate in another unit."""
        return Estimate(
            self.mean * factor, self.standard_error * factor, self.degrees_of_freedom, self.interval_count
        )


class RateSeries:
    """Amounts and their times, interval after interval, in bounded memory.

    If there are too many, neighbours are merged in pairs: a day's run ends with batches of many minutes.
    """

    def __init__(self) -> None:
        self._bins: list[tuple[float, float]] = []
        self._per_bin = 1
        self._begun: list[tuple[float, float]] = []
        self.interval_count = 0

    def add_interval(self, amount: float, span: float) -> None:
        """Add an interval that follows the last one."""
        self.interval_count += 1
        self._begun.append((amount, span))
        if len(self._begun) < self._per_bin:
            return
        self._bins.append(_sum(self._begun))
        self._begun.clear()
        if len(self._bins) == _MOST_BINS:
            self._bins = [_sum(pair) for pair in zip(self._bins[::2], self._bins[1::2], strict=True)]
            self._per_bin *= 2

    def trim_silence(self) -> None:
        """Remove the intervals without payload at the end."""
        for parts in (self._begun, self._bins):
            while parts and not parts[-1][0]:
                parts.pop()
            if parts:
                return

    def estimate(self, mean: float | None = None) -> Estimate | None:
        """Return the mean amount per span with its error; None if there are too few intervals.

        `mean` is the mean of exact sums, if it is known. Otherwise it is computed from the intervals.
        """
        if len(self._bins) < MIN_INTERVALS:
            return None
        size = _batch_size(len(self._bins))
        offset = len(self._bins) % size  # the oldest intervals, next to the warm-up, are left over
        batches = [_sum(self._bins[at : at + size]) for at in range(offset, len(self._bins), size)]
        returns = size > 1 and _returns(_rates(self._bins))
        estimate = estimate_mean(_rates(batches), mean, negatively_correlated=returns)
        return estimate and replace(estimate, interval_count=self.interval_count)


class PrecisionTarget:
    """Decides when a mean is precise enough: half of its interval is at most `percent` of it.

    A check after every interval would stop when the confidence interval is narrow by chance. So the first check is
    after 20 intervals, the next ones whenever their number has grown by a tenth, and two successive checks must
    agree.
    """

    def __init__(self, percent: float) -> None:
        self.percent = percent
        self._next = 20
        self._was_narrow = False

    def is_reached(self, estimate: Estimate | None) -> bool:
        """Return whether the mean so far is precise enough. Call this after every interval."""
        if estimate is None or estimate.half_width_percent is None or estimate.interval_count < self._next:
            return False
        self._next = estimate.interval_count + max(1, estimate.interval_count // 10)
        was_narrow, self._was_narrow = self._was_narrow, estimate.half_width_percent <= self.percent
        return was_narrow and self._was_narrow


def _sum(parts: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return sum(amount for amount, _ in parts), sum(span for _, span in parts)


def _rates(parts: Sequence[tuple[float, float]]) -> list[float]:
    return [amount / span for amount, span in parts if span > 0]


def _batch_size(count: int) -> int:
    """Return the number of intervals in a batch: even, because alternating rates do not cancel in an odd one."""
    size = max(2 if count >= _PAIRED else 1, count // _BATCHES)
    return size if size < 2 else size - size % 2


def _correlation(off: Sequence[float]) -> float:
    """Return the lag-1 autocorrelation of deviations from their mean."""
    squares = sum(a * a for a in off)
    return sum(a * b for a, b in pairwise(off)) / squares if squares else 0.0


def _returns(rates: Sequence[float]) -> bool:
    """Return whether neighbouring intervals are negatively correlated beyond chance."""
    middle = sum(rates) / len(rates)
    return _correlation([rate - middle for rate in rates]) < -_INTERVALS_BEYOND / sqrt(len(rates))


def estimate_mean(
    rates: Sequence[float], mean: float | None = None, *, negatively_correlated: bool = False
) -> Estimate | None:
    """Return the mean of successive rates with its error; None if there are too few.

    The rates should be few and of long batches; otherwise use a RateSeries. With `negatively_correlated`, each rate
    makes up for the shortfall of the one before it.
    """
    count = len(rates)
    if count < MIN_INTERVALS:
        return None
    middle = sum(rates) / count
    off = [rate - middle for rate in rates]
    squares = sum(a * a for a in off)
    if mean is None:
        mean = middle
    if not squares:
        return Estimate(mean, 0.0, count - 1.0, count)
    measured = _correlation(off)
    # A short series looks less correlated than it is (Kendall, 1954; Marriott and Pope, 1954).
    correlation = (count * measured + 1) / (count - 4)
    correlation = min(_MOST_CORRELATION, max(_LEAST_CORRELATION, correlation))
    variance = squares / (count - 1) / count
    if negatively_correlated and correlation < -_BATCHES_BEYOND / sqrt(count):
        # At -0.5 every shortfall is made up, except for the bytes that cross the two ends of the run.
        inflation = 1 + 2 * max(-0.5, measured) * (1 - 1 / count)
        return Estimate(mean, sqrt(inflation * variance), count - 1.0, count)
    inflation = (1 + correlation) / (1 - correlation)
    squared = correlation * correlation
    degrees = max(_LEAST_DEGREES, count * (1 - squared) / (1 + squared) - 1)
    return Estimate(mean, sqrt(inflation * variance), degrees, count)


@lru_cache(maxsize=1024)
def _quantile(degrees: float, confidence: float) -> float:
    if degrees >= _NORMAL_DEGREES:
        return NormalDist().inv_cdf((1 + confidence) / 2)
    # The chance that |T| > t is the incomplete beta function of degrees / (degrees + t^2): bisect for it.
    low, high = 0.0, 1.0
    for _ in range(64):
        middle = (low + high) / 2
        if _incomplete_beta(degrees / 2, 0.5, middle) < 1 - confidence:
            low = middle
        else:
            high = middle
    return sqrt(degrees * (1 - low) / low)


def student_t(degrees: float, confidence: float = CONFIDENCE) -> float:
    """Return the two-sided quantile of Student's t, for 1 or more degrees of freedom."""
    if degrees < 1 or not 0 < confidence < 1:
        raise ValueError(f"Student's t of {degrees} degrees of freedom at {confidence}")
    return _quantile(round(degrees, 2), confidence)


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Return the regularised incomplete beta function, by its continued fraction (DLMF 8.17.22)."""
    if not 0 < x < 1:
        return min(1.0, max(0.0, x))
    return _fraction(a, b, x) if x < (a + 1) / (a + b + 2) else 1 - _fraction(b, a, 1 - x)


def _fraction(a: float, b: float, x: float) -> float:
    """Return the function by Lentz's method, for arguments with fast convergence."""
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x)) / a
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    result = d
    for m in range(1, 1_000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for step in (even, odd):
            d = 1 / (1 + step * d)
            c = 1 + step / c
            result *= c * d
        if abs(c * d - 1) < 1e-13:
            break
    return front * result
