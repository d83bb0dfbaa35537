"""An interface for one test, with a queue, in a network namespace that lasts as long as one program."""

import os
import shutil
import subprocess
import sys
from typing import Final

import pytest

DEADLINE_S: Final = 20.0
needs_interface = pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("ip", "tc", "unshare"))),
    reason="makes interfaces with queues, as root, with iproute2",
)
LINK: Final = (
    "ip link add near0 numtxqueues 2 type veth peer name far0 numrxqueues 2",
    "ip link set far0 up",
    "ip link set near0 up",
    "ip addr add 10.9.0.1/24 dev near0",
    "ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:01 dev near0",
)


def run_within(program: str, *lines: str) -> "subprocess.CompletedProcess[str]":
    """Run a program of Python in a new namespace; it carries out these commands first: they are its arguments."""
    command = ["unshare", "--net", sys.executable, "-P", "-c", program, *LINK, *lines]
    return subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)
