"""The observer: dumps, readings in between, and an observation an interval.

One dump an interval has all sockets. Those that moved most are read by their ids four times a second, as often as a
run takes its samples, because the rules need several of them. All of it is asked of the local kernel, and nothing
is sent to a network.
"""

import asyncio
import os
import platform
import socket
import threading
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from ..engine.host.description import read_tcp_sysctls
from ..engine.host.event_loop import call_in_thread
from ..engine.host.sockets.sock_diag import EndedConnections, SockDiag
from ..engine.host.sockets.socket_message import SocketMessage, read_drops
from ..engine.host.sockets.socket_owners import SocketOwners, read_user_name
from ..engine.host.sockets.socket_table import IntervalCounts, SocketTable
from ..engine.model.host_info import HostInfo, NicInfo
from ..engine.model.plan import SECOND_NS
from ..engine.results.rate_and_loss import bits_per_second
from ..presets.catalog import Catalog
from .connection_rows import RowMaker, TrackedConnection
from .expected_rates import ExpectedRates, InterfaceMeter
from .observation import (
    ConnectionKey,
    DatagramSocket,
    InterfaceRates,
    Observation,
    ObservedConnection,
    Owner,
    Totals,
)
from .request import ObserveRequest
from .selection import Selection
from .thread_loads import ThreadLoads

SAMPLE_NS: Final = SECOND_NS // 4
"""The time between readings of the connections that move."""
_LEAST_TRACKED: Final = 32  # and twice as many as are shown: each reading takes a tenth of a millisecond
_DUMP_NS: Final = SECOND_NS  # so long does it take at most until a new connection is read


class Observer:
    """Observes until it is closed: call `step` every SAMPLE_NS. It blocks for milliseconds.

    Any thread may call it: one waits for the other, so that no socket closes under a reading. The first step opens
    the sockets, so that closing it finds all of them, whenever that is.
    """

    _selection: Selection
    _diag: SockDiag
    _ended: EndedConnections

    def __init__(self, request: ObserveRequest, catalog: Catalog) -> None:
        self._lock = threading.Lock()
        self._is_closed = False
        self._request = request
        self._stack = ExitStack()
        self._table = SocketTable(request.top if request.target is not None else 0)
        self._most_tracked = max(_LEAST_TRACKED, 2 * request.top)
        self._tracks: dict[bytes, TrackedConnection] = {}
        self._drops: dict[bytes, int] = {}
        self._owners = SocketOwners()
        self._rates = ExpectedRates(catalog, request.line_rate_bit_s)
        self._interfaces = InterfaceMeter()
        self._loads = ThreadLoads()
        self._rows = RowMaker(self._rates, _describe_host(), request.pass_percent)
        self._started_utc = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._started_ns = self._dumped_ns = 0
        self._due_ns = self._next_dump_ns = 0
        self._counts = IntervalCounts()
        self._cost_ns = 0

    def close(self) -> None:
        """Close its sockets, after a step that still runs."""
        with self._lock:
            self._is_closed = True
            self._stack.close()

    def step(self, now_ns: int | None = None) -> Observation | None:
        """Read the connections that move; return an observation if an interval is over, None once it is closed.

        `now_ns` is on the monotonic clock. Raises LinkgaugeError if the target does not exist, or if the kernel
        does not report its sockets, or does not answer.
        """
        with self._lock:
            if self._is_closed:
                return None
            began_ns = time.thread_time_ns()
            observation = self._step(time.monotonic_ns() if now_ns is None else now_ns)
            self._cost_ns += time.thread_time_ns() - began_ns
            if observation is not None:
                observation = replace(observation, cost_ns=self._cost_ns)
                self._cost_ns = 0
            return observation

    def _step(self, now_ns: int) -> Observation | None:
        if not self._started_ns:
            self._open()
            self._started_ns = self._dumped_ns = now_ns
            self._dump(now_ns)
            self._due_ns = now_ns + self._request.interval_ns
            self._next_dump_ns = now_ns + SAMPLE_NS  # the second dump tells which sockets move
            return None
        self._read([each for each in self._tracks.values() if not each.has_ended], now_ns)
        if now_ns >= self._due_ns - SAMPLE_NS // 2:
            self._due_ns = max(self._due_ns + self._request.interval_ns, now_ns)
            return self._observe(now_ns)
        if now_ns >= self._next_dump_ns - SAMPLE_NS // 2:
            self._dump(now_ns)
            if self._dumped_ns == self._started_ns:  # the first interval needs something to compare with, too
                self._measure_interfaces(self._tracks.values(), now_ns)
                self._measure_loads(list(self._tracks.values())[: self._request.top], now_ns)
        return None

    def _open(self) -> None:
        self._selection = Selection(self._request.target)
        self._diag = self._stack.enter_context(SockDiag(self._selection.bytecode))
        self._ended = self._stack.enter_context(closing(EndedConnections()))

    def _measure_interfaces(
        self, tracks: Iterable[TrackedConnection], now_ns: int
    ) -> tuple[dict[int, NicInfo | None], tuple[InterfaceRates, ...]]:
        """Return the interface of each connection, and the rates of these since they were last measured."""
        self._rates.begin()
        nics = {id(track): self._rates.find_nic(track.local, track.remote) for track in tracks}
        return nics, self._interfaces.measure(list(dict.fromkeys(filter(None, nics.values()))), now_ns)

    def _dump(self, now_ns: int) -> None:
        """Take a dump, and follow the connections that moved most."""
        self._next_dump_ns = now_ns + _DUMP_NS
        self._selection.refresh()
        ended = [each for each in self._ended.take() if self._selection.matches(each, self._table.known)]
        allows = self._selection.allows if self._selection.is_by_process else None
        change = self._table.update(self._diag.dump_connections(), ended, allows)
        change.moved.sort(key=lambda each: -each.bytes)
        for movement in change.moved[: self._most_tracked]:
            self._follow(movement.message)
        for message in (*change.waiting[: self._most_tracked], *change.idle):
            self._follow(message)
        new = [each for each in self._tracks.values() if each.track is None]
        self._read(new, now_ns)
        for movement in change.moved:
            track = self._tracks.get(movement.message.id)
            if track is not None:
                track.add_movement(movement, now_ns)
        self._counts.add(change)

    def _follow(self, message: SocketMessage) -> None:
        if message.id not in self._tracks:
            self._tracks[message.id] = TrackedConnection(message)

    def _read(self, tracks: list[TrackedConnection], now_ns: int) -> None:
        ids = [(each.message.family, each.message.id) for each in tracks]
        for reading in self._diag.read_connections(ids):
            self._tracks[reading.message.id].add_reading(reading, now_ns)

    def _observe(self, now_ns: int) -> Observation:
        self._dump(now_ns)
        counts, self._counts = self._counts, IntervalCounts()
        interval_ns = max(1, now_ns - self._dumped_ns)
        self._dumped_ns = now_ns
        for id_, track in self._tracks.items():
            track.end_interval(interval_ns, has_ended=id_ not in self._table.known)
        pairs = {(track.local, track.remote) for track in self._tracks.values()}
        shown = self._choose(now_ns)
        for track in shown:
            track.has_local_peer = (track.remote, track.local) in pairs
        nics, interfaces = self._measure_interfaces(shown, now_ns)
        self._measure_loads(shown, now_ns)
        rows = [self._rows.make(track, nics[id(track)], interfaces, now_ns) for track in shown]
        self._tracks = {id_: track for id_, track in self._tracks.items() if not track.has_ended}
        connections = tuple(row for row in rows if row is not None)
        return Observation(
            started_utc=self._started_utc,
            elapsed_ns=now_ns - self._started_ns,
            interval_ns=interval_ns,
            connections=connections,
            datagrams=tuple(self._datagrams()) if self._request.has_datagrams else (),
            interfaces=interfaces,
            totals=self._totals(counts, interval_ns, connections),
            notes=tuple(self._notes(connections, list(nics.values()))),
        )

    def _choose(self, now_ns: int) -> list[TrackedConnection]:
        """Return the connections to show, the fastest first; forget those that have been idle for some time."""
        keeps_idle = self._request.target is not None
        self._tracks = {
            id_: track
            for id_, track in self._tracks.items()
            if track.track is not None and (keeps_idle or track.is_of_interest(now_ns))
        }
        ranked = sorted(self._tracks.values(), key=lambda track: track.rank)
        for track in ranked[self._most_tracked :]:
            track.has_ended = True
        return ranked[: self._request.top]

    def _measure_loads(self, shown: list[TrackedConnection], now_ns: int) -> None:
        """Find the processes of connections, and the load of those that send."""
        self._find_owners(shown)
        senders = [track.owner.pid for track in shown if track.owner is not None and track.has_sent(now_ns)]
        loads = self._loads.measure(senders, now_ns)
        for track in shown:
            if track.owner is not None:  # after a short interval there is no newer one
                track.thread_load = loads.get(track.owner.pid, track.thread_load)

    def _find_owners(self, shown: list[TrackedConnection]) -> None:
        unowned = {track.inode: track for track in shown if track.owner is None and track.inode}
        for inode, owner in self._owners.find(unowned).items():
            track = unowned[inode]
            track.owner = Owner(owner.pid, owner.name, track.user, owner.others)

    def _datagrams(self) -> list[DatagramSocket]:
        """Return the UDP sockets that dropped something, or whose queues hold something."""
        found: list[tuple[SocketMessage, DatagramSocket]] = []
        drops: dict[bytes, int] = {}
        for message in self._diag.dump_datagram_sockets():
            words = read_drops(message)
            if words is None or not self._selection.allows(message):
                continue
            total, buffer_bytes = words
            first = drops[message.id] = self._drops.get(message.id, total)
            received, sent = message.queues
            if total > first or received or sent:
                key = ConnectionKey("udp", message.local, message.remote, message.cookie)
                user = read_user_name(message.user_and_inode[0])
                found.append(
                    (message, DatagramSocket(key, user, received, sent, total - first, total, buffer_bytes))
                )
        self._drops = drops
        found.sort(key=lambda each: (-each[1].dropped, -each[1].receive_queue_bytes))
        found = found[: self._request.top]
        owners = self._owners.find([message.user_and_inode[1] for message, _ in found])
        return [
            replace(row, owner=Owner(owner.pid, owner.name, row.user, owner.others))
            if (owner := owners.get(message.user_and_inode[1]))
            else row
            for message, row in found
        ]

    def _totals(
        self, counts: IntervalCounts, interval_ns: int, connections: tuple[ObservedConnection, ...]
    ) -> Totals:
        return Totals(
            sockets=len(self._table.known),
            moving=len(counts.moving),
            out_bit_s=bits_per_second(counts.out_bytes, interval_ns) or 0.0,
            in_bit_s=bits_per_second(counts.in_bytes, interval_ns) or 0.0,
            ended=counts.ended,
            short_lived=counts.short_lived,
            short_lived_bytes=counts.short_lived_bytes,
            unowned=sum(each.owner is None for each in connections),
        )

    def _notes(self, connections: tuple[ObservedConnection, ...], nics: list[NicInfo | None]) -> list[str]:
        notes: list[str] = []
        if self._owners.has_hidden and any(each.owner is None for each in connections):
            notes.append("The processes of other users are not visible; run this as root to see them.")
        if self._diag.was_interrupted:
            notes.append("The kernel's table changed while it was read: some connections may be missing.")
        if self._ended.are_missed:
            notes.append("More connections ended than could be counted.")
        silent = {nic.name for nic in nics if nic is not None and nic.sort != "loopback"} - {
            each.nic.name for each in connections if each.nic is not None and each.expected is not None
        }
        if silent:
            names = ", ".join(sorted(silent))
            verb = "reports" if len(silent) == 1 else "report"
            notes.append(f"{names} {verb} no line rate, so that no rate is expected; give --line-rate 1G.")
        return notes


def _describe_host() -> HostInfo:
    return HostInfo(
        hostname=socket.gethostname(),
        system=f"{platform.system()} {platform.release()}",
        cores=os.cpu_count() or 1,
        software="linkgauge",
        event_loop="",
        tcp=read_tcp_sysctls(),
    )


async def observe(request: ObserveRequest, catalog: Catalog) -> AsyncGenerator[Observation]:
    """Yield an observation each interval, for ever; the kernel is asked in a thread.

    Raises LinkgaugeError if the target does not exist, or if the kernel does not report its sockets.
    """
    observer = Observer(request, catalog)
    try:
        due_s = time.monotonic()
        while True:
            observation = await call_in_thread(observer.step, name="observe")
            if observation is not None:
                yield observation
            due_s = max(due_s + SAMPLE_NS / SECOND_NS, time.monotonic())
            await asyncio.sleep(due_s - time.monotonic())
    finally:  # in a thread: if this task is cancelled, a step may still run in its own
        await call_in_thread(observer.close, name="observe")
