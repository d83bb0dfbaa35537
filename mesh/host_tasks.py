"""What a Dask worker does for a mesh on its host: its endpoint, its cells, and the hold on its interface.

Each function is a coroutine that the worker's own event loop runs: none blocks it, and none takes a thread. Short
ones are for `Client.run`; `run_cell` and `hold_interface` are tasks, submitted with a `key` that is their own
`task_key`. Dask does not interrupt a task that runs when it is cancelled: these two look for it themselves, and
`stop_cells` and `close_host` end them at once.

All processes are children that end with their standard input, and so with the worker.
"""

from dataclasses import dataclass

from ..engine.model.peer import SharedKey
from ..engine.model.plan import Plan


@dataclass(frozen=True, slots=True)
class CellRequest:
    """A run to carry out on the near host of a pair.

    Args:
        mesh_id: the mesh, whose key `open_host` has brought.
        address: the near host's own address, as `open_host` got it.
        peer_address: the far host's address.
        peer_port: the port of the far host's endpoint, as its `open_host` returned it.
        plan: the run, with its direction as the near host sees it.
        seconds: after so many the run is given up, whatever it does.
        task_key: the key under which Dask runs it; None where it is no task.
    """

    mesh_id: str
    address: str
    peer_address: str
    peer_port: int
    plan: Plan
    seconds: float
    task_key: str | None = None


async def open_host(mesh_id: str, key: SharedKey, address: str, version: str) -> int:
    """Start this host's endpoint for a mesh on a free port of an address, and return the port.

    An endpoint that it had for the same mesh and address ends before. The endpoint ends by itself where
    `renew_host` is not called for 60 s, and all of the mesh's on this host ends with it.

    Raises EndpointError where this host has another version of linkgauge, or the endpoint does not start.
    """
    raise NotImplementedError


async def renew_host(mesh_id: str, address: str) -> bool:
    """Keep this host's endpoint for 60 s more; return whether it still runs. Call it every 15 s."""
    raise NotImplementedError


async def close_host(mesh_id: str, address: str) -> None:
    """End the endpoint, the cells and the holds of a mesh on this host. No effect where there are none."""
    raise NotImplementedError


async def run_cell(request: CellRequest) -> list[str]:
    """Carry out a run from this host and return its events, one JSON text each (`encode_tagged`), in order.

    Where there is no run, the last line is `{"error": TEXT, "code": CODE, "end": END}` instead: CODE is a
    `FailureCode`, END is `near`, `far` or null, the end at fault. It raises nothing of its own. The lines have at
    most `MAX_CELL_BYTES` together.
    """
    raise NotImplementedError


async def stop_cells(mesh_id: str, address: str) -> None:
    """End the runs that this host's cells of a mesh have; each then returns an error line of code `stopped`."""
    raise NotImplementedError


async def hold_interface(mesh_id: str, address: str, hold_id: str, seconds: float) -> bool:
    """Occupy this task's resources until `release_interface` is called; return whether it was.

    False says that the time was up, the task was cancelled, or the host was closed. `hold_id` is the task's key.
    """
    raise NotImplementedError


async def await_hold(mesh_id: str, address: str, hold_id: str, seconds: float) -> bool:
    """Return True as soon as the hold has begun on this host, False where it has not after so many seconds.

    It is for `Client.run`: the coordinator learns so that the far host's interface is taken.
    """
    raise NotImplementedError


async def release_interface(mesh_id: str, address: str, hold_id: str) -> None:
    """End a hold. No effect where there is none."""
    raise NotImplementedError
