"""Workloads and their registry, which the plan, the command line and the app read.

Pure. A workload is described here once: its sizes, which end waits for the other, and its options. The sessions of
its two ends are registered in engine/workloads/registry.py. The five that linkgauge has are class attributes
(`Workload.STREAM`). More come from modules named in the environment variable LINKGAUGE_WORKLOADS, separated by
commas: each calls `register_workload` and `register_sessions` when it is imported.
"""

import importlib
import os
import re
from enum import StrEnum
from typing import ClassVar, Final, Self

WORKLOADS_VARIABLE: Final = "LINKGAUGE_WORKLOADS"
MIN_DATAGRAM_BYTES: Final = 24  # the header of a payload datagram, protocol/payload_datagrams.py
MAX_DATAGRAM_BYTES: Final = 65_507  # 65,535 without the headers of IPv4 and UDP
_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,15}", re.ASCII)


class Mode(StrEnum):
    """How payload gets into the sender's kernel, and out of the receiver's.

    A stream has the first three. `copy` copies on both sides, as send(2) and recv(2) do. `sendfile` saves the
    sender's copy: the kernel takes the pages of a memory file. `discard` saves the receiver's: its kernel drops the
    payload (MSG_TRUNC, tcp(7)), so it measures the path, and not the rate at which an application could read.

    Datagrams have the other two. `rate` passes them to and from the kernel in groups (UDP_SEGMENT and UDP_GRO of
    udp(7)). `quality` passes each on its own, with the time at which the kernel received it.
    """

    COPY = "copy"
    SENDFILE = "sendfile"
    DISCARD = "discard"
    RATE = "rate"
    QUALITY = "quality"

    @property
    def is_for_datagrams(self) -> bool:
        """Whether it is a mode of datagrams rather than of a stream."""
        return self in {Mode.RATE, Mode.QUALITY}


# The traits are arguments by name: modules from outside (LINKGAUGE_WORKLOADS) give those that theirs has.
class Workload(str):
    """The name of a workload, with its properties for every part of linkgauge.

    It is a string so that JSON, CSV and sentences carry its name; there is one object for each name, so that `is`
    compares two.

    Args:
        name: As the user types it: small letters, digits and dashes.
        request_bytes: Size of a request; 0 if nothing is requested.
        response_bytes: Size of a response, which is the payload; 0 for a stream.
        is_bulk: Whether payload counts. Otherwise transactions do, each the work of one end at a time.
        min_request_bytes: The smallest request that can be chosen.
        allows_burst: Whether several requests can be in flight on one connection.
        opens_connections: Whether each transaction has a connection of its own, to a port of the responding end.
        is_datagram: Whether payload goes in UDP datagrams, which can be lost, rather than over TCP.
    """

    STREAM: ClassVar["Workload"]
    RR: ClassVar["Workload"]
    CRR: ClassVar["Workload"]
    FETCH: ClassVar["Workload"]
    UDP: ClassVar["Workload"]

    __slots__ = (
        "allows_burst",
        "is_bulk",
        "is_datagram",
        "min_request_bytes",
        "opens_connections",
        "transaction_sizes",
    )

    transaction_sizes: tuple[int, int]
    is_bulk: bool
    min_request_bytes: int
    allows_burst: bool
    opens_connections: bool
    is_datagram: bool

    def __new__(
        cls,
        name: str,
        *,
        request_bytes: int = 0,
        response_bytes: int = 0,
        is_bulk: bool = False,
        min_request_bytes: int = 1,
        allows_burst: bool = False,
        opens_connections: bool = False,
        is_datagram: bool = False,
    ) -> Self:
        """Return a workload that is not registered yet."""
        if _NAME.fullmatch(name) is None:
            raise ValueError(f"{name!r} is not the name of a workload: give small letters, digits and dashes")
        self = super().__new__(cls, name)
        self.transaction_sizes = (request_bytes, response_bytes)
        self.is_bulk = is_bulk
        self.min_request_bytes = min_request_bytes
        self.allows_burst = allows_burst
        self.opens_connections = opens_connections
        self.is_datagram = is_datagram
        return self

    @property
    def is_transactional(self) -> bool:
        """Whether it is made of transactions: a request and its response."""
        return self.transaction_sizes[1] > 0

    def __deepcopy__(self, _memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[object, ...]:
        return workload_named, (str(self),)


_registry: Final[dict[str, Workload]] = {}


def register_workload(workload: Workload) -> Workload:
    """Register a workload and return it; raise ValueError if its name is taken."""
    if workload in _registry:
        raise ValueError(f"there is a workload {workload} already")
    _registry[workload] = workload
    return workload


# Bytes of a request and of its response: as in the z/VM TCP/IP report.
Workload.STREAM = register_workload(Workload("stream", is_bulk=True))
Workload.RR = register_workload(Workload("rr", request_bytes=200, response_bytes=1_000, allows_burst=True))
# The first bytes of a request are the ticket of its session.
Workload.CRR = register_workload(
    Workload("crr", request_bytes=64, response_bytes=8_192, min_request_bytes=32, opens_connections=True)
)
Workload.FETCH = register_workload(Workload("fetch", request_bytes=20, response_bytes=20_000_000, is_bulk=True))
Workload.UDP = register_workload(Workload("udp", is_bulk=True, is_datagram=True))


def all_workloads() -> tuple[Workload, ...]:
    """Return every workload that is registered, those of LINKGAUGE_WORKLOADS included."""
    for module in filter(None, os.environ.get(WORKLOADS_VARIABLE, "").split(",")):
        importlib.import_module(module.strip())
    return tuple(_registry.values())


def workload_named(name: str) -> Workload:
    """Return the workload of a name; raise ValueError with a list of all if there is none."""
    if name not in _registry:
        known = ", ".join(all_workloads())
        if name not in _registry:
            raise ValueError(f"one of {known}")
    return _registry[name]
