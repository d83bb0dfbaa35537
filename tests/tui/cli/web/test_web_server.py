"""The server of the page, with real requests over loopback."""

import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

aiohttp = pytest.importorskip("aiohttp", reason="the extra linkgauge[web] is not installed")

from linkgauge.tui.cli.web.web_access import WebAccess  # noqa: E402
from linkgauge.tui.cli.web.web_server import WebConfig, open_server  # noqa: E402


@asynccontextmanager
async def serving(*arguments: str, sessions: int = 4) -> AsyncGenerator[tuple[str, str, aiohttp.ClientSession]]:
    """Serve; yield the origin, the token and a client."""
    access, listener = WebAccess(), socket.create_server(("127.0.0.1", 0))
    origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with (
        open_server(WebConfig(arguments, 0, sessions, access), listener),
        aiohttp.ClientSession() as client,
    ):
        yield origin, access.token, client


async def test_the_page_names_no_other_host_and_may_not_be_framed() -> None:
    """Its policy has the browser hold to that."""
    async with serving() as (origin, token, client), client.get(f"{origin}/{token}/") as answer:
        page = await answer.text()
        assert answer.status == 200
        assert page.count("://") == page.count(f"ws://{origin.partition('://')[2]}/") == 1
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.parametrize(
    ("path", "headers"),
    [
        ("/", {}),
        ("/ws", {}),
        ("/static/js/textual.js", {}),
        ("/wrong-token/", {}),
        ("/wrong-token/static/js/textual.js", {}),
        ("/{token}/", {"Host": "evil.example.org"}),
        ("/{token}/", {"Origin": "http://evil.example.org"}),
    ],
)
async def test_a_request_without_the_token_or_of_another_page_is_refused(
    path: str, headers: dict[str, str]
) -> None:
    """With no word about what is right."""
    async with (
        serving() as (origin, token, client),
        client.get(origin + path.replace("{token}", token), headers=headers) as answer,
    ):
        assert answer.status == 403
        assert token not in await answer.text()


@pytest.mark.parametrize("origin", ["http://evil.example.org", "http://localhost:3000", "null", None])
async def test_a_page_of_another_origin_opens_no_websocket_and_starts_nothing(
    origin: str | None,
) -> None:
    """Browsers let every page try: only the server can refuse."""
    async with serving("app") as (own, token, client):
        with pytest.raises(aiohttp.WSServerHandshakeError) as refusal:
            await client.ws_connect(f"{own}/{token}/ws", origin=origin)
        assert refusal.value.status == 403


async def test_files_beside_the_assets_are_not_served() -> None:
    """Though their path can be written."""
    async with serving() as (origin, token, client):
        for name in ("../server.py", "..%2fserver.py", "js", "%2fetc%2fpasswd"):
            async with client.get(aiohttp.client.URL(f"{origin}/{token}/static/{name}", encoded=True)) as answer:
                assert answer.status in {403, 404}
        async with client.get(f"{origin}/{token}/static/css/xterm.css") as answer:
            assert answer.status == 200


@pytest.mark.every
async def test_more_pages_than_the_limit_are_told_so() -> None:
    """Each has a process."""
    async with serving("app", sessions=1) as (origin, token, client):
        page = await client.ws_connect(f"{origin}/{token}/ws", origin=origin)
        assert await page.receive_bytes(timeout=40)
        async with client.get(f"{origin}/{token}/") as answer:
            assert answer.status == 503
            assert "--sessions" in await answer.text()
        with pytest.raises(aiohttp.WSServerHandshakeError):
            await client.ws_connect(f"{origin}/{token}/ws", origin=origin)


@pytest.mark.every
async def test_nonsense_of_a_browser_ends_no_session() -> None:
    """What means nothing is passed over."""
    async with serving("app") as (origin, token, client):
        url = f"{origin}/{token}/ws?width=-5&height=99999999999"
        page = await client.ws_connect(url, origin=origin)
        await page.receive_bytes(timeout=40)
        for text in ("", "{", "[]", "null", '["stdin", 5]', '["resize", {"width": "x"}]', "[" * 5_000, '["x"]'):
            await page.send_str(text)
        await page.send_bytes(os.urandom(100))
        await page.send_str('["ping", 7]')
        while (message := await page.receive(timeout=40)).type is not aiohttp.WSMsgType.TEXT:
            assert message.type is aiohttp.WSMsgType.BINARY
        assert message.json() == ["pong", 7]


async def test_a_command_without_a_screen_ends_its_page_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """At the server's terminal."""
    async with serving("app", "no such peer") as (origin, token, client):
        page = await client.ws_connect(f"{origin}/{token}/ws", origin=origin)
        assert (await page.receive(timeout=40)).type is aiohttp.WSMsgType.CLOSE
    assert "the app has not started: linkgauge: PEER" in capsys.readouterr().err
