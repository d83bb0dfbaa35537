"""The embedded endpoint: a child process that ends with its block, and one that does not start."""

import asyncio
import os
import sys

import pytest
from linkgauge.engine.far.loopback import embedded_endpoint
from linkgauge.engine.model.errors import WorkerError
from linkgauge.engine.near.connect import query_host_info

from ..child_processes import children_of

DEADLINE_S = 30.0


async def test_an_embedded_endpoint_answers_and_ends_with_its_block() -> None:
    """It has a free port of loopback."""
    before = children_of(os.getpid())
    async with asyncio.timeout(DEADLINE_S), embedded_endpoint() as peer:
        assert peer.host == "127.0.0.1"
        assert (await query_host_info(peer)).hostname
        assert len(children_of(os.getpid())) == len(before) + 1
    assert children_of(os.getpid()) == before


async def test_an_endpoint_that_does_not_start_is_an_error_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its output is not a port."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(WorkerError, match="try `linkgauge endpoint`"):
        async with asyncio.timeout(DEADLINE_S), embedded_endpoint():
            pass
