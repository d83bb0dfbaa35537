"""What a page may send."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.browser.page_messages import (
    DIRECTIONS,
    Hidden,
    JoinTest,
    Pong,
    StartTest,
    StopTest,
    Unopened,
    decode_message,
    encode,
)
from linkgauge.engine.model.errors import RemoteProtocolError

START = {"type": "start", "direction": "both", "sessions": 8, "seconds": 10, "preset": "auto"}


def test_each_message_is_read() -> None:
    """As the page's script writes it."""
    start = decode_message(json.dumps(START))
    assert start == StartTest(DIRECTIONS["both"], 8, 10, "auto")
    assert decode_message('{"type": "pong", "n": 7}') == Pong(7)
    assert decode_message('{"type": "stop"}') == StopTest()
    assert decode_message('{"type": "hidden", "more": 1}') == Hidden()
    assert decode_message('{"type": "join", "code": "483920"}') == JoinTest("483920")
    unopened = decode_message('{"type": "unopened", "flow": "up", "n": 8, "g": 12}')
    assert unopened == Unopened(DIRECTIONS["up"], 8, 12)
    assert isinstance(start, StartTest)
    plan = start.plan()
    assert (plan.settings.sessions, plan.probe) == (8, True)
    assert json.loads(encode("ping", n=3)) == {"type": "ping", "n": 3}


@pytest.mark.parametrize(
    ("name", "value"),
    [("direction", "duplex"), ("sessions", 0), ("sessions", 9), ("sessions", True), ("sessions", 1.5),
     ("seconds", 2), ("seconds", 61), ("seconds", "10"), ("preset", "x" * 65), ("preset", None), ("type", "open")],
)  # fmt: skip
def test_a_test_that_the_page_does_not_offer_is_an_error(name: str, value: object) -> None:
    """Somebody else's script has sent it."""
    with pytest.raises(RemoteProtocolError):
        decode_message(json.dumps({**START, name: value}))


@pytest.mark.parametrize(
    "message",
    [{"type": "join", "code": "x" * 65}, {"type": "join", "code": 483920},
     *({"type": "unopened", "flow": "up", "n": 1, "g": 0, name: value}
       for name, value in (("flow", "both"), ("n", 0), ("n", 9), ("g", -1), ("g", 10**7), ("n", 1.0)))],
)  # fmt: skip
def test_a_join_and_a_connection_have_bounds(message: dict[str, object]) -> None:
    """Longer and larger ones are errors."""
    with pytest.raises(RemoteProtocolError):
        decode_message(json.dumps(message))


@given(st.text(max_size=3_000) | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(json.dumps))
def test_any_other_text_is_an_error(text: str) -> None:
    """And nothing else happens."""
    with pytest.raises(RemoteProtocolError):
        decode_message(text)
