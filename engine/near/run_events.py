"""The events of a run at the near end: each sample gets the settings of its time, and is queued for the reader.

Both ends' clocks start within a round trip of each other, so one timeline of settings serves both.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

from ..model.counters.samples import Sample
from ..model.directions import Direction, sender_of
from ..model.events import Changed, Event, Sampled, Started, Warned
from ..model.expected_rate import Expectation
from ..model.plan import SECOND_NS, Plan, Settings
from ..model.texts.warning_text import WarningKind, WarningText
from .warmup_detection import WarmupDetector

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Period:
    """Settings from `at_ns` on. Their rates have settled at `settled_ns`, or earlier if all detectors agree."""

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
        warm-up. A sample with a change inside is warm-up too, because it belongs to neither of the settings.
        """
        start_ns, end_ns = sample.elapsed_ns - sample.interval_ns, sample.elapsed_ns
        begun = (period for period in reversed(self._periods) if period.at_ns < end_ns)
        period = next(begun, self._periods[0])
        warmup = start_ns < period.settled_ns  # a change inside the sample is after its start
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
                detector.note_rate(sample.bytes_of(flow) / sample.interval_ns)
        if all(detector.is_settled for detector in period.detectors.values()):
            period.settled_ns = min(period.settled_ns, sample.elapsed_ns)
        elif sample.elapsed_ns < period.settled_ns:
            return
        else:
            seconds = self._plan.effective_warmup_ns / SECOND_NS
            self._warnings.append(WarningText.RATE_UNSETTLED.format(seconds=seconds))
        period.detectors.clear()


class RunEvents:
    """The events of a run in order, `Started` first. The run never waits for their reader."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._queue: asyncio.Queue[Event | None] = asyncio.Queue()
        self._early: list[Event] | None = []

    def put(self, event: Event) -> None:
        """Add an event; an early one is kept until the start."""
        if self._early is None:
            self._queue.put_nowait(event)
        else:
            self._early.append(event)

    def warn(self, text: str, kind: WarningKind = WarningKind.OTHER) -> None:
        """Add a warning."""
        _log.debug("warning: %s", text)
        self.put(Warned(text, kind))

    def add_sample(self, sample: Sample) -> Sampled:
        """Add a sample with its settings, then the warnings of its period; return the event of the sample."""
        sampled = self._timeline.stamp(sample)
        self.put(sampled)
        for text in self._timeline.take_warnings():
            self.warn(text)
        return sampled

    def start(self, started: Started) -> list[Event]:
        """Add the first event, and return those from before it."""
        early, self._early = self._early, None
        self._queue.put_nowait(started)
        return early or []

    def close(self) -> None:
        """End the iteration after the events so far."""
        self._queue.put_nowait(None)

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Yield every event, in order."""
        while (event := await self._queue.get()) is not None:
            yield event
