"""The rates and totals of an endpoint and its clients, computed from successive readings of its status. Pure.

Time comes with the readings. `None` is unknown: a rate takes two readings.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ...engine.far.status import ClientStatus, EndpointStatus, EndpointTotals, RunStatus
from ...engine.model.limits import Limits
from ...engine.model.plan import SECOND_NS

_WINDOW_NS: Final = SECOND_NS  # rates are means of the last second, because senders' counters jump
_MAX_RATES: Final = 600


@dataclass(frozen=True, slots=True)
class EndpointInfo:
    """The fixed properties of an endpoint: its address, its access policy and the command for clients."""

    hostname: str
    address: str
    access_policy: str
    command: str
    tls: str | None = None
    hint: str = ""
    can_reload: bool = False  # whether limits or a key can be read again from files
    is_loopback: bool = False  # whether only this host can connect
    iperf3: str | None = None  # where and for whom clients of iperf3 are served
    page: str | None = None  # the link to the page for browsers
    page_code: tuple[str, ...] = ()  # the same as lines of a QR code


@dataclass(frozen=True, slots=True)
class ClientReading:
    """A client with its run and rates; received and sent are seen from this end.

    `software` names the program of a client that is not linkgauge, `key_name` the key that it proved.
    """

    number: int
    address: str
    hostname: str | None
    connected_ns: int
    run: RunStatus | None = None
    received_bit_s: float | None = None
    sent_bit_s: float | None = None
    software: str | None = None
    key_name: str | None = None
    is_iperf3: bool = False


@dataclass(frozen=True, slots=True)
class Totals:
    """The totals so far: accepted clients, refused or dropped ones, ended runs, and payload bytes."""

    clients: int = 0
    refused: int = 0
    runs: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class EndpointSnapshot:
    """The screen's values at one moment; `received_rates` and `sent_rates` end with the newest second."""

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
    drain_left_ns: int | None = None  # until active runs are ended; None while the endpoint is open

    @property
    def runs(self) -> int:
        """The number of active runs."""
        return sum(client.run is not None for client in self.clients)


class EndpointRates:
    """Computes rates from status readings. You must pass every reading to `update`, in order."""

    def __init__(self, info: EndpointInfo) -> None:
        self._info = info
        self._recent: deque[EndpointStatus] = deque()
        self._start_ns: int | None = None
        self._last_rate_ns = 0
        self._closed_ns = 0
        self._received: deque[float] = deque(maxlen=_MAX_RATES)
        self._sent: deque[float] = deque(maxlen=_MAX_RATES)

    def update(self, now: EndpointStatus) -> EndpointSnapshot:
        """Add a reading; return the screen's values."""
        if self._start_ns is None:
            self._start_ns = self._last_rate_ns = now.at_ns
        while len(self._recent) > 1 and now.at_ns - self._recent[1].at_ns >= _WINDOW_NS:
            self._recent.popleft()
        clients = tuple(self._reading(client, now.at_ns) for client in now.clients)
        self._recent.append(now)
        received = sum(client.received_bit_s or 0.0 for client in clients)
        sent = sum(client.sent_bit_s or 0.0 for client in clients)
        if now.at_ns - self._last_rate_ns >= SECOND_NS:
            self._last_rate_ns += SECOND_NS * ((now.at_ns - self._last_rate_ns) // SECOND_NS)
            self._received.append(received)
            self._sent.append(sent)
        runs = [client.run for client in now.clients if client.run is not None]
        active_bytes = sum(run.received_bytes + run.sent_bytes for run in runs)
        return EndpointSnapshot(
            self._info,
            now.at_ns - self._start_ns,
            clients,
            received,
            sent,
            tuple(self._received),
            tuple(self._sent),
            now.pending,
            now.limits,
            _add_up(now.totals, active_bytes),
            self._left_ns(now),
        )

    def _left_ns(self, now: EndpointStatus) -> int | None:
        if not now.is_closed:
            return None
        self._closed_ns = self._closed_ns or now.at_ns
        return max(0, self._closed_ns + now.limits.drain_s * SECOND_NS - now.at_ns)

    def _reading(self, client: ClientStatus, at_ns: int) -> ClientReading:
        reading = ClientReading(
            client.number,
            client.address,
            client.hostname,
            at_ns - client.since_ns,
            client.run,
            software=client.software,
            key_name=client.key_name,
            is_iperf3=client.is_iperf3,
        )
        for then in self._recent:
            before = next((other.run for other in then.clients if other.number == client.number), None)
            if before is not None and client.run is not None and at_ns > then.at_ns:
                span_s = (at_ns - then.at_ns) / SECOND_NS
                return replace(
                    reading,
                    received_bit_s=(client.run.received_bytes - before.received_bytes) * 8 / span_s,
                    sent_bit_s=(client.run.sent_bytes - before.sent_bytes) * 8 / span_s,
                )
        return reading


def _add_up(totals: EndpointTotals, active_bytes: int) -> Totals:
    return Totals(
        totals.clients,
        sum(totals.rejections.values()),
        sum(totals.runs.values()),
        totals.received_bytes + totals.sent_bytes + active_bytes,
    )
