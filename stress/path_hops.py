"""Chains of 3 to 6 hosts with a queue at each place in turn, and which hop `linkgauge path` names.

Usage: make stress ARGS="path_hops --seed 7 --runs 40"

Each case is a chain of network namespaces: the near host, one to four routers, the far host. A token bucket of 20
to 100 ms at 10 to 40 Mb/s is at one of its links, in one direction; the other direction has the same rate and next
to no queue. Some cases have a trap as well: routers that answer once a second as Linux does by default, a silent
router, a router whose own ICMP is late (from the beginning, or from the start of the load), a queue in each
direction, a direction that loses packets, or no queue at all. A test is right if each direction has exactly the
queue that is there: before the right hop, with none but silent or slow hops in between. The trap must be seen, too,
and no direction may lose clearly more probes than remain without an answer: an answered one has arrived.
A test is void if the hypervisor took more than 5 % of the machine's time. `--maker` builds chains in other ways.

Prints each test, then right and total for each kind of case, and CLEAN if at least 95 % are right. Half a minute a
test. Needs root, iproute2, ethtool and nftables, and a quiet machine.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Timer
from typing import Any, Final, get_args

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from case_runs import endpoint_at, finish, program, require_root, run_cases
from end_to_end.chained_path import ChainedPath, LinkQueue, Maker
from linkgauge.engine.model.directions import Direction

_DEADLINE_S: Final = 60.0
_LEAST_RIGHT: Final = 0.95
_NO_QUEUE_MS: Final = 1
_LOST_PERCENT: Final = 15
_MOST_LOST: Final = 1.5  # times the share without an answer, which is of the whole test and not of the load alone
_HOST_MBIT_S: Final = 10  # TCP keeps little of its own data in the queue of its host (tcp_limit_output_bytes)
_LINUX_LIMIT_MS: Final = 1_000
_TRAPS: Final = {"icmp limit": "limited", "silent": "silent", "slow": "slow", "slow under load": "slow"}
_KINDS_OF_IPV6: Final = ("one queue", "icmp limit", "silent", "two queues", "loss", "healthy")
KINDS: Final = ("one queue", "icmp limit", "silent", "slow", "slow under load", "two queues", "loss", "healthy")


@dataclass(frozen=True)
class Case:
    """A chain: its kind, its queues, and the router that has the trap: of a loss, in the direction of the first."""

    kind: str
    nodes: int
    queues: tuple[LinkQueue, ...]
    router: int
    version: int = 4
    maker: Maker = "tbf"

    def __str__(self) -> str:
        queues = "; ".join(str(queue) for queue in self.queues if queue.hold_ms > _NO_QUEUE_MS) or "no queue"
        trap = f", router {self.router}" if self.kind in {"silent", "slow", "slow under load"} else ""
        trap = (
            f", router {self.router} loses {_LOST_PERCENT} % {self.queues[0].direction}"
            if self.kind == "loss"
            else trap
        )
        return f"{self.kind}: {self.nodes} nodes, {queues}{trap}, IPv{self.version}, {self.maker}"

    def true_hop(self, direction: Direction) -> int | None:
        """Return the hop before which a direction's queue is, counted from its sender; None without a queue."""
        for queue in self.queues:
            if queue.direction is direction and queue.hold_ms > _NO_QUEUE_MS:
                return queue.link + 1 if direction is Direction.OUT else self.nodes - 1 - queue.link
        return None


def draw_cases(kinds: tuple[str, ...], runs: int, seed: int) -> Iterator[Case]:
    """Yield so many cases: every place and direction of a single queue in turn, and the traps between them."""
    places = [
        (nodes, link, direction)
        for nodes in range(3, 7)
        for link in range(nodes - 1)
        for direction in Direction.DUPLEX.flows
    ]
    random.Random(seed).shuffle(places)
    for number in range(runs):
        draw = random.Random(f"{seed} {number}")
        kind = kinds[number % len(kinds)]
        nodes, link, direction = (
            places[number // len(kinds) % len(places)] if kind == "one queue" else draw.choice(places)
        )
        yield _case(kind, nodes, link, direction, draw)


def _case(kind: str, nodes: int, link: int, direction: Direction, draw: random.Random) -> Case:
    rate, hold = draw.choice((10, 20, 40)), draw.choice((20, 40, 60, 100))
    other = direction.opposite
    other_link = draw.randrange(nodes - 1)
    hold, other_hold = {
        "healthy": (_NO_QUEUE_MS, _NO_QUEUE_MS),
        "loss": (_NO_QUEUE_MS, _NO_QUEUE_MS),
        "two queues": (hold, draw.choice((20, 40, 60, 100))),
    }.get(kind, (hold, _NO_QUEUE_MS))
    queues = (LinkQueue(link, direction, hold, rate), LinkQueue(other_link, other, other_hold, rate))
    if any(_is_at(queue, node) for queue in queues for node in (0, nodes - 1)):
        queues = tuple(replace(queue, mbit_s=_HOST_MBIT_S) for queue in queues)
    routers = list(range(1, nodes - 1))
    if kind == "loss":  # a bucket without a queue drops packets: it is where the router loses them
        router = draw.choice(routers)
        first = replace(queues[0], link=router if direction is Direction.OUT else router - 1)
        return Case(kind, nodes, (first, queues[1]), router)
    if kind in {"slow", "slow under load"}:  # its devices have no room for a queue of the path
        routers = [router for router in routers if not any(_is_at(queue, router) for queue in queues)]
        if not routers:
            return _case(kind, draw.randrange(4, 7), 0, direction, draw)
    router = draw.choice(routers)
    return Case(kind, nodes, queues, router, draw.choice((4, 4, 6)) if kind in {"one queue", "two queues"} else 4)


def _is_at(queue: LinkQueue, node: int) -> bool:
    return node == (queue.link if queue.direction is Direction.OUT else queue.link + 1)


def run_case(case: Case) -> tuple[bool, str]:
    """Build a case's chain and test it; return whether it is right, and what is wrong.

    Raise AssertionError without a result.
    """
    limit_ms = _LINUX_LIMIT_MS if case.kind == "icmp limit" else 0
    path = ChainedPath(case.nodes, case.queues, icmp_limit_ms=limit_ms, maker=case.maker)
    try:
        if case.kind == "silent":
            path.silence(case.router)
        elif case.kind == "slow":
            path.slow_down(case.router)
        elif case.kind == "loss":
            path.lose(case.router, _LOST_PERCENT, case.queues[0].direction)
        with endpoint_at(path.far):
            wrong = _judge(case, _measure(case, path))
            return not wrong, wrong
    finally:
        path.close()


def _measure(case: Case, path: ChainedPath) -> dict[str, Any]:
    """Return the path's member of the document; the trap of the load begins with it."""
    host = path.far_address(case.version)
    host = f"[{host}]" if case.version == 6 else host
    command = [*path.near, *program("path", host, "--open", "--json-stream")]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    process = subprocess.Popen(command, text=True, **pipes)
    timer = Timer(_DEADLINE_S, process.kill)
    timer.start()
    lines: list[str] = []
    document = None
    assert process.stdout is not None
    try:
        for line in process.stdout:
            lines.append(line)
            match json.loads(line):
                case {"type": "start"} if case.kind == "slow under load":
                    path.slow_down(case.router)
                case {"type": "end", "summary": document}:
                    pass
                case _:
                    pass
        _, errors = process.communicate()
    finally:
        timer.cancel()
    if document is None or "path" not in document:
        raise AssertionError(f"no result: {''.join(lines[-2:])}{errors}")
    return document["path"]


def _judge(case: Case, path: dict[str, Any]) -> str:
    wrong = [text for direction in Direction.DUPLEX.flows if (text := _judge_way(case, path, direction))]
    trap = _TRAPS.get(case.kind)
    routers = {"out": case.router, "in": case.nodes - 1 - case.router}
    answers = [
        path[way]["hops"][ttl - 1]["answers"]
        for way, ttl in routers.items()
        if path[way] is not None and ttl <= len(path[way]["hops"])
    ]
    if trap is not None and trap not in answers:
        wrong.append(f"router {case.router} is {answers}, not {trap}")
    if case.kind == "loss":
        wrong.append(_judge_loss(case, path, case.queues[0].direction))
    return "; ".join(filter(None, wrong))


def _judge_loss(case: Case, path: dict[str, Any], direction: Direction) -> str:
    """Return what is wrong about the loss of a direction: it is behind the router that loses.

    The other direction may have one, too: a bucket without a queue drops what TCP sends at once. Then hops between
    both places do not tell, so that the right hop lies within what is named.
    """
    ways = [path[each.value] for each in (direction, direction.opposite)]
    loss, other = (None if way is None else way["loss"] for way in ways)
    after = case.router if direction is Direction.OUT else case.nodes - 1 - case.router
    first, last = (0, 0) if loss is None else (loss["after_hop"], loss["before_hop"])
    is_right = first <= after < last and (last - first == 1 or other is not None)
    return "" if is_right else f"{direction.value}: loss {loss}, it is behind {after}; other way {other}"


def _judge_way(case: Case, path: dict[str, Any], direction: Direction) -> str:
    way, true_hop = path[direction.value], case.true_hop(direction)
    if way is None or not way["is_reached"]:
        return f"{direction.value}: not traced"
    loss, unanswered = way["loss"], way["hops"][-1]["lost_percent"]
    if loss is not None and loss["lost_percent"] > _MOST_LOST * unanswered + 1:
        return f"{direction.value}: loss of {loss['lost_percent']:.1f} %, but {unanswered:.1f} % are unanswered"
    found = [(queue["after_hop"], queue["before_hop"]) for queue in way["queues"]]
    shown = ", ".join(f"{after}-{before}" for after, before in found) or "none"
    if true_hop is None:
        return f"{direction.value}: {shown}, there is none" if found else ""
    hops = {hop["ttl"]: hop for hop in way["hops"]}
    rises = "/".join("-" if hop["rise_ms"] is None else f"{hop['rise_ms']:.0f}" for hop in way["hops"])
    if len(found) != 1:
        return f"{direction.value}: {shown}, it is before {true_hop} (rises {rises})"
    after, before = found[0]
    between = [hops[ttl]["answers"] for ttl in range(after + 1, before)]
    is_right = after < true_hop <= before and all(answer in {"silent", "slow"} for answer in between)
    return "" if is_right else f"{direction.value}: {shown}, it is before {true_hop} (rises {rises})"


def main() -> None:
    """Run the cases, and exit with 1 if too few are right."""
    require_root()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=42)
    parser.add_argument("--only", choices=KINDS, help="cases of this kind")
    parser.add_argument("--maker", choices=get_args(Maker), default="tbf", help="how chains are made")
    parser.add_argument("--ipv6", action="store_true", help="over IPv6 alone, without the slow routers")
    options = parser.parse_args()
    kinds = (options.only,) if options.only else _KINDS_OF_IPV6 if options.ipv6 else KINDS
    cases = (
        replace(case, maker=options.maker, version=6 if options.ipv6 else case.version)
        for case in draw_cases(kinds, options.runs, options.seed)
    )
    finish(run_cases(cases, lambda case: case.kind, run_case), _LEAST_RIGHT)


if __name__ == "__main__":
    main()
