"""The interface that carries a connection, its line and its offloads: real ones only."""

import asyncio
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.host.nics.nic import read_connection_nic, read_nic
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.near.connect import connect, query_ends, query_host_info

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="interfaces are read on Linux only"),
]

DEADLINE_S = 20.0
_IP = shutil.which("ip") or ""
_NAME = f"lgn{os.getpid() % 100_000}"


def _ip(*arguments: str) -> str:
    done = subprocess.run(
        [_IP, *arguments], capture_output=True, text=True, check=True, timeout=DEADLINE_S, stdin=subprocess.DEVNULL
    )
    return done.stdout


@pytest.fixture
def namespace() -> Iterator[str]:
    """Give a network namespace of this test's own."""
    if os.geteuid() != 0 or not _IP:
        pytest.skip("network namespaces are made as root, with iproute2")
    try:
        _ip("netns", "add", _NAME)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"this system gives no network namespace: {error.stderr.strip()}")
    try:
        _ip("-n", _NAME, "link", "set", "lo", "up")
        yield _NAME
    finally:
        _ip("netns", "delete", _NAME)


def add_pair(namespace: str, *options: str, address: tuple[str, ...] = ("10.77.0.1/24",)) -> None:
    """Make two interfaces that are connected: `left` has the address."""
    _ip("-n", namespace, "link", "add", "left", *options, "type", "veth", "peer", "name", "right")
    _ip("-n", namespace, "address", "add", *address, "dev", "left")
    for name in ("left", "right"):
        _ip("-n", namespace, "link", "set", name, "up")


def _read_in(namespace: str, local: str, peer: str) -> dict[str, Any] | None:
    """Read the interface of a connection from within a namespace."""
    code = (
        "import json, sys; from linkgauge.engine.model.serialization import encode;"
        "from linkgauge.engine.host.nics.nic import read_nic;"
        "print(json.dumps(encode(read_nic((sys.argv[1], 1), (sys.argv[2], 2)))))"
    )
    return json.loads(_ip("netns", "exec", namespace, sys.executable, "-W", "error", "-c", code, local, peer))


def test_loopback_is_named_and_has_no_line_rate() -> None:
    """Whatever the family; an IPv4 address that is written as IPv6 is the IPv4 one."""
    pairs = [("127.0.0.1", "127.0.0.1"), ("::ffff:127.0.0.1", "::ffff:127.0.0.1")]
    for local, peer in pairs:
        nic = read_nic((local, 1), (peer, 2))
        assert nic is not None
        assert (nic.name, nic.sort, nic.line_rate_bit_s) == ("lo", "loopback", None)
        assert nic.mtu_bytes == int(Path("/sys/class/net/lo/mtu").read_text())


def test_addresses_of_nothing_are_of_no_interface() -> None:
    """Neither a route nor an interface: unknown, without an exception."""
    assert read_nic((), ()) is None
    # TEST-NET-3 (RFC 5737): no host has such an address, so none can send from it.
    assert read_nic(("203.0.113.7", 1), ("203.0.113.9", 2)) is None


def test_a_connection_to_an_own_address_is_carried_by_loopback(namespace: str) -> None:
    """The address is the veth's, the packets never get there."""
    add_pair(namespace)
    nic = _read_in(namespace, "10.77.0.1", "10.77.0.1")
    assert nic is not None
    assert (nic["name"], nic["sort"]) == ("lo", "loopback")


def test_a_virtual_interface_has_its_kind_mtu_offloads_and_queue_but_no_line_rate(namespace: str) -> None:
    """A veth reports 10 Gb/s, which is not the rate of a line; its MTU and offloads are real."""
    add_pair(namespace, "mtu", "1400")
    nic = _read_in(namespace, "10.77.0.1", "10.77.0.2")
    assert nic is not None
    assert (nic["name"], nic["sort"], nic["kind"]) == ("left", "virtual", "veth")
    assert (nic["mtu_bytes"], nic["line_rate_bit_s"], nic["duplex"]) == (1400, None, "full")
    assert (nic["tso"], nic["gso"], nic["lro"]) == (True, True, False)
    assert nic["qdisc"] == json.loads(_ip("-n", namespace, "-j", "link", "show", "left"))[0]["qdisc"]


@pytest.mark.parametrize("kind", ["bridge", "vlan", "macvlan"])
def test_an_interface_on_a_virtual_one_has_no_line_rate_either(namespace: str, kind: str) -> None:
    """Its driver reports what the one below does: a veth's 10 Gb/s, which no line has."""
    add_pair(namespace, address=("10.77.1.1/24",))
    options = {"bridge": (), "vlan": ("id", "7"), "macvlan": ()}[kind]
    on = [] if kind == "bridge" else ["link", "left"]
    try:
        _ip("-n", namespace, "link", "add", "name", "top0", *on, "type", kind, *options)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"this kernel makes no {kind}: {error.stderr.strip()}")
    if kind == "bridge":
        _ip("-n", namespace, "link", "set", "left", "master", "top0")
    _ip("-n", namespace, "address", "add", "10.77.0.1/24", "dev", "top0")
    _ip("-n", namespace, "link", "set", "top0", "up")
    nic = _read_in(namespace, "10.77.0.1", "10.77.0.2")
    assert nic is not None
    assert (nic["name"], nic["kind"], nic["line_rate_bit_s"]) == ("top0", kind, None)


@pytest.mark.parametrize("kind", ["tun", "tap"])
def test_a_tun_device_without_frames_is_told_from_one_with_them(namespace: str, kind: str) -> None:
    """The kernel gives both the same kind. Neither has a line."""
    _ip("-n", namespace, "tuntap", "add", "dev", "left", "mode", kind)
    _ip("-n", namespace, "address", "add", "10.77.0.1/24", "dev", "left")
    _ip("-n", namespace, "link", "set", "left", "up")
    nic = _read_in(namespace, "10.77.0.1", "10.77.0.2")
    assert nic is not None
    assert (nic["kind"], nic["line_rate_bit_s"]) == (kind, None)


def test_an_offload_that_is_switched_off_is_read_as_off(namespace: str) -> None:
    """Switched by ioctl, for ethtool itself is on few machines."""
    add_pair(namespace)
    code = (
        "import array, fcntl, socket, struct\n"
        "for command in (0x1F, 0x2C):\n"  # ETHTOOL_STSO, ETHTOOL_SGRO
        "    off = array.array('I', (command, 0))\n"
        "    request = struct.pack('16sP16x', b'left', off.buffer_info()[0])\n"
        "    fcntl.ioctl(socket.socket(), 0x8946, request)"
    )
    _ip("netns", "exec", namespace, sys.executable, "-c", code)
    nic = _read_in(namespace, "10.77.0.1", "10.77.0.2")
    assert nic is not None
    assert (nic["tso"], nic["gso"], nic["gro"]) == (False, True, False)


def test_an_interface_without_a_route_is_found_by_its_address(namespace: str) -> None:
    """A host that only answers may have no route to the client; a point-to-point address is this end's."""
    add_pair(namespace, address=("10.77.0.1", "peer", "10.77.0.2"))
    _ip("-n", namespace, "address", "add", "2001:db8::1/64", "dev", "left", "nodad")
    for local, peer in (("10.77.0.1", "198.51.100.1"), ("2001:db8::1", "2001:db8:1::1")):
        nic = _read_in(namespace, local, peer)
        assert nic is not None
        assert nic["name"] == "left"
    assert _read_in(namespace, "10.77.0.2", "198.51.100.1") is None


def test_rate_and_duplex_are_what_the_driver_says(namespace: str) -> None:
    """A veth's driver reports 10 Gb/s, which is not the rate of a line, and full duplex."""
    _ip("-n", namespace, "link", "add", "left", "type", "veth", "peer", "name", "right")
    code = (
        "import socket; from linkgauge.engine.host.nics.ethtool import read_line;"
        "print(*read_line(socket.socket(), 'left'), *read_line(socket.socket(), 'lo'))"
    )
    answer = _ip("netns", "exec", namespace, sys.executable, "-c", code)
    assert answer.split() == ["10000000000", "full", "None", "None"]


def test_this_hosts_interfaces_are_those_with_a_lasting_address(namespace: str) -> None:
    """Loopback and an interface without an address are none that a link could begin at."""
    add_pair(namespace, "mtu", "9000")
    _ip("-n", namespace, "link", "add", "spare", "type", "veth", "peer", "name", "other")
    code = (
        "from linkgauge.engine.host.nics.nic import read_own_nics;"
        "print([(nic.name, nic.mtu_bytes) for nic in read_own_nics()])"
    )
    answer = _ip("netns", "exec", namespace, sys.executable, "-c", code)
    assert answer.strip() == "[('left', 9000)]"


def test_a_link_local_address_is_of_the_interface_that_it_names() -> None:
    """Its scope is an interface's number, which is more than a route has."""
    index = socket.if_nametoindex("lo")
    nic = read_nic(("fe80::1", 1, 0, index), ("fe80::2", 2, 0, index))
    assert nic is not None
    assert nic.name == "lo"


async def test_both_ends_tell_the_interface_of_the_control_connection(far_end: Peer) -> None:
    """On loopback that is the same one."""
    async with asyncio.timeout(DEADLINE_S):
        ends = await query_ends(far_end)
        assert (await query_host_info(far_end)).nic == ends.far.nic
    assert ends.near.nic is not None
    assert ends.near.nic.sort == "loopback"
    assert ends.near.nic == ends.far.nic


async def test_a_driver_that_does_not_answer_in_time_leaves_the_interface_unknown(
    far_end: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The greeting does not wait for it."""
    monkeypatch.setattr("linkgauge.engine.host.nics.nic.DEADLINE_S", 0.0)
    async with asyncio.timeout(DEADLINE_S):
        ends = await query_ends(far_end)
    assert ends.near.nic is None


async def test_what_the_kernel_refuses_leaves_the_interface_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Out of descriptors, for example: a run does not fail for want of its interface."""

    def refuse(*_arguments: object) -> None:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr("linkgauge.engine.host.nics.nic.read_nic", refuse)
    assert await read_connection_nic(("127.0.0.1", 1), ("127.0.0.1", 2)) is None


@pytest.mark.parametrize(("host", "ip"), [("127.0.0.1", 4), ("::1", 6)])
async def test_an_endpoint_of_both_families_tells_the_interface_of_either(host: str, ip: int) -> None:
    """There an IPv4 client has an address that is written as IPv6."""
    if ip == 6 and not socket.has_dualstack_ipv6():
        pytest.skip("this system has no IPv6")
    async with (
        asyncio.timeout(DEADLINE_S),
        Endpoint(listen(None, 0)) as endpoint,
        connect(Peer(host, endpoint.address[1])) as (link, ends),
    ):
        assert link.ip_version == ip
    assert ends.far.nic is not None
    assert ends.far.nic.name == "lo"


def test_every_kind_of_interface_is_read(namespace: str) -> None:
    """Loopback, a pair, a tunnel, a bridge and a dummy; and a route that there is not."""
    _ip("-n", namespace, "link", "add", "left", "mtu", "1400", "type", "veth", "peer", "name", "right")
    names, kinds = ["left"], ["veth"]
    for name, *arguments in (
        ["dummy0", "type", "dummy"],
        ["br0", "type", "bridge"],
        ["vx0", "type", "vxlan", "id", "42", "dev", "left", "dstport", "4789"],
        ["left.7", "link", "left", "type", "vlan", "id", "7"],
    ):
        with contextlib.suppress(subprocess.CalledProcessError):  # not every kernel has them
            _ip("-n", namespace, "link", "add", "name", name, *arguments)
            names.append(name)
            kinds.append(arguments[arguments.index("type") + 1])
    for number, name in enumerate(names):
        _ip("-n", namespace, "address", "add", f"10.77.{number}.1/24", "dev", name)
        _ip("-n", namespace, "link", "set", name, "up")
    nics = [_read_in(namespace, f"10.77.{number}.1", f"10.77.{number}.2") for number in range(len(names))]
    assert [nic and (nic["name"], nic["sort"], nic["kind"]) for nic in nics] == [
        (name, "virtual", kind) for name, kind in zip(names, kinds, strict=True)
    ]
    for local, peer in (("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("::ffff:127.0.0.1", "127.0.0.1")):
        nic = _read_in(namespace, local, peer)
        assert nic is not None
        assert (nic["name"], nic["sort"], nic["duplex"]) == ("lo", "loopback", None)
    assert _read_in(namespace, "192.0.2.1", "192.0.2.2") is None
