"""What an endpoint does at one moment, as values: without a session, a socket or a clock in them. Pure."""

from dataclasses import dataclass

from ..model.limits import Limits
from ..model.plan import Settings
from ..model.workload import Workload


@dataclass(frozen=True, slots=True)
class RunStatus:
    """A run that goes on. Bytes are payload as this end counts it; a duration of None has no end."""

    workload: Workload
    settings: Settings
    duration_ns: int | None
    elapsed_ns: int
    received_bytes: int
    sent_bytes: int


@dataclass(frozen=True, slots=True)
class ClientStatus:
    """A client that was let in: `number` is never another's. It has a run, or has not asked for one."""

    number: int
    address: str
    hostname: str | None
    since_ns: int
    run: RunStatus | None = None


@dataclass(frozen=True, slots=True)
class EndpointStatus:
    """Everything at `at_ns` of the endpoint's monotonic clock; `pending` have not said yet who they are."""

    at_ns: int
    clients: tuple[ClientStatus, ...]
    pending: int
    limits: Limits
    is_closed: bool = False
