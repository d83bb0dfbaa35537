"""A Chromium without a window, driven over the DevTools protocol, and what the page of `linkgauge web` shows in it.

The terminal of the page draws on a canvas. Its text is read from what the page receives, by a terminal in memory.
"""

import asyncio
import base64
import shutil
import subprocess
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pyte

PROGRAM: Final = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DEADLINE_S: Final = 40.0
_OPTIONS: Final = (
    "--headless=new",
    "--no-sandbox",  # the tests run as root in containers
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-popup-blocking",
    "--disable-background-networking",
    "--disable-component-update",
    "--remote-debugging-port=0",
    "--remote-allow-origins=*",
)


class Page:
    """The page of a browser: keys, size, pictures, and the text of the terminal that it shows."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._number = 0
        self._screen = pyte.Screen(80, 24)
        self._stream = pyte.ByteStream(self._screen)
        self._changed = asyncio.Event()
        self.requested: list[str] = []
        self.problems: list[str] = []
        self.is_closed = False
        self._replaced: dict[str, str] = {}
        self._replacing: set[asyncio.Task[None]] = set()

    async def call(self, method: str, **parameters: Any) -> Any:
        """Carry out a method of the DevTools protocol; return its result."""
        self._number += 1
        answer = self._answers[self._number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._number, "method": method, "params": parameters})
        async with asyncio.timeout(DEADLINE_S):
            return await answer

    async def read(self) -> None:
        """Read what the browser says, for as long as it does."""
        async for message in self._socket:
            document = message.json()
            if "id" in document:
                answer = self._answers.pop(document["id"])
                if not answer.done():
                    answer.set_result(document.get("result"))
                continue
            self._note(document["method"], document.get("params", {}))
            self._changed.set()

    def _note(self, event: str, facts: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent":
            self.requested.append(facts["request"]["url"])
        elif event == "Network.webSocketCreated":
            self.requested.append(facts["url"])
            query = parse_qs(urlsplit(facts["url"]).query)
            if "width" in query:  # the terminal of `linkgauge web`
                self._screen.resize(int(query["height"][0]), int(query["width"][0]))
        elif event == "Network.webSocketFrameReceived" and facts["response"]["opcode"] == 2:
            # A private marker of two bytes, which pyte does not know, would be text.
            data = base64.b64decode(facts["response"]["payloadData"])
            self._stream.feed(data.replace(b"\x1b[?2026$p", b""))
        elif event == "Fetch.requestPaused":
            task = asyncio.create_task(self._replace(facts["requestId"], facts["request"]["url"]))
            self._replacing.add(task)
            task.add_done_callback(self._replacing.discard)
        elif event == "Network.webSocketClosed":
            self.is_closed = True
        elif event == "Log.entryAdded" and facts["entry"]["level"] == "error":
            self.problems.append(f"{facts['entry']['text']} {facts['entry'].get('url', '')}")
        elif event == "Runtime.exceptionThrown":
            self.problems.append(str(facts["exceptionDetails"]))

    async def replace_script(self, name: str, text: str) -> None:
        """Give the browser another text for the scripts of a name, which ends their addresses."""
        self._replaced[name] = text
        await self.call("Fetch.enable", patterns=[{"urlPattern": f"*{each}"} for each in self._replaced])

    async def _replace(self, request: str, url: str) -> None:
        text = next(text for name, text in self._replaced.items() if url.endswith(name))
        headers = [{"name": "Content-Type", "value": "text/javascript"}]
        body = base64.b64encode(text.encode()).decode()
        await self.call(
            "Fetch.fulfillRequest", requestId=request, responseCode=200, responseHeaders=headers, body=body
        )

    async def resize(self, width: int, height: int) -> None:
        """Give the window a size in pixels."""
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    async def open(self, url: str) -> None:
        """Go to an address."""
        self.is_closed = False
        await self.call("Page.navigate", url=url)

    async def press(self, *keys: str) -> None:
        """Press keys: characters, or names such as Escape."""
        codes = {"Escape": 27, "Enter": 13}
        for key in keys:
            text = {} if len(key) > 1 else {"text": key}
            code = codes.get(key, ord(key[0].upper()))
            await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
            await self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    async def evaluate(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        answer = await self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        return answer["result"].get("value")

    async def take_picture(self, path: Path) -> None:
        """Write what the window shows as PNG."""
        answer = await self.call("Page.captureScreenshot", format="png")
        await asyncio.to_thread(path.write_bytes, base64.b64decode(answer["data"]))

    @property
    def text(self) -> str:
        """What the terminal shows."""
        return "\n".join(self._screen.display)

    @property
    def columns(self) -> int:
        """The columns of the terminal as the page opened it."""
        return self._screen.columns

    def forget(self) -> None:
        """Clear the terminal in memory: what comes next is a whole screen of the app."""
        self._screen.reset()

    async def wait_for(self, *texts: str) -> None:
        """Wait until the terminal shows one of these texts."""
        await self._wait(lambda: any(text in self.text for text in texts), f"{texts} in:\n{self.text}")

    async def wait_until_closed(self) -> None:
        """Wait until the app of the page has ended."""
        await self._wait(lambda: self.is_closed, "the end of the session")

    async def _wait(self, is_met: Any, what: str) -> None:
        try:
            async with asyncio.timeout(DEADLINE_S):
                while not is_met():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(f"there was no {what}\nnow:\n{self.text}\n{self.problems}") from None


@asynccontextmanager
async def open_page(
    folder: Path, *, watches_network: bool = True, netns: Sequence[str] = (), options: Sequence[str] = ()
) -> AsyncGenerator[Page]:
    """Start a Chromium with a profile in a folder of the test; yield its page.

    Args:
        folder: The folder of the test.
        watches_network: Whether it reports requests and each message of a WebSocket, as text.
        netns: The words before the command, such as those of another network namespace.
        options: More options of the browser.
    """
    browser = subprocess.Popen(  # noqa: ASYNC220 - a start takes milliseconds
        [*netns, PROGRAM or "", *_OPTIONS, *options, f"--user-data-dir={folder / 'profile'}", "about:blank"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        address = await asyncio.to_thread(_find_address, browser)
        async with aiohttp.ClientSession() as client:
            async with client.get(f"http://{address}/json/list") as answer:
                pages = [each for each in await answer.json() if each["type"] == "page"]
            async with client.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=1 << 28) as socket:
                page = Page(socket)
                reading = asyncio.create_task(page.read())
                for domain in ("Page", *(["Network"] if watches_network else []), "Runtime", "Log"):
                    await page.call(f"{domain}.enable")
                try:
                    yield page
                finally:
                    reading.cancel()
    finally:
        browser.terminate()
        await asyncio.to_thread(browser.communicate, timeout=DEADLINE_S)


def _find_address(browser: "subprocess.Popen[str]") -> str:
    """Return host and port of the DevTools, which the browser prints."""
    assert browser.stderr is not None
    for line in browser.stderr:
        if line.startswith("DevTools listening on ws://"):
            return line.split("/")[2]
    raise AssertionError("Chromium has not started")
