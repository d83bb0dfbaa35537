"""Two hosts and one to four routers in a chain, each in a network namespace, with queues at any of the links.

Node 0 is the near host and the last one the far host. Link `i` is between the nodes `i` and `i + 1`. A queue is a
token bucket (tc-tbf(8) or tc-htb(8)) where packets leave: of a way out at node `i`, of a way in at node `i + 1`.
"""

import subprocess
from dataclasses import dataclass
from typing import Final, Literal

from linkgauge.engine.model.directions import Direction

from .namespaces import DEADLINE_S, Namespaces, run_within

_FRAME_BYTES: Final = 1_514
_LEAST_BURST_BYTES: Final = 2 * _FRAME_BYTES
_LEAST_QUEUE_BYTES: Final = 3 * _FRAME_BYTES
_MOST_JOINED_BYTES: Final = 16_000  # tbf cuts what is longer into packets again
_TO_NEAR, _TO_FAR = "near", "far"

Maker = Literal["tbf", "htb", "bridge", "offloads"]
"""How chains are made: with tbf; with htb; with the addresses on bridges; with tbf behind segmentation offloads."""


@dataclass(frozen=True)
class LinkQueue:
    """A queue at a link: its direction, its rate, and for how many milliseconds it holds what it sends."""

    link: int
    direction: Direction
    hold_ms: float
    mbit_s: float

    def __str__(self) -> str:
        return f"{self.hold_ms:g} ms at {self.mbit_s:g} Mb/s, link {self.link} {self.direction.value}"


class ChainedPath:
    """A chain that is up, with cubic at both ends. `entries` are what command lines begin with at each node."""

    def __init__(
        self, nodes: int, queues: tuple[LinkQueue, ...] = (), *, icmp_limit_ms: int = 0, maker: Maker = "tbf"
    ) -> None:
        """Build it; every router sends a message of ICMP to a host once in `icmp_limit_ms`, 0 without a limit."""
        self._maker = maker
        self._namespaces = Namespaces(nodes)
        self.entries = self._namespaces.entries
        try:
            for link in range(nodes - 1):
                self._connect(link)
            for node, entry in enumerate(self.entries):
                self._set_up(node, entry, icmp_limit_ms)
            for queue in queues:
                self._add(queue)
        except BaseException:
            self.close()
            raise

    @property
    def near(self) -> list[str]:
        """What a command line begins with to run at the near host."""
        return self.entries[0]

    @property
    def far(self) -> list[str]:
        """What a command line begins with to run at the far host."""
        return self.entries[-1]

    def far_address(self, version: int = 4) -> str:
        """Return the address of the far host."""
        return address(len(self.entries) - 2, 2, version)

    def silence(self, node: int) -> None:
        """Let a router say nothing of packets whose TTL is used up."""
        kinds = ("icmp type time-exceeded drop", "icmpv6 type time-exceeded drop")
        self._filter(node, "output", *kinds)

    def report_no_mtu(self, node: int) -> None:
        """Let a router drop its own messages of packets that are too long."""
        self._filter(
            node, "postrouting", "icmp type destination-unreachable drop", "icmpv6 type packet-too-big drop"
        )

    def slow_down(self, node: int, kbit_s: float = 3.0) -> None:
        """Let a router send its own messages of ICMP late, and some not at all; it forwards as before."""
        entry = self.entries[node]
        for device in (_TO_NEAR, _TO_FAR):
            of_device = ("dev", device, "parent", "1:")
            run_within(
                entry, "tc", "qdisc", "replace", "dev", device, "root", "handle", "1:", "htb", "default", "10"
            )
            for number, rate in (("1:10", "10gbit"), ("1:20", f"{kbit_s:g}kbit")):
                small = ("burst", "200", "cburst", "200") if number == "1:20" else ()
                htb = ("htb", "rate", rate, "quantum", "1514", *small)
                run_within(entry, "tc", "class", "add", *of_device, "classid", number, *htb)
            run_within(entry, "tc", "qdisc", "add", "dev", device, "parent", "1:20", "bfifo", "limit", "400")
            for link, place in ((node - 1, 2), (node, 1)):
                own = ("match", "ip", "src", f"{address(link, place)}/32", "match", "ip", "protocol", "1", "0xff")
                run_within(
                    entry, "tc", "filter", "add", *of_device, "protocol", "ip", "u32", *own, "flowid", "1:20"
                )

    def lose(self, node: int, percent: int, towards: Direction) -> None:
        """Let a router lose a percentage of what it forwards in a direction, and nothing that it sends itself."""
        device = _TO_FAR if towards is Direction.OUT else _TO_NEAR
        self._filter(node, "forward", f'oifname "{device}" numgen random mod 100 < {percent} drop')

    def _filter(self, node: int, hook: str, *rules: str) -> None:
        lines = "\n".join((f"type filter hook {hook} priority 0;", *rules))
        run_within(self.entries[node], "nft", f"table inet {hook} {{\nchain rules {{\n{lines}\n}}\n}}")

    def close(self) -> None:
        """End the namespaces."""
        self._namespaces.close()

    def _connect(self, link: int) -> None:
        left, right = self.entries[link], self.entries[link + 1]
        has_bridges = self._maker == "bridge"
        here, there = ("port-far", "port-near") if has_bridges else (_TO_FAR, _TO_NEAR)
        ends = (here, "type", "veth", "peer", "name", there, "netns", self._namespaces.pids[link + 1])
        run_within(left, "ip", "link", "add", *ends)
        for entry, port, device, place in ((left, here, _TO_FAR, 1), (right, there, _TO_NEAR, 2)):
            if has_bridges:
                run_within(entry, "ip", "link", "add", device, "type", "bridge")
                run_within(entry, "ip", "link", "set", port, "master", device)
            for name in {port, device}:
                self._raise_device(entry, name)
            run_within(entry, "ip", "addr", "add", f"{address(link, place)}/24", "dev", device)
            run_within(entry, "ip", "addr", "add", f"{address(link, place, 6)}/64", "dev", device, "nodad")

    def _raise_device(self, entry: list[str], device: str) -> None:
        if self._maker == "offloads":
            run_within(entry, "ip", "link", "set", device, "up")
            return
        run_within(entry, "ip", "link", "set", device, "gso_max_segs", "1", "up")
        command = [*entry, "ethtool", "-K", device, "tso", "off", "gso", "off", "gro", "off"]
        subprocess.run(command, check=True, capture_output=True, timeout=DEADLINE_S)

    def _set_up(self, node: int, entry: list[str], icmp_limit_ms: int) -> None:
        run_within(entry, "ip", "link", "set", "lo", "up")
        for name in ("net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1"):
            run_within(entry, "sysctl", "-qw", name)
        for name in ("net.ipv4.icmp_ratelimit", "net.ipv6.icmp.ratelimit"):
            run_within(entry, "sysctl", "-qw", f"{name}={icmp_limit_ms}")
        links = len(self.entries) - 1
        cubic = ("congctl", "cubic") if node in {0, links} else ()
        for link in range(links):
            for version, length in ((4, 24), (6, 64)):
                if link in {node - 1, node}:
                    continue
                gateway = address(node, 2, version) if link > node else address(node - 1, 1, version)
                network = address(link, 0, version)
                run_within(
                    entry, "ip", f"-{version}", "route", "add", f"{network}/{length}", "via", gateway, *cubic
                )

    def _add(self, queue: LinkQueue) -> None:
        is_out = queue.direction is Direction.OUT
        node, device = (queue.link, _TO_FAR) if is_out else (queue.link + 1, _TO_NEAR)
        burst = max(_LEAST_BURST_BYTES, round(queue.mbit_s * 1e6 / 8 / 1_000))
        limit = max(_LEAST_QUEUE_BYTES, round(queue.hold_ms * queue.mbit_s * 1e3 / 8))
        entry, rate = self.entries[node], f"{queue.mbit_s:g}mbit"
        of_device = ("tc", "qdisc", "replace", "dev", device)
        if self._maker == "offloads":
            burst = max(burst, _MOST_JOINED_BYTES)
        if self._maker != "htb":
            run_within(entry, *of_device, "root", "tbf", "rate", rate, "burst", str(burst), "limit", str(limit))
            return
        run_within(entry, *of_device, "root", "handle", "1:", "htb", "default", "1")
        htb = ("htb", "rate", rate, "ceil", rate, "burst", str(burst), "cburst", str(burst), "quantum", "1514")
        run_within(entry, "tc", "class", "add", "dev", device, "parent", "1:", "classid", "1:1", *htb)
        run_within(entry, *of_device, "parent", "1:1", "bfifo", "limit", str(limit))


def address(link: int, place: int, version: int = 4) -> str:
    """Return an address on a link: place 1 is towards the near host, 2 towards the far one, 0 the network."""
    return f"10.78.{link}.{place}" if version == 4 else f"fd78:{link}::{place or ''}"
