"""Who is let in: an endpoint's limits, held against the clients and runs that it has.

Pure: it counts, and knows neither sockets nor clocks.
"""

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from itertools import count

from ..model.errors import LimitReached, RequestDeclined
from ..model.limits import Limits, is_in_networks
from ..model.plan import SECOND_NS, Plan, Settings
from .status import ClientStatus, RunStatus


class AdmittedClient:
    """A client that was let in; `look` says how its run is, while it has one."""

    def __init__(self, number: int, address: str, since_ns: int) -> None:
        self.address = address  # empty where it came by no network
        self._number, self._since_ns = number, since_ns
        self.hostname: str | None = None
        self.get_run_status: Callable[[], RunStatus] | None = None

    def get_status(self) -> ClientStatus:
        """Return what there is to say of it."""
        run = None if self.get_run_status is None else self.get_run_status()
        return ClientStatus(self._number, self.address, self.hostname, self._since_ns, run)


class Admission:
    """The clients of an endpoint, and how many there are of an address.

    `limits` may be changed at any time, for who comes then.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._closed: str | None = None
        self._clients: Counter[str] = Counter()
        self._guests: dict[int, AdmittedClient] = {}
        self._numbers = count(1)

    @property
    def client_count(self) -> int:
        """How many clients there are."""
        return len(self._guests)

    @property
    def admitted_clients(self) -> tuple[AdmittedClient, ...]:
        """The clients, in the order in which they came."""
        return tuple(self._guests.values())

    @property
    def is_closed(self) -> bool:
        """Whether nobody is let in any more."""
        return self._closed is not None

    def close(self, reason: str) -> None:
        """Let nobody in from here on."""
        self._closed = reason

    def check_address(self, address: str) -> None:
        """Raise LimitReached for an address that is not served."""
        if is_in_networks(address, self.limits.deny):
            raise LimitReached(f"{address} is not served", "deny", ", ".join(self.limits.deny))
        if self.limits.allow and not is_in_networks(address, self.limits.allow):
            raise LimitReached(f"{address} is not served", "allow", ", ".join(self.limits.allow))

    def _check_open(self) -> None:
        if self._closed is not None:
            raise RequestDeclined(self._closed)

    @contextmanager
    def admit(self, address: str, now_ns: int = 0) -> Generator[AdmittedClient]:
        """Count a client while the block lasts; raise LimitReached where there are too many."""
        self._check_open()
        if len(self._guests) >= self.limits.clients:
            raise LimitReached("the endpoint has as many clients as it takes", "clients", self.limits.clients)
        if self._clients[address] >= self.limits.clients_per_address:
            text = f"the endpoint has as many clients of {address} as it takes"
            raise LimitReached(text, "clients_per_address", self.limits.clients_per_address)
        self._clients[address] += 1
        number = next(self._numbers)
        guest = self._guests[number] = AdmittedClient(number, address, now_ns)
        try:
            yield guest
        finally:
            del self._guests[number]
            self._clients[address] -= 1
            if not self._clients[address]:
                del self._clients[address]

    def check_plan(self, plan: Plan, carried_bit_s: int) -> None:
        """Raise LimitReached for a run that is too much, alone or beside those that go on."""
        self._check_open()
        self.check_settings(plan.settings)
        limit_s = self.limits.duration_s
        if plan.duration_ns is not None and plan.duration_ns > limit_s * SECOND_NS:
            raise LimitReached(f"a run of {plan.duration_ns / SECOND_NS:g} s is too long", "duration_s", limit_s)
        if carried_bit_s > self.limits.rate_bit_s:
            text = f"the endpoint carries {carried_bit_s / 1e6:.0f} Mb/s already: try again when it carries less"
            raise LimitReached(text, "rate_bit_s", self.limits.rate_bit_s)

    def check_settings(self, settings: Settings) -> None:
        """Raise LimitReached for more sessions than a run may have."""
        if settings.sessions > self.limits.sessions:
            raise LimitReached(f"{settings.sessions} sessions are too many", "sessions", self.limits.sessions)
