"""The benchmark: linkgauge against every other tester on this machine, as ratios of interleaved rounds.

Usage: make bench [ARGS="--rounds 7 --seconds 2 --only as-it-comes,udp*"]

Everything runs on loopback, if possible in a private network namespace with cubic as the default congestion
control of every tool; some cases of UDP also run through a veth pair, to a second namespace. Each case runs its
entries one after the other, round after round, and begins each round with another one: a drift of the machine
affects all alike. Both ends are started for each round, with empty directories for data, configuration and cache.
Rates are each tool's own; CPU is read from /proc for all, after the first third of a round. On a virtual machine a
round is repeated if the host took much of its time meanwhile.

A tool that is missing is left out; one that fails twice in a row, hangs or prints no rate is named in the report
with its words. Ctrl-C ends the benchmark and writes what is there. Prints the report, and writes bench.md,
bench.csv, bench.json and bench.png to bench/results. The exit status is 0; 1 if linkgauge failed in a case; 130
after Ctrl-C.
"""

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from types import FrameType

sys.path.insert(0, str(Path(__file__).parent))

from cases import CASES, Case
from lossless import SEARCH_ROUNDS, find_lossless, measure_lossless
from machine import describe_machine, installed_versions, measure_memory
from measurements import CaseResult, EntryResult, Results, Round
from namespace import enter_namespace
from report import draw, rate_text, report_text, write_csv
from rounds import RoundError, measure_round
from stolen_time import StealGuard
from tools import Entry

_RESULTS = Path(__file__).parent / "results"
# What an entry takes beside its seconds, to start and to end both ends; a floor ends a second early.
_START_S = {"ours": 1.6, "peer": 0.35, "floor": -0.7}
_DRAWING_S = 5.0
_TURNS_OF_A_SECOND = 1.3
_DRAIN_S = 0.7  # of our datagrams, after the last one is sent
_SEARCH_SECONDS = 1
_LOSSLESS_TRIES = 1.4  # of a round, on average


class Progress:
    """The lines that say how far the benchmark is."""

    def __init__(self, cases: Sequence[Case], rounds: int, seconds: int) -> None:
        self._rounds, self._seconds = rounds, seconds
        self._began = time.monotonic()
        self._done_s = 0.0
        self._whole_s = sum(search_s(case) + estimate_s(case, rounds, seconds) for case in cases)

    def begin(self) -> None:
        """Print the estimate."""
        until = datetime.now().astimezone() + timedelta(seconds=self._whole_s)
        print(
            f"{self._rounds} rounds of {self._seconds} s: about {self._whole_s / 60:.0f} minutes, "
            f"until {until:%H:%M} if no time is stolen",
            flush=True,
        )

    def end_search(self, case: Case) -> None:
        """Count the search for the rates of a case."""
        self._done_s += search_s(case)

    def end_round(self, case: Case, number: int) -> None:
        """Print that a round of a case is over, and the time left at this speed."""
        self._done_s += estimate_s(case, 1, self._seconds)
        elapsed_s = time.monotonic() - self._began
        left_s = elapsed_s * (self._whole_s / self._done_s - 1)
        rounds = rounds_of(case, self._rounds)
        print(f"  {case.name}: round {number + 1} of {rounds}, {left_s / 60:.0f} min left", flush=True)


def estimate_s(case: Case, rounds: int, seconds: int) -> float:
    """Return the seconds that the rounds of a case take if none is repeated, without the tools that are missing."""
    of_round = sum(
        _DRAWING_S + _TURNS_OF_A_SECOND * max(2, seconds)
        if entry.draws or entry.is_in_turn
        else _once_s(entry, seconds)
        for entry in case.entries
        if entry.tool.path
    )
    return rounds_of(case, rounds) * of_round * (_LOSSLESS_TRIES if case.is_lossless else 1.0)


def search_s(case: Case) -> float:
    """Return the seconds that the search for the rates of a case takes."""
    if not case.is_lossless:
        return 0.0
    return SEARCH_ROUNDS * sum(_once_s(entry, _SEARCH_SECONDS) for entry in case.entries if entry.tool.path)


def rounds_of(case: Case, rounds: int) -> int:
    """Return the number of rounds that a case has, of those requested."""
    return rounds if case.most_rounds is None else min(rounds, case.most_rounds)


def _once_s(entry: Entry, seconds: int) -> float:
    drain_s = _DRAIN_S if entry.role == "ours" and entry.parse_datagrams else 0.0
    return seconds + _START_S[entry.role] + drain_s


class CaseBench:
    """Measures the rounds of a case into its result, which is whole at any time for what was measured so far."""

    def __init__(self, case: Case, folder: Path, guard: StealGuard) -> None:
        self.case = case
        self.result = CaseResult(case.name, case.title, [])
        self._folder = folder
        self._guard = guard
        self._active: list[tuple[Entry, EntryResult]] = []
        against = {other.entry: other for other in case.others}
        for entry in case.entries:
            if not entry.tool.path:
                print(f"  {entry.label}: {entry.tool.program} is not on PATH, left out", flush=True)
                continue
            targets = against.get(entry)
            result = EntryResult(
                entry.label,
                entry.role,
                entry.unit,
                targets and targets.at_least,
                targets and targets.cpu_at_most,
                requested_bit_s=entry.requested_bit_s,
            )
            self.result.entries.append(result)
            self._active.append((entry, result))

    def search(self) -> None:
        """Search the rate of each entry at which it loses next to nothing, if the case is about that."""
        if not self.case.is_lossless:
            return
        for index, (entry, result) in reversed(list(enumerate(self._active))):
            try:
                found = find_lossless(entry, partial(self._measure, result=result, seconds=_SEARCH_SECONDS))
            except RoundError as error:
                self._fail(entry, result, error)
                continue
            self._active[index] = (found, result)
            rate = "no limit" if found.limit_bit_s is None else rate_text(found.limit_bit_s, entry.unit)
            print(f"  {entry.label}: {rate}", flush=True)

    def measure(self, number: int, seconds: int) -> None:
        """Measure each entry once; the first one is another in each round."""
        turn = number % max(1, len(self._active))
        for entry, result in self._active[turn:] + self._active[:turn]:
            measure = partial(self._measure, result=result, seconds=seconds)
            whole = partial(measure_lossless, entry, measure) if self.case.is_lossless else partial(measure, entry)
            try:
                result.rounds[number] = self._guard.measure(whole)
            except RoundError as error:
                self._fail(entry, result, error)

    def _fail(self, entry: Entry, result: EntryResult, error: RoundError) -> None:
        result.failure = str(error)
        self._active.remove((entry, result))
        print(f"  {entry.label}: failed, left out: {error}", flush=True)

    def _measure(self, entry: Entry, result: EntryResult, seconds: int) -> Round:
        """Measure a round; once more if it fails. Raises RoundError for the second failure."""
        try:
            return self._measure_once(entry, seconds)
        except RoundError as error:
            print(f"  {entry.label}: tried again: {error}", flush=True)
            measured = self._measure_once(entry, seconds)
            result.retries.append(str(error))
            return measured

    def _measure_once(self, entry: Entry, seconds: int) -> Round:
        if entry.is_second_run:
            return measure_round(entry, seconds, self._saved(entry))
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            return measure_round(entry, seconds, Path(folder))

    def _saved(self, entry: Entry) -> Path:
        """Return the directory in which an entry's first run has saved what it saves."""
        folder = self._folder / f"{self.case.name}-second"
        if not folder.exists():
            measure_round(entry, 1, folder)
        return folder


def measure_cases(cases: Sequence[Case], results: Results, guard: StealGuard) -> None:
    """Measure all rounds of the cases, and add each case to the results before its first round."""
    progress = Progress(cases, results.rounds, results.seconds)
    progress.begin()
    with tempfile.TemporaryDirectory(prefix="linkgauge-bench-") as folder:
        for case in cases:
            print(f"{case.name}: {case.title}", flush=True)
            bench = CaseBench(case, Path(folder), guard)
            results.cases.append(bench.result)
            bench.search()
            progress.end_search(case)
            for number in range(rounds_of(case, results.rounds)):
                bench.measure(number, results.seconds)
                progress.end_round(case, number)
            _print_medians(bench.result)


def _print_medians(case: CaseResult) -> None:
    for entry in case.entries:
        if entry.median_rate is not None and not entry.failure:
            print(f"    {rate_text(entry.median_rate, entry.unit):>14}  {entry.label}", flush=True)


def list_cases(cases: Iterable[Case]) -> None:
    """Print each case with its entries, and which of them are not installed."""
    for case in cases:
        print(f"{case.name}: {case.title}")
        targets = {other.entry: other.at_least for other in case.others}
        for entry in case.entries:
            target = targets.get(entry)
            notes = [f"target {target:g}"] if target is not None else []
            notes += [] if entry.tool.path else ["not installed"]
            print(f"  {entry.label}", f"({', '.join(notes)})" if notes else "")


def _write(results: Results, folder: Path) -> None:
    """Write all files of the results, and print the report."""
    results.save(folder / "bench.json")
    text = report_text(results)
    (folder / "bench.md").write_text(f"# linkgauge compared with its peers\n\n{text}", encoding="utf-8")
    write_csv(results, folder / "bench.csv")
    draw(results, folder / "bench.png")
    print(f"\n{text}\nwritten: bench.md, bench.csv, bench.json and bench.png in {folder}", flush=True)


def _stop(_number: int, _frame: object) -> None:
    """End the benchmark: servers are ended and results written, which no further signal interrupts."""
    _handle_stops(signal.SIG_IGN)
    raise KeyboardInterrupt


def _handle_stops(handler: Callable[[int, FrameType | None], None] | signal.Handlers) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, handler)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage="run.py [options]"
    )
    parser.add_argument("--rounds", type=int, default=7, help="rounds of each entry (7)")
    parser.add_argument("--seconds", type=int, default=2, help="seconds of a round (2)")
    parser.add_argument(
        "--only",
        default="",
        metavar="CASES",
        help="names of cases, separated by commas; udp* is all of UDP, iperf3* our endpoint with clients of iperf3",
    )
    parser.add_argument(
        "--list", action="store_true", help="print the cases and their entries, and measure nothing"
    )
    parser.add_argument("--output", type=Path, default=_RESULTS, metavar="DIR", help="write to DIR (bench/results)")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the report to this file, too")
    options = parser.parse_args()
    if min(options.rounds, options.seconds) < 1:
        parser.error("--rounds and --seconds need at least 1")
    wanted = {name for name in str(options.only).split(",") if name}
    unknown = {name for name in wanted if not any(fnmatchcase(case.name, name) for case in CASES)}
    if unknown:
        parser.error(
            f"no case is called {', '.join(sorted(unknown))}; there are {', '.join(c.name for c in CASES)}"
        )
    try:  # not after half an hour
        options.output.mkdir(parents=True, exist_ok=True)
        if options.markdown is not None:
            options.markdown.open("a", encoding="utf-8").close()
    except OSError as error:
        parser.error(str(error))
    options.cases = [
        case
        for case in CASES
        if (any(fnmatchcase(case.name, name) for name in wanted) if wanted else not case.is_on_request)
    ]
    return options


def main() -> int:
    """Measure, print and write the results; return the exit status."""
    options = _options()
    if options.list:
        list_cases(options.cases)
        return 0
    enter_namespace()
    tools = {entry.tool for case in options.cases for entry in case.entries}
    results = Results(
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        machine=describe_machine(),
        versions=installed_versions(),
        missing=sorted(tool.name for tool in tools if not tool.path),
        rounds=options.rounds,
        seconds=options.seconds,
        is_partial=any(case not in options.cases for case in CASES if not case.is_on_request),
    )
    guard, began = StealGuard(), time.monotonic()
    _handle_stops(_stop)
    try:
        results.memory_copy_bit_s = measure_memory()
        measure_cases(options.cases, results, guard)
    except KeyboardInterrupt:
        results.is_interrupted = True
    _handle_stops(signal.SIG_IGN)
    results.elapsed_s = time.monotonic() - began
    results.repeated, results.disturbed = guard.repeated, guard.disturbed
    _write(results, options.output)
    if options.markdown is not None:
        options.markdown.write_text(report_text(results), encoding="utf-8")
    if results.is_interrupted:
        return 128 + signal.SIGINT
    return int(any(case.ours.failure for case in results.cases))


if __name__ == "__main__":
    raise SystemExit(main())
