"""Connections of other programs in the run log, while they are observed.

Each is an entry as a run has it, so that history, replay, comparison, report and export read it as they read a run.
It has the events of a run whose far end is unknown. It is written as it goes: if this process dies, what was
observed until then remains.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from ...engine.model.directions import Direction
from ...engine.model.events import Changed, Ended, Event, Sampled
from ...engine.model.run_end import EndText, Reason, RunEnd
from ...engine.results.meter import Meter
from ...engine.results.run_log import RunLog
from ...engine.results.run_result import ObservedFigures
from ...observe.observation import ConnectionEvents, ConnectionKey, Observation, ObservedConnection, Status
from ...presets.verdict import observed_verdict
from ..session.run_recorder import Outcome, new_id

MAX_RECORDS: Final = 256
"""So many connections are saved by one `ObservedRecords`; a busy server opens thousands an hour."""
_TURNED_AFTER: Final = 2  # observations with the other main direction
LEFT: Final = RunEnd(Reason.STOPPED, EndText.STOPPED_HERE.value)
"""The end of an entry that the user has ended, by a key or by leaving."""
_CONNECTION_ENDED: Final = RunEnd(Reason.COMPLETED, EndText.CONNECTION_ENDED.value)
NOT_JUDGED: Final = frozenset({Status.NEW, Status.IDLE, Status.ENDED})


class ObservedRecord:
    """A connection in the run log, from its first observation that has samples. `outcome` is None until it ends."""

    def __init__(self, log: RunLog, row: ObservedConnection, events: ConnectionEvents, label: str | None) -> None:
        self.run_id = new_id()
        self.outcome: Outcome | None = None
        self._log, self._label = log, label
        self._meter = Meter()
        self._direction = row.direction
        self._turned = 0  # observations in a row with the other main direction
        self._last = row
        first = events.samples[0].sample
        self._first_index, self._began_ns = first.index, first.elapsed_ns - first.interval_ns
        log.begin(self.run_id, "", events.started.peer, label)
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._append(replace(events.started, started_utc=now))
        self._append(events.opened)
        self.add(row)

    @property
    def row(self) -> ObservedConnection:
        """The connection as it was last judged."""
        return self._last

    def add(self, row: ObservedConnection) -> None:
        """Add an observation of the connection."""
        if row.status not in NOT_JUDGED or self._last.status in NOT_JUDGED:
            self._last = row
        events = row.events
        if events is None or not events.samples:
            return
        if not self._is_in_direction(row.direction, events):
            return
        for event in events.samples:
            self._append(self._moved(event))

    def finish(self, end: RunEnd) -> Outcome:
        """End the record, and return its outcome."""
        self._append(Ended(end))
        self._meter.flush()
        row, started = self._last, self._meter.started
        observed = None if started is None else started.observed
        self.outcome = Outcome.of(
            self._meter,
            observed_verdict(row.reason),
            row.findings,
            run_id=self.run_id,
            label=self._label,
            observed=None if observed is None else ObservedFigures.of(observed, row.status.value, row.reason),
        )
        self._log.finish(self.run_id, self.outcome.verdict.word, self.outcome.document)
        return self.outcome

    def _is_in_direction(self, direction: Direction, events: ConnectionEvents) -> bool:
        """Return whether the samples are of the recorded direction, after it has changed for good if it has."""
        if direction is self._direction:
            self._turned = 0
            return True
        self._turned += 1
        if self._turned < _TURNED_AFTER:
            return False
        self._direction, self._turned = direction, 0
        plan, expectation = events.started.plan, events.started.expectation
        self._append(Changed(self._meter.elapsed_ns, plan.settings, expectation))
        self._append(events.opened)
        return True

    def _moved(self, event: Sampled) -> Sampled:
        """Return a sample that counts from the start of the record."""
        sample = event.sample
        index, elapsed_ns = sample.index - self._first_index, sample.elapsed_ns - self._began_ns
        return replace(event, sample=replace(sample, index=index, elapsed_ns=elapsed_ns))

    def _append(self, event: Event) -> None:
        self._log.append_event(self.run_id, event)
        self._meter.feed(event)


class ObservedRecords:
    """The connections that are being saved, and the entries that have ended.

    Args:
        open_log: Opens the run log, for the first connection; returns None if it cannot be used.
        label: The user's name for each entry.
        saves_all: Save each connection that has a result, and not only those of `start`.
    """

    def __init__(
        self, open_log: Callable[[], RunLog | None], *, label: str | None = None, saves_all: bool = False
    ) -> None:
        self._open_log, self._label, self._saves_all = open_log, label, saves_all
        self._wanted: set[ConnectionKey] = set()
        self._active: dict[ConnectionKey, ObservedRecord] = {}
        self.ended: list[ObservedRecord] = []
        self.is_full = False

    @property
    def saved_keys(self) -> frozenset[ConnectionKey]:
        """The connections that are being saved, or will be as soon as they have a sample."""
        return frozenset({*self._wanted, *self._active})

    def start(self, row: ObservedConnection) -> bool:
        """Save a connection from its present interval on; return False if the run log cannot be used."""
        if self._open_log() is None:
            return False
        self._wanted.add(row.key)
        self._take_row(row)
        return True

    def stop(self, key: ConnectionKey) -> ObservedRecord | None:
        """End the record of a connection; return it, or None if nothing of it was saved."""
        self._wanted.discard(key)
        return self._end(key, LEFT)

    def take(self, observation: Observation) -> None:
        """Add an observation to the records, and end those of connections that have ended."""
        for row in observation.connections:
            self._take_row(row)
        seen = {row.key for row in observation.connections if row.status is not Status.ENDED}
        for key in [key for key in self._active if key not in seen]:
            self._end(key, _CONNECTION_ENDED)

    def end_all(self, end: RunEnd) -> None:
        """End all records."""
        self._wanted.clear()
        for key in list(self._active):
            self._end(key, end)

    def _take_row(self, row: ObservedConnection) -> None:
        record = self._active.get(row.key)
        if record is not None:
            record.add(row)
            return
        is_wanted = row.key in self._wanted or (self._saves_all and row.status not in NOT_JUDGED)
        if not is_wanted or row.events is None or not row.events.samples:
            return
        if len(self._active) + len(self.ended) >= MAX_RECORDS:
            self.is_full = True
            return
        log = self._open_log()
        if log is not None:
            self._wanted.discard(row.key)
            self._active[row.key] = ObservedRecord(log, row, row.events, self._label)

    def _end(self, key: ConnectionKey, end: RunEnd) -> ObservedRecord | None:
        record = self._active.pop(key, None)
        if record is not None:
            record.finish(end)
            self.ended.append(record)
        return record
