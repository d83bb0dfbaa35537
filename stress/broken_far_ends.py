"""Far ends whose connections break at every state of a conversation, against a real near end.

Usage: .venv/bin/python stress/broken_far_ends.py [--sample] [--only TEXT]

A relay breaks one connection of a real endpoint at the chosen moment and then holds it open. The near end must end
in time, with a reason that a person can read, and leave neither a worker nor a descriptor behind. Each case runs in
this process; some run the command line as well, which must have saved a run that had begun. Prints each different
text once, and exits with 1 if something was wrong.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import asyncio
import contextlib
import gc
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count, product
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from breaking_relay import (
    ACCESS,
    Break,
    BrokenRun,
    Damage,
    Kind,
    State,
    WatchedControl,
    before_send,
    open_breaking_relay,
)
from endpoint_under_test import make_certificate
from linkgauge.engine.control.tls import Certificate
from linkgauge.engine.far import endpoint as far_endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.errors import LinkgaugeError, PeerError
from linkgauge.engine.model.events import Ended, Warned
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.shared_key import Access, SharedKey
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.run import open_run
from linkgauge.engine.protocol.preamble import PREAMBLE_BYTES
from observed_endpoint import LOOPS
from processes import worker_pids

END_S = 45.0  # a test of 15 s, 10 s for its end, and 10 s until the far end gives up the connection
COMMAND_S = 150.0  # on a busy machine, starting an interpreter takes seconds
AT_ONCE = 12
COMMANDS_AT_ONCE = 3
_RELEASE_S = 10.0
_NOT_RUN = 3  # exit status
_BEFORE, _DURING, _AFTER = "before the test", "during the test", "at its end"

STATES = (
    State("accepts", after_bytes=0),
    State("half a greeting", after_bytes=PREAMBLE_BYTES // 2),
    State("greeting", after_bytes=PREAMBLE_BYTES),
    State("before Welcome", message="Welcome"),
    State("half of Welcome", message="Welcome", share=0.5),
    State("before Ready", message="Ready"),
    State("half of Ready", message="Ready", share=0.5),
    State("before Begun", message="Begun"),
    State("in a run", message="Report", number=3),
    State("half of a Report", message="Report", number=3, share=0.5),
    State("before Finish", message="Finish"),
    State("half of Finish", message="Finish", share=0.5),
    State("data: accepts", Kind.DATA, after_bytes=0),
    State("data: its first byte", Kind.DATA, after_bytes=1),
    State("data: in a run", Kind.DATA, message="Report", number=3),
)
_DURING_STATES = {"in a run", "half of a Report", "data: its first byte", "data: in a run"}
_AFTER_STATES = {"before Finish", "half of Finish"}
_COMMAND_STATES = {"accepts", "before Welcome", "before Ready", "in a run", "before Finish", "data: accepts"}


@dataclass(frozen=True)
class Case(BrokenRun):
    """A run whose far end breaks a connection. With `is_command` the near end is the command line."""

    is_command: bool = False

    def __str__(self) -> str:
        return f"{super().__str__()} {'command' if self.is_command else 'engine'}"

    @property
    def moment(self) -> str:
        """When the connection breaks: before, during or after the test."""
        if self.state.name in _DURING_STATES:
            return _DURING
        return _AFTER if self.state.name in _AFTER_STATES else _BEFORE

    @property
    def is_muted(self) -> bool:
        """Whether the near end must find out by itself that nothing comes any more."""
        return self.damage in {Damage.SILENCE, Damage.GARBAGE}

    @property
    def seconds(self) -> float:
        """The length of the test: it must not be over before silence is noticed."""
        if self.moment is not _DURING:
            return 0.5
        return 15.0 if self.state.kind is Kind.CONTROL else 3.0


@dataclass
class Outcome:
    """How a near end ended: its reason, or None if no test was run, and what it said."""

    reason: Reason | None
    text: str
    warnings: list[str]


def all_cases() -> Iterator[Case]:
    """Yield all states and damages of one workload, on both loops; the others in turn; some by the command line."""
    turns = list(product((Workload.RR, Workload.FETCH, Workload.CRR), (Direction.OUT, Direction.IN)))
    number = count()
    for access, loop in product(ACCESS, LOOPS):
        for state, damage in product(STATES, Damage):
            yield Case(access, loop, state, damage, Workload.STREAM, Direction.IN)
            turn = next(number)
            if turn % 4 == 0:
                yield Case(access, loop, state, damage, *turns[turn // 4 % len(turns)])
    for access, state, damage in product(ACCESS, STATES, (Damage.RESET, Damage.SILENCE)):
        if state.name in _COMMAND_STATES:
            yield Case(access, "uvloop", state, damage, Workload.STREAM, Direction.IN, is_command=True)


def sample() -> Iterator[Case]:
    """Yield a case of each state; silences that take 15 s and more are left to all cases."""
    ways = [Damage.RESET, Damage.HALF_CLOSE, Damage.CLOSE_UNREAD, Damage.GARBAGE]
    for number, state in enumerate(STATES):
        is_slow = state.name in {"before Ready", "half of Ready", "before Begun", "data: accepts"}
        damage = ways[number % (3 if is_slow else 4)]
        access = ("keyed", "tls", "open")[number % 3]
        yield Case(access, "uvloop", state, damage, Workload.STREAM, Direction.IN)
    by_name = {state.name: state for state in STATES}
    for access, name in (("keyed", "before Welcome"), ("tls", "in a run")):
        yield Case(access, "uvloop", by_name[name], Damage.RESET, Workload.STREAM, Direction.IN, is_command=True)


@asynccontextmanager
async def broken_far_end(case: Case, key: SharedKey, certificate: Certificate) -> AsyncGenerator[Peer]:
    """Run an endpoint behind a relay that breaks its connection; yield what the near end connects to."""
    is_keyed, has_tls = ACCESS[case.access]
    own_key, own_certificate = key if is_keyed else None, certificate if has_tls else None
    listener = listen("127.0.0.1", 0)
    planned = Break(case.state.kind, case.damage, case.state.after_bytes)
    async with open_breaking_relay(listener.getsockname(), End.NEAR, planned) as relay:
        before_send.set(relay.watch(case.state, End.FAR))
        own_keys = None if own_key is None else [own_key]
        async with far_endpoint.Endpoint(listener, keys=own_keys, certificate=own_certificate):
            fingerprint = certificate.fingerprint if has_tls else None
            yield Peer("127.0.0.1", relay.port, Access(own_key, fingerprint=fingerprint))
        if not relay.has_broken.is_set():
            raise RuntimeError("nothing broke")


async def _run_engine(case: Case, peer: Peer) -> Outcome:
    warnings: list[str] = []
    try:
        async with open_run(case.plan, peer) as near_run:
            async for event in near_run:
                if isinstance(event, Warned):
                    warnings.append(event.text)
                if isinstance(event, Ended):
                    return Outcome(event.end.reason, event.end.detail, warnings)
    except PeerError as error:
        return Outcome(None, str(error), warnings)
    raise RuntimeError("a run without an end")


async def _run_command(case: Case, peer: Peer) -> Outcome:
    """Carry out `linkgauge run`; return how it ended, and raise RuntimeError if status, output or log differ."""
    access = peer.access or Access()
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "LINKGAUGE_DATA_DIR": folder, "LINKGAUGE_CONFIG_DIR": folder}
        if access.key is not None:
            environment["LINKGAUGE_KEY"] = access.key.reveal()
        tls = [] if access.fingerprint is None else ["--tls-fingerprint", access.fingerprint.hex()]
        options = ["--json", "--seconds", f"{case.seconds:g}", "--interval", "100ms", "--direction", "in"]
        options += ["--rate", "20M", "--warmup", "0", *tls]
        status, out, err = await _linkgauge(["check", str(peer), *options], environment)
        _status, rows, _err = await _linkgauge(["runs", "list", "--json"], environment)
    saved = json.loads(rows)
    if "Traceback" in err or status != _NOT_RUN:
        raise RuntimeError(f"status {status}: {err[-600:]}")
    if case.moment is _BEFORE:
        lines = [line for line in err.splitlines() if not line.startswith("linkgauge: preset ")]
        if out or len(lines) != 1 or saved:
            raise RuntimeError(f"not one line of error: {out!r} {err!r}, saved {saved}")
        return Outcome(None, lines[0], [])
    end = json.loads(out)["ended"]
    if [row["ended"]["reason"] for row in saved] != [end["reason"]]:
        raise RuntimeError(f"saved as {saved}")
    return Outcome(Reason(end["reason"]), end["detail"], json.loads(out)["warnings"])


async def _linkgauge(arguments: list[str], environment: dict[str, str]) -> tuple[int, str, str]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "linkgauge", *arguments), env=environment, stdout=pipe, stderr=pipe
    )
    try:
        out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    return process.returncode or 0, out.decode(), err.decode()


def _is_usual_for_connections(case: Case, reason: Reason | None) -> bool:
    """Return whether a workload that opens connections may end so: crr agrees on a listener before the test.

    Its transactions go on by connections of their own, and are signs of life for half a minute.
    """
    if not case.workload.opens_connections or case.moment is not _DURING:
        return False
    if case.state.name == "data: its first byte" and reason is None:
        return True
    return case.is_muted and reason is Reason.COMPLETED


def _problems(case: Case, outcome: Outcome) -> Iterator[str]:
    """Yield what is wrong with the end of a near end."""
    reason, text = outcome.reason, outcome.text
    if "\N{REPLACEMENT CHARACTER}" in text or not text.isprintable() or re.search(r"Errno|0x|Error\(|_ssl", text):
        yield "a text that nobody can read"
    if _is_usual_for_connections(case, reason):
        return
    yield from _problems_of_end(case, outcome)


def _problems_of_end(case: Case, outcome: Outcome) -> Iterator[str]:
    reason, text = outcome.reason, outcome.text
    if case.moment is _BEFORE:
        if reason is not None:
            yield f"it ended with {reason}"
        elif "; " not in text or "127.0.0.1" not in text:
            yield "a text without the place, or without what to do"
    elif case.moment is _AFTER or case.state.kind is Kind.CONTROL:
        if reason is not Reason.PEER_LOST:
            yield f"it ended with {reason}"
    elif not case.is_muted and case.direction is Direction.IN and reason is not Reason.SESSION_LOST:
        yield f"it ended with {reason}"


async def _carry_out(case: Case, key: SharedKey, certificate: Certificate) -> tuple[str, list[str]]:
    """Carry a case out; return what the near end said, and what went wrong."""
    began = time.monotonic()
    try:
        async with asyncio.timeout(COMMAND_S if case.is_command else END_S):
            async with broken_far_end(case, key, certificate) as peer:
                outcome = await (_run_command if case.is_command else _run_engine)(case, peer)
                problems = list(_problems(case, outcome))
                text = re.sub(rf":{peer.port}\b", ":PORT", outcome.text)
    except (TimeoutError, RuntimeError, LinkgaugeError, ValueError, KeyError) as error:
        return "", [f"{case}: {type(error).__name__}: {error} after {time.monotonic() - began:.1f} s"]
    return text, [f"{case}: {problem}: {text}" for problem in problems]


def _descriptors() -> int:
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir()))


async def carry_out(cases: list[Case]) -> tuple[list[str], list[str]]:
    """Carry cases out, several at a time; return the texts, and what went wrong."""
    far_endpoint.ControlConnection = WatchedControl
    with tempfile.TemporaryDirectory() as folder:
        certificate = Certificate.load(*make_certificate(Path(folder)))
    key = SharedKey.generate()
    engines, commands = asyncio.Semaphore(AT_ONCE), asyncio.Semaphore(COMMANDS_AT_ONCE)

    async def take_turn(case: Case) -> tuple[str, list[str]]:
        async with commands if case.is_command else engines:
            return await _carry_out(case, key, certificate)

    await take_turn(cases[0])  # libuv opens its reserve descriptor with the first stream of a loop
    before = _descriptors()
    outcomes = await asyncio.gather(*map(take_turn, cases))
    problems = [problem for _text, found in outcomes for problem in found]
    deadline = time.monotonic() + _RELEASE_S
    while (  # noqa: ASYNC110 - only looking tells
        left := (worker_pids(os.getpid()), _descriptors() - before)
    ) > ([], 0) and time.monotonic() < deadline:
        await asyncio.sleep(0.1)
    if left > ([], 0):
        problems.append(f"LEFT: workers {left[0]}, {left[1]} descriptors")
    return [text for text, _found in outcomes if text], problems


def main() -> int:
    """Carry out the cases; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name has this text")
    parser.add_argument("--sample", action="store_true", help="one case of each state only")
    options = parser.parse_args()
    cases = [case for case in (sample() if options.sample else all_cases()) if options.only in str(case)]
    texts: dict[str, None] = {}
    problems: list[str] = []
    for loop, factory in LOOPS.items():
        own = [case for case in cases if case.loop == loop]
        if not own:
            continue
        began = time.monotonic()
        with asyncio.Runner(loop_factory=factory) as runner:
            said, found = runner.run(carry_out(own))
        texts.update(dict.fromkeys(said))
        problems += found
        print(f"{loop:8} {len(own):4} cases {time.monotonic() - began:6.1f} s  {len(found)} problems", flush=True)
    print(*sorted(texts), *problems, sep="\n")
    print(f"{len(cases)} cases, {len(problems)} problems; {'NOT CLEAN' if problems else 'CLEAN'}")
    return 1 if problems else 0


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
