"""One run from its plan to its verdict, written to the run log and to CSV on the way.

Each event goes to the run log first, to the CSV second, and only then to the caller: the log has everything that
the user has seen. A failure to write never ends a run; it becomes a notice.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Final

from ...engine.browser.page_far_end import PageFarEnd, open_page_run
from ...engine.model.directions import Direction
from ...engine.model.errors import LinkgaugeError, RunLogError
from ...engine.model.events import Ended, Event, Sampled, Started
from ...engine.model.peer import Peer
from ...engine.model.plan import SECOND_NS, Mode, Plan, Settings
from ...engine.model.run_end import EndText, Reason, RunEnd
from ...engine.near.base_run import ExpectationFinder, Run
from ...engine.near.ceiling import Ceiling, load_ceiling
from ...engine.near.connect import FarEnd, open_far_end
from ...engine.near.path_mtu import measure_path_mtu
from ...engine.near.run import open_run
from ...engine.path.router_names import look_up_names
from ...engine.results.confidence import PrecisionTarget
from ...engine.results.csv_export import CsvWriter
from ...engine.results.json_stream import end_line, event_lines
from ...engine.results.meter import Interval
from ...engine.results.run_log import RunLog
from ...engine.results.run_result import PrecisionFigures
from ...engine.workloads.fastest_mode import ModeChooser
from ...presets.diagnosis.live import CeilingLookup, no_ceiling
from ..words.redaction import REDACTION
from .credentials import with_access
from .run_recorder import Outcome, RunRecorder
from .run_spec import RunSpec
from .storage import cache_dir, data_dir

_log = logging.getLogger(__name__)
_PATH_MTU_DEADLINE_S: Final = 10.0  # a black hole takes four seconds in a direction


@asynccontextmanager
async def open_run_session(
    spec: RunSpec, *, log: RunLog | None, far_end: FarEnd | PageFarEnd | None = None
) -> AsyncGenerator["RunSession"]:
    """Start a run, and its far end if the peer is `loopback` or `ssh://…`; the block ends both.

    However the block is left, the run log has the end of the run.

    Args:
        spec: The run to carry out. Without a preset that is chosen it has no expectation and no verdict.
        log: The run log to write to; None for a run that is not stored.
        far_end: The peer's far end if it is up already.

    Raises:
        PlanError: The CSV file cannot be written; nothing was connected.
        PeerError: The far end cannot be reached or refuses.
        WorkerError: The worker processes do not start.
    """
    plan, csv = spec.plan, spec.outputs.csv
    async with AsyncExitStack() as stack:
        writer = None if csv is None else stack.enter_context(CsvWriter.append(csv, REDACTION.text))
        ceiling = None if plan.workload.is_transactional else load_ceiling(data_dir())
        mode = await _choose_mode(plan, ceiling)
        far_end = far_end or await stack.enter_async_context(open_far_end(with_access(spec.peer)))
        run = await stack.enter_async_context(_open_run(plan, far_end, partial(spec.judging.expect, plan), mode))
        session = RunSession(
            run,
            spec,
            far_end=far_end.peer if isinstance(far_end, PageFarEnd) else far_end,
            log=log,
            writer=writer,
            ceiling=no_ceiling if spec.peer.is_loopback else _ceiling_lookup(mode or Mode.COPY, ceiling),
        )
        try:
            yield session
            await session.drain()
        finally:
            session.abandon()


async def _choose_mode(plan: Plan, ceiling: Ceiling | None) -> Mode | None:
    """Return how this host moves payload: as the plan says, or in the mode in which it sends fastest.

    A ceiling knows that mode for one and for many sessions; without one, a short trial tells. A far end on another
    host chooses for itself.
    """
    if not plan.sender_chooses_mode:
        return plan.mode
    fastest = None if ceiling is None else ceiling.fastest_mode(plan.settings.sessions)
    return fastest or await ModeChooser(cache_dir()).choose()


def _ceiling_lookup(mode: Mode, ceiling: Ceiling | None) -> CeilingLookup:
    """Return a lookup of this machine's loopback rate, which bounds a single direction."""
    if ceiling is None:
        return no_ceiling

    def bit_s(settings: Settings) -> int | None:
        rate = ceiling.rate(mode, settings.sessions)
        return None if rate is None or settings.direction is Direction.DUPLEX else rate.bit_s

    return bit_s


def _open_run(
    plan: Plan, far_end: FarEnd | PageFarEnd, expectation_for: ExpectationFinder, mode: Mode | None
) -> AbstractAsyncContextManager[Run]:
    if isinstance(far_end, PageFarEnd):
        return open_page_run(plan, far_end, expectation_for=expectation_for, mode=mode)
    if isinstance(far_end, Peer) and far_end.iperf3 is not None:
        from ...engine.iperf3.near.run import open_iperf3_run  # here: few runs need it

        return open_iperf3_run(plan, far_end, expectation_for=expectation_for, mode=mode)
    if isinstance(far_end, Peer) and far_end.speed is not None:
        from ...engine.speedtest.run import open_speed_run  # as above

        return open_speed_run(plan, far_end, expectation_for=expectation_for, mode=mode)
    return open_run(plan, far_end, expectation_for=expectation_for, mode=mode)


class RunSession:
    """A run in progress. You must iterate over it once: it yields every event, `Started` first, `Ended` last.

    `intervals` are those that the latest event completed. `outcome` is set with `Ended`, or when the block of
    `open_run_session` is left, whichever is first.
    """

    def __init__(
        self,
        run: Run,
        spec: RunSpec,
        *,
        far_end: FarEnd,
        log: RunLog | None,
        writer: CsvWriter | None,
        ceiling: CeilingLookup,
    ) -> None:
        """Begin the run in the run log.

        Args:
            run: The run of the engine.
            spec: What it was asked to be.
            far_end: The far end, as it can be connected to once more.
            log: The run log to write to.
            writer: The CSV file to write to.
            ceiling: Looks up the rate that this machine reaches on loopback.
        """
        self._earlier_problem = None if log is None else log.problem
        self._recorder = RunRecorder(
            spec.judging,
            run.ip_version,
            log=log,
            peer=spec.peer.host if spec.peer.is_loopback else str(spec.peer),
            record=spec.record,
            ceiling=ceiling,
        )
        self.run_id = self._recorder.run_id
        self.diagnosis = self._recorder.diagnosis
        self.meter = self._recorder.meter
        self.intervals: list[Interval] = []
        self._run = run
        self._far_end = far_end
        self._events = aiter(run)
        self._preset_id, self._label = spec.judging.preset_id, spec.record.label
        target = spec.target_ci_percent
        self._names_routers = spec.names_routers
        self._precision = None if target is None else PrecisionTarget(target)
        self._is_precise = False
        self._run_log = log
        self._writer = writer
        self.has_all_rows = True
        self.on_event: Callable[[Event], Awaitable[None]] | None = None
        """Called with each event, after it was written and before the reader has it."""
        self._stopped: RunEnd | None = None
        self._traced_ns = 0
        self._notices = list(spec.record.notices)

    @property
    def outcome(self) -> Outcome | None:
        """The result of the run; None until it is over."""
        return self._recorder.outcome

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        """Return the next event, after it was written."""
        event = await anext(self._events)
        if isinstance(event, Started):
            REDACTION.learn_run(event)
        self._record(event)
        if isinstance(event, Ended):
            try:
                await self._measure_path_mtu(event.end)
                await self._name_routers()
            finally:
                self._finish()
        if self.on_event is not None:
            await self.on_event(event)
        return event

    async def _measure_path_mtu(self, end: RunEnd) -> None:
        """Measure the path's MTU if it may be the cause of a finding. Without it, the finding stays as it is."""
        if end.reason is not Reason.COMPLETED or not self.diagnosis.suspects_path_mtu:
            return
        if self.meter.started is None or self.meter.started.unseen_end is not None:
            return  # an iperf3 answers no path probe
        try:
            async with asyncio.timeout(_PATH_MTU_DEADLINE_S):
                self.diagnosis.path_mtu = await measure_path_mtu(self._far_end, self._run.plan.socket)
        except (LinkgaugeError, TimeoutError) as error:
            _log.debug("run %s: the path MTU is unknown: %r", self.run_id, error)

    async def _name_routers(self) -> None:
        """Look up the names of the path's routers, if that was asked for."""
        path = self.meter.path
        if self._names_routers and path is not None:
            addresses = {router for way in path.ways for hop in way.hops for router in hop.routers}
            self.meter.router_names = await look_up_names(addresses)

    @property
    def notices(self) -> list[str]:
        """Messages about the run and its storage, the oldest first."""
        problem = self._log_problem
        return [*self._notices, *([] if problem is None else [problem])]

    @property
    def is_saved(self) -> bool:
        """Whether the run log has taken all of the run so far."""
        return self._run_log is not None and self._log_problem is None

    @property
    def _log_problem(self) -> str | None:
        problem = None if self._run_log is None else self._run_log.problem
        return None if problem is self._earlier_problem else problem

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._run.settings

    def change_settings(self, settings: Settings) -> None:
        """Change direction, sessions or window of the run in progress."""
        self._run.change_settings(settings)

    def stop(self, reason: Reason = Reason.STOPPED, detail: str = "") -> None:
        """End the run in order. Its last events are still to come."""
        self._stopped = self._stopped or RunEnd(reason, detail)
        self._run.stop(reason, detail)

    async def drain(self) -> None:
        """Stop the run if it is still running, and consume its remaining events."""
        if self.outcome is None:
            self.stop()
            async for _event in self:
                pass

    def abandon(self) -> None:
        """Record the end of a run if its events are not read any more. A run that has ended stays unchanged."""
        if self.outcome is None:
            _log.debug("run %s is abandoned", self.run_id)
            self._record(Ended(self._stopped or RunEnd(Reason.FAILED, EndText.RUN_ABANDONED.value)))
            self._finish()

    def json_lines(self, event: Event) -> Iterator[dict[str, Any]]:
        """Yield the objects of `--json-stream` for the newest event; with `Ended`, also the whole run's object."""
        preset, label = self._preset_id, self._label
        yield from event_lines(event, self.intervals, self.meter, run_id=self.run_id, preset=preset, label=label)
        if self.outcome is not None:
            yield end_line(self.outcome.document, run_id=self.run_id)

    def _record(self, event: Event) -> None:
        """Store an event, measure it, write its rows, and end the run if it is precise enough."""
        if self._run_log is not None:
            self._run_log.append_event(self.run_id, event)
        self.intervals = self.meter.feed(event)
        self._write_rows()
        if isinstance(event, Sampled):
            self._show_trace(event.sample.elapsed_ns)
            if not event.warmup:
                self._stop_if_precise()

    def _show_trace(self, elapsed_ns: int) -> None:
        """Have the hops that have answered so far once a second, if a screen shows the run over time."""
        if not self.meter.has_traces or elapsed_ns - self._traced_ns < SECOND_NS:
            return
        self._traced_ns = elapsed_ns
        trace = self._run.trace_so_far()
        if trace is not None:
            self.meter.show_trace(trace)

    def _stop_if_precise(self) -> None:
        """End the run when its confidence interval is as narrow as requested."""
        if self._precision is None or self._is_precise:
            return
        if not self._precision.is_reached(self.meter.rate_estimate()):
            return
        self._is_precise = True
        self.stop(Reason.COMPLETED, f"the mean is within ±{self._precision.percent:g} %")

    def _precision_reached(self) -> dict[str, Any]:
        """Return whether the requested precision was reached, for the result. If not, add a notice."""
        if self._precision is None:
            return {}
        if not self._is_precise and self.meter.end.reason is Reason.COMPLETED:
            self._notices.append(
                f"--until-ci: the mean is not within ±{self._precision.percent:g} % yet; increase --max-seconds"
            )
        return {"until_ci": PrecisionFigures(self._precision.percent, self._is_precise)}

    def _finish(self) -> None:
        """Summarize and judge the run, and finish it in the run log."""
        self.intervals = self.meter.flush()
        self._write_rows()
        self._recorder.finish(self._precision_reached())

    def _write_rows(self) -> None:
        if self._writer is None:
            return
        try:
            preset, label = self._preset_id or "", self._label
            self._writer.write(self.meter, self.intervals, run_id=self.run_id, preset=preset, label=label)
        except RunLogError as error:
            _log.debug("run %s: no more CSV: %s", self.run_id, error)
            self._writer = None
            self.has_all_rows = isinstance(error.__cause__, BrokenPipeError)  # its reader has all that it wants
            self._notices.append(f"{error}; `linkgauge runs export {self.run_id}` writes all rows")


StartRun = Callable[[RunSpec], AbstractAsyncContextManager[RunSession]]
"""What the screens start a run with. Entering the context raises LinkgaugeError; leaving it ends the run."""
