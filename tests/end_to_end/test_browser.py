"""An endpoint's page in a real Chromium without a window, over loopback and through links of a known rate."""

import asyncio
import contextlib
import json
import os
import re
import signal
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("segno", reason="the extra linkgauge[http] is not installed")

import trustme

from ..engine.certificates import CertificateFiles
from .chromium import PROGRAM, Page, open_page

pytestmark = [
    pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed"),
    pytest.mark.timeout(180),
    pytest.mark.loop("uvloop"),
]
_WAIT_S = 60.0
_CONTRASTS = Path(__file__).with_name("text_contrast.js").read_text(encoding="utf-8")
_READY = "!document.getElementById('start').disabled"
_STATE = "document.getElementById('state').textContent"


@pytest.mark.every
async def test_twenty_browsers_at_once_have_their_results(page_address: str, tmp_path: Path) -> None:
    """Twenty pages of one device, each with a run of its own; none waits for another."""
    async with opened(page_address, tmp_path) as page:
        await page.call(
            "Runtime.evaluate",
            expression="window.tabs = [window, ...Array.from({length: 19}, () => open(location.href))]; 0",
            userGesture=True,
        )
        texts = "tabs.map(tab => (tab.document.getElementById('state') || {}).textContent)"
        await until(page, f"{texts}.every(text => text === 'Ready.')")
        await page.evaluate(
            "for (const {document} of tabs) { document.getElementById('sessions').value = '1';"
            "document.getElementById('seconds').value = '5'; document.getElementById('start').click() }"
        )
        await until(page, f"{texts}.every(text => text === 'Finished.' || text.startsWith('Not possible'))")
        results = await page.evaluate(f"{texts}.filter(text => text === 'Finished.').length")
        reasons = await page.evaluate(f"{texts}.filter(text => text !== 'Finished.').join(' ')")
        runs = await page.evaluate(
            "new Set(tabs.map(tab => tab.document.body.innerText.match(/run (\\d{8}-\\d{6}-\\w+)/)[1])).size"
        )
    assert (results, runs) == (20, 20), reasons


@pytest.fixture
def page_address(linkgauge: Any, tmp_path: Path) -> Iterator[str]:
    """Give the address of the page of an endpoint on loopback, whose runs are saved in the test's folder."""
    environment = {**os.environ, "LINKGAUGE_DATA_DIR": str(tmp_path / "data")}
    (tmp_path / "data").mkdir()
    options = (
        "--log-file",
        str(tmp_path / "data" / "endpoint.log"),
        "--http",
        "0",
        "--limit",
        "clients_per_address=32",
    )
    endpoint = linkgauge.start("endpoint", "--bind", "127.0.0.1", "--port", "0", *options, env=environment)
    try:
        endpoint.stdout.readline()
        found = re.fullmatch(r"page for browsers: (http://127\.0\.0\.1:\d+/)\n", endpoint.stdout.readline())
        assert found is not None
        yield found[1]
    finally:
        endpoint.send_signal(signal.SIGINT)
        endpoint.wait(timeout=_WAIT_S)


@asynccontextmanager
async def opened(
    address: str, folder: Path, size: tuple[int, int] = (360, 740), language: str = "en"
) -> AsyncGenerator[Page]:
    """Open the page at a size, and wait until it is ready."""
    async with open_page(folder, watches_network=False, options=[f"--accept-lang={language}"]) as page:
        await page.resize(*size)
        await page.open(address)
        await until(page, _READY)
        yield page


async def until(page: Page, expression: str) -> None:
    """Wait until an expression is true in the page: its script changes it."""
    async with asyncio.timeout(_WAIT_S):
        while not await page.evaluate(  # noqa: ASYNC110 - the state of another process
            f"!!(document.getElementById('start') && ({expression}))"
        ):
            await asyncio.sleep(0.2)


async def start(page: Page, direction: str, *, sessions: int = 2, seconds: int = 5) -> None:
    """Choose, and press the button."""
    await page.evaluate(
        f"document.querySelector('input[value={direction}]').click();"
        f"document.getElementById('sessions').value = '{sessions}';"
        f"document.getElementById('seconds').value = '{seconds}';"
        "document.getElementById('start').click()"
    )


async def take_picture(page: Page, name: str) -> None:
    """Keep a picture if a folder for it is named."""
    if folder := os.environ.get("LINKGAUGE_BROWSER_PICTURES"):
        await page.take_picture(Path(folder, f"{name}.png"))


async def test_a_test_in_both_directions_is_shown_and_saved(page_address: str, tmp_path: Path) -> None:
    """At a phone's size: nothing is cut off, nothing fails, and the run is in the run log of this host."""
    async with opened(page_address, tmp_path) as page:
        await start(page, "both")
        await until(page, f"{_STATE}.startsWith('Running')")
        await take_picture(page, "live")
        await until(page, f"{_STATE} === 'Finished.'")
        text = await page.evaluate("document.getElementById('result').innerText")
        await take_picture(page, "result")
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.problems == []
    for part in ("↓ down", "↑ up", "grade", "idle latency", "Mb/s"):
        assert part in text
    run_id = re.search(r"run (\d{8}-\d{6}-\w+)", text)
    assert run_id is not None


@pytest.mark.every
async def test_a_browser_gets_the_page_over_http2_and_tests_over_tls(linkgauge: Any, tmp_path: Path) -> None:
    """With the extra nq, the port speaks both versions of HTTP: the browser chooses the second for the page."""
    pytest.importorskip("h2", reason="the extra linkgauge[nq] is not installed")
    files = CertificateFiles(tmp_path, trustme.CA())
    (tmp_path / "data").mkdir()
    environment = {**os.environ, "LINKGAUGE_DATA_DIR": str(tmp_path / "data")}
    options = (
        "--bind",
        "127.0.0.1",
        "--port",
        "0",
        "--http",
        "0",
        "--tls-cert",
        files.cert,
        "--tls-key",
        files.key,
    )
    endpoint = linkgauge.start("endpoint", *map(str, options), env=environment)
    try:
        lines = [endpoint.stdout.readline() for _ in range(4)]
        address = lines[2].removeprefix("page for browsers: ").strip()
        assert lines[3] == f"clients of networkQuality: networkQuality -k -C {address}.well-known/nq\n"
        trusting = ["--ignore-certificate-errors"]
        async with open_page(tmp_path, watches_network=False, options=trusting) as page:
            await page.open(address)
            await until(page, _READY)
            assert await page.evaluate("performance.getEntriesByType('navigation')[0].nextHopProtocol") == "h2"
            await start(page, "both")
            await until(page, f"{_STATE} === 'Finished.'")
            assert page.problems == []
    finally:
        endpoint.send_signal(signal.SIGINT)
        endpoint.wait(timeout=_WAIT_S)


@pytest.mark.every
async def test_keys_alone_start_and_stop_a_test(page_address: str, tmp_path: Path) -> None:
    """Tab to the direction, an arrow to another one, Enter."""
    async with opened(page_address, tmp_path, (1280, 800)) as page:
        await page.evaluate("document.querySelector('input[value=down]').focus()")
        for key, code in (("ArrowRight", 39),):
            await page.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code)
            await page.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)
        assert await page.evaluate("new FormData(document.getElementById('form')).get('direction')") == "up"
        await page.evaluate("document.getElementById('start').focus()")
        await page.call("Input.dispatchKeyEvent", type="keyDown", key="Enter", windowsVirtualKeyCode=13, text="\r")
        await page.call("Input.dispatchKeyEvent", type="keyUp", key="Enter", windowsVirtualKeyCode=13)
        await until(page, f"{_STATE}.startsWith('Running')")
        await page.evaluate("document.getElementById('start').click()")
        await until(page, f"{_STATE} === 'Finished.'")
        assert page.problems == []


@pytest.mark.every
@pytest.mark.parametrize(
    "state",
    [
        pytest.param("Opening", marks=pytest.mark.every("a page that goes")),
        pytest.param("Warm-up", marks=pytest.mark.every("a page that goes")),
        "Running,",
    ],
)
async def test_a_page_that_is_reloaded_in_a_test_can_start_the_next_one(
    page_address: str, tmp_path: Path, state: str
) -> None:
    """The first test ends with the page; its place is free again."""
    async with opened(page_address, tmp_path) as page:
        await start(page, "both", seconds=30)
        await until(page, f"{_STATE}.startsWith('{state}')")
        await page.open(page_address)
        await until(page, _READY)
        await start(page, "down")
        await until(page, f"{_STATE} === 'Finished.'")
        assert page.problems == []


@pytest.mark.every
@pytest.mark.parametrize(
    "state",
    [
        pytest.param("Ready", marks=pytest.mark.every("a page that sleeps")),
        pytest.param("Opening", marks=pytest.mark.every("a page that sleeps")),
        pytest.param("Warm-up", marks=pytest.mark.every("a page that sleeps")),
        "Running,",
    ],
)
async def test_a_page_that_is_put_to_sleep_ends_its_test_and_goes_on_when_it_wakes(
    page_address: str, tmp_path: Path, state: str
) -> None:
    """As a phone whose screen is locked. The endpoint has its end, and the page can start the next test."""
    async with opened(page_address, tmp_path) as page:
        if state != "Ready":
            await start(page, "both", seconds=30)
            await until(page, f"{_STATE}.startsWith('{state}')")
        await page.evaluate("window.before = control; 0")
        await page.call("Page.setWebLifecycleState", state="frozen")
        if state != "Ready":
            await asyncio.to_thread(wait_for_end, tmp_path / "data")
        await page.call("Page.setWebLifecycleState", state="active")
        # Chromium closes the WebSockets of a page that sleeps.
        await until(page, f"control !== window.before && {_STATE}.startsWith('Ready')")
        assert ("was lost" in await page.evaluate(_STATE)) == (state != "Ready")
        await start(page, "down")
        await until(page, f"{_STATE}.startsWith('Running,')")
        await until(page, f"{_STATE} === 'Finished.'")


def wait_for_end(data: Path) -> None:
    """Wait until the endpoint has ended the test: its log of runs says so, unless it has not begun."""
    deadline = time.monotonic() + _WAIT_S
    while time.monotonic() < deadline:
        if (data / "endpoint.log").exists() and "INTERRUPTED" in (data / "endpoint.log").read_text():
            return
        time.sleep(0.2)
    raise AssertionError("the endpoint did not end the test")


@pytest.mark.parametrize(("width", "height"), [(360, 740), (1280, 800)])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.every("the page's looks")
async def test_nothing_is_cut_off_in_either_look(
    page_address: str, tmp_path: Path, width: int, height: int, scheme: str
) -> None:
    """And text stands out from its background by the least ratio of WCAG, 4.5."""
    async with opened(page_address, tmp_path, (width, height)) as page:
        await page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        await start(page, "both")
        await until(page, f"{_STATE}.startsWith('Running, 3')")
        await take_picture(page, f"live-{width}-{scheme}")
        await until(page, f"{_STATE} === 'Finished.'")
        await take_picture(page, f"result-{width}-{scheme}")
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        ratios = json.loads(await page.evaluate(_CONTRASTS))
        assert {name: ratio for name, ratio in ratios.items() if ratio < 4.5} == {}


@pytest.mark.every
async def test_a_link_has_its_whole_name_in_the_language_of_the_browser(page_address: str, tmp_path: Path) -> None:
    """A narrow list cuts it: then it is below the list as well."""
    choose = (
        "(id => {{ const list = document.getElementById('preset'), chosen = document.getElementById('chosen');"
        "list.value = id; list.dispatchEvent(new Event('change'));"
        "return [list.selectedOptions[0].lang, chosen.hidden, chosen.textContent, chosen.lang] }})('{}')"
    )
    async with opened(page_address, tmp_path, language="ja") as page:
        name = "1000 Mb イーサネット、全二重、MTU 1500 (gbe-fd-1500)"
        assert await page.evaluate(choose.format("gbe-fd-1500")) == ["ja", False, name, "ja"]
        assert await page.evaluate(choose.format("none")) == ["", True, "none (measure only)", ""]
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        await take_picture(page, "japanese")
        await page.evaluate(choose.format("gbe-fd-1500"))
        await page.resize(1280, 800)
        await until(page, "document.getElementById('chosen').hidden")


@pytest.mark.every
async def test_without_its_endpoint_the_page_says_so_and_comes_back(linkgauge: Any, tmp_path: Path) -> None:
    """It goes on trying."""
    endpoint = linkgauge.start("endpoint", "--bind", "127.0.0.1", "--port", "0", "--http", "0")
    endpoint.stdout.readline()
    address = endpoint.stdout.readline().split()[-1]
    try:
        async with opened(address, tmp_path) as page:
            endpoint.send_signal(signal.SIGINT)
            endpoint.wait(timeout=_WAIT_S)
            await until(page, f"{_STATE}.includes('does not answer')")
            port = address.split(":")[2].strip("/")
            endpoint = linkgauge.start("endpoint", "--bind", "127.0.0.1", "--port", "0", "--http", port)
            await until(page, _READY)
    finally:
        with contextlib.suppress(ProcessLookupError):
            endpoint.send_signal(signal.SIGINT)
        endpoint.wait(timeout=_WAIT_S)


@pytest.mark.every
async def test_a_page_whose_path_goes_silent_says_so_and_comes_back(linkgauge: Any, tmp_path: Path) -> None:
    """An endpoint that is stopped is like a path that is gone: nothing comes, and nothing closes the connection."""
    endpoint = linkgauge.start("endpoint", "--bind", "127.0.0.1", "--port", "0", "--http", "0", "--json")
    [address] = json.loads(endpoint.stdout.readline())["listening"]["http"]["links"]
    try:
        async with opened(address, tmp_path) as page:
            await start(page, "down", seconds=60)
            await until(page, f"{_STATE}.startsWith('Running')")
            endpoint.send_signal(signal.SIGSTOP)
            await until(page, f"{_STATE}.includes('lost during the test')")
            endpoint.send_signal(signal.SIGCONT)
            await until(page, _READY)
    finally:
        endpoint.send_signal(signal.SIGCONT)
        endpoint.send_signal(signal.SIGINT)
        endpoint.wait(timeout=_WAIT_S)


@pytest.mark.every
async def test_a_page_that_is_refused_says_why(linkgauge: Any, tmp_path: Path) -> None:
    """A browser tells no script why a WebSocket did not open."""
    options = ("--http", "0", "--json", "--limit", "clients_per_address=1")
    endpoint = linkgauge.start("endpoint", "--bind", "127.0.0.1", "--port", "0", *options)
    [address] = json.loads(endpoint.stdout.readline())["listening"]["http"]["links"]
    try:
        async with opened(address, tmp_path) as page:
            await page.call(
                "Runtime.evaluate", expression="window.second = open(location.href); 0", userGesture=True
            )
            state = "(second.document.getElementById('state') || {}).textContent"
            await until(page, f"{state} === 'Not possible: too many pages are open here; close one. Trying again.'")
    finally:
        endpoint.send_signal(signal.SIGINT)
        endpoint.wait(timeout=_WAIT_S)
