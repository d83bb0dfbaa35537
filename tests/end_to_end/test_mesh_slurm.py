"""A mesh of the nodes of a real SLURM, whose jobs run Dask's workers."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .mesh_hosts import StreamedCommand
from .slurm_nodes import SlurmNodes

NODES = 3


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[SlurmNodes]:
    """Give three nodes with a worker each."""
    made = SlurmNodes(NODES, tmp_path)
    yield made
    made.close()


@pytest.mark.every
@pytest.mark.timeout(300)
def test_the_nodes_of_a_slurm_measure_each_other(nodes: SlurmNodes, tmp_path: Path) -> None:
    """Each is a host with the name of its job; afterwards no job is left."""
    environment = {**nodes.environment, "LINKGAUGE_DATA_DIR": str(tmp_path / "data")}
    words = ("--scheduler", nodes.scheduler, "--seconds", "0.5", "--rate", "20M", "--preset", "none")
    command = StreamedCommand(nodes.hosts, environment, *words)
    document: dict[str, Any] = {}
    while (line := command.line()) is not None:
        document = json.loads(line).get("summary", document)
    status, errors = command.finish()
    assert document.get("is_complete"), errors
    assert len(document["cells"]) == NODES * (NODES - 1)
    assert {host["name"] for host in document["hosts"]} == {f"SLURMCluster-{number}" for number in range(NODES)}
    addresses = {nodes.hosts.address(name) for name in nodes.hosts.entries}
    assert {host["address"] for host in document["hosts"]} == addresses
    assert status in {0, 1}, errors
    nodes.end_cluster()
    assert not nodes.ask("squeue", "-h", "-t", "running").strip()
