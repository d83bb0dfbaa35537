"""`python -m linkgauge.engine.lab.keeper`: the process that keeps a lab of one link and the far end at it."""

import json
import logging
import os
import sys
from typing import Any, Final

from ..model.errors import LabError
from ..model.serialization import encode
from .base_keeper import BaseKeeper, keep
from .devices import FAR_DEVICE, NEAR_DEVICE, check_tools, configure_device, create_tap_pair, create_veth_pair
from .link_spec import FAR_ADDRESS, NEAR_ADDRESS, LabLink
from .namespaces import NetworkNamespace, create_privileged_namespace

_ENDPOINT_MODULE: Final = "linkgauge.engine.far.loopback"
_log = logging.getLogger(__name__)


class LabKeeper(BaseKeeper):
    """A lab of two namespaces with a link between them."""

    def __init__(self, link: LabLink) -> None:
        super().__init__()
        check_tools()
        self._link = link
        self.near = create_privileged_namespace()
        # This process stays in the near namespace, where commands enter it.
        with self.near.enter():
            self.far = NetworkNamespace.create()
        self.namespaces += (self.near, self.far)

    def build(self) -> dict[str, Any]:
        """Make the link and start the far end; return the endpoint's port and notes for a person."""
        notes: list[str] = []
        taps = create_tap_pair(self.far) if self._link.needs_relay else None
        _log.debug("namespaces %d (near) and %d (far) exist", self.near.inode, self.far.inode)
        if taps is None:
            create_veth_pair(NEAR_DEVICE, FAR_DEVICE, self.far)
        for namespace, device, address, mtu in (
            (self.near, NEAR_DEVICE, NEAR_ADDRESS, self._link.mtu_bytes),
            (self.far, FAR_DEVICE, FAR_ADDRESS, self._link.far_mtu_bytes),
        ):
            with namespace.enter():
                notes += configure_device(device, address, mtu, self._link)
            _log.debug("%s is configured", device)
        if taps is not None:
            self._start_relay(taps)
        return {"port": self._start_endpoint(), "notes": sorted(set(notes))}

    def _start_relay(self, taps: tuple[int, int]) -> None:
        relay = [sys.executable, "-P", "-m", f"{__package__}.relay"]
        self.start_tethered([*relay, *map(str, taps), json.dumps(encode(self._link))], pass_fds=taps)
        for tap in taps:
            os.close(tap)

    def _start_endpoint(self) -> int:
        with self.far.enter():
            child = self.start_tethered([sys.executable, "-P", "-m", _ENDPOINT_MODULE, FAR_ADDRESS])
        assert child.stdout is not None  # noqa: S101 - it was started with pipes
        line = child.stdout.readline()  # the process that wants the lab has a deadline for all of it
        if not line.strip().isdigit():
            raise LabError("the lab's remote endpoint did not start; try `linkgauge endpoint` outside the lab")
        _log.debug("the far end listens on port %s", line.decode().strip())
        return int(line)


if __name__ == "__main__":
    keep(LabLink, LabKeeper)
