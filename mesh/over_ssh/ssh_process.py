"""A scheduler or worker of Dask on a host that ssh reaches, as a process of a SpecCluster.

Dask's own process (`distributed.deploy.ssh`) writes its whole configuration into a command line. Every user of the
host can read that, so the cluster's private key must not be there.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import asyncssh
from distributed.core import Status
from distributed.deploy.ssh import Process

from ...engine.model.errors import ClusterError, explain_os_error
from ..cluster import SCHEDULER_CLASS, WORKER_CLASS

_START_DEADLINE_S: Final = 60.0  # a busy host takes some seconds to import Dask
_KEPT_LINES: Final = 5


class SshProcess(Process):
    """One process: `start` logs in, starts it, and returns once it has printed its address.

    Args:
        host: the host's name for ssh.
        login: further arguments of `asyncssh.connect`.
        python: the interpreter there.
        order: the order for `dask_process`, without the arguments.
        arguments: the arguments of the process.
    """

    DASK_CLASS: str
    SIGN: str
    """The process prints this before its address."""

    def __init__(
        self,
        host: str,
        login: Mapping[str, Any],
        python: str,
        order: Mapping[str, Any],
        arguments: Sequence[str] = (),
    ) -> None:
        super().__init__()  # pyright: ignore[reportUnknownMemberType] (Dask's has no types)
        self.address = host
        self._host, self._login, self._python = host, login, python
        self._order = {**order, "arguments": list(arguments)}

    async def start(self) -> None:
        """Start the process. Raises ClusterError, TimeoutError, or an error of asyncssh."""
        async with asyncio.timeout(_START_DEADLINE_S):
            self.connection = await asyncssh.connect(self._host, **self._login)
            command = f"{self._python} -P -m linkgauge.mesh.over_ssh.dask_process"
            self.proc = await self.connection.create_process(command, errors="replace")
            self.proc.stdin.write(json.dumps(self._order) + "\n")
            self.address = await self._read_address()
        await super().start()

    async def _read_address(self) -> str:
        lines: list[str] = []
        while line := await self.proc.stderr.readline():
            _, sign, address = line.partition(self.SIGN)
            if sign:
                return address.strip()
            lines = [*lines, line.strip()][-_KEPT_LINES:]
        raise ClusterError(f"{self._host}: {next((each for each in reversed(lines) if each), 'it ended')}")


class SshScheduler(SshProcess):
    """The scheduler."""

    DASK_CLASS = SCHEDULER_CLASS
    SIGN = "Scheduler at:"

    async def start(self) -> None:
        """Start the scheduler. Raises ClusterError also for an error of the system, which Dask would quote."""
        try:
            await super().start()
        except TimeoutError as error:
            raise ClusterError(f"{self._host}: no answer within {_START_DEADLINE_S:g} s") from error
        except OSError as error:
            raise ClusterError(f"{self._host}: {explain_os_error(error, self._host)}") from error


class SshWorker(SshProcess):
    """A worker. SpecCluster passes the scheduler's address, and a name that the order has already.

    If it does not start, `problem` says why. SpecCluster then takes it as started: it would give up all workers.
    """

    DASK_CLASS = WORKER_CLASS
    SIGN = "worker at:"

    def __init__(self, scheduler: str, *, name: str, **options: Any) -> None:
        super().__init__(**options, arguments=[scheduler])
        self.name = name
        self.problem: str | None = None

    async def start(self) -> None:
        """Start the worker, or note why it did not."""
        try:
            await super().start()
        except TimeoutError:
            self.problem = f"its Dask worker did not start within {_START_DEADLINE_S:g} s"
        except (OSError, ValueError, ClusterError, asyncssh.Error) as error:
            reason = explain_os_error(error, self._host) if isinstance(error, OSError) else error
            self.problem = f"its Dask worker did not start: {reason}"
        if self.problem is not None:
            await self.close()
            self.status = Status.running
