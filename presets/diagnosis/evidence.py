"""What is known of a stretch of a run when it is asked why it is not faster.

Pure values, small enough to be written down: rules read nothing else, so a run that was recorded once can be
judged again by every later rule. Shares are 0 to 1; `None` is unknown, `0` is measured.
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
    """What kind of link it should be; `payload_bytes` of each packet's `wire_bytes` are payload.

    The last two are None where there is no wire to compute.
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
    """How one core spent the time; `softirq` is the kernel's work on packets."""

    user: float
    system: float
    softirq: float
    steal: float

    @property
    def busy(self) -> float:
        """All but idle."""
        return self.user + self.system + self.softirq + self.steal


@dataclass(frozen=True, slots=True)
class EndEvidence:
    """One end: its host and what it spent.

    `busiest_worker` is the share of a core that one worker process used, `process` the cores that all of
    linkgauge's processes used there together.
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
    """One single direction: what its receiver got, and how its sender's kernel spent the time.

    `busy` is the share of the time in which there was something to send, `rwnd_limited` that in which the peer's
    window held it back, `sndbuf_limited` that in which the send buffer did: means over the sessions. Bytes, rates
    and times of one session are medians, `min_rtt_us` is the least. Windows are None where the kernel chose them.
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
    """A stretch of a run under one setting.

    `expected_bit_s` is of all its flows together. `beyond_bit_s` is what the wire of such a link can carry, where
    the run was faster than it can have been on one.
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
        """Return one end's part."""
        return self.near if end is End.NEAR else self.far

    @property
    def gap_bit_s(self) -> float | None:
        """How much is missing of what is expected; None where nothing is expected."""
        return None if self.expected_bit_s is None else max(0.0, self.expected_bit_s - self.bit_s)

    @property
    def is_as_expected(self) -> bool:
        """Whether the pass mark is reached."""
        return self.expected_bit_s is not None and self.bit_s * 100 >= self.expected_bit_s * self.pass_percent

    @property
    def is_same_host(self) -> bool:
        """Whether both ends share their cores, as on loopback and in a lab."""
        return self.near.hostname == self.far.hostname


def link_evidence(preset: Preset, variant: Variant) -> LinkEvidence:
    """Return what a preset's link should be, had with these options."""
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
