"""The specification of an emulated link: numbers for the kernel's queues and for the relay. Pure."""

from dataclasses import dataclass
from fractions import Fraction
from ipaddress import ip_network
from typing import Final, Literal

from ..model.plan import SECOND_NS

ETHERNET_HEADER_BYTES: Final = 14  # the kernel counts it as part of a frame
# Both ends are private to a lab, so any addresses would do. These are reserved for benchmarks (RFC 2544).
NEAR_ADDRESS: Final = "198.18.0.1"
FAR_ADDRESS: Final = "198.18.0.2"
LAB_NETWORK: Final = ip_network("198.18.0.0/15")
PREFIX_BITS: Final = 30
# The relay is one Python process that every frame passes. On two busy cores it carried all of ATM 155 at MTU 1500,
# both directions at once, but 440 of the 511 Mb/s of payload of ATM 622, and 610 of the 941 of 1 Gb Ethernet.
RELAY_MAX_BIT_S: Final = 200_000_000
_CELL_BYTES: Final = 53
_CELL_PAYLOAD_BYTES: Final = 48

Grain = Literal["packet", "batch", "offload"]
"""The unit that TCP passes to a link: `packet`: one packet; `batch`: several, which the kernel splits behind the
queue; `offload`: several, which stay joined up to the other end, as between NICs with offloads."""


@dataclass(frozen=True, slots=True)
class LabLink:
    """A link to build between two namespaces.

    `far_mtu_bytes` differs from `mtu_bytes` to emulate a far end that is set up wrong. A frame of `n` bytes,
    including its Ethernet header, takes `wire_bytes(n)` of `rate_bit_s`. `buffer_bytes` is the capacity of each
    end's queue, `burst_bytes` the largest burst after a pause. `half_duplex` is one medium for both
    directions. In each direction `delay_ns` holds every frame back, and `loss_percent` of the frames are lost,
    drawn with `seed`. A `grain` other than `packet` counts small packets as too small.
    """

    rate_bit_s: int
    mtu_bytes: int
    far_mtu_bytes: int
    overhead_bytes: int
    linklayer: Literal["ethernet", "atm"]
    burst_bytes: int
    buffer_bytes: int
    smallest_bytes: int = 0
    grain: Grain = "packet"
    half_duplex: bool = False
    delay_ns: int = 0
    loss_percent: float = 0.0
    seed: int = 1

    @property
    def needs_relay(self) -> bool:
        """Whether the kernel's queues alone cannot emulate the link."""
        return self.half_duplex or self.delay_ns > 0 or self.loss_percent > 0

    @property
    def has_offloads_off(self) -> bool:
        """Whether its devices have no offloads, so that every packet has a size that the wire could carry."""
        return self.grain != "offload"

    def wire_bytes(self, frame_bytes: int) -> int:
        """Return the bytes that a frame takes on the line."""
        total_bytes = max(self.smallest_bytes, frame_bytes + self.overhead_bytes)
        if self.linklayer == "atm":
            return -(-total_bytes // _CELL_PAYLOAD_BYTES) * _CELL_BYTES
        return total_bytes

    @property
    def frame_efficiency(self) -> Fraction:
        """The share of the line for the own bytes of full-sized frames."""
        frame_bytes = min(self.mtu_bytes, self.far_mtu_bytes) + ETHERNET_HEADER_BYTES
        return Fraction(frame_bytes, self.wire_bytes(frame_bytes))

    def wire_ns(self, frame_bytes: int) -> int:
        """Return the time that a frame takes on the line."""
        return self.wire_bytes(frame_bytes) * 8 * SECOND_NS // self.rate_bit_s
