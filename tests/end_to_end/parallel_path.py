"""Two hosts and two routers between them, each in a network namespace, with parallel links between the routers.

Node 0 is the near host, 1 and 2 are the routers, 3 is the far host. Flows go over the members by the kernel's hash
of addresses and ports, by another hash (nftables), or packet by packet.
"""

import fcntl
import json
import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Final, Literal

from linkgauge.engine.lab.link_spec import LabLink
from linkgauge.engine.lab.namespaces import set_namespace
from linkgauge.engine.lab.relay import relay_frames
from linkgauge.engine.model.directions import Direction

from .namespaces import DEADLINE_S, Namespaces, run_within

Balance = Literal["routes", "hash", "packets"]

_TABLE: Final = 100  # of member 0, by its mark
# Addresses, protocol and ports (ip-sysctl). Policy 1 would take the hash of the sending socket, which is a new one
# for each socket on one host: a real router has no such thing.
_HASH_FIELDS: Final = 0x37
_TUNSETIFF: Final = 0x400454CA
_TAP: Final = 0x1002  # IFF_TAP and IFF_NO_PI


class ParallelPath:
    """A path that is up, with some members. `near` and `far` begin command lines that run at that host.

    Args:
        members: The parallel links.
        balance: How packets are spread over them.
        version: The version of IP.
        slow: A member whose frames take a delay, by a process that relays them.
        delay_ms: This delay, in each direction.
    """

    def __init__(
        self,
        members: int,
        balance: Balance = "routes",
        *,
        version: int = 4,
        slow: int | None = None,
        delay_ms: float = 0.0,
    ) -> None:
        self._members, self._version = members, version
        self._relay: subprocess.Popen[bytes] | None = None
        self._namespaces = Namespaces(4)
        self._entries = self._namespaces.entries
        try:
            for entry in self._entries:
                self._set_up(entry)
            self._connect(0, 1, 0)
            self._connect(2, 3, 1)
            for member in range(members):
                if member == slow:
                    self._relay = self._add_relay(member, delay_ms)
                else:
                    self._link(1, 2, f"m{member}", f"m{member}")
                self._address(1, f"m{member}", 10 + member, 1)
                self._address(2, f"m{member}", 10 + member, 2)
            self._route(0, self._at(0, 2))
            self._route(3, self._at(1, 1))
            self._balance(1, 1, 2, balance)
            self._balance(2, 0, 1, balance)
        except BaseException:
            self.close()
            raise

    @property
    def near(self) -> list[str]:
        """What a command line begins with to run at the near host."""
        return self._entries[0]

    @property
    def far(self) -> list[str]:
        """What a command line begins with to run at the far host."""
        return self._entries[3]

    @property
    def far_address(self) -> str:
        """The address of the far host."""
        return self._at(1, 2)

    def lose(self, member: int, percent: float, direction: Direction) -> None:
        """Lose a percentage of all that a member carries in a direction, where it arrives; at 100 % UDP alone."""
        chance = f"numgen random mod 10000 < {round(percent * 100)}" if percent < 100 else "meta l4proto udp"
        self._arriving(member, direction, f"{chance} drop")

    def lose_everywhere(self, percent: float, direction: Direction) -> None:
        """Lose a percentage of the packets on every member alike."""
        for member in range(self._members):
            self.lose(member, percent, direction)

    def police(self, member: int, kbyte_s: int, direction: Direction) -> None:
        """Drop what a member carries in a direction above a rate."""
        rule = f"limit rate over {kbyte_s} kbytes/second burst 2 kbytes drop"
        self._arriving(member, direction, rule)

    def switch(self, member: int, state: Literal["up", "down"]) -> None:
        """Switch a member off at both routers, which then use the others, or on again."""
        for entry in self._entries[1:3]:
            run_within(entry, "ip", "link", "set", f"m{member}", state)

    def watch(self, member: int, direction: Direction) -> None:
        """Note the near host's ports whose datagrams a member carries in a direction."""
        entry = self._entries[2 if direction is Direction.OUT else 1]
        port = "sport" if direction is Direction.OUT else "dport"
        kind = "set seen { type inet_service; flags dynamic; size 65535; }"
        rule = f"iifname m{member} meta l4proto udp add @seen {{ udp {port} }}"
        _prerouting(entry, "-350", f"seen{member}", rule, kind)

    def ports_on(self, member: int, direction: Direction) -> set[int]:
        """Return the ports that `watch` has noted."""
        entry = self._entries[2 if direction is Direction.OUT else 1]
        command = [*entry, "nft", "-j", "list", "set", "inet", f"seen{member}", "seen"]
        listed = subprocess.run(command, check=True, capture_output=True, timeout=DEADLINE_S).stdout
        sets = [each["set"] for each in json.loads(listed)["nftables"] if "set" in each]
        return {each["elem"]["val"] if isinstance(each, dict) else each for each in sets[0].get("elem", [])}

    def lose_all_for(self, seconds: float, direction: Direction) -> None:
        """Lose all that arrives over any member, for a moment."""
        entry = self._entries[2 if direction is Direction.OUT else 1]
        _prerouting(entry, "raw", "moment", 'iifname "m*" drop')
        time.sleep(seconds)
        run_within(entry, "nft", "delete", "table", "inet", "moment")

    def _arriving(self, member: int, direction: Direction, rule: str) -> None:
        entry = self._entries[2 if direction is Direction.OUT else 1]
        _prerouting(entry, "raw", f"loss{member}", f"iifname m{member} {rule}")

    def close(self) -> None:
        """End the relay and the namespaces."""
        if self._relay is not None:
            self._relay.send_signal(signal.SIGTERM)
            self._relay.communicate(timeout=DEADLINE_S)
        self._namespaces.close()

    def _set_up(self, entry: list[str]) -> None:
        run_within(entry, "ip", "link", "set", "lo", "up")
        values = (
            "net.ipv4.ip_forward=1",
            "net.ipv6.conf.all.forwarding=1",
            *(f"net.{each}.fib_multipath_hash_policy=3" for each in ("ipv4", "ipv6")),
            *(f"net.{each}.fib_multipath_hash_fields={_HASH_FIELDS}" for each in ("ipv4", "ipv6")),
            "net.ipv4.icmp_errors_use_inbound_ifaddr=1",
            "net.ipv4.icmp_ratelimit=0",
            "net.ipv6.icmp.ratelimit=0",
            "net.ipv4.conf.all.rp_filter=0",
            "net.ipv4.conf.default.rp_filter=0",
        )
        run_within(entry, "sysctl", "-qw", *values)

    def _at(self, network: int, place: int) -> str:
        return f"10.80.{network}.{place}" if self._version == 4 else f"fd80:{network}::{place}"

    def _link(self, left: int, right: int, here: str, there: str) -> None:
        peer = ("peer", "name", there, "netns", self._namespaces.pids[right])
        run_within(self._entries[left], "ip", "link", "add", here, "type", "veth", *peer)

    def _address(self, node: int, device: str, network: int, place: int) -> None:
        entry = self._entries[node]
        length, more = (24, ()) if self._version == 4 else (64, ("nodad",))
        run_within(entry, "ip", "addr", "add", f"{self._at(network, place)}/{length}", "dev", device, *more)
        run_within(entry, "ip", "link", "set", device, "up")

    def _connect(self, left: int, right: int, network: int) -> None:
        self._link(left, right, f"to{right}", f"to{left}")
        self._address(left, f"to{right}", network, 1)
        self._address(right, f"to{left}", network, 2)

    def _network(self, network: int) -> str:
        return f"10.80.{network}.0/24" if self._version == 4 else f"fd80:{network}::/64"

    def _route(self, node: int, gateway: str) -> None:
        run_within(self._entries[node], "ip", f"-{self._version}", "route", "add", "default", "via", gateway)

    def _balance(self, node: int, network: int, place: int, balance: Balance) -> None:
        """Spread what a router sends to a network over the members, whose other ends have a place."""
        entry, ip = self._entries[node], ("ip", f"-{self._version}")
        gateways = [(f"m{member}", self._at(10 + member, place)) for member in range(self._members)]
        if balance == "routes":
            hops = [word for device, via in gateways for word in ("nexthop", "via", via, "dev", device)]
            run_within(entry, *ip, "route", "add", self._network(network), *hops)
            return
        for member, (device, via) in enumerate(gateways):
            table = str(_TABLE + member)
            run_within(entry, *ip, "route", "add", "default", "via", via, "dev", device, "table", table)
            run_within(entry, *ip, "rule", "add", "fwmark", table, "table", table)
        family = "ip" if self._version == 4 else "ip6"
        ports = f"{family} saddr . {family} daddr . @th,0,32"
        chooser = "numgen inc" if balance == "packets" else f"jhash {ports}"
        seed = "" if balance == "packets" else " seed 0x5eed"
        choice = f"{chooser} mod {self._members}{seed} offset {_TABLE}"
        rule = f"{family} daddr {self._network(network)} meta mark set {choice}"
        _prerouting(entry, "mangle", "balance", rule)
        run_within(entry, *ip, "route", "add", self._network(network), "via", gateways[0][1])

    def _add_relay(self, member: int, delay_ms: float) -> "subprocess.Popen[bytes]":
        pids = self._namespaces.pids[1:3]
        command = [sys.executable, "-m", __name__, *pids, f"m{member}", str(delay_ms)]
        folders = [entry for entry in sys.path if entry]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}
        relay = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        assert relay.stdout is not None
        assert relay.stdout.readline() == b"up\n"
        return relay


def _prerouting(entry: list[str], priority: str, name: str, rule: str, kind: str = "") -> None:
    """Apply a rule to what arrives at a router."""
    chain = f"chain arriving {{\ntype filter hook prerouting priority {priority}\n{rule}\n}}"
    run_within(entry, "nft", f"table inet {name} {{\n{kind}\n{chain}\n}}")


def _relay() -> None:
    """Relay the frames of two TAP devices of one name, in the namespaces of two processes."""
    *pids, name, delay_ms = sys.argv[1:]
    taps: list[int] = []
    for pid in pids:
        with Path(f"/proc/{pid}/ns/net").open(encoding="ascii") as namespace:
            set_namespace(namespace.fileno())
        tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(tap, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _TAP))
        taps.append(tap)
    delay_ns = round(float(delay_ms) * 1e6)
    link = LabLink(10**9, 1_500, 1_500, 0, "ethernet", 1 << 20, 1 << 20, delay_ns=delay_ns)
    sys.stdout.write("up\n")
    sys.stdout.flush()
    relay_frames((taps[0], taps[1]), link, sys.stdin.fileno())


if __name__ == "__main__":
    _relay()
