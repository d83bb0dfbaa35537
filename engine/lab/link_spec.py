"""What an emulated link is made of. Pure: numbers for the kernel's queues and for the relay."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Literal

from ..model.plan import SECOND_NS

ETHERNET_HEADER_BYTES: Final = 14  # what the kernel counts of a frame beside its packet: the Ethernet header
# Both ends of a lab are private to it: any address would do. These are for benchmarks (RFC 2544).
NEAR_ADDRESS: Final = "198.18.0.1"
FAR_ADDRESS: Final = "198.18.0.2"
PREFIX_BITS: Final = 30
# The relay is one Python process on the frames' way. On two busy cores it carried all of ATM 155 at MTU 1500,
# both directions at once, but 440 of the 511 Mb/s of payload of ATM 622, and 610 of the 941 of 1 Gb Ethernet.
RELAY_MAX_BIT_S: Final = 200_000_000
_CELL_BYTES: Final = 53
_CELL_PAYLOAD_BYTES: Final = 48

Grain = Literal["packet", "batch", "offload"]
"""What TCP hands to a link at once: `packet` one packet; `batch` several, which the kernel cuts apart behind the
queue; `offload` several, which stay together up to the other end, as between NICs that cut and join them."""


@dataclass(frozen=True, slots=True)
class LabLink:
    """A link to build between two namespaces.

    `far_mtu_bytes` is another than `mtu_bytes` where the far end is set up wrong. A frame of `n` bytes, its
    Ethernet header included, takes `wire_bytes(n)` of `rate_bit_s`. `buffer_bytes` is what each end's queue
    holds, `burst_bytes` what may leave at once after a pause. `half_duplex` is one medium for both
    directions. Each frame is held back by `delay_ns`, and `loss_percent` of them do not arrive, drawn with
    `seed`; both count for each direction. A `grain` other than `packet` counts small packets too low.
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
        """Whether the kernel's queues alone cannot be this link."""
        return self.half_duplex or self.delay_ns > 0 or self.loss_percent > 0

    def wire_bytes(self, frame_bytes: int) -> int:
        """Return what a frame takes of the line."""
        whole = max(self.smallest_bytes, frame_bytes + self.overhead_bytes)
        if self.linklayer == "atm":
            return -(-whole // _CELL_PAYLOAD_BYTES) * _CELL_BYTES
        return whole

    @property
    def frame_efficiency(self) -> Fraction:
        """Which part of the line a full-sized frame's own bytes are."""
        frame_bytes = min(self.mtu_bytes, self.far_mtu_bytes) + ETHERNET_HEADER_BYTES
        return Fraction(frame_bytes, self.wire_bytes(frame_bytes))

    def wire_ns(self, frame_bytes: int) -> int:
        """Return how long a frame is on the line."""
        return self.wire_bytes(frame_bytes) * 8 * SECOND_NS // self.rate_bit_s
