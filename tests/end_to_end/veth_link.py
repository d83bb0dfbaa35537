"""A link between two network namespaces, without the shaping and the relay of a lab."""

import shutil
import subprocess
from typing import Final

DEADLINE_S: Final = 20.0


class VethLink:
    """Two network namespaces with a link between them, whose ends have link-local addresses only."""

    def __init__(self) -> None:
        self._holders = [self._hold() for _ in range(2)]
        self.near, self.far = (["nsenter", "-t", str(each.pid), "-n"] for each in self._holders)
        link = ["ip", "link", "add", "near0", "type", "veth", "peer", "name", "far0"]
        self.run(self.near, *link, "netns", str(self._holders[1].pid))
        for within, name, address in ((self.near, "near0", "fe80::1"), (self.far, "far0", "fe80::2")):
            self.run(within, "ip", "link", "set", name, "addrgenmode", "none")
            self.run(within, "ip", "link", "set", "lo", "up")
            self.run(within, "ip", "link", "set", name, "up")
            self.run(within, "ip", "addr", "add", f"{address}/64", "dev", name, "nodad")

    @staticmethod
    def _hold() -> "subprocess.Popen[str]":
        holder = subprocess.Popen(
            [shutil.which("unshare") or "", "--net", "sh", "-c", "echo up; exec cat"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert holder.stdout is not None
        assert holder.stdout.readline() == "up\n"
        return holder

    @staticmethod
    def run(within: list[str], *command: str) -> None:
        """Carry a command out at one end."""
        subprocess.run([*within, *command], check=True, timeout=DEADLINE_S)

    def close(self) -> None:
        """End the namespaces."""
        for holder in self._holders:
            holder.communicate(timeout=DEADLINE_S)
