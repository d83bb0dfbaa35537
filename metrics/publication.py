"""The publication of metrics: by a server for scrapes, in a text file, through a gateway.

A file or gateway that fails stops nothing. A notice says so once, the retries come at growing intervals, and
another notice says when it works again.
"""

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Self

from ..engine.host.saved_files import write_atomically
from ..engine.model.errors import OutputError, PlanError, explain_os_error
from .families import Reading
from .push_gateway import group_path, parse_gateway, push
from .scrape_server import ScrapeServer, listen_for_scrapes, scrape_url

SUFFIX: Final = ".prom"
RENEWAL_S: Final = 15.0
"""The maximum age of a text file: the usual interval of Prometheus' scrapes."""
_PAUSE_S: Final = 1.0
_FIRST_RETRY_S: Final = 1.0
_LAST_RETRY_S: Final = 300.0
_PUBLIC_FILE_MODE: Final = 0o644  # its collector runs as another user
_LAST_DEADLINE_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class PublishingPlan:
    """The destinations of metrics.

    Args:
        listen: the address and port of the server; port 0 takes a free one; None without a server.
        textfile: a file for node_exporter's collector; None without one.
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
    """Published metrics; `open_publication` makes them. Call `changed` after a change.

    `url` is the address that Prometheus scrapes; None without a server.
    """

    url: str | None
    _deliveries: Sequence["_Delivery"]

    def changed(self, *, is_result: bool = True) -> None:
        """Note a change. Without a result of a test, as after a probe, it renews the file and is not pushed."""
        for delivery in self._deliveries:
            if is_result or delivery.renewal_s is not None:
                delivery.is_due.set()


@contextlib.asynccontextmanager
async def open_publication(
    plan: PublishingPlan,
    read: Callable[[], Iterable[Reading]],
    group: Mapping[str, str],
    notice: Callable[[str], None],
    *,
    keeps_file: bool,
) -> AsyncGenerator[Publication]:
    """Publish metrics while the block lasts.

    Args:
        plan: their destinations.
        read: returns them as they are now.
        group: the labels of their group at a gateway, beside the job.
        notice: receives a sentence when a file or gateway fails, and when it works again.
        keeps_file: whether the text file stays at the end: yes for results, no for the state of a process.

    Raises:
        EndpointError: the address cannot be listened on.
        OutputError: the file cannot be written.
    """
    from .exposition import encode  # here: a plan alone does not need prometheus_client

    def render(accept: str = "") -> tuple[bytes, str]:
        return encode(read(), accept)

    listener: socket.socket | None = None if plan.listen is None else listen_for_scrapes(*plan.listen)
    async with contextlib.AsyncExitStack() as stack:
        deliveries: list[_Delivery] = []
        if listener is not None:
            stack.callback(listener.close)
            await stack.enter_async_context(ScrapeServer(listener, render))
        if plan.textfile is not None:
            path = Path(plan.textfile)
            await _write_first(path, render()[0])
            if not keeps_file:
                stack.callback(_remove, path)
            name = f"the metrics in {path}"
            file = _Delivery(lambda: _write(path, render()[0]), name, notice, renewal_s=RENEWAL_S)
            deliveries.append(await stack.enter_async_context(file))
        if plan.push is not None:
            gateway, target = parse_gateway(plan.push), group_path(dict(group))
            send = _Delivery(
                lambda: push(gateway, target, *render()), f"the metrics at {gateway.authority}", notice
            )
            deliveries.append(await stack.enter_async_context(send))
            send.is_due.set()
        yield Publication(None if listener is None else scrape_url(listener), deliveries)


async def _write_first(path: Path, text: bytes) -> None:
    """Write the file once, before a test begins; raise OutputError if that fails."""
    try:
        await _write(path, text)
    except OSError as error:
        raise OutputError(f"the metrics cannot be written to {path}: {explain_os_error(error)}") from error


async def _write(path: Path, text: bytes) -> None:
    # In a thread: it waits for the disk.
    await asyncio.to_thread(write_atomically, path, text.decode(), mode=_PUBLIC_FILE_MODE)


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


class _Delivery:
    """Delivers in the background while its `async with` block lasts, once for all changes that wait.

    Set `is_due` after a change.

    Args:
        deliver: delivers once; raises OSError or OutputError.
        what: the delivered thing, for notices.
        notice: receives the notices.
        renewal_s: it also delivers after this time without a change; None for never.
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
        self.renewal_s = renewal_s
        self.is_due = asyncio.Event()
        self._failures = 0
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Begin."""
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(self, *_: object) -> None:
        """Deliver once more if it is due, in _LAST_DEADLINE_S at most."""
        if self._task is None:
            return
        self._task.cancel()
        await asyncio.wait([self._task])
        if self.is_due.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LAST_DEADLINE_S):
                    await self._try()

    async def _run(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self.renewal_s):
                    await self.is_due.wait()
            self.is_due.set()  # until it is delivered
            if await self._try():
                await asyncio.sleep(_PAUSE_S)
            else:
                await asyncio.sleep(min(_LAST_RETRY_S, _FIRST_RETRY_S * 2 ** (self._failures - 1)))

    async def _try(self) -> bool:
        """Deliver once; return whether it worked. A change during the delivery is for the next one."""
        self.is_due.clear()
        try:
            await self._deliver()
        except asyncio.CancelledError:
            self.is_due.set()
            raise
        except (OSError, OutputError) as error:
            self.is_due.set()
            reason = explain_os_error(error) if isinstance(error, OSError) else str(error)
            if not self._failures:
                self._notice(f"{self._what} are not up to date: {reason}; linkgauge tries again")
            self._failures = min(self._failures + 1, 30)
            return False
        if self._failures:
            self._notice(f"{self._what} are up to date again")
        self._failures = 0
        return True
