"""The check of a mesh on workers of Dask: usable hosts, a host without a worker, answers that make no sense."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
from distributed import Scheduler, Worker
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.mesh.check import mesh_check
from linkgauge.mesh.check.mesh_check import MeshCheck, check_mesh
from linkgauge.mesh.events import FailureCode
from linkgauge.mesh.plan import Cell, Host, MeshPlan

NAMES = ("db-1", "db-2")


@pytest.fixture
async def scheduler() -> AsyncIterator[str]:
    """Give the address of a scheduler with two workers, all in this process."""
    async with AsyncExitStack() as stack:
        scheduler = await stack.enter_async_context(Scheduler(host="127.0.0.1", port=0, dashboard=False))
        for number, name in enumerate(NAMES, 41):
            settings: dict[str, Any] = {"nthreads": 1, "resources": {"nic": 1}, "memory_limit": 0}
            worker = Worker(scheduler.address, host=f"127.0.0.{number}", name=name, dashboard=False, **settings)
            await stack.enter_async_context(worker)
        yield scheduler.address


async def check(scheduler: str, *names: str) -> MeshCheck:
    """Check hosts."""
    hosts = tuple(Host(name, "rack-1") for name in names)
    return await check_mesh(MeshPlan("mesh-test", hosts, Plan(duration_ns=SECOND_NS)), scheduler)


async def test_hosts_that_reach_each_other_are_usable_and_one_without_a_worker_is_named(scheduler: str) -> None:
    """In the order in which they were given, with their groups. A failure of one does not keep the others back."""
    result = await check(scheduler, "db-9", *NAMES)
    assert [each.host for each in result.hosts] == [
        Host("db-9", "rack-1"),
        Host("db-1", "rack-1", "127.0.0.41"),
        Host("db-2", "rack-1", "127.0.0.42"),
    ]
    assert [each.failure and each.failure.code for each in result.hosts] == [FailureCode.HOST_LOST, None, None]
    assert all(each.python and each.port for each in result.hosts[1:])
    assert [(path.cell, path.failure) for path in result.paths] == [
        (Cell(*NAMES), None),
        (Cell(*NAMES[::-1]), None),
    ]
    assert not result.is_usable


async def test_a_single_host_is_told_from_one_that_fails(scheduler: str) -> None:
    """Fewer than two are no mesh, but each has its own line all the same."""
    result = await check(scheduler, "db-1", "db-9")
    assert [each.failure and each.failure.code for each in result.hosts] == [None, FailureCode.HOST_LOST]
    assert not result.is_usable


async def answer_nonsense(_mesh_id: str, address: str, _targets: object) -> Any:
    """Answer like a hostile worker."""
    if address.endswith("41"):
        return {"python": "3.11\x1b[2J" * 100_000, "problems": ["\x1b]0;title\x07" * 100_000]}
    return {"python": 3, "problems": [None, None, None]}


async def test_answers_that_make_no_sense_are_bounded_and_named(
    scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a worker sends is text of a stranger."""
    monkeypatch.setattr(mesh_check, "reach_endpoints", answer_nonsense)
    first, second = (await check(scheduler, *NAMES)).hosts
    assert first.python is not None
    assert len(first.python) <= 40
    assert first.python.isprintable()
    assert second.failure is not None
    assert second.failure.detail == "it sent an answer that cannot be read"
