"""The events of a run as lines of a log: connections, changes, warnings and the end, each with its time."""

from collections import deque
from dataclasses import dataclass
from typing import Final, Literal

from ...engine.model.counters.session_counters import SocketInfo
from ...engine.model.directions import End
from ...engine.model.events import Changed, Ended, Event, Opened, PathTraced, Sampled, Started, Totals, Warned
from ...engine.model.plan import Plan, Settings
from . import numbers
from .iperf3 import host_text
from .observed import program_text
from .responsiveness import phase_change_text, phase_text, phases_text
from .summary import end_words

EventKind = Literal["start", "connection", "phase", "change", "warning", "end"]
_MAX_LINES: Final = 500


@dataclass(frozen=True, slots=True)
class EventLine:
    """A line of the log, with its time since the start of the run."""

    at_ns: int
    kind: EventKind
    text: str


class EventLines:
    """Collects the lines of one run. You must feed it every event, in order; `written` counts the lines."""

    def __init__(self) -> None:
        self.lines: deque[EventLine] = deque(maxlen=_MAX_LINES)
        self.written = 0
        self._at_ns = 0
        self._settings: Settings | None = None
        self._plan: Plan | None = None
        self._is_warmup = False
        self._opened: list[SocketInfo] = []

    def add_event(self, event: Event) -> None:
        """Add the lines of the run's next event."""
        if isinstance(event, Opened):
            self._opened.append(event.facts)
            return
        self._add_connections()
        match event:
            case Sampled():
                self._at_ns = max(self._at_ns, event.sample.elapsed_ns)
                if self._is_warmup and not event.warmup:
                    self._add("phase", "warm-up over, measuring")
                self._is_warmup = event.warmup
            case Started():
                self._start(event)
            case Changed():
                self._at_ns = max(self._at_ns, event.elapsed_ns)
                before, self._settings = self._settings or event.settings, event.settings
                self._change_settings(before, event.settings)
            case Totals():
                self._add("phase", f"{event.end.label} iperf3: its results have arrived")
            case PathTraced():
                self._add("phase", f"{event.trace.end.label}: the path's hops are known")
            case Warned():
                self._add("warning", numbers.sanitize(event.text))
            case Ended():
                self._add("end", end_words(event.end))

    def _start(self, event: Started) -> None:
        self._plan, self._settings = event.plan, event.plan.settings
        far = event.far
        if event.observed is not None:
            observed = event.observed
            who = numbers.sanitize(program_text(observed))
            self._add("start", f"observing {who}: {observed.local} to {observed.remote}")
            return
        self._add("connection", f"connected to {numbers.sanitize(far.hostname)}: {host_text(far)}")
        if event.plan.has_phases:
            self._add("start", f"started: {phases_text(event.plan)}")
            self._add("phase", f"phase {phase_text(event.plan, event.plan.settings.direction)}")
            return
        duration = numbers.duration(event.plan.duration_ns)
        self._add("start", f"started: {numbers.settings(event.plan.settings, event.plan.workload)}, {duration}")

    def _change_settings(self, before: Settings, after: Settings) -> None:
        if self._plan is not None and self._plan.has_phases:
            self._add("phase", phase_change_text(self._plan, before, after))
        else:
            self._add("change", f"changed to {numbers.settings_change(before, after)}")

    def _add_connections(self) -> None:
        """Add a line for each end with sessions opened since the last one: up to 128 are opened at once."""
        for end in End:
            opened = [facts for facts in self._opened if facts.end is end]
            if not opened:
                continue
            parts = [f"{end.label}: {numbers.sessions(len(opened))} connected"]
            parts += sorted({numbers.sanitize(facts.congestion) for facts in opened if facts.congestion})
            windows = [facts.window_granted_bytes for facts in opened if facts.window_granted_bytes is not None]
            if windows:
                parts.append(f"window{numbers.NBSP}{numbers.window(min(windows))}")
            self._add("connection", ", ".join(parts))
        self._opened.clear()

    def _add(self, kind: EventKind, text: str) -> None:
        self.lines.append(EventLine(self._at_ns, kind, text))
        self.written += 1
