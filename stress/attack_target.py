"""The target of an attack: an endpoint's address and key, and the sources that the attacker connects from."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.shared_key import Access, SharedKey

_CONNECT_S = 10.0


@dataclass
class Target:
    """An endpoint under attack. `victim_port` is a listener that belongs to somebody else."""

    port: int
    key: SharedKey | None
    fingerprint: bytes | None
    victim_port: int
    counts: dict[str, int] = field(default_factory=dict)
    _is_under_way: bool = False

    def peer_with(self, key: SharedKey | None) -> Peer:
        """Return the endpoint's address with a key, or with none."""
        return Peer("127.0.0.1", self.port, Access(key, fingerprint=self.fingerprint))

    @property
    def peer(self) -> Peer:
        """The endpoint's address with its key."""
        return self.peer_with(self.key)

    def count(self, name: str, number: int = 1) -> None:
        """Count something that the attack has done, for its report."""
        self.counts[name] = self.counts.get(name, 0) + number

    def report_strength(self) -> None:
        """Report, once, that the attack has its full strength."""
        if not self._is_under_way:
            self._is_under_way = True
            print("under way", flush=True)

    def connect(self, source: str) -> socket.socket:
        """Return a blocking connection from an address of this host."""
        return socket.create_connection(("127.0.0.1", self.port), _CONNECT_S, (source, 0))


Attack = Callable[[Target], Awaitable[None]]


def source(number: int, network: int = 9) -> str:
    """Return one of the 65,000 source addresses of 127.NETWORK.0.0/16."""
    place = number % 65_000 + 1
    return f"127.{network}.{place // 256}.{place % 256}"


async def hold_connections(target: Target, count: int, first_bytes: bytes, *, network: int = 9) -> None:
    """Keep connections open that have sent these bytes; replace the ones that the endpoint closes."""
    socks: list[socket.socket | None] = [None] * count
    try:
        while True:
            for number in range(count):
                with contextlib.suppress(OSError):
                    if _is_closed(old := socks[number]):
                        sock = socks[number] = await asyncio.to_thread(_renew, target, old, number, network)
                        sock.sendall(first_bytes)
            target.report_strength()
            await asyncio.sleep(0.05)
    finally:
        for sock in socks:
            if sock is not None:
                sock.close()


def _renew(target: Target, old: socket.socket | None, number: int, network: int) -> socket.socket:
    if old is not None:
        old.close()
        target.count("replaced")
    target.count("connections")
    sock = target.connect(source(number, network))
    sock.setblocking(False)  # with a deadline, recv would wait for it
    return sock


def _is_closed(sock: socket.socket | None) -> bool:
    """Return whether the other end has closed a connection that nobody reads."""
    if sock is None:
        return True
    try:
        return not sock.recv(4_096)
    except BlockingIOError:
        return False
    except OSError:
        return True


async def repeat(target: Target, tries: int, attempt: Callable[[int], Awaitable[None]]) -> None:
    """Make attempts one after another in as many tasks; an attempt may fail in any way of the network."""

    async def work(start: int) -> None:
        number = start
        while True:
            with contextlib.suppress(OSError, EOFError):
                await attempt(number)
            await asyncio.sleep(0)
            target.count("attempts")
            if target.counts["attempts"] >= tries:
                target.report_strength()
            number += tries

    async with asyncio.TaskGroup() as group:
        for start in range(tries):
            group.create_task(work(start))


@contextlib.asynccontextmanager
async def connected(
    target: Target, number: int
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connect from the source of this number, and close the connection afterwards."""
    reader, writer = await asyncio.open_connection("127.0.0.1", target.port, local_addr=(source(number), 0))
    try:
        yield reader, writer
    finally:
        writer.close()


async def converse(target: Target, data: bytes, number: int) -> None:
    """Send bytes on a connection of its own, and read until the endpoint closes it."""
    async with connected(target, number) as (reader, writer):
        writer.write(data)
        while await reader.read(65_536):
            pass


async def converse_in_turn(
    target: Target, tries: int, messages: Sequence[bytes], *, opening: Callable[[], bytes] = bytes
) -> None:
    """Send messages in turn, each on a connection of its own and behind an opening, in so many tasks."""

    async def attempt(number: int) -> None:
        await converse(target, opening() + messages[number % len(messages)], number)

    await repeat(target, tries, attempt)


async def flood_datagrams(target: Target, datagrams: Sequence[bytes]) -> None:
    """Send these datagrams to the UDP port from fifty addresses, without end. An answer counts as ADMITTED."""
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(50)]
        for number, sock in enumerate(socks):
            sock.setblocking(False)
            sock.bind((source(number), 0))
        while True:
            for number, sock in enumerate(socks):
                with contextlib.suppress(BlockingIOError, ConnectionRefusedError):
                    sock.sendto(datagrams[number % len(datagrams)], ("127.0.0.1", target.port))
                    target.count("datagrams")
                    sock.recv(100)
                    target.count("ADMITTED")
            target.report_strength()
            await asyncio.sleep(0.001)
