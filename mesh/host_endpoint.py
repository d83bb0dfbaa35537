"""A host's endpoint for one mesh, as a child process.

`python -P -m linkgauge.mesh.host_endpoint ADDRESS PORT LEASE_S` serves on that port, or on a free one for 0.
The first line of standard input is the key that clients must prove: no command line, environment or file has it.
Every further line renews the lease. The endpoint ends with its input, or when the lease expires. So a lost
coordinator leaves no open port behind, even if the process that started this one lives on.

It answers with one line, `{"port": NUMBER}` or `{"error": TEXT}`.
"""

import asyncio
import contextlib
import json
import logging
import sys
from typing import Any, Final, cast

from ..engine.far.endpoint import serve_endpoint
from ..engine.host.child_process import TetheredChild, open_standard_input
from ..engine.host.debug_log import configure_debug_log
from ..engine.host.event_loop import run
from ..engine.model.errors import EndpointError, LinkgaugeError, make_printable
from ..engine.model.shared_key import SharedKey

LEASE_S: Final = 60.0
"""The time after which an endpoint ends by itself, from its start and from each renewal."""
_START_DEADLINE_S: Final = 15.0
# The user's port may still belong to an endpoint that is about to end.
_TRIES: Final = 4
_PAUSE_S: Final = 2.0
_MAX_TEXT: Final = 1_000
_log = logging.getLogger(__name__)


async def start_host_endpoint(
    address: str, key: SharedKey, port: int = 0, lease_s: float = LEASE_S
) -> tuple[TetheredChild, int]:
    """Start an endpoint on a port of an address, 0 for a free one; return its process and the port.

    Each `write_line` renews its lease. Raises EndpointError if it does not start.
    """
    for _ in range(_TRIES - 1 if port else 0):
        try:
            return await _start(address, key, port, lease_s)
        except EndpointError as error:
            _log.debug("no endpoint on port %d yet: %s", port, error)
            await asyncio.sleep(_PAUSE_S)
    return await _start(address, key, port, lease_s)


async def _start(address: str, key: SharedKey, wanted: int, lease_s: float) -> tuple[TetheredChild, int]:
    child = await TetheredChild.start(
        __spec__.name, [address, str(wanted), f"{lease_s:g}"], key.reveal(), "the endpoint on that host"
    )
    try:
        port = _read_port(await child.read_line(_START_DEADLINE_S))
    except BaseException:
        await child.end()
        raise
    _log.debug("endpoint %d of a mesh listens on %s port %d", child.pid, address, port)
    return child, port


def _read_port(line: str | None) -> int:
    try:
        answer: Any = json.loads(line or "null")
    except ValueError:
        answer = None
    answers = cast("dict[str, Any]", answer) if isinstance(answer, dict) else {}
    port, error = answers.get("port"), answers.get("error")
    if isinstance(port, int):
        return port
    if isinstance(error, str):
        raise EndpointError(make_printable(error[:_MAX_TEXT]))
    raise EndpointError("the endpoint did not start; try `linkgauge endpoint` on that host")


async def serve_while_renewed(bind: str, port: int, lease_s: float) -> None:
    """Serve on a port, 0 for a free one, until standard input ends or has no line for `lease_s`."""
    async with open_standard_input() as reader:
        key = SharedKey((await reader.readline()).decode().strip())
        stop = asyncio.Event()

        async def watch() -> None:
            with contextlib.suppress(TimeoutError, ValueError):
                while True:
                    async with asyncio.timeout(lease_s):
                        if not await reader.readline():
                            break
            stop.set()

        watching = asyncio.create_task(watch())
        try:
            await serve_endpoint(
                bind, port, stop=stop, keys=[key], on_listening=lambda place: _answer(port=place[1])
            )
        finally:
            watching.cancel()


def _answer(**values: object) -> None:
    with contextlib.suppress(BrokenPipeError):  # the parent process has gone: the input ends as well
        sys.stdout.write(json.dumps(values) + "\n")
        sys.stdout.flush()


def main() -> None:
    """Serve on the address and the port of the first two arguments, with the lease of the third."""
    configure_debug_log(has_stderr=False)
    bind, port, lease_s = sys.argv[1:]
    try:
        run(serve_while_renewed(bind, int(port), float(lease_s)))
    except LinkgaugeError as error:
        _answer(error=str(error))
        sys.exit(1)


if __name__ == "__main__":
    main()
