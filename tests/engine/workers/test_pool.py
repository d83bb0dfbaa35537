"""A pool that closes while a session arrives."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import WorkerError
from linkgauge.engine.model.plan import Plan, Settings
from linkgauge.engine.workers.ipc import AdoptSession
from linkgauge.engine.workers.pool import WorkerPool
from linkgauge.engine.workloads.session_handshake import SessionSpec

from ..child_processes import children_of

pytestmark = [
    pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="children are read from /proc"),
]


@pytest.mark.parametrize("turns", [1, 3])
async def test_a_session_that_arrives_while_the_run_ends_leaves_no_worker(turns: int) -> None:
    """Its worker may be half started when all the others end: it ends as well, and the call raises."""
    before = children_of(os.getpid())

    def ignore(_: Any) -> None:
        """Ignore an event."""

    async with asyncio.timeout(30):
        async with WorkerPool(End.FAR, Plan(Settings(), workers=2), ignore, ignore) as pool:
            command = AdoptSession(SessionSpec(Direction.IN, 1, 0, None, ""))
            late = asyncio.create_task(pool.send_command(command))
            for _ in range(turns):
                await asyncio.sleep(0)
        with pytest.raises(WorkerError, match="the test has ended"):
            await late
        with pytest.raises(WorkerError, match="the test has ended"):
            await pool.send_command(command)
    assert children_of(os.getpid()) == before
