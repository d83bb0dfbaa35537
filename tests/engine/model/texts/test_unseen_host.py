"""Each other program is named; a connection that is only observed has none."""

import pytest
from linkgauge.engine.model.plan import Dialect
from linkgauge.engine.model.texts.unseen_host import not_seen


@pytest.mark.parametrize("dialect", [dialect for dialect in Dialect if dialect is not Dialect.LINKGAUGE])
def test_the_words_name_the_program(dialect: Dialect) -> None:
    """By its name or its kind."""
    words = not_seen(dialect)
    if dialect is Dialect.OBSERVED:
        assert words == "not seen"
    else:
        assert words.lower().removeprefix("not seen through ").removeprefix("a ") == dialect.value
