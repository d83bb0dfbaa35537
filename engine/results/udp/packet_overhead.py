"""The bytes that carry a datagram's payload: IP and UDP headers, and an Ethernet frame around them.

Pure. They turn a rate of UDP payload into that of IP packets, which RFC 9097 counts, and into that of the wire.
"""

from dataclasses import dataclass
from typing import Final

from ...model.events import Started
from ...model.host_info import NicInfo

_HEADER_BYTES: Final = {4: 28, 6: 48}  # of IP and UDP
_FRAME_BYTES: Final = 38  # preamble, header, checksum and gap of Ethernet (IEEE 802.3)
_TAG_BYTES: Final = 4
_LEAST_FRAME_PAYLOAD: Final = 46
_ETHERNET_KINDS: Final = {"veth", "bridge", "bond", "macvlan", "vlan"}


@dataclass(frozen=True, slots=True)
class PacketOverhead:
    """The bytes around the payload of each datagram; `frame_bytes` None is unknown, or no Ethernet."""

    header_bytes: int
    frame_bytes: int | None = None

    def ip_bit_s(self, payload_bit_s: float, packets_s: float) -> float:
        """Return the rate of whole IP packets."""
        return payload_bit_s + packets_s * self.header_bytes * 8

    def wire_bit_s(self, payload_bit_s: float, packets_s: float) -> float | None:
        """Return the rate on an Ethernet line, gaps included; None where there is none."""
        if self.frame_bytes is None:
            return None
        frames_bit_s = max(self.ip_bit_s(payload_bit_s, packets_s), packets_s * _LEAST_FRAME_PAYLOAD * 8)
        return frames_bit_s + packets_s * self.frame_bytes * 8


def packet_overhead(started: Started) -> PacketOverhead | None:
    """Return the overhead of a run's datagrams; None for TCP, or where the IP version is unknown."""
    header_bytes = _HEADER_BYTES.get(started.ip_version or 0)
    if header_bytes is None or not started.plan.workload.is_datagram:
        return None
    nics = (started.near.nic, started.far.nic)
    if not all(nic is not None and _is_ethernet(nic) for nic in nics):
        return PacketOverhead(header_bytes)
    has_tag = any(nic is not None and nic.kind == "vlan" for nic in nics)
    return PacketOverhead(header_bytes, _FRAME_BYTES + _TAG_BYTES * has_tag)


def _is_ethernet(nic: NicInfo) -> bool:
    return nic.sort == "device" or nic.kind in _ETHERNET_KINDS
