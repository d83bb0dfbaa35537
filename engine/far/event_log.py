"""The event log of an endpoint, which remote ends cannot fill, and the counts of its events."""

import asyncio
import logging
import time
from collections import Counter
from typing import Final

from ..model.ip_address import client_network
from .status import EndpointTotals, LogEntry, LogSink

SUMMARY_INTERVAL_S: Final = 60.0
MAX_SOURCES: Final = 64
MAX_LINES: Final = 100
MAX_NETWORKS: Final = 1_024
# The noun for repeated events. Other events are logged one by one, within the budget of their network.
_REJECTIONS: Final = {
    "dropped": "connection",
    "refused": "connection",
    "not_accepted": "connection",
    "udp_dropped": "datagram",
}
_ONLY_COUNTED: Final = {"admitted", "probe"}  # a watch probes its peer once a minute
_LINE: Final = "line"
_log = logging.getLogger(__name__)


class EventCounts:
    """Counts the entries of an endpoint's log, each rejection of a stranger included.

    The keys are words of this program or names in the endpoint's key file, never of a client: a few dozen.
    """

    def __init__(self) -> None:
        self._events: Counter[str] = Counter()
        self._runs: Counter[str] = Counter()
        self._rejections: Counter[str] = Counter()
        self._bytes: Counter[str] = Counter()
        self._clients: Counter[str] = Counter()  # admitted, by the names of their keys

    def count_entry(self, entry: LogEntry) -> None:
        """Count an entry."""
        fields = entry.fields
        self._events[entry.event] += 1
        if entry.event in _REJECTIONS:
            unlimited = "declined" if entry.event == "refused" else entry.event
            self._rejections[str(fields.get("limit") or unlimited)] += 1
        elif entry.event == "admitted":
            self._clients[str(fields.get("key") or "")] += 1
        elif entry.event == "run_ended":
            self._runs[str(fields["reason"])] += 1
            for name in ("received_bytes", "sent_bytes"):
                count = fields.get(name)
                self._bytes[name] += count if isinstance(count, int) else 0

    def read(self) -> EndpointTotals:
        """Return the totals so far."""
        return EndpointTotals(
            self._events["admitted"],
            dict(self._runs),
            dict(self._rejections),
            **self._bytes,
            probes=self._events["probe"],
            clients_by_key=dict(self._clients),
        )


class EventLog:
    """Passes entries on. Of a remote end's entries it only counts those that repeat or are too many.

    A network that counts as one client has `MAX_LINES` lines a minute. The line of a run's beginning takes the room
    of its end too, so that no run seems to go on. The first rejection for a reason is logged at once, and a line a
    minute has the number of the others. Rejections beyond `MAX_SOURCES` addresses and reasons in a minute
    are counted together, and so are lines beyond `MAX_NETWORKS`. The debug log has each.
    """

    def __init__(self, sink: LogSink, interval_s: float = SUMMARY_INTERVAL_S) -> None:
        self.counts = EventCounts()
        self._sink = sink
        self._interval_s = interval_s
        # The repetitions of each logged rejection, by event, client and text.
        self._repeated: dict[tuple[str, str, str], int] = {}
        self._lines: Counter[str] = Counter()  # of each network since the last summary
        self._ends: Counter[str] = Counter()  # of each client: lines that are kept for the ends of its runs
        self._left_out: Counter[str] = Counter()
        self._others: Counter[str] = Counter()
        self._since = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_counting(self) -> bool:
        """Whether a summary is to come."""
        return self._timer is not None

    def log_entry(self, entry: str) -> None:
        """Log an entry, or count it."""
        if not isinstance(entry, LogEntry):
            self._sink(entry)
            return
        self.counts.count_entry(entry)
        client = str(entry.fields.get("client") or "")
        if entry.event in _ONLY_COUNTED:
            _log.debug("%s", entry)
        elif client or entry.event in _REJECTIONS:
            _log.debug("%s", entry)
            self._start_timer()
            self._add_remote(entry, client)
        else:
            self._sink(entry)

    def _add_remote(self, entry: LogEntry, client: str) -> None:
        """Log an entry that a remote end has caused, or count it."""
        is_rejection = entry.event in _REJECTIONS
        source = (entry.event, client, str(entry.fields["text"]))
        if is_rejection and source in self._repeated:
            self._repeated[source] += 1
        elif is_rejection and len(self._repeated) >= MAX_SOURCES:
            self._others[entry.event] += 1
        elif entry.event == "run_ended":
            self._add_end(entry, client)
        elif self._has_room(client_network(client), 2 if entry.event == "run_began" else 1):
            if is_rejection:
                self._repeated[source] = 0
            elif entry.event == "run_began":
                self._ends[client] += 1
            self._sink(entry)

    def _add_end(self, entry: LogEntry, client: str) -> None:
        """Log the end of a run if its beginning was logged."""
        if self._ends[client]:
            self._ends[client] -= 1
            self._ends += Counter()  # drops the clients without a run
            self._sink(entry)
        else:
            self._leave_out(client_network(client))

    def _leave_out(self, network: str) -> None:
        if network in self._lines or len(self._lines) < MAX_NETWORKS:
            self._left_out[network] += 1
        else:
            self._others[_LINE] += 1

    def _has_room(self, network: str, lines: int) -> bool:
        """Return whether a network has lines left, and take them; otherwise count one line as left out."""
        is_known = network in self._lines or len(self._lines) < MAX_NETWORKS
        if not is_known or self._lines[network] + lines > MAX_LINES:
            self._leave_out(network)
            return False
        self._lines[network] += lines
        return True

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
        """Log the numbers of entries that repeated or were left out, and forget all others."""
        self._timer = None
        seconds = max(1, round(time.monotonic() - self._since))
        counts = {source: count for source, count in self._repeated.items() if count}
        for (event, client, text), count in counts.items():
            self._sink(
                _summary(event, f"{text}: {_count_more(event, count)} in {seconds} s", client, count, seconds)
            )
        for network, count in self._left_out.items():
            text = f"{_count_more(_LINE, count)} in {seconds} s, over its {MAX_LINES} a minute"
            self._sink(_summary(_LINE, text, network, count, seconds))
        for event, count in self._others.items():
            text = f"{_count_more(event, count)} from other addresses"
            if event in _REJECTIONS:
                text = f"rejected: {text} or for other reasons"
            self._sink(_summary(event, f"{text} in {seconds} s", None, count, seconds))
        for counter in (self._lines, self._left_out, self._others):
            counter.clear()
        self._repeated = dict.fromkeys(counts, 0)
        if counts:
            self._start_timer()


def _count_more(event: str, count: int) -> str:
    return f"{count} more {_REJECTIONS.get(event, event)}{'' if count == 1 else 's'}"


def _summary(event: str, text: str, client: str | None, count: int, seconds: int) -> LogEntry:
    if event == _LINE:
        return LogEntry("left_out", text, client=client, lines=count, seconds=seconds)
    return LogEntry(event, text, client=client or None, connections=count, seconds=seconds)
