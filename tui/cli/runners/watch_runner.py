"""A watch from its plan to its end: its events as lines, as JSON lines or on a screen, its metrics, its signals."""

import asyncio
import json
import signal
import socket
import sys
import time
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ....engine.host.event_loop import run
from ....engine.model.errors import LinkgaugeError, RunLogError
from ....engine.results.run_log import RUN_LOG_FILE_NAME, RunLog
from ....presets.catalog import Catalog
from ....watch.event_codec import event_line
from ....watch.events import ChangeFound, CheckEnded, CheckResult, CheckSkipped, PathChanged, WatchEnded, WatchEvent
from ....watch.watch_plan import WatchPlan
from ...session.storage import open_data_dir, open_run_list
from ...watch.running.followed_watch import FollowedWatch, follow_watch
from ...watch.running.watch_file import read_watch_file
from ...watch.running.watch_session import WatchSession, open_watch
from ...watch.watch_words import event_tone, event_words
from ...words.numbers import sanitize
from ...words.redaction import REDACTION
from ..output import emit_redacted_line, print_stderr, write_in_background
from ..service_log import Priority, ServiceLog
from ..termination import INCOMPLETE, PASS, exit_status, handle_signals, signal_exit_status
from .recording import error_lines

if TYPE_CHECKING:
    from ....metrics.families import Reading
    from ....metrics.publication import PublishingPlan

Watch = WatchSession | FollowedWatch
_PRIORITIES: Final = {"bad": Priority.ERROR, "warning": Priority.WARNING, "change": Priority.NOTICE}


@dataclass(frozen=True, slots=True)
class WatchJob:
    """A watch and its outputs.

    `file` is read again for this `host` of it at SIGHUP, or by a key of the screen; None for one peer. `publishing`
    is the destination of the metrics, or None. With `is_followed` it shows the watch of another process. Without a
    screen, its lines go to `log_file`, or to stdout if that is None.
    """

    plan: WatchPlan
    catalog: Catalog
    file: Path | None = None
    is_once: bool = False
    as_json_stream: bool = False
    has_screen: bool = False
    publishing: "PublishingPlan | None" = None
    is_followed: bool = False
    log_file: str | None = None
    host: str | None = None


def run_watch(job: WatchJob) -> int:
    """Carry out a watch until a signal ends it, or each peer was tested once; return the exit status."""
    write_in_background()
    with error_lines(as_json_stream=job.as_json_stream), _open_output(job) as output, _open_log(job) as log:
        return run(_watch(job, log, output))


@contextmanager
def _open_output(job: WatchJob) -> Generator[ServiceLog]:
    """Open the destination of the lines; raise OutputError if the file cannot be written."""
    output = ServiceLog(sys.stdout, emit_redacted_line, _lost_lines, job.log_file)
    try:
        yield output
    finally:
        output.close()


def _lost_lines(count: int) -> str:
    return json.dumps({"type": "lines_lost", "lines": count})


@contextmanager
def _open_log(job: WatchJob) -> Generator[RunLog]:
    """Open the run log, which has the state of the watch; none is made for a watch that is only followed."""
    if job.is_followed:
        folder = open_data_dir()
        if not (folder / RUN_LOG_FILE_NAME).exists():
            raise RunLogError(
                f"no watch has run here: {folder} has no run log; LINKGAUGE_DATA_DIR names the directory"
            )
        with open_run_list() as log:
            yield log
        return
    log = RunLog.open(open_data_dir())
    try:
        yield log
    finally:
        log.close(print_stderr)


class _Signals:
    """What signals do to a watch, also while its journal is read.

    SIGHUP reads the file again and reopens that of the log; on a screen it means that the terminal has gone, and
    ends the watch.
    """

    def __init__(self, job: WatchJob, output: ServiceLog) -> None:
        self.ended_by: signal.Signals | None = None
        self._job = job
        self._output = output
        self._session: Watch | None = None
        self._is_reload_due = False
        self._task = asyncio.current_task()

    def attach(self, session: Watch) -> None:
        """Pass signals on to a session from now on, a SIGHUP of before as well."""
        self._session = session
        if self._is_reload_due:
            self._reload()

    def receive(self, number: signal.Signals) -> None:
        """Take a signal."""
        has_files = self._job.file is not None or self._job.log_file is not None
        if number is signal.SIGHUP and has_files and not self._job.has_screen:
            self._output.reopen()
            self._reload()
            return
        self.ended_by = self.ended_by or number
        if self._session is not None:
            self._session.stop()
        elif self._task is not None:
            self._task.cancel()

    def _reload(self) -> None:
        if self._session is None or self._job.file is None:
            self._is_reload_due = True
        else:
            _reload(self._job, self._job.file, self._session)


async def _watch(job: WatchJob, log: RunLog, output: ServiceLog) -> int:
    """Return the exit status: the signal's if one ended the watch, with `--once` the worst verdict's."""
    signals = _Signals(job, output)
    try:
        with handle_signals(signals.receive):
            worst = await _carry_out(job, log, signals, output)
    except asyncio.CancelledError:
        if signals.ended_by is None:
            raise
        worst = PASS
    if signals.ended_by is not None:
        return signal_exit_status(signals.ended_by)
    return worst if job.is_once else PASS


async def _carry_out(job: WatchJob, log: RunLog, signals: _Signals, output: ServiceLog) -> int:
    """Return the exit status of the worst verdict."""
    if job.is_followed:
        async with follow_watch(job.plan, log=log) as followed:
            signals.attach(followed)
            return await _show(job, followed, log, signals, output)
    async with (
        open_watch(job.plan, log=log, catalog=job.catalog, once=job.is_once) as session,
        publish_watch(job.publishing, session) as url,
    ):
        signals.attach(session)
        if url is not None and not job.has_screen:
            print_stderr(f"metrics: {url}")
        return await _show(job, session, log, signals, output)


async def _show(job: WatchJob, session: Watch, log: RunLog, signals: _Signals, output: ServiceLog) -> int:
    """Show a watch until its end; return the exit status of the worst verdict."""
    if job.has_screen:
        await _show_screen(job, session, log, signals)
        return PASS
    return await _print_lines(job, session, output)


async def _print_lines(job: WatchJob, session: Watch, output: ServiceLog) -> int:
    worst = PASS
    async for event in session:
        if job.as_json_stream:
            text = json.dumps(REDACTION.document(event_line(event)), ensure_ascii=False, allow_nan=False)
        else:  # with its time, UTC as in the history
            at = datetime.fromtimestamp(event.at_s, UTC)
            time_text = "" if output.is_journal else f"{at:%Y-%m-%d %H:%M:%S}  "
            text = REDACTION.text(sanitize(f"{time_text}{event_words(event, session.plan)}"))
        output.add(text, _PRIORITIES.get(event_tone(event), Priority.INFO), _facts(event, session.plan))
        if isinstance(event, CheckEnded) and event.decides:
            worst = max(worst, exit_status(event.result.word))
        elif isinstance(event, CheckSkipped):
            worst = max(worst, INCOMPLETE)
    return worst


def _facts(event: WatchEvent, plan: WatchPlan) -> dict[str, object]:
    """Return what the journal of systemd keeps of an event as fields."""
    result: CheckResult | None = getattr(event, "result", None)
    facts: dict[str, object] = {
        "event": event_line(event)["type"],
        "watch": plan.name,
        "peer": getattr(event, "peer", None),
        "run": getattr(event if result is None else result, "run_id", None),
        "verdict": None if result is None else result.verdict,
        "metric": getattr(event, "metric", None),
    }
    return REDACTION.document(facts)


async def _show_screen(job: WatchJob, session: Watch, log: RunLog, signals: _Signals) -> None:
    from ..terminal_app import run_watch_screen

    read_plan = None if job.file is None else partial(read_watch_file, job.file, job.catalog, job.host)
    ended_by = await run_watch_screen(session, log, read_plan)
    signals.ended_by = signals.ended_by or ended_by


def _reload(job: WatchJob, file: Path, session: Watch) -> None:
    """Read the file again; a wrong one is a notice, and the watch goes on as before."""
    try:
        plan = read_watch_file(file, job.catalog, job.host)
    except LinkgaugeError as error:
        session.report(f"not reloaded: {error}")
    else:
        session.reload(plan)


@asynccontextmanager
async def publish_watch(plan: "PublishingPlan | None", watch: WatchSession) -> AsyncGenerator[str | None]:
    """Publish the metrics of a watch while the block lasts, if there is a plan for it.

    Yields the address that Prometheus scrapes; None without a server. Raises EndpointError if the address cannot be
    listened on, OutputError if the file cannot be written.
    """
    if plan is None:
        yield None
        return
    from ....metrics.publication import open_publication
    from ....metrics.watch_metrics import read_watch

    def read() -> Iterator["Reading"]:
        return read_watch(watch.plan, watch.statuses, watch.use, time.time())

    group = {"instance": socket.gethostname(), "watch": watch.plan.name}
    async with open_publication(plan, read, group, watch.report, keeps_file=True) as publication:
        watch.events.subscribe(lambda event: publication.changed(is_result=_is_result(event)))
        yield publication.url


def _is_result(event: WatchEvent) -> bool:
    """Return whether an event is worth a push: the end of a cycle, a change, the end of the watch."""
    is_end = isinstance(event, CheckEnded) and event.decides
    return is_end or isinstance(event, ChangeFound | PathChanged | WatchEnded)
