"""The part of a mesh's check that a Dask worker carries out: which endpoints of the other hosts it reaches."""

import asyncio
import platform
from collections.abc import Sequence
from typing import Any, Final

from ...engine.model.errors import LinkgaugeError, explain_resource_error, make_printable
from ...engine.model.peer import Peer
from ...engine.model.shared_key import Access, SharedKey
from ...engine.near.connect import CONNECT_DEADLINE_S, connect
from ..host_tasks import find_key

MAX_TEXT: Final = 300
_AT_ONCE: Final = 16
_START_S: Final = 20.0  # a busy host imports the near end first


def deadline_s(targets: int) -> float:
    """Return the time within which a worker answers for so many endpoints."""
    return _START_S + CONNECT_DEADLINE_S * -(-targets // _AT_ONCE)


async def reach_endpoints(mesh_id: str, address: str, targets: Sequence[tuple[str, int]]) -> dict[str, Any]:
    """Connect to endpoints of this mesh and prove its key, as a test does, and hang up.

    `open_host` has brought the key. Returns `{"python": VERSION, "problems": [TEXT or null, ...]}`, a text for each
    endpoint that cannot be used, in the order of `targets`.
    """
    key = find_key(mesh_id, address)
    if key is None:
        problems: list[str | None] = ["this host has no endpoint of the mesh any more"] * len(targets)
    else:
        limit = asyncio.Semaphore(_AT_ONCE)
        problems = await asyncio.gather(*(_reach(key, limit, *target) for target in targets))
    return {"python": platform.python_version(), "problems": problems}


async def _reach(key: SharedKey, limit: asyncio.Semaphore, host: str, port: int) -> str | None:
    async with limit:
        try:
            async with connect(Peer(host, port, Access(key))):
                return None
        except LinkgaugeError as error:
            # The remedy is for an endpoint that the user starts; a mesh starts its own.
            text = str(error).partition("; start `linkgauge endpoint`")[0]
        except (OSError, MemoryError) as error:
            text = explain_resource_error(error)
    return make_printable(text)[:MAX_TEXT]
