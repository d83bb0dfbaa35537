"""The evidence of one period of a run: a view over its sums.

Pure values, small enough to be stored. Rules read nothing else, so every later rule can judge a recorded run.
Shares are 0 to 1; `None` is unknown, `0` is measured. Each field says what it is read from.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any, Final, Generic, Literal, Self, TypeVar, cast, get_args

from ...engine.model.counters.samples import CoreTimes, NicCounts
from ...engine.model.directions import Direction, End
from ...engine.model.events import ObservedSocket
from ...engine.model.host_info import NicInfo, TcpSysctls
from ...engine.model.plan import Dialect, Mode, ResponsivenessTest
from ...engine.model.texts.unseen_host import not_seen
from ...engine.model.workload import Workload
from ...engine.results.rate_and_loss import percent_of
from ...engine.results.responsiveness.result import Responsiveness
from ...engine.results.summary import OtherTestsSummary
from ...engine.results.sums.rate_course import RateStep
from ...engine.results.sums.send_holds import Hold, SendHolds
from ...engine.results.udp.loss_location import LossCauses
from ...engine.results.udp.loss_pattern import LossPattern
from ..preset import Framing, Preset
from ..wire import Variant, derive
from .period_sums import EndSums, FlowSums, PeriodSums

MIN_SHARE: Final = 0.05
"""The smallest share of the gap that is worth a finding."""

# Of the samples: a receiver may be late once. Links without a late receiver had none in 40 runs.
_MIN_LOW_WINDOW: Final = 0.1
_UNREAD: Final = 0.3  # of the receive buffer: a program that leaves so much unread is too slow
_CONSTANT: Final = 0.75  # of the usual window: the smallest size of a constant window


_Source = TypeVar("_Source")
_Evidence = TypeVar("_Evidence")


class _From(Generic[_Source]):
    """Makes fields that are read from a source."""

    def reading(self, read: Callable[[_Source], object]) -> dict[str, object]:
        """Return the metadata of such a field."""
        return {"read": read}

    def __call__(self, read: Callable[[_Source], object], default: Any = None) -> Any:
        """Return such a field with a default, for stored evidence that does not have it."""
        return field(default=default, metadata=self.reading(read))


def read_evidence(kind: type[_Evidence], source: object, **given: Any) -> _Evidence:
    """Return evidence whose fields are read from their source, without those that are given."""
    readers = ((each.name, each.metadata.get("read")) for each in fields(cast("type[Any]", kind)))
    return kind(**{name: read(source) for name, read in readers if read is not None}, **given)


_end: Final = _From[EndSums]()
_flow: Final = _From[FlowSums]()
_period: Final = _From[PeriodSums]()


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

    @classmethod
    def of(cls, core: CoreTimes) -> Self:
        """Return the shares of a core's times."""
        whole_ns = max(1, core.busy_ns + core.idle_ns)
        return cls(*(ns / whole_ns for ns in (core.user_ns, core.system_ns, core.softirq_ns, core.steal_ns)))

    @property
    def busy(self) -> float:
        """The share of time that is not idle."""
        return self.user + self.system + self.softirq + self.steal


@dataclass(frozen=True, slots=True)
class EndEvidence:
    """One end: its host, CPU load and interface.

    `busiest_worker` is the share of a core that the busiest worker process used, `process` the number of cores
    that all of linkgauge's processes used together. `waiting` is the share of time for which the worker that waited
    longest was ready to run and had no core, `throttled` the part of it for which a CPU quota stopped this end's
    processes; None without a quota.
    """

    end: End = field(metadata=_end.reading(lambda of: of.end))
    hostname: str = field(metadata=_end.reading(lambda of: of.host.hostname))
    system: str = field(metadata=_end.reading(lambda of: of.host.system))
    cores: tuple[CoreLoad, ...] = _end(lambda of: tuple(map(CoreLoad.of, of.usage.cores or ())), ())
    busiest_worker: float | None = _end(lambda of: of.usage.worker_share)
    process: float | None = _end(lambda of: of.usage.process_share)
    waiting: float | None = _end(lambda of: of.usage.wait_share)
    throttled: float | None = _end(lambda of: of.usage.quota_share)
    nic: NicInfo | None = _end(lambda of: of.host.nic)
    counts: NicCounts | None = _end(lambda of: of.usage.nic)
    counts_ns: int | None = _end(lambda of: of.usage.span_ns)
    tcp: TcpSysctls | None = _end(lambda of: of.host.tcp)

    @property
    def mtu_bytes(self) -> int | None:
        """The MTU of the interface; None if it is unknown."""
        return None if self.nic is None else self.nic.mtu_bytes


@dataclass(frozen=True, slots=True)
class DatagramEvidence:
    """The datagrams of a single direction, of all its sessions; None is unknown.

    `causes` has the causes of the losses, `bursts` is the number of runs of lost datagrams, and `longest_burst` the
    length of the longest. `pattern` is the pattern of the losses, and `period_ns` the time between regular losses.
    `skipped` datagrams were not sent in time. `asked_bit_s` is the requested rate of the sender.
    `buffer_bytes` is the smallest buffer of the receiver's sockets.
    """

    sent: int
    lost: int
    causes: LossCauses
    bursts: int | None = None
    longest_burst: int | None = None
    pattern: LossPattern | None = None
    period_ns: int | None = None
    datagram_bytes: int | None = None
    skipped: int | None = None
    asked_bit_s: int | None = None
    buffer_bytes: int | None = None

    @property
    def loss(self) -> float:
        """The share of the datagrams that was lost."""
        return self.lost / self.sent if self.sent else 0.0

    @classmethod
    def of(cls, of: FlowSums) -> Self | None:
        """Return the evidence of a direction; None for TCP, and before a receiver has reported datagrams.

        If the receiver reports only at the end, there are the sent datagrams until then, and no loss.
        """
        sums, flow = of.received.datagrams, of.flow
        whole = None if sums is None else sums.summary
        if sums is None or whole is None:
            return None
        asked: dict[str, Any] = {
            "datagram_bytes": whole.datagram_bytes,
            "skipped": whole.skipped,
            "asked_bit_s": whole.asked_bit_s,
        }
        if of.received.is_from_sender:
            return cls(whole.sent or 0, 0, LossCauses(), **asked)
        if whole.lost is None:
            return None
        pattern, period_ns = sums.loss_pattern(flow)
        return cls(
            sent=whole.lost + (whole.received or 0),
            lost=whole.lost,
            causes=sums.loss_causes(flow),
            bursts=whole.bursts,
            longest_burst=whole.longest_burst,
            pattern=pattern,
            period_ns=period_ns,
            buffer_bytes=sums.smallest_buffer_bytes,
            **asked,
        )


@dataclass(frozen=True, slots=True)
class HoldShares:
    """The reasons that held the sender back, as shares of its samples (engine/results/sums/send_holds.py).

    `window`: the other end's window; `buffer`: its own send buffer, full of unacknowledged data; `congestion`: the
    congestion window; `pace`: its pace, or the queue of its own host; `empty`: it had nothing to send.
    """

    samples: int
    window: float = 0.0
    buffer: float = 0.0
    congestion: float = 0.0
    pace: float = 0.0
    empty: float = 0.0

    @classmethod
    def of(cls, holds: SendHolds) -> Self | None:
        """Return the reasons of a sender; None if its kernel does not tell."""
        return cls(holds.samples, *map(holds.share, get_args(Hold))) if holds.samples else None


@dataclass(frozen=True, slots=True)
class FlowEvidence:  # as many fields as there are figures that a rule reads: stored evidence has each by its name
    """A single direction: the receiver's rate, and the values of the sender's TCP.

    `busy` is the share of time with data to send, `rwnd_limited` the share limited by the peer's window,
    `sndbuf_limited` the share limited by the send buffer: means over the sessions. Bytes, rates and times of a
    session are medians; `min_rtt_us` is the minimum. Windows are None if the kernel chose them. `low_window` is the
    share of samples in which the receiver's window was clearly smaller than before, as with unread data.
    UDP has `datagrams` instead.
    `rate_spread` is the standard deviation of the rates of the receiver's `intervals`, as a share of their mean.
    `low_rtt_us` is the round trip that a quarter of the samples does not exceed. `unacked_bytes` is the payload in
    flight in segments, by the kernel's count. `window_growth` is the largest size of the receiver's window over its
    first size, `least_window_bytes` its smallest size, and `unread` the unread share of the receiver's buffer.
    `lossy` is the share of samples in which something was sent again, and `quiet` the share of all samples after
    the last of them. `loss_dispersion` is the variance of the segments sent again in a sample, as a share of their
    mean: about 1 by chance. `max_pacing_bit_s` is the limit that a program has set for a session's pace.
    `joint_spread` is the variance of the rate of all sessions as a share of the sum of theirs: about 1 if each
    varies for itself, less if they share a limit. A quarter of the intervals was faster than `upper_bit_s`.
    `needless` segments that were sent again had arrived, and segments overtook others `reordered` times: only a
    connection of another program has them, and then `retransmits`, `retransmitted` and `lossy` leave the needless
    ones out. `app_limited` is the share of its samples in which TCP lacked data. Nothing arrived in `silences`
    times of 0.4 s or more, the `silent` share of the time. `step` is the change of the rate if a single one
    explains its course.
    """

    direction: Direction = field(metadata=_flow.reading(lambda of: of.flow))
    bit_s: float = field(metadata=_flow.reading(lambda of: of.received.bit_s or 0.0))
    expected_bit_s: float | None = None
    busy: float | None = _flow(lambda of: of.sent.time_share("busy_us"))
    rwnd_limited: float | None = _flow(lambda of: of.sent.time_share("rwnd_limited_us"))
    sndbuf_limited: float | None = _flow(lambda of: of.sent.time_share("sndbuf_limited_us"))
    retransmits: int | None = _flow(lambda of: of.sent.lost_segments)
    retransmitted: float | None = _flow(lambda of: of.sent.lost_share(of.mss_bytes))
    rtt_us: int | None = _flow(lambda of: of.sent.carrying_rtts.median or of.sent.median("rtt_us"))
    min_rtt_us: int | None = _flow(lambda of: of.sent.min_rtt_us)
    cwnd_bytes: int | None = _flow(lambda of: of.sent.median("cwnd_bytes"))
    mss_bytes: int | None = _flow(lambda of: of.mss_bytes)
    pacing_bit_s: int | None = _flow(lambda of: of.sent.median("pacing_bit_s"))
    delivery_bit_s: int | None = _flow(lambda of: of.sent.median("delivery_bit_s"))
    peer_window_bytes: int | None = _flow(lambda of: of.sent.median("peer_window_bytes"))
    low_window: float | None = _flow(lambda of: of.sent.low_window_share)
    out_of_order: int | None = _flow(lambda of: of.received.out_of_order)
    congestion: str | None = _flow(lambda of: of.sender and of.sender.congestion)
    timestamps: bool | None = _flow(lambda of: of.sender and of.sender.timestamps)
    window_scaling: bool | None = _flow(lambda of: of.sender and of.sender.window_scaling)
    send_window_bytes: int | None = _flow(lambda of: of.sender and of.sender.window_granted_bytes)
    receive_window_bytes: int | None = _flow(lambda of: of.receiver and of.receiver.window_granted_bytes)
    datagrams: DatagramEvidence | None = _flow(DatagramEvidence.of)
    intervals: int = _flow(lambda of: of.received.spread.intervals, 0)
    rate_spread: float | None = _flow(lambda of: of.received.rate_spread)
    holds: HoldShares | None = _flow(lambda of: HoldShares.of(of.sent.holds))
    joint_spread: float | None = _flow(lambda of: of.received.joint_spread)
    upper_bit_s: int | None = _flow(lambda of: of.received.upper_bit_s)
    low_rtt_us: int | None = _flow(lambda of: of.sent.carrying_rtts.quantile(0.25))
    lossy: float | None = _flow(lambda of: of.sent.lossy_share)
    loss_dispersion: float | None = _flow(lambda of: of.sent.losses.dispersion)
    quiet: float | None = _flow(lambda of: of.sent.losses.quiet_share)
    max_pacing_bit_s: int | None = _flow(lambda of: of.sent.median("max_pacing_bit_s"))
    unacked_bytes: int | None = _flow(lambda of: of.sent.median("unacked_bytes"))
    window_growth: float | None = _flow(lambda of: of.sent.window_growth)
    least_window_bytes: float | None = _flow(lambda of: of.sent.least_window_bytes)
    send_buffer_bytes: int | None = _flow(lambda of: of.sent.median("send_buffer_bytes"))
    receive_buffer_bytes: int | None = _flow(lambda of: of.received.mean_buffer_bytes)
    unread: float | None = _flow(lambda of: of.received.unread_share)
    sack: bool | None = _flow(lambda of: of.sender and of.sender.sack)
    needless: int | None = _flow(lambda of: of.sent.needless_retransmits)
    reordered: int | None = _flow(lambda of: of.sent.reordered)
    app_limited: float | None = _flow(lambda of: of.sent.mean("app_limited"))
    silences: int = _flow(lambda of: of.received.silences.count, 0)
    silent: float | None = _flow(lambda of: of.received.silent_share)
    longest_silence_us: int = _flow(lambda of: of.received.silences.longest_ns // 1_000, 0)
    step: RateStep | None = _flow(lambda of: of.received.course.step)

    @property
    def is_bbr(self) -> bool:
        """Whether the sender's congestion control is a BBR."""
        return (self.congestion or "").startswith("bbr")

    @property
    def leaves_unread(self) -> bool:
        """Whether the receiver's program leaves data unread, by its buffer or by a window that shrinks for that."""
        return self.is_read_late or (self.unread or 0.0) >= _UNREAD

    @property
    def is_read_late(self) -> bool:
        """Whether unread data made the receiver's window smaller again and again.

        A window that became smaller once, and then stayed the same, is a setting.
        """
        least, usual = self.least_window_bytes, self.peer_window_bytes
        is_constant = least is not None and usual is not None and least >= _CONSTANT * usual
        return (self.low_window or 0.0) >= _MIN_LOW_WINDOW and not is_constant

    @property
    def receiver_limited(self) -> float:
        """The share of time for which the receiver held the sender up.

        A receiver that does not read also acknowledges late (Linux: after up to 40 ms). So the congestion window
        stops the sender long before the receiver's window is closed. The kernel's clock misses that time.
        """
        return max(self.rwnd_limited or 0.0, (self.low_window or 0.0) if self.is_read_late else 0.0)


@dataclass(frozen=True, slots=True)
class Evidence:  # a field for each circumstance that a rule asks for; stored evidence has each by its name
    """A period of a run, with constant settings.

    `response_bytes` is the size of each response, 0 for a stream, and `burst` the number of requests in flight on
    each connection. `rate_bit_s` is the limit that the user set for each direction. With `is_data_through_ssh`
    ssh carries the payload, and TCP's values are those of connections within the hosts. `expected_bit_s` is the
    rate of all flows together. `beyond_bit_s` is the capacity of the nominal link's wire if the run was faster,
    else None. `workers` is the plan's number of worker processes, `near_cores` and `far_cores` are its cores for
    them; None if the ends choose. `has_ended` is set for a run that is over: its findings are in the past tense.
    `unseen_end` is the end with an iperf3, a browser or another program: its host is unknown. `test` is how the run
    measures latency under load, and `responsiveness` its results so far, over all loads. `others` are the other
    tests of the endpoint, if it reports them. `observed` is the connection of another program that this is about:
    linkgauge made neither end. `other_traffic` names other programs that exchange much through the near interface.
    """

    workload: Workload = field(metadata=_period.reading(lambda of: of.started.plan.workload))
    direction: Direction = field(metadata=_period.reading(lambda of: of.settings.direction))
    sessions: int = field(metadata=_period.reading(lambda of: of.settings.sessions))
    span_ns: int = field(metadata=_period.reading(lambda of: of.measured_ns))
    bit_s: float
    flows: tuple[FlowEvidence, ...]
    near: EndEvidence = field(metadata=_period.reading(lambda of: read_evidence(EndEvidence, of.end(End.NEAR))))
    far: EndEvidence = field(metadata=_period.reading(lambda of: read_evidence(EndEvidence, of.end(End.FAR))))
    window_bytes: int | None = _period(lambda of: of.settings.window_bytes)
    expected_bit_s: float | None = None
    pass_percent: float = 95.0
    link: LinkEvidence | None = None
    ceiling_bit_s: int | None = None
    beyond_bit_s: int | None = None
    mode: Mode = _period(lambda of: of.mode, Mode.COPY)
    response_bytes: int = _period(lambda of: of.started.plan.transaction_sizes[1], 0)
    burst: int = _period(lambda of: of.started.plan.burst, 1)
    busy_poll: bool = _period(lambda of: of.started.plan.busy_poll, False)
    rate_bit_s: int | None = _period(lambda of: of.started.plan.rate_bit_s)
    is_data_through_ssh: bool = _period(lambda of: of.is_data_through_ssh, False)
    workers: int | None = _period(lambda of: of.started.plan.workers)
    near_cores: tuple[int, ...] | None = _period(lambda of: of.started.plan.near_cores)
    far_cores: tuple[int, ...] | None = _period(lambda of: of.started.plan.far_cores)
    has_ended: bool = False
    unseen_end: End | None = _period(lambda of: of.started.unseen_end)
    dialect: Dialect = _period(lambda of: of.started.dialect, Dialect.LINKGAUGE)
    test: ResponsivenessTest | None = _period(lambda of: of.started.plan.responsiveness)
    responsiveness: Responsiveness | None = _period(lambda of: of.responsiveness)
    others: OtherTestsSummary | None = _period(lambda of: of.sums.ends[End.FAR].others_summary)
    observed: ObservedSocket | None = _period(lambda of: of.started.observed)
    other_traffic: tuple[str, ...] = _period(lambda of: of.other_traffic, ())

    @property
    def is_observed(self) -> bool:
        """Whether this is about a connection of another program."""
        return self.observed is not None

    @property
    def has_foreign_end(self) -> bool:
        """Whether a program of any kind is at the far end, a browser among them: its buffers may have any size."""
        return self.dialect.is_measured_here

    @property
    def is_device(self) -> bool:
        """Whether a browser or a client of networkQuality is at the far end: its user has no options."""
        return self.dialect in {Dialect.BROWSER, Dialect.NETWORKQUALITY}

    @property
    def is_latency_test(self) -> bool:
        """Whether the run loads the link to measure latency: its rate has no target."""
        return self.test is not None and self.test.has_phases

    def tense(self, present: str, past: str) -> str:
        """Return the words for an active run, or those for an ended one."""
        return past if self.has_ended else present

    def of_end(self, end: End) -> EndEvidence:
        """Return the evidence of one end."""
        return self.near if end is End.NEAR else self.far

    @property
    def gap_bit_s(self) -> float | None:
        """The difference between expected and measured rate; None without an expected rate."""
        return None if self.expected_bit_s is None else max(0.0, self.expected_bit_s - self.bit_s)

    @property
    def is_as_expected(self) -> bool:
        """Whether the rate reaches the pass mark."""
        return (percent_of(self.bit_s, self.expected_bit_s) or 0.0) >= self.pass_percent

    def cores_of(self, end: End) -> tuple[int, ...] | None:
        """Return the cores that the plan gives to the workers of an end; None for all of them."""
        return self.near_cores if end is End.NEAR else self.far_cores

    @property
    def is_same_host(self) -> bool:
        """Whether both ends are on one machine, as on loopback and in a lab."""
        return self.near.hostname == self.far.hostname

    @property
    def shares_cores(self) -> bool:
        """Whether the workers of both ends may use the same cores."""
        near, far = self.near_cores, self.far_cores
        return self.is_same_host and (near is None or far is None or not set(near).isdisjoint(far))


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


def end_name(end: End) -> str:
    """Return the name of an end for a sentence: `the local end`."""
    return f"the {end.label} end"


def describe_unseen(evidence: Evidence, end: End) -> str:
    """Return the words of a finding's evidence for an end whose host is not seen."""
    dialect = Dialect.OBSERVED if evidence.is_observed else evidence.dialect
    return f"the {end.label} host is {not_seen(dialect)}"


def nic_name(end: EndEvidence) -> str:
    """Return the name of an end's interface for the start of a sentence: `Local eth0`."""
    return f"{end.end.label.capitalize()} {end.nic.name if end.nic else 'interface'}"
