"""Traffic of other programs beside a test: which process exchanges how much with which host.

The counters of the interface tell whether more passes than the test carries. Only then the kernel is asked for its
sockets, at most once a second. What passes without a TCP connection of this namespace has no process here: UDP,
whose payload the kernel does not count, forwarded packets, and other network namespaces.

Not counted: sockets of this process and its descendants, and connections to the far end's address and port, which
a test may open and close faster than /proc tells their process.
"""

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from ...model.counters.samples import Sample
from ...model.directions import Direction, End, sender_of
from ...model.errors import LinkgaugeError
from ...model.plan import SECOND_NS
from ...model.texts.warning_text import WarningText, rate_text
from ...model.workload import Workload
from ..nics.nic import read_nic
from .sock_diag import SockDiag
from .socket_message import SocketAddress, SocketMessage
from .socket_owners import SocketOwner, SocketOwners, read_family_inodes, read_user_name
from .socket_table import Movement, SocketTable

_PAUSE_NS: Final = SECOND_NS
_WATCHED_NS: Final = 3 * SECOND_NS  # a mean of less time says little
_HEADERS: Final = 1.08  # bytes of the interface for each of payload, at MTU 1500
_ACKNOWLEDGEMENTS: Final = 0.1  # of the other direction's payload, at most
_SHARE: Final = 0.05  # of the interface's traffic: less is not worth a word
_QUIET_BIT_S: Final = 100_000  # control connection, ARP, names
_MOST_NAMED: Final = 3
_MOST_ROUTES: Final = 16  # each takes a fifth of a millisecond


class TrafficKey(NamedTuple):
    """One program's exchange with one host: `inode` 0 is a socket whose process has ended."""

    program: str
    host: str
    direction: Direction


@dataclass(slots=True)
class _Counted:
    """The payload of a connection since it was first seen beside the test."""

    message: SocketMessage
    bytes: dict[Direction, int] = field(default_factory=lambda: dict.fromkeys(Direction.DUPLEX.flows, 0))


class OtherTraffic:
    """Watches the interface of a test. `nic` is its name; None if it is unknown, or has no traffic of others.

    `far` is the far end's address. Call `follow` for each sample, and if it returns True `read` in a thread, one
    after the other.
    """

    def __init__(self, nic: str | None, far: SocketAddress, workload: Workload) -> None:
        self._nic, self._far, self._workload = nic, far, workload
        self._owners = SocketOwners()
        self._table = SocketTable()
        self._counted: dict[bytes, _Counted] = {}
        self._carried = dict.fromkeys(Direction.DUPLEX.flows, 0)
        self._carried_ns = 0
        self._flows: set[Direction] = set()
        self._due_ns = 0
        self._first_ns = self._read_ns = 0
        self._named: set[TrafficKey] = set()

    def follow(self, sample: Sample) -> bool:
        """Return whether the kernel is to be asked now: the interface carries more than the test."""
        if self._nic is None or sample.nic is None or sample.is_drain:
            return False
        own = dict.fromkeys(Direction.DUPLEX.flows, 0)
        for session in sample.sessions:
            sends = sender_of(session.direction, self._workload) is End.NEAR
            own[Direction.OUT if sends else Direction.IN] += session.bytes
        carried = {Direction.OUT: sample.nic.sent_bytes, Direction.IN: sample.nic.received_bytes}
        self._carried_ns += sample.interval_ns
        for flow, count in carried.items():
            self._carried[flow] += count
        self._flows |= {flow for flow in carried if own[flow]}
        is_more = any(
            carried[flow] - _HEADERS * own[flow] - _ACKNOWLEDGEMENTS * own[flow.opposite]
            > max(_SHARE * carried[flow], _QUIET_BIT_S / 8 * sample.interval_ns / SECOND_NS)
            for flow in self._flows
        )
        if not is_more or sample.elapsed_ns < self._due_ns:
            return False
        self._due_ns = sample.elapsed_ns + _PAUSE_NS
        return True

    def read(self) -> str | None:
        """Ask the kernel for its sockets; return the warning about programs that are named for the first time."""
        now_ns = time.monotonic_ns()
        with suppress(LinkgaugeError, OSError):
            self._count()
        if not self._first_ns:
            self._first_ns = now_ns
        self._read_ns = now_ns
        return self.name_rest() if now_ns - self._first_ns >= _WATCHED_NS else None

    def name_rest(self) -> str | None:
        """Return the warning about programs that no warning has named; None without any."""
        if self._read_ns <= self._first_ns:
            return None
        facts: list[str] = []
        for key, moved in self._largest():
            if key not in self._named and len(self._named) < _MOST_NAMED * len(self._flows):
                self._named.add(key)
                way = "to" if key.direction is Direction.OUT else "from"
                rate = rate_text(moved * 8 * SECOND_NS / (self._read_ns - self._first_ns))
                facts.append(f"{key.program} {way} {key.host} took {rate}")
        return WarningText.OTHER_TRAFFIC.format(nic=self._nic, facts=", ".join(facts)) if facts else None

    def _count(self) -> None:
        own = read_family_inodes()
        with SockDiag() as diag:
            change = self._table.update(diag.dump_connections())
        own |= read_family_inodes()  # a session may have been opened meanwhile
        for movement in change.moved:
            if self._is_of_others(movement.message, own):
                self._add(movement)
        self._owners.find([each.message.user_and_inode[1] for each in self._counted.values()])

    def _is_of_others(self, message: SocketMessage, own: set[int]) -> bool:
        inode, local, remote = message.user_and_inode[1], message.local, message.remote
        is_within_host = local.host == remote.host or remote.host.startswith("127.")
        return bool(inode) and inode not in own and remote != self._far and not is_within_host

    def _add(self, movement: Movement) -> None:
        counted = self._counted.setdefault(movement.message.id, _Counted(movement.message))
        counted.bytes[Direction.OUT] += movement.out_bytes
        counted.bytes[Direction.IN] += movement.in_bytes

    def _largest(self) -> Iterator[tuple[TrafficKey, int]]:
        """Yield the programs that moved a part of the interface's traffic worth a word, the largest part first."""
        watched = (self._read_ns - self._first_ns) / max(1, self._carried_ns)
        for flow in sorted(self._flows):
            least = _SHARE * self._carried[flow] * min(1.0, watched)
            moved: dict[TrafficKey, int] = defaultdict(int)
            for counted in self._through_nic(self._ranked(flow)[:_MOST_ROUTES]):
                key = TrafficKey(self._program(counted.message), str(counted.message.remote.host), flow)
                moved[key] += counted.bytes[flow]
            large = [(key, size) for key, size in moved.items() if size >= max(1.0, least)]
            yield from sorted(large, key=lambda each: -each[1])[:_MOST_NAMED]

    def _ranked(self, flow: Direction) -> list[_Counted]:
        return sorted(self._counted.values(), key=lambda each: -each.bytes[flow])

    def _through_nic(self, counted: Iterable[_Counted]) -> Iterator[_Counted]:
        for each in counted:
            with suppress(OSError, ValueError):
                nic = read_nic(each.message.local, each.message.remote)
                if nic is not None and nic.name == self._nic:
                    yield each

    def _program(self, message: SocketMessage) -> str:
        user, inode = message.user_and_inode
        return describe_program(self._owners.find([inode]).get(inode), user, has_hidden=self._owners.has_hidden)


def describe_program(owner: SocketOwner | None, user: int, *, has_hidden: bool) -> str:
    """Return the words for the process of a socket; this user may not see which one it is."""
    if owner is not None:
        return f"{owner.name} (pid {owner.pid})"
    remedy = " (run this as root to see which one)" if has_hidden else ""
    return f"a process of {read_user_name(user)}{remedy}"
