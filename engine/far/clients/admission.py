"""Admission of clients and runs to an endpoint, by its limits.

It counts, and knows neither sockets nor clocks.
"""

import logging
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count

from ...model.directions import Direction, connects_back
from ...model.errors import LimitReached, PlanError, RequestDeclined
from ...model.limits import BURST_FACTOR, Limits, TokenBucket
from ...model.plan import MIB, SECOND_NS, Plan, Settings, format_size
from ...model.workload import Workload
from ...workers.core_assignment import check_cores, shares_cores
from ..datagram_limits import DatagramLimits
from ..memory_estimate import SessionWindows, count_connections, estimate_memory, merge_windows, windows_of
from .admitted_client import AdmittedClient
from .turns import Turn, Turns

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Grant:
    """An endpoint's grant for a run: its limits, and a turn, which the run gives back at its end.

    `reserve` reserves memory and samples for further sessions and windows, and raises LimitReached if they are too
    much.
    """

    limits: Limits
    turn: Turn
    reserve: Callable[[SessionWindows], None]


class Admission:
    """Counts the clients of an endpoint, in all and by `client_network`, and refuses those over a limit.

    `limits` may be replaced at any time. New limits apply to later clients and runs. `turns` has those of
    the tests.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.turns = Turns()
        self._close_reason: str | None = None
        self._clients: dict[int, AdmittedClient] = {}
        self._numbers = count(1)

    @property
    def admitted_clients(self) -> tuple[AdmittedClient, ...]:
        """The clients, in order of their admission."""
        return tuple(self._clients.values())

    @property
    def has_runs(self) -> bool:
        """Whether any client has a run."""
        return any(client.run is not None for client in self._clients.values())

    @property
    def carried_bit_s(self) -> int:
        """The rate of all current runs."""
        return sum(client.run.rate_bit_s for client in self._clients.values() if client.run is not None)

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._close_reason is not None

    def close(self, reason: str) -> None:
        """Refuse all later clients and runs with this reason, and those that wait for a turn."""
        _log.debug("admission is closed: %s", reason)
        self._close_reason = reason
        self.turns.close(reason)

    def check_address(self, address: str) -> None:
        """Raise AddressRefused if the lists of denied and allowed networks exclude an address."""
        self.limits.check_address(address)

    def awaited_connections(self, *, is_iperf3: bool = False) -> Counter[str]:
        """Return the number of data connections that the runs of each network (`client_network`) await.

        They come to one port: that of iperf3, or the endpoint's own.
        """
        awaited = Counter[str]()
        for client in self._clients.values():
            if client.run is not None and client.is_iperf3 == is_iperf3:
                awaited[client.network] += client.run.awaited_connections
        return awaited

    def _check_open(self) -> None:
        if self._close_reason is not None:
            raise RequestDeclined(self._close_reason)

    @contextmanager
    def admit(self, address: str, now_ns: int = 0, *, is_iperf3: bool = False) -> Generator[AdmittedClient]:
        """Admit a client while the block lasts; raise RequestDeclined if the endpoint is full or closed.

        Clients of iperf3 prove no key: they have places and memory of their own, as many as the others together.
        """
        self._check_open()
        if sum(other.is_iperf3 == is_iperf3 for other in self._clients.values()) >= self.limits.clients:
            raise LimitReached(
                "the endpoint serves its maximum of clients; try again later", "clients", self.limits.clients
            )
        client = AdmittedClient(next(self._numbers), address, now_ns, is_iperf3=is_iperf3)
        network, number = client.network, client.number
        if sum(client.has_share_with(other) for other in self._clients.values()) >= self.limits.clients_per_address:
            text = f"the endpoint serves its maximum of clients from {network}; try again later"
            raise LimitReached(text, "clients_per_address", self.limits.clients_per_address)
        self._clients[number] = client
        _log.debug("client %d of %s is admitted; %d clients", number, address or "stdin", len(self._clients))
        try:
            yield client
        finally:
            del self._clients[number]
            _log.debug("client %d has left; %d clients", number, len(self._clients))

    def check_plan(self, plan: Plan, carried_bit_s: int) -> None:
        """Raise RequestDeclined if a run exceeds a limit, by itself or together with the current runs.

        `carried_bit_s` is the rate of all current runs.
        """
        self._check_open()
        self.check_settings(plan.widest_settings)
        ConnectBackLimit(self.limits, plan.workload).check_settings(plan.settings)
        if not shares_cores(plan):  # otherwise a near end on this host has chosen them by itself
            try:
                check_cores(plan.far_cores, "far cores")
            except PlanError as error:
                raise RequestDeclined(f"--{error.field.replace(' ', '-')} {error.problem}") from error
        DatagramLimits(self.limits, plan.workload).check_plan(plan)
        self._check_sizes(plan)
        if carried_bit_s > self.limits.rate_bit_s:
            text = "the endpoint is busy with other tests; try again later"
            raise LimitReached(text, "rate_bit_s", self.limits.rate_bit_s)

    def _check_sizes(self, plan: Plan) -> None:
        limits = self.limits
        if plan.workers is not None and plan.workers > limits.workers:
            raise LimitReached(f"{plan.workers} worker processes are too many", "workers", limits.workers)
        if plan.block_bytes > limits.block_bytes:
            text = f"a block of {format_size(plan.block_bytes)} is too large"
            raise LimitReached(text, "block_bytes", limits.block_bytes)
        requests_bytes = plan.burst * plan.transaction_sizes[0]
        if requests_bytes > limits.request_bytes:
            text = f"{format_size(requests_bytes)} of requests in flight are too many"
            raise LimitReached(text, "request_bytes", limits.request_bytes)

    def grant(self, client: AdmittedClient, plan: Plan, turn: Turn) -> Grant:
        """Reserve for a run, as `reserve` does, and return its grant."""
        self.reserve(client, plan, windows_of(plan.widest_settings))
        return Grant(self.limits, turn, partial(self.reserve, client, plan))

    def reserve(self, client: AdmittedClient, plan: Plan, windows: SessionWindows) -> None:
        """Reserve what these sessions of a client's run and its earlier ones need, until the client leaves.

        Raises LimitReached if that is too much, for its address or together with all other runs.
        """
        limits = self.limits
        # Sessions of newer settings than a change's stay open: what was reserved for them stays as well.
        windows = merge_windows(client.windows, windows)
        memory_bytes = estimate_memory(plan, windows, limits.workers)
        others = [other for other in self._clients.values() if other is not client]
        same = [other for other in others if client.has_share_with(other)]
        if memory_bytes + sum(other.memory_bytes for other in same) > limits.client_memory_bytes:
            text = f"the test needs up to {memory_bytes // MIB} MiB of memory; give fewer sessions or smaller sizes"
            raise LimitReached(text, "client_memory_bytes", limits.client_memory_bytes)
        if memory_bytes + sum(other.memory_bytes for other in others) > limits.memory_bytes:
            text = f"the test needs up to {memory_bytes // MIB} MiB of memory; others use the rest, try again later"
            raise LimitReached(text, "memory_bytes", limits.memory_bytes)
        samples_s = -(-count_connections(plan, windows) * SECOND_NS // plan.interval_ns)
        for limit, sharers in (("client_samples_s", same), ("samples_s", others)):
            self._check_samples(limit, samples_s, sum(other.samples_s for other in sharers))
        client.windows, client.memory_bytes, client.samples_s = windows, memory_bytes, samples_s

    def _check_samples(self, limit: str, own_s: int, others_s: int) -> None:
        most_s: int = getattr(self.limits, limit)
        if own_s + others_s <= most_s:
            return
        remedy = "give a longer --interval or fewer sessions"
        if own_s <= most_s:
            remedy = f"other tests take {others_s}, try again later, or {remedy}"
        raise LimitReached(f"the test takes {own_s} samples a second; {remedy}", limit, most_s)

    def check_settings(self, settings: Settings) -> None:
        """Raise LimitReached if settings have more sessions than a run may have."""
        if settings.sessions > self.limits.sessions:
            raise LimitReached(f"{settings.sessions} sessions are too many", "sessions", self.limits.sessions)


class ConnectBackLimit:
    """The limit of one run's sessions that connect to a port which the client names (crr inwards)."""

    def __init__(self, limits: Limits, workload: Workload) -> None:
        self._rate_s = limits.connect_back
        self._workload = workload
        self._bucket: TokenBucket | None = None

    def check_settings(self, settings: Settings) -> None:
        """Raise LimitReached if settings need such sessions, and the limit allows none or not as many at once."""
        if not connects_back(self._workload, settings.direction):
            return
        if not self._rate_s:
            text = f"{self._workload} inwards needs a connection back to the client; give --direction out"
            raise LimitReached(text, "connect_back", self._rate_s)
        if settings.sessions > BURST_FACTOR * self._rate_s:
            text = f"{settings.sessions} sessions of {self._workload} inwards are too many at once"
            raise LimitReached(text, "connect_back", self._rate_s)

    def take(self, direction: Direction, now_ns: int) -> None:
        """Count a new session of a direction; raise LimitReached if it is one too many."""
        self.check_settings(Settings(direction, sessions=1))
        if not connects_back(self._workload, direction):
            return
        if self._bucket is None:
            self._bucket = TokenBucket(self._rate_s, now_ns)
        if not self._bucket.take(now_ns):
            text = f"too many new sessions of {self._workload} inwards in a second"
            raise LimitReached(text, "connect_back", self._rate_s)
