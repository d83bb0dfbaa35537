"""The meter: joins the samples of both ends to intervals, and a run's events to its summary.

Pure. Each end numbers its intervals on its own clock. In an interval, bytes are the receiver's and TCP's values
the sender's. A far sample may come seconds late, because the control connection shares the link with the payload:
an interval waits for it, but not for ever. A drain, after the end of a UDP run, is not an interval.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from ..model.counters.path_trace import PathTrace
from ..model.directions import Direction, End, sender_of
from ..model.events import Changed, Ended, Event, Opened, PathTraced, Sampled, Started, Totals, Warned
from ..model.expected_rate import Expectation
from ..model.plan import SECOND_NS, Dialect, Plan, Settings
from ..model.run_end import EndText, Reason, RunEnd
from ..model.texts.warning_text import WarningKind
from ..model.workload import Workload
from .confidence import Estimate
from .path.hop_judgement import find_path
from .path.path_result import PathResult
from .responsiveness.recorder import ResponsivenessRecorder
from .responsiveness.result import Responsiveness, ResponsivenessPoint
from .run_totals import (
    OpenSockets,
    PeriodSum,
    ProbeSum,
    Warnings,
    newest_expectation,
    newest_results,
    sum_end,
    sum_senders,
)
from .summary import Measurement, Summary
from .sums.sample_sum import RecentSamples, SampleOrder, SampleSum
from .sums.traces import Traces
from .udp.packet_overhead import packet_overhead
from .udp.tail_losses import TailLosses

RECENT_NS: Final = 3 * SECOND_NS  # for the diagnosis of a run in progress
SHOWN_NS: Final = SECOND_NS  # on the gauges: a single interval fluctuates too much to be read
_CUT_OFF: Final = RunEnd(Reason.FAILED, EndText.LOG_CUT_OFF.value)


@dataclass(frozen=True, slots=True)
class Interval:
    """The samples of both ends in one interval; None for an end that skipped it."""

    index: int
    near: Sampled | None
    far: Sampled | None
    workload: Workload = Workload.STREAM

    def end_sample(self, end: End) -> Sampled | None:
        """Return one end's sample."""
        return self.near if end is End.NEAR else self.far

    def sender_sample(self, flow: Direction) -> Sampled | None:
        """Return the sample of the end that sends a single direction."""
        return self.end_sample(sender_of(flow, self.workload))

    def receiver_sample(self, flow: Direction) -> Sampled | None:
        """Return the sample of the end that receives a single direction: the truth for its bytes."""
        return self.end_sample(sender_of(flow, self.workload).other)

    @property
    def flows(self) -> tuple[Direction, ...]:
        """The single directions that ran.

        These are the settings' own. In a warm-up it is also a direction that a change has ended and that still had
        bytes on their way. These bytes are shown, and never measured.
        """
        return tuple(flow for flow in Direction.DUPLEX.flows if self._has(flow))

    def received_bytes(self, flow: Direction) -> int | None:
        """Return the received payload of a single direction; None without a sample of the receiver."""
        receiver = self.receiver_sample(flow)
        return None if receiver is None else receiver.sample.bytes_of(flow)

    def _has(self, flow: Direction) -> bool:
        receiver = self.receiver_sample(flow)
        sampled = receiver or self.sender_sample(flow)
        if sampled is None:
            return False
        if flow in sampled.settings.direction.flows:
            return True
        return receiver is not None and receiver.warmup and receiver.sample.bytes_of(flow) > 0


class Meter:
    """Sums up a run's events, which you must feed in order; the summary so far is available at any time.

    Memory is bounded: only intervals that wait for an end are stored, and everything else is sums. `periods` and
    `sockets` are for the diagnosis, and `recent` has the newest samples. If `has_traces` is set before the first
    event, `traces` has the run over time, for plots. `router_names` are names of routers by their address, if they
    were looked up.
    """

    def __init__(self, *, has_traces: bool = False) -> None:
        self.started: Started | None = None
        self.periods: list[PeriodSum] = []
        self.sockets = OpenSockets()
        self._end: RunEnd | None = None
        self._waiting: dict[int, dict[End, Sampled]] = {}
        self.recent = RecentSamples(RECENT_NS)
        self._shown: tuple[Sampled | None, SampleSum] | None = None
        self.has_traces, self.traces = has_traces, Traces()
        self._order = SampleOrder()
        self._reached_ns = dict.fromkeys(End, 0)  # the end of each end's last interval
        self._expectations: dict[Settings, Expectation] = {}
        self.probe = ProbeSum()
        self._tails = TailLosses()
        self.warnings = Warnings()
        self._responsiveness: ResponsivenessRecorder | None = None
        self._paths: dict[End, PathTrace] = {}
        self._path_so_far: PathResult | None = None
        self.router_names: Mapping[str, str] = {}

    def feed(self, event: Event) -> list[Interval]:
        """Process an event; return the intervals that are now complete, in order of index.

        An interval is complete when each end that sends samples has sent its own or a later one. You must call
        `flush` after the last event, for intervals without a sample of one end.
        """
        match event:
            case Sampled():
                return self._sampled(event)
            case Started():
                self.started = event
                self.probe.add_idle(event.idle)
                self._responsiveness = ResponsivenessRecorder.of_run(event)
                self._use_settings(0, event.plan.settings, event.expectation)
            case Changed():
                self.sockets.change_settings(event.settings)
                self._use_settings(event.elapsed_ns, event.settings, event.expectation)
            case Opened():
                self.sockets.add_session(event)
                self._tails.open_session(event)
            case Totals():
                self._period_of_totals().set_totals(event)
                self.traces.set_totals(event, self._workload)
            case PathTraced() | Warned():
                self._take_news(event)
            case Ended():
                self._end = event.end
                if self.started is not None and may_end_silent(self.started.plan, event.end.reason):
                    for period in self.periods[-1:]:
                        period.trim_silence()
        return []

    def _take_news(self, event: PathTraced | Warned) -> None:
        if isinstance(event, PathTraced):
            self._paths[event.trace.end] = event.trace
        else:
            self.warnings.add_warning(event.text, event.kind or WarningKind.OTHER)

    def show_trace(self, trace: PathTrace) -> None:
        """Judge an end's trace of a run in progress, for a screen; the traces at the end take its place."""
        self._path_so_far = find_path({trace.end: trace}, self.responsiveness, self.router_names)

    def flush(self) -> list[Interval]:
        """Return the intervals that still wait for an end, in order of index, and remove them."""
        return self._release(self._order.reached_by_any)

    def expectation_for(self, settings: Settings) -> Expectation:
        """Return the expectation under settings of the run; an empty one for other settings."""
        return self._expectations.get(settings, Expectation())

    def rate_estimate(self, direction: Direction | None = None) -> Estimate | None:
        """Return the rate of the newest period so far with its error, of one direction or of all that run.

        None if too little was measured to tell.
        """
        if not self.periods:
            return None
        newest = self.periods[-1]
        flow = None if direction is None else newest.received.get(direction)
        return newest.total.estimate if flow is None else flow.estimate

    @property
    def end(self) -> RunEnd:
        """How the run ended; one that has not ended counts as cut off."""
        return self._end or _CUT_OFF

    @property
    def has_ended(self) -> bool:
        """Whether the run is over."""
        return self._end is not None

    @property
    def elapsed_ns(self) -> int:
        """The end of the newest interval of either end; 0 before the first."""
        return max(self._reached_ns.values())

    @property
    def shown(self) -> SampleSum:
        """The sums of the last second under the newest settings, warm-up included: made once for all gauges."""
        newest, settings = self.recent.newest, self.recent.settings
        if self._shown is None or self._shown[0] is not newest:
            flows = () if settings is None else settings.direction.flows
            self._shown = newest, self.recent.sum_shown(self._workload, flows, SHOWN_NS)
        return self._shown[1]

    @property
    def responsiveness(self) -> Responsiveness | None:
        """Latency under load so far; None without a responsiveness test."""
        return None if self._responsiveness is None else self._responsiveness.result

    @property
    def responsiveness_series(self) -> tuple[ResponsivenessPoint, ...]:
        """The latency and the goodput of each interval under load; empty without a responsiveness test."""
        return () if self._responsiveness is None else self._responsiveness.series

    @property
    def path(self) -> PathResult | None:
        """The hops between the ends; None if neither end has traced them.

        During a run these are the hops of the last `show_trace`.
        """
        if self._paths:
            return find_path(self._paths, self.responsiveness, self.router_names)
        return None if self.has_ended else self._path_so_far

    def summary(self) -> Summary:
        """Return the summary so far; a run that has not ended counts as cut off."""
        totals = [total for period in self.periods if (total := period.total).span_ns]
        payload_bytes = sum(total.bytes for total in totals)
        transactions = sum(sum(total.latency.values()) for total in totals if total.is_transactional)
        plan = self.started.plan if self.started else Plan()
        tcp = self.sockets.summarize(sum_senders(self.periods), plan.workload)
        dialect = Dialect.LINKGAUGE if self.started is None else self.started.dialect
        return Summary(
            plan=plan,
            measured=newest_results(self.periods),
            expectation=newest_expectation(self.periods) if self.periods else Expectation(),
            periods=tuple(part.period for part in self.periods),
            near_cpu=sum_end(self.periods, End.NEAR).summary(payload_bytes, transactions),
            far_cpu=sum_end(self.periods, End.FAR).summary(payload_bytes, transactions),
            tcp=replace(tcp, mode=None) if dialect is Dialect.OBSERVED else tcp,  # nobody knows
            warnings=self.warnings.texts,
            end=self.end,
            probe=self.probe.summary,
            overhead=None if self.started is None else packet_overhead(self.started),
            unseen_end=None if self.started is None else self.started.unseen_end,
            responsiveness=self.responsiveness,
            path=self.path,
            unknown_ns=self._unknown_ns,
            others=sum_end(self.periods, End.FAR).others_summary,
            elapsed_ns=self.elapsed_ns or None,
            dialect=dialect,
        )

    def _use_settings(self, start_ns: int, settings: Settings, expectation: Expectation) -> None:
        """Begin the period of new settings in all sums."""
        self._begin_period(start_ns, settings, expectation)
        self.recent.begin(settings, start_ns)
        self.probe.begin()
        self.traces.begin_period(start_ns, settings, expectation)

    def _begin_period(self, start_ns: int, settings: Settings, expectation: Expectation) -> None:
        self._expectations[settings] = expectation
        if self._responsiveness is not None:
            self._responsiveness.change_settings(start_ns, settings)
        if not self.periods or self.periods[-1].settings != settings:
            self.periods.append(PeriodSum(settings, expectation, start_ns, self._workload))

    def _sampled(self, event: Sampled) -> list[Interval]:
        sample = event.sample
        if not self._order.admits(sample):
            # It is neither counted nor released: the sums and the rows must not disagree.
            self.warnings.add_warning(f"a sample of the {sample.end.label} end was out of order and is left out")
            return []
        self._tails.add_event(event)
        if sample.is_drain:
            self._add_drain(event)
            return self._release(self._complete_index)
        is_current = self.recent.keep_sample(event)
        self._reached_ns[sample.end] = sample.elapsed_ns
        if self._responsiveness is not None:
            self._responsiveness.add_event(event)
        both = self._waiting.setdefault(sample.index, {})
        both[sample.end] = event
        duplex_bit_s = _duplex_bit_s(both, self._workload)
        if self.has_traces:
            self.traces.add_event(event, self._workload)
            if is_current:
                self.traces.add_rates(event, self._workload, duplex_bit_s)
        if not event.warmup:
            is_measured = not any(each.warmup for each in both.values())
            self._period_of(event).add_sample(sample, duplex_bit_s if is_measured else None)
        self.probe.add_loaded(sample, is_warmup=event.warmup)
        return self._release(self._complete_index)

    @property
    def _complete_index(self) -> int:
        """The index of the last interval for which no further sample can come."""
        has_one = self.started is not None and has_one_sampler(self.started)
        return self._order.reached_by_any if has_one else self._order.complete_index

    @property
    def _unknown_ns(self) -> int:
        """The time of this run after the last sample of a receiver."""
        flows = self.periods[-1].settings.direction.flows if self.periods else ()
        receivers = {sender_of(flow, self._workload).other for flow in flows}
        return self.elapsed_ns - min((self._reached_ns[end] for end in receivers), default=0)

    def _period_of_totals(self) -> PeriodSum:
        """Return the period that an end's totals are about: the last one with a measurement."""
        if not self.periods:
            self._begin_period(0, Settings(), Expectation())
        return next((period for period in reversed(self.periods) if period.total.span_ns), self.periods[-1])

    def _add_drain(self, event: Sampled) -> None:
        """Count the datagrams that were still on their way at the end, if their period was measured."""
        period = self._period_of(event)
        if period.total.span_ns:
            period.add_sample(event.sample)
            period.set_tails(self._tails)

    def _period_of(self, event: Sampled) -> PeriodSum:
        """Return the period of a sample, which may be late: the newest one of its settings that had begun."""
        same = [period for period in reversed(self.periods) if period.settings == event.settings]
        if not same:
            self._begin_period(event.sample.elapsed_ns, event.settings, self.expectation_for(event.settings))
            return self.periods[-1]
        begun = (period for period in same if period.start_ns < event.sample.elapsed_ns)
        return next(begun, same[-1])

    def _release(self, newest: int) -> list[Interval]:
        ready = sorted(index for index in self._waiting if index <= newest)
        ends = ((index, self._waiting.pop(index)) for index in ready)
        return [Interval(index, both.get(End.NEAR), both.get(End.FAR), self._workload) for index, both in ends]

    @property
    def _workload(self) -> Workload:
        return self.started.plan.workload if self.started else Workload.STREAM


def _duplex_bit_s(both: Mapping[End, Sampled], workload: Workload) -> float | None:
    """Return the rate of both directions together in an interval; None until both ends have measured it."""
    settings = [event.settings for event in both.values()]
    if len(settings) < len(End) or settings[0] != settings[1] or settings[0].direction is not Direction.DUPLEX:
        return None
    received = ((flow, both[sender_of(flow, workload).other].sample) for flow in Direction.DUPLEX.flows)
    return sum(Measurement(sample.bytes_of(flow), sample.interval_ns).bit_s for flow, sample in received)


def has_one_sampler(started: Started) -> bool:
    """Return whether only one end has samples: an iperf3 has none as a sender."""
    unseen, workload = started.unseen_end, started.plan.workload
    return unseen is not None and all(
        sender_of(flow, workload) is unseen for flow in started.plan.settings.direction.flows
    )


def may_end_silent(plan: Plan, reason: Reason | None) -> bool:
    """Return whether a direction may be silent before this end of a run without a fault of the link."""
    if reason is Reason.COMPLETED:
        return plan.bytes_limit is not None
    return reason in {Reason.PEER_LOST, Reason.SESSION_LOST}


def replay(events: Iterable[Event]) -> Meter:
    """Return a meter that has processed all events of a run, even of a crashed one."""
    meter = Meter()
    for event in events:
        meter.feed(event)
    meter.flush()
    return meter
