"""`python link_keeper.py`: keeps a link that is not made as a lab's, and the far end at it.

Between the near and the far namespace is a third one. Either a process there carries the frames of two devices, as
a wire (wire_relay.py); or the kernel routes the packets, and its queues limit the rate. Standard input has the
request, as that of a lab's keeper.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import json
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from linkgauge.engine.lab.base_keeper import keep
from linkgauge.engine.lab.devices import (
    FAR_DEVICE,
    NEAR_DEVICE,
    create_veth_pair,
    disable_offloads,
    qdisc_arguments,
    run_tool,
)
from linkgauge.engine.lab.keeper import LabKeeper
from linkgauge.engine.lab.link_spec import FAR_ADDRESS, NEAR_ADDRESS
from linkgauge.engine.lab.namespaces import NetworkNamespace
from linkgauge.engine.model.serialization import encode
from wire_relay import Wire

Offloads = Literal["on", "off", "gso1"]
"""What the ends' devices join: all they can; nothing; or TCP passes single packets, and they join some."""

MIDDLE_DEVICES: Final = ("near1", "far1")  # the other ends of the cables of near0 and far0
ROUTER_ADDRESS: Final = "198.18.1.1"  # of both its devices, as no network is between them


@dataclass(frozen=True, slots=True)
class LinkRequest:
    """A link to make: `queue` is that of the router's devices, None for a wire."""

    wire: Wire
    offloads: Offloads = "on"
    queue: Literal["tbf", "htb"] | None = None


class LinkKeeper(LabKeeper):
    """Three namespaces in a row, with a far end in the last."""

    def __init__(self, request: LinkRequest) -> None:
        super().__init__(request.wire.link)
        self._request = request
        with self.near.enter():
            self.middle = NetworkNamespace.create()
        self.namespaces.append(self.middle)

    def build(self) -> dict[str, Any]:
        """Make the link and start the far end; return the endpoint's port."""
        link = self._request.wire.link
        ends = (
            (self.near, NEAR_DEVICE, MIDDLE_DEVICES[0], NEAR_ADDRESS, link.mtu_bytes),
            (self.far, FAR_DEVICE, MIDDLE_DEVICES[1], FAR_ADDRESS, link.far_mtu_bytes),
        )
        for namespace, device, other, address, mtu in ends:
            with namespace.enter():
                create_veth_pair(device, other, self.middle)
                self._configure_end(device, address, mtu)
            with self.middle.enter():
                self._configure_middle(other, address)
        if self._request.queue is None:
            self._start_wire()
        else:
            self._route_ends()
        return {"port": self._start_endpoint(), "notes": []}

    def _configure_end(self, device: str, address: str, mtu: int) -> None:
        run_tool("ip", "link", "set", "lo", "up")
        run_tool("ip", "link", "set", device, "mtu", str(mtu))
        self._set_offloads(device)
        run_tool("ip", "link", "set", device, "up")
        Path("/proc/sys/net/ipv4/tcp_congestion_control").write_text("cubic", encoding="ascii")
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

    def _configure_middle(self, device: str, end_address: str) -> None:
        link = self._request.wire.link
        with suppress(OSError):  # nothing here may send packets of its own
            Path("/proc/sys/net/ipv6/conf/all/disable_ipv6").write_text("1", encoding="ascii")
        run_tool("ip", "link", "set", device, "mtu", str(max(link.mtu_bytes, link.far_mtu_bytes)))
        if self._request.offloads == "off" and self._request.queue is not None:
            disable_offloads(device)
        run_tool("ip", "link", "set", device, "up")
        if self._request.queue is not None:
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
        relay = Path(__file__).with_name("wire_relay.py")
        with self.middle.enter():
            self.start_tethered(
                [sys.executable, "-P", str(relay), *MIDDLE_DEVICES, json.dumps(encode(self._request.wire))]
            )


if __name__ == "__main__":
    keep(LinkRequest, LinkKeeper)
