"""An endpoint's status at one moment, and the entries of its log. Pure values."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Self

from ..model.errors import AddressRefused, LimitReached, LinkgaugeError, RequestDeclined, explain_os_error
from ..model.limits import Limits
from ..model.plan import Settings
from ..model.workload import Workload

LogValue = str | int | None


@dataclass(frozen=True, slots=True)
class RunStatus:
    """A current run. Bytes are payload as this end counts it; a duration of None has no end."""

    workload: Workload
    settings: Settings
    duration_ns: int | None
    elapsed_ns: int
    received_bytes: int
    sent_bytes: int


@dataclass(frozen=True, slots=True)
class ClientStatus:
    """An admitted client. Its `number` is never used again; `run` is None while it has none.

    `software` names a client that is not a linkgauge, such as `iperf3 3.12`. `key_name` is the
    name of the key that it proved, None without a name.
    """

    number: int
    address: str
    hostname: str | None
    since_ns: int
    run: RunStatus | None = None
    software: str | None = None
    key_name: str | None = None
    is_iperf3: bool = False


@dataclass(frozen=True, slots=True)
class EndpointTotals:
    """The totals of an endpoint since its start.

    Args:
        clients: the clients that were admitted.
        clients_by_key: these by the name of the key that they proved; "" for a key without a name, or none.
        runs: the runs that have ended, by the reason of their end (`Reason`).
        rejections: the connections and datagrams that were rejected, by the limit that they exceeded; `declined`
            for other requests that were refused, else the event: `dropped`, `not_accepted`, `udp_dropped`.
        received_bytes: the payload that ended runs received at this end.
        sent_bytes: the payload that they sent from it.
        probes: the runs that were prepared and ended without payload: those of a watch, or of a path's MTU.
    """

    clients: int = 0
    runs: Mapping[str, int] = field(default_factory=dict[str, int])
    rejections: Mapping[str, int] = field(default_factory=dict[str, int])
    received_bytes: int = 0
    sent_bytes: int = 0
    probes: int = 0
    clients_by_key: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class EndpointStatus:
    """Everything at `at_ns` of the endpoint's monotonic clock.

    `pending` is the number of connections that have not identified themselves yet. `key_names` are the names
    of the keys in force, "" among them for a key without a name.
    """

    at_ns: int
    clients: tuple[ClientStatus, ...]
    pending: int
    limits: Limits
    is_closed: bool = False
    totals: EndpointTotals = field(default_factory=EndpointTotals)
    key_names: tuple[str, ...] = ()


class LogEntry(str):
    """A line of an endpoint's log: the string is for the user, `event` and `fields` are for a program."""

    __slots__ = ("event", "fields")

    event: str
    fields: dict[str, LogValue]

    def __new__(cls, event: str, text: str, **fields: LogValue) -> Self:
        """Return an entry. The fields `client` and `key`, if any, are the prefix of its line."""
        client, key = fields.get("client"), fields.get("key")
        if client and key:
            client = f"{client} (key {key})"
        entry = super().__new__(cls, f"{client}: {text}" if client else text)
        entry.event = event
        entry.fields = {**fields, "text": text}
        return entry


def rejection(client: str | None, error: LinkgaugeError | OSError, key: str | None = None) -> LogEntry:
    """Return the entry for a connection that an error ends: `refused`, with the limit if any, or `dropped`.

    `key` is the name of the key that the client has proved.
    """
    if not isinstance(error, RequestDeclined):
        reason = explain_os_error(error) if isinstance(error, OSError) else str(error)
        return LogEntry("dropped", f"rejected: {reason}", client=client, key=key)
    text = error.operator_text if isinstance(error, AddressRefused) else str(error)
    limit = error.limit if isinstance(error, AddressRefused | LimitReached) else None
    return LogEntry("refused", f"rejected: {text}", client=client, key=key, limit=limit)


LogSink = Callable[[str], None]


def discard_log(_line: str) -> None:
    """Ignore a line."""
