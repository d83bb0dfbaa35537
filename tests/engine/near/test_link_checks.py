"""What a person is told about windows the kernel did not grant: once for each end and buffer."""

import pytest
from linkgauge.engine.model.plan import Direction, End
from linkgauge.engine.model.socket_info import SocketInfo
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.near.link_checks import WindowCheck


def facts(end: End, direction: Direction, granted: int | None, session: int = 1) -> SocketInfo:
    """Return what a kernel granted a session."""
    return SocketInfo(end, direction, session, "cubic", granted, 1448, True, True, True)


@pytest.mark.parametrize(
    ("granted", "asked"), [(None, None), (None, 100), (100, None), (100, 100), (101, 100), (0, 0)]
)
def test_there_is_nothing_to_say_where_enough_was_granted_or_nothing_asked(
    granted: int | None, asked: int | None
) -> None:
    """What is unknown is no reason to warn either."""
    assert WindowCheck(Workload.STREAM).check(facts(End.NEAR, Direction.OUT, granted), asked) is None


@pytest.mark.parametrize(
    ("end", "direction", "buffer", "limit"),
    [
        (End.NEAR, Direction.OUT, "send", "net.core.wmem_max"),
        (End.NEAR, Direction.IN, "receive", "net.core.rmem_max"),
        (End.FAR, Direction.OUT, "receive", "net.core.rmem_max"),
        (End.FAR, Direction.IN, "send", "net.core.wmem_max"),
    ],
)
def test_a_smaller_window_is_told_with_the_limit_to_raise(
    end: End, direction: Direction, buffer: str, limit: str
) -> None:
    """The text names the end, both sizes and the command that helps."""
    text = WindowCheck(Workload.STREAM).check(facts(end, direction, 212_992), 4_194_304)
    assert text is not None
    assert f"the {end} end's kernel grants 212992 of 4194304 bytes as {buffer} buffer" in text
    assert f"sysctl -w {limit}=4194304" in text


def test_a_warning_is_given_once_for_each_end_and_buffer() -> None:
    """A hundred sessions with the same trouble are one trouble."""
    watch = WindowCheck(Workload.STREAM)
    told = [
        watch.check(facts(end, direction, 1, session), 2)
        for session in range(1, 101)
        for end in End
        for direction in (Direction.OUT, Direction.IN)
    ]
    assert len([text for text in told if text is not None]) == 4


def test_who_is_asked_sends_the_answers() -> None:
    """In a transaction out is asked by the near end: the payload's send buffer is the far end's."""
    text = WindowCheck(Workload.RR).check(facts(End.FAR, Direction.OUT, 212_992), 4_194_304)
    assert text
    assert "wmem_max" in text
