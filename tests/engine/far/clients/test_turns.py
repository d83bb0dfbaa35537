"""Which tests run side by side at an endpoint, which wait, and what the others carry."""

import asyncio
from dataclasses import replace

import pytest
from linkgauge.engine.far.clients import turns as turns_module
from linkgauge.engine.far.clients.admitted_client import AdmittedClient
from linkgauge.engine.far.clients.current_run import CurrentRun
from linkgauge.engine.far.clients.turns import Turn, Turns
from linkgauge.engine.far.status import RunStatus
from linkgauge.engine.model.counters.samples import OtherTests
from linkgauge.engine.model.errors import EndpointBusy, RequestDeclined
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings

PLAN = Plan(duration_ns=10 * SECOND_NS)
EXCLUSIVE = Plan(duration_ns=10 * SECOND_NS, exclusive=True)
PATIENT = Plan(duration_ns=10 * SECOND_NS, exclusive=True, wait_ns=3_600 * SECOND_NS)


@pytest.fixture(autouse=True)
def readings_at_any_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each reading be a new one, however soon it comes after the last."""
    monkeypatch.setattr(turns_module, "_PAUSES_PER_READING", 0)


class CountedRun(CurrentRun):
    """A run whose counts a test sets."""

    awaited_connections = 0

    def __init__(self, sessions: int = 1) -> None:
        super().__init__(replace(PLAN, settings=Settings(sessions=sessions)))
        self.received, self.sent, self.ran_ns = 0, 0, 0

    def get_status(self) -> RunStatus:
        """Return them."""
        plan = self._plan
        return RunStatus(plan.workload, plan.settings, plan.duration_ns, self.ran_ns, self.received, self.sent)


def client(run: CountedRun | None = None) -> AdmittedClient:
    """Return an admitted client."""
    admitted = AdmittedClient(1, "192.0.2.1", 0)
    admitted.run = run
    return admitted


async def begin_waiting(turns: Turns, plan: Plan) -> "asyncio.Task[Turn]":
    """Let another client ask for a turn that it does not get yet."""
    task = asyncio.create_task(turns.take(client(), plan))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not task.done()
    return task


async def test_a_reader_counts_what_the_others_carry_between_two_calls() -> None:
    """Its own test is not among them, nor one that has carried nothing."""
    turns, own, other, idle = Turns(), CountedRun(), CountedRun(sessions=2), CountedRun()
    turn = await turns.take(client(own), PLAN)
    await turns.take(client(other), PLAN)
    await turns.take(client(idle), PLAN)
    other.received = 5_000
    reader = turn.read_others()
    assert reader.take() == OtherTests()  # earlier bytes do not mean that it still carries any
    own.received, other.received, other.sent = 99, 6_000, 30
    assert reader.take() == OtherTests(1, 2, 1_000, 30)
    assert reader.take() == OtherTests(1, 2, 0, 0)  # a slow test moves nothing for a moment


async def test_a_test_that_begins_is_counted_from_its_start_and_one_that_ends_to_its_end() -> None:
    """All bytes of a new one came since the last call."""
    turns, other = Turns(), CountedRun()
    reader = (await turns.take(client(), PLAN)).read_others()
    turn = await turns.take(client(other), PLAN)
    other.sent = 700
    assert reader.take() == OtherTests(1, 1, 0, 700)
    other.sent = 900
    turn.end()
    assert reader.take() == OtherTests(0, 0, 0, 200)
    assert reader.take() == OtherTests()


async def test_many_tests_are_not_read_anew_for_each_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Soon after one reading the next one is the same: no byte is lost, it is counted a little later."""
    monkeypatch.setattr(turns_module, "_PAUSES_PER_READING", 10**9)
    turns, other = Turns(), CountedRun()
    reader = (await turns.take(client(), PLAN)).read_others()
    turn = await turns.take(client(other), PLAN)
    other.sent = 700
    assert reader.take() == OtherTests()
    turn.end()
    assert reader.take() == OtherTests(0, 0, 0, 700)


async def test_tests_run_side_by_side_until_one_has_the_endpoint_for_itself() -> None:
    """It gets no turn beside others, and others get none beside it."""
    turns = Turns()
    first, second = [await turns.take(client(), PLAN) for _ in range(2)]
    with pytest.raises(EndpointBusy, match=r"busy with 2 other tests, for 10 s more at most"):
        await turns.take(client(), EXCLUSIVE)
    first.end()
    second.end()
    second.end()
    exclusive = await turns.take(client(), EXCLUSIVE)
    for plan in (PLAN, EXCLUSIVE):
        with pytest.raises(EndpointBusy, match="busy with a test that has the endpoint for itself"):
            await turns.take(client(), plan)
    exclusive.end()
    await turns.take(client(), PLAN)


async def test_an_exclusive_endpoint_has_one_test_at_a_time() -> None:
    """It says for how long the current one lasts at most, if that is known."""
    turns, run = Turns(), CountedRun()
    turns.is_exclusive = True
    run.ran_ns = 7_500_000_000
    turn = await turns.take(client(run), PLAN)
    with pytest.raises(EndpointBusy, match="busy with another test, and has one at a time, for 3 s more at most"):
        await turns.take(client(), PLAN)
    turn.end()
    await turns.take(client(), Plan(duration_ns=None))
    with pytest.raises(EndpointBusy, match="one at a time; try again later"):
        await turns.take(client(), PLAN)


async def test_those_that_wait_get_their_turns_in_order() -> None:
    """A test that is given up, or whose client leaves, does not hold up others."""
    turns = Turns()
    turn = await turns.take(client(), PLAN)
    first, second, third = [await begin_waiting(turns, PATIENT) for _ in range(3)]
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    beside = await turns.take(client(), PLAN)  # an ordinary test has a turn beside an ordinary one
    turn.end()
    await asyncio.sleep(0)
    assert not first.done()
    beside.end()
    (await first).end()
    await third
    with pytest.raises(EndpointBusy):
        await turns.take(client(), PLAN)


async def test_a_wait_ends_at_its_deadline() -> None:
    """With the reason, and with how long it was."""
    turns = Turns()
    await turns.take(client(), PLAN)
    with pytest.raises(EndpointBusy, match=r"busy with 1 other test, .* \(waited 0.01 s\)"):
        await turns.take(client(), Plan(exclusive=True, wait_ns=SECOND_NS // 100))


async def test_those_that_wait_are_refused_when_the_endpoint_stops() -> None:
    """They learn why."""
    turns = Turns()
    await turns.take(client(), PLAN)
    waiting = await begin_waiting(turns, PATIENT)
    turns.close("the endpoint is shutting down")
    with pytest.raises(RequestDeclined, match="the endpoint is shutting down"):
        await waiting


async def test_a_busy_endpoint_advises_only_its_own_clients_to_wait() -> None:
    """A page and an iperf3 have no such option."""
    turns, browser = Turns(), client()
    browser.software = "browser Chrome 156"
    await turns.take(client(CountedRun()), PLAN)
    with pytest.raises(EndpointBusy, match=r"try again later, or wait for a turn with --wait$"):
        await turns.take(client(), EXCLUSIVE)
    with pytest.raises(EndpointBusy, match=r"try again later$"):
        await turns.take(browser, EXCLUSIVE)
