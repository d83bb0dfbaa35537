"""The status of an endpoint at one moment: its clients, their runs, its limits. Pure values."""

from dataclasses import dataclass

from ..model.limits import Limits
from ..model.plan import Settings
from ..model.workload import Workload


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
    """An admitted client. Its `number` is never used again; `run` is None while it has none."""

    number: int
    address: str
    hostname: str | None
    since_ns: int
    run: RunStatus | None = None


@dataclass(frozen=True, slots=True)
class EndpointStatus:
    """Everything at `at_ns` of the endpoint's monotonic clock.

    `pending` is the number of connections that have not identified themselves yet.
    """

    at_ns: int
    clients: tuple[ClientStatus, ...]
    pending: int
    limits: Limits
    is_closed: bool = False
