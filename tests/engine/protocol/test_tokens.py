"""Tokens of data connections: each opens one connection, and others none."""

import itertools

from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.protocol.tokens import (
    TICKET_BYTES,
    TOKEN_BYTES,
    WINDOW_SERIALS,
    RunSecret,
    SerialTokens,
    SerialWindow,
    TicketCheck,
    Tickets,
)


def test_each_connection_of_each_run_has_a_token_of_its_own() -> None:
    """Direction, session, generation, window, serial, run, plan and key all count."""
    secrets = [
        RunSecret(agreed, received, plan)
        for agreed in (b"", b"x" * 32)
        for received in (b"run 1", b"run 2")
        for plan in (b"plan 1", b"plan 2")
    ]
    tokens = [
        Tickets(secret.session_secret(direction, session, generation, window)).token(serial)
        for secret, direction, session, generation, window, serial in itertools.product(
            secrets, ("out", "in"), (1, 2), (0, 1), (None, 65_536), (0, 1, 2)
        )
    ]
    names = [secret.run_tag for secret in secrets]
    assert len({*tokens, *names}) == len(tokens) + len(names)
    assert {len(token) for token in tokens} == {TOKEN_BYTES}


def test_a_token_opens_one_connection() -> None:
    """A second one with it is refused, and so is a token for another connection."""
    secret = RunSecret(b"agreed", b"told", b"plan")
    gate = TicketCheck(secret)
    token = Tickets(secret.session_secret("out", 1, 3, None)).token(0)
    for wrong in (
        ("in", 1, 3, None),
        ("out", 2, 3, None),
        ("out", 1, 4, None),
        ("out", 1, 2, None),
        ("out", 1, 3, 65_536),
    ):
        assert gate.check(*wrong, token) is None
    assert gate.check("out", 1, 3, None, bytes(TOKEN_BYTES)) is None
    assert gate.check("out", 1, 3, None, token) == secret.session_secret("out", 1, 3, None)
    assert gate.check("out", 1, 3, None, token) is None


def test_a_token_of_settings_that_were_left_behind_is_as_good_as_used() -> None:
    """A newer one of the same session is good, and other sessions have their own."""
    secret = RunSecret(b"agreed", b"told", b"plan")
    gate = TicketCheck(secret)

    def try_to_open(session: int, generation: int) -> bool:
        token = Tickets(secret.session_secret("in", session, generation, None)).token(0)
        return gate.check("in", session, generation, None, token) is not None

    assert [try_to_open(1, 2), try_to_open(1, 1), try_to_open(2, 1), try_to_open(1, 3)] == [True, False, True, True]


def test_the_token_of_a_serial_is_good_once_in_any_order_and_however_far_ahead() -> None:
    """Connections overtake each other, and some never arrive."""
    asker, answerer = Tickets(b"one"), SerialTokens(b"one")
    assert [answerer.redeem(serial, asker.token(serial)) for serial in (3, 1, 2, 900, 899, 3, 900, 2**31)] == [
        *(True, True, True, True),
        *(True, False, False, True),
    ]
    assert not answerer.redeem(0, asker.token(0))  # the session's own connection's
    assert not answerer.redeem(-1, bytes(TOKEN_BYTES))
    assert not answerer.redeem(2**31 + 1, asker.token(5))
    assert not answerer.redeem(2**31 + 1, Tickets(b"two").token(2**31 + 1))
    assert answerer.redeem(2**31 + 1, asker.token(2**31 + 1))


def test_a_ticket_is_good_once_and_only_where_it_belongs() -> None:
    """In order, each once; one that was changed, or of another session, is refused."""
    asker, answerer, stranger = Tickets(b"one"), Tickets(b"one"), Tickets(b"two")
    first, second, third = (asker.issue() for _ in range(3))
    assert {len(first), len(second)} == {TICKET_BYTES}
    assert not answerer.redeem(stranger.issue())
    assert not answerer.redeem(first[:-1] + bytes([first[-1] ^ 1]))
    assert answerer.redeem(first)
    assert not answerer.redeem(first)
    assert answerer.redeem(third)
    assert not answerer.redeem(second)
    assert not answerer.redeem(bytes(8) + asker.token(0))  # the session's own connection's
    assert all(answerer.redeem(asker.issue()) for _ in range(500))
    far_ahead = [asker.issue() for _ in range(500)][-1]
    assert not answerer.redeem(far_ahead)


def test_serials_that_overtake_each_other_are_taken_once() -> None:
    """The order of arrival does not matter; a repeat does."""
    window = SerialWindow()
    assert [window.take(serial) for serial in (2, 1, 5, 4, 2, 5, 3, 1)] == [
        *(True, True, True, True),
        *(False, False, True, False),
    ]


def test_what_is_far_behind_counts_as_taken() -> None:
    """Nothing remembers it any more."""
    window = SerialWindow()
    assert window.take(WINDOW_SERIALS + 1)
    assert not window.take(1)
    assert window.take(2)
    assert window.take(10**18)
    assert not window.take(3)


def test_zero_is_no_serial() -> None:
    """Serials begin at 1."""
    assert not SerialWindow().take(0)


@given(st.lists(st.integers(1, 3 * WINDOW_SERIALS), max_size=200))
def test_no_serial_is_ever_taken_twice(serials: list[int]) -> None:
    """Whatever their order, and however far they jump."""
    window = SerialWindow()
    taken = [serial for serial in serials if window.take(serial)]
    assert len(taken) == len(set(taken))
