"""`python -m linkgauge.engine.lab.keeper`: the process that builds a lab, holds it, and takes it down.

It is told the link on one line of its standard input and answers with one line. The lab lasts until
that input ends, as it does when the process at its other end ends, in whatever way: then whatever runs in the
lab is ended, and with the last of it the kernel takes namespaces, devices and queues away.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from typing import Any, Final

from ..model.errors import DecodeError, LabError, LabUnavailable
from ..model.serialization import decode, encode
from .devices import FAR_DEVICE, NEAR_DEVICE, check_tools, configure_device, create_tap_pair, create_veth_pair
from .link_spec import FAR_ADDRESS, NEAR_ADDRESS, LabLink
from .namespaces import NetworkNamespace, create_privileged_namespace, find_processes

_ENDPOINT_DEADLINE_S: Final = 10.0
_GRACE_S: Final = 3.0
_POLL_S: Final = 0.05


class LabKeeper:
    """A lab, from the first namespace to the last process."""

    def __init__(self, link: LabLink) -> None:
        self._link = link
        self._children: list[subprocess.Popen[bytes]] = []
        self.near = create_privileged_namespace()
        # The process itself stays near: that is where the others find it.
        with self.near.enter():
            self.far = NetworkNamespace.create()

    def build(self) -> dict[str, Any]:
        """Make the link and start the far end; return what whoever asked for it must know."""
        notes: list[str] = []
        taps = create_tap_pair(self.far) if self._link.needs_relay else None
        if taps is None:
            create_veth_pair(self.far)
        for namespace, device, address, mtu in (
            (self.near, NEAR_DEVICE, NEAR_ADDRESS, self._link.mtu_bytes),
            (self.far, FAR_DEVICE, FAR_ADDRESS, self._link.far_mtu_bytes),
        ):
            with namespace.enter():
                notes += configure_device(device, address, mtu, self._link)
        if taps is not None:
            self._start_relay(taps)
        return {"port": self._start_endpoint(), "notes": sorted(set(notes))}

    def take_down(self) -> None:
        """End everything that runs in the lab: in order first, then at once."""
        for child in self._children:
            if child.stdin is not None:
                child.stdin.close()
        inodes = {self.near.inode, self.far.inode}
        for number in (signal.SIGHUP, signal.SIGKILL):
            deadline = time.monotonic() + _GRACE_S
            told: set[int] = set()
            while (left := self._left(inodes)) and time.monotonic() < deadline:
                for pid in set(left) - told:
                    told.add(pid)
                    # Our own have seen their input end, and finish what they are at.
                    if number is signal.SIGKILL or pid not in {child.pid for child in self._children}:
                        with contextlib.suppress(OSError):
                            os.kill(pid, number)
                time.sleep(_POLL_S)

    def _left(self, inodes: set[int]) -> list[int]:
        for child in self._children:
            child.poll()
        return find_processes(inodes)

    def _start_relay(self, taps: tuple[int, int]) -> None:
        arguments = [*map(str, taps), json.dumps(encode(self._link))]
        self._start("relay", arguments, pass_fds=taps)
        for tap in taps:
            os.close(tap)

    def _start_endpoint(self) -> int:
        with self.far.enter():
            child = self._start("endpoint", [FAR_ADDRESS])
        assert child.stdout is not None  # noqa: S101 - it was started with pipes
        line = child.stdout.readline()  # whoever asked for the lab has a deadline for all of it
        if not line.strip().isdigit():
            raise LabError("the endpoint at the lab's far end did not start; try `linkgauge endpoint` by itself")
        return int(line)

    def _start(
        self, module: str, arguments: list[str], pass_fds: tuple[int, ...] = ()
    ) -> "subprocess.Popen[bytes]":
        """Start a part of the lab that lasts as long as its standard input: as long as this process."""
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", f"{__package__}.{module}", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=pass_fds,
        )
        self._children.append(child)
        return child


def _answer(what: dict[str, Any]) -> None:
    # Whoever asked may be gone already; then standard input has ended as well.
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()


def main() -> None:
    """Keep one lab."""
    with ExitStack() as stack:
        try:
            check_tools()
            keeper = LabKeeper(decode(LabLink, json.loads(sys.stdin.readline() or "null")))
            stack.callback(keeper.take_down)
            _answer(keeper.build())
        except (LabError, DecodeError) as error:
            _answer({"error": str(error), "unavailable": isinstance(error, LabUnavailable)})
            return
        while sys.stdin.readline():
            pass


if __name__ == "__main__":
    main()
