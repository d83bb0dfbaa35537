"""CSV: the intervals of a run as rows, and stored runs as rows, one a run.

Rows are RFC 4180: a header, commas, CRLF. An empty cell is unknown. New columns are always added at the end, so
that a file with fewer of them can be continued.

The same writer serves a current run and one from the log. In a row of an interval, time and bytes are the
receiver's, TCP's values the sender's. If the receiver is an iperf3, which reports nothing before the end, they are
the sender's too, and `counted_by` says so. A row of a run has the figures of its document.
"""

import contextlib
import csv
import errno
import os
import re
import stat
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass, fields
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, TextIO, cast

from ..host.background_writer import BackgroundWriter
from ..host.saved_files import check_output_path, written_whole
from ..model.directions import End
from ..model.errors import PlanError, RunLogError, explain_os_error
from ..model.events import Event, Started
from ..model.serialization import make_printable
from ..model.workload import Workload
from .figure_codec import exact, figure, figures_of
from .interval_result import OTHER_PREFIX, FlowFigures, IntervalResult, SessionFigures
from .meter import Interval, Meter
from .responsiveness.interval_figures import FIGURES as RESPONSIVENESS_FIGURES
from .run_result import RunResult
from .sums.other_tests_sum import FIGURES as OTHER_TESTS_FIGURES
from .udp.interval_figures import FIGURES

if TYPE_CHECKING:  # SQLite is not needed to write a CSV file
    from .run_log import RunRecord

_FIELD: Final = "CSV file"
COLUMNS: Final[tuple[str, ...]] = (
    "run_id",
    "started_utc",
    "preset",
    "workload",
    "direction",
    "session",
    "sessions",
    "window_bytes",
    "elapsed_s",
    "interval_s",
    "warmup",
    "bytes",
    "mbit_s",
    "mib_s",
    "expected_mbit_s",
    "percent_of_expected",
    "transactions_s",
    "latency_p50_us",
    "latency_p99_us",
    "near_cpu_percent",
    "near_hottest_core_percent",
    "far_cpu_percent",
    "far_hottest_core_percent",
    "near_cpu_msec_per_mib",
    "far_cpu_msec_per_mib",
    "retransmits",
    "rtt_us",
    "cwnd_bytes",
    *FIGURES,
    "counted_by",
    *RESPONSIVENESS_FIGURES,
    *OTHER_TESTS_FIGURES,
    "peer",
    "address",
    "ip_version",
    "near_host",
    "far_host",
    "label",
)
_FIRST_COLUMNS: Final = 28  # of files from before datagrams
ALL_SESSIONS: Final = "all"
_CPU: Final = ("cpu_percent", "hottest_core_percent")
_CARRIED: Final = (
    *("bytes", "mbit_s", "mib_s", "expected_mbit_s", "percent_of_expected", "transactions_s"),
    *("latency_p50_us", "latency_p99_us", "retransmits", "rtt_us", "cwnd_bytes"),
)
_MAX_HEADER_BYTES: Final = 4_096
# The beginning of a formula (OWASP, "CSV Injection"). A spreadsheet may take the full-width signs for the others,
# and drop spaces and quotes before them. Where the decimal sign is a comma, it splits cells at the semicolon.
_FORMULA: Final = re.compile(r"(^|;)(?=[\s\"]*[=+\-@\uff1d\uff0b\uff0d\uff20])")

Cell = str | int | float | Decimal | None
_Row = dict[str, Cell]


class CsvWriter:
    """Writes the rows of complete intervals and flushes them, so that a reader can follow the file.

    It writes the header at once, so that a path without write permission fails before the test starts. `edit`
    changes each text of a row before it is written. For a stream that has a header already, `columns` are those of
    the header, which may be only the first of COLUMNS.
    """

    def __init__(
        self,
        stream: TextIO,
        name: str = "the output",
        *,
        columns: tuple[str, ...] | None = None,
        edit: Callable[[str], str] = str,
    ) -> None:
        self._stream = stream
        self._name = name
        self._edit = edit
        self._columns = columns or COLUMNS
        self._writer = csv.writer(stream, lineterminator="\r\n")
        self._write([] if columns else [COLUMNS])

    @classmethod
    @contextlib.contextmanager
    def create(cls, path: Path, edit: Callable[[str], str] = str) -> Generator[Self]:
        """Yield the writer of a file, which replaces an earlier one at the end of the block: whole, or not at all.

        Raises PlanError if the file cannot be begun, and RunLogError if it cannot be completed.
        """
        check_output_path(_FIELD, path)
        with contextlib.ExitStack() as stack:
            try:
                stream = stack.enter_context(written_whole(path, newline=""))
                writer = cls(stream, str(path), edit=edit)
            except (OSError, RunLogError) as error:
                raise PlanError(_FIELD, path, f"{_reason(error)}; give a file that can be written") from error
            yield writer
            try:
                stack.close()
            except OSError as error:
                raise RunLogError(f"cannot write CSV to {path}: {explain_os_error(error)}") from error

    @classmethod
    def append(cls, path: Path, edit: Callable[[str], str] = str) -> Self:
        """Open a file to continue its rows; a new or empty one gets the header.

        A file of an earlier version keeps its columns. A thread opens and writes a named pipe or a terminal, whose
        reader may come late, or stop. Raises PlanError if the path cannot be written, or if the file has anything
        but rows of runs.
        """
        check_output_path(_FIELD, path)
        try:
            if _has_reader(path):
                return cls(cast("TextIO", _BackgroundFile(path)), str(path), edit=edit)
            stream = path.open("a", encoding="utf-8", newline="")
        except (OSError, ValueError) as error:
            reason = explain_os_error(error) if isinstance(error, OSError) else "not a path"
            raise PlanError(_FIELD, path, f"{reason}; give a file that can be written") from error
        try:
            return cls(stream, str(path), columns=_columns_of(path, stream), edit=edit)
        except BaseException as error:
            _close_quietly(stream)
            if isinstance(error, RunLogError):
                raise PlanError(_FIELD, path, f"{_reason(error)}; give another file") from error
            raise

    def write(
        self, meter: Meter, intervals: Iterable[Interval], *, run_id: str, preset: str, label: str | None = None
    ) -> None:
        """Write the rows of intervals that a meter released, and flush them.

        Raises RunLogError if that fails, with the OSError as its cause; earlier rows remain.
        """
        results = filter(None, (IntervalResult.of(interval, meter) for interval in intervals))
        rows = [row for result in results for row in interval_rows(result)]
        started = meter.started
        common: _Row = {
            "run_id": run_id,
            "preset": preset,
            "started_utc": started.started_utc if started else None,
            "workload": str(started.plan.workload if started else Workload.STREAM),
            "label": label,
            **({} if started is None else _subject_cells(started)),
        }
        if rows:
            full_rows = [{**common, **row} for row in rows]
            self._write([[self._edit(cell_text(row.get(column))) for column in self._columns] for row in full_rows])

    def write_run(self, events: Iterable[Event], *, run_id: str, preset: str, label: str | None = None) -> Meter:
        """Write all rows of a run from its events; return the meter that consumed them."""
        meter = Meter()
        for event in events:
            intervals = meter.feed(event)
            if intervals:
                self.write(meter, intervals, run_id=run_id, preset=preset, label=label)
        self.write(meter, meter.flush(), run_id=run_id, preset=preset, label=label)
        return meter

    def close(self) -> None:
        """Close the file. `write` has already reported any failure."""
        _close_quietly(self._stream)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _write(self, rows: Sequence[Sequence[str]]) -> None:
        try:
            self._writer.writerows(rows)
            self._stream.flush()
        except OSError as error:
            raise RunLogError(f"cannot write CSV to {self._name}: {explain_os_error(error)}") from error


def _subject_cells(started: Started) -> _Row:
    """Return the subject of a run: the peer, the address in use, the hosts."""
    return {
        "peer": started.peer,
        "address": started.address,
        "ip_version": started.ip_version,
        "near_host": started.near.hostname,
        "far_host": started.far.hostname,
    }


class _BackgroundFile:
    """A file that a thread writes, in place of a text stream. The next write raises its failure."""

    def __init__(self, path: Path) -> None:
        self._writer = BackgroundWriter(str(path), partial(os.open, path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOCTTY))

    def write(self, text: str) -> int:
        """Queue text."""
        self.flush()
        self._writer.put(self._writer.OWN_FD, text.encode())
        return len(text)

    def flush(self) -> None:
        """Raise the failure of an earlier write."""
        if self._writer.error is not None:
            self._writer.is_reported = True
            # If the error itself were raised, it would keep these frames, and with them the run, as long as the
            # writer.
            raise OSError(self._writer.error.errno, self._writer.error.strerror)

    def close(self) -> None:
        """Close the file when everything is written."""
        self._writer.close()


def _reason(error: OSError | RunLogError) -> str:
    """Return why a file cannot be written, without its path, which the error of the option has."""
    cause = error if isinstance(error, OSError) else error.__cause__
    return explain_os_error(cause) if isinstance(cause, OSError) else str(error)


def _has_reader(path: Path) -> bool:
    """Return whether a process or the user reads the path, so that writing to it may block."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISFIFO(mode):
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return True
    if not stat.S_ISCHR(mode):
        return False
    with open(path, "ab", buffering=0, opener=_open_device) as device:
        return device.isatty()


def _open_device(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY)


def _close_quietly(stream: TextIO) -> None:
    # Closing repeats a flush that failed in `write`, where it was reported.
    with contextlib.suppress(OSError):
        stream.close()


def _columns_of(path: Path, stream: TextIO) -> tuple[str, ...] | None:
    """Return the columns of the file's header, None for an empty file; end its last line.

    Raises PlanError for other content.
    """
    status = os.fstat(stream.fileno())
    if not stat.S_ISREG(status.st_mode) or status.st_size == 0:
        return None
    with path.open("rb") as content:
        first = content.readline(_MAX_HEADER_BYTES)
        content.seek(-1, os.SEEK_END)
        last = content.read(1)
    columns = tuple(first.decode("utf-8", "replace").strip().split(","))
    if len(columns) < _FIRST_COLUMNS or columns != COLUMNS[: len(columns)]:
        raise PlanError(_FIELD, path, "it holds other data than runs; give another file")
    if last != b"\n":  # the next row must not continue one that was cut off
        stream.write("\r\n")
    return columns


def interval_rows(result: IntervalResult) -> Iterator[_Row]:
    """Yield an interval's rows: for each direction the sum of its sessions, then each session."""
    cpu = {f"{end}_{name}": getattr(getattr(result, end), name) for end in End for name in _CPU}
    cost = {f"{end}_cpu_msec_per_mib": getattr(result, end).cpu_msec_per_mib for end in End}
    others = {f"{OTHER_PREFIX}{name}": value for name, value in (result.other_tests or {}).items()}
    for direction, flow in result.flows:
        settings = flow.sampled.settings
        base: _Row = {
            "direction": direction.value,
            "sessions": settings.sessions,
            "window_bytes": settings.window_bytes,
            "warmup": int(flow.sampled.warmup),
            "elapsed_s": flow.elapsed_s,
            "interval_s": flow.interval_s,
            "counted_by": flow.counted_by,
            **cpu,
        }
        yield {**base, "session": ALL_SESSIONS, **_carried(flow), **cost, **result.latencies, **others}
        for session in flow.sessions:
            yield {**base, "session": session.session, **_carried(session)}


def _carried(figures: FlowFigures | SessionFigures) -> _Row:
    return {**{name: getattr(figures, name, None) for name in _CARRIED}, **(figures.udp or {})}


def defuse(text: str) -> str:
    """Return text from elsewhere as a cell that no spreadsheet runs and that drives no terminal."""
    return _FORMULA.sub(r"\1'", make_printable(text))


def cell_text(value: Cell) -> str:
    """Return a value as text: a number without exponent or trailing zeros, a text that no spreadsheet runs."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return defuse(value)
    if isinstance(value, int):
        return str(value)
    return format(Decimal(str(value)).normalize(), "f")


@dataclass(frozen=True, slots=True)
class _RunRow:
    """The columns of a run's figures, a field each. The settings are those of its results."""

    address: str | None = figure("subject.address")
    ip_version: int | None = figure("subject.ip_version")
    near_host: str | None = figure("subject.near.hostname")
    far_host: str | None = figure("subject.far.hostname")
    workload: str | None = figure("plan.workload")
    direction: str | None = figure()
    sessions: int | None = figure()
    window_bytes: int | None = figure()
    seconds: float | None = figure("measured.total.seconds", exact)
    out_mbit_s: float | None = figure("measured.out.mbit_s")
    in_mbit_s: float | None = figure("measured.in_.mbit_s")
    total_mbit_s: float | None = figure("measured.total.mbit_s")
    transactions_s: float | None = figure("measured.total.transactions_s")
    expected_mbit_s: float | None = figure("expected.total.mbit_s")
    percent_of_expected: float | None = figure("measured.total.percent_of_expected")
    lost_percent: float | None = figure("measured.total.udp.lost_percent")
    retransmits: int | None = figure("tcp.retransmits")
    rtt_us: int | None = figure("tcp.rtt_us")
    end_reason: str | None = figure()
    end_detail: str | None = figure()
    periods: int | None = figure()


_RUN_NAMES: Final = ("run_id", "started_utc", "peer", "label", "preset", "verdict")
RUN_COLUMNS: Final = (*_RUN_NAMES, *(field.name for field in fields(_RunRow)))


def run_rows(runs: "Iterable[RunRecord]") -> Iterator[list[str]]:
    """Yield the rows of runs, the header first."""
    yield list(RUN_COLUMNS)
    for run in runs:
        row = _run_row(RunResult.of(run.document))
        named = (run.run_id, run.started_utc, run.peer, run.label, run.preset, run.verdict)
        yield [cell_text(value) for value in (*named, *astuple(row))]


def _run_row(result: RunResult) -> _RunRow:
    periods = result.stretches
    measured = [each for each in periods if each.measured.total and each.measured.total.bytes is not None]
    newest = measured[-1].settings if measured else result.plan
    return figures_of(
        _RunRow,
        result,
        direction=newest.direction,
        sessions=newest.sessions,
        window_bytes=newest.window_bytes,
        periods=len(periods) or None,
    )
