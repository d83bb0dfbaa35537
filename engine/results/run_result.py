"""The result of a run, for programs, lists of runs, watches and meshes. Pure.

It is made of the summary of a run that has just ended (`of_run`), or of the document of a stored run (`of`).
`encode` gives the document, which `schemas/run.schema.json` describes. Figures are rounded, so that both results
are equal.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final, Self

from ..model.directions import Direction
from ..model.events import ObservedSocket, Started
from ..model.expected_rate import Expectation
from ..model.host_info import HostInfo
from ..model.plan import Plan, Settings
from ..model.run_end import Reason
from ..model.workload import Workload
from .figure_codec import DOCUMENT_VERSION, decode, exact, figure, figures_of, mbit, ms, part, seconds, us
from .measured_result import (
    MEGABIT,
    ExpectedRates,
    LatencyFigures,
    MeasuredFigures,
    MeasuredResult,
    expected_figures,
    measured_figures,
    no_rates,
)
from .path.path_document import PathFigures, path_figures
from .responsiveness.document import ResponsivenessFigures, responsiveness_figures
from .summary import Period, Summary

_MILLISECOND_NS: Final = 1_000_000


def _megabits(bit: float) -> float:
    return bit / MEGABIT


@dataclass(frozen=True, slots=True)
class SettingsFigures:
    """Settings in force. The rate and size of datagrams are unknown for TCP, which has no such settings."""

    direction: str | None = figure()
    sessions: int | None = figure()
    window_bytes: int | None = figure()
    rate: str | None = figure()
    rate_mbit_s: float | None = figure("rate_bit_s", _megabits)
    datagram_bytes: int | None = figure()

    @classmethod
    def of(cls, settings: Settings, workload: Workload) -> Self:
        """Return the settings of a run of this workload."""
        unlimited = "flood" if settings.floods else "max"
        word = "search" if settings.searches_rate else unlimited if settings.rate_bit_s is None else "fixed"
        return figures_of(cls, settings, rate=word if workload.is_datagram else None)


@dataclass(frozen=True, slots=True)
class PeriodFigures:
    """A part of a run with constant settings and its own measurements; it has a `verdict` if there are several."""

    settings: SettingsFigures = part(SettingsFigures, inline=True)
    start_s: float | None = figure("start_ns", seconds)
    warmup_s: float | None = figure("warmup_ns", seconds)
    measured: MeasuredFigures = part(no_rates)
    verdict: str | None = figure(omitted=True)

    @classmethod
    def of(cls, period: Period, summary: Summary, verdict: str | None) -> Self:
        """Return the figures of a period of a run."""
        settings = period.settings
        expected = _with_total(period.expectation, settings.direction)
        return figures_of(
            cls,
            period,
            settings=SettingsFigures.of(settings, summary.plan.workload),
            measured=measured_figures(period.measured, expected, summary.overhead),
            verdict=verdict,
        )


@dataclass(frozen=True, slots=True)
class TransactionSizes:
    """The sizes of a transaction; `closed_by` is the end that closes its connection and holds TIME_WAIT.

    `busy_poll` tells whether both ends of rr polled.
    """

    request_bytes: int | None = figure()
    response_bytes: int | None = figure()
    burst: int | None = figure()
    closed_by: str | None = figure()
    busy_poll: bool | None = figure()


@dataclass(frozen=True, slots=True)
class PlanFigures:
    """The requested test: the shape has a field for each member. An automatic warm-up may be of unknown length."""

    workload: str | None = figure()
    direction: str | None = figure("settings.direction")
    sessions: int | None = figure("settings.sessions")
    window_bytes: int | None = figure("settings.window_bytes")
    duration_s: float | None = figure("duration_ns", seconds)
    warmup: str | None = figure()
    warmup_s: float | None = figure()
    probe: bool | None = figure()
    responsiveness: str | None = figure()
    rate: str | None = figure()
    rate_mbit_s: float | None = figure("rate_bit_s", _megabits)
    datagram_bytes: int | None = figure("settings.datagram_bytes")
    bytes: int | None = figure("bytes_limit")
    exclusive: bool | None = figure()
    transactions: TransactionSizes | None = figure(inline=True)

    @classmethod
    def of(cls, plan: Plan, warmup_ns: int | None = None) -> Self:
        """Return the figures of a plan; `warmup_ns` is the length of an automatic warm-up, if it is known."""
        if not plan.warmup_auto:
            warmup_ns = plan.effective_warmup_ns
        settings = SettingsFigures.of(plan.settings, plan.workload)
        limit = {"rate_mbit_s": settings.rate_mbit_s} if plan.workload.is_datagram else {}
        transactions = None
        if plan.workload.is_transactional:
            closed_by = "answering end" if plan.workload.opens_connections else None
            polls = plan.busy_poll if plan.workload is Workload.RR else None
            transactions = TransactionSizes(*plan.transaction_sizes, plan.burst, closed_by, polls)
        return figures_of(
            cls,
            plan,
            warmup="auto" if plan.warmup_auto else "fixed",
            warmup_s=seconds(warmup_ns),
            rate=settings.rate,
            transactions=transactions,
            **limit,
        )


@dataclass(frozen=True, slots=True)
class ProbeCounts:
    """The number of a probe's transactions, and the round trip of its TCP connection."""

    transactions: int | None = figure()
    seconds: float | None = figure("span_ns", seconds)
    tcp_rtt_us: int | None = figure("rtt_us")


@dataclass(frozen=True, slots=True)
class ProbeFigures:
    """The probe's latency, idle and under load."""

    idle_us: LatencyFigures | None = figure("idle.latency")
    loaded_us: LatencyFigures | None = figure("loaded.latency")
    idle_probes: ProbeCounts | None = figure("idle")
    loaded_probes: ProbeCounts | None = figure("loaded")


@dataclass(frozen=True, slots=True)
class CpuFigures:
    """CPU of one end."""

    host_percent: float | None = figure()
    hottest_core_percent: float | None = figure()
    process_percent: float | None = figure()
    msec_per_mib: float | None = figure()
    msec_per_transaction: float | None = figure()


@dataclass(frozen=True, slots=True)
class TcpFigures:
    """TCP of a run, with the three metrics of RFC 6349."""

    retransmits: int | None = figure("tcp.retransmits")
    rtt_us: int | None = figure("tcp.rtt_us")
    mss_bytes: int | None = figure("tcp.mss_bytes")
    congestion: str | None = figure("tcp.congestion")
    mode: str | None = figure("tcp.mode")
    mode_choice: str | None = figure()
    near_window_bytes: int | None = figure("tcp.window_granted_near_bytes", at="window_granted_bytes.near")
    far_window_bytes: int | None = figure("tcp.window_granted_far_bytes", at="window_granted_bytes.far")
    transfer_time_ratio: float | None = figure()
    efficiency_percent: float | None = figure()
    buffer_delay_percent: float | None = figure()
    buffer_delay_ms: float | None = figure("buffer_delay_us", us)


@dataclass(frozen=True, slots=True)
class OtherTestsFigures:
    """The other tests of the endpoint at the same time."""

    most_tests: int | None = figure()
    most_sessions: int | None = figure()
    received_mbit_s: float | None = figure("received_bit_s", mbit)
    sent_mbit_s: float | None = figure("sent_bit_s", mbit)


@dataclass(frozen=True, slots=True)
class FindingFigures:
    """Why a run is not faster: a code, the end and direction, the explained share, and three sentences."""

    code: str | None = figure()
    end: str | None = figure()
    direction: str | None = figure()
    share: float | None = figure()
    confidence: float | None = figure()
    text: str | None = figure()
    evidence: str | None = figure()
    remedy: str | None = figure()


@dataclass(frozen=True, slots=True)
class HostFigures:
    """A host; an iperf3 and a browser do not describe their own."""

    hostname: str | None = figure()
    system: str | None = figure()
    cores: int | None = figure()
    software: str | None = figure("program")


@dataclass(frozen=True, slots=True)
class SubjectFigures:
    """The subject of a run: its start, the peer, the address in use, both hosts; unknown if it did not start."""

    started_utc: str | None = figure()
    peer: str | None = figure()
    address: str | None = figure()
    ip_version: int | None = figure()
    near: HostFigures | None = figure()
    far: HostFigures | None = figure()

    @classmethod
    def of(cls, started: Started | None) -> Self:
        """Return the subject by the first event of a run; `started` is None if the run did not start."""
        if started is None:
            return cls()
        far = None if started.observed is not None else _host(started.far)
        return figures_of(cls, started, near=_host(started.near), far=far)


def _host(host: HostInfo) -> HostFigures:
    unknown = {"system": None, "cores": None} if host.is_unseen else {}
    return figures_of(HostFigures, host, **unknown)


@dataclass(frozen=True, slots=True)
class ObservedFigures:
    """The connection of another program that a record is of: its process, its addresses, and its last result.

    `status` and `reason` are as `linkgauge observe` printed them last (schema of an observation).
    """

    program: str | None = figure()
    pid: int | None = figure()
    user: str | None = figure()
    local: str | None = figure()
    remote: str | None = figure()
    status: str | None = figure()
    reason: str | None = figure()

    @classmethod
    def of(cls, observed: ObservedSocket, status: str, reason: str) -> Self:
        """Return the figures of a connection with its last result."""
        return figures_of(cls, observed, status=status, reason=reason)


@dataclass(frozen=True, slots=True)
class LimitFigures:
    """The limits of latency under load."""

    max_rise_ms: float | None = figure("max_rise_ns", ms)
    worst_grade: str | None = figure()


@dataclass(frozen=True, slots=True)
class PrecisionFigures:
    """Whether the mean of a run that lasts until it is precise has become so."""

    percent: float | None = figure(unit=exact)
    is_reached: bool | None = figure()


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run: the shape of its document has a field for each member.

    `stretches` are its periods of constant settings. The first finding is the strongest. Only some runs have a
    path, or the last four: a run until its mean is precise, a run of a mesh's cell, a run with a limit for its
    latency, and the record of a connection of another program, which is not a test.
    """

    schema: int | None = figure()
    run_id: str | None = figure()
    dialect: str | None = figure()
    preset: str | None = figure()
    verdict: str | None = figure()
    plan: PlanFigures = part(PlanFigures)
    expected: ExpectedRates = part(no_rates)
    measured: MeasuredFigures = part(no_rates)
    latency: ProbeFigures | None = figure("probe")
    responsiveness: ResponsivenessFigures | None = figure()
    path: PathFigures | None = figure(omitted=True)
    stretches: tuple[PeriodFigures, ...] = ()
    near_cpu: CpuFigures = part(CpuFigures, at="cpu.near")
    far_cpu: CpuFigures = part(CpuFigures, at="cpu.far")
    tcp: TcpFigures = part(TcpFigures, "")
    other_tests: OtherTestsFigures | None = figure("others")
    warnings: tuple[str, ...] = ()
    end_reason: str | None = figure("end.reason", at="ended.reason")
    end_detail: str | None = figure("end.detail", at="ended.detail")
    label: str | None = figure()
    note: str | None = figure()
    group: str | None = figure()
    findings: tuple[FindingFigures, ...] = part(tuple, at="why")
    subject: SubjectFigures = part(SubjectFigures, inline=True)
    until_ci: PrecisionFigures | None = figure(omitted=True)
    cell: dict[str, Any] | None = figure(omitted=True)
    latency_limit: LimitFigures | None = figure(omitted=True)
    observed: ObservedFigures | None = figure(omitted=True)

    @classmethod
    def of(cls, document: object) -> Self:
        """Read a document; missing members are unknown."""
        return decode(cls, document)

    @classmethod
    def of_run(
        cls, summary: Summary, started: Started | None = None, *, verdicts: Sequence[str] = (), **rest: Any
    ) -> Self:
        """Return the result of a run that is over.

        Args:
            summary: Its measurements.
            started: Its first event; None if it did not start.
            verdicts: The word of each of several periods.
            rest: Figures that are not measured: the id and the names of the run, its verdict, findings, and limits.
        """
        plan, periods = summary.plan, summary.periods
        expected = _with_total(summary.expectation, summary.newest_direction)
        found = summary.responsiveness
        names = ("run_id", "preset", "label", "note", "group", "until_ci", "cell", "latency_limit", "observed")
        nothing = dict.fromkeys(names)
        return figures_of(
            cls,
            summary,
            schema=DOCUMENT_VERSION,
            dialect=summary.dialect.value,
            plan=PlanFigures.of(plan, periods[0].warmup_ns if periods else None),
            expected=expected_figures(expected),
            measured=measured_figures(summary.measured, expected, summary.overhead),
            responsiveness=None if found is None else responsiveness_figures(found),
            path=None if summary.path is None else path_figures(summary.path),
            stretches=tuple(
                PeriodFigures.of(period, summary, word) for period, word in zip_longest(periods, verdicts)
            ),
            tcp=figures_of(TcpFigures, summary, mode_choice="automatic" if plan.mode is None else "requested"),
            subject=SubjectFigures.of(started),
            **nothing | {"verdict": "none", "findings": ()} | rest,
        )

    @property
    def reason(self) -> Reason:
        """Why the run ended; an unknown reason is a failure."""
        return next((each for each in Reason if each.value == self.end_reason), Reason.FAILED)

    @property
    def detail(self) -> str | None:
        """The detail of its end."""
        return self.end_detail

    @property
    def total(self) -> MeasuredResult | None:
        """The payload of all directions."""
        return self.measured.total

    @property
    def why(self) -> tuple[str, ...]:
        """The codes of its findings, the strongest first."""
        return tuple(finding.code for finding in self.findings if finding.code is not None)

    @property
    def retransmits(self) -> int | None:
        """The retransmits of TCP."""
        return self.tcp.retransmits

    @property
    def expected_bit_s(self) -> float | None:
        """The expected rate of both directions, or of the only direction with one."""
        expected = (self.expected.total, self.expected.out, self.expected.in_)
        mbit_s = next((each.mbit_s for each in expected if each is not None and each.mbit_s is not None), None)
        return None if mbit_s is None else mbit_s * MEGABIT

    @property
    def warmup_s(self) -> float:
        """The warm-ups of all periods."""
        return sum(period.warmup_s or 0 for period in self.stretches)

    @property
    def worst_percent(self) -> float | None:
        """The percentage of the worst direction that has an expected rate."""
        measured = (self.measured.out, self.measured.in_, self.measured.total)
        percents = [each.percent_of_expected for each in measured if each is not None]
        return min((percent for percent in percents if percent is not None), default=None)

    @property
    def loss(self) -> float | None:
        """The lost share of its payload; for TCP, the share of retransmits. None for transactions."""
        total, efficiency_percent = self.total, self.tcp.efficiency_percent
        if total is None or total.transactions_s is not None:
            return None
        if total.is_datagrams:
            return total.loss
        return None if efficiency_percent is None else 1 - efficiency_percent / 100

    @property
    def rise_ns(self) -> float | None:
        """The rise of latency under load; None if it was not measured."""
        measured = self.responsiveness
        return None if measured is None or measured.rise_ms is None else measured.rise_ms * _MILLISECOND_NS


def _with_total(expected: Expectation, direction: Direction | None) -> Expectation:
    """Return the expected rates with a total, which is the direction's own rate if there is only one."""
    if expected.total is not None or direction is None:
        return expected
    return Expectation(expected.out, expected.in_, expected[direction])
