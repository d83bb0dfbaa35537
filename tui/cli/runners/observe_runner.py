"""`linkgauge observe` from its request to its end: tables, JSON, CSV, or a screen."""

import csv
import socket
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import ExitStack, aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from ....engine.host.event_loop import run
from ....engine.model.errors import OutputError, explain_os_error
from ....engine.model.run_end import EndText, Reason, RunEnd
from ....observe.observation import Observation
from ....observe.observation_json import CSV_COLUMNS, csv_row, observation_json
from ....observe.observer import observe
from ....observe.request import ObserveRequest
from ....presets.catalog import Catalog
from ...words.redaction import REDACTION
from ..output import emit_json, emit_json_line, emit_rich, noted_if_unwritten, print_stderr, write_in_background
from ..termination import PASS, SHORT, RunStopper, interruption, signal_exit_status
from .recording import error_lines, open_recording

if TYPE_CHECKING:
    from ....metrics.publication import PublishingPlan
    from ...observe.observed_records import ObservedRecords


_TIME_UP: Final = RunEnd(Reason.COMPLETED, EndText.DURATION_UP.value)
_LINE_END: Final = "\r\n"  # RFC 4180


@dataclass(frozen=True, slots=True)
class ObserveJob:
    """What is observed, for how long, and where it is written.

    With `seconds` None it goes on until a signal. `min_rate_bit_s` is the lowest goodput of all matching
    connections together that passes. With `saves` each connection that moves payload goes to the run log.
    """

    request: ObserveRequest
    catalog: Catalog
    seconds: float | None = None
    as_json: bool = False
    as_json_stream: bool = False
    csv_file: Path | None = None
    min_rate_bit_s: int | None = None
    has_screen: bool = False
    publishing: "PublishingPlan | None" = None
    saves: bool = False
    label: str | None = None


def run_observe(job: ObserveJob) -> int:
    """Observe until the time is up or a signal comes; return the exit status."""
    if job.has_screen:
        from ..terminal_app import run_observe_screen

        return run_observe_screen(job.request, job.catalog)
    write_in_background()
    with (
        error_lines(as_json_stream=job.as_json_stream),
        _csv_rows(job.csv_file) as write_rows,
        _saved(job) as records,
    ):
        return run(_observe(job, write_rows, records))


async def _observe(
    job: ObserveJob, write_rows: Callable[[Observation], None], records: "ObservedRecords | None"
) -> int:
    stopper = RunStopper()
    last: Observation | None = None
    best_bit_s = 0.0
    with stopper.in_force():
        async with (
            _published(job.publishing) as publish,
            aclosing(observe(job.request, job.catalog)) as observations,
        ):
            async for last in observations:
                publish(last)
                best_bit_s = max(best_bit_s, last.totals.out_bit_s, last.totals.in_bit_s)
                write_rows(last)
                if records is not None:
                    records.take(last)
                is_last = job.seconds is not None and last.elapsed_ns >= (job.seconds - 0.2) * 1e9
                if not job.as_json:
                    _print(job, last)
                if is_last:
                    break
    if records is not None:
        records.end_all(_TIME_UP if stopper.first is None else RunEnd(*interruption(stopper.first)))
    if job.as_json and last is not None:
        emit_json(observation_json(last))
    if stopper.first is not None:
        return signal_exit_status(stopper.first)
    if last is not None and job.request.target is not None and not last.totals.sockets:
        print_stderr(f"no connection matches {REDACTION.text(job.request.target.text)}")
    is_slow = job.min_rate_bit_s is not None and best_bit_s < job.min_rate_bit_s
    return SHORT if is_slow else PASS


@contextmanager
def _saved(job: ObserveJob) -> Generator["ObservedRecords | None"]:
    """Save connections to the run log while the block lasts; then tell which. None if they are not to be saved."""
    if not job.saves:
        yield None
        return
    from ...observe.observed_records import MAX_RECORDS, ObservedRecords

    with open_recording() as log:
        records = ObservedRecords(lambda: log, label=job.label, saves_all=True)
        try:
            yield records
        finally:
            records.end_all(RunEnd(Reason.FAILED, EndText.RUN_ABANDONED.value))
    for each in records.ended:
        print_stderr(f"saved {each.run_id}: {REDACTION.text(str(each.row.key.remote))}")
    if records.is_full:
        print_stderr(f"saved the first {MAX_RECORDS} connections, and none of the later ones")


@asynccontextmanager
async def _published(plan: "PublishingPlan | None") -> AsyncGenerator[Callable[[Observation], None]]:
    """Publish metrics while the block lasts, if there is a plan for it; yield a function for each observation.

    Raises EndpointError if the address cannot be listened on, OutputError if the file cannot be written.
    """
    if plan is None:
        yield lambda _observation: None
        return
    from ....metrics.observed_metrics import ObservedMetrics
    from ....metrics.publication import open_publication

    metrics = ObservedMetrics(REDACTION.text)
    group = {"instance": socket.gethostname()}
    async with open_publication(plan, metrics.read, group, print_stderr, keeps_file=False) as publication:
        if publication.url is not None:
            print_stderr(f"metrics: {publication.url}")

        def publish(observation: Observation) -> None:
            metrics.add(observation)
            publication.changed(is_result=True)

        yield publish


def _print(job: ObserveJob, observation: Observation) -> None:
    if job.as_json_stream:
        emit_json_line(observation_json(observation))
        return
    from ..render.observed_table import observation_parts

    _learn_names(observation)
    emit_rich(*observation_parts(observation), is_wide=True)
    if job.seconds is None or observation.elapsed_ns < (job.seconds - 0.2) * 1e9:
        emit_rich("")


def _learn_names(observation: Observation) -> None:
    """Note the users, for stand-ins; addresses are found in any text."""
    for each in (*observation.connections, *observation.datagrams):
        REDACTION.learn_user(each.user)


def _begin_csv(path: Path) -> TextIO:
    """Return a file that has its heading, before anything is observed; raise OutputError."""
    is_new = not path.exists()
    with ExitStack() as undo:
        try:
            stream = path.open("w", encoding="utf-8", newline="")
            if is_new:  # an empty file would need --force the next time
                undo.callback(path.unlink, missing_ok=True)
            undo.callback(_close, stream)
            csv.writer(stream, lineterminator=_LINE_END).writerow(CSV_COLUMNS)
            stream.flush()
        except OSError as error:
            raise OutputError(f"cannot write {path}: {explain_os_error(error)}") from error
        undo.pop_all()
    return stream


def _close(stream: TextIO) -> None:
    with suppress(OSError):  # it repeats a flush that has failed
        stream.close()


@contextmanager
def _csv_rows(path: Path | None) -> Generator[Callable[[Observation], None]]:
    """Yield a function that adds an observation's rows to a file (RFC 4180), if there is one."""
    if path is None:
        yield lambda _observation: None
        return
    stream = _begin_csv(path)
    writer, is_whole = csv.writer(stream, lineterminator=_LINE_END), True

    def write(observation: Observation) -> None:
        nonlocal is_whole
        if not is_whole:
            return
        is_whole = False
        with noted_if_unwritten(path):
            rows = (csv_row(observation, each) for each in observation.connections)
            writer.writerows([map(REDACTION.text, row) for row in rows])
            stream.flush()
            is_whole = True

    try:
        yield write
    finally:
        _close(stream)
