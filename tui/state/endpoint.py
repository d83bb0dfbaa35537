"""From what an endpoint says of itself, reading by reading, to what its screen shows: rates, and what was so far.

Pure. Time comes with the readings. `None` is unknown: a rate takes two readings.
"""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

from ...engine.far.event_log import LogEntry
from ...engine.far.status import ClientStatus, EndpointStatus, RunStatus
from ...engine.model.limits import Limits
from ...engine.model.plan import SECOND_NS

_WINDOW_NS: Final = SECOND_NS  # a rate is that of the last second: counters of senders move by jumps
_KEPT_RATES: Final = 600
_KEPT_LINES: Final = 500


@dataclass(frozen=True, slots=True)
class EndpointInfo:
    """What stays as it is while an endpoint serves: where it listens, who may come, and how they come."""

    hostname: str
    address: str
    access_policy: str
    command: str
    tls: str | None = None
    hint: str = ""
    can_reload: bool = False  # limits, or a key, that can be read again


@dataclass(frozen=True, slots=True)
class ClientReading:
    """A client and what it carries; received and sent are this end's."""

    number: int
    address: str
    hostname: str | None
    connected_ns: int
    run: RunStatus | None = None
    received_bit_s: float | None = None
    sent_bit_s: float | None = None


@dataclass(frozen=True, slots=True)
class Totals:
    """What was until now: clients let in, those refused or dropped, runs that ended, and all payload."""

    clients: int = 0
    refused: int = 0
    runs: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class EndpointLogLine:
    """A line of the log: when, of what kind, and its text."""

    time: datetime
    event: str
    text: str


@dataclass(frozen=True, slots=True)
class EndpointSnapshot:
    """All that the screen shows at one moment; the newest second is the last of `received` and of `sent`."""

    info: EndpointInfo
    uptime_ns: int = 0
    clients: tuple[ClientReading, ...] = ()
    received_bit_s: float | None = None
    sent_bit_s: float | None = None
    received_rates: Sequence[float] = ()
    sent_rates: Sequence[float] = ()
    pending: int = 0
    limits: Limits = field(default_factory=Limits)
    totals: Totals = Totals()
    drain_left_ns: int | None = None  # until the runs that go on are ended; None while it is open

    @property
    def runs(self) -> int:
        """How many runs go on."""
        return sum(client.run is not None for client in self.clients)


class EndpointLog:
    """Keeps the last lines of an endpoint's log, and counts what they tell; `clock` says what time it is here."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.lines: deque[EndpointLogLine] = deque(maxlen=_KEPT_LINES)
        self.lines_written = 0
        self.totals = Totals()
        self._clock = clock

    def add(self, text: str) -> None:
        """Take a line in, as an endpoint's log."""
        event = text.event if isinstance(text, LogEntry) else "said"
        self.lines.append(EndpointLogLine(self._clock(), event, str(text)))
        self.lines_written += 1
        moved = text.fields.get("bytes") if isinstance(text, LogEntry) else None
        before = self.totals
        self.totals = Totals(
            before.clients + (event == "client"),
            before.refused + (event in {"refused", "dropped", "not_accepted"}),
            before.runs + (event == "run_ended"),
            before.bytes + (moved if isinstance(moved, int) else 0),
        )


class EndpointRates:
    """Makes rates out of readings: you must `take` each of them in its order."""

    def __init__(self, info: EndpointInfo) -> None:
        self._facts = info
        self._recent: deque[EndpointStatus] = deque()
        self._began_ns: int | None = None
        self._kept_ns = 0
        self._closed_ns = 0
        self._received: deque[float] = deque(maxlen=_KEPT_RATES)
        self._sent: deque[float] = deque(maxlen=_KEPT_RATES)

    def update(self, now: EndpointStatus, totals: Totals) -> EndpointSnapshot:
        """Return what is to be shown now."""
        if self._began_ns is None:
            self._began_ns = self._kept_ns = now.at_ns
        while len(self._recent) > 1 and now.at_ns - self._recent[1].at_ns >= _WINDOW_NS:
            self._recent.popleft()
        clients = tuple(self._reading(client, now.at_ns) for client in now.clients)
        self._recent.append(now)
        received = sum(client.received_bit_s or 0.0 for client in clients)
        sent = sum(client.sent_bit_s or 0.0 for client in clients)
        if now.at_ns - self._kept_ns >= SECOND_NS:
            self._kept_ns += SECOND_NS * ((now.at_ns - self._kept_ns) // SECOND_NS)
            self._received.append(received)
            self._sent.append(sent)
        carried = sum(one.run.received_bytes + one.run.sent_bytes for one in now.clients if one.run is not None)
        return EndpointSnapshot(
            self._facts,
            now.at_ns - self._began_ns,
            clients,
            received,
            sent,
            tuple(self._received),
            tuple(self._sent),
            now.pending,
            now.limits,
            replace(totals, bytes=totals.bytes + carried),
            self._left_ns(now),
        )

    def _left_ns(self, now: EndpointStatus) -> int | None:
        if not now.is_closed:
            return None
        self._closed_ns = self._closed_ns or now.at_ns
        return max(0, self._closed_ns + now.limits.drain_s * SECOND_NS - now.at_ns)

    def _reading(self, client: ClientStatus, at_ns: int) -> ClientReading:
        reading = ClientReading(client.number, client.address, client.hostname, at_ns - client.since_ns, client.run)
        for then in self._recent:
            before = next((one.run for one in then.clients if one.number == client.number), None)
            if before is not None and client.run is not None and at_ns > then.at_ns:
                span_s = (at_ns - then.at_ns) / SECOND_NS
                return replace(
                    reading,
                    received_bit_s=(client.run.received_bytes - before.received_bytes) * 8 / span_s,
                    sent_bit_s=(client.run.sent_bytes - before.sent_bytes) * 8 / span_s,
                )
        return reading
