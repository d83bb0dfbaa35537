"""A link between two network namespaces, without the shaping and the relay of a lab."""

from .namespaces import Namespaces, run_within


class VethLink:
    """Two network namespaces with a link between them, whose ends have link-local addresses only."""

    def __init__(self) -> None:
        self._namespaces = Namespaces(2)
        self.near, self.far = self._namespaces.entries
        link = ["ip", "link", "add", "near0", "type", "veth", "peer", "name", "far0"]
        self.run(self.near, *link, "netns", self._namespaces.pids[1])
        for within, name, address in ((self.near, "near0", "fe80::1"), (self.far, "far0", "fe80::2")):
            self.run(within, "ip", "link", "set", name, "addrgenmode", "none")
            self.run(within, "ip", "link", "set", "lo", "up")
            self.run(within, "ip", "link", "set", name, "up")
            self.run(within, "ip", "addr", "add", f"{address}/64", "dev", name, "nodad")

    @staticmethod
    def run(within: list[str], *command: str) -> None:
        """Carry a command out at one end."""
        run_within(within, *command)

    def close(self) -> None:
        """End the namespaces."""
        self._namespaces.close()
