"""Three peers watched over links of which one falls to 60 %, comes back, and flaps once: what is reported of that.

Usage: make stress ARGS="watch_levels --cycles 200"
       make stress ARGS="watch_levels --steady 500"

A real `linkgauge watch` tests each every few seconds, over links of 100 Mb/s between namespaces. At 30 % of
the cycles the first peer's link falls to 60 % of its rate, at 60 % it comes back, and at 80 % it is at 20 % for one
test. Right is: two changes of that peer's goodput, first for the worse and then for the better, none of any
figure of the others, and the flap was repeated and did not count. With `--steady` nothing is done to the links, and
at most one change may be reported, of any figure of any peer.

Prints each change, then CLEAN or what was wrong. 200 cycles take about seven minutes, 500 about 17. A test is void
if the hypervisor took more than 5 % of the time. Needs root, iproute2, ethtool and a quiet machine.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from linkgauge.engine.host.cpu import read_core_times
from linkgauge.watch.event_codec import parse_event
from linkgauge.watch.events import ChangeFound, CheckBegan, CheckEnded, CheckVerdict, Metric, WatchEvent
from stolen_time import MOST_STOLEN, stolen_share
from watched_links import PRESET, WatchedLinks, open_links

_PEERS: Final = ("changing", "steady1", "steady2")
_DROP, _FLAP = 0.6, 0.2
_GRACE_S: Final = 30.0


class Script:
    """What is done to the first peer's link as its cycles are counted, and what came of the flap."""

    def __init__(self, links: WatchedLinks, cycles: int) -> None:
        self._links = links
        self._falls, self._returns, self._flaps = (round(share * cycles) for share in (0.3, 0.6, 0.8))
        self._decided = 0
        self.flap_cycle_s: float | None = None
        self.flap_ends: list[CheckEnded] = []

    def follow(self, event: WatchEvent) -> None:
        """Act on an event of the first peer."""
        match event:
            case CheckBegan(attempt=0) if self._decided >= self._flaps and self.flap_cycle_s is None:
                self.flap_cycle_s = event.cycle_s
                self._links.set_share(_PEERS[0], _FLAP)
            case CheckEnded():
                if event.cycle_s == self.flap_cycle_s:
                    self.flap_ends.append(event)
                    self._links.set_share(_PEERS[0], 1)
                self._count(event)

    def _count(self, event: CheckEnded) -> None:
        if not event.decides:
            return
        self._decided += 1
        if self._decided == self._falls:
            self._links.set_share(_PEERS[0], _DROP)
        elif self._decided == self._returns:
            self._links.set_share(_PEERS[0], 1)


def _plan_text(links: WatchedLinks, every_s: float, seconds: float) -> str:
    """Return the watch's file."""
    defaults = {
        "every": f"{every_s:g}s",
        "probe_every": "1s",
        "preset": PRESET,
        "seconds": seconds,
        "direction": "out",
        "retests": 1,
        "retest_after": "1s",
    }
    lines = ["[watch]", 'name = "levels"', "[watch.defaults]"]
    lines += [f"{key} = {json.dumps(value)}" for key, value in defaults.items()]
    for name in _PEERS:
        lines += ["[[peer]]", f'name = "{name}"', f'address = "{links.address(name)}"']
    return "\n".join(lines) + "\n"


def _events(folder: Path, text: str, cycles: int) -> Iterator[WatchEvent]:
    """Yield the events of a watch, until every peer has had so many cycles and the watch has ended."""
    file = folder / "levels.toml"
    file.write_text(text, encoding="utf-8")
    command = [sys.executable, "-P", "-m", "linkgauge", "watch", str(file), "--headless", "--json-stream"]
    watch = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "LINKGAUGE_DATA_DIR": str(folder / "data")}
    )
    assert watch.stdout is not None
    decided = dict.fromkeys(_PEERS, 0)
    try:
        for line in watch.stdout:
            event = parse_event(json.loads(line))
            yield event
            if isinstance(event, CheckEnded) and event.decides:
                decided[event.peer] += 1
                if min(decided.values()) >= cycles:
                    watch.send_signal(signal.SIGTERM)
        if min(decided.values()) < cycles:
            sys.exit(f"the watch ended too early: {decided}")
    finally:
        watch.terminate()
        with suppress(subprocess.TimeoutExpired):
            watch.wait(_GRACE_S)
        watch.kill()
        watch.wait()


def _problems_of_changes(changes: list[ChangeFound]) -> Iterator[str]:
    rates = [each for each in changes if each.peer == _PEERS[0] and each.metric is Metric.GOODPUT_BIT_S]
    if [each.is_worse for each in rates] != [True, False]:
        yield f"{len(rates)} changes of the changing peer's goodput, not one down and one up"
    if others := [each for each in changes if each.peer != _PEERS[0]]:
        yield f"{len(others)} changes of links that nothing was done to"


def _problems_of_flap(ends: list[CheckEnded]) -> Iterator[str]:
    verdicts = [(each.result.verdict, each.decides) for each in ends]
    if verdicts != [(CheckVerdict.BELOW, False), (CheckVerdict.GOOD, True)]:
        yield f"the flap was not repeated and found good: {verdicts}"


def _show(change: ChangeFound) -> str:
    before, after = change.before, change.after
    return (
        f"{change.peer} {change.metric}: {before.median:.6g} ({before.count} values) to {after.median:.6g}, "
        f"found {change.at_s - change.since_s:.1f} s after its first cycle"
    )


def _measure(options: argparse.Namespace) -> list[str]:
    """Carry the watch out and return what was wrong."""
    cycles = options.steady or options.cycles
    changes: list[ChangeFound] = []
    ended = 0
    with open_links(_PEERS) as links, tempfile.TemporaryDirectory() as folder:
        script = Script(links, cycles)
        for event in _events(Path(folder), _plan_text(links, options.every, options.seconds), cycles):
            if not options.steady and getattr(event, "peer", None) == _PEERS[0]:
                script.follow(event)
            ended += isinstance(event, CheckEnded)
            if isinstance(event, ChangeFound):
                changes.append(event)
                print(_show(event), flush=True)
    print(f"{ended} tests of {len(_PEERS)} peers, {len(changes)} changes")
    if options.steady:
        return [] if len(changes) <= 1 else [f"{len(changes)} changes when nothing changed"]
    return [*_problems_of_changes(changes), *_problems_of_flap(script.flap_ends)]


def main() -> None:
    """Watch, judge, and exit with 1 if something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=200, help="cycles of each peer, 40 or more")
    parser.add_argument("--steady", type=int, default=0, metavar="CYCLES", help="do nothing to the links")
    parser.add_argument("--every", type=float, default=2.0, help="seconds from one test of a peer to the next")
    parser.add_argument("--seconds", type=float, default=0.5, help="duration of each test")
    options = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("links of network namespaces need root")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the watch and its links are ended as well
    before = read_core_times()
    problems = _measure(options)
    if (stolen := stolen_share(before)) > MOST_STOLEN:
        sys.exit(f"void: {stolen:.0%} of this machine's time was stolen")
    print("\n".join(problems) or "CLEAN")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
