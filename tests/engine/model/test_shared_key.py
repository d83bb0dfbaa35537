"""The shared key: which texts are keys, and proofs that only the two ends of a conversation can make."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.errors import InvalidKeyError
from linkgauge.engine.model.shared_key import (
    FAR_ROLE,
    MAX_KEYS,
    NEAR_ROLE,
    AuthContext,
    SharedKey,
    constant_time_equal,
    find_proved,
    mac,
)

KEY, OTHER = SharedKey("a-key-of-this-test"), SharedKey("another-key-of-this-test")
TALK = AuthContext(b"what both have said", b"certificate")


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


def test_a_proof_is_found_among_all_keys_and_each_is_tried() -> None:
    """So that the time is the same for every one of them, and for none."""
    keys = [SharedKey(f"a-key-of-this-test-{number}", f"client-{number}") for number in range(MAX_KEYS)]
    for key in (keys[0], keys[-1]):
        assert find_proved(keys, NEAR_ROLE, TALK, SharedKey(key.reveal()).prove(NEAR_ROLE, TALK)) is key
    for wrong in (OTHER.prove(NEAR_ROLE, TALK), keys[0].prove(FAR_ROLE, TALK), b""):
        assert find_proved(keys, NEAR_ROLE, TALK, wrong) is None
    assert find_proved([], NEAR_ROLE, TALK, KEY.prove(NEAR_ROLE, TALK)) is None


@pytest.mark.parametrize("cut", [0, 1, 31])
def test_a_proof_that_is_cut_short_is_none(cut: int) -> None:
    """Nor is nothing, nor one that is too long."""
    proof = KEY.prove(FAR_ROLE, TALK)
    assert not constant_time_equal(proof, proof[:cut])
    assert not constant_time_equal(proof, proof + b"\0")


@given(st.lists(st.binary(max_size=6), max_size=4), st.lists(st.binary(max_size=6), max_size=4))
def test_parts_cannot_be_shifted_into_each_other(some: list[bytes], others: list[bytes]) -> None:
    """Two lists of parts have the same code only if they are the same list."""
    assert (mac(b"k", *some) == mac(b"k", *others)) == (some == others)


@pytest.mark.parametrize(
    "text", ["", "short", "x" * 15, "x" * 1_025, "has a blank in it", "has\nlines-in-it-x", "schlüssel-schlüssel"]
)
def test_a_key_that_is_short_or_cannot_be_typed_is_refused_and_not_repeated(text: str) -> None:
    """The error says what a key is, and never what was given."""
    with pytest.raises(InvalidKeyError, match="16 to 1024 letters") as caught:
        SharedKey(text)
    assert not text or text not in str(caught.value)


def test_a_new_key_is_usable_random_and_hidden() -> None:
    """No two are the same, none begins like an option, and none shows in a repr."""
    keys = [SharedKey.generate() for _ in range(20)]
    assert len({key.reveal() for key in keys}) == 20
    assert not any(key.reveal().startswith("-") or key.reveal() in repr(key) for key in keys)
    assert SharedKey.generate(lambda count: "n" * count).reveal() == "k" + "n" * 24


def test_the_token_of_a_link_is_the_key_s_own_and_does_not_show_it() -> None:
    """It is short enough for a QR code, and fits a path."""
    tokens = {each.link_token() for each in (KEY, OTHER)}
    assert len(tokens) == 2
    for token in tokens:
        assert len(token) == 24
        assert token.replace("-", "").replace("_", "").isalnum()
        assert KEY.reveal() not in token
