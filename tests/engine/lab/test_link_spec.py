"""What an emulated link is made of: pure arithmetic."""

from fractions import Fraction

import pytest
from linkgauge.engine.lab.devices import check_tools, qdisc_arguments
from linkgauge.engine.lab.link_spec import LabLink
from linkgauge.engine.model.errors import LabUnavailable
from linkgauge.engine.model.serialization import decode, encode

ETHERNET = LabLink(100_000_000, 1500, 1500, 24, "ethernet", 16_384, 400_000, smallest_bytes=84)
ATM = LabLink(149_760_000, 9180, 9180, 2, "atm", 37_440, 561_600)


def test_a_full_frame_takes_what_a_wire_puts_around_it() -> None:
    """1514 bytes, preamble, check sequence and gap; 192 cells of 53 bytes for an MTU of 9180."""
    assert ETHERNET.wire_bytes(1514) == 1538
    assert ATM.wire_bytes(9194) == 192 * 53


def test_a_small_frame_takes_the_smallest_there_is() -> None:
    """An Ethernet frame is padded to 64 bytes, and an empty cell is a cell."""
    assert ETHERNET.wire_bytes(54) == 84
    assert ATM.wire_bytes(54) == 2 * 53


def test_a_frame_is_on_the_line_for_its_bits() -> None:
    """1538 bytes at 100 Mb/s."""
    assert ETHERNET.wire_ns(1514) == 123_040


def test_a_queue_that_meets_single_packets_is_told_what_goes_around_each() -> None:
    """Overhead and cells are counted by tbf itself."""
    told = " ".join(qdisc_arguments(ETHERNET))
    assert told == "tbf rate 100000000bit burst 16384b limit 400000b overhead 24 mpu 84 linklayer ethernet"
    assert " ".join(qdisc_arguments(ATM)).endswith("overhead 2 mpu 0 linklayer atm")


def test_a_queue_that_meets_several_packets_at_once_is_told_their_share_of_the_line() -> None:
    """Then the framing of all but the first would not count."""
    fast = LabLink(1_000_000_000, 1500, 1500, 24, "ethernet", 250_000, 4_000_000, grain="batch")
    assert fast.frame_efficiency == Fraction(1514, 1538)
    assert " ".join(qdisc_arguments(fast)) == "tbf rate 984395319bit burst 250000b limit 4000000b"


def test_frames_are_as_large_as_the_smaller_mtu_of_the_two_ends_lets_them() -> None:
    """TCP agrees on what both ends can take."""
    crooked = LabLink(1_000_000_000, 9000, 1500, 24, "ethernet", 250_000, 4_000_000, grain="batch")
    assert crooked.frame_efficiency == Fraction(1514, 1538)


def test_only_what_the_kernel_cannot_do_needs_the_relay() -> None:
    """A rate it can."""
    assert not ETHERNET.needs_relay
    assert decode(LabLink, {**encode(ETHERNET), "half_duplex": True}).needs_relay
    assert decode(LabLink, {**encode(ETHERNET), "delay_ns": 1}).needs_relay
    assert decode(LabLink, {**encode(ETHERNET), "loss_percent": 0.1}).needs_relay


def test_a_missing_tool_is_named_with_its_debian_package() -> None:
    """So that a person knows what to install."""
    with pytest.raises(LabUnavailable, match=r"a lab needs ip and tc; on Debian: apt install iproute2"):
        check_tools("/nonexistent")
