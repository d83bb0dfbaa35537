"""The limits of an endpoint: their table, how they are read, and a token bucket for rates.

Pure. Every limit has a value; an operator changes one by its name, on the command line or in a TOML file.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from decimal import Decimal
from functools import cache
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Any, Final, Literal, Self, cast

from .errors import AddressRefused, InvalidLimitError, make_printable
from .ip_address import parse_ip_address
from .plan import (
    MAX_BLOCK_BYTES,
    MAX_REQUEST_BYTES,
    MAX_SESSIONS,
    MAX_WORKERS,
    MIB,
    MIN_INTERVAL_NS,
    SECOND_NS,
)
from .serialization import read_toml

Network = IPv4Network | IPv6Network
LimitUnit = Literal["", "s", "bytes", "bit/s", "per second", "networks"]

_TOML_LINE: Final = re.compile(r"line (\d+)")
_WHOLE: Final = re.compile(r"\d{1,15}", re.ASCII)
_SCALED: Final = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)\s*([kmgt]?)(?:b(?:it)?(?:/s|ps)?)?", re.ASCII | re.IGNORECASE)
_SIZE: Final = re.compile(r"(\d{1,9})\s*([kmgt])(?:i?b)?", re.ASCII | re.IGNORECASE)
_BYTES: Final = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}
_WORKERS: Final = min(MAX_WORKERS, max(4, os.cpu_count() or 1))  # bulk payload has four even on one core
_MAX_BYTES: Final = 1 << 44
_MAPPED_PREFIX_BITS: Final = 96  # ::ffff:0:0/96 (RFC 4291, section 2.5.5.2)
_MOST_SAMPLES_S: Final = 2 * MAX_SESSIONS * SECOND_NS // MIN_INTERVAL_NS  # of one run
_BIT_S: Final = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}


def _default_memory_bytes() -> int:
    """Return half of this host's memory, between 256 MiB and 4 GiB; 1 GiB if it is unknown."""
    try:
        host_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 1 << 30
    return min(4 << 30, max(256 << 20, host_bytes // 2))


_MEMORY_BYTES: Final = _default_memory_bytes()


@dataclass(frozen=True, slots=True)
class LimitRule:
    """The rule of a limit: its unit, its range, and a description for the user."""

    unit: LimitUnit
    low: int
    high: int
    description: str


def _limit(default: int, unit: LimitUnit, low: int, high: int, about: str) -> Any:
    return field(default=default, metadata={"rule": LimitRule(unit, low, high, about)})


def _networks(about: str) -> Any:
    return field(default=(), metadata={"rule": LimitRule("networks", 0, 0, about)})


# A table: each field is a limit that an operator sets by its name.
@dataclass(frozen=True, slots=True)
class Limits:
    """Everything that an endpoint limits."""

    clients: int = _limit(64, "", 1, 4_096, "clients that are connected at once; as many of iperf3")
    clients_per_address: int = _limit(16, "", 1, 4_096, "of these, from one address (IPv6: one /64 network)")
    pending: int = _limit(
        512,
        "",
        16,
        65_536,
        "connections that have not identified themselves; the oldest make room",
    )
    sessions: int = _limit(MAX_SESSIONS, "", 1, MAX_SESSIONS, "sessions of a run in each direction")
    workers: int = _limit(_WORKERS, "", 1, MAX_WORKERS, "worker processes of a run; as many as cores, at least 4")
    block_bytes: int = _limit(MAX_BLOCK_BYTES, "bytes", 64, MAX_BLOCK_BYTES, "largest block of payload")
    request_bytes: int = _limit(
        MAX_REQUEST_BYTES, "bytes", 64, MAX_REQUEST_BYTES, "all requests in flight on a connection"
    )
    memory_bytes: int = _limit(
        _MEMORY_BYTES, "bytes", 64 * MIB, _MAX_BYTES, "memory of all runs, as estimated before they start"
    )
    client_memory_bytes: int = _limit(
        _MEMORY_BYTES // 4, "bytes", 32 * MIB, _MAX_BYTES, "of this, for the runs of one address"
    )
    samples_s: int = _limit(
        10_000, "per second", 100, 10**6, "samples of all runs, one for each session and interval"
    )
    client_samples_s: int = _limit(
        _MOST_SAMPLES_S, "per second", 100, 10**6, "of this, for the runs of one address"
    )
    duration_s: int = _limit(14_400, "s", 1, 86_400, "longest run; a run without an end stops then")
    rate_bit_s: int = _limit(
        400 * 10**9, "bit/s", 10**6, 10**15, "no new run while the current runs together carry more than this"
    )
    udp_rate_bit_s: int = _limit(
        400 * 10**9, "bit/s", 1_000, 10**15, "UDP payload of a run in one direction; senders here stay below it"
    )
    udp_packets_s: int = _limit(
        100_000_000, "per second", 1, 10**9, "datagrams of a run in one direction, in the same way"
    )
    udp_duration_s: int = _limit(3_600, "s", 1, 86_400, "longest run of UDP, where duration_s allows it")
    handshake_s: int = _limit(5, "s", 1, 60, "time for a new connection to identify itself and to prove the key")
    idle_s: int = _limit(60, "s", 1, 3_600, "time for a connected client to start a run")
    message_bytes: int = _limit(16_384, "bytes", 4_096, 16_384, "longest message of a client")
    messages_s: int = _limit(100, "per second", 10, 10_000, "messages of a client; bursts may be twice as large")
    connect_back: int = _limit(
        500,
        "per second",
        0,
        10_000,
        "new sessions of crr inwards, each with connections to the client; 0: none",
    )
    drain_s: int = _limit(30, "s", 0, 3_600, "time for running tests to finish when the endpoint stops")
    allow: tuple[str, ...] = _networks("serve only addresses in these networks; none means all")
    deny: tuple[str, ...] = _networks("never serve addresses in these networks, even if allowed")

    def __post_init__(self) -> None:
        """Refuse a value that a limit cannot have."""
        for name, rule in limit_rules().items():
            value = getattr(self, name)
            if rule.unit == "networks":
                for text in value:
                    parse_network(name, text)
            elif not rule.low <= value <= rule.high:
                raise InvalidLimitError(f"limit {name}={str(value)[:40]}: give {rule.low} to {rule.high}")

    def with_changes(self, changes: Mapping[str, object]) -> Self:
        """Return these limits with changes by name, as read from a file or typed."""
        return replace(self, **{name: _read(name, value) for name, value in changes.items()})

    def check_address(self, address: str) -> None:
        """Raise AddressRefused if the lists of denied and allowed networks exclude an address."""
        if is_in_networks(address, self.deny):
            raise AddressRefused(address, "deny", self.deny)
        if self.allow and not is_in_networks(address, self.allow):
            raise AddressRefused(address, "allow", self.allow)

    def values(self) -> dict[str, int | list[str]]:
        """Return every limit's value by its name."""
        values: dict[str, int | list[str]] = {}
        for name in limit_rules():
            value: int | tuple[str, ...] = getattr(self, name)
            values[name] = list(value) if isinstance(value, tuple) else value
        return values

    @classmethod
    def widest(cls) -> Self:
        """Return the limits of a far end with a single user: the widest values, and the default deadlines."""
        deadlines = {"pending", "handshake_s", "idle_s", "drain_s"}
        wide: dict[str, object] = {
            name: rule.high
            for name, rule in limit_rules().items()
            if rule.unit != "networks" and name not in deadlines
        }
        return cls().with_changes(wide)

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """Read a file of limits, `NAME = VALUE` each; all others have their defaults."""
        try:
            content = read_toml(text)
        except (ValueError, RecursionError) as error:  # TOMLDecodeError, too many digits, nesting without end
            line = _TOML_LINE.search(str(error))
            number = line[1] if line else text.rstrip().count("\n") + 1
            raise InvalidLimitError(
                f"line {number} is not TOML: write NAME = VALUE, such as clients = 8"
            ) from error
        return cls().with_changes(content)


def limit_rules() -> dict[str, LimitRule]:
    """Return every limit's rule by its name, in the order of display."""
    return {each.name: each.metadata["rule"] for each in fields(Limits)}


def parse_network(name: str, text: str) -> Network:
    """Read a network of either family, or a single address. IPv4 written as IPv6 counts as IPv4."""
    try:
        return _network(text)
    except ValueError as error:
        raise InvalidLimitError(
            f"limit {name}={make_printable(text[:60])}: give networks such as 192.0.2.0/24 or 2001:db8::/32"
        ) from error


def is_in_networks(address: str, networks: tuple[str, ...]) -> bool:
    """Return whether an address is in any of the networks. IPv4 written as IPv6 counts as IPv4."""
    parsed = parse_ip_address(address)
    return any(parsed in _network(network) for network in networks)


@cache
def _network(text: str) -> Network:
    network = ip_network(text, strict=False)
    mapped = network.network_address.ipv4_mapped if isinstance(network, IPv6Network) else None
    if mapped is None or network.prefixlen < _MAPPED_PREFIX_BITS:
        return network
    return IPv4Network((mapped, network.prefixlen - _MAPPED_PREFIX_BITS))


def _read(name: str, value: object) -> int | tuple[str, ...]:
    rule = limit_rules().get(name)
    if rule is None:
        raise InvalidLimitError(
            f"limit {make_printable(name[:40])}: unknown; give one of {', '.join(limit_rules())}"
        )
    if rule.unit == "networks":
        return _read_networks(name, value)
    number = value if isinstance(value, int) and not isinstance(value, bool) else None
    if isinstance(value, str):
        number = _read_number(value, rule.unit)
    if number is None:
        text = str(value).lower() if isinstance(value, bool) else str(value)
        example = " such as 10G" if rule.unit == "bit/s" else f" from {rule.low} to {rule.high}"
        raise InvalidLimitError(f"limit {name}={make_printable(text[:40])}: give a number{example}")
    return number


def _read_networks(name: str, value: object) -> tuple[str, ...]:
    texts = value.split(",") if isinstance(value, str) else value
    if not isinstance(texts, list | tuple):
        raise InvalidLimitError(f"limit {name}: give networks such as 192.0.2.0/24")
    items = [str(text).strip() for text in cast("list[object]", texts)]
    if items and not any(items):  # a variable that is not set: no list at all would serve everybody
        raise InvalidLimitError(f"limit {name} is empty: give networks such as 192.0.2.0/24, or leave it out")
    return tuple(str(parse_network(name, text)) for text in items if text)


def _read_number(text: str, unit: LimitUnit) -> int | None:
    if unit == "bit/s" and (match := _SCALED.fullmatch(text.strip())):
        return int(Decimal(match[1]) * _BIT_S[match[2].lower()])
    if unit == "bytes" and (match := _SIZE.fullmatch(text.strip())):
        return int(match[1]) * _BYTES[match[2].lower()]
    return int(text) if _WHOLE.fullmatch(text.strip()) else None


BURST_FACTOR: Final = 2


class TokenBucket:
    """A rate limit, with bursts of twice the rate after a pause. Time is an argument."""

    __slots__ = ("_left", "_rate_s", "_then_ns")

    def __init__(self, rate_s: int, now_ns: int) -> None:
        self._rate_s = rate_s
        self._left = float(BURST_FACTOR * rate_s)
        self._then_ns = now_ns

    def take(self, now_ns: int) -> bool:
        """Take a token; return whether there was any."""
        self._left = min(BURST_FACTOR * self._rate_s, self._left + (now_ns - self._then_ns) * self._rate_s / 1e9)
        self._then_ns = now_ns
        if self._left < 1:
            return False
        self._left -= 1
        return True
