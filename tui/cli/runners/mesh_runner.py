"""A mesh from its hosts to its result: on the screen or as lines, then as a map, JSON, CSV or a page."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.text import Text

from ....engine.host.event_loop import run
from ....engine.results.run_log import RunLog
from ....mesh.events import (
    CellBegan,
    CellEnded,
    CellFailure,
    FailureCode,
    HostLost,
    MeshBegan,
    MeshEnded,
    RoundBegan,
)
from ....mesh.figures import MeshFinding, MeshMatrix
from ....mesh.plan import estimate_ns, mean_overhead_ns
from ....presets.catalog import Catalog
from ...mesh.mesh_document import csv_rows, end_line, mesh_json, start_line, stream_lines
from ...mesh.mesh_session import MeshSession, MeshUpdate, open_mesh_session
from ...mesh.mesh_spec import MeshSpec
from ...mesh.mesh_verdict import judge_mesh
from ...mesh.mesh_words import cell_words, comparison_lines, failure_words, figure_words
from ...mesh.stored_mesh import compare_with_previous, load_matrix
from ...session.pruning import thin_old_runs
from ...session.run_spec import Outputs
from ...session.storage import open_data_dir, open_run_list
from ...words import numbers
from ..output import (
    PROGRAM,
    emit_json,
    emit_json_line,
    emit_rich,
    noted_if_unwritten,
    print_stderr,
    terminal_width,
    write_csv_file,
    write_in_background,
)
from ..termination import RunStopper, exit_status
from .recording import error_lines, open_recording

if TYPE_CHECKING:
    from ....mesh.reading import MeshComparison

_PIPE_WIDTH = 100


@dataclass(frozen=True, slots=True)
class MeshJob:
    """A mesh and its outputs. One that is resumed has a part of its results in the run log already."""

    spec: MeshSpec
    catalog: Catalog
    outputs: Outputs
    is_resumed: bool = False
    has_screen: bool = False


@dataclass(frozen=True, slots=True)
class MeshResult:
    """The results of a mesh: of this session, of earlier ones, and against the last mesh of the same hosts."""

    spec: MeshSpec
    matrix: MeshMatrix
    findings: tuple[MeshFinding, ...]
    comparison: "MeshComparison | None" = None


def run_mesh(job: MeshJob) -> int:
    """Measure the missing cells of a mesh and print the whole result; return the exit status."""
    if not job.has_screen:
        write_in_background()
    # A mesh goes on from its results: without them everything would be measured again.
    stored = open_recording(lambda: RunLog.open(open_data_dir())) if job.is_resumed else open_recording()
    progress, stopper = _Progress(job), RunStopper()
    with stored as log, error_lines(as_json_stream=job.outputs.as_json_stream):
        try:
            result = _stored_result(job, log)
            if result is None:
                result = run(_measure(job, log, progress, stopper))
            if result is not None and log is not None:
                result = replace(result, comparison=compare_with_previous(log, result.spec, result.matrix))
        finally:
            write_in_background()  # the terminal may have stopped
    if result is None:
        print_stderr("interrupted before anything was measured")
        return exit_status(None, stopper.first)
    if log is not None and not result.spec.is_over(result.matrix):
        rest = "slow cells again, alone" if result.matrix.is_complete else "missing cells"
        print_stderr(f"to measure the {rest}: {PROGRAM} mesh --resume {result.matrix.group}")
    _write_result(job, result)
    thin_old_runs()
    verdict = judge_mesh(result.matrix, result.findings, job.spec.pass_percent)
    return exit_status(verdict, stopper.first)


def is_over(spec: MeshSpec) -> bool:
    """Return whether nothing of a stored mesh is left to measure."""
    with open_run_list() as log:
        return spec.is_over(load_matrix(log, spec))


def _stored_result(job: MeshJob, log: RunLog | None) -> MeshResult | None:
    """Return the result of a mesh that is over already; None if there is anything to measure."""
    if not job.is_resumed:
        return None
    matrix = load_matrix(log, job.spec)
    if not job.spec.is_over(matrix):
        return None
    from ....mesh.reading import find_faults

    return MeshResult(job.spec, matrix, find_faults(matrix))


async def _measure(
    job: MeshJob, log: RunLog | None, progress: "_Progress", stopper: RunStopper
) -> MeshResult | None:
    """Measure until the last cell, or until a signal; return None if one came before the mesh began."""
    with stopper.in_force():
        async with open_mesh_session(job.spec, job.catalog, log) as mesh:
            progress.begin(mesh)
            stopper.stop = lambda _reason, _detail: mesh.stop()
            if job.has_screen:
                from ..terminal_app import run_mesh_screen

                number = await run_mesh_screen(mesh, log, job.spec.pass_percent)
                stopper.first = stopper.first or number
            else:
                async for update in mesh:
                    progress.print_update(update, mesh)
    session = progress.session
    if session is None:
        return None
    progress.show_notices(session)
    return MeshResult(session.spec, session.matrix, session.findings)


class _Progress:
    """The lines of a mesh in progress: on stderr, with `--json-stream` also on stdout."""

    def __init__(self, job: MeshJob) -> None:
        self.session: MeshSession | None = None
        self._job = job
        self._started_ns = time.monotonic_ns()
        self._plan = job.spec.plan
        self._cells = self._done = 0
        self._notices = 0

    def begin(self, session: MeshSession) -> None:
        """Note the mesh, which has begun."""
        self.session = session

    def print_update(self, update: MeshUpdate, session: MeshSession) -> None:
        """Print what there is to say about an event."""
        event = update.event
        if self._job.outputs.as_json_stream:
            if isinstance(event, MeshBegan):
                done = sum(figure.value is not None for figure in session.matrix.figures.values())
                emit_json_line(start_line(session.matrix.group, event, done))
            for line in stream_lines(event, update.figure, session.spec.plan.limits):
                emit_json_line(line)
        self._done += isinstance(event, CellEnded) and self._done < self._cells  # further ones are measured again
        for line in self._lines(update):
            print_stderr(numbers.sanitize(line))
        self.show_notices(session)

    def show_notices(self, session: MeshSession) -> None:
        """Print the messages about the mesh that were not printed yet."""
        for line in session.notices[self._notices :]:
            print_stderr(numbers.sanitize(line))
        self._notices = len(session.notices)

    def _lines(self, update: MeshUpdate) -> Sequence[str]:
        figure, words = update.figure, ""
        match update.event:
            case MeshBegan(plan, cells, overhead_ns):
                self._started_ns, self._cells, self._plan = time.monotonic_ns(), cells, plan
                about = numbers.rough_time(estimate_ns(plan, cells, overhead_ns))
                hosts, runs = numbers.quantity(len(plan.hosts), "host"), numbers.quantity(cells, "test")
                what = f"{runs}, about {about}" if cells else "slow cells are measured again, alone"
                words = f"mesh {plan.group}: {hosts}, {what}"
            case HostLost(host, failure):
                words = f"{host}: {failure_words(failure)}"
            case RoundBegan(number, rounds):
                words = f"round {number} of {rounds}: {self._done} of {self._cells} tests done{self._rest()}"
            case CellBegan(cell, True) if self._done >= self._cells:
                words = f"again, alone: {cell_words(cell)}"
            case CellEnded(cell) if figure is not None and _is_news(figure.failure):
                words = f"{cell_words(cell)}: {figure_words(figure)}"
            case MeshEnded(is_complete, detail) if detail:
                words = detail if is_complete else f"ended early: {detail}"
            case _:
                pass
        return [words] if words else []

    def _rest(self) -> str:
        if not 0 < self._done < self._cells:
            return ""
        overhead_ns = mean_overhead_ns(self._plan, self._done, time.monotonic_ns() - self._started_ns)
        rechecks = self.session.rechecks if self.session is not None else None
        left_ns = estimate_ns(self._plan, self._cells - self._done, overhead_ns, rechecks)
        return f", about {numbers.rough_time(left_ns)} left"


def _is_news(failure: CellFailure | None) -> bool:
    """Return whether the user must hear of a failure. Failures that follow from Ctrl-C are expected."""
    return failure is not None and failure.code is not FailureCode.STOPPED


def _write_result(job: MeshJob, result: MeshResult) -> None:
    """Print the result, and write the CSV file and the page of the job."""
    matrix, findings, pass_percent = result.matrix, result.findings, job.spec.pass_percent
    document = mesh_json(result.spec.plan, matrix, findings, pass_percent, result.comparison)
    if job.outputs.as_json:
        emit_json(document)
    elif job.outputs.as_json_stream:
        emit_json_line(end_line(document))
    else:
        from ....mesh.reading import order_hosts
        from ..render.mesh import mesh_parts

        width = terminal_width() or _PIPE_WIDTH
        emit_rich(*mesh_parts(matrix, findings, order_hosts(matrix), width=width, pass_percent=pass_percent))
        if result.comparison is not None:
            emit_rich(*map(Text, comparison_lines(result.comparison)))
    if job.outputs.csv is not None:
        write_csv_file(job.outputs.csv, csv_rows(matrix))
    if job.outputs.report is not None:
        from ...report.mesh_page import write_mesh_report

        with noted_if_unwritten(job.outputs.report):
            write_mesh_report(job.outputs.report, result.spec, matrix, findings, result.comparison)
            print_stderr(f"report written to {job.outputs.report}")
