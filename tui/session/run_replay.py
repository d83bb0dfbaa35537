"""A run of the log up to a moment: its events, in order of time, through the meter that measured it."""

from collections.abc import Iterator

from ...engine.model.errors import RunLogError
from ...engine.model.events import Changed, Ended, Event, Opened, Sampled, Started
from ...engine.model.plan import Plan
from ...engine.model.run_end import STILL_RUNNING
from ...engine.model.texts.shell_commands import shell_command
from ...engine.results.meter import Meter
from ...engine.results.run_log import RunLog, RunRecord
from ...observe.sender_side import diagnose_observed
from ...presets.diagnosis.evidence import LinkEvidence
from ...presets.diagnosis.live import LiveDiagnosis
from ..readings.live_readings import LiveReadings
from ..words.redaction import REDACTION


class RunReplay:
    """The events of a stored run up to a moment, in its meter, readings and diagnosis.

    The events are read from the log as they are due. Each method that goes on raises RunLogError if the run is gone
    or damaged.

    Args:
        log: The run log.
        row: The run.
        link: The nominal link, for findings on the way.
    """

    def __init__(self, log: RunLog, row: RunRecord, link: LinkEvidence | None = None) -> None:
        self.row = row
        self._log = log
        self._link = link
        self._restart()

    @property
    def is_over(self) -> bool:
        """Whether the meter has all events."""
        return self._next is None

    @property
    def elapsed_ns(self) -> int:
        """The time of the newest event."""
        return self._elapsed_ns

    def go_to(self, moment_ns: int) -> None:
        """Have the events up to a moment of the run, also of one that is past: the run then begins again."""
        if moment_ns < self._elapsed_ns:
            self._restart()
        while self._next is not None and self._time_of(self._next) <= moment_ns:
            self._feed(self._next)

    def go_to_end(self) -> None:
        """Have all events; a run that is still running ends here."""
        while self._next is not None:
            self._feed(self._next)
        if self.row.is_running and not self.meter.has_ended:
            self.meter.feed(Ended(STILL_RUNNING))
        self.meter.flush()

    def _restart(self) -> None:
        self.meter = Meter(has_traces=True)
        self.readings = LiveReadings(Plan(), self.meter)
        self.diagnosis = LiveDiagnosis(self.meter, self._link, of_observed=diagnose_observed)
        self._elapsed_ns = 0
        self._events: Iterator[Event] = self._log.events(self.row.run_id)
        self._next = next(self._events, None)

    def _time_of(self, event: Event) -> int:
        """Return when an event came. A late sample came with the event before it."""
        match event:
            case Sampled():
                at_ns = event.sample.elapsed_ns
            case Changed():
                at_ns = event.elapsed_ns
            case _:
                at_ns = 0
        return max(self._elapsed_ns, at_ns)

    def _feed(self, event: Event) -> None:
        if self.meter.started is None and isinstance(event, Sampled | Changed | Opened):
            run_id = self.row.run_id
            remedy = shell_command("linkgauge", "runs", "delete", run_id)
            raise RunLogError(f"run {run_id} is damaged: its beginning is missing; `{remedy}` removes it")
        self._elapsed_ns = self._time_of(event)
        self.meter.feed(event)
        self.readings.log.add_event(event)
        if isinstance(event, Started):
            REDACTION.learn_run(event)
        self._next = next(self._events, None)
