"""A check beside the transfer of another program through the same interface: it is named."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.lab.link_lab import Lab
from linkgauge.engine.lab.link_spec import FAR_ADDRESS

from .conftest import CommandLine

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="the namespaces of a lab are entered as root")

PORT = 5_399
_RECEIVE = f"""
import socket
with socket.create_server(("0.0.0.0", {PORT})) as server:
    print("up", flush=True)
    connection, _ = server.accept()
    while connection.recv(1 << 16):
        pass
"""
_SEND = f"""
import socket
with socket.create_connection(("{FAR_ADDRESS}", {PORT})) as client:
    while True:
        client.sendall(bytes(1 << 16))
"""


def _children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()]


def _far_pid(lab: Lab) -> int:
    own = os.stat(f"/proc/{lab.keeper_pid}/ns/net").st_ino  # noqa: PTH116
    namespaces = {pid: os.stat(f"/proc/{pid}/ns/net").st_ino for pid in _children(lab.keeper_pid)}  # noqa: PTH116
    return next(pid for pid, namespace in namespaces.items() if namespace != own)


@contextmanager
def sending(lab: Lab) -> Iterator[int]:
    """Have another program send as fast as it can from the near end to the far one; yield its process."""
    far = ["nsenter", "-t", str(_far_pid(lab)), "-n", sys.executable, "-c", _RECEIVE]
    with ExitStack() as stack:
        receiver = stack.enter_context(subprocess.Popen(far, stdout=subprocess.PIPE, text=True))
        stack.callback(receiver.kill)
        assert receiver.stdout is not None
        assert receiver.stdout.readline() == "up\n"
        sender = stack.enter_context(subprocess.Popen(lab.near_end_command([sys.executable, "-c", _SEND])))
        stack.callback(sender.kill)
        yield sender.pid


def _check(linkgauge: CommandLine, lab: Lab, *options: str) -> Any:
    enter = lab.near_end_command([])
    process = linkgauge.start("check", "10mb-fd", lab.peer, "--seconds", "3", "--json", *options, within=enter)
    return linkgauge.finish(process).document


def test_other_traffic_is_named_by_process_and_peer(linkgauge: CommandLine, lab: Lab) -> None:
    """With its rate, as the evidence of its finding; the sessions of the test itself are not."""
    with sending(lab) as pid:
        document = _check(linkgauge, lab)
    (warning,) = [text for text in document["warnings"] if text.startswith("other traffic on ")]
    assert f"(pid {pid}) to {FAR_ADDRESS} took " in warning
    assert warning.count(" took ") == 1
    (finding,) = [each for each in document["why"] if each["code"] == "other-traffic"]
    assert warning.partition(": ")[2] in finding["evidence"]


@pytest.mark.every
def test_a_test_that_has_the_interface_for_itself_names_nobody(linkgauge: CommandLine, lab: Lab) -> None:
    """Nor does it name its own sessions, of which there are several."""
    warnings = _check(linkgauge, lab, "--sessions", "8", "--direction", "duplex")["warnings"]
    assert [text for text in warnings if text.startswith("other traffic")] == []
