"""Scripted runs: the same events each time, in place of a network, and their place in a run log.

The session of the run is the real one, with its meter, diagnosis and verdict. Events come in order, and changes and
stops are answered by events. Only the numbers are made up.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from linkgauge.engine.model.counters.latency_histogram import bucket_of
from linkgauge.engine.model.counters.path_trace import PathTrace
from linkgauge.engine.model.counters.samples import (
    CoreTimes,
    DatagramSample,
    LatencyCounts,
    ProbeSample,
    Sample,
    SessionSample,
)
from linkgauge.engine.model.counters.session_counters import SocketInfo
from linkgauge.engine.model.directions import Direction, End, sender_of
from linkgauge.engine.model.events import (
    Changed,
    Ended,
    Event,
    Opened,
    Sampled,
    SessionTotal,
    Started,
    Totals,
    Warned,
)
from linkgauge.engine.model.host_info import HostInfo
from linkgauge.engine.model.peer import LOOPBACK, Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.near.base_run import Run
from linkgauge.engine.results.meter import Meter
from linkgauge.engine.results.run_log import RunLog
from linkgauge.presets.auto_select import NO_PRESET
from linkgauge.presets.diagnosis.live import no_ceiling
from linkgauge.presets.expectation import find_expectation
from linkgauge.presets.preset import Preset
from linkgauge.presets.verdict import judge
from linkgauge.tui.readings.cockpit_snapshot import CockpitSnapshot, Phase
from linkgauge.tui.readings.live_readings import LiveReadings
from linkgauge.tui.session.run_recorder import Outcome
from linkgauge.tui.session.run_session import RunSession
from linkgauge.tui.session.run_spec import Judging, Record, RunSpec

from ..engine.results.responsiveness_runs import Link

INTERVAL_NS = SECOND_NS // 4
NEAR = HostInfo("web-07", "Linux 6.18", 8, "linkgauge 0.1.0", "uvloop")
FAR = HostInfo("db-02", "Linux 6.12", 16, "linkgauge 0.1.0", "uvloop")


def iperf3_host(peer: Peer) -> HostInfo:
    """Return what is known of the host of an iperf3 server."""
    return HostInfo(peer.host, "unknown", 0, "iperf3", "unknown")


def variation(index: int) -> float:
    """Return a factor close to one, always the same for an index."""
    return 1 + ((index * 7919) % 13 - 6) / 400


def core_times(count: int, hot: int, busy: float) -> tuple[CoreTimes, ...]:
    """Return the core times of an interval with one hot core; the others do a fraction of its work."""
    times: list[CoreTimes] = []
    for core in range(count):
        share = busy if core == hot else busy * ((core * 37) % 11) / 22
        whole = int(INTERVAL_NS * share)
        times.append(CoreTimes(whole // 5, whole * 3 // 5, whole // 5, 0, INTERVAL_NS - whole))
    return tuple(times)


def _reported_datagrams(plan: Plan, flow: Direction, bytes_: int) -> dict[str, int]:
    """Return what an iperf3 server reports of the datagrams that all sessions brought it."""
    if not plan.workload.is_datagram or flow is Direction.IN:
        return {}
    received = bytes_ // 1_472 // plan.settings.sessions
    return {"received": received, "lost": received // 500, "jitter_ns": 31_000}


class _EmittedRun:
    """A run of the engine as its session sees it, over IPv4: it yields events until Ended."""

    ip_version = 4

    def __init__(self, queue: asyncio.Queue[Event]) -> None:
        self._queue = queue
        self.trace: PathTrace | None = None

    def trace_so_far(self) -> PathTrace | None:
        """Return the trace that a test has set."""
        return self.trace

    async def __aiter__(self) -> AsyncIterator[Event]:
        """Yield events until Ended."""
        while True:
            event = await self._queue.get()
            yield event
            self._queue.task_done()
            if isinstance(event, Ended):
                return


class ScriptedRun(RunSession):
    """The session of a run whose events a test emits, interval by interval.

    Call `start`, then `run_for` and `change_settings` at will, then `end`.
    """

    def __init__(self, preset: Preset, plan: Plan) -> None:
        self.preset = preset
        self.plan = plan
        self._settings = plan.settings
        self.index = 0
        self.warm_until = plan.effective_warmup_ns
        self.queue: asyncio.Queue[Event] = asyncio.Queue()
        self.changes: list[Settings] = []
        self.stops: list[Reason] = []
        self.closed = False
        self.took_ns: tuple[int, ...] = ()  # each interval's transactions, or the probe's
        self.lost_share = 0.0  # of UDP, while it is set
        self.has_iperf3 = False
        self.delays_ns = (4_000, 9_000, 12_000, 14_000, 31_000, 310_000)
        self.emitted = _EmittedRun(self.queue)
        super().__init__(
            cast("Run", self.emitted),
            RunSpec(plan, LOOPBACK, Judging(preset), Record(run_id="20261121-014629-7f3a")),
            far_end=LOOPBACK,
            log=None,
            writer=None,
            ceiling=no_ceiling,
        )
        self.meter.has_traces = True

    # In place of the engine.

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._settings

    @settings.setter
    def settings(self, settings: Settings) -> None:
        self._settings = settings

    def change_settings(self, settings: Settings) -> None:
        """Answer with a Changed event, as the engine does."""
        self.changes.append(settings)
        self.settings = settings
        self.warm_until = self.elapsed_ns + self.plan.effective_warmup_ns
        self.emit(Changed(self.elapsed_ns, settings, find_expectation(self.preset, settings, self.plan.workload)))

    def stop(self, reason: Reason = Reason.STOPPED, detail: str = "") -> None:
        """Answer with Ended."""
        self.stops.append(reason)
        self.end(reason, detail or "you stopped the run")

    async def _measure_path_mtu(self, end: RunEnd) -> None:
        """Measure nothing: there is no path."""

    # The script, called by tests.

    @property
    def elapsed_ns(self) -> int:
        """The end of the newest interval."""
        return self.index * INTERVAL_NS

    def emit(self, *events: Event) -> None:
        """Emit events."""
        for event in events:
            self.queue.put_nowait(event)

    def start(self, peer: Peer) -> None:
        """Emit the start of the run, with a socket opened at each end."""
        expected = find_expectation(self.preset, self.settings, self.plan.workload)
        self.has_iperf3 = peer.iperf3 is not None
        far = iperf3_host(peer) if self.has_iperf3 else FAR
        idle = _counted((310_000, 340_000, 350_000, 620_000)) if self.plan.probe else None
        probed = ProbeSample(idle, SECOND_NS, 340) if idle else None
        if self.plan.responsiveness is not None:
            probed = Link().started().idle
        self.emit(Started("2026-11-21T01:46:29Z", str(peer), NEAR, far, self.plan, expected, probed))
        for end in [End.NEAR] if self.has_iperf3 else End:
            self.emit(
                Opened(
                    SocketInfo(end, Direction.OUT, 1, "cubic", self.settings.window_bytes, 1448, True, True, True)
                )
            )

    def run_for(self, intervals: int, bit_s: float, *, far_busy: float = 0.61, near_busy: float = 0.97) -> None:
        """Emit intervals in which each direction carries about `bit_s`."""
        for _ in range(intervals):
            self.index += 1
            for end, busy, host in ((End.NEAR, near_busy, NEAR), (End.FAR, far_busy, FAR)):
                if end is End.FAR and self.has_iperf3:
                    self._emit_acknowledged(bit_s)
                    continue
                sample = Sample(
                    end,
                    self.index - 1,
                    self.elapsed_ns,
                    INTERVAL_NS,
                    tuple(self._sessions(end, bit_s)),
                    core_times(host.cores, 3, busy * variation(self.index)),
                    int(INTERVAL_NS * busy * 0.4),
                    **self._latency(end),
                    **self._datagrams(end, bit_s),
                )
                self.emit(Sampled(sample, self.settings, self.elapsed_ns <= self.warm_until))

    def end(self, reason: Reason = Reason.COMPLETED, detail: str = "the duration was up") -> None:
        """Emit the end of the run."""
        self.emit(Ended(RunEnd(reason, detail)))

    def _emit_acknowledged(self, bit_s: float) -> None:
        """Emit what stands in for the samples of an iperf3 server: the bytes that it acknowledged."""
        parts = tuple(part for part in self._sessions(End.FAR, bit_s) if part.direction is Direction.OUT)
        if parts:
            parts = tuple(SessionSample(Direction.OUT, part.session, part.bytes) for part in parts)
            sample = Sample(End.FAR, self.index - 1, self.elapsed_ns, INTERVAL_NS, parts, is_from_sender=True)
            self.emit(Sampled(sample, self.settings, self.elapsed_ns <= self.warm_until))

    def report_totals(self, bit_s: float) -> None:
        """Emit what an iperf3 server reports at the end: this rate in each session and direction."""
        span_ns = self.elapsed_ns - self.warm_until
        parts = [
            SessionTotal(
                flow,
                session,
                int(bit_s * span_ns / 8 / SECOND_NS / self.settings.sessions),
                span_ns,
                retransmits=17 if flow is Direction.IN and not self.plan.workload.is_datagram else None,
                **_reported_datagrams(self.plan, flow, int(bit_s * span_ns / 8 / SECOND_NS)),
            )
            for flow, session, _ in self._flows(End.NEAR)
        ]
        self.emit(Totals(End.FAR, span_ns, tuple(parts), span_ns * 2 // 5))

    def _latency(self, end: End) -> dict[str, Any]:
        """Return the latency of an interval: the probe's at the near end, transactions' at the requesting end."""
        counted = _counted(self.took_ns)
        if self.plan.probe and end is End.NEAR:
            return {"probe": ProbeSample(counted, INTERVAL_NS, 24_000)}
        if self.plan.workload.is_transactional and sender_of(Direction.OUT, self.plan.workload) is not end:
            return {"latency": (counted,)}
        return {}

    def drain(self) -> None:
        """Emit the samples that follow the last ones of UDP: nothing came, and nothing was left on the way."""
        for end in End:
            datagrams = tuple(
                DatagramSample(flow, session, **(_SILENT_SENDER if is_sender else _SILENT_RECEIVER))
                for flow, session, is_sender in self._flows(end)
            )
            elapsed_ns = self.elapsed_ns + SECOND_NS // 2
            sample = Sample(end, self.index, elapsed_ns, SECOND_NS // 2, (), datagrams=datagrams, is_drain=True)
            self.emit(Sampled(sample, self.settings, warmup=False))

    def _flows(self, end: End) -> Iterable[tuple[Direction, int, bool]]:
        """Yield each direction and session, and whether this end sends it."""
        for flow in self.settings.direction.flows:
            for session in range(1, self.settings.sessions + 1):
                yield flow, session, sender_of(flow, self.plan.workload) is end

    def _datagrams(self, end: End, bit_s: float) -> dict[str, Any]:
        """Return the datagrams of an interval: some of them lost, of which a tenth in the receiver's socket."""
        if not self.plan.workload.is_datagram:
            return {}
        size = self.settings.datagram_bytes or 1_472
        parts: list[DatagramSample] = []
        delays: list[LatencyCounts] = []
        for flow, session, is_sender in self._flows(end):
            share = variation(self.index + session * 3) * bit_s / self.settings.sessions
            received = int(share * INTERVAL_NS / SECOND_NS / 8 / size)
            lost = round(received * self.lost_share / (1 - self.lost_share))
            if is_sender:
                rate = {"rate_bit_s": self.settings.rate_bit_s or 0, "is_grouped": int(received > 12_500)}
                sent = {"sent": received + lost, "send_dropped": 0, "skipped": 0, "datagram_bytes": size}
                part = DatagramSample(flow, session, **sent, **rate, rtt_us=212, return_delay_us=40)
            else:
                part = DatagramSample(
                    flow,
                    session,
                    **{**_SILENT_RECEIVER, "advanced": received + lost, "received": received},
                    gaps=lost // 3,
                    gap_longest=min(lost, 7),
                    socket_dropped=lost // 10,
                    reordered=lost // 20,
                    reordered_3=lost // 40,
                    extent=3 if lost else 0,
                    jitter_sum_ns=31_000 * received,
                    jitter_count=received,
                    jitter_max_ns=420_000,
                )
                if session == 1:
                    delays.append(replace(_counted(self.delays_ns), direction=flow))
            parts.append(part)
        return {"datagrams": tuple(parts), "delay_variation": tuple(delays)}

    def _sessions(self, end: End, bit_s: float) -> Iterable[SessionSample]:
        sessions = self.settings.sessions
        for flow in self.settings.direction.flows:
            for session in range(1, sessions + 1):
                share = variation(self.index + session * 3) * bit_s / sessions
                carried = int(share * INTERVAL_NS / SECOND_NS / 8)
                if sender_of(flow, self.plan.workload) is end:
                    sent = int(self.index % 16 == 5 and session == 2)
                    rtt = 212 + (session * 31 + self.index) % 90
                    yield SessionSample(flow, session, carried, sent, rtt, 1_448 * (420 + session), 1448)
                else:
                    yield SessionSample(flow, session, carried)


_SILENT_SENDER: Any = {"sent": 0, "send_dropped": 0, "skipped": 0}
_SILENT_RECEIVER: Any = {
    **dict.fromkeys(("advanced", "received", "duplicates", "late", "invalid", "ce_marks"), 0),
}


def _counted(took_ns: tuple[int, ...]) -> LatencyCounts:
    """Return a histogram with a hundred transactions of each latency."""
    buckets = sorted({bucket_of(ns) for ns in took_ns})
    counts = tuple(100 * sum(bucket_of(ns) == bucket for ns in took_ns) for bucket in buckets)
    return LatencyCounts(Direction.OUT, tuple(buckets), counts)


def play(script: ScriptedRun) -> LiveReadings:
    """Return the readings of all that a script has emitted."""
    readings = LiveReadings(script.plan, script.meter)
    while not script.queue.empty():
        event = script.queue.get_nowait()
        script.meter.feed(event)
        readings.log.add_event(event)
    return readings


def readings_of(world: Any, plan: Plan, drive: Callable[[Any], object]) -> LiveReadings:
    """Return the readings of everything that a script emits."""
    script = world.script_of(world.catalog.find("10gbe-fd-1500"), plan)
    drive(script)
    return play(script)


def view_of(readings: LiveReadings) -> CockpitSnapshot:
    """Return what the screen shows of a run in progress."""
    return CockpitSnapshot(Phase.RUNNING, NO_PRESET, readings.plan, LOOPBACK, readings=readings)


def five_sessions_half_way(script: ScriptedRun) -> None:
    """Emit five seconds of one session with a warning, then seven of five sessions."""
    script.emit(Warned("far granted a window of 212K, less than the 4M asked for"))
    script.run_for(20, 6.9e9)
    script.change_settings(script.settings.with_changes(sessions=5))
    script.run_for(28, 9.38e9)


def store_run(
    log: RunLog,
    run_id: str,
    script: ScriptedRun,
    *,
    peer: str = "db-02",
    label: str | None = None,
    group: str | None = None,
    router_names: Mapping[str, str] | None = None,
) -> None:
    """Store the events of a scripted run in a log, as the app does."""
    meter = Meter()
    meter.router_names = router_names or {}
    preset = script.preset.id
    log.begin(run_id, preset, peer, label=label, group=group)
    while not script.queue.empty():
        event = script.queue.get_nowait()
        if isinstance(event, Started):
            began = datetime.strptime(run_id[:15], "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
            event = replace(event, started_utc=f"{began:%Y-%m-%dT%H:%M:%SZ}")
        meter.feed(event)
        log.append_event(run_id, event)
    meter.flush()
    outcome = Outcome.of(meter, judge(meter.summary()), run_id=run_id, preset=preset, label=label)
    log.finish(run_id, outcome.verdict.word, outcome.document)
