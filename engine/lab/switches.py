"""The switches of emulated hosts: bridges, the links of hosts to them, and trunks between them.

All is made in this process's namespace, except a host's own end of its link. What leaves by a device is limited by
the device's queue: that of a host limits what the host sends, that of its port at the switch what it receives.
"""

from typing import Final

from .devices import configure_device, create_veth_pair, disable_offloads, run_tool, shape_device
from .link_spec import LabLink
from .mesh_spec import MESH_PREFIX_BITS, LabHost, LabTrunk
from .namespaces import NetworkNamespace

HOST_DEVICE: Final = "eth0"


def create_switch(name: str, address: str | None = None) -> None:
    """Make a switch; with an address, this namespace is connected to it without a limit."""
    run_tool("ip", "link", "add", name, "type", "bridge", "stp_state", "0", "mcast_snooping", "0")
    disable_offloads(name)
    if address is not None:
        run_tool("ip", "link", "set", "lo", "up")
        run_tool("ip", "address", "add", f"{address}/{MESH_PREFIX_BITS}", "dev", name)
    run_tool("ip", "link", "set", name, "up")


def connect_host(host: LabHost, namespace: NetworkNamespace, address: str, switch: str, port: str) -> list[str]:
    """Connect a host's namespace to a port of a switch; return notes for a person."""
    create_veth_pair(port, HOST_DEVICE, namespace)
    _plug_in(port, switch, host.receives)
    with namespace.enter():
        return configure_device(HOST_DEVICE, address, host.sends.mtu_bytes, host.sends, MESH_PREFIX_BITS)


def connect_switches(trunk: LabTrunk, switch: str, hub: str, devices: tuple[str, str]) -> None:
    """Connect a rack's switch to the one in the middle, with these devices at them."""
    create_veth_pair(*devices)
    _plug_in(devices[0], switch, trunk.sends)
    _plug_in(devices[1], hub, trunk.receives)


def _plug_in(device: str, switch: str, link: LabLink) -> None:
    run_tool("ip", "link", "set", device, "master", switch)
    shape_device(device, link.mtu_bytes, link)
