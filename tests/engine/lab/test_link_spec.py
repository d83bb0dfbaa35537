"""The numbers of an emulated link: pure arithmetic."""

from fractions import Fraction

from linkgauge.engine.lab.link_spec import LabLink
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


def test_frames_are_as_large_as_the_smaller_mtu_of_the_two_ends_lets_them() -> None:
    """TCP agrees on the smaller size."""
    crooked = LabLink(1_000_000_000, 9000, 1500, 24, "ethernet", 250_000, 4_000_000, grain="batch")
    assert crooked.frame_efficiency == Fraction(1514, 1538)


def test_only_what_the_kernel_cannot_do_needs_the_relay() -> None:
    """A rate it can."""
    assert not ETHERNET.needs_relay
    assert decode(LabLink, {**encode(ETHERNET), "half_duplex": True}).needs_relay
    assert decode(LabLink, {**encode(ETHERNET), "delay_ns": 1}).needs_relay
    assert decode(LabLink, {**encode(ETHERNET), "loss_percent": 0.1}).needs_relay
