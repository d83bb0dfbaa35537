"""The announcement of an endpoint, for as long as it serves."""

import asyncio
import logging
import secrets
import socket
import warnings
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address
from typing import Any

from zeroconf import DNSQuestionType, Error, InterfaceChoice, IPVersion, ServiceInfo
from zeroconf.asyncio import AsyncServiceBrowser, AsyncZeroconf

from ..engine.model.errors import explain_os_error
from .announcement import SERVICE_TYPE, Announcement

_log = logging.getLogger(__name__)
_WITHDRAWAL_S = 3.0
# Time for two questions, whose answers reach every program on a host. An answer to zeroconf's own probe reaches
# only one socket of port 5353, always the same: in 2 of 8 network namespaces it was another program's.
_LISTEN_S = 1.5


class Announcer:
    """An announcement in progress. `withdraw` ends it, and may be called more than once."""

    def __init__(
        self,
        announcement: Announcement,
        addresses: Sequence[str],
        interfaces: list[str] | None,
        log: Callable[[str], None],
    ) -> None:
        self._announcement = announcement
        self._addresses = addresses
        self._interfaces = interfaces
        self._log = log
        self._zeroconf: AsyncZeroconf | None = None
        self._task = asyncio.create_task(self._announce())

    async def withdraw(self) -> None:
        """Tell the LAN that the endpoint has gone. Waits at most 3 s until the packets are sent."""
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.wait([self._task])
        zeroconf, self._zeroconf = self._zeroconf, None
        if zeroconf is None:
            return
        with suppress(TimeoutError, OSError, Error):
            async with asyncio.timeout(_WITHDRAWAL_S):
                await zeroconf.async_unregister_all_services()
                await zeroconf.async_close()

    async def _announce(self) -> None:
        """Announce the endpoint under its name, or with a number if another endpoint has the name already."""
        name = self._announcement.name.replace(".", " ")
        info = ServiceInfo(
            SERVICE_TYPE,
            f"{name}.{SERVICE_TYPE}",
            self._announcement.port,
            properties=self._announcement.properties(),
            server=f"linkgauge-{secrets.token_hex(6)}.local.",  # strangers need not know the host's own name
            parsed_addresses=list(self._addresses),
        )
        try:
            self._zeroconf = open_zeroconf(self._interfaces)
            zeroconf: Any = self._zeroconf  # its answer has no type
            await _learn_names(self._zeroconf)
            await (await zeroconf.async_register_service(info, allow_name_change=True))
        except (OSError, Error) as error:
            reason = explain_os_error(error) if isinstance(error, OSError) else type(error).__name__
            self._log(f"not announced on this LAN: {reason}")
            return
        self._log(f"announced on this LAN as {info.name.removesuffix(f'.{SERVICE_TYPE}')}")


async def _learn_names(zeroconf: AsyncZeroconf) -> None:
    """Ask for the other endpoints, so that their names are known before this one chooses its own."""

    def note(**_: Any) -> None:
        """Leave the answer to zeroconf's cache."""

    browser = AsyncServiceBrowser(
        zeroconf.zeroconf, SERVICE_TYPE, handlers=[note], question_type=DNSQuestionType.QM
    )
    try:
        await asyncio.sleep(_LISTEN_S)
    finally:
        await browser.async_cancel()


def open_zeroconf(interfaces: list[str] | None = None) -> AsyncZeroconf:
    """Open multicast DNS on these addresses' interfaces, or on all. Raises OSError.

    Without IPv6 on this host or its interfaces, it uses IPv4 alone.
    """
    logger = logging.getLogger("zeroconf")  # it writes tracebacks about strangers' packets to stderr
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())
    logger.propagate = False
    if interfaces is not None:
        return AsyncZeroconf(interfaces=interfaces)
    if socket.has_ipv6:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)  # it leaves its first sockets open
            try:
                return AsyncZeroconf(interfaces=InterfaceChoice.All, ip_version=IPVersion.All)
            except OSError as error:
                _log.debug("no multicast DNS over IPv6: %s", error)
    return AsyncZeroconf(interfaces=InterfaceChoice.All, ip_version=IPVersion.V4Only)


@asynccontextmanager
async def announced(
    announcement: Announcement | None, hosts: Sequence[str], *, is_bound: bool, log: Callable[[str], None]
) -> AsyncGenerator[Announcer | None]:
    """Announce an endpoint in the background while the block lasts; None announces nothing.

    Args:
        announcement: the announcement.
        hosts: the names and addresses of the endpoint; only addresses are announced.
        is_bound: whether it listens on that address alone; then it is not announced on other interfaces.
        log: receives a line when it is announced, or why it is not.
    """
    if announcement is None:
        yield None
        return
    addresses = [host for host in hosts if _is_address(host)]
    announcer = Announcer(announcement, addresses, addresses if is_bound else None, log)
    try:
        yield announcer
    finally:
        await announcer.withdraw()


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return "%" not in host
