"""The log of a run: a line for each event that the user would want to know, with its time."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from linkgauge.engine.model.counters.session_counters import SocketInfo
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Changed, Ended, Event, Opened, Warned
from linkgauge.engine.model.expected_rate import Expectation
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.model.run_end import EndText, Reason, RunEnd
from linkgauge.engine.results.responsiveness.plan import responsiveness_plan
from linkgauge.tui.words.event_lines import EventLines
from linkgauge.tui.words.summary import end_words

from ...engine.results.log_entries import STARTED


def emitted(script: Any) -> list[Event]:
    """Return the events that a script has emitted since the last call."""
    events: list[Event] = []
    while True:
        try:
            events.append(script.queue.get_nowait())
        except asyncio.QueueEmpty:
            return events


def texts(log: EventLines) -> list[str]:
    """Return the lines as second, kind and text, with plain spaces."""
    return [f"{line.at_ns // 10**9} {line.kind} {line.text}".replace("\u00a0", " ") for line in log.lines]


async def test_a_run_is_told_from_its_connection_to_its_end(world: Any) -> None:
    """Changes in words, warnings as they are written, times since the start."""
    script = world.script_of(world.catalog.find("10gbe-1500"), Plan())
    script.run_for(12, 5e9)
    script.change_settings(script.settings.with_changes(sessions=5))
    script.emit(Warned("the far end\x1b[2J granted less"))
    script.run_for(12, 9e9)
    script.end()
    log = EventLines()
    for event in emitted(script):
        log.add_event(event)
    assert texts(log) == [
        "0 connection connected to db-02: Linux 6.12, 16 cores",
        "0 start started: out, 1 session, window auto, 10 s",
        "0 connection local: 1 session connected, cubic",
        "0 connection remote: 1 session connected, cubic",
        "1 phase warm-up over, measuring",
        "3 change changed to 5 sessions",
        "3 warning the far end [2J granted less",
        "4 phase warm-up over, measuring",
        "6 end completed: the duration was up",
    ]
    assert log.written == len(log.lines)


@pytest.mark.parametrize(
    ("end", "text"),
    [
        (RunEnd(Reason.COMPLETED, EndText.DURATION_UP.value), "completed"),
        (RunEnd(Reason.STOPPED, ""), "stopped"),
        (RunEnd(Reason.STOPPED, "stopped by a key"), "stopped by a key"),
        (RunEnd(Reason.PEER_LOST, "no word for 10 s"), "remote lost: no word for 10 s"),
    ],
)
def test_the_log_and_the_summary_say_the_end_alike(end: RunEnd, text: str) -> None:
    """And neither says it twice."""
    log = EventLines()
    log.add_event(Ended(end))
    assert [line.text for line in log.lines] == [end_words(end)] == [text]


@pytest.mark.parametrize("sessions", [1, 5, 128])
def test_sessions_opened_at_once_are_one_line_of_each_end(sessions: int) -> None:
    """With the smallest window that a kernel granted."""
    log = EventLines()
    for number in range(sessions):
        for end in End:
            log.add_event(Opened(SocketInfo(end, Direction.OUT, number, "cubic", 65_536, 1448, None, None, None)))
    log.add_event(Warned("something"))
    first, second, _ = texts(log)
    words = "1 session" if sessions == 1 else f"{sessions} sessions"
    assert first == f"0 connection local: {words} connected, cubic, window 64K"
    assert second.startswith(f"0 connection remote: {words}")


def test_the_log_is_bounded_and_counts_all_its_lines() -> None:
    """A run of days must not fill the memory."""
    log = EventLines()
    for number in range(2_000):
        log.add_event(Warned(f"warning {number}"))
    assert log.written == 2_000
    assert len(log.lines) == 500
    assert log.lines[-1].text == "warning 1999"


@pytest.mark.parametrize(
    ("detail", "text"),
    [("stopped by the user", "stopped by the user"), ("q was pressed", "stopped: q was pressed"), ("", "stopped")],
)
def test_the_end_of_a_run_does_not_repeat_its_reason(detail: str, text: str) -> None:
    """A detail that begins with the reason stands alone."""
    log = EventLines()
    log.add_event(Ended(RunEnd(Reason.STOPPED, detail)))
    assert texts(log) == [f"0 end {text}"]


def test_the_phases_of_a_responsiveness_test_are_told_from_changes_of_a_person() -> None:
    """And sessions that it adds have their reason."""
    plan = responsiveness_plan()
    log = EventLines()
    log.add_event(replace(STARTED, plan=plan))
    for at_s, settings in enumerate((Settings(Direction.OUT, 12), Settings(Direction.IN, 8)), start=3):
        log.add_event(Changed(at_s * SECOND_NS, settings, Expectation()))
    assert texts(log)[1:] == [
        "0 start started: responsiveness test, out, in and both ways, 8 sessions each way, at most 23 s",
        "0 phase phase 1/3 load out",
        "3 phase 12 sessions each way: the rate was not steady",
        "4 phase phase 2/3 load in, 8 sessions each way",
    ]
