"""The description of a host: its name and kernel, the interface that carries the run, its TCP limits.

Pure data; `None` is unknown. Each end describes itself to the other, so values are checked as they are constructed.
"""

from dataclasses import dataclass
from typing import Final, Literal

from .speed_server import SpeedProtocol

_MIN_MTU_BYTES: Final = 68  # RFC 791: every link carries a packet of that size
_MAX_MTU_BYTES: Final = 1 << 32  # the kernel has 32 bits for it
_MAX_BIT_S: Final = 10**15  # a thousand times the rate of the fastest interfaces
_MAX_NAME: Final = 256
IPERF3_SOFTWARE: Final = "iperf3"
BROWSER_SOFTWARE: Final = "browser"
QUALITY_SOFTWARE: Final = "networkQuality"
_SPEED_SOFTWARE: Final = frozenset(SpeedProtocol)
_READS_OTHERS: Final = " (others)"
_READS_WAITS: Final = " (waits)"
_READS_BUFFERS: Final = " (buffers)"
_READS_BUSY: Final = " (busy)"
_READS_FLOODS: Final = " (floods)"
_READS_PATHS: Final = " (paths)"
_READS_FLOWS: Final = " (flows)"
_READS_POLLS: Final = " (polls)"
_MARKS: Final = (
    _READS_POLLS,
    _READS_FLOWS,
    _READS_PATHS,
    _READS_FLOODS,
    _READS_BUSY,
    _READS_BUFFERS,
    _READS_OTHERS,
    _READS_WAITS,
)
READS: Final = "".join(_MARKS)
"""The end of this version's software name: the keys that it decodes. To versions without them they are errors.

A new mark comes first: each version looks at the end, for the marks that it knows.
"""


@dataclass(frozen=True, slots=True)
class NicInfo:
    """The network interface that carries a connection, as its own kernel describes it.

    `sort` is `device` for hardware (or a hypervisor's imitation of it) and `virtual` for an interface of the
    kernel's own. `kind` is a device's driver (`ixgbe`, `virtio_net`) or a virtual interface's kind (`veth`,
    `vlan`). `line_rate_bit_s` is None if there is no line, or if its rate is unknown. `tso` to `lro` are the
    states of the offloads: segmentation by the NIC and by the kernel, merging by the kernel and by the NIC. `qdisc`
    is the queueing discipline of outgoing packets.
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
        """Raise ValueError for impossible values: expected rates are computed from these."""
        rate, mtu = self.line_rate_bit_s, self.mtu_bytes
        has_rate = rate is None or 1 <= rate <= _MAX_BIT_S
        if not has_rate or not (mtu is None or _MIN_MTU_BYTES <= mtu <= _MAX_MTU_BYTES):
            raise ValueError(f"an interface of {rate} bit/s and MTU {mtu}")
        if max(len(self.name), len(self.kind or "")) > _MAX_NAME:
            raise ValueError(f"an interface's name of more than {_MAX_NAME} characters")


@dataclass(frozen=True, slots=True)
class TcpSysctls:
    """A kernel's limits of TCP (tcp(7), socket(7)); None if it does not report one.

    `rmem_max_bytes` and `wmem_max_bytes` bound the buffers that a program may request, `tcp_rmem_max_bytes` and
    `tcp_wmem_max_bytes` those that the kernel grows by itself. `congestion` is the default congestion control.
    """

    rmem_max_bytes: int | None = None
    wmem_max_bytes: int | None = None
    tcp_rmem_max_bytes: int | None = None
    tcp_wmem_max_bytes: int | None = None
    window_scaling: bool | None = None
    timestamps: bool | None = None
    congestion: str | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for impossible limits: windows are computed from these."""
        limits = (self.rmem_max_bytes, self.wmem_max_bytes, self.tcp_rmem_max_bytes, self.tcp_wmem_max_bytes)
        if any(limit is not None and limit < 1 for limit in limits):
            raise ValueError(f"buffer limits of {limits} bytes")


@dataclass(frozen=True, slots=True)
class HostInfo:
    """One end: host, kernel and software, the interface of its control connection, its TCP limits.

    Control characters are removed from a peer's text when it is decoded.
    """

    hostname: str
    system: str
    cores: int
    software: str
    event_loop: str
    nic: NicInfo | None = None
    tcp: TcpSysctls | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for absurdly long names."""
        if max(map(len, (self.hostname, self.system, self.software, self.event_loop))) > _MAX_NAME:
            raise ValueError(f"a host's name or system of more than {_MAX_NAME} characters")

    def _reads(self, mark: str) -> bool:
        """Whether this end has a mark, and so all older ones."""
        return self.software.endswith(READS[READS.index(mark) :])

    @property
    def reads_waits(self) -> bool:
        """Whether this end decodes `Sample.waits`."""
        return self._reads(_READS_WAITS)

    @property
    def reads_others(self) -> bool:
        """Whether this end decodes `Sample.others`, and the plan of a run that asks for a turn."""
        return self._reads(_READS_OTHERS)

    @property
    def reads_buffers(self) -> bool:
        """Whether this end decodes the fill of a session's buffers, in any test."""
        return self._reads(_READS_BUFFERS)

    @property
    def reads_busy(self) -> bool:
        """Whether this end decodes a refusal that says when the endpoint is free."""
        return self._reads(_READS_BUSY)

    @property
    def reads_floods(self) -> bool:
        """Whether this end decodes `Settings.floods`, and its senders without a rate follow their receivers."""
        return self._reads(_READS_FLOODS)

    @property
    def reads_paths(self) -> bool:
        """Whether this end knows `Plan.path`, and traces the path to the other end on request."""
        return self._reads(_READS_PATHS)

    @property
    def reads_flows(self) -> bool:
        """Whether this end serves a test of many flows."""
        return self._reads(_READS_FLOWS)

    @property
    def reads_polls(self) -> bool:
        """Whether this end knows `Plan.busy_poll`."""
        return self._reads(_READS_POLLS)

    @property
    def is_iperf3(self) -> bool:
        """Whether this end is an iperf3: its protocol describes neither its host nor its counters."""
        return self.software.partition(" ")[0] == IPERF3_SOFTWARE

    @property
    def is_browser(self) -> bool:
        """Whether this end is the page of a browser, which knows neither its host nor its sockets."""
        return self.software.partition(" ")[0] == BROWSER_SOFTWARE

    @property
    def speed_protocol(self) -> SpeedProtocol | None:
        """The protocol of a server for speed tests that is not linkgauge's; None for all others."""
        return SpeedProtocol(self.software) if self.software in _SPEED_SOFTWARE else None

    @property
    def is_quality_client(self) -> bool:
        """Whether this end is a client of networkQuality, which tells no more of its host than a browser."""
        return self.software.partition(" ")[0] == QUALITY_SOFTWARE

    @property
    def is_unseen(self) -> bool:
        """Whether nothing is known of this end but what the other one sees: an iperf3, or any other program."""
        is_known = self.is_iperf3 or self.is_browser or self.is_quality_client or self.speed_protocol is not None
        return is_known or not self.software

    @property
    def program(self) -> str:
        """The name and version of the software, for the user."""
        name = self.software
        for mark in reversed(_MARKS):
            name = name.removesuffix(mark)
        return name


UNKNOWN_HOST: Final = HostInfo("", "", 0, "", "")
"""A host of which nothing is known, at the other end of a connection that another program made."""


def lacks_offloads(nic: NicInfo) -> bool:
    """Return whether an offload that such an interface should have is off."""
    if nic.sort == "device":
        return False in {nic.tso, nic.gso, nic.gro}
    # A veth hands large packets over whole: Linux makes it without GRO, and it needs none.
    return nic.kind == "veth" and False in {nic.tso, nic.gso}
