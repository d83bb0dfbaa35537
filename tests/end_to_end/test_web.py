"""`linkgauge web` in a real browser: a test by keys, another size, the end of the page and of the server."""

import asyncio
import os
import re
import signal
import socket
from pathlib import Path
from typing import Any, Final

import aiohttp
import psutil
import pytest

from ..command_line import RATE_LIMIT
from .chromium import PROGRAM, open_page

_WAIT_S: Final = 40.0
WATCH: Final = """
[watch]
name = "office"
[watch.defaults]
every = "3s"
probe_every = "1s"
preset = "none"
seconds = 1
warmup = 0
rate = "25M"
[[peer]]
name = "db-01"
address = "{address}"
"""


def start_server(linkgauge: Any, *arguments: str) -> tuple[Any, str]:
    """Start a server; return its process and the address that it prints."""
    server = linkgauge.start("web", "--port", "0", *arguments)
    line = server.stdout.readline()
    found = re.fullmatch(r"open (http://127\.0\.0\.1:\d+/[\w-]{32}/)\n", line)
    assert found is not None, line
    return server, found[1]


async def wait_for_no_children(pid: int) -> None:
    """Wait until a process has no children. They end by themselves; what is waited for are processes."""
    async with asyncio.timeout(_WAIT_S):
        while children := psutil.Process(pid).children():
            await asyncio.to_thread(psutil.wait_procs, children, timeout=1)


@pytest.mark.timeout(180)
@pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed")
async def test_a_test_is_driven_in_a_browser_and_its_app_ends_with_the_page(linkgauge: Any, tmp_path: Path) -> None:
    """By keys, at two sizes; nothing is asked of another host, and a run is saved though the page goes."""
    server, url = start_server(linkgauge, "--", "loopback", "--seconds", "none", *RATE_LIMIT)
    try:
        async with open_page(tmp_path) as page:
            await page.resize(1280, 800)
            await page.open(url)
            await page.wait_for("start/stop")
            wide = page.columns
            await page.press(" ")
            await page.wait_for("RUNNING", "WARM")
            await page.press("?")
            await page.wait_for("Settings of the test")
            await page.press("Escape")
            if picture := os.environ.get("LINKGAUGE_WEB_PICTURE"):
                await asyncio.sleep(6)
                await page.take_picture(Path(picture))
            await page.resize(900, 600)
            page.forget()
            await page.wait_for("start/stop")
            apps = psutil.Process(server.pid).children()
            assert len(apps) == 1
            assert page.problems == []
            own = url.split("/")[2]
            assert {each.split("/")[2] for each in page.requested if "://" in each} == {own}
            assert await page.evaluate("document.fonts.check('16px \"Roboto Mono\"')") is True
            await page.open("about:blank")
            await wait_for_no_children(server.pid)
        assert wide > 100
    finally:
        server.send_signal(signal.SIGINT)
        ended = linkgauge.finish(server)
    assert ended.status == 0, ended
    runs = linkgauge("runs", "list", "--json").document
    assert len(runs) == 1, runs


@pytest.mark.every
@pytest.mark.timeout(180)
@pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed")
async def test_a_watch_of_a_service_is_followed_in_a_browser(linkgauge: Any, far_end: str, tmp_path: Path) -> None:
    """Its tests come; a page that is closed does not end it."""
    file = tmp_path / "office.toml"
    file.write_text(WATCH.format(address=far_end), encoding="utf-8")
    service = linkgauge.start("watch", file, "--headless")
    server, url = start_server(linkgauge, "--", "watch", str(file), "--follow")
    try:
        async with open_page(tmp_path) as page:
            await page.resize(1280, 800)
            await page.open(url)
            await page.wait_for("followed", "25.")
            await page.press("t")
            await page.wait_for("alone begins")
            await page.press("Enter")
            await page.wait_for("compare")
            await page.press("Escape")
            if picture := os.environ.get("LINKGAUGE_WEB_WATCH_PICTURE"):
                await asyncio.sleep(6)
                await page.take_picture(Path(picture))
            assert page.problems == []
            await page.open("about:blank")
            await wait_for_no_children(server.pid)
        assert service.poll() is None
    finally:
        for process in (server, service):
            process.send_signal(signal.SIGINT)
        ended = linkgauge.finish(server)
        watched = linkgauge.finish(service)
    assert (ended.status, watched.status) == (0, 130)


@pytest.mark.every
@pytest.mark.timeout(120)
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
async def test_the_apps_of_all_pages_end_with_the_server(linkgauge: Any, number: signal.Signals) -> None:
    """Also one that is killed, and with a test that runs."""
    server, url = start_server(linkgauge)
    async with aiohttp.ClientSession() as client:
        origin = url.rpartition("/")[0].rpartition("/")[0]
        pages = [await client.ws_connect(f"{url}ws?width=100&height=30", origin=origin) for _ in range(2)]
        for page in pages:
            await page.receive_bytes(timeout=_WAIT_S)
        await pages[0].send_str('["stdin", " "]')
        apps = psutil.Process(server.pid).children(recursive=True)
        assert len(apps) >= 2
        server.send_signal(number)
        ended = await asyncio.to_thread(linkgauge.finish, server)
        _, left = await asyncio.to_thread(psutil.wait_procs, apps, timeout=_WAIT_S)
    assert not left
    assert ended.status == (-number if number is signal.SIGKILL else 0)


@pytest.mark.every
def test_a_wrong_start_is_told_before_there_is_a_page(linkgauge: Any, tmp_path: Path) -> None:
    """What the app opens with is checked as for the app itself."""
    for arguments in (["--", "--seconds"], ["--", "--json"], ["--public-url", "gauge"], ["--sessions", "0"]):
        assert linkgauge.here("web", "--port", "0", *arguments).status == 2
    (tmp_path / "w.toml").write_text(WATCH.format(address="127.0.0.1"), encoding="utf-8")
    watch = ["--", "watch", str(tmp_path / "w.toml")]
    for arguments in (watch, [*watch, "--follow", "--once"], [*watch, "--follow", "--headless"]):
        assert linkgauge.here("web", "--port", "0", *arguments).status == 2
    for target in ("no-such-file.toml", "loopback"):
        assert linkgauge.here("web", "--port", "0", "--", "watch", target, "--follow").status == 2
    with socket.create_server(("127.0.0.1", 0)) as other:
        answer = linkgauge.here("web", "--port", other.getsockname()[1])
    assert answer.status == 3
    assert "choose another with --port" in answer.err
