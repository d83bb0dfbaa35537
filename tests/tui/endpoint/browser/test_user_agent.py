"""What an endpoint reads from the User-Agent header."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.tui.endpoint.browser.user_agent import describe_browser

CHROME = "Mozilla/5.0 (Linux; Android 15; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"
SAFARI = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 Version/18.0 Mobile Safari/604.1"
)
FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0"


@pytest.mark.parametrize(
    ("header", "words"),
    [
        (CHROME, "Chrome 140 on Android"),
        (SAFARI, "Safari 18 on iPhone"),
        (FIREFOX, "Firefox 140 on Windows"),
        (CHROME + " Edg/141.0", "Edge 141 on Android"),
        ("curl/8.5", ""),
        ("", ""),
    ],
)
def test_browser_and_system_are_named(header: str, words: str) -> None:
    """By the words that browsers agree on."""
    assert describe_browser(header) == words


@given(st.text(max_size=300))
def test_nothing_else_of_the_header_is_repeated(text: str) -> None:
    """It is the client's text, and goes into logs and screens."""
    words = describe_browser(f"Chrome/1 {text} Firefox/99999999")
    assert len(words) < 40
    assert words.isascii()
    assert words.isprintable()
