"""Which sockets a target means, by real processes and hosts."""

import os
import socket
import subprocess
import sys

import pytest
from linkgauge.engine.host.sockets.socket_message import SocketMessage
from linkgauge.engine.host.sockets.socket_owners import read_process_name
from linkgauge.engine.model.errors import LinkgaugeError
from linkgauge.observe.request import parse_target
from linkgauge.observe.selection import Selection

from ..engine.tcp_pair import only_linux
from .made_sockets import Socket

pytestmark = only_linux


def test_a_process_means_the_sockets_that_it_has_open() -> None:
    """Those of this process, and no other."""
    with socket.socket() as own:
        selection = Selection(parse_target(str(os.getpid())))
        selection.refresh()
        inode = os.fstat(own.fileno()).st_ino
        body = bytearray(Socket().message().body)
        body[68:72] = inode.to_bytes(4, sys.byteorder)
        assert selection.allows(SocketMessage(bytes(body)))
        assert not selection.allows(Socket().message())
    assert selection.is_by_process
    assert not selection.bytecode


def test_a_host_and_a_port_are_compared_by_the_kernel_and_for_ended_ones_here() -> None:
    """A broadcast has no filter."""
    message = Socket(port=5).message()  # from 192.0.2.1, port 5, to port 80
    for text, matches in (("192.0.2.1:80", True), ("192.0.2.1:81", False), (":5", True), ("192.0.2.7", False)):
        selection = Selection(parse_target(text))
        assert selection.bytecode
        assert selection.matches(message, ()) is matches
    assert Selection(None).matches(message, ())


@pytest.mark.parametrize(
    ("text", "problem"),
    [("4194303", "there is no process 4194303"), ("no-such-program-or-host", "no process is named")],
)
def test_a_target_that_does_not_exist_is_told(text: str, problem: str) -> None:
    """In a line, with its name."""
    with pytest.raises(LinkgaugeError, match=problem):
        Selection(parse_target(text))


def test_a_program_means_all_of_its_processes() -> None:
    """By the name that the kernel knows."""
    with subprocess.Popen(["/usr/bin/env", "sleep", "30"]) as process:
        try:
            while read_process_name(process.pid) != "sleep":  # it is still env
                pass
            assert Selection(parse_target("sleep")).is_by_process
        finally:
            process.kill()
