"""Who may have the page of `linkgauge web`."""

import pytest
from linkgauge.engine.model.errors import UsageError
from linkgauge.tui.cli.web.web_access import PublicUrl, WebAccess

HOST = "127.0.0.1:5880"
PUBLIC = PublicUrl.parse("https://gauge.example.org")


def is_answered(access: WebAccess, host: str, origin: str | None, *, is_websocket: bool = True) -> bool:
    """Return whether a request with the token is answered."""
    return access.find_refusal(host, origin, access.token, is_websocket=is_websocket) is None


@pytest.mark.parametrize(
    "host", [HOST, "localhost:5880", "[::1]:5880", "localhost:9000", "127.0.0.1", "LOCALHOST:80"]
)
def test_a_page_of_this_host_opens_a_session(host: str) -> None:
    """A tunnel may have another port."""
    assert is_answered(WebAccess(), host, f"http://{host}")
    assert is_answered(WebAccess(), host, None, is_websocket=False)


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("evil.example.org:5880", "http://evil.example.org:5880"),
        ("127.0.0.1.evil.example.org", "http://127.0.0.1.evil.example.org"),
        ("", "http://"),
        ("x" * 10_000, "http://127.0.0.1"),
        (HOST, "http://evil.example.org"),
        (HOST, "http://127.0.0.1:8000"),
        (HOST, "https://127.0.0.1:5880"),
        (HOST, "http://localhost:5880"),
        (HOST, "null"),
        (HOST, None),
        ("127.0.0.1:x", "http://127.0.0.1:x"),
    ],
)
def test_a_page_of_another_origin_or_name_opens_none(host: str, origin: str | None) -> None:
    """Though it has the token."""
    assert not is_answered(WebAccess(), host, origin)


@pytest.mark.parametrize("token", ["", "x", "ä" * 32, "\udcff"])
def test_without_the_token_nothing_is_answered(token: str) -> None:
    """Every user of this host reaches the port."""
    assert WebAccess().find_refusal(HOST, f"http://{HOST}", token, is_websocket=False) is not None


def test_each_start_has_another_token_which_is_not_printed_by_accident() -> None:
    """192 bits."""
    first, second = WebAccess(), WebAccess()
    assert first.token != second.token
    assert len(first.token) == 32
    assert first.token not in repr(first)


def test_a_proxy_serves_the_page_by_its_public_address() -> None:
    """Whether it keeps the Host header or not; the address is none without being named."""
    access = WebAccess(PUBLIC)
    for host in ("gauge.example.org", HOST):
        assert is_answered(access, host, "https://gauge.example.org")
        assert not is_answered(access, host, "https://gauge.example.org.evil.example.org")
        assert not is_answered(access, host, "http://gauge.example.org")
    assert not is_answered(WebAccess(), "gauge.example.org", "https://gauge.example.org")


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("https://Gauge.example.org/", "https://gauge.example.org"),
        ("https://gauge.example.org:443", "https://gauge.example.org"),
        ("http://[fd00::1]:8080", "http://[fd00::1]:8080"),
    ],
)
def test_a_public_address_is_a_scheme_and_a_host(text: str, meant: str) -> None:
    """As a browser writes an origin."""
    assert str(PublicUrl.parse(text)) == meant


@pytest.mark.parametrize(
    "text",
    ["gauge.example.org", "ftp://x", "https://", "https://x/path", "https://u@x", "https://x:99999", "https://x\n"],
)
def test_anything_else_is_refused(text: str) -> None:
    """With what to give."""
    with pytest.raises(UsageError, match="give https://HOST"):
        PublicUrl.parse(text)
