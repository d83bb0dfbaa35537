"""A watch that is killed with SIGKILL at random moments and started again: no due test lost, none counted twice.

Usage: make stress ARGS="watch_kills --kills 50"

A real `linkgauge watch` tests two endpoints on loopback and a port that nobody listens on, every three seconds.
Half of the kills come at any moment, the others while a test runs or ends. Then journal and run log are judged
(`Evidence.problems`): each slot from the first to the last decided one is decided once, or reported once as missed;
those that are missed had a reason: when the next one came, the watch was down, or a test had the interface. No run
counts twice, none that ended regularly is left out; all entries are readable; what was printed is in the journal;
the statuses of the last watch are those of a replay; no killed watch has left a process. Prints CLEAN or what was
wrong. 50 kills take about three minutes.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import asyncio
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from linkgauge.engine.host.event_loop import run
from linkgauge.engine.results.run_log import RunLog
from linkgauge.engine.results.run_log.journal import Journal
from linkgauge.presets.catalog import load_catalog
from linkgauge.tui.watch.running.watch_file import read_watch_file
from linkgauge.tui.watch.running.watch_journal import WatchJournal
from linkgauge.tui.watch.running.watch_session import open_watch
from linkgauge.watch.event_codec import UnreadEntry, event_text, parse_event, read_events
from linkgauge.watch.events import CheckBegan, CheckEnded, CheckSkipped, ChecksMissed, WatchEvent, WatchStarted
from linkgauge.watch.schedule import check_times
from linkgauge.watch.watch_plan import WatchedPeer, WatchPlan
from linkgauge.watch.watch_state import PeerStatus
from resources import loopback_endpoint

_EVERY_S: Final = 3.0
_LONGEST_LIFE_S: Final = 6.0
_AFTER_BEGIN_S: Final = 1.0  # a test with its start and its end in the run log takes about so long
_LAST_LIFE_S: Final = 3 * _EVERY_S
_SLACK_S: Final = 0.5  # between the clock that an entry has and what is done then
_DEADLINE_S: Final = 30.0
_MARK: Final = "LINKGAUGE_WATCH_UNDER_TEST"


@dataclass(frozen=True)
class Life:
    """A watch from its start until it was killed, in seconds since 1970."""

    began_s: float
    ended_s: float


class Evidence:
    """The journal and the run log of a watch, and when it lived."""

    def __init__(self, folder: Path, plan: WatchPlan, lives: list[Life]) -> None:
        self.plan, self.lives = plan, lives
        with RunLog.open(folder) as log, Journal(log.path, plan.group) as journal:
            read = list(read_events(journal.entries()))
            self.regular = {each.run_id for each in log.list_runs() if each.reason and each.reason.is_regular}
        self.unread = [item for item in read if isinstance(item, UnreadEntry)]
        self.events: list[WatchEvent] = [item for item in read if not isinstance(item, UnreadEntry)]
        self.begun = {each.run_id: each for each in self.events if isinstance(each, CheckBegan)}
        self.ended = [each for each in self.events if isinstance(each, CheckEnded)]
        self.starts = [each.at_s for each in self.events if isinstance(each, WatchStarted)]

    def summary(self) -> str:
        """Return how often what was to happen has happened."""
        counted = {each.result.run_id for each in self.ended}
        adopted = sum(
            self._life(each.at_s) != self._life(self.begun[each.result.run_id].at_s)
            for each in self.ended
            if each.result.run_id in self.begun
        )
        cut = sum(each.run_id not in counted and self._is_cut(each) for each in self.begun.values())
        return f"{len(self.ended)} tests ended, {adopted} of them found after a kill, {cut} were cut off"

    def problems(self) -> Iterator[str]:
        """Yield what is wrong, as sentences."""
        yield from (item.reason for item in self.unread)
        counts = Counter(each.result.run_id for each in self.ended if each.result.run_id is not None)
        yield from (f"run {name} counts {count} times" for name, count in counts.items() if count > 1)
        yield from (f"run {name} counts and never began" for name in counts.keys() - self.begun.keys())
        yield from (f"run {name} ended regularly and does not count" for name in self.regular - counts.keys())
        for watched in self.plan.peers:
            yield from (f"{watched.name}: {text}" for text in self._problems_of(watched))

    def _problems_of(self, watched: WatchedPeer) -> Iterator[str]:
        times = check_times(watched)
        ended = [each for each in self.ended if each.peer == watched.name]
        skipped = [each for each in self.events if isinstance(each, CheckSkipped) and each.peer == watched.name]
        decided = [each.cycle_s for each in ended if each.decides] + [each.cycle_s for each in skipped]
        for cycle_s, count in Counter(decided).items():
            if count > 1:
                yield f"cycle {cycle_s} is decided {count} times"
            if times.newest_s(cycle_s) != cycle_s:
                yield f"cycle {cycle_s} was never due"
        for cycle_s in {each.cycle_s for each in ended}:
            tests = [(each.attempt, each.decides) for each in ended if each.cycle_s == cycle_s]
            if [attempt for attempt, _ in tests] != list(range(len(tests))):
                yield f"cycle {cycle_s} has these tests: {tests}"
            if any(decides for _, decides in tests[:-1]):
                yield f"cycle {cycle_s} was tested after it was decided: {tests}"
        began = [each.cycle_s for each in self.begun.values() if each.peer == watched.name]
        if began != sorted(began):
            yield "an older cycle was tested after a newer one"
        yield from self._misses(watched, decided)

    def _misses(self, watched: WatchedPeer, decided: list[float]) -> Iterator[str]:
        """Yield what is wrong with the slots that no test decided."""
        times, missed = check_times(watched), self._missed(watched)
        for cycle_s, count in (Counter(missed) + Counter(set(decided))).items():
            if count > 1:
                yield f"cycle {cycle_s} is missed {count} times, or decided as well"
        for cycle_s in sorted(set(missed)):
            if not self._stood_in_the_way(watched.name, cycle_s, times.following_s(cycle_s)):
                yield f"cycle {cycle_s} was missed, and nothing stood in its way"
                yield from self._around(watched.name, cycle_s)
        for cycle_s in sorted(self._due(watched, decided) - set(decided) - set(missed)):
            yield f"cycle {cycle_s} was due, and was lost"
            yield from self._around(watched.name, cycle_s)

    def _missed(self, watched: WatchedPeer) -> list[float]:
        """Return the slots that were reported as missed."""
        times, missed = check_times(watched), list[float]()
        for event in self.events:
            if isinstance(event, ChecksMissed) and event.peer == watched.name:
                slots = [event.since_s]
                while slots[-1] < event.until_s:
                    slots.append(times.following_s(slots[-1]))
                missed += slots if len(slots) == event.count else [*slots, *slots]  # then a problem
        return missed

    def _around(self, name: str, cycle_s: float) -> Iterator[str]:
        """Yield what happened around a cycle, in seconds after it was due."""
        for number, life in enumerate(self.lives):
            if life.ended_s > cycle_s - _EVERY_S and life.began_s < cycle_s + 3 * _EVERY_S:
                yield f"  life {number}: {life.began_s - cycle_s:+.2f} to {life.ended_s - cycle_s:+.2f}"
        for event in self.events:
            after_s = event.at_s - cycle_s
            if -_EVERY_S < after_s < 3 * _EVERY_S and getattr(event, "peer", name) == name:
                cycle = getattr(event, "cycle_s", None)
                shown = "" if cycle is None else f" of the cycle {cycle - cycle_s:+.2f}"
                attempt = getattr(event, "attempt", "")
                yield f"  {after_s:+.2f}: {type(event).__name__}{shown} {attempt}"

    def _due(self, watched: WatchedPeer, decided: list[float]) -> set[float]:
        """Return the slots from the first to the last one that was decided."""
        times, due = check_times(watched), set[float]()
        due_s = min(decided, default=0.0)
        while due_s < max(decided, default=0.0):
            due.add(due_s)
            due_s = times.following_s(due_s)
        return due

    def _stood_in_the_way(self, name: str, due_s: float, following_s: float) -> bool:
        """Return whether a slot may be missed: when the next one came the watch was down, or busy.

        It is busy while a test has the interface, which all peers share, and with an earlier cycle of the peer.
        """
        if self._is_down_at(following_s):
            return True
        own = [each for each in (*self.begun.values(), *self.ended) if each.peer == name and each.cycle_s < due_s]
        return any(each.at_s > following_s - _SLACK_S for each in own) or any(
            begun.at_s < following_s + _SLACK_S and self._end_of(begun) > following_s - _SLACK_S
            for begun in self.begun.values()
        )

    def _end_of(self, begun: CheckBegan) -> float:
        """Return when a test ended, or was cut off."""
        ends = [each.at_s for each in self.ended if _test(each) == _test(begun) and each.at_s > begun.at_s]
        cut_s = next((life.ended_s for life in self.lives if life.began_s <= begun.at_s <= life.ended_s), 0.0)
        return min([*ends, cut_s], default=0.0)

    def _is_down_at(self, time_s: float) -> bool:
        """Return whether no watch had begun at a time."""
        for life in self.lives:
            start_s = next((at_s for at_s in self.starts if life.began_s <= at_s < life.ended_s), None)
            if start_s is not None and start_s + _SLACK_S < time_s < life.ended_s - _SLACK_S:
                return False
        return True

    def _life(self, at_s: float) -> int | None:
        return next((n for n, each in enumerate(self.lives) if each.began_s <= at_s <= each.ended_s), None)

    def _is_cut(self, begun: CheckBegan) -> bool:
        return not any(_test(each) == _test(begun) for each in self.ended)


def _test(event: CheckBegan | CheckEnded) -> tuple[str, float, int]:
    return event.peer, event.cycle_s, event.attempt


class Killer:
    """Starts watches of a file, kills them, and looks for what they leave."""

    def __init__(self, folder: Path, file: Path, seed: int) -> None:
        self._folder, self._file = folder, file
        self._random = random.Random(seed)
        self.lives: list[Life] = []
        self.printed: list[str] = []
        self.problems: list[str] = []

    def live_once(self) -> None:
        """Start a watch at once after the one before, and kill it at a random moment."""
        output = self._folder / f"output.{len(self.lives)}"
        mark = f"{self._folder}:{len(self.lives)}"
        command = [sys.executable, "-P", "-m", "linkgauge", "watch", str(self._file), "--headless", "--json-stream"]
        began_s = time.time()
        with output.open("wb") as stdout, (self._folder / "errors").open("ab") as stderr:
            watch = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, env={**os.environ, _MARK: mark}
            )
        try:
            self._wait(watch, output)
            if watch.poll() is not None:
                words = (self._folder / "errors").read_text(encoding="utf-8")[-2_000:]
                self.problems.append(f"a watch ended by itself, with status {watch.returncode}: {words}")
        finally:
            watch.kill()
            watch.wait()
        self.lives.append(Life(began_s, time.time()))
        self._look_for_processes(len(self.lives) - 2)  # those of the last one may end beside the next watch
        lines = output.read_text(encoding="utf-8").splitlines(keepends=True)
        self.printed += [line for line in lines if line.endswith("\n")]

    def close(self) -> None:
        """Look for what the last watch has left."""
        self._look_for_processes(len(self.lives) - 1)

    def _wait(self, watch: subprocess.Popen[bytes], output: Path) -> None:
        """Wait for a random time; in half of the cases until a test has begun, and some part of its time."""
        with_test = self._random.random() < 0.5
        time.sleep(self._random.uniform(0.2, _EVERY_S if with_test else _LONGEST_LIFE_S))
        if not with_test:
            return
        deadline = time.monotonic() + _DEADLINE_S
        seen = output.read_bytes().count(b'"check_start"')
        while output.read_bytes().count(b'"check_start"') <= seen and watch.poll() is None:
            if time.monotonic() > deadline:
                self.problems.append("a watch began no test")
                return
            time.sleep(0.005)
        time.sleep(self._random.uniform(0, _AFTER_BEGIN_S))

    def _look_for_processes(self, life: int) -> None:
        mark = f"{_MARK}={self._folder}:{life}\0".encode()
        deadline = time.monotonic() + _DEADLINE_S
        while (pids := list(_processes_with(mark))) and time.monotonic() < deadline:
            time.sleep(0.02)
        if pids:
            self.problems.append(f"watch {life} was killed, and its processes {pids} still run")


def _processes_with(mark: bytes) -> Iterator[int]:
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes():
                yield int(path.parent.name)
        except OSError:  # it has ended, or is another user's
            continue


def _plan_text(addresses: dict[str, str]) -> str:
    """Return the watch's file."""
    lines = ["[watch]", 'name = "killed"', "[watch.defaults]", f'every = "{_EVERY_S:g}s"', 'probe_every = "1s"']
    lines += [
        'preset = "none"',
        "seconds = 0.5",
        "warmup = 0",
        'rate = "20M"',
        "retests = 1",
        'retest_after = "300ms"',
    ]
    for name, address in addresses.items():
        lines += ["[[peer]]", f'name = "{name}"', f'address = "{address}"']
    return "\n".join(lines) + "\n"


async def _live_on(plan: WatchPlan, log: RunLog) -> dict[str, PeerStatus]:
    """Watch in this process for some cycles, end in order, and return the statuses then."""
    async with open_watch(plan, log=log, catalog=load_catalog()) as session:
        await asyncio.sleep(_LAST_LIFE_S)
    return dict(session.statuses)


def _differing(folder: Path, plan: WatchPlan, lives: list[Life]) -> Iterator[str]:
    """Yield the peers whose status after a last life is not that of a replay of the journal."""
    os.environ["LINKGAUGE_DATA_DIR"] = str(folder)
    began_s = time.time()
    with RunLog.open(folder) as log:
        statuses = run(_live_on(plan, log))
        lives.append(Life(began_s, time.time()))
        stored = WatchJournal(log, plan.group)
        replayed = stored.read(plan).statuses
        stored.close()
    for name, status in statuses.items():
        if replace(status, next_check_s=None, next_probe_s=None) != replayed[name]:
            yield f"the status of {name} is not that of a replay: {status} and {replayed[name]}"


def _measure(kills: int, seed: int) -> list[str]:
    """Carry out all lives and return what was wrong."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        closed = stack.enter_context(socket.socket())
        closed.bind(("127.0.0.1", 0))  # and nobody listens
        peers = [stack.enter_context(loopback_endpoint())[1] for _ in range(2)]
        addresses = {f"open{number}": str(peer) for number, peer in enumerate(peers)}
        addresses["closed"] = f"127.0.0.1:{closed.getsockname()[1]}"
        file = folder / "killed.toml"
        file.write_text(_plan_text(addresses), encoding="utf-8")
        plan = read_watch_file(file, load_catalog())
        os.environ["LINKGAUGE_DATA_DIR"] = str(folder / "data")
        killer = Killer(folder, file, seed)
        for _ in range(kills):
            killer.live_once()
        killer.close()
        problems = [*killer.problems, *_differing(folder / "data", plan, killer.lives)]
        evidence = Evidence(folder / "data", plan, killer.lives)
        print(f"{kills} kills, {len(evidence.events)} entries, {evidence.summary()}")
        entries = {event_text(event) for event in evidence.events}
        printed = (event_text(parse_event(json.loads(line))) for line in killer.printed)
        problems += [f"printed and not in the journal: {text}" for text in printed if text not in entries]
        return [*problems, *evidence.problems()]


def main() -> None:
    """Watch, kill, judge, and exit with 1 if something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50, help="how often the watch is killed")
    parser.add_argument(
        "--seed", type=int, default=random.randrange(10**6), help="repeats the moments of the kills"
    )
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    problems = _measure(options.kills, options.seed)
    print("\n".join(problems) or "CLEAN")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
