"""Interfaces and their locks: a test is alone, probes share, and locks of other processes count."""

import asyncio
from pathlib import Path

import pytest
from linkgauge.engine.model.peer import LOOPBACK, Peer
from linkgauge.engine.model.plan import SocketOptions
from linkgauge.tui.watch.running.interface_locks import (
    UNKNOWN_INTERFACE,
    InterfaceLocks,
    carrier_of,
    interface_towards,
)


async def test_two_tests_do_not_share_an_interface_and_two_interfaces_do_not_wait(tmp_path: Path) -> None:
    """Two InterfaceLocks stand for two processes."""
    here, there = InterfaceLocks(tmp_path), InterfaceLocks(tmp_path)
    async with here.hold_for_test("eth0", 1.0):
        async with there.hold_for_test("eth1", 1.0):
            pass
        with pytest.raises(TimeoutError):
            async with there.hold_for_test("eth0", 0.2):
                pass
    async with there.hold_for_test("eth0", 1.0):
        pass


async def test_probes_share_an_interface_and_a_test_does_not_share_it_with_them(tmp_path: Path) -> None:
    """In either order: a test's load spoils the latency of a probe."""
    locks = InterfaceLocks(tmp_path)
    async with locks.hold_for_probe("eth0", 1.0), locks.hold_for_probe("eth0", 1.0):
        with pytest.raises(TimeoutError):
            async with locks.hold_for_test("eth0", 0.2):
                pass
    async with locks.hold_for_test("eth0", 1.0):
        with pytest.raises(TimeoutError):
            async with locks.hold_for_probe("eth0", 0.2):
                pass


async def test_a_wait_that_is_cancelled_leaves_no_lock_behind(tmp_path: Path) -> None:
    """The next one gets it."""
    locks = InterfaceLocks(tmp_path)
    async with locks.hold_for_test("eth0", 1.0):
        waiting = asyncio.ensure_future(locks.hold_for_test("eth0", 60.0).__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
    async with locks.hold_for_test("eth0", 1.0):
        pass


async def test_the_interface_of_a_peer_is_the_one_of_its_connection() -> None:
    """Loopback, a device that the plan names, and an unknown one."""
    unbound = SocketOptions()
    assert await interface_towards(LOOPBACK, unbound) == "lo"
    assert await interface_towards(Peer("127.0.0.1", 5201), unbound) == "lo"
    assert await interface_towards(Peer("127.0.0.1", 5201), SocketOptions(device="eth7")) == "eth7"
    assert await interface_towards(Peer("no-such-host.invalid", 5201), unbound) == UNKNOWN_INTERFACE


def test_a_vlan_counts_as_the_interface_below_it(tmp_path: Path) -> None:
    """A bond has two below it: there tests share the bond."""
    for name, below in (("bond0.7", "bond0"), ("bond0", "eth0"), ("bond0", "eth1"), ("eth2.5", "eth2")):
        (tmp_path / name / f"lower_{below}").mkdir(parents=True)
    (tmp_path / "eth2").mkdir()
    assert [carrier_of(name, tmp_path) for name in ("bond0.7", "eth2.5", "eth2", "tun0")] == [
        "bond0",
        "eth2",
        "eth2",
        "tun0",
    ]
