"""The background tasks of the cockpit: the messages of a run and of a query, and errors as messages."""

from typing import Any

import pytest
from linkgauge.engine.model.errors import PeerKeyRequired, PeerUnreachable, WorkerError
from linkgauge.engine.model.peer import Peer
from linkgauge.engine.model.plan import Plan
from linkgauge.tui.run.background_tasks import (
    EventArrived,
    FarAnswered,
    RepaintNeeded,
    RunEnded,
    RunOpened,
    StartFailed,
    follow_run,
    query_far_end,
)
from textual.message import Message

FAR = Peer("db-02")


async def test_a_run_posts_its_events_between_its_opening_and_its_end(world: Any) -> None:
    """The run is released before its end is posted."""
    preset = world.catalog.find("10gbe-fd-1500")
    messages: list[Message] = []

    def run_and_end(script: Any) -> None:
        script.run_for(8, 9e9)
        script.end()

    def post(message: Message) -> None:
        if isinstance(message, RunEnded):
            assert world.script.closed
        messages.append(message)

    world.on_start = run_and_end
    await follow_run(world, Plan(), preset, FAR, post)
    first, *events, last = messages
    assert isinstance(first, RunOpened)
    assert isinstance(last, RunEnded)
    assert len(events) > 8
    assert all(isinstance(event, EventArrived) for event in events)


async def test_a_refused_run_posts_only_its_failure(world: Any) -> None:
    """No error leaves the task."""
    world.refusal = PeerUnreachable("db-02:5820 refused the connection")
    messages: list[Any] = []
    await follow_run(world, Plan(), world.catalog.find("10gbe-fd-1500"), FAR, messages.append)
    (failure,) = messages
    assert isinstance(failure, StartFailed)
    assert "refused the connection" in failure.problem.text


async def test_a_query_posts_an_answer_or_a_failure(world: Any) -> None:
    """One message each."""
    messages: list[Message] = []
    await query_far_end(world, FAR, messages.append)
    world.refusal = PeerUnreachable("db-02:5820 cannot be reached")
    await query_far_end(world, FAR, messages.append)
    assert [type(message) for message in messages] == [FarAnswered, StartFailed]


@pytest.mark.parametrize(
    ("error", "status", "text", "wants_key"),
    [
        (PeerKeyRequired("a key is needed"), "NOT CONNECTED", "a key is needed", True),
        (PeerUnreachable("no route"), "NOT CONNECTED", "no route", False),
        (WorkerError("a worker ended"), "NOT STARTED", "a worker ended", False),
        (
            ValueError("by chance"),
            "NOT STARTED",
            "internal error (ValueError); set LINKGAUGE_LOG=FILE to log its details",
            False,
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_an_error_is_a_problem_of_the_far_end_or_of_the_run(
    error: Exception, status: str, text: str, *, wants_key: bool
) -> None:
    """The text of an unforeseen error has its type. Only a missing key opens the prompt."""
    failure = StartFailed.from_error(error)
    assert (failure.problem.status, failure.problem.text, failure.wants_key) == (status, text, wants_key)


def test_only_a_repaint_replaces_a_queued_repaint() -> None:
    """Events are never dropped."""
    assert RepaintNeeded().can_replace(RepaintNeeded())
    assert not RepaintNeeded().can_replace(FarAnswered(None))  # pyright: ignore[reportArgumentType]
