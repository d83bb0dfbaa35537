"""A scheduler or worker of Dask on a host that ssh reaches: `host_login` starts it, and reads its lines.

It gets its order as a line of JSON from standard input. So the cluster's private key is neither in a command line,
which others on the host could read, nor in the environment, nor in a file that would stay there. The process ends
with its standard input, and so with the ssh session, however the command ended.
"""

import asyncio
import json
import os
import signal
import sys
import threading
import time
from typing import Any, Final
from urllib.parse import urlsplit

from ...engine.model.errors import explain_os_error

MARK: Final = "linkgauge-mesh"
"""The first word of each line that this program prints."""
LOGGED_IN: Final = "login"
PYTHON: Final = "python"
VERSION: Final = "version"
READY: Final = "ready"
"""Dask is imported; the address of the ssh connection follows, if it is known."""
SERVES: Final = "serves"
"""The scheduler or worker runs; its address follows."""
UNREACHED: Final = "unreached"
"""The worker does not reach its scheduler; the reason follows."""
_MAX_ORDER: Final = 1_000_000
_END_S: Final = 5.0  # for Dask, to end in order
_REACH_S: Final = 8.0  # a connection that a firewall drops; a lost segment is sent again after 1, 3 and 7 s
_CONNECTION_PARTS: Final = 4


def main() -> None:
    """Carry out the order: `config` for Dask, the `options` of a worker for `scheduler`, or of the scheduler."""
    out = os.dup(1)
    os.dup2(2, 1)
    from dask import config

    from .. import host_tasks  # noqa: F401 # pyright: ignore[reportUnusedImport] - the worker needs it

    parts = os.environ.get("SSH_CONNECTION", "").split()
    _say(out, READY, parts[2] if len(parts) == _CONNECTION_PARTS else "")
    line = sys.stdin.readline(_MAX_ORDER)
    if line:
        order = json.loads(line)
        config.set(order["config"])
        asyncio.run(_serve(order, out))


def _say(out: int, word: str, rest: str) -> None:
    os.write(out, f"{MARK} {word} {rest}\n".encode())


async def _serve(order: dict[str, Any], out: int) -> None:
    """Run the scheduler or worker until it ends, is told to, or loses its session."""
    from ..dask_servers import MeshScheduler, MeshWorker

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    threading.Thread(target=_end_with_session, daemon=True).start()
    scheduler, options = order["scheduler"], order["options"]
    if scheduler is not None and (reason := await why_unreached(scheduler)):
        _say(out, UNREACHED, reason)
        return
    server: Any = MeshScheduler(**options) if scheduler is None else MeshWorker(scheduler, **options)
    starting = asyncio.ensure_future(server)
    stopping = asyncio.ensure_future(stop.wait())
    await asyncio.wait((starting, stopping), return_when=asyncio.FIRST_COMPLETED)
    if starting.done():
        starting.result()
        _say(out, SERVES, server.address)
        await asyncio.wait(
            (asyncio.ensure_future(server.finished()), stopping), return_when=asyncio.FIRST_COMPLETED
        )
        await server.close()


async def why_unreached(address: str) -> str | None:
    """Return why no TCP connection from here gets to a process of Dask, and what to do; None if one does.

    Dask itself would try for ever, without a word.
    """
    url = urlsplit(address)
    try:
        async with asyncio.timeout(_REACH_S):
            _, writer = await asyncio.open_connection(url.hostname, url.port)
        writer.close()
    except TimeoutError:
        reason = f"no answer in {_REACH_S:g} s"
    except OSError as error:
        reason = explain_os_error(error)
    else:
        return None
    return f"{reason} from {url.netloc}; firewalls must let TCP from here to free ports of that host"


def _end_with_session() -> None:
    """End this process with its standard input: a worker would wait for a scheduler for ever."""
    while os.read(sys.stdin.fileno(), 4_096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(_END_S)
    os._exit(1)
