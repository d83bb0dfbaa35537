"""Workers that are asked for at the wrong moment."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.model.errors import WorkerError
from linkgauge.engine.model.plan import Direction, End, Plan, Settings
from linkgauge.engine.workers.pool import WorkerPool

from ..child_processes import children_of

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="children are read from /proc"),
]


@pytest.mark.parametrize("turns", [1, 3])
async def test_a_session_that_comes_while_the_run_ends_leaves_no_worker_behind(turns: int) -> None:
    """Its worker may be half started when all the others are ended: it is ended as well, and that is said."""
    before = children_of(os.getpid())

    def heard(_: Any) -> None:
        """Take what a worker says."""

    async with asyncio.timeout(30):
        async with WorkerPool(End.FAR, Plan(Settings(), workers=2), heard, heard) as pool:
            command = {"command": "open", "generation": 0}
            late = asyncio.create_task(pool.send_command(Direction.IN, 1, command))
            for _ in range(turns):
                await asyncio.sleep(0)
        with pytest.raises(WorkerError, match="the run is over"):
            await late
        with pytest.raises(WorkerError, match="the run is over"):
            await pool.send_command(Direction.IN, 1, command)
    assert children_of(os.getpid()) == before
