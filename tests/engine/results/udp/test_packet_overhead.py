"""The bytes around a datagram: the headers of its IP version, and an Ethernet frame if both ends have one."""

from dataclasses import replace

import pytest
from linkgauge.engine.model.events import Started
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.host_info import NicInfo
from linkgauge.engine.model.plan import Plan
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.summary import PacketOverhead
from linkgauge.engine.results.udp.packet_overhead import packet_overhead

from ..log_entries import HOST

DEVICE, VETH, VLAN = (
    NicInfo("a", "device", "ixgbe"),
    NicInfo("b", "virtual", "veth"),
    NicInfo("c", "virtual", "vlan"),
)
LOOPBACK, TUNNEL = NicInfo("lo", "loopback"), NicInfo("wg0", "virtual", "wireguard")


@pytest.mark.parametrize(
    ("near", "far", "frame_bytes"),
    [
        (DEVICE, VETH, 38),
        (VLAN, DEVICE, 42),
        (LOOPBACK, LOOPBACK, None),
        (DEVICE, TUNNEL, None),
        (DEVICE, None, None),
    ],
)
@pytest.mark.parametrize(("version", "header_bytes"), [(4, 28), (6, 48)])
def test_only_ethernet_at_both_ends_has_a_frame(
    near: NicInfo, far: NicInfo | None, frame_bytes: int | None, version: int, header_bytes: int
) -> None:
    """The overhead of a tunnel is not known here."""
    plan = Plan(workload=Workload.UDP)
    started = Started(
        "2026-11-21T01:15:30Z", "h:1", replace(HOST, nic=near), replace(HOST, nic=far), plan, Expectation(),
        ip_version=version,
    )  # fmt: skip
    assert packet_overhead(started) == PacketOverhead(header_bytes, frame_bytes)
    assert packet_overhead(replace(started, ip_version=None)) is None
    assert packet_overhead(replace(started, plan=Plan())) is None


def test_the_rates_of_packets_and_of_the_wire_follow_from_the_payload() -> None:
    """Gigabit Ethernet carries 81,274 full packets a second, and 1,488,095 of the smallest ones."""
    overhead = PacketOverhead(28, 38)
    assert overhead.ip_bit_s(81_274 * 1_472 * 8, 81_274) == 81_274 * 1_500 * 8
    assert overhead.wire_bit_s(81_274 * 1_472 * 8, 81_274) == pytest.approx(1e9, rel=1e-5)
    assert overhead.wire_bit_s(1_488_095 * 1 * 8, 1_488_095) == pytest.approx(1e9, rel=1e-5)
    assert PacketOverhead(28).wire_bit_s(8, 1) is None
