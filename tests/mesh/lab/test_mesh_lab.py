"""Emulated hosts for real: their links, their racks, and a Dask worker on each."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from linkgauge.engine.model.errors import LabUnavailable
from linkgauge.mesh.lab.mesh_lab import MeshLab, open_mesh_lab

from ...engine.lab.labs import DEADLINE_S, lab_hosts, network_of

CONNECT = "import socket, sys; print(socket.create_connection((sys.argv[1], int(sys.argv[2])), 5).getsockname()[0])"
SCHEDULER_INFO = """
import json, sys
from distributed import Client
with Client(sys.argv[1], timeout=10, set_as_default=False) as client:
    workers = client.scheduler_info(n_workers=-1)["workers"]
print(json.dumps({w["name"]: [address, w["nthreads"], w["resources"]] for address, w in workers.items()}))
"""


@pytest.fixture(scope="module")
def lab() -> Iterator[MeshLab]:
    """Give a lab of three hosts in two racks; skip with the reason if there cannot be one."""
    try:
        with open_mesh_lab(lab_hosts("left", "left", "right")) as built:
            if not built.is_emulated:
                pytest.skip(" ".join(built.notes))
            yield built
    except LabUnavailable as error:
        pytest.skip(str(error))


def output(command: list[str]) -> str:
    """Return the output of a command."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def registered(lab: MeshLab) -> dict[str, tuple[str, int, dict[str, float]]]:
    """Return the address, threads and resources of each worker of the scheduler."""
    return json.loads(output(lab.near_end_command([sys.executable, "-c", SCHEDULER_INFO, lab.scheduler])))


def test_each_host_has_a_worker_that_lends_its_interface(
    lab: MeshLab, registered: dict[str, tuple[str, int, dict[str, float]]]
) -> None:
    """By the host's name, at its address, as soon as the lab is up."""
    assert sorted(registered) == ["a", "b", "c"]
    for name, (address, threads, resources) in registered.items():
        assert address.startswith(f"tcp://{lab.spec.address(name)}:")
        assert threads == 2
        assert resources == {"nic": 1}


def test_each_worker_is_in_a_namespace_of_its_own(lab: MeshLab) -> None:
    """The rest of the lab is in another one."""
    networks = {network_of(pid) for pid in lab.workers.values()}
    assert len(networks) == 3
    assert network_of(lab.keeper_pid) not in networks


def test_hosts_reach_each_other_within_and_across_racks(
    lab: MeshLab, registered: dict[str, tuple[str, int, dict[str, float]]]
) -> None:
    """By their own addresses: two hosts of one rack, and two of different racks."""
    for here, there in (("a", "b"), ("c", "a")):
        host, _, port = registered[there][0].removeprefix("tcp://").partition(":")
        own = output(lab.host_command(here, [sys.executable, "-c", CONNECT, host, port])).strip()
        assert own == lab.spec.address(here)


@pytest.mark.every
def test_a_hosts_queue_limits_what_it_sends_and_its_port_what_it_receives(lab: MeshLab) -> None:
    """100 and 50 Mb/s here, single packets, the frame's overhead counted."""
    for name in lab.workers:
        queue = output(lab.host_command(name, ["tc", "qdisc", "show", "dev", "eth0"]))
        assert "rate 100Mbit" in queue
        assert "overhead 24" in queue
        assert " gso_max_segs 1 " in output(lab.host_command(name, ["ip", "-d", "link", "show", "eth0"]))
    ports = output(lab.near_end_command(["tc", "qdisc", "show"])).splitlines()
    assert sum("dev port" in line and "rate 50Mbit" in line for line in ports) == 3


@pytest.mark.every
def test_racks_are_joined_by_trunks_with_queues_of_their_own(lab: MeshLab) -> None:
    """200 Mb/s away from a rack, 100 Mb/s towards it."""
    queues = output(lab.near_end_command(["tc", "qdisc", "show"])).splitlines()
    assert sum("dev up" in line and "rate 200Mbit" in line for line in queues) == 2
    assert sum("dev down" in line and "rate 100Mbit" in line for line in queues) == 2
    links = output(lab.near_end_command(["ip", "-o", "link"])).splitlines()
    names = [line.split(": ")[1].partition("@")[0] for line in links]
    switches = [line.partition("master ")[2].split(" ")[0] for line in links]
    assert {name: switch for name, switch in zip(names, switches, strict=True) if switch} == {
        "port0": "rack0",
        "port1": "rack0",
        "port2": "rack1",
        "up0": "rack0",
        "up1": "rack1",
        "down0": "hub0",
        "down1": "hub0",
    }


@pytest.mark.every
def test_tests_in_the_lab_know_that_offloads_are_off_on_purpose(lab: MeshLab) -> None:
    """On the hosts, where the workers start them, and beside the scheduler."""
    for pid in (*lab.workers.values(), lab.keeper_pid):
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        assert b"LINKGAUGE_LAB_OFFLOADS_OFF=1" in environment
    assert lab.run(["sh", "-c", '[ "$LINKGAUGE_LAB_OFFLOADS_OFF" = 1 ]']) == 0
