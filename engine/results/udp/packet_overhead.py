"""The bytes that carry a datagram's payload: IP and UDP headers, and an Ethernet frame around them. Pure."""

from typing import Final

from ...model.events import Started
from ...model.host_info import NicInfo
from ..summary import PacketOverhead

_HEADER_BYTES: Final = {4: 28, 6: 48}  # of IP and UDP
_FRAME_BYTES: Final = 38  # preamble, header, checksum and gap of Ethernet (IEEE 802.3)
_TAG_BYTES: Final = 4
_ETHERNET_KINDS: Final = {"veth", "bridge", "bond", "macvlan", "vlan"}


def packet_overhead(started: Started) -> PacketOverhead | None:
    """Return the overhead of a run's datagrams; None for TCP, or if the IP version is unknown."""
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
