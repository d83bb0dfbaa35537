"""The fetch workload between two ends on loopback."""

from collections.abc import Callable
from typing import Any

import pytest
from linkgauge.engine.model.events import Reason
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import Mode
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.meter import replay

from .plans import plan_of

Recorder = Callable[..., Any]


@pytest.mark.parametrize("mode", list(Mode))
async def test_a_fetch_moves_payload_in_each_mode(far_end: Peer, record: Recorder, mode: Mode) -> None:
    """Copy, sendfile and discard carry the same answers."""
    recorded = await record(plan_of(Workload.FETCH, mode=mode, block_bytes=100_000), far_end)
    assert recorded.end.reason is Reason.COMPLETED
    total = replay(recorded.events).summary().measured.total
    assert total
    assert total.transactions
