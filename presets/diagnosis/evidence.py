"""The evidence for the diagnosis: link, hosts, kernels and rates in one period of a run.

Pure values, small enough to be stored. Rules read nothing else, so every later rule can judge a recorded run.
Shares are 0 to 1; `None` is unknown, `0` is measured.
"""

from dataclasses import dataclass
from typing import Literal

from ...engine.model.host_info import NicInfo, TcpSysctls
from ...engine.model.plan import Direction, End
from ...engine.model.samples import NicCounts
from ...engine.model.workload import Workload
from ..preset import Framing, Preset
from ..wire import Variant, derive


@dataclass(frozen=True, slots=True)
class LinkEvidence:
    """The nominal link; `payload_bytes` of each packet's `wire_bytes` are payload.

    Both are None if the framing allows no computation.
    """

    framing: Framing
    line_rate_bit_s: int | None = None
    mtu_bytes: int | None = None
    duplex: Literal["full", "half"] | None = None
    timestamps: bool = False
    payload_bytes: int | None = None
    wire_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class CoreLoad:
    """The shares of one core's time; `softirq` is the kernel's work on packets."""

    user: float
    system: float
    softirq: float
    steal: float

    @property
    def busy(self) -> float:
        """The share of time that was not idle."""
        return self.user + self.system + self.softirq + self.steal


@dataclass(frozen=True, slots=True)
class EndEvidence:
    """One end: its host, CPU load and interface.

    `busiest_worker` is the share of a core that the busiest worker process used, `process` the number of cores
    that all of linkgauge's processes used together.
    """

    end: End
    hostname: str
    system: str
    cores: tuple[CoreLoad, ...] = ()
    busiest_worker: float | None = None
    process: float | None = None
    nic: NicInfo | None = None
    counts: NicCounts | None = None
    tcp: TcpSysctls | None = None


@dataclass(frozen=True, slots=True)
class FlowEvidence:
    """A single direction: the receiver's rate, and the values of the sender's TCP.

    `busy` is the share of time with data to send, `rwnd_limited` the share limited by the peer's window,
    `sndbuf_limited` the share limited by the send buffer: means over the sessions. Bytes, rates and times of a
    session are medians; `min_rtt_us` is the minimum. Windows are None if the kernel chose them.
    """

    direction: Direction
    bit_s: float
    expected_bit_s: float | None = None
    busy: float | None = None
    rwnd_limited: float | None = None
    sndbuf_limited: float | None = None
    retransmits: int | None = None
    retransmitted: float | None = None
    rtt_us: int | None = None
    min_rtt_us: int | None = None
    cwnd_bytes: int | None = None
    mss_bytes: int | None = None
    pacing_bit_s: int | None = None
    delivery_bit_s: int | None = None
    peer_window_bytes: int | None = None
    out_of_order: int | None = None
    congestion: str | None = None
    timestamps: bool | None = None
    window_scaling: bool | None = None
    send_window_bytes: int | None = None
    receive_window_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """A period of a run, with constant settings.

    `expected_bit_s` is of all its flows together. `beyond_bit_s` is the capacity of the nominal link's wire if the
    run was faster than that, else None.
    """

    workload: Workload
    direction: Direction
    sessions: int
    span_ns: int
    bit_s: float
    flows: tuple[FlowEvidence, ...]
    near: EndEvidence
    far: EndEvidence
    window_bytes: int | None = None
    expected_bit_s: float | None = None
    pass_percent: float = 95.0
    link: LinkEvidence | None = None
    ceiling_bit_s: int | None = None
    beyond_bit_s: int | None = None

    def of_end(self, end: End) -> EndEvidence:
        """Return the evidence of one end."""
        return self.near if end is End.NEAR else self.far

    @property
    def gap_bit_s(self) -> float | None:
        """The rate that is missing to the expected rate; None without an expectation."""
        return None if self.expected_bit_s is None else max(0.0, self.expected_bit_s - self.bit_s)

    @property
    def is_as_expected(self) -> bool:
        """Whether the rate reaches the pass mark."""
        return self.expected_bit_s is not None and self.bit_s * 100 >= self.expected_bit_s * self.pass_percent

    @property
    def is_same_host(self) -> bool:
        """Whether both ends share their cores, as on loopback and in a lab."""
        return self.near.hostname == self.far.hostname


def link_evidence(preset: Preset, variant: Variant) -> LinkEvidence:
    """Return the nominal link of a preset with these options."""
    link = preset.link
    derived = derive(link, "out", variant)
    return LinkEvidence(
        framing=link.framing,
        line_rate_bit_s=variant.line_rate_bit_s or link.line_rate_bit_s,
        mtu_bytes=variant.mtu_bytes or link.mtu_bytes,
        duplex=link.duplex,
        timestamps=link.timestamps if variant.timestamps is None else variant.timestamps,
        payload_bytes=None if derived is None else derived.payload_bytes,
        wire_bytes=None if derived is None else derived.wire_bytes,
    )
