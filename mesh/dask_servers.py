"""Dask's scheduler and worker without HTTP, for a mesh that starts its own cluster.

Dask's `dask_spec` makes them by their names. Dask's own classes always serve HTTP without a login: logs, counts, a
proxy to other hosts. `dashboard: False` only takes the pages away. No setting of Dask leaves the server out.
"""

from pathlib import Path
from typing import Any

from distributed import Scheduler, Worker


class _WithoutHttp:
    """A server of Dask that listens for its cluster alone."""

    def start_http_server(self, *_arguments: object, **_options: object) -> None:
        """Start none."""


class MeshScheduler(_WithoutHttp, Scheduler):
    """A scheduler without HTTP."""


class MeshWorker(_WithoutHttp, Worker):
    """A worker without HTTP. It creates `ready_file`, if given, once the scheduler knows it."""

    def __init__(self, *arguments: Any, ready_file: str | None = None, **options: Any) -> None:
        super().__init__(*arguments, **options)  # pyright: ignore[reportUnknownMemberType] (no types)
        self._ready_file = None if ready_file is None else Path(ready_file)

    async def start_unsafe(self) -> Any:
        """Start, register with the scheduler, and create the file."""
        await super().start_unsafe()
        if self._ready_file is not None:
            self._ready_file.touch()
        return self
