"""Which language presets are named in."""

import pytest
from linkgauge.engine.model.errors import PlanError
from linkgauge.tui.text.language import resolve_language


@pytest.mark.parametrize(
    ("environment", "named_in"),
    [
        ({}, "en"),
        ({"LANG": "ja_JP.UTF-8"}, "ja"),
        ({"LANG": "ja"}, "ja"),
        ({"LC_MESSAGES": "ja_JP.eucJP", "LANG": "de_DE.UTF-8"}, "ja"),
        ({"LC_ALL": "C.UTF-8", "LC_MESSAGES": "ja_JP.UTF-8", "LANG": "ja_JP.UTF-8"}, "en"),
        ({"LC_ALL": "", "LC_MESSAGES": "ja_JP.UTF-8"}, "ja"),
        ({"LANG": "jam_JM.UTF-8"}, "en"),
        ({"LC_CTYPE": "ja_JP.UTF-8"}, "en"),
    ],
)
def test_the_locale_says_which_language_presets_are_named_in(environment: dict[str, str], named_in: str) -> None:
    """The first of LC_ALL, LC_MESSAGES and LANG that is set counts; an empty one is not set."""
    assert resolve_language(None, environment) == named_in


@pytest.mark.parametrize(("asked", "named_in"), [("en", "en"), ("ja", "ja"), ("JA", "ja")])
def test_a_requested_language_takes_precedence_over_the_locale(asked: str, named_in: str) -> None:
    """In letters of any size."""
    assert resolve_language(asked, {"LC_ALL": "ja_JP.UTF-8"}) == named_in


@pytest.mark.parametrize("asked", ["", "de", "ja_JP"])
def test_a_language_without_names_is_refused(asked: str) -> None:
    """With those that there are."""
    with pytest.raises(PlanError, match="en or ja"):
        resolve_language(asked, {})
