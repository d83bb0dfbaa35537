"""Clients whose connections break at every state of a conversation, against a real endpoint.

Usage: .venv/bin/python stress/broken_connections.py [--sample] [--only TEXT] [--every N] [--log]

For each endpoint (keyed, open, or with TLS; on uvloop or asyncio) and each group of cases: runs of a real near
end, whose connections a relay breaks at the chosen moment and then holds open. After each group the endpoint must
hold as little as before, and serve a run. Prints a line for each group, and exits with 1 if something is left.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from itertools import count, product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from breaking_relay import (
    ACCESS,
    Break,
    BreakingRelay,
    BrokenRun,
    Damage,
    Kind,
    State,
    WatchedControl,
    before_send,
    open_breaking_relay,
)
from linkgauge.engine.control import tls as near_tls
from linkgauge.engine.host.event_loop import run
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import LinkgaugeError
from linkgauge.engine.model.events import Ended, Sampled
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near import connect as near_connect
from linkgauge.engine.near.run import open_run
from linkgauge.engine.protocol.preamble import DATA_HELLO_BYTES, PREAMBLE_BYTES
from observed_endpoint import ObservedEndpoint, observed_endpoint
from resources import Resources, resources_of

RELEASE_S = 30.0
CASE_S = 30.0
GROUP = 24
_DATA_S = 3.0
_MARGIN_KIB = 65_536
_TLS_HELLO_BYTES = 100

STATES = (
    State("no byte", after_bytes=0),
    State("half a greeting", after_bytes=PREAMBLE_BYTES // 2),
    State("greeting", after_bytes=PREAMBLE_BYTES),
    State("half of TLS's hello", after_bytes=_TLS_HELLO_BYTES),
    State("before Proof", message="Proof"),
    State("half of Proof", message="Proof", share=0.5),
    State("before Introduction", message="Introduction"),
    State("before Open", message="Open"),
    State("half of Open", message="Open", share=0.5),
    State("after Open", message="Open", share=1.0),
    State("before Start", message="Start"),
    State("after Start", message="Start", share=1.0),
    State("in a run", message="Sampled"),
    State("half of Stop", message="Stop", share=0.5),
    State("after Stop", message="Stop", share=1.0),
    State("while results come", message="Stopped", share=0.5),
    State("data: no byte", Kind.DATA, after_bytes=0),
    State("data: half a hello", Kind.DATA, after_bytes=PREAMBLE_BYTES + DATA_HELLO_BYTES // 2),
    State("data: hello", Kind.DATA, after_bytes=PREAMBLE_BYTES + DATA_HELLO_BYTES),
    State("data: in a run", Kind.DATA, message="Sampled"),
)
_PLAIN_ONLY = {"half a greeting", "greeting"}
_TLS_ONLY = {"half of TLS's hello"}
_KEYED_ONLY = {"before Proof", "half of Proof"}


class Case(BrokenRun):
    """A run whose client breaks a connection. Its other session may go on."""

    sessions = 2


def all_cases() -> Iterator[Case]:
    """Yield all states and damages of one workload at each endpoint, and every third of them of the others."""
    number = count()
    turns = list(product((Workload.RR, Workload.CRR, Workload.FETCH, Workload.STREAM), Direction))
    for access, loop in product(ACCESS, ("uvloop", "asyncio")):
        is_keyed, has_tls = ACCESS[access]
        left_out = (_PLAIN_ONLY if has_tls else _TLS_ONLY) | (set() if is_keyed else _KEYED_ONLY)
        states = [state for state in STATES if state.name not in left_out]
        for state, damage in product(states, Damage):
            yield Case(access, loop, state, damage, Workload.STREAM, Direction.OUT)
            turn = next(number)
            if turn % 3 == 0:
                yield Case(access, loop, state, damage, *turns[turn // 3 % len(turns)])


def sample() -> Iterator[Case]:
    """Yield a case of each state, with every damage, workload and direction among them."""
    ways = product(Direction, (Workload.STREAM, Workload.RR, Workload.CRR, Workload.FETCH), Damage)
    turns = list(ways)
    for number, state in enumerate(STATES):
        is_tls = state.name in _TLS_ONLY or (number % 3 == 2 and state.name not in _PLAIN_ONLY)
        access, loop = ("tls", "asyncio") if is_tls else ("keyed", "uvloop")
        direction, workload, damage = turns[number * 17 % len(turns)]  # coprime with each of their numbers
        yield Case(access, loop, state, damage, workload, direction)


async def _use(case: Case, relay: BreakingRelay, peer: Peer) -> str:
    """Carry out a run over a relay until its connection breaks; return how it ended."""
    note = relay.watch(case.state, End.NEAR if case.state.message != "Stopped" else End.FAR)

    def note_message(name: str) -> None:
        note(name)
        if name == "Stop":
            note("Stopped")

    before_send.set(note_message)
    try:
        async with open_run(case.plan, Peer(peer.host, relay.port, peer.access)) as near_run:
            async for event in near_run:
                if isinstance(event, Sampled) and event.sample.end is End.FAR:
                    note("Sampled")
                if isinstance(event, Ended):
                    return event.end.detail
    except LinkgaugeError as error:
        return str(error)
    return "no end"


async def _break(case: Case, relay: BreakingRelay, peer: Peer) -> str:
    """Break one connection; return what went wrong."""
    using = asyncio.create_task(_use(case, relay, peer))
    breaking = asyncio.create_task(relay.has_broken.wait())
    await asyncio.wait([using, breaking], timeout=CASE_S, return_when=asyncio.FIRST_COMPLETED)
    if not relay.has_broken.is_set():
        using.cancel()
        breaking.cancel()
        await asyncio.wait([using, breaking])
        how = "no end" if using.cancelled() else using.result()
        return f"{case}: nothing broke: {how}"
    # After the control connection the endpoint must notice by itself; after a data connection the run may go on.
    await asyncio.wait([using], timeout=0 if case.state.kind is Kind.CONTROL else _DATA_S)
    using.cancel()
    await asyncio.wait([using], timeout=CASE_S)
    return "" if using.done() else f"{case}: the near end did not end"


async def _honest_run(peer: Peer, workload: Workload) -> str:
    plan = Plan(Settings(), workload, duration_ns=SECOND_NS // 2, interval_ns=SECOND_NS // 4, workers=1)
    try:
        async with asyncio.timeout(CASE_S), open_run(plan, peer) as honest:
            async for event in honest:
                if isinstance(event, Ended) and event.end.reason is not Reason.COMPLETED:
                    return f"an honest run ended: {event.end.detail}"
    except (LinkgaugeError, TimeoutError) as error:
        return f"an honest run was not served: {type(error).__name__}: {error}"
    return ""


def _left(endpoint: ObservedEndpoint, before: Resources, log: list[str]) -> dict[str, int]:
    held, lines = endpoint.look()
    log += lines
    return {name: number for name, number in held.items() if number} | resources_of(endpoint.pid).excess_over(
        before, _MARGIN_KIB
    )


async def carry_out_group(endpoint: ObservedEndpoint, cases: list[Case], log: list[str]) -> tuple[float, list[str]]:
    """Break the connections of a group at once; return the seconds until nothing was left, and what went wrong."""
    endpoint.look()
    before = resources_of(endpoint.pid)
    async with AsyncExitStack() as stack:
        relays: list[BreakingRelay] = []
        for case in cases:
            planned = Break(case.state.kind, case.damage, case.state.after_bytes)
            target = (endpoint.peer.host, endpoint.peer.port)
            relays.append(await stack.enter_async_context(open_breaking_relay(target, End.FAR, planned)))
        attempts = (_break(case, relay, endpoint.peer) for case, relay in zip(cases, relays, strict=True))
        problems = [problem for problem in await asyncio.gather(*attempts) if problem]
        began = time.monotonic()
        # The relays hold their ends of all connections open: the endpoint must let go of its own.
        while (left := _left(endpoint, before, log)) and time.monotonic() < began + RELEASE_S:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        took_s = time.monotonic() - began
        if left:
            problems.append(f"LEFT: {left} after {', '.join(map(str, cases))}")
        problem = await _honest_run(endpoint.peer, Workload.RR)
        if problem:
            problems.append(problem)
    return took_s, problems


async def carry_out(cases: list[Case], log: list[str]) -> list[str]:
    """Break the connections of all cases, endpoint by endpoint; return what went wrong."""
    near_connect.ControlConnection = near_tls.ControlConnection = WatchedControl
    problems: list[str] = []
    for access, loop in dict.fromkeys((case.access, case.loop) for case in cases):
        own = [case for case in cases if (case.access, case.loop) == (access, loop)]
        is_keyed, has_tls = ACCESS[access]
        with observed_endpoint(loop, is_keyed=is_keyed, has_tls=has_tls) as endpoint:
            for workload in dict.fromkeys(case.workload for case in own):  # once before: everything is imported
                problems += filter(None, [await _honest_run(endpoint.peer, workload)])
            await asyncio.sleep(0.5)
            for start in range(0, len(own), GROUP):
                group = own[start : start + GROUP]
                took_s, found = await carry_out_group(endpoint, group, log)
                problems += found
                verdict = "; ".join(found) or "ok"
                print(
                    f"{access:6} {loop:8} {start + 1:4}-{start + len(group):<4} {took_s:5.1f} s  {verdict}",
                    flush=True,
                )
    return problems


def main() -> int:
    """Carry out the cases; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every Nth case only")
    parser.add_argument("--log", action="store_true", help="print what the endpoints logged, without repetitions")
    parser.add_argument("--sample", action="store_true", help="one case of each state only")
    options = parser.parse_args()
    cases = [case for case in (sample() if options.sample else all_cases()) if options.only in str(case)][
        :: options.every
    ]
    print(f"{len(cases)} cases; groups with the seconds until nothing was left", flush=True)
    log: list[str] = []
    problems = run(carry_out(cases, log))
    if options.log:
        print(*dict.fromkeys(log), sep="\n")
    print(f"{len(cases)} cases, {len(problems)} problems; {'NOT CLEAN' if problems else 'CLEAN'}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
