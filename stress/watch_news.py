"""Forty watched peers: some die, change their key or become slow. Each turn is told once, and nothing else is.

Usage: make stress ARGS="watch_news --cycles 500"

The watch is real: its schedule, journal, levels, locks and notifications, by a program and by posts to an HTTP
server. Only the tests and probes are simulated, because 20,000 real ones on one interface take hours: a test ends
at once, with a rate and a scatter, or with the error that a dead host or a changed key brings. Each turn lasts a
tenth of the cycles, and turns overlap. Right is, for each receiver: a failure and a recovery for each death and
each change of a key, a change of level down and one up for each slow peer. A test that a key has refused is not
repeated, and the journal leads to the same statuses, data and news.

Prints the counts, then CLEAN or what was wrong. 500 cycles take about nine minutes.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

from linkgauge.engine.host.event_loop import run
from linkgauge.engine.model.errors import LinkgaugeError, PeerKeyRequired, PeerUnreachable
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.results.run_log import RunLog
from linkgauge.presets.catalog import load_catalog
from linkgauge.tui.watch.running import watch_session
from linkgauge.tui.watch.running.peer_test import failure_of
from linkgauge.tui.watch.running.watch_journal import WatchJournal
from linkgauge.watch.events import CheckEnded, CheckResult, CheckVerdict, Metric
from linkgauge.watch.watch_plan import Notify, Timing, WatchedPeer, WatchPlan

_PEERS: Final = 40
_LEAST_CYCLES: Final = 100
_TURNS: Final = 5
_PERIOD_S: Final = 1.0
_RATE_BIT_S, _SLOW, _SCATTER = 940e6, 0.6, 0.004
_TEST_BYTES, _PROBE_BYTES = 1_000_000, 400
_LAST_S: Final = 10.0  # for the last messages


@dataclass(frozen=True)
class Turn:
    """What happens to a peer from one of its cycles until another one."""

    peer: str
    kind: str
    first: int
    end: int

    @property
    def expected(self) -> list[tuple[str, str]]:
        """What is to be told of it: the peer, and a verdict or a direction of the rate."""
        words = ("worse", "better") if self.kind == "slow" else ("failed", "good")
        return [(self.peer, word) for word in words]


class SimulatedLinks:
    """The links of all peers: which turn each is in, by the number of its cycles."""

    def __init__(self, cycles: int, seed: int) -> None:
        self._random = random.Random(seed)
        names = [f"peer-{number:02}" for number in range(_PEERS)]
        chosen = iter(self._random.sample(names, 3 * _TURNS))
        self.names, self.turns = names, []
        for kind in ("dead", "key", "slow"):
            for _ in range(_TURNS):
                first = self._random.randrange(round(0.1 * cycles), round(0.8 * cycles))
                self.turns.append(Turn(next(chosen), kind, first, first + cycles // 10))
        self._by_peer = {turn.peer: turn for turn in self.turns}
        self._cycles: dict[str, set[float]] = {name: set() for name in names}
        self.repetitions: Counter[str] = Counter()

    def least_cycles(self) -> int:
        """Return how many cycles the peer with the fewest has had."""
        return min(map(len, self._cycles.values()))

    def note_cycle(self, event: CheckEnded) -> None:
        """Count a test that has ended."""
        self.repetitions[event.peer] += event.attempt > 0
        if event.decides:
            self._cycles[event.peer].add(event.cycle_s)

    def find_error(self, peer: str) -> LinkgaugeError | None:
        """Return the error that a connection to a peer meets now; None if it answers."""
        match self._kind_at(peer):
            case "dead":
                return PeerUnreachable(f"no answer from {peer}")
            case "key":
                return PeerKeyRequired(f"{peer} rejected your key")
            case _:
                return None

    def measure(self, peer: str, run_id: str) -> CheckResult:
        """Return the result of a test."""
        error = self.find_error(peer)
        if error is not None:
            return failure_of(error)
        rate = _RATE_BIT_S * (_SLOW if self._kind_at(peer) == "slow" else 1) * self._random.gauss(1, _SCATTER)
        return CheckResult(CheckVerdict.GOOD, _TEST_BYTES, ((Metric.GOODPUT_BIT_S, rate),), run_id=run_id)

    def probe(self, peer: str) -> CheckResult:
        """Return the result of a probe."""
        error = self.find_error(peer)
        if error is not None:
            return failure_of(error)
        figures = ((Metric.LATENCY_S, self._random.gauss(400e-6, 10e-6)), (Metric.LOSS, 0.0))
        return CheckResult(CheckVerdict.GOOD, _PROBE_BYTES, figures)

    def _kind_at(self, peer: str) -> str | None:
        turn, cycles = self._by_peer.get(peer), len(self._cycles[peer])
        return turn.kind if turn is not None and turn.first <= cycles < turn.end else None


def simulate(links: SimulatedLinks) -> None:
    """Replace the tests and probes of watches in this process."""

    class Test:
        """A test that ends at once."""

        notices: tuple[str, ...] = ()

        def __init__(self, watched: WatchedPeer, _context: object, run_id: str) -> None:
            self._name, self._run_id = watched.name, run_id

        def stop(self) -> None:
            """Do nothing."""

        async def carry_out(self) -> CheckResult:
            """Return the result."""
            return links.measure(self._name, self._run_id)

    async def find_absence(watched: WatchedPeer, newest: CheckResult | None) -> CheckResult | None:
        has_answered = newest is not None and newest.verdict is not CheckVerdict.FAILED
        error = None if has_answered else links.find_error(watched.name)
        return None if error is None else failure_of(error)

    async def probe_peer(watched: WatchedPeer) -> CheckResult:
        return links.probe(watched.name)

    watch_session.PeerTest = Test  # type: ignore[misc,assignment]
    watch_session.find_absence, watch_session.probe_peer = find_absence, probe_peer


@contextmanager
def receiver() -> Iterator[tuple[str, list[dict]]]:
    """Give an address that takes posts, and the list of what came."""
    posts: list[dict] = []

    class Handler(BaseHTTPRequestHandler):
        """Takes every post."""

        def do_POST(self) -> None:
            """Take a post."""
            posts.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/hook", posts
        server.shutdown()


def news_of(messages: list[dict]) -> Counter[tuple[str, str]]:
    """Return what messages tell, with the number of each."""
    return Counter(
        (
            each["peer"],
            each["result"]["verdict"]
            if each["type"] == "check_end"
            else f"{'' if each['metric'] == Metric.GOODPUT_BIT_S else each['metric']}"
            f"{'worse' if each['is_worse'] else 'better'}",
        )
        for each in messages
    )


async def watch_all(plan: WatchPlan, log: RunLog, links: SimulatedLinks, cycles: int) -> watch_session.WatchSession:
    """Watch until every peer has had so many cycles, and return the session after its end."""
    async with watch_session.open_watch(plan, log=log, catalog=load_catalog()) as session:
        async for event in session:
            if isinstance(event, CheckEnded):
                links.note_cycle(event)
                if links.least_cycles() >= cycles:
                    break
        await asyncio.sleep(_LAST_S)
    return session


def measure(cycles: int, seed: int) -> Iterator[str]:
    """Carry the watch out, print the counts, and yield what was wrong."""
    links = SimulatedLinks(cycles, seed)
    simulate(links)
    with tempfile.TemporaryDirectory() as folder, receiver() as (address, posts):
        data, told = Path(folder) / "data", Path(folder) / "told"
        data.mkdir()
        os.environ["LINKGAUGE_DATA_DIR"] = str(data)
        timing = Timing(round(_PERIOD_S * SECOND_NS), 5 * SECOND_NS, retests=1, retest_after_ns=SECOND_NS // 10)
        test = Plan(duration_ns=SECOND_NS)
        peers = tuple(WatchedPeer(name, Peer("127.0.0.1"), test, None, timing=timing) for name in links.names)
        plan = WatchPlan("news", peers, Notify(("/bin/sh", "-c", f"cat >> {told}"), address))
        began_s = time.monotonic()
        with RunLog.open(data) as log:
            session = run(watch_all(plan, log, links, cycles))
            journal = WatchJournal(log, plan.group)
            replayed = journal.read(plan)
            journal.close()
        by_program = [json.loads(line) for line in told.read_text(encoding="utf-8").splitlines()]
    statuses = session.statuses.values()
    tests, missed = sum(sum(each.checks) for each in statuses), sum(each.missed for each in statuses)
    print(f"{tests} tests of {_PEERS} peers in {time.monotonic() - began_s:.0f} s, {missed} due ones missed")
    yield from problems_of(links, {"program": by_program, "webhook": posts})
    for name, status in session.statuses.items():
        if replace(status, next_check_s=None, next_probe_s=None) != replayed.statuses[name]:
            yield f"the status of {name} is not that of a replay"
    if replayed.use != session.use or replayed.news.untold:
        yield f"a replay has other data or news: {replayed.news.untold}"


def problems_of(links: SimulatedLinks, received: dict[str, list[dict]]) -> Iterator[str]:
    """Yield what is missing, and what is told too often or of nothing."""
    expected = Counter(each for turn in links.turns for each in turn.expected)
    for name, messages in received.items():
        found = news_of(messages)
        kinds = Counter(word for _, word in found.elements())
        print(f"{name}: {len(messages)} messages for {len(links.turns)} turns: {dict(kinds)}")
        yield from (f"{name}: {each} is missing" for each in (expected - found).elements())
        yield from (
            f"{name}: {each} is told and did not happen, or twice" for each in (found - expected).elements()
        )
    for turn in links.turns:
        if (turn.kind == "dead") is not bool(links.repetitions[turn.peer]):
            yield f"{turn.peer}, {turn.kind}: {links.repetitions[turn.peer]} tests were repetitions"


def main() -> None:
    """Watch, judge, and exit with 1 if something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=500, help=f"cycles of each peer, {_LEAST_CYCLES} or more")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="repeats the turns")
    options = parser.parse_args()
    if options.cycles < _LEAST_CYCLES:
        parser.error(f"with fewer than {_LEAST_CYCLES} cycles a turn is too short to change a level")
    print(f"seed {options.seed}", flush=True)
    problems = list(measure(options.cycles, options.seed))
    print("\n".join(problems) or "CLEAN")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
