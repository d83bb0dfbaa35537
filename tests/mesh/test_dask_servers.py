"""Dask's processes of a mesh listen for their cluster alone, each at its own address and one port."""

from linkgauge.engine.lab.hosts_spec import HUB_ADDRESS
from linkgauge.mesh.lab.mesh_lab import open_mesh_lab

from ..engine.lab.labs import lab_hosts
from .host_processes import children_of, command_of, listening_hosts


def test_the_processes_of_a_local_mesh_listen_once_each_at_their_own_address() -> None:
    """There is no HTTP server: it would have no login. Without namespaces the addresses are loopback's."""
    with open_mesh_lab(lab_hosts("left", "left")) as lab:
        listening = {name: listening_hosts(pid) for name, pid in lab.workers.items()}
        schedulers = [pid for pid in children_of(lab.keeper_pid) if "MeshScheduler" in command_of(pid)]
        listening["scheduler"] = [address for pid in schedulers for address in listening_hosts(pid)]
        own = {name: lab.spec.address(name) for name in lab.workers} | {"scheduler": HUB_ADDRESS}
        loopback = {"a": "127.0.0.2", "b": "127.0.0.3", "scheduler": "127.0.0.1"}
    assert listening == {name: [address] for name, address in (own if lab.is_emulated else loopback).items()}
