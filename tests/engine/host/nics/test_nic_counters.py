"""The counters of an interface: the columns of /proc/net/dev, and a real interface."""

import sys

import pytest
from linkgauge.engine.host.nics.nic_counters import parse_net_dev, read_nic_counts, read_nic_drops
from linkgauge.engine.model.counters.samples import NicCounts

DEV = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier comp
    lo: 11 1 0 0 0 0 0 0 11 1 0 0 0 0 0 0
  eth0: 1000 9 2 3 1 1 0 0 500 8 4 5 1 6 2 0
eth0.5: 7 9 0 0 0 0 0 0 7 8 0 0 0 0 0 0
  bad0: 7 9
"""


def test_an_interfaces_line_is_found_by_its_whole_name() -> None:
    """Its columns are as in proc(5)."""
    counts = parse_net_dev(DEV, "eth0")
    assert counts == NicCounts(received_bytes=1_000, sent_bytes=500, errors=6, dropped=8, collisions=6)


@pytest.mark.parametrize("name", ["eth", "eth1", "bad0", "face |bytes    packets errs drop fifo frame", ""])
def test_an_interface_that_is_not_there_has_no_counts(name: str) -> None:
    """Nothing is guessed, and a line that is cut short does not count."""
    assert parse_net_dev(DEV, name) is None


@pytest.mark.skipif(sys.platform != "linux", reason="interfaces are read on Linux only")
def test_loopback_is_read_and_no_name_has_no_counters() -> None:
    """Both readings are of one file."""
    counts = read_nic_counts("lo")
    assert counts is not None
    assert counts.received_bytes == counts.sent_bytes
    assert read_nic_drops("lo") == (0, 0)
    assert (read_nic_counts(None), read_nic_drops(None)) == (None, None)
