"""What the engine measures and says: samples, events and the summary of a run.

Pure data. `None` is unknown, `0` is measured. The events of a run are one stream; the run log stores
every one of them, and everything else (rows of the CSV, the summary, the gauges) can be made from them again.
"""

from dataclasses import dataclass
from typing import Final, Literal

_MIN_MTU_BYTES: Final = 68  # RFC 791: every link carries a packet of that size
_MAX_MTU_BYTES: Final = 1 << 32  # what the kernel's word for it holds
_MOST_BIT_S: Final = 10**15  # a thousand times what the fastest interfaces have
_LONGEST_NAME: Final = 256


@dataclass(frozen=True, slots=True)
class NicInfo:
    """The network interface that carries a connection, as its own kernel describes it.

    `sort` is `device` for hardware or what a hypervisor presents as such, `virtual` for what the kernel
    makes up itself. `kind` is a device's driver (`ixgbe`, `virtio_net`) or a virtual interface's kind (`veth`,
    `vlan`). `line_rate_bit_s` is None where there is no line, or none whose rate is known. `tso` to `lro` are
    the offloads' states: segmentation by the NIC and by the kernel, merging by the kernel and by the NIC.
    `qdisc` is the queue that packets leave by.
    """

    name: str
    sort: Literal["device", "virtual", "wireless", "loopback"]
    kind: str | None = None
    line_rate_bit_s: int | None = None
    duplex: Literal["full", "half"] | None = None
    mtu_bytes: int | None = None
    tso: bool | None = None
    gso: bool | None = None
    gro: bool | None = None
    lro: bool | None = None
    qdisc: str | None = None

    def __post_init__(self) -> None:
        """Refuse what no interface can have: expected rates are computed from these."""
        rate, mtu = self.line_rate_bit_s, self.mtu_bytes
        has_rate = rate is None or 1 <= rate <= _MOST_BIT_S
        if not has_rate or not (mtu is None or _MIN_MTU_BYTES <= mtu <= _MAX_MTU_BYTES):
            raise ValueError(f"an interface of {rate} bit/s and MTU {mtu}")
        if max(len(self.name), len(self.kind or "")) > _LONGEST_NAME:
            raise ValueError(f"an interface's name of more than {_LONGEST_NAME} characters")


@dataclass(frozen=True, slots=True)
class TcpSysctls:
    """What a kernel lets TCP have (tcp(7), socket(7)); None where it does not tell.

    `rmem_max_bytes` and `wmem_max_bytes` bound what a program may ask for as a buffer, `tcp_rmem_max_bytes` and
    `tcp_wmem_max_bytes` what the kernel may grow one to by itself. `congestion` is the default congestion control.
    """

    rmem_max_bytes: int | None = None
    wmem_max_bytes: int | None = None
    tcp_rmem_max_bytes: int | None = None
    tcp_wmem_max_bytes: int | None = None
    window_scaling: bool | None = None
    timestamps: bool | None = None
    congestion: str | None = None

    def __post_init__(self) -> None:
        """Refuse what no kernel can say: windows are computed from these."""
        limits = (self.rmem_max_bytes, self.wmem_max_bytes, self.tcp_rmem_max_bytes, self.tcp_wmem_max_bytes)
        if any(limit is not None and limit < 1 for limit in limits):
            raise ValueError(f"buffer limits of {limits} bytes")


@dataclass(frozen=True, slots=True)
class HostInfo:
    """Who an end is, the interface that carries its control connection, and its kernel's limits, where known.

    Text from a peer has had its control characters taken out.
    """

    hostname: str
    system: str
    cores: int
    software: str
    event_loop: str
    nic: NicInfo | None = None
    tcp: TcpSysctls | None = None

    def __post_init__(self) -> None:
        """Refuse what no host has."""
        if max(map(len, (self.hostname, self.system, self.software, self.event_loop))) > _LONGEST_NAME:
            raise ValueError(f"a host's name or system of more than {_LONGEST_NAME} characters")


def lacks_offloads(nic: NicInfo) -> bool:
    """Return whether an interface that could offload does not."""
    if nic.sort == "device":
        return False in {nic.tso, nic.gso, nic.gro}
    # A veth hands large packets over whole: Linux makes it without GRO, and it needs none.
    return nic.kind == "veth" and False in {nic.tso, nic.gso}
