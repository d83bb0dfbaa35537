"""A lab whose near end is a token bucket with a queue of one packet: it drops what exceeds it, as a policer does.

The client has a namespace of its own before the lab's near end, which forwards: a sender learns of drops in its own
host, and would not lose what it sends into a queue there.
"""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from linkgauge.engine.lab.devices import FAR_DEVICE, NEAR_DEVICE, disable_offloads
from linkgauge.engine.lab.link_lab import Lab
from linkgauge.engine.lab.link_spec import NEAR_ADDRESS
from linkgauge.engine.lab.namespaces import NetworkNamespace

from .namespaces import Namespaces, run_within

_CLIENT, _GATEWAY, _NETWORK = "198.19.77.2", "198.19.77.1", "198.19.77.0/24"
_QUEUE_BYTES = 1_600


def _entry(pid: int) -> list[str]:
    """Return what command lines begin with to run in the network namespace of a process."""
    return ["nsenter", "-t", str(pid), "-n"]


def _endpoint_pid(lab: Lab) -> int:
    """Return a process of the lab's far namespace."""
    children = Path(f"/proc/{lab.keeper_pid}/task/{lab.keeper_pid}/children").read_text(encoding="ascii").split()
    for child in children:
        if b"engine.far.loopback" in Path(f"/proc/{child}/cmdline").read_bytes():
            return int(child)
    raise AssertionError("the lab's endpoint is not there")


@contextmanager
def policed(lab: Lab, mbit_s: float, burst_bytes: int) -> Iterator[list[str]]:
    """Police what leaves the near end of a lab; give what a command line begins with to run at the client."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "tc", "nsenter", "unshare"))):
        pytest.skip("a policed link needs root, iproute2, nsenter and unshare")
    client = Namespaces(1)  # a process holds it: this one stays in its own
    try:
        _connect(lab, client)
        near = _entry(lab.keeper_pid)
        bucket = ("rate", f"{mbit_s}mbit", "burst", str(burst_bytes), "limit", str(_QUEUE_BYTES))
        run_within(near, "tc", "qdisc", "replace", "dev", NEAR_DEVICE, "root", "tbf", *bucket)
        yield client.entries[0]
    finally:
        client.close()


def _connect(lab: Lab, client: Namespaces) -> None:
    """Connect the client to the lab's near end, which forwards what it sends."""
    near, inside, pid = _entry(lab.keeper_pid), client.entries[0], client.pids[0]
    run_within(near, "ip", "link", "add", "gate0", "type", "veth", "peer", "name", "client0", "netns", pid)
    run_within(near, "ip", "address", "add", f"{_GATEWAY}/24", "dev", "gate0")
    run_within(near, "ip", "link", "set", "gate0", "up")
    run_within(near, "sysctl", "-qw", "net.ipv4.ip_forward=1")
    for line in (
        f"ip address add {_CLIENT}/24 dev client0",
        "ip link set client0 up",
        "ip link set lo up",
        f"ip route add default via {_GATEWAY}",
    ):
        run_within(inside, *line.split())
    with Path(f"/proc/{pid}/ns/net").open("rb") as namespace, NetworkNamespace(namespace.fileno()).enter():
        disable_offloads("client0")
    far = _entry(_endpoint_pid(lab))
    run_within(far, "ip", "route", "add", _NETWORK, "via", NEAR_ADDRESS, "dev", FAR_DEVICE)
