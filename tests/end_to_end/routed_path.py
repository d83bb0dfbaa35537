"""Two hosts and a router between them, each in a network namespace, with an MTU for each end of each link."""

from dataclasses import dataclass

from .namespaces import Namespaces, run_within

NEAR_HOST, FAR_HOST = "10.77.1.1", "10.77.2.1"
NEAR_ROUTER, FAR_ROUTER = "10.77.1.2", "10.77.2.2"
NEAR_HOST_6, FAR_HOST_6 = "fd77:1::1", "fd77:2::1"
NEAR_ROUTER_6, FAR_ROUTER_6 = "fd77:1::2", "fd77:2::2"


@dataclass(frozen=True)
class Mtus:
    """The MTUs of the interfaces on the way: at the hosts, and at the router towards each of them."""

    near: int = 1_500
    towards_near: int = 1_500
    towards_far: int = 1_500
    far: int = 1_500


class RoutedPath:
    """A path that is up. `near` and `far` are what a command line begins with to run at that end.

    `near_pid` is a process in the namespace of the near host.
    """

    def __init__(self, mtus: Mtus, *, says_nothing: bool = False) -> None:
        """Build it; a router that `says_nothing` sends no ICMP."""
        self._namespaces = Namespaces(3)
        self.near_pid, router_pid, _ = self._namespaces.pids
        self.near, self.router, self.far = self._namespaces.entries
        try:
            self._link(self.near, "near0", "router0", router_pid, 1, (mtus.near, mtus.towards_near))
            self._link(self.far, "far0", "router1", router_pid, 2, (mtus.far, mtus.towards_far))
            for path in ("net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"):
                run_within(self.router, "sysctl", "-qw", f"{path}=1")
            if says_nothing:
                # What the router sends by itself has no way; what it forwards comes in from an interface.
                for family in ("-4", "-6"):
                    for network in ("10.77.0.0/16",) if family == "-4" else ("fd77::/16",):
                        rule = ("rule", "add", "pref", "10", "iif", "lo", "to", network, "blackhole")
                        run_within(self.router, "ip", family, *rule)
        except BaseException:
            self.close()
            raise

    def _link(
        self, host: list[str], name: str, router_name: str, router_pid: str, number: int, mtus: tuple[int, int]
    ) -> None:
        """Connect a host with the router, with addresses of both families, and its default routes."""
        run_within(
            host, "ip", "link", "add", name, "type", "veth", "peer", "name", router_name, "netns", router_pid
        )
        for within, interface, mtu, place in ((host, name, mtus[0], 1), (self.router, router_name, mtus[1], 2)):
            run_within(within, "ip", "link", "set", "lo", "up")
            run_within(within, "ip", "addr", "add", f"10.77.{number}.{place}/24", "dev", interface)
            run_within(within, "ip", "addr", "add", f"fd77:{number}::{place}/64", "dev", interface, "nodad")
            run_within(within, "ip", "link", "set", interface, "mtu", str(mtu), "up")
        run_within(host, "ip", "route", "add", "default", "via", f"10.77.{number}.2")
        run_within(host, "ip", "-6", "route", "add", "default", "via", f"fd77:{number}::2")

    def close(self) -> None:
        """End the namespaces."""
        self._namespaces.close()
