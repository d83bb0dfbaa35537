"""The shared key: which texts can be one, and that none shows by accident."""

import pytest
from linkgauge.engine.model.access import SharedKey
from linkgauge.engine.model.errors import InvalidKeyError


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
