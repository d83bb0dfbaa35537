"""`linkgauge discover` and `endpoint --announce` on two hosts: network namespaces with a link between them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, Final

import pytest

from ..end_to_end.conftest import CommandLine, home, linkgauge, terminal  # noqa: F401 (fixtures)
from ..end_to_end.namespaces import Namespaces, run_within
from ..end_to_end.terminal import CTRL_C, ENTER, UP, OpenTerminal

pytest.importorskip("zeroconf", reason="the extra linkgauge[discover] is not installed")
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs network namespaces and root"),
    pytest.mark.timeout(120),
]

# A stranger on the LAN: many services, names with control characters, long TXT records, addresses of others.
_HOSTILE: Final = """
import socket, struct, sys, time
def label(text): return bytes([len(text)]) + text
TYPE = label(b"_linkgauge") + label(b"_tcp") + label(b"local") + b"\\0"
def record(name, kind, data): return name + struct.pack(">HHIH", kind, 1, 120, len(data)) + data
def service(number):
    name = label((b"\\x1b[31m" if number % 4 == 3 else b"\\xc2\\x9b31m") + b" evil %05d" % number) + TYPE
    host = label(b"h%05d" % number) + label(b"local") + b"\\0"
    text = label(b"key=0") if number % 2 else b"".join(label(b"x" * 250) for _ in range(5))
    address = bytes([10, 9, number >> 8, number & 255]) if number else b"\\x7f\\0\\0\\1"
    return [record(TYPE, 12, name), record(name, 33, struct.pack(">HHH", 0, 0, 5820) + host),
            record(name, 16, text), record(host, 1, address)]
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("10.9.0.2"))
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 255)
    sock.bind(("", 5353))
    group = socket.inet_aton("224.0.0.251") + socket.inet_aton("10.9.0.2")
    sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group)
    print("ready", flush=True)
    while b"_linkgauge" not in sock.recv(9_000): pass
    for number in range(10_000):
        records = service(number)
        head = struct.pack(">HHHHHH", 0, 0x8400, 0, len(records), 0, 0)
        sock.sendto(head + b"".join(records), ("224.0.0.251", 5353))
        if number % 100 == 99: time.sleep(0.01)
    print("sent", flush=True)
"""


@pytest.fixture
def hosts() -> Iterator[Namespaces]:
    """Two hosts with a link between them: 10.9.0.1 and 10.9.0.2."""
    namespaces = Namespaces(2)
    try:
        link = ["ip", "link", "add", "a0", "type", "veth", "peer", "name", "b0", "netns", namespaces.pids[1]]
        run_within(namespaces.entries[0], *link)
        for entry, name, address in zip(namespaces.entries, ("a0", "b0"), ("10.9.0.1", "10.9.0.2"), strict=True):
            run_within(entry, "ip", "link", "set", "lo", "up")
            run_within(entry, "ip", "link", "set", name, "up")
            run_within(entry, "ip", "addr", "add", f"{address}/16", "dev", name)
            run_within(entry, "ip", "route", "add", "224.0.0.0/4", "dev", name)
        yield namespaces
    finally:
        namespaces.close()


def announce(linkgauge: Any, entry: list[str], *arguments: str) -> tuple[Any, str]:  # noqa: F811
    """Start an endpoint that announces itself; return it and its name once it is announced."""
    endpoint = linkgauge.start("endpoint", "--announce", "rack 7", "--log-json", *arguments, within=entry)
    for line in endpoint.stderr:
        if (document := json.loads(line))["event"] == "announced":
            return endpoint, document["text"]
    raise AssertionError("it has not announced itself")


def discover(linkgauge: Any, entry: list[str], seconds: str = "3") -> list[dict[str, Any]]:  # noqa: F811
    """Return what a host finds."""
    return linkgauge("discover", "--seconds", seconds, "--json", within=entry).document["endpoints"]


@pytest.mark.every
def test_an_endpoint_is_found_by_another_host_and_withdrawn_at_its_end(
    linkgauge: Any,  # noqa: F811
    hosts: Namespaces,
) -> None:
    """A second one with its name gets another; SIGTERM withdraws as Ctrl-C does."""
    near, far = hosts.entries
    first, text = announce(linkgauge, far, "--open", "--port", "6000")
    assert text == "announced on this LAN as rack 7"
    second, text = announce(linkgauge, far, "--port", "6001", "--json")
    assert text == "announced on this LAN as rack 7-2"
    found = discover(linkgauge, near)
    assert [(each["name"], each["peer"], each["wants_key"], each["wants_tls"]) for each in found] == [
        ("rack 7", "10.9.0.2:6000", False, False),
        ("rack 7-2", "10.9.0.2:6001", True, False),
    ]
    printed = linkgauge("discover", within=near).out
    assert "10.9.0.2:6000                open         rack 7\n" in printed
    first.send_signal(signal.SIGTERM)
    assert linkgauge.finish(first).status == 0
    assert [each["name"] for each in discover(linkgauge, near)] == ["rack 7-2"]
    second.send_signal(signal.SIGINT)
    assert linkgauge.finish(second).status == 0
    answer = linkgauge("discover", "--seconds", "1", within=near)
    assert (answer.status, answer.out) == (0, "")
    assert "no endpoint was announced" in answer.err


def test_ten_thousand_hostile_announcements_are_bounded_and_printable(
    linkgauge: Any,  # noqa: F811
    hosts: Namespaces,
) -> None:
    """The search connects to none of them, and it ends."""
    near, far = hosts.entries
    stranger = subprocess.Popen(
        [*far, sys.executable, "-c", _HOSTILE], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    )
    try:
        assert stranger.stdout is not None
        assert stranger.stdout.readline() == "ready\n"
        search = linkgauge.start("discover", "--seconds", "5", within=near)
        answer = linkgauge.finish(search)
    finally:
        stranger.kill()
        stranger.communicate()
    assert answer.status == 0
    lines = answer.out.splitlines()
    assert 0 < len(lines) <= 256
    assert all(line.isprintable() for line in lines)
    assert "127.0.0.1" not in answer.out


@pytest.mark.every
def test_an_endpoint_that_no_other_host_reaches_is_not_announced(linkgauge: Any) -> None:  # noqa: F811
    """An impossible name is refused, too."""
    answer = linkgauge.in_process("endpoint", "--announce", "rack 7", "--bind", "127.0.0.1", "--port", "0")
    assert answer.status == 2
    assert "none of them reaches 127.0.0.1" in answer.err
    assert linkgauge.in_process("endpoint", "--announce", "a\nb", "--port", "0").status == 2


@pytest.mark.every
def test_the_app_offers_an_endpoint_that_announces_itself(
    linkgauge: Any,  # noqa: F811
    terminal: OpenTerminal,  # noqa: F811
    hosts: Namespaces,
) -> None:
    """The list of peers has it, and a choice connects to it."""
    near, far = hosts.entries
    endpoint, _ = announce(linkgauge, far, "--open", "--port", "6000")
    screen = terminal(within=near)
    screen.see("READY", "connect")
    screen.type("c")
    screen.see("10.9.0.2:6000", "announces itself as rack 7")
    screen.type(f"{UP}{ENTER}")
    screen.lose("announces itself")  # the list, where Ctrl-C copies text
    screen.see("READY", "10.9.0.2:6000")
    screen.type(CTRL_C)
    assert screen.finish() == 0
    endpoint.send_signal(signal.SIGTERM)
    assert linkgauge.finish(endpoint).status == 0
