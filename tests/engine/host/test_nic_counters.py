"""The counters of network interfaces, read from text as the kernel writes it."""

import sys

import pytest
from linkgauge.engine.host.nic_counters import parse_net_dev, read_nic_counts, subtract_nic_counts
from linkgauge.engine.model.samples import NicCounts

DEV = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier comp
    lo: 11 1 0 0 0 0 0 0 11 1 0 0 0 0 0 0
  eth0: 1000 9 2 3 1 1 0 0 500 8 4 5 1 6 2 0
eth0.5: 7 9 0 0 0 0 0 0 7 8 0 0 0 0 0 0
  bad0: 7 9
"""


def test_an_interfaces_line_is_found_by_its_whole_name() -> None:
    """And its columns are those of proc(5)."""
    counts = parse_net_dev(DEV, "eth0")
    assert counts == NicCounts(received_bytes=1_000, sent_bytes=500, errors=6, dropped=8, collisions=6)


@pytest.mark.parametrize("name", ["eth", "eth1", "bad0", "face |bytes    packets errs drop fifo frame", ""])
def test_an_interface_that_is_not_there_has_no_counts(name: str) -> None:
    """Nothing is guessed, and a line that is cut short is none."""
    assert parse_net_dev(DEV, name) is None


def test_counts_of_an_interval_never_fall_below_nothing() -> None:
    """An interface that was taken down and up starts anew."""
    before, after = NicCounts(10, 10, 1, 0, 5), NicCounts(30, 5, 1, 2, 5)
    assert subtract_nic_counts(before, after) == NicCounts(20, 0, 0, 2, 0)
    assert subtract_nic_counts(None, after) is subtract_nic_counts(before, None) is None


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_this_machines_loopback_counts() -> None:
    """A name that no interface has is unknown."""
    counts = read_nic_counts("lo")
    assert counts is not None
    assert counts.received_bytes >= 0
    assert read_nic_counts("no-such-nic") is read_nic_counts(None) is None
