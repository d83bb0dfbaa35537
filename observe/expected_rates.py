"""The interface of a connection's route, and the rate that it allows: as `check auto` selects a preset by it.

The remote interface is unknown, so the local one decides. An interface that reports no line rate, as of most
virtual machines, has no expected rate, unless the user gives its line rate.
"""

import socket
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from ..engine.host.nics.nic import read_nic
from ..engine.host.nics.nic_counters import read_nic_counts
from ..engine.host.sockets.socket_message import SocketAddress
from ..engine.model.counters.samples import NicCounts
from ..engine.model.directions import Direction
from ..engine.model.errors import LinkgaugeError
from ..engine.model.expected_rate import ExpectedRate
from ..engine.model.host_info import NicInfo
from ..engine.model.plan import Settings
from ..engine.results.rate_and_loss import bits_per_second
from ..presets.auto_select import PresetSelection, select_preset
from ..presets.catalog import Catalog
from ..presets.diagnosis.evidence import LinkEvidence, link_evidence
from ..presets.expectation import find_expectation
from ..presets.wire import Variant
from .observation import InterfaceRates

_FORGOTTEN_S: Final = 30.0  # a route may change
_MAX_ROUTES: Final = 2_000
_READS: Final = 50  # of routes for an observation: each takes a fifth of a millisecond


@dataclass(frozen=True, slots=True)
class RouteInfo:
    """The interface by which a connection's packets leave; None if it is unknown."""

    nic: NicInfo | None
    read_s: float


class ExpectedRates:
    """Finds interfaces and expected rates, and remembers them for a while.

    `line_rate_bit_s` replaces the rates that interfaces report.
    """

    def __init__(self, catalog: Catalog, line_rate_bit_s: int | None) -> None:
        self._catalog = catalog
        self._variant = Variant(line_rate_bit_s=line_rate_bit_s)
        self._routes: dict[tuple[str, str], RouteInfo] = {}
        self._selections: dict[NicInfo, PresetSelection | None] = {}
        self._left = _READS

    def begin(self) -> None:
        """Begin an observation: it may read a number of routes."""
        self._left = _READS
        if len(self._routes) > _MAX_ROUTES:
            self._routes.clear()

    def find_nic(self, local: SocketAddress, remote: SocketAddress) -> NicInfo | None:
        """Return the interface of a connection; None if it is unknown, or not read yet."""
        key, now_s = (local.host, remote.host), time.monotonic()
        route = self._routes.get(key)
        if (route is None or now_s - route.read_s > _FORGOTTEN_S) and self._left > 0:
            self._left -= 1
            nic = None
            with suppress(OSError, ValueError):
                nic = read_nic(local, remote)
            route = self._routes[key] = RouteInfo(nic, now_s)
        return None if route is None else route.nic

    def find_rate(self, nic: NicInfo | None, flow: Direction, ip_version: int) -> ExpectedRate | None:
        """Return the rate to expect of one direction; None if the interface does not tell."""
        selection = self._select(nic)
        if selection is None or selection.chosen is None:
            return None
        with suppress(LinkgaugeError):
            found = find_expectation(
                selection.preset, Settings(flow), variant=selection.variant, ip_version=ip_version
            )
            return found[flow]
        return None

    def find_link(self, nic: NicInfo | None, ip_version: int) -> LinkEvidence | None:
        """Return the nominal link of an interface, for the rules."""
        selection = self._select(nic)
        if selection is None or selection.chosen is None:
            return None
        return link_evidence(selection.preset, selection.variant.over_ip(ip_version))

    def _select(self, nic: NicInfo | None) -> PresetSelection | None:
        """Return the preset for an interface. This host's loopback has no line, and its rate is not judged."""
        if nic is None or nic.sort == "loopback":
            return None
        if nic not in self._selections:
            try:
                self._selections[nic] = select_preset(
                    self._catalog, nic, None, requested=self._variant, is_far_unknown=True
                )
            except LinkgaugeError:
                self._selections[nic] = None
        return self._selections[nic]


class InterfaceMeter:
    """The traffic of interfaces, from one observation to the next."""

    def __init__(self) -> None:
        self._counts: dict[str, tuple[NicCounts, int]] = {}

    def measure(self, nics: list[NicInfo], now_ns: int) -> tuple[InterfaceRates, ...]:
        """Return the rates of these interfaces since the last call; a new one has none yet."""
        before, self._counts = self._counts, {}
        rates: list[InterfaceRates] = []
        for nic in nics:
            counts = read_nic_counts(nic.name)
            if counts is None:
                continue
            self._counts[nic.name] = counts, now_ns
            if nic.name in before:
                then, then_ns = before[nic.name]
                out, in_ = (
                    bits_per_second(max(0, now - was), now_ns - then_ns) or 0.0
                    for now, was in (
                        (counts.sent_bytes, then.sent_bytes),
                        (counts.received_bytes, then.received_bytes),
                    )
                )
                rates.append(InterfaceRates(nic.name, out, in_, nic))
        return tuple(rates)


def ip_version_of(address: SocketAddress) -> int:
    """Return 4 or 6."""
    return 6 if ":" in address.host else 4


def resolve(host: str) -> list[str]:
    """Return the addresses of a host name or an address. Raises OSError."""
    found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]).partition("%")[0] for each in found))
