"""Parallel links between two routers, one of them bad, and what `linkgauge flows` says of them.

Usage: make stress ARGS="path_flows --seed 7 --runs 40"

Each case is a path of network namespaces: the near host, a router, 2, 4 or 8 links, another router, the far host.
The kernel hashes flows over the links by addresses and ports. One link loses 0.5 to 20 % in one direction, or takes
0.5 to 5 ms longer, or carries nothing; or all links lose alike, or everything is lost for moments; or none is bad.
Further kinds were not used to tune the judgement: another hash, IPv6, a policer on one link, packets that are
balanced one by one. The routers note which source ports the bad link carries. A test is right if the named ports
are these, but for 3 %; if the share of the bad link lies within the interval; if a number of members, where one is
given, is the right one; and if nothing is named in the other direction. A test is void if the hypervisor took more
than 5 % of the machine's time.

Prints each test, then right and total for each kind of case, and CLEAN if at least 95 % are right, and of the
healthy ones all. Half a minute a test. Needs root, iproute2 and nftables.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import json
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from case_runs import endpoint_at, finish, program, require_root, run_cases
from end_to_end.parallel_path import Balance, ParallelPath
from linkgauge.engine.model.directions import Direction

_DEADLINE_S: Final = 400.0
_LEAST_RIGHT: Final = 0.95
_SPARE: Final = 0.03
_LOSSES: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0)
_DELAYS_MS: Final = (0.5, 1.0, 3.0, 5.0)
_BAD: Final = {"loss", "slow", "dead", "other hash", "IPv6", "policer"}
KINDS: Final = ("loss", "slow", "dead", "all alike", "moments", "healthy")
UNTUNED: Final = ("other hash", "IPv6", "policer", "packet by packet")


@dataclass(frozen=True)
class Case:
    """A path: its members, the bad one, and its loss in percent, or its delay."""

    kind: str
    members: int
    bad: int
    direction: Direction
    percent: float
    delay_ms: float

    @property
    def balance(self) -> Balance:
        """How packets are spread."""
        kinds: dict[str, Balance] = {"dead": "hash", "other hash": "hash", "packet by packet": "packets"}
        return kinds.get(self.kind, "routes")

    @property
    def is_slow(self) -> bool:
        """Whether the bad member is slow, or late packets overtake each other."""
        return self.kind in {"slow", "packet by packet"}

    def __str__(self) -> str:
        what = f"{self.delay_ms:g} ms" if self.is_slow else f"{self.percent:g} % {self.direction.value}"
        return f"{self.kind}: {self.members} members, {'no fault' if self.kind == 'healthy' else what}"


def draw_cases(kinds: tuple[str, ...], runs: int, seed: int) -> Iterator[Case]:
    """Yield so many cases: the kinds in turn, and every number of members with every loss."""
    for number in range(runs):
        draw = random.Random(f"{seed} {number}")
        members = (2, 4, 8)[number // len(kinds) % 3]
        yield Case(
            kinds[number % len(kinds)],
            members,
            draw.randrange(members),
            draw.choice(Direction.DUPLEX.flows),
            draw.choice(_LOSSES),
            draw.choice(_DELAYS_MS),
        )


def run_case(case: Case) -> tuple[bool, str]:
    """Build a case's path and test it; return whether it is right, and what is wrong or else the share it names.

    Raise AssertionError without a result.
    """
    path = ParallelPath(
        case.members,
        case.balance,
        version=6 if case.kind == "IPv6" else 4,
        slow=case.bad if case.is_slow else None,
        delay_ms=case.delay_ms,
    )
    stop = threading.Event()
    losing: threading.Thread | None = None
    try:
        for direction in Direction.DUPLEX.flows:
            path.watch(case.bad, direction)
        losing = _break(case, path, stop)
        with endpoint_at(path.far):
            document = _measure(path, case)
        truth = {each.value: path.ports_on(case.bad, each) for each in Direction.DUPLEX.flows}
        wrong = "; ".join(_judge(case, document, truth))
        return not wrong, wrong or _said(document)
    finally:
        stop.set()
        if losing is not None:
            losing.join()
        path.close()


def _break(case: Case, path: ParallelPath, stop: threading.Event) -> threading.Thread | None:
    """Break what the case wants; return the thread that goes on with it until it is stopped."""
    if case.kind in {"loss", "other hash", "IPv6"}:
        path.lose(case.bad, case.percent, case.direction)
    elif case.kind == "dead":
        path.lose(case.bad, 100, case.direction)
    elif case.kind == "policer":  # 298 bytes on the wire, 8 Mb/s of payload over all members
        offered = 1e6 * 284 / 256 / case.members
        path.police(case.bad, max(1, round(offered * (0.8 - case.percent / 100) / 1_024)), case.direction)
    elif case.kind == "all alike":
        path.lose_everywhere(case.percent, case.direction)
    elif case.kind == "moments":
        losing = threading.Thread(target=_lose_at_moments, args=(case, path, stop), daemon=True)
        losing.start()
        return losing
    return None


def _lose_at_moments(case: Case, path: ParallelPath, stop: threading.Event) -> None:
    draw = random.Random(str(case))
    while not stop.wait(draw.uniform(1, 4)):
        path.lose_all_for(draw.choice((0.02, 0.05, 0.1, 0.3)), case.direction)


def _measure(path: ParallelPath, case: Case) -> dict[str, Any]:
    host = f"[{path.far_address}]" if case.kind == "IPv6" else path.far_address
    command = [*path.near, *program("flows", host, "--open", "--json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_DEADLINE_S, check=False)
    if done.returncode not in {0, 1} or not done.stdout:
        raise AssertionError(f"exit status {done.returncode}: {done.stderr[-300:]}")
    try:
        document = json.loads(done.stdout)
    except ValueError as error:
        text = f"exit status {done.returncode}, {len(done.stdout)} characters, {error}: {done.stderr[-300:]}"
        raise AssertionError(text) from error
    if (done.returncode == 1) is not document["has_bad_member"]:
        raise AssertionError(f"exit status {done.returncode}, but {document['has_bad_member']}")
    return document


def _judge(case: Case, document: dict[str, Any], truth: dict[str, set[int]]) -> Iterator[str]:
    """Yield what is wrong."""
    if case.kind == "dead":
        yield from _judge_dead(case, document, truth)
        return
    if document["silent_ports"]:
        yield f"{len(document['silent_ports'])} silent flows"
    for direction in Direction.DUPLEX.flows:
        name = direction.value
        found = document[name]
        is_bad = case.kind in _BAD and (case.kind == "slow" or direction is case.direction)
        if is_bad:
            yield from _judge_bad(case, name, found, truth[name])
        elif found["lossy_share"] is not None or found["slow_share"] is not None:
            yield f"{name}: a bad member is named ({found['lossy_share']}, {found['slow_share']})"
    found = document[case.direction.value]
    if case.kind == "all alike" and found["losses"] != "alike":
        yield f"losses are {found['losses']}, not alike"
    if case.kind == "packet by packet" and not (
        document["out"]["balances_packets"] and document["in"]["balances_packets"]
    ):
        yield "balancing by packets is not said"


def _said(document: dict[str, Any]) -> str:
    """Return the shares that are named, as a number of members or as an interval."""
    shares = [
        f"1 of {found[f'{kind}_members']}" if found[f"{kind}_members"] else f"{low:.0%} to {high:.0%}"
        for kind, found in (
            ("silent", document),
            *((kind, document[name]) for name in ("out", "in") for kind in ("lossy", "slow")),
        )
        if (low := found[f"{kind}_share_low"]) is not None and (high := found[f"{kind}_share_high"]) is not None
    ]
    return ", ".join(shares)


def _judge_bad(case: Case, name: str, found: dict[str, Any], truth: set[int]) -> Iterator[str]:
    kind = "slow" if case.kind == "slow" else "lossy"
    all_ports = {flow["port"] for flow in found["flows"]}
    named = {flow["port"] for flow in found["flows"] if kind in flow["class"].split(" and ")}
    if found["slow_share" if kind == "lossy" else "lossy_share"] is not None:
        yield f"{name}: the other kind of fault is named, too"
    truth &= all_ports
    wrong, missed = named - truth, truth - named
    if len(wrong) > _SPARE * max(1, len(named)) or len(missed) > _SPARE * len(truth):
        yield f"{name}: {len(named)} named, {len(truth)} bad, {len(wrong)} wrong, {len(missed)} missed"
    yield from _judge_share(case, name, kind, found, len(truth) / len(all_ports))


def _judge_dead(case: Case, document: dict[str, Any], truth: dict[str, set[int]]) -> Iterator[str]:
    """Yield what is wrong about a member that carries nothing in one direction."""
    silent = set(document["silent_ports"])
    dead = truth[case.direction.value]
    if len(silent ^ dead) > _SPARE * max(1, len(dead)):
        yield f"{len(silent)} silent, {len(dead)} on the dead member, {len(silent ^ dead)} differ"
    total = len(silent) + len(document["out"]["flows"])
    yield from _judge_share(case, "all", "silent", document, len(dead) / total)


def _judge_share(case: Case, name: str, kind: str, found: dict[str, Any], share: float) -> Iterator[str]:
    low, high, members = (found[f"{kind}_{each}"] for each in ("share_low", "share_high", "members"))
    if low is None or not low <= share <= high:
        yield f"{name}: a share of {share:.3f} is not within {low} to {high}"
    elif members not in {None, case.members}:
        yield f"{name}: 1 of {members} members"


def main() -> None:
    """Run the cases, and exit with 1 if too few are right."""
    require_root()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("--only", choices=(*KINDS, *UNTUNED), help="cases of this kind")
    parser.add_argument("--untuned", action="store_true", help="the kinds that were not used to tune")
    options = parser.parse_args()
    kinds = (options.only,) if options.only else UNTUNED if options.untuned else KINDS
    outcomes = run_cases(draw_cases(kinds, options.runs, options.seed), lambda case: case.kind, run_case)
    finish(outcomes, _LEAST_RIGHT, all_of="healthy")


if __name__ == "__main__":
    main()
