"""The links to the page, and when they carry a key."""

import json
from dataclasses import asdict

import pytest
from linkgauge.engine.model.errors import EndpointError, PlanError
from linkgauge.engine.model.shared_key import SharedKey
from linkgauge.tui.endpoint.browser import browser_setup
from linkgauge.tui.endpoint.browser.browser_setup import BrowserConfig, prepare_browser
from linkgauge.tui.endpoint.endpoint_setup import EndpointConfig, prepare_endpoint
from linkgauge.tui.words.parsing import http_address

KEYS = [SharedKey("a" * 24), SharedKey("b" * 24)]


@pytest.mark.parametrize(
    ("host", "bind", "is_open", "asks"),
    [
        ("127.0.0.1", None, False, False),
        (None, "127.0.0.1", False, False),
        (None, "::1", False, False),
        (None, None, False, True),
        ("0.0.0.0", "127.0.0.1", False, True),  # noqa: S104
        (None, None, True, False),
    ],
)
def test_a_link_carries_a_key_unless_only_this_host_or_everybody_is_served(
    host: str | None, bind: str | None, is_open: bool, asks: bool
) -> None:
    """The first key, by its token."""
    setup = prepare_browser(BrowserConfig(host, 0), bind, is_open=is_open, has_tls=False)
    with setup.listener:
        assert setup.asks_for_key is asks
        port = setup.listener.getsockname()[1]
        for link in setup.links(KEYS):
            assert link.startswith("http://")
            assert link.endswith(f":{port}/{KEYS[0].link_token()}/" if asks else f":{port}/")
        assert all(KEYS[0].link_token() not in link for link in setup.links(None))
        assert setup.facts([]) == {"port": port, "asks_for_key": asks, "links": []}


def test_over_tls_the_links_say_so() -> None:
    """The browser takes the scheme from there."""
    setup = prepare_browser(BrowserConfig("127.0.0.1", 0), None, is_open=False, has_tls=True)
    with setup.listener:
        assert setup.links(None) == [f"https://127.0.0.1:{setup.listener.getsockname()[1]}/"]


@pytest.mark.parametrize("has_h2", [True, False])
@pytest.mark.parametrize("has_tls", [True, False])
def test_clients_of_networkquality_have_an_address_with_tls_and_http2(
    monkeypatch: pytest.MonkeyPatch, *, has_tls: bool, has_h2: bool
) -> None:
    """It is that of the page, and a longer path; programs read it as well."""
    monkeypatch.setattr(browser_setup, "find_spec", lambda _name: object() if has_h2 else None)
    setup = prepare_browser(BrowserConfig("127.0.0.1", 0), None, is_open=False, has_tls=has_tls)
    with setup.listener:
        (link,) = setup.links(None)
        address = f"{link}.well-known/nq" if has_tls and has_h2 else None
        assert setup.quality_link(link) == address
        assert setup.facts([link]).get("networkquality") == (None if address is None else [address])
        assert ("--tls-cert" in (setup.quality_problem or "")) is not has_tls


def test_the_configuration_survives_the_way_to_the_process_that_serves() -> None:
    """As JSON on its command line."""
    config = EndpointConfig("127.0.0.1", 0, http=BrowserConfig("::1", 8080))
    assert EndpointConfig.from_json(json.dumps(asdict(config))) == config


def test_an_endpoint_on_loopback_has_a_key_for_a_page_that_is_not() -> None:
    """It made none otherwise, and every link would be refused."""
    setup = prepare_endpoint(EndpointConfig("127.0.0.1", 0, http=BrowserConfig("0.0.0.0", 0)), lambda _: None)  # noqa: S104
    assert setup.browser is not None
    with setup.listener, setup.browser.listener:
        assert setup.keys is not None
        assert setup.browser.asks_for_key


def test_a_port_in_use_is_named_with_its_option() -> None:
    """And the endpoint's own socket is closed again."""
    taken = prepare_browser(BrowserConfig("127.0.0.1", 0), None, is_open=False, has_tls=False)
    with taken.listener:
        port = taken.listener.getsockname()[1]
        with pytest.raises(EndpointError, match="--http"):
            prepare_endpoint(EndpointConfig("127.0.0.1", 0, http=BrowserConfig(None, port)), lambda _: None)


@pytest.mark.parametrize(
    ("text", "place"),
    [("8080", (None, 8080)), ("0", (None, 0)), ("192.0.2.1:80", ("192.0.2.1", 80)), ("[::1]:80", ("::1", 80))],
)
def test_an_address_is_read(text: str, place: tuple[str | None, int]) -> None:
    """Without one the page is at the endpoint's."""
    assert http_address(text) == place


@pytest.mark.parametrize("text", ["", "x", "80000", "::1", "::1:80", ":80", "a b:80", "192.0.2.1:", "-1"])
def test_another_address_is_refused_with_what_to_give(text: str) -> None:
    """It names the option."""
    with pytest.raises(PlanError, match="--http"):
        http_address(text)
