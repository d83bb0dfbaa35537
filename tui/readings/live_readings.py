"""The readings of a run, taken from its meter: values only, no connection and no clock.

Pure. Rates and loads are means over the last second. A single interval of a quarter of a second fluctuates too much
to be read, and the counters of CPU time move in steps of 10 ms.
"""

from itertools import pairwise
from typing import Final

from ...engine.model.events import Expectation, Sampled
from ...engine.model.latency_histogram import merge_counts, summarize_latency
from ...engine.model.plan import SECOND_NS, Direction, End, Plan, Settings, sender_of
from ...engine.model.samples import SessionSample
from ...engine.results.meter import Meter
from ...engine.results.rate_and_loss import core_percents, host_percent, percent_of
from ...engine.results.responsiveness.result import ResponsivenessPoint
from ...engine.results.sums.sample_sum import SampleSum
from ...engine.results.sums.session_sums import SessionSum, SessionSums
from ...engine.results.sums.traces import PlotPeriod, Traces
from ...engine.results.udp.datagram_sums import DatagramSum
from ..words import numbers
from ..words.event_lines import EventLines
from ..words.iperf3 import live_source_text
from .instrument_values import (
    ChangeMark,
    CpuReading,
    DatagramReading,
    FlowRate,
    SessionRow,
)
from .plot_values import REDRAW_NS, RateAxis

_RECENT_NS: Final = SECOND_NS


class LiveReadings:
    """The readings of one run: a view over its meter, which must have traces.

    You must feed every event, in order, to its log. Before the run is open, the meter is empty.
    """

    def __init__(self, plan: Plan, meter: Meter | None = None) -> None:
        self.meter = meter or Meter(has_traces=True)
        self.log = EventLines()
        self.rate_axis = RateAxis()
        self._plan = plan
        self._load_points: tuple[object, tuple[ResponsivenessPoint, ...]] | None = None
        self._recent_sums: tuple[Sampled | None, SampleSum] | None = None  # made once for all gauges of a sample

    @property
    def warnings(self) -> list[str]:
        """The warnings of the run, in words for the screen."""
        return [numbers.sanitize(text) for text in self.meter.warnings.texts]

    @property
    def plan(self) -> Plan:
        """The plan of the run."""
        return self.meter.started.plan if self.meter.started else self._plan

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self.meter.recent.settings or self._plan.settings

    @property
    def elapsed_ns(self) -> int:
        """The end of the newest interval."""
        return self.meter.elapsed_ns

    @property
    def in_warmup(self) -> bool:
        """Whether the newest sample does not count yet."""
        newest = self.meter.recent.newest
        return newest is None or newest.warmup

    @property
    def traces(self) -> Traces:
        """The run over time."""
        return self.meter.traces

    @property
    def load_points(self) -> tuple[ResponsivenessPoint, ...]:
        """Latency over time of a responsiveness test, made again twice a second, as often as its plot is drawn."""
        moment = self.meter.elapsed_ns // REDRAW_NS, self.meter.has_ended
        if self._load_points is None or self._load_points[0] != moment:
            self._load_points = moment, self.meter.responsiveness_series
        return self._load_points[1]

    @property
    def periods(self) -> list[PlotPeriod]:
        """The periods of the plot."""
        return self.traces.periods

    @property
    def change_marks(self) -> list[ChangeMark]:
        """The changes that the plot marks: of the settings, and of the endpoint's other tests."""
        changes = (
            ChangeMark(after.from_s, numbers.settings_change(before.settings, after.settings))
            for before, after in pairwise(self.periods)
        )
        others = (
            ChangeMark(span.from_s, "other test" if span.tests == 1 else "other tests")
            for span in self.traces.other_tests
        )
        return sorted((mark for mark in (*changes, *others) if mark.label), key=lambda mark: mark.at_s)

    @property
    def granted_bytes(self) -> dict[End, int]:
        """The smallest window that each end's kernel has granted to a session, if it is known."""
        granted = {end: self.meter.sockets.granted_bytes(end) for end in End}
        return {end: window_bytes for end, window_bytes in granted.items() if window_bytes is not None}

    @property
    def window_in_use(self) -> int | None:
        """The smaller of the windows that both ends' kernels granted; None while it is unknown.

        With `auto`, it is a session's congestion window.
        """
        if granted := self.granted_bytes:
            return min(granted.values())
        newest = [points[-1].cwnd_bytes or 0 for points in self.traces.tcp.values()]
        return max(newest, default=0) // self.settings.sessions or None

    def flow(self, direction: Direction) -> FlowRate:
        """Return the rate of a direction in the last second; for duplex, the sum of both."""
        received = [self._recent_sum.received[flow] for flow in direction.flows]
        rates = [sums.bit_s for sums in received if sums.bit_s is not None]
        counts: dict[int, int] = {}
        for sums in received:
            merge_counts(counts, sums.latency.items())
        expectation = self.periods[-1].expectation if self.periods else Expectation()
        bit_s = sum(rates) if len(rates) == len(received) else None
        return FlowRate(bit_s, expectation[direction], summarize_latency(counts))

    def highest_bit_s(self, direction: Direction) -> float:
        """Return the highest rate that a gauge has shown. Two gauges side by side share theirs."""
        flows = self.settings.direction.flows
        flows = flows if direction in flows else (direction,)
        return max(self.traces.highest_bit_s.get(flow, 0.0) for flow in flows)

    def source(self, direction: Direction) -> str:
        """Return the source of a direction's rates if its receiver has not reported; an empty text otherwise."""
        started = self.meter.started
        if started is None or self.traces.has_totals:
            return ""
        return live_source_text(started.unseen_end, direction, is_datagram=self.plan.workload.is_datagram)

    def datagrams(self, direction: Direction) -> DatagramReading:
        """Return the datagrams of a direction in the last second; for duplex, of both together."""
        received = [self._recent_sum.received[flow] for flow in direction.flows]
        sums = DatagramSum()
        for each in received:
            if each.datagrams is not None:
                sums.extend(each.datagrams)
        span_ns = max(each.span_ns for each in received)
        count = sums.in_time
        packets_s = None if count is None or not span_ns else count * SECOND_NS / span_ns
        summary = sums.summary
        return DatagramReading(direction, packets_s, summary, summary)

    def cpu(self, end: End) -> CpuReading:
        """Return the load of one end."""
        sums = self._recent_sum
        payload_bytes = sum(sums.received[flow].bytes for flow in self.settings.direction.flows)
        cost = sums.ends[end].summary(payload_bytes).msec_per_mib
        cores = sums.ends[end].cores
        if not cores:
            return CpuReading(end, msec_per_mib=cost)
        percents = core_percents(cores)
        hottest = max(range(len(cores)), key=lambda core: percents[core])
        whole = cores[hottest].busy_ns + cores[hottest].idle_ns
        kernel = cores[hottest].system_ns + cores[hottest].softirq_ns
        return CpuReading(
            end,
            host_percent=host_percent(cores),
            hottest_core=hottest,
            hottest_percent=percents[hottest],
            hottest_kernel_percent=percent_of(kernel, whole),
            msec_per_mib=cost,
            cores=percents,
        )

    def session_rows(self) -> tuple[SessionRow, ...]:
        """Return the open sessions by direction and number.

        Their rates are of the last second. After a run whose settings did not change, they are its means, as in the
        gauge.
        """
        recent, workload = SessionSums(), self.plan.workload
        newest: dict[tuple[Direction, int], SessionSample] = {}
        for end in End:
            samples = self.meter.recent.of_end(end, _RECENT_NS)
            for sample in samples:
                recent.add_sample(sample, workload)
            for part in samples[-1].sessions if samples else ():
                if sender_of(part.direction, workload) is end:
                    newest[part.direction, part.session] = part
        return tuple(
            self._row(key, sums, newest.get(key))
            for flow in self.settings.direction.flows
            for key, sums in sorted(recent.sessions.items())
            if key[0] is flow
        )

    def _row(self, key: tuple[Direction, int], recent: SessionSum, sent: SessionSample | None) -> SessionRow:
        """Return the row of a session from its sums of the last second and its sender's newest sample."""
        known = self.traces.session_sums.sessions.get(key) or SessionSum()
        if self.meter.has_ended and len(self.periods) == 1 and known.bit_s is not None:
            recent = known
        packets = None if recent.datagrams is None else recent.datagrams.received
        return SessionRow(
            *key,
            recent.bit_s,
            sent.rtt_us if sent else None,
            known.retransmits,
            sent.cwnd_bytes if sent else None,
            None if known.datagrams is None else known.datagrams.lost_percent,
            None if known.datagrams is None else known.datagrams.jitter_ns,
            None if packets is None or not recent.span_ns else packets * SECOND_NS / recent.span_ns,
        )

    def retransmits(self) -> int | None:
        """Return the retransmitted segments of both ends since the warm-up; None if no kernel reports them."""
        return self.traces.session_sums.retransmits

    @property
    def _recent_sum(self) -> SampleSum:
        recent = self.meter.recent
        if self._recent_sums is None or self._recent_sums[0] is not recent.newest:
            flows = self.settings.direction.flows
            self._recent_sums = recent.newest, recent.sum_shown(self.plan.workload, flows, _RECENT_NS)
        return self._recent_sums[1]
