"""Keys, proofs and tokens: what opens an endpoint, and everything that must not."""

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.peer import AuthContext, SharedKey, mac
from linkgauge.engine.model.plan import End
from linkgauge.engine.protocol.messages import Challenge, Hello, Proof, Welcome
from linkgauge.engine.protocol.state_machine import ControlStateMachine
from linkgauge.engine.protocol.tokens import (
    FAR_ROLE,
    NEAR_ROLE,
    TICKET_BYTES,
    TOKEN_BYTES,
    RunSecret,
    SerialTokens,
    TicketCheck,
    Tickets,
    constant_time_equal,
)

KEY, OTHER = SharedKey("a-key-of-this-test"), SharedKey("another-key-of-this-test")
TALK = AuthContext(b"what both have said", b"certificate")


def conversation(near_nonce: str, far_nonce: str) -> tuple[ControlStateMachine, ControlStateMachine]:
    """Return both machines of a conversation that is as far as the far end's challenge."""
    near, far = ControlStateMachine(End.NEAR), ControlStateMachine(End.FAR)
    near.send(Hello(near_nonce))
    far.receive_data(near.data_to_send())
    far.send(Challenge(far_nonce))
    near.receive_data(far.data_to_send())
    assert near.error is far.error is None
    return near, far


def test_only_the_two_ends_of_a_conversation_agree() -> None:
    """The same key, words and certificate give the same proofs and secret; any other gives others."""
    same = SharedKey("a-key-of-this-test")
    assert same.prove(NEAR_ROLE, TALK) == KEY.prove(NEAR_ROLE, TALK)
    assert same.derive_shared_secret(TALK) == KEY.derive_shared_secret(TALK)
    changed = [
        (OTHER, TALK),
        (KEY, AuthContext(b"what both have sai", b"certificate")),
        (KEY, AuthContext(b"what both have saidc", b"ertificate")),
        (KEY, AuthContext(b"what both have said", b"")),
    ]
    for key, talk in changed:
        assert not constant_time_equal(KEY.prove(NEAR_ROLE, TALK), key.prove(NEAR_ROLE, talk))
        assert not constant_time_equal(KEY.derive_shared_secret(TALK), key.derive_shared_secret(talk))


def test_a_reflected_proof_proves_nothing() -> None:
    """The roles differ, and a proof is not the secret."""
    proofs = [KEY.prove(NEAR_ROLE, TALK), KEY.prove(FAR_ROLE, TALK), KEY.derive_shared_secret(TALK)]
    assert len(set(proofs)) == 3


@pytest.mark.parametrize("cut", [0, 1, 31])
def test_a_proof_that_is_cut_short_is_none(cut: int) -> None:
    """Nor is nothing, nor one that is too long."""
    proof = KEY.prove(FAR_ROLE, TALK)
    assert not constant_time_equal(proof, proof[:cut])
    assert not constant_time_equal(proof, proof + b"\0")


@given(st.lists(st.binary(max_size=6), max_size=4), st.lists(st.binary(max_size=6), max_size=4))
def test_parts_cannot_be_shifted_into_each_other(some: list[bytes], others: list[bytes]) -> None:
    """Two lists of parts have the same code only where they are the same list."""
    assert (mac(b"k", *some) == mac(b"k", *others)) == (some == others)


def test_both_machines_have_the_same_transcript_and_a_replay_another() -> None:
    """It has each end's nonce in it: a proof of yesterday's conversation is none of today's."""
    near, far = conversation("ab" * 32, "cd" * 32)
    assert near.transcript == far.transcript
    replayed, fresh = conversation("ab" * 32, "ef" * 32)
    assert replayed.transcript == fresh.transcript != near.transcript
    yesterday = KEY.prove(NEAR_ROLE, AuthContext(near.transcript))
    assert not constant_time_equal(KEY.prove(NEAR_ROLE, AuthContext(fresh.transcript)), yesterday)


@pytest.mark.parametrize(
    "tamper",
    [
        lambda data: data.replace(b"ab" * 32, b"ba" * 32),
        lambda data: data.replace(b'"type":"Hello"', b'"type": "Hello"'),
        lambda data: data.replace(b'"type":"Hello",', b"").replace(b'"}', b'","type":"Hello"}'),
    ],
    ids=["nonce", "length", "order"],
)
def test_a_hello_that_was_changed_on_its_way_gives_another_transcript(tamper: Callable[[bytes], bytes]) -> None:
    """Even where it means the same: the transcript is what was on the wire."""
    near, far = ControlStateMachine(End.NEAR), ControlStateMachine(End.FAR)
    near.send(Hello("ab" * 32))
    sent = near.data_to_send()
    received = tamper(sent)
    assert received != sent
    far.receive_data(received[:12] + (len(received) - 16).to_bytes(4, "big") + received[16:])
    assert far.error is None
    assert far.messages_received()
    far.send(Challenge("cd" * 32))
    near.receive_data(far.data_to_send())
    assert near.transcript != far.transcript


def test_messages_after_the_challenge_are_not_part_of_the_transcript() -> None:
    """Both ends can compute both proofs from the same bytes."""
    near, far = conversation("ab" * 32, "cd" * 32)
    before = near.transcript
    near.send(Proof("ef" * 32))
    far.receive_data(near.data_to_send())
    far.send(Welcome("ef" * 32))
    near.receive_data(far.data_to_send())
    assert near.transcript == far.transcript == before


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
    """A second one with it is refused, and so is a token for anything else than what is asked."""
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
    """In order, each once; one that was changed, or of another session, is none."""
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
