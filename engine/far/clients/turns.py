"""The turns of an endpoint's tests: which may run side by side, which wait, and what the others carry.

A test has a turn from the moment its plan is accepted until its end. An exclusive test has it alone, and so has
each test of an exclusive endpoint. Waiting tests get their turns in the order in which they came. They do not hold
up a test that may run meanwhile.
"""

import asyncio
import math
import time
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from ...model.counters.samples import OtherTests
from ...model.errors import EndpointBusy, RequestDeclined
from ...model.plan import SECOND_NS, Plan
from .admitted_client import AdmittedClient
from .current_run import CurrentRun

# A slow test may pause and still carry payload: iperf3 sends 128 KiB at once, at any rate.
_PAUSE_NS: Final = 30 * SECOND_NS
_RECENT_NS: Final = 3 * SECOND_NS
_PAUSES_PER_READING: Final = (
    20  # so that reading takes a twentieth of the time at most, however many tests there are
)


class _Seen(NamedTuple):
    """The payload of a run so far, and when it last moved."""

    sessions: int
    received_bytes: int
    sent_bytes: int
    moved_ns: int | None

    def as_tests(self, now_ns: int) -> OtherTests:
        """Return it as one test if it carries payload, with all of its bytes."""
        is_there = self.moved_ns is not None and now_ns - self.moved_ns <= _PAUSE_NS
        return OtherTests(is_there, self.sessions if is_there else 0, self.received_bytes, self.sent_bytes)


_UNSEEN: Final = _Seen(0, 0, 0, None)


class Tally:
    """What all tests of an endpoint have carried so far, from the counters that their own samples come from."""

    def __init__(self, runs: Callable[[], Iterable[CurrentRun]]) -> None:
        self._runs = runs
        self._seen: dict[CurrentRun, _Seen] = {}
        self._ended = self._total = OtherTests()
        self._read_ns = self._expires_ns = 0

    def add_ended(self, run: CurrentRun) -> None:
        """Add the bytes of a run that is about to end."""
        status = run.get_status()
        self._seen.pop(run, None)
        self._ended = _add(self._ended, OtherTests(0, 0, status.received_bytes, status.sent_bytes))
        self._expires_ns = 0

    def read_beside(self, own: CurrentRun | None, *, is_first: bool = False) -> OtherTests:
        """Return what the others have carried so far.

        The first reading after a while does not tell whether those bytes still move.
        """
        now_ns = time.monotonic_ns()
        if now_ns >= self._expires_ns:
            self._read(now_ns, marks_moved=not is_first or now_ns - self._read_ns < _RECENT_NS)
        seen = None if own is None else self._seen.get(own)
        return self._total if seen is None else _subtract(self._total, seen.as_tests(self._read_ns))

    def _read(self, now_ns: int, *, marks_moved: bool) -> None:
        seen: dict[CurrentRun, _Seen] = {}
        total = self._ended
        for run in self._runs():
            status, before = run.get_status(), self._seen.get(run, _UNSEEN)
            received, sent = status.received_bytes, status.sent_bytes
            has_moved = received + sent > before.received_bytes + before.sent_bytes
            moved_ns = now_ns if has_moved and marks_moved else before.moved_ns
            seen[run] = _Seen(status.settings.sessions, received, sent, moved_ns)
            total = _add(total, seen[run].as_tests(now_ns))
        self._seen, self._total, self._read_ns = seen, total, now_ns
        end_ns = time.monotonic_ns()
        self._expires_ns = end_ns + _PAUSES_PER_READING * (end_ns - now_ns)


def _add(first: OtherTests, second: OtherTests) -> OtherTests:
    return OtherTests(
        first.tests + second.tests,
        first.sessions + second.sessions,
        first.received_bytes + second.received_bytes,
        first.sent_bytes + second.sent_bytes,
    )


def _subtract(whole: OtherTests, part: OtherTests) -> OtherTests:
    return OtherTests(
        whole.tests - part.tests,
        whole.sessions - part.sessions,
        whole.received_bytes - part.received_bytes,
        whole.sent_bytes - part.sent_bytes,
    )


class OtherTestsReader:
    """Reads what the other tests carry beside one."""

    def __init__(self, tally: Tally, client: AdmittedClient) -> None:
        self._tally, self._client = tally, client
        self._before = tally.read_beside(client.run, is_first=True)

    def take(self) -> OtherTests:
        """Return what they carried since the last call."""
        before, now = self._before, self._tally.read_beside(self._client.run)
        self._before = now
        carried = (now.received_bytes - before.received_bytes, now.sent_bytes - before.sent_bytes)
        return OtherTests(now.tests, now.sessions, *carried)


class Turn:
    """The turn of one test. You must call `end` once it is over; later calls have no effect."""

    def __init__(self, turns: "Turns", client: AdmittedClient) -> None:
        self._turns, self._client = turns, client

    def read_others(self) -> OtherTestsReader:
        """Return a reader of the other tests from now on."""
        return OtherTestsReader(self._turns.tally, self._client)

    def end(self) -> None:
        """Give the turn back, and start the tests that wait for it."""
        self._turns.release(self._client)


class Turns:
    """The turns of an endpoint; set `is_exclusive` to have one test at a time."""

    def __init__(self) -> None:
        self.is_exclusive = False
        self._held: dict[AdmittedClient, Plan] = {}
        self._waiting: dict[AdmittedClient, tuple[Plan, asyncio.Future[None]]] = {}
        self.tally = Tally(lambda: [client.run for client in self._held if client.run is not None])

    async def take(self, client: AdmittedClient, plan: Plan) -> Turn:
        """Return a turn for a test, after as long a wait as its plan allows; raise EndpointBusy without one."""
        if not self._blockers(plan):
            self._held[client] = plan
            return Turn(self, client)
        if not plan.wait_ns:
            raise self._busy_error(client, plan)
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[client] = (plan, granted)
        try:
            await asyncio.wait({granted}, timeout=plan.wait_ns / SECOND_NS)
            self._check_granted(client, plan, granted)
        except BaseException:
            self.release(client)
            raise
        finally:
            self._waiting.pop(client, None)
        return Turn(self, client)

    def _check_granted(self, client: AdmittedClient, plan: Plan, granted: asyncio.Future[None]) -> None:
        """Raise the error of a turn that was not granted."""
        if not granted.done():
            raise self._busy_error(client, plan, f" (waited {plan.wait_ns / SECOND_NS:g} s)")
        granted.result()

    def release(self, client: AdmittedClient) -> None:
        """Take a client's turn back, if it has one, and give turns to waiting tests that may run now."""
        self._waiting.pop(client, None)
        if self._held.pop(client, None) is None:
            return
        if client.run is not None:
            self.tally.add_ended(client.run)
        for other, (plan, granted) in list(self._waiting.items()):
            if not granted.done() and not self._blockers(plan):
                self._held[other] = plan
                granted.set_result(None)

    def close(self, reason: str) -> None:
        """Refuse the tests that wait."""
        for _, granted in self._waiting.values():
            if not granted.done():
                granted.set_exception(RequestDeclined(reason))

    def _blockers(self, plan: Plan) -> dict[AdmittedClient, Plan]:
        """Return the clients whose tests a plan may not run beside."""
        is_alone = plan.exclusive or self.is_exclusive
        return {client: other for client, other in self._held.items() if is_alone or other.exclusive}

    def _busy_error(self, client: AdmittedClient, plan: Plan, waited: str = "") -> EndpointBusy:
        blockers = self._blockers(plan)
        if not blockers:  # the last one has just ended
            return EndpointBusy(f"busy until now; try again{waited}", 0)
        tests = f"{len(blockers)} other test{'s' if len(blockers) > 1 else ''}"
        if any(other.exclusive for other in blockers.values()):
            tests = "a test that has the endpoint for itself"
        elif self.is_exclusive:
            tests = "another test, and has one at a time"
        left_s = max(_left_s(client, other) for client, other in blockers.items())
        free_in_s = None if left_s == math.inf else round(left_s)
        until = "" if free_in_s is None else f", for {free_in_s} s more at most"
        # Other programs cannot wait: iperf3 and the page of a browser.
        wait = "" if client.software else ", or wait for a turn with --wait"
        text = f"busy with {tests}{until}; try again later{wait}{waited}"
        return EndpointBusy(text, free_in_s)


def _left_s(client: AdmittedClient, plan: Plan) -> float:
    """Return for how many whole seconds a test still lasts at most."""
    elapsed_ns = 0 if client.run is None else client.run.get_status().elapsed_ns
    return math.inf if plan.duration_ns is None else max(0, -((elapsed_ns - plan.duration_ns) // SECOND_NS))
