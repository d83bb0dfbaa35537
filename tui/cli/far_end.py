"""`linkgauge endpoint`: the far end as a command, until a signal ends it."""

import asyncio
import signal

from ...engine.endpoint import serve
from ...engine.loop import run
from ...engine.plan import Peer
from .output import emit_json_line, emit_line, say


def serve_until_stopped(bind: str | None, port: int, *, as_json: bool) -> int:
    """Serve clients until SIGINT, SIGTERM or SIGHUP; the first line of stdout says where it listens."""
    run(_serve(bind, port, as_json=as_json))
    return 0


async def _serve(bind: str | None, port: int, *, as_json: bool) -> None:
    def told(address: tuple[str, int]) -> None:
        host, listening_port = address
        if as_json:
            emit_json_line({"listening": {"host": host, "port": listening_port}})
        else:
            emit_line(f"listening on {Peer(host, listening_port)}")

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    await serve(bind, port, stop=stop, on_listening=told, log=say)
