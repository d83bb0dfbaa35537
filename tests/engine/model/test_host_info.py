"""The description of a host: values that no host can have are refused."""

from typing import Any

import pytest
from linkgauge.engine.model.host_info import HostInfo, NicInfo, TcpSysctls, lacks_offloads


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_that_no_kernel_has_is_refused(limit: int) -> None:
    """Windows are computed from it."""
    with pytest.raises(ValueError, match="buffer limits"):
        TcpSysctls(rmem_max_bytes=limit)


@pytest.mark.parametrize(
    "wrong",
    [
        {"line_rate_bit_s": 0},
        {"line_rate_bit_s": 10**15 + 1},
        {"mtu_bytes": 67},
        {"mtu_bytes": (1 << 32) + 1},
        {"name": "x" * 257},
        {"kind": "x" * 257},
    ],
)
def test_an_interface_that_no_kernel_has_is_refused(wrong: dict[str, Any]) -> None:
    """Expected rates are computed from it."""
    with pytest.raises(ValueError, match="interface"):
        NicInfo(**({"name": "eth0", "sort": "device"} | wrong))


@pytest.mark.parametrize("field", ["hostname", "system", "software", "event_loop"])
def test_an_absurdly_long_name_of_a_host_is_refused(field: str) -> None:
    """The longest that is valid has 256 characters."""
    names = dict.fromkeys(("hostname", "system", "software", "event_loop"), "x" * 256)
    assert HostInfo(cores=1, **names).cores == 1
    with pytest.raises(ValueError, match="more than 256 characters"):
        HostInfo(cores=1, **(names | {field: "x" * 257}))


@pytest.mark.parametrize(
    ("nic", "is_lacking"),
    [
        (NicInfo("eth0", "device", tso=True, gso=True, gro=True), False),
        (NicInfo("eth0", "device", tso=True, gso=True, gro=False), True),
        (NicInfo("eth0", "device"), False),
        (NicInfo("veth0", "virtual", "veth", tso=True, gso=True, gro=False), False),
        (NicInfo("veth0", "virtual", "veth", tso=False, gso=True), True),
        (NicInfo("vlan7", "virtual", "vlan", tso=False), False),
    ],
)
def test_an_offload_is_missed_only_where_the_interface_needs_it(nic: NicInfo, is_lacking: bool) -> None:
    """A pair of virtual interfaces needs no GRO; an unknown state is not off."""
    assert lacks_offloads(nic) is is_lacking
