"""`python -m linkgauge.engine.lab.link_keeper`: the process that keeps a lab of one link and the far end at it.

The common part of all keepers is here as well (`BaseKeeper`, `keep`): they build, hold and take down a lab. A
keeper reads the request from one line of its standard input and answers with one line. When that input ends,
because the process at its other end has ended, the keeper ends everything that runs in the lab. With the last
process the kernel removes namespaces, devices and queues.
"""

import contextlib
import json
import logging
import os
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, Final, TypeVar

from ..host.end_signals import die_with_parent
from ..model.errors import DecodeError, LabError, LabUnavailable, explain_resource_error
from ..model.serialization import decode, encode
from .devices import FAR_DEVICE, NEAR_DEVICE, check_tools, configure_device, create_tap_pair, create_veth_pair
from .link_spec import FAR_ADDRESS, NEAR_ADDRESS, LabLink
from .namespaces import NetworkNamespace, create_privileged_namespace, end_processes, find_processes

_ENDPOINT_MODULE: Final = "linkgauge.engine.far.loopback"
_log = logging.getLogger(__name__)
Request = TypeVar("Request")


class BaseKeeper(ABC):
    """A lab, from the first namespace to the last process. Call `build` once, then `take_down`."""

    def __init__(self) -> None:
        self.namespaces: list[NetworkNamespace] = []
        self._children: list[subprocess.Popen[bytes]] = []
        self._tethered: set[int] = set()

    @abstractmethod
    def build(self) -> dict[str, Any]:
        """Build the lab and return the answer to the request."""

    def start_tethered(self, command: Sequence[str], pass_fds: Sequence[int] = ()) -> "subprocess.Popen[bytes]":
        """Start a child that ends with its standard input, and so with this process."""
        child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=pass_fds,
        )
        self._children.append(child)
        self._tethered.add(child.pid)
        return child

    def start_foreign(self, command: Sequence[str], log: int) -> "subprocess.Popen[bytes]":
        """Start a program that knows nothing of labs, its output in a file. It ends with this process."""
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=lambda: die_with_parent(signal.SIGHUP),  # noqa: PLW1509 - this process has one thread
        )
        self._children.append(child)
        return child

    def take_down(self) -> None:
        """End everything that runs in the lab, first with SIGHUP, then with SIGKILL."""
        for child in self._children:
            if child.stdin is not None:
                child.stdin.close()
        inodes = {namespace.inode for namespace in self.namespaces}
        end_processes(lambda: self._find_processes(inodes), signal.SIGHUP, spared=self._tethered)

    def _find_processes(self, inodes: set[int]) -> set[int]:
        own = {child.pid for child in self._children if child.poll() is None}
        return own | set(find_processes(inodes))


def keep(kind: type[Request], make: Callable[[Request], BaseKeeper]) -> None:
    """Keep the lab that standard input asks for, until that ends."""
    with ExitStack() as stack:
        try:
            keeper = make(decode(kind, json.loads(sys.stdin.readline() or "null")))
            stack.callback(keeper.take_down)
            _answer(keeper.build())
        except (LabError, DecodeError) as error:
            _answer({"error": str(error), "unavailable": isinstance(error, LabUnavailable)})
            return
        except OSError as error:
            _answer({"error": f"the lab could not be made: {explain_resource_error(error)}", "unavailable": False})
            return
        while sys.stdin.readline():
            pass


def _answer(value: dict[str, Any]) -> None:
    # The process at the other end may have ended; then standard input has ended as well.
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.write(json.dumps(value) + "\n")
        sys.stdout.flush()


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
        """Make the link and start the far end; return the endpoint's port and notes for the user."""
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
