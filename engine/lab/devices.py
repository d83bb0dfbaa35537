"""The network devices of labs: addresses, MTU and queues with iproute2, offloads and TAP with ioctl.

A link has two of them. Emulated hosts have links to switches (bridges), and trunks join the switches. All of these
are made in this process's namespace, except a host's own end of its link. A device's queue limits the packets that
leave by it: the queue of a host's device limits the host's sending, the queue of its port at the switch its
receiving.
"""

import array
import contextlib
import errno
import fcntl
import logging
import os
import shutil
import socket
import struct
import subprocess
from ipaddress import ip_network
from pathlib import Path
from typing import Final

from ..model.errors import LabError, LabUnavailable, explain_resource_error
from .hosts_spec import MESH_PREFIX_BITS, LabHost, LabTrunk
from .link_spec import ETHERNET_HEADER_BYTES, PREFIX_BITS, LabLink
from .namespaces import NetworkNamespace

NEAR_DEVICE: Final = "near0"
FAR_DEVICE: Final = "far0"
HOST_DEVICE: Final = "eth0"
_DEADLINE_S: Final = 10.0
_SBIN: Final = "/usr/sbin:/sbin"  # Debian's place for them, which a user's PATH may lack
_PACKAGES: Final = {"ip": "iproute2", "tc": "iproute2"}
# linux/sockios.h, linux/ethtool.h: segmentation by the device, by the kernel, and joining of arriving packets.
_SIOCETHTOOL: Final = 0x8946
_OFFLOADS: Final = {"TSO": 0x1F, "GSO": 0x24, "GRO": 0x2C}
# linux/if_tun.h
_TUNSETIFF: Final = 0x400454CA
_TAP_WITHOUT_INFO: Final = 0x0002 | 0x1000
_CONGESTION: Final = Path("/proc/sys/net/ipv4/tcp_congestion_control")
_RETRIES: Final = Path("/proc/sys/net/ipv4/tcp_retries2")
_MAX_RETRIES: Final = "255"
_log = logging.getLogger(__name__)
_REMEDIES: Final = {
    "kind is unknown": "this kernel has no such queue: modprobe sch_tbf, or a kernel with CONFIG_NET_SCH_TBF",
    "Unknown device type": "this kernel has no veth: modprobe veth, or a kernel with CONFIG_VETH",
    "not permitted": "run it as root: this machine restricts the namespaces of users",
}
_OTHER_REMEDY: Final = "a lab needs Linux 5.4 and iproute2 5.4 or newer"


def check_tools(path: str | None = None) -> None:
    """Raise LabUnavailable, with the Debian package, if a tool is missing.

    Searches `path`, by default PATH and the directories of system tools.
    """
    missing = sorted(tool for tool in _PACKAGES if _find(tool, path) is None)
    if missing:
        packages = " ".join(sorted({_PACKAGES[tool] for tool in missing}))
        raise LabUnavailable(f"a lab needs {' and '.join(missing)}; on Debian: apt install {packages}")


def _find(tool: str, path: str | None = None) -> str | None:
    return shutil.which(tool, path=path or f"{os.environ.get('PATH', os.defpath)}:{_SBIN}")


def run_tool(tool: str, *arguments: str) -> None:
    """Run a tool to its end; raise LabError with its command line, its message, and a remedy.

    The error is LabUnavailable if this kernel lacks such links or forbids them.
    """
    _log.debug("%s %s", tool, " ".join(arguments))
    line = " ".join((tool, *arguments))
    try:
        result = subprocess.run(
            [_find(tool) or tool, *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_DEADLINE_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise LabError(f"`{line}` did not end in {_DEADLINE_S:g} s; try again on a less busy machine") from error
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError | PermissionError)
        why = explain_resource_error(error) + ("; reinstall iproute2" if is_missing else "")
        raise LabError(f"`{line}` could not be run: {why}") from error
    if result.returncode != 0:
        message = " ".join(result.stderr.split()) or f"exit status {result.returncode} without a message"
        remedy = next((text for sign, text in _REMEDIES.items() if sign in message), None)
        kind = LabError if remedy is None else LabUnavailable
        raise kind(f"`{line}` failed: {message}; {remedy or _OTHER_REMEDY}")


def create_veth_pair(here: str, there: str, namespace: NetworkNamespace | None = None) -> None:
    """Make two devices that are connected, one of them in the other namespace if one is given."""
    where = () if namespace is None else ("netns", namespace.path)
    run_tool("ip", "link", "add", here, "type", "veth", "peer", "name", there, *where)


def create_tap_pair(far: NetworkNamespace) -> tuple[int, int]:
    """Make the two devices of a link with a relay; return the descriptors of the near and the far one."""
    near_end = _open_tap(NEAR_DEVICE)
    with far.enter():
        return near_end, _open_tap(FAR_DEVICE)


def _open_tap(name: str) -> int:
    try:
        descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
        fcntl.ioctl(descriptor, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _TAP_WITHOUT_INFO))
    except OSError as error:
        raise LabError(
            f"/dev/net/tun cannot be used for half duplex, delay or loss: {error.strerror}; "
            "run it as root, modprobe tun, or do without --delay and --loss"
        ) from error
    return descriptor


def configure_device(
    device: str, address: str, mtu_bytes: int, link: LabLink, prefix_bits: int = PREFIX_BITS
) -> list[str]:
    """Configure a device of this namespace as one end of the link; return notes for the user."""
    run_tool("ip", "link", "set", "lo", "up")
    shape_device(device, mtu_bytes, link)
    run_tool("ip", "address", "add", f"{address}/{prefix_bits}", "dev", device)
    _outlast_full_queue()
    return _choose_cubic(device, address, prefix_bits)


def shape_device(device: str, mtu_bytes: int, link: LabLink) -> None:
    """Give a device the link's MTU, offloads and queue, which limits its packets, and turn it on."""
    run_tool("ip", "link", "set", device, "mtu", str(mtu_bytes))
    if link.grain == "packet":
        # Even without segmentation offload TCP passes several packets at once (Linux 4.17), and the queue counts
        # the wire's overhead once for all of them: 10 Mb/s became 10.08.
        run_tool("ip", "link", "set", device, "gso_max_segs", "1")
    if link.has_offloads_off:
        disable_offloads(device)
    if not link.half_duplex:  # with half duplex the relay limits the rate
        run_tool("tc", "qdisc", "add", "dev", device, "root", *qdisc_arguments(link))
    run_tool("ip", "link", "set", device, "up")


def qdisc_arguments(link: LabLink) -> tuple[str, ...]:
    """Return tc's arguments for a link's queue: the line's rate, and the overhead of each frame.

    If several packets reach the queue at once, it gets a lower rate instead: the share of the frames' own bytes.
    That is exact for full-sized frames, in batches of any size.
    """
    sizes = ("burst", f"{link.burst_bytes}b", "limit", f"{_queue_bytes(link)}b")
    if link.grain != "packet":
        return ("tbf", "rate", f"{round(link.rate_bit_s * link.frame_efficiency)}bit", *sizes)
    wire = ("overhead", str(link.overhead_bytes), "mpu", str(link.smallest_bytes), "linklayer", link.linklayer)
    return ("tbf", "rate", f"{link.rate_bit_s}bit", *sizes, *wire)


def _queue_bytes(link: LabLink) -> int:
    """Return the size of a queue in which small packets find room between full-sized frames.

    The kernel counts bytes. If a queue was a whole number of frames and a few bytes, packets of the control
    connection found it full every time: 32 sessions at 1 Mb/s ended after half a minute. A switch counts packets.
    """
    if link.grain != "packet":
        return link.buffer_bytes
    frame_bytes = max(link.mtu_bytes, link.far_mtu_bytes) + ETHERNET_HEADER_BYTES
    return -(-link.buffer_bytes // frame_bytes) * frame_bytes + frame_bytes // 2


def disable_offloads(device: str) -> None:
    """Turn offloads off, with which packets on the link have up to 64 KiB, more than its wire could carry."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        for name, command in _OFFLOADS.items():
            value = array.array("I", [command, 0])
            request = struct.pack("16sP16x", device.encode(), value.buffer_info()[0])
            try:
                fcntl.ioctl(sock, _SIOCETHTOOL, request)
            except OSError as error:
                if error.errno != errno.EOPNOTSUPP:  # the device does not have it at all
                    raise LabError(
                        f"{name} of {device} cannot be turned off: {error.strerror}; run it as root"
                    ) from error


def _outlast_full_queue() -> None:
    """Let TCP try as often as it can before it gives a connection up.

    The link's queue is in the sender's own kernel. TCP counts a packet that finds it full as a try, and makes one
    every 0.5 s (TCP_RESOURCE_PROBE_INTERVAL). Of 32 sessions at 1 Mb/s several found it full 15 times in a row,
    the default, and timed out after 8 s. A switch that drops packets does not count so.
    """
    with contextlib.suppress(OSError):
        _RETRIES.write_text(_MAX_RETRIES, encoding="ascii")


def _choose_cubic(device: str, address: str, prefix_bits: int) -> list[str]:
    """Set cubic, which fills the queue: a congestion control that paces would decide the rate itself.

    A namespace may only use those that its machine allows every user (tcp_allowed_congestion_control); a route may
    name any. The route is the second choice, because it overrides the choice of a program before its connection.
    """
    with contextlib.suppress(OSError):
        _CONGESTION.write_text("cubic", encoding="ascii")
        return []
    try:
        network = str(ip_network(f"{address}/{prefix_bits}", strict=False))
        run_tool("ip", "route", "replace", network, "dev", device, "src", address, "congctl", "cubic")
    except LabError as error:
        return [f"TCP keeps this machine's own congestion control, for cubic is not to be had: {error}"]
    return []


def create_switch(name: str, address: str | None = None) -> None:
    """Make a switch; with an address, this namespace is connected to it without a limit."""
    run_tool("ip", "link", "add", name, "type", "bridge", "stp_state", "0", "mcast_snooping", "0")
    disable_offloads(name)
    if address is not None:
        run_tool("ip", "link", "set", "lo", "up")
        run_tool("ip", "address", "add", f"{address}/{MESH_PREFIX_BITS}", "dev", name)
    run_tool("ip", "link", "set", name, "up")


def connect_host(host: LabHost, namespace: NetworkNamespace, address: str, switch: str, port: str) -> list[str]:
    """Connect a host's namespace to a port of a switch; return notes for the user."""
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
