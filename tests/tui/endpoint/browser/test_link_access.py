"""Who may have the page of an endpoint."""

import pytest
from linkgauge.engine.model.shared_key import SharedKey
from linkgauge.tui.endpoint.browser.link_access import LinkAccess

HOST = "192.0.2.7:8080"
KEYS = [SharedKey("a" * 24, "anna"), SharedKey("b" * 24)]


def access(keys: list[SharedKey] | None = None, *, has_tls: bool = False) -> LinkAccess:
    """Return the rules of a host named gauge-01."""
    return LinkAccess(lambda: keys, has_tls=has_tls, names=("gauge-01.example.org",))


@pytest.mark.parametrize(
    "host",
    [HOST, "192.0.2.7", "[2001:db8::7]:8080", "[2001:db8::7]", "localhost:1", "gauge-01:8080", "GAUGE-01.local",
     "gauge-01.example.org:8080"],
)  # fmt: skip
def test_the_page_is_served_by_addresses_and_own_names(host: str) -> None:
    """A forwarded port may be another one."""
    assert access().find_refusal(host, f"http://{host}", "", is_websocket=True) is None
    assert access().find_refusal(host, None, "", is_websocket=False) is None


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("evil.example.org:8080", "http://evil.example.org:8080"),
        ("192.0.2.7.evil.example.org", "http://192.0.2.7.evil.example.org"),
        ("example.org", "http://example.org"),
        ("", "http://"),
        ("x" * 10_000, "http://192.0.2.7"),
        (HOST, "http://evil.example.org"),
        (HOST, "http://192.0.2.7:8000"),
        (HOST, "https://192.0.2.7:8080"),
        (HOST, "null"),
        (HOST, "x" * 10_000),
        (HOST, None),
        ("192.0.2.7:x", "http://192.0.2.7:x"),
        ("192.0.2.7:8080; script-src *", "http://192.0.2.7:8080; script-src *"),
    ],
)
def test_other_origins_and_names_open_no_websocket(host: str, origin: str | None) -> None:
    """Though the endpoint is open to everybody: their pages could start load otherwise."""
    assert access().find_refusal(host, origin, "", is_websocket=True) is not None


def test_a_link_stands_for_its_key_and_for_no_other() -> None:
    """The key cannot be read from it."""
    rules = access(KEYS)
    for key in KEYS:
        token = key.link_token()
        assert rules.find_key(token) is key
        assert rules.find_refusal(HOST, None, token, is_websocket=False) is None
        assert key.reveal() not in token
    assert len({key.link_token() for key in KEYS}) == 2


@pytest.mark.parametrize("token", ["", "x", "ä" * 24, "\udcff", "a" * 24])
def test_other_tokens_open_nothing(token: str) -> None:
    """Without a word about what is right."""
    refusal = access(KEYS).find_refusal(HOST, None, token, is_websocket=False)
    assert refusal is not None
    assert all(key.link_token() not in refusal for key in KEYS)


def test_over_tls_the_origin_is_https() -> None:
    """The page's own origin has the scheme."""
    assert access(has_tls=True).find_refusal(HOST, f"https://{HOST}", "", is_websocket=True) is None
    assert access(has_tls=True).find_refusal(HOST, f"http://{HOST}", "", is_websocket=True) is not None
