"""The periods of a run, each sample's settings, and the end of each period's warm-up.

Pure. Both ends' clocks start within a round trip of each other, so one timeline serves both.

An automatic warm-up ends by MSER (White, 1997): cut off the beginning where the squared error of the mean of the
rest is least. MSER-5 applies it to means of five observations. An interval's rate is the mean of many packets
already, so here it is applied to each rate. A cut near the end means that the series still changes and more of it
is needed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from ..model.events import Changed, Expectation, Sampled, WarningText
from ..model.plan import SECOND_NS, Direction, Plan, Settings, sender_of
from ..model.samples import Sample

MIN_SETTLED_INTERVALS: Final = 7  # with fewer after the best cut, a steady rest may be chance
_MIN_REST: Final = 3  # two rates may be alike by chance


def warmup_length(rates: Sequence[float]) -> int:
    """Return the number of rates at the beginning that MSER cuts off."""
    count = len(rates)
    best, least = 0, float("inf")
    total = squares = 0.0
    # Backwards, so that each cut's sums are those of the cut before plus one rate. The newest rate is subtracted
    # from each, so that squares of large numbers lose less precision.
    for length in range(1, count + 1):
        rate = rates[count - length] - rates[-1]
        total += rate
        squares += rate * rate
        error = max(0.0, squares - total * total / length) / (length * length)
        if length >= _MIN_REST and error <= least:
            best, least = count - length, error
    return best


class WarmupDetector:
    """Detects when the rates of one direction have settled."""

    def __init__(self) -> None:
        self._rates: list[float] = []
        self.is_settled = False

    def feed(self, rate: float) -> bool:
        """Add an interval's rate; return whether the series has settled. Once settled, it stays so."""
        if not self.is_settled:
            self._rates.append(rate)
            settled = len(self._rates) - warmup_length(self._rates)
            # A series of zeros has not settled: the first bytes are still under way.
            self.is_settled = any(self._rates) and settled >= MIN_SETTLED_INTERVALS
        return self.is_settled


@dataclass(slots=True)
class _Period:
    """Settings from a moment on. It has settled at `settled_ns`, or earlier if all detectors agree."""

    at_ns: int
    settings: Settings
    settled_ns: int
    detectors: dict[Direction, WarmupDetector] = field(default_factory=dict[Direction, WarmupDetector])


class Timeline:
    """The settings of a run over its time, as the near end changes them."""

    def __init__(self, plan: Plan, expectation_for: Callable[[Settings], Expectation]) -> None:
        self._plan = plan
        self.expect = expectation_for
        self._periods = [self._make_period(0, plan.settings)]
        self._warnings: list[str] = []

    @property
    def settings(self) -> Settings:
        """The current settings."""
        return self._periods[-1].settings

    def change_settings(self, elapsed_ns: int, settings: Settings) -> Changed:
        """Begin a period with new settings and return its event."""
        self._periods.append(self._make_period(elapsed_ns, settings))
        return Changed(elapsed_ns, settings, self.expect(settings))

    def stamp(self, sample: Sample) -> Sampled:
        """Return the sample with the settings at its end; mark it as warm-up if any part of it is settling.

        A period settles for the plan's warm-up, or until its rates are stable if the plan asks for automatic
        warm-up. A sample with a change inside is warm-up too, because it belongs to neither setting.
        """
        start_ns, end_ns = sample.elapsed_ns - sample.interval_ns, sample.elapsed_ns
        period = self._periods[0]
        for later in self._periods[1:]:
            if later.at_ns >= end_ns:
                break
            period = later
        warmup = start_ns < period.settled_ns or (period.at_ns > 0 and start_ns < period.at_ns)
        if period.detectors and start_ns >= period.at_ns:
            self._detect_warmup(period, sample)
        return Sampled(sample, period.settings, warmup)

    def take_warnings(self) -> list[str]:
        """Return the warnings since the last call: one for each period whose rates did not settle."""
        warnings, self._warnings = self._warnings, []
        return warnings

    def _make_period(self, at_ns: int, settings: Settings) -> _Period:
        flows = settings.direction.flows if self._plan.warmup_auto else ()
        return _Period(
            at_ns, settings, at_ns + self._plan.effective_warmup_ns, {flow: WarmupDetector() for flow in flows}
        )

    def _detect_warmup(self, period: _Period, sample: Sample) -> None:
        """Feed the rates that a receiver counted to the detectors; end the warm-up once all have settled."""
        for flow, detector in period.detectors.items():
            if sender_of(flow, self._plan.workload) is not sample.end:
                detector.feed(sample.bytes_of(flow) / sample.interval_ns)
        if all(detector.is_settled for detector in period.detectors.values()):
            period.settled_ns = min(period.settled_ns, sample.elapsed_ns)
        elif sample.elapsed_ns < period.settled_ns:
            return
        else:
            seconds = self._plan.effective_warmup_ns / SECOND_NS
            self._warnings.append(WarningText.RATE_UNSETTLED.format(seconds=seconds))
        period.detectors.clear()
