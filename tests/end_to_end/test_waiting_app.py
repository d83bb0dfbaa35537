"""The app that waits for a device: a real terminal on the engineer's side, a real Chromium as the phone."""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme

pytest.importorskip("segno", reason="the extra linkgauge[http] is not installed")

from ..engine.certificates import CertificateFiles
from .chromium import PROGRAM, Page, open_page
from .terminal import LARGE, OpenTerminal, Terminal

pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed"),
    pytest.mark.timeout(180),
    pytest.mark.loop("uvloop"),
]
_WAIT_S = 40.0
_STATE = "document.getElementById('state').textContent"
_SECOND_SESSION = re.compile(r"→ +2 +\d")
_CODE = re.compile(r"\b(\d{5}) (\d{5})\b")


async def on(screen: Terminal, method: Callable[..., Any], *words: Any) -> None:
    """Follow the screen in a thread: the browser is driven by this loop."""
    await asyncio.to_thread(method, *words)


def invitation(screen: Terminal) -> tuple[str, str]:
    """Return the link and the code on the screen, once they are drawn."""
    screen.until(_CODE.search, "a code")
    link, code = re.search(r"https?://127\.0\.0\.1:\d+/", screen.text), _CODE.search(screen.text)
    assert link is not None, screen.text
    assert code is not None, screen.text
    return link[0], code[1] + code[2]


async def until(page: Page, expression: str) -> None:
    """Wait until an expression is true in the page: its script changes it."""
    async with asyncio.timeout(_WAIT_S):
        while not await page.evaluate(f"!!({expression})"):  # noqa: ASYNC110 - the state of another process
            await asyncio.sleep(0.1)


async def type_code(page: Page, code: str) -> None:
    """Type a code, and join."""
    await page.evaluate(
        f"document.getElementById('code').value='{code}';document.querySelector('#join button').click()"
    )


@asynccontextmanager
async def phone(folder: Path, address: str) -> AsyncGenerator[Page]:
    """Open the page at a phone's size."""
    options = ("--ignore-certificate-errors",) if address.startswith("https:") else ()
    async with open_page(folder, watches_network=False, options=options) as page:
        await page.resize(360, 740)
        await page.open(address)
        yield page


@pytest.mark.parametrize("has_tls", [False, pytest.param(True, marks=pytest.mark.every("the other transport"))])
async def test_a_phone_joins_by_its_code_and_obeys_the_cockpit(
    terminal: OpenTerminal, linkgauge: Any, tmp_path: Path, *, has_tls: bool
) -> None:
    """A wrong code first. Sessions and direction change on the phone during the test; the run is saved."""
    tls: list[str] = []
    if has_tls:
        files = CertificateFiles(tmp_path, trustme.CA())
        tls = ["--tls-cert", str(files.cert), "--tls-key", str(files.key)]
    screen = terminal("app", "--wait", "--http", "127.0.0.1:0", "--seconds", "60", *tls, size=LARGE)
    await on(screen, screen.see, "a device joins", "and type")
    link, code = await asyncio.to_thread(invitation, screen)
    assert link.startswith("https:") is has_tls
    async with phone(tmp_path, link) as page:
        await until(page, "!document.getElementById('join').hidden")
        wrong = f"{(int(code) + 1) % 10**10:010}"
        await page.evaluate(
            f"document.getElementById('code').value='{wrong}';document.querySelector('#join button').click()"
        )
        await until(page, f"{_STATE}.includes('not the code')")
        await on(screen, screen.see, "was refused")
        await page.evaluate(
            f"document.getElementById('code').value='{code}';document.querySelector('#join button').click()"
        )
        await until(page, f"{_STATE}.includes('takes part')")
        await on(screen, screen.see, "browser://127.0.0.1", "READY")
        screen.type(" ")
        await on(screen, screen.see, "RUNNING")
        await until(page, f"{_STATE}.startsWith('Running')")
        screen.type("+")
        await on(screen, screen.see, "[2]")
        # Before the second connection moves payload, another direction would withdraw its place.
        await on(screen, screen.until, _SECOND_SESSION.search, "a second session")
        screen.type("d")
        await on(screen, screen.see, "[in]")
        await until(page, "document.querySelector('#up .number').textContent !== '–'")
        screen.type(" ")
        await on(screen, screen.see, "STOPPED")
        await until(page, f"{_STATE} === 'Finished.'")
        assert page.problems == []
    screen.type("c")
    await on(screen, screen.see, "a device joins", "has gone")
    screen.type("c")
    await on(screen, screen.lose, "a device joins")
    screen.type(" ")
    await on(screen, screen.see, "no device takes part")
    screen.type("q")
    await on(screen, screen.finish)
    (run,) = linkgauge("runs", "list", "--json").document
    assert run["peer"] == "browser://127.0.0.1"
