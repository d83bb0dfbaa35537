"""The names of routers by reverse DNS, within a few seconds. A name is any text of a stranger: sanitize it."""

import asyncio
import contextlib
import socket
from collections.abc import Collection
from typing import Final

from ..host.event_loop import call_in_thread

_DEADLINE_S: Final = 3.0
_MAX_NAMES: Final = 60
_LONGEST: Final = 255  # RFC 1035, section 2.3.4


async def look_up_names(addresses: Collection[str]) -> dict[str, str]:
    """Return the names by address; addresses without a name, or whose server does not answer, are left out."""
    names: dict[str, str] = {}

    async def look_up(address: str) -> None:
        with contextlib.suppress(OSError, UnicodeError):
            name, _ = await call_in_thread(
                lambda: socket.getnameinfo((address, 0), socket.NI_NAMEREQD), name="resolver"
            )
            names[address] = name[:_LONGEST]

    tasks = [asyncio.create_task(look_up(address)) for address in sorted(addresses)[:_MAX_NAMES]]
    if tasks:
        await asyncio.wait(tasks, timeout=_DEADLINE_S)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return names
