"""`python link_keeper.py`: keeps a link that is not made as a lab's, and the far end at it.

Between the near and the far namespace is a third one. Either a process there carries the frames of two devices, as
a wire (wire_relay.py); or the kernel routes the packets, and its queues limit the rate. A long wire, in a fourth
namespace, may lie between the router and the far end. Of one host, both ends are in one namespace. Standard input
has the request, as that of a lab's keeper.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import json
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from linkgauge.engine.lab.devices import (
    FAR_DEVICE,
    NEAR_DEVICE,
    create_veth_pair,
    disable_offloads,
    qdisc_arguments,
    run_tool,
)
from linkgauge.engine.lab.link_keeper import LabKeeper, keep
from linkgauge.engine.lab.link_spec import FAR_ADDRESS, NEAR_ADDRESS
from linkgauge.engine.lab.namespaces import NetworkNamespace
from linkgauge.engine.model.serialization import encode
from wire_relay import Wire

Offloads = Literal["on", "off", "gso1"]
"""What the ends' devices join: all they can; nothing; or TCP passes single packets, and they join some."""

MIDDLE_DEVICES: Final = ("near1", "far1")  # the other ends of the cables of near0 and far0
_WIRE_DEVICES: Final = ("far1", "far2")  # of a wire behind the router: towards the router, and the far end
_LONG_WIRE_BIT_S: Final = 20_000_000_000  # so fast that the router's queue alone limits the rate
_LONG_WIRE_ROOM_BYTES: Final = 64 << 20
ROUTER_ADDRESS: Final = "198.18.1.1"  # of both its devices, as no network is between them


@dataclass(frozen=True, slots=True)
class LinkRequest:
    """A link to make: `queue` is that of the router's devices, None for a wire.

    With `has_long_wire` the delay, the loss and the policer are behind the router. With `is_one_host` both ends are
    in one namespace, whose rules send what one address has for the other through the wire.
    """

    wire: Wire
    offloads: Offloads = "on"
    queue: Literal["tbf", "htb"] | None = None
    has_long_wire: bool = False
    is_one_host: bool = False


class LinkKeeper(LabKeeper):
    """Three namespaces in a row, with a far end in the last."""

    def __init__(self, request: LinkRequest) -> None:
        super().__init__(request.wire.link)
        self._request = request
        with self.near.enter():
            self.middle = NetworkNamespace.create()
        with self.near.enter():
            self.wire = NetworkNamespace.create() if request.has_long_wire else self.middle
        self.namespaces += [self.middle] if self.wire is self.middle else [self.middle, self.wire]
        if request.is_one_host:
            self.far = self.near

    def build(self) -> dict[str, Any]:
        """Make the link and start the far end; return the endpoint's port."""
        link, has_long_wire = self._request.wire.link, self._request.has_long_wire
        at_far = _WIRE_DEVICES[1] if has_long_wire else MIDDLE_DEVICES[1]
        ends = (
            (self.near, NEAR_DEVICE, self.middle, MIDDLE_DEVICES[0], NEAR_ADDRESS, link.mtu_bytes),
            (self.far, FAR_DEVICE, self.wire, at_far, FAR_ADDRESS, link.far_mtu_bytes),
        )
        for namespace, device, middle, other, address, mtu in ends:
            with namespace.enter():
                create_veth_pair(device, other, middle)
                self._configure_end(device, address, mtu)
            with middle.enter():
                self._configure_middle(other, None if middle is not self.middle else address)
        if has_long_wire:
            self._lead_to_wire()
        if self._request.is_one_host:
            self._part_addresses()
        if self._request.queue is None or has_long_wire:
            self._start_wire()
        if self._request.queue is not None:
            self._route_ends()
        return {"port": self._start_endpoint(), "notes": []}

    def _lead_to_wire(self) -> None:
        """Connect the router and the wire behind it."""
        with self.middle.enter():
            create_veth_pair(MIDDLE_DEVICES[1], _WIRE_DEVICES[0], self.wire)
            self._configure_middle(MIDDLE_DEVICES[1], FAR_ADDRESS)
        with self.wire.enter():
            self._configure_middle(_WIRE_DEVICES[0], None)

    def _part_addresses(self) -> None:
        """Have the packets from one address of the namespace to the other leave it."""
        with self.near.enter():
            run_tool("ip", "rule", "add", "pref", "1000", "lookup", "local")
            run_tool("ip", "rule", "del", "pref", "0")
            ends = ((NEAR_DEVICE, NEAR_ADDRESS, FAR_ADDRESS), (FAR_DEVICE, FAR_ADDRESS, NEAR_ADDRESS))
            for table, (device, address, other) in enumerate(ends, start=100):
                run_tool("ip", "rule", "add", "pref", str(table), "iif", "lo", "to", other, "lookup", str(table))
                run_tool("ip", "route", "add", other, "dev", device, "src", address, "table", str(table))
                for name, value in (("accept_local", "1"), ("rp_filter", "0"), ("arp_ignore", "1")):
                    Path(f"/proc/sys/net/ipv4/conf/{device}/{name}").write_text(value, encoding="ascii")
            Path("/proc/sys/net/ipv4/conf/all/rp_filter").write_text("0", encoding="ascii")

    def _configure_end(self, device: str, address: str, mtu: int) -> None:
        run_tool("ip", "link", "set", "lo", "up")
        run_tool("ip", "link", "set", device, "mtu", str(mtu))
        self._set_offloads(device)
        run_tool("ip", "link", "set", device, "up")
        congestion = Path("/proc/sys/net/ipv4/tcp_congestion_control")
        try:
            congestion.write_text("cubic", encoding="ascii")
        except PermissionError:
            # A host with another default keeps cubic from namespaces. reno is always allowed.
            congestion.write_text("reno", encoding="ascii")
        if self._request.queue is None:
            run_tool("ip", "address", "add", f"{address}/30", "dev", device)
            return
        run_tool("ip", "address", "add", f"{address}/32", "dev", device)
        run_tool("ip", "route", "add", ROUTER_ADDRESS, "dev", device)
        run_tool("ip", "route", "add", "default", "via", ROUTER_ADDRESS, "dev", device)

    def _set_offloads(self, device: str) -> None:
        if self._request.offloads == "off":
            disable_offloads(device)
            return
        run_tool("ethtool", "-K", device, "tso", "on", "gso", "on", "gro", "on")
        if self._request.offloads == "gso1":
            run_tool("ip", "link", "set", device, "gso_max_segs", "1")

    def _configure_middle(self, device: str, end_address: str | None) -> None:
        """Configure a device between the ends: one of the router's if it leads to an address."""
        link = self._request.wire.link
        with suppress(OSError):  # nothing here may send packets of its own
            Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").write_text("1", encoding="ascii")
        run_tool("ip", "link", "set", device, "mtu", str(max(link.mtu_bytes, link.far_mtu_bytes)))
        if self._request.offloads == "off" and self._request.queue is not None:
            disable_offloads(device)
        run_tool("ip", "link", "set", device, "up")
        if self._request.queue is not None and end_address is not None:
            run_tool("ip", "address", "add", f"{ROUTER_ADDRESS}/32", "dev", device)
            run_tool("ip", "route", "add", end_address, "dev", device)
            self._limit_rate(device)

    def _limit_rate(self, device: str) -> None:
        """Give a device of the router the link's rate, less the frames' overhead if it counts joined packets."""
        link = self._request.wire.link
        tbf = qdisc_arguments(link)
        if self._request.queue == "tbf":
            run_tool("tc", "qdisc", "add", "dev", device, "root", *tbf)
            return
        words = list(tbf[1:])
        at = words.index("limit")
        limit = words[at + 1]
        rate = [*words[:at], *words[at + 2 :]]
        burst = words[words.index("burst") + 1]
        run_tool("tc", "qdisc", "add", "dev", device, "root", "handle", "1:", "htb", "default", "1")
        quantum = ("cburst", burst, "quantum", str(link.burst_bytes))
        run_tool("tc", "class", "add", "dev", device, "parent", "1:", "classid", "1:1", "htb", *rate, *quantum)
        run_tool("tc", "qdisc", "add", "dev", device, "parent", "1:1", "bfifo", "limit", limit)

    def _route_ends(self) -> None:
        with self.middle.enter():
            Path("/proc/sys/net/ipv4/ip_forward").write_text("1", encoding="ascii")

    def _start_wire(self) -> None:
        wire, devices = self._request.wire, MIDDLE_DEVICES
        if self._request.has_long_wire:
            link = replace(wire.link, rate_bit_s=_LONG_WIRE_BIT_S, buffer_bytes=_LONG_WIRE_ROOM_BYTES)
            wire, devices = replace(wire, link=link), _WIRE_DEVICES
        relay = Path(__file__).with_name("wire_relay.py")
        with self.wire.enter():
            self.start_tethered([sys.executable, "-P", str(relay), *devices, json.dumps(encode(wire))])


if __name__ == "__main__":
    keep(LinkRequest, LinkKeeper)
