"""Expected rates by the interface of a route."""

from linkgauge.engine.host.sockets.socket_message import SocketAddress
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.host_info import NicInfo
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.observe.expected_rates import ExpectedRates, InterfaceMeter, ip_version_of
from linkgauge.presets.catalog import load_catalog

from ..engine.tcp_pair import only_linux

FAST = NicInfo("eth0", "device", "ixgbe", 10**9, "full", 1_500)
SILENT = NicInfo("eth1", "device", "virtio_net", None, None, 1_500)
LOOPBACK = NicInfo("lo", "loopback")


def test_an_interface_with_a_line_rate_has_an_expected_rate() -> None:
    """As `check auto` has it; the link's packets are known, too."""
    rates = ExpectedRates(load_catalog(), None)
    for flow in Direction.DUPLEX.flows:
        expected = rates.find_rate(FAST, flow, 4)
        assert expected is not None
        assert 900_000_000 < expected.bit_s < 950_000_000
    link = rates.find_link(FAST, 4)
    assert link is not None
    assert link.mtu_bytes == 1_500


def test_an_interface_without_a_line_rate_has_one_only_from_the_user() -> None:
    """Loopback never has one."""
    assert ExpectedRates(load_catalog(), None).find_rate(SILENT, Direction.OUT, 4) is None
    given = ExpectedRates(load_catalog(), 10**8)
    expected = given.find_rate(SILENT, Direction.OUT, 6)
    assert expected is not None
    assert 90_000_000 < expected.bit_s < 95_000_000
    assert given.find_rate(LOOPBACK, Direction.OUT, 4) is None
    assert given.find_rate(None, Direction.OUT, 4) is None


@only_linux
def test_the_interface_of_a_route_is_found_and_its_traffic_measured() -> None:
    """Loopback is on every host."""
    rates = ExpectedRates(load_catalog(), None)
    rates.begin()
    local = SocketAddress("127.0.0.1", 1)
    nic = rates.find_nic(local, local)
    assert nic is not None
    assert nic.sort == "loopback"
    meter = InterfaceMeter()
    assert meter.measure([nic], 0) == ()
    (found,) = meter.measure([nic], SECOND_NS)
    assert (found.name, found.nic) == (nic.name, nic)


def test_the_version_of_an_address_is_read_from_it() -> None:
    """IPv6 packets carry less payload."""
    assert (ip_version_of(SocketAddress("::1", 1)), ip_version_of(SocketAddress("127.0.0.1", 1))) == (6, 4)
