"""A run as rows of CSV.

The same writer serves a current run and one from the log. Rows are RFC 4180: a header, commas, CRLF.
An empty cell is unknown. In a row, time and bytes are the receiver's, TCP's values the sender's. Where the receiver
is an iperf3, which reports nothing before the end, they are the sender's too, and `counted_by` says so. Columns are
only ever added, at the end, so that a file with fewer of them can be continued.
"""

import contextlib
import csv
import errno
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final, Self, TextIO, cast

from ..host.background_writer import BackgroundWriter
from ..host.saved_files import check_output_path
from ..model.errors import PlanError, RunLogError, explain_os_error
from ..model.events import Event, ExpectedRate, Sampled, Started
from ..model.latency_histogram import summarize_latency
from ..model.plan import MIB, SECOND_NS, Direction, End
from ..model.samples import SessionSample
from ..model.serialization import make_printable
from ..model.workload import Workload
from .counter_sums import host_percent, hottest_core_percent
from .json_document import percent_of_expected, round_figure
from .meter import Interval, Meter
from .responsiveness.interval_figures import FIGURES as RESPONSIVENESS_FIGURES
from .responsiveness.interval_figures import interval_figures
from .summary import Measurement
from .sums import other_tests_sum
from .sums.other_tests_sum import FIGURES as OTHER_TESTS_FIGURES
from .sums.receiver_sum import latency_counts
from .udp.interval_figures import FIGURES, Figures, flow_figures, session_figures

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
_FIRST_COLUMNS: Final = 28  # those of files from before datagrams
ALL_SESSIONS: Final = "all"
_MAX_HEADER_BYTES: Final = 4_096

Cell = str | int | float | Decimal | None
_Row = dict[str, Cell]


class CsvWriter:
    """Writes the rows of complete intervals and flushes them, so that a reader can follow the file.

    The header is written at once, so that a path without write permission fails before the test starts.
    A stream that has a header already has its `columns`, which may be the first ones only.
    """

    def __init__(self, stream: TextIO, name: str = "the output", *, columns: tuple[str, ...] | None = None) -> None:
        self._stream = stream
        self._name = name
        self._columns = columns or COLUMNS
        self._writer = csv.writer(stream, lineterminator="\r\n")
        self._write([] if columns else [COLUMNS])

    @classmethod
    def create(cls, path: Path) -> Self:
        """Create or empty a file and write the header; raise PlanError if that fails."""
        check_output_path(_FIELD, path)
        stream: TextIO | None = None
        try:
            stream = path.open("w", encoding="utf-8", newline="")
            return cls(stream, str(path))
        except (OSError, RunLogError) as error:
            if stream is not None:
                _close_quietly(stream)
            raise PlanError(_FIELD, path, f"{_reason(error)}; give a file that can be written") from error

    @classmethod
    def append(cls, path: Path) -> Self:
        """Open a file to continue its rows; a new or empty one gets the header.

        One of an earlier version keeps the columns that it has.

        A thread opens and writes a named pipe or a terminal: its reader may come late, or stop. Raises PlanError if
        the path cannot be written or the file holds anything but rows of runs.
        """
        check_output_path(_FIELD, path)
        try:
            if _has_reader(path):
                return cls(cast("TextIO", _BackgroundFile(path)), str(path))
            stream = path.open("a", encoding="utf-8", newline="")
        except (OSError, ValueError) as error:
            reason = explain_os_error(error) if isinstance(error, OSError) else "not a path"
            raise PlanError(_FIELD, path, f"{reason}; give a file that can be written") from error
        try:
            return cls(stream, str(path), columns=_columns_of(path, stream))
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
        rows = [row for interval in intervals for row in interval_rows(meter, interval)]
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
            self._write([[cell_text(row.get(column)) for column in self._columns] for row in full_rows])

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
    """Return what a run tests: the peer, the address in use, the hosts."""
    return {
        "peer": started.peer,
        "address": started.address,
        "ip_version": started.ip_version,
        "near_host": started.near.hostname,
        "far_host": started.far.hostname,
    }


class _BackgroundFile:
    """A file that a thread writes, in place of a text stream. A failure is raised by the next write."""

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
            # Raised itself, it would keep the frames that lead here, and with them the run, as long as the writer.
            raise OSError(self._writer.error.errno, self._writer.error.strerror)

    def close(self) -> None:
        """Close the file once it has everything."""
        self._writer.close()


def _reason(error: OSError | RunLogError) -> str:
    """Return why a file cannot be written, without its path, which the error of the option has already."""
    cause = error if isinstance(error, OSError) else error.__cause__
    return explain_os_error(cause) if isinstance(cause, OSError) else str(error)


def _has_reader(path: Path) -> bool:
    """Return whether a process or a person reads the path, so that writing to it may block."""
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
    # Closing repeats a flush that failed in `write`, which has reported it.
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
    if last != b"\n":  # a row that was cut off must not swallow the next one
        stream.write("\r\n")
    return columns


def interval_rows(meter: Meter, interval: Interval) -> Iterator[_Row]:
    """Yield an interval's rows: for each direction the sum of its sessions, then each session."""
    ends = _end_cells(interval)
    cost = _cost_cells(interval)
    for flow in interval.flows:
        receiver, sender = interval.receiver_sample(flow), interval.sender_sample(flow)
        sampled = receiver or sender
        if sampled is None:
            continue
        base: _Row = {
            "direction": flow.value,
            "sessions": sampled.settings.sessions,
            "window_bytes": sampled.settings.window_bytes,
            "warmup": int(sampled.warmup),
            **_time_cells(receiver),
            **ends,
        }
        received, sent = _sessions(receiver, flow), _sessions(sender, flow)
        datagrams = session_figures(receiver, sender, flow)
        expectation = meter.expectation_for(sampled.settings)
        expected = expectation[flow]
        whole = None if receiver is None else sum(part.bytes for part in received.values())
        yield {
            **base,
            "session": ALL_SESSIONS,
            **_rate_cells(whole, receiver, expected),
            **_all_transactions(receiver, flow),
            **_probe_cells(interval.near),
            **_round_cells(interval_figures(interval.near, interval.far)),
            **_round_cells(other_tests_sum.interval_figures(interval.far)),
            **cost,
            **_tcp_cells(list(sent.values())),
            **_round_cells(flow_figures(receiver, sender, flow)),
        }
        for number in sorted({**received, **sent, **datagrams}):
            count = received[number].bytes if number in received else None
            tcp = _tcp_cells([sent[number]] if number in sent else [])
            transactions = _transactions(received.get(number), receiver)
            rates = {**_rate_cells(count, receiver, None), **transactions, **tcp}
            yield {**base, "session": number, **rates, **_round_cells(datagrams.get(number, {}))}


def _sessions(sampled: Sampled | None, flow: Direction) -> dict[int, SessionSample]:
    sessions: dict[int, SessionSample] = {}
    for session in sampled.sample.sessions if sampled else ():
        if session.direction is flow:
            before = sessions.get(session.session)
            # If a peer reports a session twice, the sum of the rows must still equal the summary's.
            total = session if before is None else replace(session, bytes=session.bytes + before.bytes)
            sessions[session.session] = total
    return sessions


def _time_cells(receiver: Sampled | None) -> _Row:
    if receiver is None:
        return {}
    sample = receiver.sample
    return {
        "elapsed_s": _seconds(sample.elapsed_ns),
        "interval_s": _seconds(sample.interval_ns),
        "counted_by": "sender" if sample.is_from_sender else "receiver",
    }


def _all_transactions(receiver: Sampled | None, flow: Direction) -> _Row:
    """Return the transactions of all sessions; the percentiles are of all together."""
    if receiver is None or all(counts.direction is not flow for counts in receiver.sample.latency):
        return {}
    counts = latency_counts(receiver.sample, flow)
    latency = summarize_latency(counts)
    return _transaction_cells(
        sum(counts.values()), receiver, latency and latency.p50_ns, latency and latency.p99_ns
    )


def _probe_cells(near: Sampled | None) -> _Row:
    """Return the probe's latency under load; the near end measures it, whatever the direction."""
    if near is None or near.sample.probe is None:
        return {}
    histogram = near.sample.probe.latency
    latency = summarize_latency(dict(zip(histogram.buckets, histogram.counts, strict=True)))
    if latency is None:
        return {}
    return {
        "latency_p50_us": round_figure(latency.p50_ns / 1_000),
        "latency_p99_us": round_figure(latency.p99_ns / 1_000),
    }


def _transactions(session: SessionSample | None, receiver: Sampled | None) -> _Row:
    if session is None or receiver is None or session.transactions is None:
        return {}
    return _transaction_cells(session.transactions, receiver, session.latency_p50_ns, session.latency_p99_ns)


def _transaction_cells(count: int, receiver: Sampled, p50_ns: int | None, p99_ns: int | None) -> _Row:
    return {
        "transactions_s": round_figure(count * SECOND_NS / receiver.sample.interval_ns),
        "latency_p50_us": None if p50_ns is None else round_figure(p50_ns / 1_000),
        "latency_p99_us": None if p99_ns is None else round_figure(p99_ns / 1_000),
    }


def _rate_cells(count: int | None, receiver: Sampled | None, expected: ExpectedRate | None) -> _Row:
    row: _Row = {"bytes": count}
    if expected is not None:
        row["expected_mbit_s"] = round_figure(expected.bit_s / 1e6)
    if count is not None and receiver is not None:
        measured = Measurement(count, receiver.sample.interval_ns)
        row["mbit_s"] = round_figure(measured.bit_s / 1e6)
        row["mib_s"] = round_figure(measured.bit_s / 8 / MIB)
        row["percent_of_expected"] = percent_of_expected(measured, expected)
    return row


def _end_cells(interval: Interval) -> _Row:
    row: _Row = {}
    for end in End:
        sampled = interval.end_sample(end)
        cores = (sampled.sample.cores or ()) if sampled else ()
        for name, percent in (
            ("cpu_percent", host_percent(cores)),
            ("hottest_core_percent", hottest_core_percent(cores)),
        ):
            if percent is not None:
                row[f"{end.value}_{name}"] = round_figure(percent)
    return row


def _cost_cells(interval: Interval) -> _Row:
    """Return the CPU time of each end's processes per MiB of payload received at both ends."""
    counts = [interval.received_bytes(flow) for flow in interval.flows]
    known = [count for count in counts if count is not None]
    if len(known) < len(counts) or not sum(known):
        return {}
    row: _Row = {}
    for end in End:
        sampled = interval.end_sample(end)
        cpu_ns = sampled.sample.process_cpu_ns if sampled else None
        if cpu_ns is not None:
            row[f"{end.value}_cpu_msec_per_mib"] = round_figure(cpu_ns / 1e6 / (sum(known) / MIB))
    return row


def _tcp_cells(sessions: list[SessionSample]) -> _Row:
    retransmits = [s.retransmits for s in sessions if s.retransmits is not None]
    rtts = [s.rtt_us for s in sessions if s.rtt_us is not None]
    cwnds = [s.cwnd_bytes for s in sessions if s.cwnd_bytes is not None]
    return {
        "retransmits": sum(retransmits) if retransmits else None,
        "rtt_us": round(median(rtts)) if rtts else None,
        "cwnd_bytes": sum(cwnds) if cwnds else None,
    }


def _round_cells(figures: Figures) -> _Row:
    return {name: round_figure(value) if isinstance(value, float) else value for name, value in figures.items()}


def _seconds(ns: int) -> Decimal:
    """Return nanoseconds as seconds, exactly."""
    return Decimal(ns) / SECOND_NS


def cell_text(value: Cell) -> str:
    """Return a value as text: numbers without exponent or trailing zeros, text that no spreadsheet runs."""
    if value is None:
        return ""
    if isinstance(value, str):
        text = make_printable(value)
        return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text
    if isinstance(value, int):
        return str(value)
    return format(Decimal(str(value)).normalize(), "f")
