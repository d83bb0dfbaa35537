"""What linkgauge costs: its first frame, many saved runs and presets, long runs, many sessions, short intervals.

Usage: make costs [ARGS="--only history --short"]

Prints Markdown tables. Times of commands are CPU seconds of their processes, so that a busy machine changes them
little; times of keys are wall time until the screen shows their effect. Memory is the largest resident set of a
command, and the proportional set size of the app.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from first_frame import first_frames
from linkgauge.engine.model.events import Ended, Sampled, Started
from linkgauge.engine.model.plan import SECOND_NS
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.results.run_log import RunLog, RunQuery
from processes import process_cpu_s, resident_mib
from run_log_copies import copy_runs, record_runs
from terminal import Terminal, open_app

_LINKGAUGE = (sys.executable, "-m", "linkgauge")
_RUN_COUNTS = (10, 100, 1_000, 10_000, 100_000)
_PRESET_COUNTS = (0, 100, 500, 2_000)
_SESSIONS = (1, 2, 4, 8, 16, 32, 64, 128)
_INTERVALS_S = (1.0, 0.25, 0.1, 0.05)
_LONG_RUNS = ((1.0, 24.0), (0.05, 1.0))  # interval in seconds, hours
_POLL_S = 0.05
_DAY_RUN = "20260101-000000-aaaa"
_PRESET = """[source]
id = "{id}"
title = "A link of our own"
[[preset]]
id = "{id}"
name = "Own link {id}"
family = "Own"
[preset.link]
framing = "ethernet"
line_rate_bit_s = 1_000_000_000
mtu_bytes = 1500
duplex = "full"
"""


@dataclass(frozen=True)
class Cost:
    """The CPU time and the largest resident set of a command."""

    cpu_s: float
    mib: float

    def __str__(self) -> str:
        """Return both, as a cell of a table."""
        return f"{self.cpu_s:.2f} s · {self.mib:.0f} MiB"


@dataclass(frozen=True)
class Folders:
    """Where the measured program has its data and its configuration."""

    data: Path
    config: Path

    @property
    def environment(self) -> dict[str, str]:
        """The environment of its processes."""
        return {
            **os.environ,
            "LINKGAUGE_DATA_DIR": str(self.data),
            "LINKGAUGE_CONFIG_DIR": str(self.config),
        }

    def cost(self, *arguments: str) -> Cost:
        """Return what a command costs. Raises RuntimeError if it fails."""
        with tempfile.TemporaryFile() as errors:
            process = subprocess.Popen(
                [*_LINKGAUGE, *arguments],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            errors.seek(0)
            if process.returncode:
                raise RuntimeError(f"{' '.join(arguments)}: {errors.read().decode()[-300:]}")
        return Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)


def print_table(title: str, headings: Sequence[str], rows: Iterator[Sequence[object]]) -> None:
    """Print a Markdown table, row by row."""
    print(f"\n## {title}\n| {' | '.join(headings)} |\n|{' --- |' * len(headings)}", flush=True)
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |", flush=True)


def history_commands(folders: Folders, counts: Sequence[int]) -> Iterator[Sequence[object]]:
    """Yield the costs of the commands on saved runs."""
    for count, ids in _logs(folders, counts):
        first, second, third = ids[0], ids[1], ids[2]
        commands = (
            ("runs", "list"),
            ("runs", "list", "--label", "cable"),
            ("runs", "show", first),
            ("runs", "compare", first, second),
            ("runs", "delete", "--yes", third),
        )
        yield f"{count:,}", *(folders.cost(*command) for command in commands)


def history_keys(folders: Folders, counts: Sequence[int]) -> Iterator[Sequence[object]]:
    """Yield how long the history screen takes to show the effect of keys."""
    for count, _ in _logs(folders, counts):
        with open_app("loopback", environment=folders.environment) as terminal:
            terminal.until(lambda text: "space start" in text)
            terminal.follow(1.0)
            cells = [
                _press(terminal, key, is_there, first=first)
                for first, key, is_there in (
                    ("", "h", lambda text: "saved run" in text and "Mb/s" in text),
                    ("", "\x1b[B", _is_changed()),
                    ("/", "cable", lambda text: " of " in text.splitlines()[0] and "saved" in text),
                    ("\r", "s", lambda text: "preset▲" in text),
                    (("\x1b[H", " ", " "), "c", lambda text: "B compared with A" in text),
                )
            ]
            yield f"{count:,}", *cells, f"{resident_mib(terminal.pid):.0f} MiB"


def preset_costs(folders: Folders, counts: Sequence[int]) -> Iterator[Sequence[object]]:
    """Yield what presets of a user's own cost."""
    directory = folders.config / "presets"
    directory.mkdir(parents=True, exist_ok=True)
    for count in counts:
        for number in range(count):
            name = f"own-{number:04}"
            (directory / f"{name}.toml").write_text(_PRESET.format(id=name), encoding="utf-8")
        costs = [
            folders.cost(*words) for words in (("--version",), ("presets", "list"), ("presets", "show", "loopback"))
        ]
        with open_app("loopback", environment=folders.environment) as terminal:
            terminal.until(lambda text: "space start" in text)
            terminal.follow(1.0)
            opened = _press(terminal, "n", _is_changed())
            typed = _press(terminal, "own", _is_changed())
        yield f"{count:,}", *costs, opened, typed
    shutil.rmtree(directory)


def long_runs(folders: Folders, runs: Sequence[tuple[float, float]]) -> Iterator[Sequence[object]]:
    """Yield what the samples of long runs cost: to write them, to show them, and as CSV and a report."""
    for interval_s, hours in runs:
        data = folders.data / "long"
        shutil.copytree(folders.data / "real", data)
        there = Folders(data, folders.config)
        began = time.process_time()
        count = write_long_run(data, interval_s, hours)
        written_s = time.process_time() - began
        report = ("runs", "report", _DAY_RUN, "--html", str(data / "page.html"))
        commands = (
            ("runs", "show", _DAY_RUN),
            ("runs", "export", _DAY_RUN, "--csv", str(data / "rows.csv")),
            report,
        )
        costs = [there.cost(*command) for command in commands]
        size = (data / "runs.sqlite3").stat().st_size / 2**20
        yield f"{hours:g} h at {interval_s:g} s", f"{count:,}", f"{written_s:.2f} s", f"{size:.1f} MiB", *costs
        shutil.rmtree(data)


def write_long_run(folder: Path, interval_s: float, hours: float) -> int:
    """Write a run with the samples of a real one, again and again; return how many."""
    interval_ns = round(interval_s * SECOND_NS)
    with RunLog.open(folder) as log:
        real = next(log.records(log.find_runs(_oldest())))
        events = list(log.events(real.run_id))
        started = next(event for event in events if isinstance(event, Started))
        samples = [event for event in events if isinstance(event, Sampled)]
        pair = [next(s for s in samples if s.sample.end is end) for end in {s.sample.end for s in samples}]
        duration_ns = round(hours * 3600 * SECOND_NS)
        log.begin(_DAY_RUN, "", "loopback")
        plan = replace(started.plan, interval_ns=interval_ns, duration_ns=duration_ns)
        log.append_event(_DAY_RUN, replace(started, plan=plan))
        count = duration_ns // interval_ns
        for index in range(count):
            for event in pair:
                sample = replace(
                    event.sample, index=index, elapsed_ns=(index + 1) * interval_ns, interval_ns=interval_ns
                )
                log.append_event(_DAY_RUN, replace(event, sample=sample))
            if index % 1_000 == 0:
                log.flush()
        log.append_event(_DAY_RUN, Ended(RunEnd(Reason.COMPLETED, "finished")))
        log.finish(_DAY_RUN, "none", real.document or {})
    return 2 * count


def session_costs(
    folders: Folders, cases: Sequence[tuple[int, float]], seconds: float
) -> Iterator[Sequence[object]]:
    """Yield what sessions and short intervals cost while a test runs, with both ends on this machine."""
    for sessions, interval_s in cases:
        options = ("-P", str(sessions), "-i", f"{interval_s:g}", "--seconds", f"{seconds:g}", "--json-stream")
        began = time.monotonic()
        process = subprocess.Popen(
            [*_LINKGAUGE, "run", "loopback", *options],
            env=folders.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        peak = [0.0]
        watcher = threading.Thread(target=_watch_memory, args=(process, peak))
        watcher.start()
        first_s, document = None, {}
        for line in process.stdout or ():
            document = json.loads(line)
            if first_s is None and document.get("type") == "interval":
                first_s = time.monotonic() - began - interval_s
        process.wait()
        watcher.join()
        document = document["summary"]
        cpu = document["cpu"]
        rate = document["measured"]["total"]["mbit_s"] / 1e3
        ends = (cpu[end]["msec_per_mib"] for end in ("near", "far"))
        first = "–" if first_s is None else f"{first_s:.2f} s"
        yield (
            sessions,
            f"{interval_s:g} s",
            f"{rate:.1f} Gb/s",
            *(f"{ms:.3f}" for ms in ends),
            f"{peak[0]:.0f}",
            first,
        )


def _watch_memory(process: "subprocess.Popen[str]", peak: list[float]) -> None:
    while process.poll() is None:
        with suppress(OSError):
            peak[0] = max(peak[0], resident_mib(process.pid))
        time.sleep(_POLL_S)


def _oldest() -> RunQuery:
    return RunQuery(is_descending=False)


def _logs(folders: Folders, counts: Sequence[int]) -> Iterator[tuple[int, list[str]]]:
    """Yield counts of runs, with a log of so many in place, and the ids of its copies."""
    real = folders.data / "real"
    for count in counts:
        (folders.data / "runs.sqlite3").unlink(missing_ok=True)
        shutil.copy(real / "runs.sqlite3", folders.data)
        ids = copy_runs(folders.data, count)
        with RunLog.open(folders.data) as log:
            log.add_briefs()
        yield count, ids


def _is_changed() -> Callable[[str], bool]:
    """Return a condition: the screen is another one than when the condition is asked first."""
    before: list[str] = []

    def is_there(text: str) -> bool:
        before.append(text)
        return text != before[0]

    return is_there


def _press(terminal: Terminal, keys: str, is_there: Callable[[str], bool], *, first: Sequence[str] = ()) -> str:
    """Press keys; return the wall time until the effect is there, and the CPU of the app's process.

    `first` has keys that are pressed before: their effect is not waited for.
    """
    for key in first:
        terminal.press(key)
        terminal.follow(0.3)
    cpu_s = process_cpu_s(terminal.pid)
    seconds = terminal.press_and_time(keys, is_there)
    cell = f"{1e3 * seconds:.0f} ms · {process_cpu_s(terminal.pid) - cpu_s:.2f} s"
    terminal.follow(0.5)
    return cell


_HISTORY = ("runs", "list", "list --label", "show", "compare", "delete")
_KEYS = ("runs", "open", "first key", "filter", "sort", "mark, compare", "memory")
_PRESETS = ("own presets", "--version", "presets list", "presets show", "open the list", "type")
_LONG = ("run", "samples", "write", "file", "show", "CSV", "report")
_START = ("first frame of the app", "import of Textual", "ratio")
_TESTS = ("sessions", "interval", "rate", "local ms/MiB", "remote ms/MiB", "memory of both, MiB", "first byte")


def measure(folders: Folders, only: Sequence[str], *, is_short: bool) -> None:
    """Print the tables."""
    counts = (30, 300) if is_short else _RUN_COUNTS
    if "start" in only:
        print_table("The first frame, CPU of the process", _START, first_frames(3 if is_short else 9))
    record_runs(folders.data / "real", 1.0 if is_short else 2.0)
    if "history" in only:
        print_table("Commands on saved runs", _HISTORY, history_commands(folders, counts))
        print_table("The history screen", _KEYS, history_keys(folders, counts))
    if "presets" in only:
        presets = preset_costs(folders, (0, 20) if is_short else _PRESET_COUNTS)
        print_table("Presets of one's own", _PRESETS, presets)
    if "day" in only:
        print_table("Long runs", _LONG, long_runs(folders, ((1.0, 0.1),) if is_short else _LONG_RUNS))
    if "sessions" in only:
        cases = [(1, 0.25), (4, 0.05)]
        if not is_short:
            cases = [
                *((sessions, 0.25) for sessions in _SESSIONS),
                *((8, interval_s) for interval_s in _INTERVALS_S),
            ]
        tests = session_costs(folders, cases, 1.5 if is_short else 5.0)
        print_table("Sessions and intervals, on loopback", _TESTS, tests)


def main() -> None:
    """Parse the command line, and measure in a folder of its own."""
    parts = ("start", "history", "presets", "day", "sessions")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(parts), help=f"some of {', '.join(parts)}")
    parser.add_argument("--short", action="store_true", help="a few small cases, to try the script")
    options = parser.parse_args()
    only = options.only.split(",")
    if unknown := set(only) - set(parts):
        parser.error(f"--only: {', '.join(sorted(unknown))} is none of {', '.join(parts)}")
    with tempfile.TemporaryDirectory() as name:
        folders = Folders(Path(name) / "data", Path(name) / "config")
        (folders.data / "real").mkdir(parents=True)
        measure(folders, only, is_short=options.short)


if __name__ == "__main__":
    main()
