"""`python -m linkgauge.engine.lab.keeper`: the process that builds a lab, holds it, and takes it down.

It reads the link from one line of its standard input and answers with one line. When that input ends, as it does
when the process at its other end has ended, the keeper ends everything that runs in the lab. With the last process
the kernel removes namespaces, devices and queues.
"""

import contextlib
import json
import logging
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

_GRACE_S: Final = 3.0
_POLL_S: Final = 0.05
_ENDPOINT_MODULE: Final = "linkgauge.engine.far.loopback"
_log = logging.getLogger(__name__)


class LabKeeper:
    """A lab, from the first namespace to the last process. Call `build` once, then `take_down`."""

    def __init__(self, link: LabLink) -> None:
        self._link = link
        self._children: list[subprocess.Popen[bytes]] = []
        self.near = create_privileged_namespace()
        # This process stays in the near namespace, where commands enter it.
        with self.near.enter():
            self.far = NetworkNamespace.create()

    def build(self) -> dict[str, Any]:
        """Make the link and start the far end; return the endpoint's port and notes for a person."""
        notes: list[str] = []
        taps = create_tap_pair(self.far) if self._link.needs_relay else None
        _log.debug("namespaces %d (near) and %d (far) exist", self.near.inode, self.far.inode)
        if taps is None:
            create_veth_pair(self.far)
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

    def take_down(self) -> None:
        """End everything that runs in the lab, first with SIGHUP, then with SIGKILL."""
        for child in self._children:
            if child.stdin is not None:
                child.stdin.close()
        inodes = {self.near.inode, self.far.inode}
        for number in (signal.SIGHUP, signal.SIGKILL):
            deadline = time.monotonic() + _GRACE_S
            signalled: set[int] = set()
            while (processes := self._find_processes(inodes)) and time.monotonic() < deadline:
                for pid in set(processes) - signalled:
                    signalled.add(pid)
                    # The keeper's own children end by themselves, because their input has ended.
                    if number is signal.SIGKILL or pid not in {child.pid for child in self._children}:
                        with contextlib.suppress(OSError):
                            os.kill(pid, number)
                time.sleep(_POLL_S)

    def _find_processes(self, inodes: set[int]) -> list[int]:
        for child in self._children:
            child.poll()
        return find_processes(inodes)

    def _start_relay(self, taps: tuple[int, int]) -> None:
        arguments = [*map(str, taps), json.dumps(encode(self._link))]
        self._start(f"{__package__}.relay", arguments, pass_fds=taps)
        for tap in taps:
            os.close(tap)

    def _start_endpoint(self) -> int:
        with self.far.enter():
            child = self._start(_ENDPOINT_MODULE, [FAR_ADDRESS])
        assert child.stdout is not None  # noqa: S101 - it was started with pipes
        line = child.stdout.readline()  # the process that wants the lab has a deadline for all of it
        if not line.strip().isdigit():
            raise LabError("the lab's remote endpoint did not start; try `linkgauge endpoint` outside the lab")
        _log.debug("the far end listens on port %s", line.decode().strip())
        return int(line)

    def _start(
        self, module: str, arguments: list[str], pass_fds: tuple[int, ...] = ()
    ) -> "subprocess.Popen[bytes]":
        """Start a module of the lab as a child. It ends with its standard input, and so with this process."""
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=pass_fds,
        )
        self._children.append(child)
        return child


def _answer(value: dict[str, Any]) -> None:
    # The process at the other end may have ended; then standard input has ended as well.
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(value) + "\n")
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
