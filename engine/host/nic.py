"""The network interface that carries a connection, as the kernel describes it. Linux; unknown elsewhere.

Asked are netlink (route, MTU, kind) and the ethtool ioctl (rate, duplex, offloads), which answer for the network
namespace of this process; /sys may show another one's interfaces, and is asked only for what neither tells.
pyroute2 is imported when the first interface is read, or a moment before where somebody is known to come: it takes
60 ms and 10 MiB, which the command line, the workers, an endpoint that waits and runs on loopback should not spend.
Its sockets run event loops of their own, so reading must not happen on a running one.
"""

import importlib
import ipaddress
import os
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from ..model.host_info import NicInfo
from .blocking_calls import call_in_thread
from .nic_plain import read_nic_stdlib

# It takes milliseconds; not to know is better than to hold a greeting up for longer.
DEADLINE_S: Final = 1.2
STDLIB_DEADLINE_S: Final = 0.8
_DESCRIPTORS: Final = 8  # an event loop and its sockets
_MBIT_S: Final = 1_000_000
_UNKNOWN_SPEEDS: Final = {0, 0xFFFF, 0xFFFF_FFFF}  # SPEED_UNKNOWN of linux/ethtool.h, as 16 and as 32 bits
_DUPLEXES: Final[dict[int, Literal["full", "half"]]] = {0: "half", 1: "full"}
_ARPHRD_LOOPBACK: Final = 772
# These report a rate that no line has: a constant of the driver's (veth 10 Gb/s, tun 10 Mb/s).
_MADE_UP_SPEEDS: Final = {"veth", "netkit", "tun", "tap", "dummy", "ifb"}
_CLASS: Final = Path("/sys/class/net")

AddressPort = Sequence[str | int]
"""A socket address as sockets have it; empty where it is not known."""


class _Ethtool(NamedTuple):
    """What the ethtool ioctl tells; None where the driver does not."""

    speed_mbit_s: int | None = None
    duplex: Literal["full", "half"] | None = None
    offloads: dict[str, bool] | None = None


def preload() -> None:
    """Import in a thread what reading takes: without compiled files, as in a zip, that is near a second."""
    threading.Thread(target=_import, name="nic import", daemon=True).start()


def _import() -> None:
    with suppress(ImportError):
        importlib.import_module("pyroute2")


async def read_connection_nic(local: AddressPort, peer: AddressPort) -> NicInfo | None:
    """Return the interface that carries a connection between two addresses; None where that is unknown.

    Never raises, and takes two seconds at most. On a busy machine pyroute2 alone may take longer than that to be
    imported: what the standard library finds out is then taken.
    """
    for read, deadline_s in ((read_nic, DEADLINE_S), (_read_plainly, STDLIB_DEADLINE_S)):
        # A run must not fail for want of something nice to know.
        with suppress(Exception):
            asked = partial(read, local, peer)
            return await call_in_thread(asked, name="nic", deadline_s=deadline_s)
    return None


def read_nic(local: AddressPort, peer: AddressPort) -> NicInfo | None:
    """Read the interface that a connection's packets leave by; not to be called on a running event loop.

    None off Linux, and where neither the route nor an interface with the local address is found. Raises
    whatever the kernel or pyroute2 do.
    """
    if sys.platform != "linux" or not local or not peer:
        return None
    if ipaddress.ip_address(_plain(local)).is_loopback:  # of lo there is nothing to know that takes pyroute2
        return _read_plainly(local, peer)
    try:
        from pyroute2 import IPRoute
    except ImportError:  # an engine that travels
        return _read_plainly(local, peer)

    _check_room()
    # The library's types are those of its messages' fields, all of them unknown.
    route: Any
    with IPRoute() as route:
        index = _index_by_route(route, local, peer) or _index_by_address(route, local)
        if index is None:
            return None
        link: Any = route.link("get", index=index)[0]
        return _facts(link)


def _read_plainly(local: AddressPort, peer: AddressPort) -> NicInfo | None:
    if sys.platform != "linux" or not local or not peer:
        return None
    return read_nic_stdlib(_plain(local), _plain(peer), _MADE_UP_SPEEDS)


def _check_room() -> None:
    """Raise OSError where few descriptors are left: half of an event loop complains on stderr when it goes."""
    with ExitStack() as spares:
        for _ in range(_DESCRIPTORS):
            spares.callback(os.close, os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))


def _index_by_route(route: Any, local: AddressPort, peer: AddressPort) -> int | None:
    """Ask where packets to the peer go: the local address alone may be that of quite another interface."""
    from pyroute2 import NetlinkError

    if len(peer) > 3 and peer[3]:
        return int(peer[3])  # an IPv6 link-local address has its interface's number with it
    with suppress(NetlinkError):  # a host that only answers may have no route that it would choose itself
        found: Any = route.route("get", dst=_plain(peer), src=_plain(local))
        for each in found:
            index: int | None = each.get_attr("RTA_OIF")
            return index
    return None


def _index_by_address(route: Any, local: AddressPort) -> int | None:
    wanted = _plain(local)
    for each in route.get_addr():
        # IFA_LOCAL is this end's address where IFA_ADDRESS is the other one's, of a point-to-point link.
        if (each.get_attr("IFA_LOCAL") or each.get_attr("IFA_ADDRESS")) == wanted:
            return int(each["index"])
    return None


def _plain(address: AddressPort) -> str:
    """Return an address without its scope, an IPv4 address that is written as IPv6 as what it is."""
    found = ipaddress.ip_address(str(address[0]).partition("%")[0])
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return str(mapped or found)


def _facts(link: Any) -> NicInfo:
    name = str(link.get_attr("IFLA_IFNAME"))
    info: Any = link.get_attr("IFLA_LINKINFO")
    made_as: str | None = None if info is None else info.get_attr("IFLA_INFO_KIND")
    driver = _driver(link, name)
    sort = _sort(link, name)
    told = _ask_ethtool(name)
    kind = made_as or driver
    has_line = sort not in {"loopback", "wireless"} and kind not in _MADE_UP_SPEEDS
    rate = None if told.speed_mbit_s is None or not has_line else told.speed_mbit_s * _MBIT_S
    offloads = told.offloads or {}
    return NicInfo(
        name=name,
        sort=sort,
        kind=kind,
        line_rate_bit_s=rate,
        duplex=told.duplex,
        mtu_bytes=link.get_attr("IFLA_MTU"),
        tso=offloads.get("tcp-segmentation-offload"),
        gso=offloads.get("generic-segmentation-offload"),
        gro=offloads.get("generic-receive-offload"),
        lro=offloads.get("large-receive-offload"),
        qdisc=link.get_attr("IFLA_QDISC"),
    )


def _sort(link: Any, name: str) -> Literal["device", "virtual", "wireless", "loopback"]:
    if link["ifi_type"] == _ARPHRD_LOOPBACK:
        return "loopback"
    if _is_shown(link, name) and any((_CLASS / name / each).exists() for each in ("phy80211", "wireless")):
        return "wireless"
    return "virtual" if _device(link, name) is None else "device"


def _device(link: Any, name: str) -> Path | None:
    """Return the /sys folder of the device on a bus that an interface belongs to; None where it has none."""
    bus, device = link.get_attr("IFLA_PARENT_DEV_BUS_NAME"), link.get_attr("IFLA_PARENT_DEV_NAME")
    if bus and device:
        return Path("/sys/bus", bus, "devices", device)
    folder = _CLASS / name / "device"  # kernels before 5.14 do not tell
    return folder if _is_shown(link, name) and folder.exists() else None


def _driver(link: Any, name: str) -> str | None:
    device = _device(link, name)
    if device is None:
        return None
    with suppress(OSError):
        return (device / "driver").readlink().name
    return None


def _is_shown(link: Any, name: str) -> bool:
    """Return whether /sys shows this very interface, not one of the same name in another namespace."""
    try:
        shown = (_CLASS / name / "ifindex").read_text(), (_CLASS / name / "address").read_text()
    except OSError:
        return False
    return (shown[0].strip(), shown[1].strip()) == (str(link["index"]), link.get_attr("IFLA_ADDRESS") or "")


def _ask_ethtool(name: str) -> _Ethtool:
    """Ask by ioctl, whose answers pyroute2 gives as they are: its netlink answers fail on link modes it lacks."""
    from pyroute2.ethtool.ioctl import EthtoolError, IoctlEthtool

    answer = _Ethtool()
    ethtool: Any = IoctlEthtool(name)
    try:
        with suppress(EthtoolError, OSError):
            answer = answer._replace(offloads=ethtool.get_offload_flags())
        with suppress(EthtoolError, OSError):
            settings = ethtool.get_link_settings()
            speed = None if settings.speed in _UNKNOWN_SPEEDS else int(settings.speed)
            answer = answer._replace(speed_mbit_s=speed, duplex=_DUPLEXES.get(settings.duplex))
    finally:
        ethtool.close()
    return answer
