"""Which settings a sample was taken under, and whether it belongs to a warm-up.

Pure. Both ends' clocks start within a round trip of each other, so one line of time serves both.
"""

from collections.abc import Callable

from .plan import Plan, Settings
from .samples import Changed, Expectation, Sample, Sampled


class Timeline:
    """The settings of a run over its time, as the near end changes them."""

    def __init__(self, plan: Plan, expect: Callable[[Settings], Expectation]) -> None:
        self._settle_ns = plan.settle_ns
        self._expect = expect
        self._changes: list[tuple[int, Settings]] = [(0, plan.settings)]

    @property
    def settings(self) -> Settings:
        """The settings in force now."""
        return self._changes[-1][1]

    def change(self, elapsed_ns: int, settings: Settings) -> Changed:
        """Take in a change and return the event that says so."""
        self._changes.append((elapsed_ns, settings))
        return Changed(elapsed_ns, settings, self._expect(settings))

    def stamp(self, sample: Sample) -> Sampled:
        """Return the sample with the settings at its end; warm-up where any part of it is settling.

        A fresh start or change settles for the plan's warm-up; a sample that a change falls into is
        settling too, for it belongs to neither setting.
        """
        start_ns, end_ns = sample.elapsed_ns - sample.interval_ns, sample.elapsed_ns
        settings = self._changes[0][1]
        warmup = False
        for index, (at_ns, changed_to) in enumerate(self._changes):
            if at_ns >= end_ns and index:
                break
            settings = changed_to
            settled_ns = at_ns + self._settle_ns
            warmup = start_ns < settled_ns or (index > 0 and start_ns < at_ns)
        return Sampled(sample, settings, warmup)
