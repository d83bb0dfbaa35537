"""The link of a soak test: two network namespaces of its own, joined by a pair of virtual interfaces.

They end with the processes in them; nothing of the machine's own network is touched.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import contextlib
import time
from collections.abc import Generator, Sequence
from typing import Any

from linkgauge.engine.lab.devices import FAR_DEVICE, NEAR_DEVICE, create_veth_pair, run_tool
from linkgauge.engine.lab.namespaces import NetworkNamespace, create_privileged_namespace, find_processes

NEAR_ADDRESS = "198.18.0.1"  # RFC 2544: for tests of devices
FAR_ADDRESS = "198.18.0.2"
_DEADLINE_S = 20.0
_MTU = 1_500


class SoakLink:
    """The two ends of the link. This process is in the near one."""

    def __init__(self) -> None:
        self.far_address = FAR_ADDRESS
        self.endpoints: Sequence[Any] = ()
        self.far = create_privileged_namespace()
        self.near = NetworkNamespace.create()
        create_veth_pair(NEAR_DEVICE, FAR_DEVICE, self.far)
        self._ip("link", "set", "lo", "up")
        with self.far.enter():
            self._ip("link", "set", "lo", "up")
        self.restore()

    def restore(self) -> None:
        """Give both ends their addresses and their MTU, and bring the link up."""
        self.configure_near()
        with self.far.enter():
            self._configure(FAR_DEVICE, FAR_ADDRESS)

    def configure_near(self) -> None:
        """Restore the near end alone."""
        self._configure(NEAR_DEVICE, NEAR_ADDRESS)

    def remove_near_address(self) -> None:
        """Take the address from the near end."""
        self._ip("address", "flush", "dev", NEAR_DEVICE)

    @contextlib.contextmanager
    def without_far_address(self) -> Generator[None]:
        """Take the address from the far end for a `with` block."""
        with self.far.enter():
            self._ip("address", "flush", "dev", FAR_DEVICE)
        try:
            yield
        finally:
            self.restore()

    def set_mtu(self, near: int, far: int) -> None:
        """Set the MTU of each end."""
        self._ip("link", "set", NEAR_DEVICE, "mtu", str(near))
        with self.far.enter():
            self._ip("link", "set", FAR_DEVICE, "mtu", str(far))

    def set_far_state(self, state: str) -> None:
        """Pull the cable (`down`), or put it back (`up`)."""
        with self.far.enter():
            self._ip("link", "set", FAR_DEVICE, state)

    @property
    def endpoint_pids(self) -> list[int]:
        """The processes of the endpoints at its far end."""
        return [endpoint.pid for endpoint in self.endpoints]

    def processes(self) -> list[int]:
        """Return the processes in either namespace, except this one."""
        return find_processes({self.near.inode, self.far.inode})

    def remaining_processes(self, deadline_s: float = _DEADLINE_S) -> list[int]:
        """Wait until there are none; return those that are left at the deadline."""
        deadline = time.monotonic() + deadline_s
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return left

    def _configure(self, device: str, address: str) -> None:
        self._ip("link", "set", device, "mtu", str(_MTU), "up")
        self._ip("address", "replace", f"{address}/30", "dev", device)

    @staticmethod
    def _ip(*arguments: str) -> None:
        run_tool("ip", *arguments)
