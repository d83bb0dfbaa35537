"""Windows that are smaller than requested, and interfaces and segments that do not match: each is one warning."""

from dataclasses import replace

import pytest
from linkgauge.engine.model.counters.session_counters import SocketInfo
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.host_info import NicInfo
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.link_checks import LinkCheck, WindowCheck

NEAR = NicInfo("eth0", "device", "ixgbe", 10_000_000_000, "full", 1500, tso=True, gso=True, gro=True, lro=False)
FAR = replace(NEAR, name="ens3")
FACTS = SocketInfo(End.NEAR, Direction.OUT, 1, "cubic", None, 1448, timestamps=True, sack=True, window_scaling=True)


def facts(end: End, direction: Direction, granted: int | None, session: int = 1) -> SocketInfo:
    """Return what a kernel granted a session."""
    return SocketInfo(end, direction, session, "cubic", granted, 1448, True, True, True)


@pytest.mark.parametrize(
    ("granted", "requested"), [(None, None), (None, 100), (100, None), (100, 100), (101, 100), (0, 0)]
)
def test_no_warning_if_enough_was_granted_or_nothing_requested(granted: int | None, requested: int | None) -> None:
    """An unknown window is not a reason to warn either."""
    assert WindowCheck(Workload.STREAM).check(facts(End.NEAR, Direction.OUT, granted), requested) is None


@pytest.mark.parametrize(
    ("end", "direction", "buffer", "limit"),
    [
        (End.NEAR, Direction.OUT, "send", "net.core.wmem_max"),
        (End.NEAR, Direction.IN, "receive", "net.core.rmem_max"),
        (End.FAR, Direction.OUT, "receive", "net.core.rmem_max"),
        (End.FAR, Direction.IN, "send", "net.core.wmem_max"),
    ],
)
def test_a_smaller_window_is_reported_with_the_limit_to_raise(
    end: End, direction: Direction, buffer: str, limit: str
) -> None:
    """The text names the end, both sizes and the command that helps."""
    text = WindowCheck(Workload.STREAM).check(facts(end, direction, 212_992), 4_194_304)
    assert text is not None
    assert f"the {end.label} kernel grants 208K of the requested 4M as {buffer} buffer" in text
    assert f"sysctl -w {limit}=4194304" in text


def test_a_warning_is_given_once_for_each_end_and_buffer() -> None:
    """A hundred sessions with the same trouble are one trouble."""
    watch = WindowCheck(Workload.STREAM)
    warnings = [
        watch.check(facts(end, direction, 1, session), 2)
        for session in range(1, 101)
        for end in End
        for direction in (Direction.OUT, Direction.IN)
    ]
    assert len([text for text in warnings if text is not None]) == 4


def test_the_responding_end_sends_the_responses() -> None:
    """In a transaction out is asked by the near end: the payload's send buffer is the far end's."""
    text = WindowCheck(Workload.RR).check(facts(End.FAR, Direction.OUT, 212_992), 4_194_304)
    assert text
    assert "wmem_max" in text


def test_two_equal_ends_have_no_warning() -> None:
    """LRO is off nearly everywhere, and does not matter."""
    watch = LinkCheck(NEAR, FAR, 4)
    assert watch.check_interfaces() == []
    assert watch.check(FACTS, None) is None


def test_nothing_is_shown_for_unknown_values() -> None:
    """None is unknown: neither equal nor different."""
    assert LinkCheck(None, None, 4).check_interfaces() == []
    assert LinkCheck(NEAR, None, 4).check_interfaces() == []
    unknown = NicInfo("eth0", "device")
    watch = LinkCheck(unknown, NEAR, 4)
    assert watch.check_interfaces() == []
    assert LinkCheck(None, None, 4).check(replace(FACTS, mss_bytes=536), None) is None
    assert watch.check(replace(FACTS, mss_bytes=None), None) is None


@pytest.mark.parametrize(
    ("far", "near_words", "far_words"),
    [
        (replace(FAR, mtu_bytes=9000), "local eth0 has 1500", "remote ens3 has 9000"),
        (replace(FAR, duplex="half"), "local eth0 is full", "remote ens3 is half"),
    ],
)
def test_interfaces_that_differ_are_reported_with_both_values(
    far: NicInfo, near_words: str, far_words: str
) -> None:
    """Each with its end and interface."""
    (text,) = LinkCheck(NEAR, far, 4).check_interfaces()
    assert near_words in text
    assert far_words in text


def test_disabled_offloads_are_reported_with_both_ends_states_and_the_remedy() -> None:
    """The command is for the end that lacks them."""
    (text,) = LinkCheck(NEAR, replace(FAR, tso=False, gro=False), 4).check_interfaces()
    assert "local eth0 has TSO on, GSO on, GRO on" in text
    assert "remote ens3 has TSO off, GSO on, GRO off" in text
    assert "ethtool -K ens3" in text
    assert "ethtool -K eth0" not in text


def test_offloads_that_a_lab_has_switched_off_itself_do_not_matter() -> None:
    """Without them its link is exact. Other problems still have their warnings."""
    off = replace(FAR, tso=False, gro=False)
    assert LinkCheck(NEAR, off, 4, expects_offloads_off=True).check_interfaces() == []
    assert len(LinkCheck(NEAR, replace(off, mtu_bytes=9000), 4, expects_offloads_off=True).check_interfaces()) == 1


@pytest.mark.parametrize(
    ("sort", "kind", "warnings"), [("virtual", "veth", 1), ("virtual", "wireguard", 0), ("wireless", "iwlwifi", 0)]
)
def test_offloads_are_expected_of_devices_and_veth_only(sort: str, kind: str, warnings: int) -> None:
    """Others may never have had any."""
    nic = replace(NEAR, sort=sort, kind=kind, tso=False)
    assert len(LinkCheck(nic, FAR, 4).check_interfaces()) == warnings


def test_a_veth_without_gro_is_as_linux_makes_it() -> None:
    """It hands large packets over whole; on a device the same costs."""
    veth = replace(NEAR, sort="virtual", kind="veth", gro=False)
    assert LinkCheck(veth, veth, 4).check_interfaces() == []
    assert len(LinkCheck(replace(NEAR, gro=False), FAR, 4).check_interfaces()) == 1


def test_segments_below_the_smaller_mtu_are_reported_once() -> None:
    """With both MTUs, and what they allow."""
    watch = LinkCheck(NEAR, replace(FAR, mtu_bytes=9000), 4)
    text = watch.check(replace(FACTS, mss_bytes=1348), None)
    assert text is not None
    for part in ("1348", "local eth0 1500", "remote ens3 9000", "1448"):
        assert part in text
    assert watch.check(replace(FACTS, session=2, mss_bytes=1348), None) is None


def test_headers_count_against_the_mtu_by_what_they_are() -> None:
    """IPv6 takes 20 bytes more, timestamps 12."""
    watch = LinkCheck(NEAR, FAR, 6)
    assert watch.check(replace(FACTS, mss_bytes=1428), None) is None
    assert watch.check(replace(FACTS, mss_bytes=1427), None) is not None
    plain = LinkCheck(NEAR, FAR, 4)
    assert plain.check(replace(FACTS, mss_bytes=1460, timestamps=False), None) is None
    assert plain.check(replace(FACTS, mss_bytes=1459, timestamps=False), None) is not None


def test_a_small_window_is_reason_enough_for_small_segments() -> None:
    """Linux sends no segment of more than half a window."""
    jumbo = replace(NEAR, mtu_bytes=9000)
    assert LinkCheck(jumbo, jumbo, 4).check(replace(FACTS, mss_bytes=4096), 8192) is None
    assert LinkCheck(jumbo, jumbo, 4).check(replace(FACTS, mss_bytes=4096), 1 << 20) is not None


def test_loopback_segments_are_what_they_are() -> None:
    """Half of the first window is less than its MTU allows."""
    lo = NicInfo("lo", "loopback", mtu_bytes=65_536, tso=True, gso=True, gro=True)
    assert LinkCheck(lo, lo, 4).check(replace(FACTS, mss_bytes=32_741), None) is None
