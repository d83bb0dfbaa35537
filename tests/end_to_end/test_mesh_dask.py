"""Meshes on scheduler and workers that Dask's own commands have started: whole ones, and with a host less."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ..json_schemas import check
from .mesh_hosts import DaskHosts, StreamedCommand

HOSTS = 8
LOST = "host-3"


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[DaskHosts]:
    """Give eight hosts with a worker each."""
    made = DaskHosts(HOSTS, tmp_path)
    yield made
    made.close()


def measure(
    hosts: DaskHosts, folder: Path, in_the_middle: Callable[[], None] | None = None
) -> tuple[int, dict[str, Any], str]:
    """Measure a mesh; in the third of its rounds, do something. Return status, document and words for people."""
    environment = {**os.environ, "LINKGAUGE_DATA_DIR": str(folder / "data")}
    words = ("--scheduler", hosts.scheduler, "--seconds", "0.5", "--rate", "20M", "--preset", "none")
    command = StreamedCommand(hosts, environment, *words)
    document: dict[str, Any] = {}
    while (line := command.line()) is not None:
        item = json.loads(line)
        if in_the_middle is not None and item["type"] == "mesh_round" and item["number"] == 3:
            in_the_middle()
        document = item.get("summary", document)
    status, errors = command.finish()
    check("mesh.schema.json", document)
    return status, document, errors


def check_that_one_is_lost(status: int, document: dict[str, Any], errors: str) -> None:
    """Check that some cells of the lost host have no result, with the reason, and that all others have one."""
    without = [cell for cell in document["cells"] if cell["failure"] is not None]
    assert len(document["cells"]) == HOSTS * (HOSTS - 1), errors
    assert 4 <= len(without) <= 2 * (HOSTS - 1)
    for cell in without:
        assert LOST in (cell["sender"], cell["receiver"]), cell
        assert cell["failure"]["detail"]
    assert not document["is_complete"]
    assert f"{LOST}: " in errors
    assert "to measure the missing cells: linkgauge mesh --resume" in errors
    assert status == 3, errors


@pytest.mark.every
@pytest.mark.timeout(240)
def test_a_mesh_over_dasks_own_commands_has_every_cell_under_the_workers_names(
    hosts: DaskHosts, tmp_path: Path
) -> None:
    """The hosts' addresses are those that the workers have."""
    status, document, errors = measure(hosts, tmp_path)
    assert {(host["name"], host["address"]) for host in document["hosts"]} == {
        (name, hosts.address(name)) for name in hosts.entries
    }
    assert document["is_complete"], errors
    assert len(document["cells"]) == HOSTS * (HOSTS - 1)
    assert status in {0, 1}, errors  # a busy machine may make one slower than the others


@pytest.mark.every
@pytest.mark.timeout(240)
def test_a_worker_that_is_killed_costs_its_own_cells(hosts: DaskHosts, tmp_path: Path) -> None:
    """With the process that would start it again."""
    check_that_one_is_lost(*measure(hosts, tmp_path, lambda: hosts.kill(hosts.workers[LOST])))


@pytest.mark.every
@pytest.mark.timeout(240)
def test_a_host_whose_cable_is_pulled_costs_its_own_cells(hosts: DaskHosts, tmp_path: Path) -> None:
    """Its worker lives on, and nobody hears of it."""
    check_that_one_is_lost(*measure(hosts, tmp_path, lambda: hosts.cut(LOST)))
