"""The ways that metrics take out of a process: a server for scrapes, a text file, a gateway.

A file or a gateway that fails stops nothing: it is said once, tried again later and later, and said again when it
works.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from ..engine.host.saved_files import write_atomically
from ..engine.model.errors import OutputError, PlanError, explain_os_error
from .push_gateway import Gateway, group_path, parse_gateway, push
from .scrape_server import ScrapeServer, listen_for_scrapes, scrape_url

SUFFIX: Final = ".prom"
RENEWAL_S: Final = 15.0
"""How old a text file becomes at most: the interval at which Prometheus usually scrapes."""
_PAUSE_S: Final = 1.0
_FIRST_RETRY_S: Final = 1.0
_LAST_RETRY_S: Final = 300.0
_PUBLIC_FILE_MODE: Final = 0o644  # the collector that reads it runs as a user of its own
_LAST_DEADLINE_S: Final = 5.0

Encode = Callable[[str], tuple[bytes, str]]


@dataclass(frozen=True, slots=True)
class PublishingPlan:
    """Where metrics go.

    Args:
        listen: the address and port of the server; port 0 takes a free one; None without a server.
        textfile: the file, as node_exporter's collector reads it; None without one.
        push: the address of a gateway; None without one.
    """

    listen: tuple[str, int] | None = None
    textfile: str | None = None
    push: str | None = None

    def __post_init__(self) -> None:
        """Check the file's name and the gateway's address; raise PlanError."""
        if self.textfile is not None and not self.textfile.endswith(SUFFIX):
            raise PlanError(
                "--textfile", repr(self.textfile), f"node_exporter reads files whose names end in {SUFFIX}"
            )
        if self.push is not None:
            parse_gateway(self.push)

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        """Return the plan whose `dataclasses.asdict` went through JSON."""
        listen = values["listen"]
        return cls(None if listen is None else (listen[0], listen[1]), values["textfile"], values["push"])


@dataclass(frozen=True, slots=True)
class Publication:
    """Metrics that are being published: tell it when something has changed. `open_publication` makes one.

    `url` is the address that Prometheus scrapes; None without a server.
    """

    url: str | None
    _deliveries: Sequence["_Delivery"]

    def changed(self, *, is_result: bool = True) -> None:
        """Note a change. One that is no result of a test, such as a probe, renews the file and is not pushed."""
        for delivery in self._deliveries:
            if is_result or delivery.is_renewed:
                delivery.request()


@contextlib.asynccontextmanager
async def open_publication(
    plan: PublishingPlan,
    encode: Encode,
    group: Mapping[str, str],
    notice: Callable[[str], None],
    *,
    keeps_file: bool,
) -> AsyncGenerator[Publication]:
    """Publish metrics while the block lasts.

    Args:
        plan: where they go.
        encode: returns them as text with its content type, for an Accept header.
        group: the labels of their group at a gateway, beside the job.
        notice: receives a sentence when a file or gateway fails, and when it works again.
        keeps_file: whether the text file stays at the end: results that stay true, not the state of a process.

    Raises:
        EndpointError: the address cannot be listened on.
        OutputError: the file cannot be written.
    """
    listener: socket.socket | None = None if plan.listen is None else listen_for_scrapes(*plan.listen)
    async with contextlib.AsyncExitStack() as stack:
        deliveries: list[_Delivery] = []
        if listener is not None:
            stack.callback(listener.close)
            await stack.enter_async_context(ScrapeServer(listener, encode))
        if plan.textfile is not None:
            path = Path(plan.textfile)
            await _write_first(path, encode)
            if not keeps_file:
                stack.callback(_remove, path)
            write = _Delivery(lambda: _write(path, encode), f"the metrics in {path}", notice, renewal_s=RENEWAL_S)
            deliveries.append(await stack.enter_async_context(write))
        if plan.push is not None:
            gateway, target = parse_gateway(plan.push), group_path(dict(group))
            send = _Delivery(lambda: _push(gateway, target, encode), f"the metrics at {gateway.authority}", notice)
            deliveries.append(await stack.enter_async_context(send))
            send.request()
        yield Publication(None if listener is None else scrape_url(listener), deliveries)


async def _write_first(path: Path, encode: Encode) -> None:
    try:
        await _write(path, encode)
    except OSError as error:
        raise OutputError(f"the metrics cannot be written to {path}: {explain_os_error(error)}") from error


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


async def _write(path: Path, encode: Encode) -> None:
    text = encode("")[0].decode()
    await asyncio.to_thread(write_atomically, path, text, mode=_PUBLIC_FILE_MODE)  # it waits for the disk


async def _push(gateway: Gateway, target: str, encode: Encode) -> None:
    body, content_type = encode("")
    await push(gateway, target, body, content_type)


class _Delivery:
    """Delivers in the background what was requested while its `async with` block lasts; requests that wait are one.

    Args:
        deliver: delivers once; raises OSError or OutputError.
        what: what is delivered, for notices.
        notice: receives them.
        renewal_s: delivers without a request after this time; None for never.
    """

    def __init__(
        self,
        deliver: Callable[[], Awaitable[None]],
        what: str,
        notice: Callable[[str], None],
        *,
        renewal_s: float | None = None,
    ) -> None:
        self._deliver = deliver
        self._what = what
        self._notice = notice
        self._renewal_s = renewal_s
        self.is_renewed = renewal_s is not None
        self._is_requested = asyncio.Event()
        self._failures = 0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Begin."""
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Deliver what is still to be delivered, in _LAST_DEADLINE_S at most."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.wait([self._task])
        if self._is_requested.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_DEADLINE_S):
                    await self._try()

    def request(self) -> None:
        """Have the newest metrics delivered soon."""
        self._is_requested.set()

    async def _run(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._renewal_s):
                    await self._is_requested.wait()
            self._is_requested.set()  # until it is delivered
            if await self._try():
                await asyncio.sleep(_PAUSE_S)
            else:
                await asyncio.sleep(min(_LAST_RETRY_S, _FIRST_RETRY_S * 2 ** (self._failures - 1)))

    async def _try(self) -> bool:
        """Deliver once; return whether it worked. A request that comes meanwhile is for the next delivery."""
        self._is_requested.clear()
        try:
            await self._deliver()
        except asyncio.CancelledError:
            self._is_requested.set()
            raise
        except (OSError, OutputError) as error:
            self._is_requested.set()
            reason = explain_os_error(error) if isinstance(error, OSError) else str(error)
            if not self._failures:
                self._notice(f"{self._what} are not up to date: {reason}; it is tried again")
            self._failures = min(self._failures + 1, 30)
            return False
        if self._failures:
            self._notice(f"{self._what} are up to date again")
        self._failures = 0
        return True
