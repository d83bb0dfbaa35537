"""The network interface that carries a connection, and its line. Linux only; unknown elsewhere.

rtnetlink(7) knows route, addresses, MTU, kind and queue, and the ethtool ioctl (linux/ethtool.h) rate, duplex and
offloads. Both answer for the network namespace of this process. /sys may show the interfaces of another one, so it
serves only for the driver and for wireless devices, after a check that it shows the same interface.

Only the standard library is used: the module travels to far ends, and an import there comes from a zip.
"""

import logging
import socket
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread
from typing import Final, Literal

from ...model.host_info import NicInfo
from ...model.ip_address import parse_ip_address
from ..shortage import start_if_possible
from .ethtool import Line, read_line, read_offloads
from .netlink import NLM_F_DUMP, open_netlink
from .rtnetlink import AddressPort, Link, find_by_address, find_by_route, get_link, get_links, read_all_addresses

_log = logging.getLogger(__name__)

# A reading takes less than a millisecond. An unknown interface is better than a greeting that waits for a driver.
DEADLINE_S: Final = 2.0

_ARPHRD_ETHER, _ARPHRD_LOOPBACK = 1, 772  # linux/if_arp.h
_CLASS: Final = Path("/sys/class/net")
# Drivers of these kinds report a constant as their rate (veth 10 Gb/s, tun 10 Mb/s): there is no line.
_NOMINAL_SPEED_KINDS: Final = {"veth", "netkit", "tun", "tap", "dummy", "ifb"}
# These report what the interfaces below them do: a VLAN of a veth 10 Gb/s, a bridge the highest of its ports.
_STACKED_KINDS: Final = {"bridge", "vlan", "macvlan", "macvtap", "ipvlan", "macsec", "bond", "team"}
_SUMMING_KINDS: Final = {"bond", "team"}


async def read_connection_nic(local: AddressPort, peer: AddressPort) -> NicInfo | None:
    """Return the interface that carries a connection between two addresses; None if that is unknown.

    Never raises, and takes `DEADLINE_S` at most: a driver may block, and a run must not fail without this.
    """
    from ..event_loop import call_in_thread  # a list of presets reads interfaces without an event loop

    try:
        return await call_in_thread(partial(read_nic, local, peer), name="nic", deadline_s=DEADLINE_S)
    except Exception as error:  # noqa: BLE001 - the kernel and its drivers may fail in any way
        _log.debug("the interface between %s and %s is unknown: %r", local, peer, error)
        return None


def read_nic(local: AddressPort, peer: AddressPort) -> NicInfo | None:
    """Read the interface by which the packets of a connection leave.

    None off Linux, and if neither a route nor an interface with the local address exists. Raises the kernel's
    OSError.
    """
    if sys.platform != "linux" or not local or not peer:
        return None
    with open_netlink() as netlink:
        index = _find_interface(netlink, local, peer)
        link = None if index is None else get_link(netlink, index)
        return None if link is None else _describe(netlink, link)


def _find_interface(netlink: socket.socket, local: AddressPort, peer: AddressPort) -> int | None:
    """Return the index of the interface, by the route: the local address alone may be on quite another one."""
    if len(peer) > 3 and peer[3]:
        return int(peer[3])  # the scope of an IPv6 link-local address is its interface
    source, target = (parse_ip_address(str(address[0])) for address in (local, peer))
    index = find_by_route(netlink, source, target)
    # A host that only answers may have no route that it would choose itself.
    return find_by_address(netlink, source) if index is None else index


def read_own_nics() -> list[NicInfo]:
    """Return the interfaces of this host that have a lasting address; none off Linux.

    Never raises, and takes `DEADLINE_S` at most: a driver may block.
    """
    found: list[NicInfo] = []
    thread = Thread(target=_read_own_nics, args=(found,), name="nics", daemon=True)
    if start_if_possible(thread):
        thread.join(DEADLINE_S)
    return list(found)


def _read_own_nics(found: list[NicInfo]) -> None:
    """Add the interfaces with a lasting address to `found`, those read before an error included."""
    try:
        indexes = sorted({each.interface for each in read_all_addresses() if each.is_lasting})
        for index in indexes:
            with open_netlink() as netlink:
                link = get_link(netlink, index)
                if link is not None:
                    found.append(_describe(netlink, link))
    except OSError as error:
        _log.debug("the interfaces of this host are unknown: %r", error)


def find_counter_folder(name: str) -> Path | None:
    """Return the folder of an interface in /sys, for its counters; None if there is none of this namespace.

    Raises OSError.
    """
    if sys.platform != "linux":
        return None
    with open_netlink() as netlink:
        link = get_link(netlink, socket.if_nametoindex(name))
    return None if link is None else _sysfs_folder(link)


def _describe(netlink: socket.socket, link: Link) -> NicInfo:
    folder = _sysfs_folder(link)
    device = _device_folder(link, folder)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        line = _find_line(netlink, sock, link)
        offloads = read_offloads(sock, link.name)
    return NicInfo(
        name=link.name,
        sort=_nic_type(link, folder, device),
        kind=_kind(link, device),
        line_rate_bit_s=line.rate_bit_s,
        duplex=line.duplex,
        mtu_bytes=link.mtu_bytes,
        qdisc=link.qdisc,
        **offloads._asdict(),
    )


def _find_line(netlink: socket.socket, sock: socket.socket, link: Link) -> Line:
    """Return the line of an interface, without a rate if it has no line or if that is uncertain.

    An interface that is stacked on others has a rate if they have one line rate. A bridge with ports of several
    rates does not tell by which port the far end is reached.
    """
    line, folder = read_line(sock, link.name), _sysfs_folder(link)
    device = _device_folder(link, folder)
    kind = _kind(link, device)
    if _nic_type(link, folder, device) in {"loopback", "wireless"} or kind in _NOMINAL_SPEED_KINDS:
        return line._replace(rate_bit_s=None)
    below = _links_below(netlink, link) if kind in _STACKED_KINDS else []
    if not below:
        return line
    rates = {_find_line(netlink, sock, each).rate_bit_s for each in below} - {None}
    if kind in _SUMMING_KINDS and rates:
        return line
    return line._replace(rate_bit_s=rates.pop() if len(rates) == 1 else None)


def _links_below(netlink: socket.socket, link: Link) -> list[Link]:
    """Return the ports of an interface, or the one that it is made on; none of another namespace."""
    # The whole dump is read before the socket takes another request.
    links = list(get_links(netlink, 0, NLM_F_DUMP))
    return [each for each in links if each.master == link.number or each.number == link.lower]


def _sysfs_folder(link: Link) -> Path | None:
    """Return the interface's folder; None if /sys shows another namespace, perhaps with a namesake in it."""
    folder = _CLASS / link.name
    try:
        index, address = ((folder / name).read_text(encoding="ascii").strip() for name in ("ifindex", "address"))
    except OSError:
        return None
    return folder if (index, address) == (str(link.number), link.hardware_address.hex(":")) else None


def _device_folder(link: Link, folder: Path | None) -> Path | None:
    """Return the folder of the device on a bus that an interface belongs to; None if it has none."""
    if link.parent_bus and link.parent_device:
        return Path("/sys/bus", link.parent_bus, "devices", link.parent_device)
    if folder is None or not (folder / "device").exists():  # kernels before 5.14 name no parent
        return None
    return folder / "device"


def _nic_type(
    link: Link, folder: Path | None, device: Path | None
) -> Literal["device", "virtual", "wireless", "loopback"]:
    if link.hardware_type == _ARPHRD_LOOPBACK:
        return "loopback"
    if folder is not None and any((folder / name).exists() for name in ("phy80211", "wireless")):
        return "wireless"
    return "virtual" if device is None else "device"


def _kind(link: Link, device: Path | None) -> str | None:
    """Return a virtual interface's kind or a device's driver. The kernel calls both kinds of tun.ko tun."""
    is_tap = link.kind == "tun" and link.hardware_type == _ARPHRD_ETHER
    return "tap" if is_tap else link.kind or _driver(device)


def _driver(device: Path | None) -> str | None:
    if device is not None:
        with suppress(OSError):
            return (device / "driver").readlink().name
    return None
