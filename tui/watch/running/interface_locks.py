"""One test at a time on each network interface of this host, in all processes that watch.

A test holds its interface alone. Probes of several peers share it, since they send next to nothing, but a probe
does not run beside a test. The locks are locks of files (flock(2)): the kernel releases them even if a process is
killed.
"""

import asyncio
import fcntl
import os
import socket
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from ....engine.host.nics.nic import read_connection_nic
from ....engine.model.errors import LinkgaugeError
from ....engine.model.peer import Peer
from ....engine.model.plan import SocketOptions
from ....engine.near.connect import resolve_peer
from ....engine.results.run_log.process_locks import open_lock_file

UNKNOWN_INTERFACE: Final = "unknown"
_LOOPBACK: Final = "lo"
_RETRY_S: Final = 0.1  # another process cannot tell that it has released a lock
_INTERFACES: Final = Path("/sys/class/net")
_MOST_LAYERS: Final = 8
_NAMESPACE: Final = Path("/proc/self/ns/net")


class InterfaceLocks:
    """The locks of the interfaces, in a directory that all watches of this user share."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._queues: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    @asynccontextmanager
    async def hold_for_test(self, interface: str, timeout_s: float) -> AsyncGenerator[None]:
        """Hold an interface alone. Raises TimeoutError if others have it for too long, RunLogError for a bad disk.

        The tests of this process get it in turn.
        """
        async with asyncio.timeout(timeout_s) as deadline, self._queues[interface]:
            descriptor = await self._lock(interface, fcntl.LOCK_EX)
            deadline.reschedule(None)
            try:
                yield
            finally:
                os.close(descriptor)

    @asynccontextmanager
    async def hold_for_probe(self, interface: str, timeout_s: float) -> AsyncGenerator[None]:
        """Hold an interface beside other probes; raise as `hold_for_test` does."""
        async with asyncio.timeout(timeout_s):
            async with self._queues[interface]:  # behind a test that waits, so that probes cannot delay it for ever
                descriptor = await self._lock(interface, fcntl.LOCK_SH)
        try:
            yield
        finally:
            os.close(descriptor)

    async def _lock(self, interface: str, kind: int) -> int:
        descriptor = open_lock_file(self._folder, f"{interface}-{_namespace()}")
        try:
            while True:
                try:
                    fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
                except BlockingIOError:
                    await asyncio.sleep(_RETRY_S)
                else:
                    return descriptor
        except BaseException:
            os.close(descriptor)
            raise


async def interface_towards(peer: Peer, options: SocketOptions) -> str:
    """Return the interface by which a peer is reached; UNKNOWN_INTERFACE if the kernel does not tell.

    All unknown interfaces count as one, so that two tests never share a link unseen.
    """
    if peer.is_loopback:
        return _LOOPBACK
    if options.device is not None:
        return carrier_of(options.device)
    try:
        for family, address in await resolve_peer(peer):
            nic = await read_connection_nic(_local_address(family, address, options), address)
            if nic is not None:
                return carrier_of(nic.name)
    except (LinkgaugeError, OSError):
        pass  # the test itself will report what is wrong with this peer
    return UNKNOWN_INTERFACE


def carrier_of(name: str, folder: Path = _INTERFACES) -> str:
    """Return the interface that carries a VLAN or a tunnel; for any other, the interface itself.

    A bond or a bridge has several below it: there the tests share the bond or the bridge.
    """
    for _ in range(_MOST_LAYERS):
        below = [path.name.removeprefix("lower_") for path in (folder / name).glob("lower_*")]
        if len(below) != 1:
            break
        (name,) = below
    return name


def _local_address(family: int, address: tuple[str | int, ...], options: SocketOptions) -> tuple[str | int, ...]:
    """Return the address that a connection would have at this end; this sends nothing."""
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        if options.source is not None:
            sock.bind((options.source, 0))
        sock.connect(address)
        return sock.getsockname()


def _namespace() -> str:
    """Return the number of this network namespace: another one may have interfaces of the same names."""
    try:
        return str(_NAMESPACE.stat().st_ino)
    except OSError:
        return "0"
