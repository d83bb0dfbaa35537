"""Reading the interface that carries a connection: from real ones only."""

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
from linkgauge.engine.far.endpoint import Endpoint, listen
from linkgauge.engine.host.nic import read_nic
from linkgauge.engine.model.host_info import HostInfo, NicInfo
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import End
from linkgauge.engine.near.connect import connect, query_ends, query_host_info
from linkgauge.engine.protocol.framing import decode_body, encode_frame
from linkgauge.engine.protocol.messages import Welcome

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


def _read_in(namespace: str, local: str, peer: str) -> dict[str, Any] | None:
    """Read the interface of a connection from within a namespace."""
    code = (
        "import json, sys; from linkgauge.engine.model.serialization import encode;"
        "from linkgauge.engine.host.nic import read_nic;"
        "print(json.dumps(encode(read_nic((sys.argv[1], 1), (sys.argv[2], 2)))))"
    )
    return json.loads(_ip("netns", "exec", namespace, sys.executable, "-W", "error", "-c", code, local, peer))


def test_loopback_is_told_as_such_and_has_no_line_rate() -> None:
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
    _ip("-n", namespace, "link", "add", "left", "type", "veth", "peer", "name", "right")
    _ip("-n", namespace, "address", "add", "10.77.0.1/24", "dev", "left")
    _ip("-n", namespace, "link", "set", "left", "up")
    nic = _read_in(namespace, "10.77.0.1", "10.77.0.1")
    assert nic is not None
    assert (nic["name"], nic["sort"]) == ("lo", "loopback")


def test_a_virtual_interface_has_its_kind_mtu_and_offloads_but_no_line_rate(namespace: str) -> None:
    """A veth says 10 Gb/s of itself, which is no line's rate; its MTU and offloads are real."""
    _ip("-n", namespace, "link", "add", "left", "mtu", "1400", "type", "veth", "peer", "name", "right")
    _ip("-n", namespace, "address", "add", "10.77.0.1/24", "dev", "left")
    for name in ("left", "right"):
        _ip("-n", namespace, "link", "set", name, "up")
    nic = _read_in(namespace, "10.77.0.1", "10.77.0.2")
    assert nic is not None
    assert (nic["name"], nic["sort"], nic["kind"]) == ("left", "virtual", "veth")
    assert (nic["mtu_bytes"], nic["line_rate_bit_s"], nic["duplex"]) == (1400, None, "full")
    assert (nic["tso"], nic["gso"], nic["lro"]) == (True, True, False)


def test_an_offload_that_is_switched_off_is_read_as_off(namespace: str) -> None:
    """Switched by the same library, for ethtool itself is on few machines."""
    _ip("-n", namespace, "link", "add", "left", "type", "veth", "peer", "name", "right")
    _ip("-n", namespace, "address", "add", "10.77.0.1/24", "dev", "left")
    for name in ("left", "right"):
        _ip("-n", namespace, "link", "set", name, "up")
    code = (
        "from pyroute2.ethtool.ioctl import IoctlEthtool\n"
        "one = IoctlEthtool('left')\n"
        "one.set_offload_flag('tcp-segmentation-offload', 0)\n"
        "one.set_offload_flag('generic-receive-offload', 0)\n"
        "one.close()"
    )
    _ip("netns", "exec", namespace, sys.executable, "-c", code)
    nic = _read_in(namespace, "10.77.0.1", "10.77.0.2")
    assert nic is not None
    assert (nic["tso"], nic["gso"], nic["gro"]) == (False, True, False)


def test_a_link_local_address_is_of_the_interface_that_it_names() -> None:
    """Its scope is an interface's number; no route says as much."""
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


async def test_on_a_busy_machine_the_standard_library_tells_what_pyroute2_is_too_slow_for(
    far_end: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its import alone took more than a second and a half there, and the interface stayed unknown."""
    monkeypatch.setattr("linkgauge.engine.host.nic.DEADLINE_S", 0.0)
    async with asyncio.timeout(DEADLINE_S):
        ends = await query_ends(far_end)
    assert ends.near.nic is not None
    assert (ends.near.nic.name, ends.near.nic.sort) == ("lo", "loopback")


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


def test_interfaces_cross_the_wire_and_absurd_ones_do_not() -> None:
    """What a peer says of its interface is held to what can be."""
    nic = NicInfo("eth0", "device", "ixgbe", 10_000_000_000, "full", 1500, tso=True, lro=False)
    welcome = Welcome(HostInfo("a", "Linux", 2, "linkgauge", "uvloop", nic))
    body = encode_frame(welcome)[4:]
    assert decode_body(body, End.FAR) == welcome
    for good, bad in [(b'"mtu_bytes":1500', b'"mtu_bytes":-5'), (b'"full"', b'"both"'), (b'"device"', b'"magic"')]:
        assert good in body
        with pytest.raises(Exception, match="cannot be read"):
            decode_body(body.replace(good, bad), End.FAR)


def test_nothing_is_imported_before_an_interface_is_read() -> None:
    """The command line and the workers start without it."""
    code = (
        "import sys, linkgauge.engine.near.run, linkgauge.engine.far.endpoint, linkgauge.engine.workers.worker;"
        "sys.exit('pyroute2' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=DEADLINE_S)


def test_an_engine_that_travels_reads_the_same_of_every_kind_of_interface(namespace: str) -> None:
    """Without pyroute2: loopback, a pair, a bridge and a dummy; and a route that there is not."""
    _ip("-n", namespace, "link", "add", "left", "mtu", "1400", "type", "veth", "peer", "name", "right")
    made = ["left"]
    for name, *sort in (["dummy0", "type", "dummy"], ["br0", "type", "bridge"]):
        with contextlib.suppress(subprocess.CalledProcessError):  # not every kernel has them
            _ip("-n", namespace, "link", "add", name, *sort)
            made.append(name)
    pairs = [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("::ffff:127.0.0.1", "127.0.0.1")]
    pairs.append(("192.0.2.1", "192.0.2.2"))
    for number, name in enumerate(made):
        _ip("-n", namespace, "address", "add", f"10.77.{number}.1/24", "dev", name)
        _ip("-n", namespace, "link", "set", name, "up")
        pairs.append((f"10.77.{number}.1", f"10.77.{number}.2"))
    code = (
        "import json, sys; from linkgauge.engine.model.serialization import encode;"
        "from linkgauge.engine.host.nic import read_nic;"
        "sys.argv[1] == 'plainly' and sys.modules.update(pyroute2=None);"
        "print(json.dumps([encode(read_nic((a, 1), (b, 2))) for a, b in json.loads(sys.argv[2])]))"
    )
    with_it, without = (
        json.loads(_ip("netns", "exec", namespace, sys.executable, "-c", code, how, json.dumps(pairs)))
        for how in ("with", "plainly")
    )
    assert [nic and nic["name"] for nic in without] == ["lo", "lo", "lo", None, *made]
    assert without == with_it
