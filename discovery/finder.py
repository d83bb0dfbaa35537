"""The search for endpoints that announce themselves on this LAN."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from ipaddress import IPv4Interface, IPv6Interface
from typing import Any, Final

import ifaddr
from zeroconf import Error, ServiceStateChange
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo

from .announcement import MAX_TEXT_BYTES, SERVICE_TYPE, FoundEndpoint, Interface, read_announcement
from .announcer import open_zeroconf

MAX_ENDPOINTS: Final = 256
_MAX_NAMES: Final = 1_024  # more are an attack, and are ignored
_RESOLVERS: Final = 16
_RESOLVE_MS: Final = 2_000
_log = logging.getLogger(__name__)


async def watch_endpoints(seconds: float) -> AsyncGenerator[FoundEndpoint]:
    """Yield endpoints as they are found, each address and port once, for `seconds`. Raises OSError.

    It yields at most MAX_ENDPOINTS and connects to none.
    """
    names: asyncio.Queue[str] = asyncio.Queue()
    found: asyncio.Queue[FoundEndpoint] = asyncio.Queue()
    seen: set[str] = set()

    def note(name: str, state_change: ServiceStateChange, **_: Any) -> None:
        if state_change is ServiceStateChange.Removed or name in seen or len(seen) >= _MAX_NAMES:
            return
        seen.add(name)
        names.put_nowait(name)

    zeroconf, own = open_zeroconf(), _own_addresses()
    browser = AsyncServiceBrowser(zeroconf.zeroconf, SERVICE_TYPE, handlers=[note])
    resolvers = [asyncio.create_task(_resolve(zeroconf.zeroconf, names, found, own)) for _ in range(_RESOLVERS)]
    given: set[tuple[object, ...]] = set()
    try:
        deadline_s = asyncio.get_running_loop().time() + seconds
        while len(given) < MAX_ENDPOINTS and (endpoint := await _take(found, deadline_s)) is not None:
            if endpoint.peer.identity not in given:
                given.add(endpoint.peer.identity)
                yield endpoint
    finally:
        for resolver in resolvers:
            resolver.cancel()
        await asyncio.gather(*resolvers, return_exceptions=True)
        await browser.async_cancel()
        await zeroconf.async_close()


async def _take(found: "asyncio.Queue[FoundEndpoint]", deadline_s: float) -> FoundEndpoint | None:
    """Return the next endpoint; None after the deadline on the loop's clock."""
    try:
        async with asyncio.timeout_at(deadline_s):
            return await found.get()
    except TimeoutError:
        return None


async def find_endpoints(seconds: float) -> list[FoundEndpoint]:
    """Return the endpoints that are found within `seconds`, sorted by name. Raises OSError."""
    async with aclosing(watch_endpoints(seconds)) as endpoints:
        return sorted([each async for each in endpoints], key=lambda each: (each.name, str(each.peer)))


def _own_addresses() -> list[Interface]:
    """Return this host's addresses with their networks."""
    return [
        IPv4Interface(f"{each.ip}/{each.network_prefix}")
        if isinstance(each.ip, str)
        else IPv6Interface(f"{each.ip[0]}/{each.network_prefix}")
        for adapter in ifaddr.get_adapters()
        for each in adapter.ips
    ]


async def _resolve(
    zeroconf: Any,
    names: "asyncio.Queue[str]",
    found: "asyncio.Queue[FoundEndpoint]",
    own: Collection[Interface],
) -> None:
    """Ask for the address and the TXT record of each name."""
    while True:
        name = await names.get()
        try:
            info = AsyncServiceInfo(SERVICE_TYPE, name)
            if not await info.async_request(zeroconf, _RESOLVE_MS) or len(info.text or b"") > MAX_TEXT_BYTES:
                continue
            endpoint = read_announcement(name, info.parsed_scoped_addresses(), info.port, info.properties, own)
        except (Error, OSError, ValueError) as error:
            _log.debug("an announcement cannot be read: %s", type(error).__name__)
            continue
        if endpoint is not None:
            found.put_nowait(endpoint)
