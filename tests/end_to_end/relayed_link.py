"""A link between two network namespaces, with a relay that has faults of datagrams, and counts them."""

import json
import os
import select
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import pytest

from .datagram_relay import Faults, FlowTruth

DEADLINE_S: Final = 30.0
_RELAY: Final = Path(__file__).with_name("datagram_relay.py")


class RelayedLink:
    """A link that is up. `near` and `far` are what a command line begins with to run at that end."""

    def __init__(self) -> None:
        self._relay = subprocess.Popen(
            [sys.executable, "-P", str(_RELAY)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            self.near, self.far = (["nsenter", f"--net={path}"] for path in self._read())
        except BaseException:
            self.close()
            raise

    def _read(self) -> Any:
        assert self._relay.stdout is not None
        readable, _, _ = select.select([self._relay.stdout], [], [], DEADLINE_S)
        assert readable, "the relay does not answer"
        return json.loads(self._relay.stdout.readline())

    def _ask(self, command: object) -> Any:
        assert self._relay.stdin is not None
        self._relay.stdin.write(json.dumps(command) + "\n")
        self._relay.stdin.flush()
        return self._read()

    def set_faults(self, faults: Faults) -> None:
        """Let these faults be in force from now on, and begin to count."""
        assert self._ask(asdict(faults)) == {}

    def truth(self, direction: str) -> list[FlowTruth]:
        """Return what was done to each flow of a direction since the faults were set."""
        return [FlowTruth(**flow) for flow in self._ask("truth")[direction]]

    def close(self) -> None:
        """End the relay, and with it the link."""
        self._relay.communicate(timeout=DEADLINE_S)


@contextmanager
def open_relayed_link() -> Iterator[RelayedLink]:
    """Give a link; skip the test, and say why, where this machine cannot have one."""
    if os.geteuid() != 0 or not all(map(shutil.which, ("ip", "nsenter"))) or not Path("/dev/net/tun").exists():
        pytest.skip("a relay of frames needs root, nsenter, iproute2 and /dev/net/tun")
    if not Path("/proc/net/if_inet6").exists():
        pytest.skip("this system has no IPv6")
    link = RelayedLink()
    try:
        yield link
    finally:
        link.close()
