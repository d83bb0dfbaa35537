"""Which settings a sample was taken under, and whether it belongs to a warm-up.

Pure. Both ends' clocks start within a round trip of each other, so one line of time serves both.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from ..model.events import Changed, Expectation, Sampled
from ..model.plan import SECOND_NS, Direction, Plan, Settings, sender_of
from ..model.samples import Sample
from .warmup import WarmupDetector


@dataclass(slots=True)
class _Leg:
    """Settings since a moment. It has settled at `settled_ns`, or earlier if all of its watches say so."""

    at_ns: int
    settings: Settings
    settled_ns: int
    watches: dict[Direction, WarmupDetector] = field(default_factory=dict[Direction, WarmupDetector])


class Timeline:
    """The settings of a run over its time, as the near end changes them."""

    def __init__(self, plan: Plan, expectation_for: Callable[[Settings], Expectation]) -> None:
        self._plan = plan
        self._expect = expectation_for
        self._legs = [self._leg(0, plan.settings)]
        self._unsettled: list[str] = []

    @property
    def settings(self) -> Settings:
        """The settings in force now."""
        return self._legs[-1].settings

    def change(self, elapsed_ns: int, settings: Settings) -> Changed:
        """Take in a change and return the event that says so."""
        self._legs.append(self._leg(elapsed_ns, settings))
        return Changed(elapsed_ns, settings, self._expect(settings))

    def stamp(self, sample: Sample) -> Sampled:
        """Return the sample with the settings at its end; warm-up where any part of it is settling.

        A fresh start or change settles for the plan's warm-up, or until its rates have settled where that is to
        be found out; a sample that a change falls into is settling too, for it belongs to neither setting.
        """
        start_ns, end_ns = sample.elapsed_ns - sample.interval_ns, sample.elapsed_ns
        leg = self._legs[0]
        for later in self._legs[1:]:
            if later.at_ns >= end_ns:
                break
            leg = later
        warmup = start_ns < leg.settled_ns or (leg.at_ns > 0 and start_ns < leg.at_ns)
        if leg.watches and start_ns >= leg.at_ns:
            self._watch(leg, sample)
        return Sampled(sample, leg.settings, warmup)

    def take_warnings(self) -> list[str]:
        """Return what there is to say since it was last asked for: a stretch whose rates would not settle."""
        told, self._unsettled = self._unsettled, []
        return told

    def _leg(self, at_ns: int, settings: Settings) -> _Leg:
        flows = settings.direction.flows if self._plan.warmup_auto else ()
        return _Leg(
            at_ns, settings, at_ns + self._plan.effective_warmup_ns, {flow: WarmupDetector() for flow in flows}
        )

    def _watch(self, leg: _Leg, sample: Sample) -> None:
        """Look whether the rates that a receiver counted have settled."""
        for flow, watch in leg.watches.items():
            if sender_of(flow, self._plan.workload) is not sample.end:
                carried = sum(session.bytes for session in sample.sessions if session.direction is flow)
                watch.feed(carried / sample.interval_ns)
        if all(watch.is_settled for watch in leg.watches.values()):
            leg.settled_ns = min(leg.settled_ns, sample.elapsed_ns)
        elif sample.elapsed_ns < leg.settled_ns:
            return
        else:
            waited = f"{self._plan.effective_warmup_ns / SECOND_NS:g} s after the settings came"
            self._unsettled.append(f"the rate had not settled {waited}; what follows is measured all the same")
        leg.watches.clear()
