"""The options of an endpoint that serves iperf3, and the events of a test for the server's output."""

import socket
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from ...far.clients.turns import OtherTestsReader
from ...metering.sampler import Sampler
from ...metering.shared_counters import SharedCounters
from ...model.counters.samples import Sample
from ...model.counters.session_counters import SocketInfo
from ...model.directions import Direction, End
from ...model.events import Ended, Event, Opened, Sampled, Started, Totals, Warned
from ...model.expected_rate import Expectation
from ...model.host_info import HostInfo
from ...model.ip_address import unmap_ip_address
from ...model.peer import IPERF3_SCHEME
from ...model.plan import MAX_BYTES_LIMIT, Plan
from ...model.run_end import Reason, RunEnd
from ...model.texts.warning_text import WarningKind
from ...protocol.other_tests_warning import OtherTestsWatch
from ..protocol.users import UserList
from .requests import TestRequest

ServerOutput = str | dict[str, Any]
"""The output of the server: lines of text, or a document of JSON."""

TakeEvent = Callable[[Event], ServerOutput | None]
"""Takes the events of one test, with the client as its near end; returns the output of the server for `Ended`."""


class Observation:
    """The events of one test: call `begin` when payload flows, `sample`, then `make_output`."""

    def __init__(
        self, take: TakeEvent, request: TestRequest, counters: SharedCounters, others: OtherTestsReader
    ) -> None:
        self._take = take
        self._request = request
        self._others, self._watch = others, OtherTestsWatch()
        nic = None if request.far.nic is None else request.far.nic.name
        self._sampler = Sampler(End.FAR, _limited_plan(request), counters, nic)

    def begin(self, started_utc: str, local_address: tuple[str | int, ...], opened: Iterable[SocketInfo]) -> None:
        """Start the clock of the samples, and pass on the events before the first.

        Args:
            started_utc: The time of the start, ISO 8601.
            local_address: This end of the control connection; () if it is reset already.
            opened: The options that the kernel granted each stream.
        """
        self._sampler.start()
        self._take(self._make_started(started_utc, local_address))
        for info in opened:
            self._take(Opened(info))
        for caution in self._request.cautions:
            self._take(Warned(caution, WarningKind.OTHER))

    async def sample(self) -> None:
        """Pass a sample on each interval, until it is cancelled."""
        await self._sampler.run(self._take_sample, None)

    def make_output(self, totals: Totals) -> ServerOutput | None:
        """Pass on the last events, with the results of the client; return the output of the server."""
        sample = self._sampler.take_sample()
        if sample is not None:
            self._take_sample(sample)
        self._warn(self._watch.take_rest())
        self._take(totals)
        return self._take(Ended(RunEnd(Reason.COMPLETED, "")))

    def _make_started(self, started_utc: str, local_address: tuple[str | int, ...]) -> Started:
        request = self._request
        version = request.parameters.client_version
        near = HostInfo(
            hostname=request.client,
            system="unknown",
            cores=0,
            software=f"iperf3 {version}" if version else "iperf3",
            event_loop="unknown",
        )
        local = local_address or ("unknown", 0)
        host = unmap_ip_address(str(local[0]))
        peer = f"{IPERF3_SCHEME}{f'[{host}]' if ':' in host else host}:{local[1]}"
        ip_version = 6 if ":" in request.client else 4
        return Started(started_utc, peer, near, request.far, request.plan, Expectation(), None, ip_version)

    def _take_sample(self, sample: Sample) -> None:
        """Pass a sample on, and in the place of the client's own the bytes that it has acknowledged."""
        plan = self._request.plan
        sample = replace(sample, others=self._others.take())
        is_warmup = sample.elapsed_ns <= plan.effective_warmup_ns
        self._take(Sampled(sample, plan.settings, is_warmup))
        sent = tuple(session for session in sample.sessions if session.direction is Direction.IN)
        if sent:
            near = Sample(End.NEAR, sample.index, sample.elapsed_ns, sample.interval_ns, sent, is_from_sender=True)
            self._take(Sampled(near, plan.settings, is_warmup))
        self._warn(self._watch.take(sample))

    def _warn(self, text: str | None) -> None:
        if text is not None:
            self._take(Warned(text, WarningKind.OTHER))


def _limited_plan(request: TestRequest) -> Plan:
    """Return the plan of a test with the bytes that its client wants: the last sample of one may be short."""
    parameters = request.parameters
    limit = parameters.bytes_limit or parameters.block_limit * parameters.block_bytes
    if not limit or parameters.is_udp:
        return request.plan
    return replace(request.plan, bytes_limit=min(limit, MAX_BYTES_LIMIT))


@dataclass(frozen=True, slots=True)
class Iperf3Options:
    """The service of iperf3 clients: its own listening socket, and its demands.

    With `users` a client proves its user name and password. `observe` is called for each test whose client asks for
    the output of the server; without it there is none.
    """

    listener: socket.socket
    users: UserList | None = None
    observe: Callable[[], TakeEvent] | None = None
