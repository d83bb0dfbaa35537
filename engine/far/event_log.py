"""The event log of an endpoint: strangers who connect again and again cannot fill it. It counts what happens."""

import asyncio
import logging
import time
from collections import Counter
from typing import Final

from .status import EndpointTotals, LogEntry, LogSink

SUMMARY_INTERVAL_S: Final = 60.0
MAX_SOURCES: Final = 64
# What repeats of them are called. Of other events each is logged.
_REJECTIONS: Final = {
    "dropped": "connection",
    "refused": "connection",
    "not_accepted": "connection",
    "udp_dropped": "datagram",
}
_log = logging.getLogger(__name__)


class EventCounts:
    """Counts the entries of an endpoint's log, each rejection of a stranger included.

    The keys are words of this program, never of a client: there are a few dozen.
    """

    def __init__(self) -> None:
        self._clients = 0
        self._runs: Counter[str] = Counter()
        self._rejections: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()

    def add(self, entry: LogEntry) -> None:
        """Count an entry."""
        fields = entry.fields
        if entry.event == "client":
            self._clients += 1
        elif entry.event in _REJECTIONS:
            unlimited = "declined" if entry.event == "refused" else entry.event
            self._rejections[str(fields.get("limit") or unlimited)] += 1
        elif entry.event == "run_ended":
            self._runs[str(fields["reason"])] += 1
            for name in ("received_bytes", "sent_bytes"):
                count = fields.get(name)
                self._bytes[name] += count if isinstance(count, int) else 0

    def read(self) -> EndpointTotals:
        """Return the totals so far."""
        return EndpointTotals(self._clients, dict(self._runs), dict(self._rejections), **self._bytes)


class EventLog:
    """Passes entries on, and sums up rejections that repeat.

    The first rejection of an address for one reason is logged at once, the number of the others once a minute.
    Beyond `MAX_SOURCES` addresses and reasons in a minute, the others are counted together. The debug log has each.
    """

    def __init__(self, sink: LogSink, interval_s: float = SUMMARY_INTERVAL_S) -> None:
        self.counts = EventCounts()
        self._sink = sink
        self._interval_s = interval_s
        # How many more came than the one that was logged, by event, client and text.
        self._repeated: dict[tuple[str, str, str], int] = {}
        self._others: Counter[str] = Counter()
        self._since = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_counting(self) -> bool:
        """Whether a summary is to come."""
        return self._timer is not None

    def add(self, entry: str) -> None:
        """Log an entry, or count it."""
        if isinstance(entry, LogEntry):
            self.counts.add(entry)
        if not isinstance(entry, LogEntry) or entry.event not in _REJECTIONS:
            self._sink(entry)
            return
        _log.debug("%s", entry)
        self._start_timer()
        source = (entry.event, str(entry.fields.get("client") or ""), str(entry.fields["text"]))
        if source in self._repeated:
            self._repeated[source] += 1
        elif len(self._repeated) < MAX_SOURCES:
            self._repeated[source] = 0
            self._sink(entry)
        else:
            self._others[entry.event] += 1

    def close(self) -> None:
        """Log the numbers so far."""
        if self._timer is not None:
            self._timer.cancel()
            self._sum_up()
        if self._timer is not None:
            self._timer.cancel()

    def _start_timer(self) -> None:
        if self._timer is None:
            self._since = time.monotonic()
            self._timer = asyncio.get_running_loop().call_later(self._interval_s, self._sum_up)

    def _sum_up(self) -> None:
        """Log a line for each address and reason that repeated. Those that did not are forgotten."""
        self._timer = None
        seconds = max(1, round(time.monotonic() - self._since))
        counts = {source: count for source, count in self._repeated.items() if count}
        for (event, client, text), count in counts.items():
            self._sink(
                _summary(event, f"{text}: {_count_more(event, count)} in {seconds} s", client, count, seconds)
            )
        for event, count in self._others.items():
            text = f"rejected: {_count_more(event, count)} from other addresses or for other reasons in {seconds} s"
            self._sink(_summary(event, text, None, count, seconds))
        self._others.clear()
        self._repeated = dict.fromkeys(counts, 0)
        if counts:
            self._start_timer()


def _count_more(event: str, count: int) -> str:
    return f"{count} more {_REJECTIONS[event]}{'' if count == 1 else 's'}"


def _summary(event: str, text: str, client: str | None, count: int, seconds: int) -> LogEntry:
    return LogEntry(event, text, client=client or None, connections=count, seconds=seconds)
