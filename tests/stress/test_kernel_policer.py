"""The policer of the kernel has the bucket that was asked for, and passes its rate."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ..end_to_end.namespaces import Namespaces, run_within

ROOT = Path(__file__).parents[2]
FRAMES = 20
MAC = "02:00:00:00:00:02"
COUNT = """
import socket
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.bind(("10.77.0.2", 7))
print("up", flush=True)
count = 0
try:
    while True:
        sock.settimeout(20 if count == 0 else 1)
        sock.recv(2000)
        count += 1
except TimeoutError:
    print(count)
"""
SEND = """
import socket
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(200):
    sock.sendto(bytes(958), ("10.77.0.2", 7))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes namespaces")
def test_a_burst_passes_as_far_as_the_bucket_reaches() -> None:
    """Of 200 frames of 1000 bytes, sent at once: at 8 kb/s no other one passes meanwhile."""
    spaces = Namespaces(2)
    near, far = spaces.entries
    try:
        peer = ("peer", "name", "far0", "netns", spaces.pids[1])
        run_within(near, "ip", "link", "add", "near0", "type", "veth", *peer)
        for entry, device, place in ((near, "near0", 1), (far, "far0", 2)):
            run_within(entry, "ip", "addr", "add", f"10.77.0.{place}/24", "dev", device)
            run_within(entry, "ip", "link", "set", device, "up")
        run_within(far, "ip", "link", "set", "far0", "address", MAC)
        run_within(near, "ip", "neigh", "add", "10.77.0.2", "lladdr", MAC, "dev", "near0")
        script = str(ROOT / "stress" / "kernel_policer.py")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        with (
            subprocess.Popen(
                [*far, sys.executable, script, "far0", "8000", str(FRAMES * 1_000)], **pipes
            ) as policer,
            subprocess.Popen([*far, sys.executable, "-c", COUNT], **pipes) as receiver,
        ):
            assert policer.stdout is not None
            assert receiver.stdout is not None
            assert receiver.stdout.readline() == "up\n"
            if policer.stdout.readline() != "up\n":
                receiver.kill()
                pytest.skip("this kernel has no programs at a device's ingress (Linux 6.6)")
            run_within(near, sys.executable, "-c", SEND)
            count, _ = receiver.communicate(timeout=60)
            policer.communicate(timeout=60)
        assert FRAMES - 1 <= int(count) <= FRAMES
    finally:
        spaces.close()
