"""Twenty pages for browsers at once, two of them in Chromium, that stay, close, load again or sleep in any state.

Usage: .venv/bin/python stress/browser_crowd.py [--rounds 3] [--pages 20] [--seed 1]

The endpoint has room for exactly that many tests, so a place that is not given back refuses a page of the next
round. Each page has a fate and a state in which it meets it, by chance from the seed. Scripts stand for most
browsers: they send what the page's own script sends. After each round the endpoint's log must have one end for each
test, with the reason that the fate has, and its process must have the resources that it had before. Exits with 1
otherwise.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import asyncio
import contextlib
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from linkgauge.tests.end_to_end.chromium import PROGRAM, Page
from linkgauge.tests.end_to_end.chromium import open_page as open_chromium
from linkgauge.tests.tui.endpoint.browser.scripted_page import ScriptedPage, open_page
from resources import Resources, resources_of, wait_for_release

_REAL: Final = 2
_STATES: Final = ("ready", "opening", "warm-up", "running")
_FATES: Final = ("stays", "closes", "loads again", "sleeps", "loses its network")
_ENDS: Final = {
    "finished": r": finished: ",
    "closed": r"the page was closed, or its connection",
    "asleep": r"has not answered for",
}
_LOGGED_S: Final = 61.0  # a round has most of the lines that the endpoint's log takes in a minute
_END: Final = r": (finished|INTERRUPTED|FAILED|rejected)"
_SECONDS: Final = 5  # of a test that ends by itself
_LONG_SECONDS: Final = 30
_PAUSE_S: Final = 0.1  # each message: some 20 Mb/s a page
_DEADLINE_S: Final = 60.0
_MARGIN_KIB: Final = 32 * 1024
_STATE: Final = "document.getElementById('state').textContent"


@dataclass(frozen=True)
class Part:
    """What one page does: `fate` meets it in `state`, in a test with a direction."""

    fate: str
    state: str
    direction: str

    @property
    def ends(self) -> list[str]:
        """The ends of its tests, in the endpoint's log. A page that sleeps closes nothing."""
        first = {"stays": "finished", "sleeps": "asleep"}.get(self.fate, "closed")
        own = [] if self.state == "ready" and self.fate != "stays" else [first]
        return own + (["finished"] if self.fate == "loads again" else [])


def draw_part(chance: random.Random) -> Part:
    """Return a part by chance. A page that sleeps before its test has nothing to end."""
    fate, state = chance.choice(_FATES), chance.choice(_STATES)
    if fate == "sleeps" and state == "ready":
        state = "running"
    return Part(fate, state, chance.choice(("down", "up", "both")))


async def play_script(base: str, part: Part) -> str:
    """Play a part without a browser; return what went wrong, or nothing."""
    async with open_page(base, pause_s=_PAUSE_S) as page:
        problem = await _reach(page, part.state if part.fate != "stays" else "", part.direction)
        if problem or part.fate == "stays":
            return problem
        if part.fate == "sleeps":
            page.is_answering = False
            with contextlib.suppress(ConnectionError):
                answer = await page.read_until("refused", "result")
                return "" if "not answered" in str(answer) else f"a page that sleeps was told {answer}"
            return ""
        if part.fate != "loses its network":
            await page.control.close()
        for each in (
            *page.data,
            page.control,
        ):  # no worker of the endpoint says goodbye, and no browser waits for it
            transport = each._response.connection and each._response.connection.transport
            if transport is not None:
                transport.abort()
    if part.fate == "loads again":
        async with open_page(base, pause_s=_PAUSE_S) as page:
            return await _reach(page, "", part.direction)
    return ""


async def _reach(page: ScriptedPage, state: str, direction: str) -> str:
    """Carry a test on to a state, or to its end; return what went wrong, or nothing."""
    if state == "ready":
        return ""
    await page.start(direction, sessions=1, seconds=_LONG_SECONDS if state else _SECONDS)
    kinds = {"opening": "open", "warm-up": "begin", "running": "interval"}
    answer = await page.read_until(kinds.get(state, "result"), "result", "refused")
    while state == "running" and answer["type"] == "interval" and answer["warmup"]:
        answer = await page.read_until("interval", "result", "refused")
    return answer["text"] if answer["type"] == "refused" else ""


async def play_browser(base: str, part: Part, folder: Path) -> str:
    """Play a part in a Chromium; return what went wrong, or nothing."""
    async with open_chromium(folder, watches_network=False) as page:
        await page.open(base)
        problem = await _carry_on(page, part.state if part.fate != "stays" else "", part.direction)
        if problem or part.fate == "stays":
            return problem
        if part.fate == "sleeps":
            await page.call("Page.setWebLifecycleState", state="frozen")
            await asyncio.sleep(8.0)
        elif part.fate == "loads again":
            await page.open(base)
            return await _carry_on(page, "", part.direction)
        elif part.fate == "closes":
            await page.open("about:blank")
    return ""


async def _carry_on(page: Page, state: str, direction: str) -> str:
    await _until(page, "document.getElementById('start') && !document.getElementById('start').disabled")
    if state == "ready":
        return ""
    seconds = _LONG_SECONDS if state else _SECONDS
    await page.evaluate(
        f"document.querySelector('input[value={direction}]').click();document.getElementById('sessions').value='1';"
        f"document.getElementById('seconds').value='{seconds}';document.getElementById('start').click()"
    )
    words = {"opening": "Opening", "warm-up": "Warm-up", "running": "Running,"}.get(state, "Finished.")
    over = f"{_STATE} === 'Finished.' || {_STATE}.startsWith('Not possible')"
    await _until(page, f"{_STATE}.startsWith('{words}') || {over}")
    text = await page.evaluate(_STATE)
    return text if text.startswith("Not possible") else ""


async def _until(page: Page, expression: str) -> None:
    async with asyncio.timeout(_DEADLINE_S):
        while not await page.evaluate(f"!!({expression})"):  # noqa: ASYNC110 - the state of another process
            await asyncio.sleep(0.05)


@contextlib.contextmanager
def served(folder: Path, pages: int) -> Generator[tuple[str, int, Path]]:
    """Start an endpoint for so many tests; yield its page's address, its process and its log."""
    log = folder / "endpoint.log"
    limits = (f"clients={pages}", f"clients_per_address={pages}")
    options = ["--bind", "127.0.0.1", "--port", "0", "--http", "0", "--log-file", str(log)]
    options += [word for limit in limits for word in ("--limit", limit)]
    endpoint = subprocess.Popen(
        [sys.executable, "-m", "linkgauge", "endpoint", *options],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "LINKGAUGE_DATA_DIR": str(folder / "data")},
    )
    try:
        assert endpoint.stdout is not None
        address = next(line.split()[-1] for line in endpoint.stdout if line.startswith("page for browsers"))
        yield address, endpoint.pid, log
    finally:
        endpoint.send_signal(signal.SIGINT)
        endpoint.wait(_DEADLINE_S)


async def _play(base: str, parts: list[Part], folder: Path) -> list[str]:
    folders = [folder / f"browser{number}" for number in range(_REAL)]
    for each in folders:
        each.mkdir(parents=True)
    plays = [
        play_browser(base, part, folders[number]) if number < _REAL else play_script(base, part)
        for number, part in enumerate(parts)
    ]
    answers = await asyncio.gather(*plays, return_exceptions=True)
    return [f"{part}: {answer or 'nothing'}" for part, answer in zip(parts, answers, strict=True) if answer]


def _ends_in(text: str) -> Counter[str]:
    return Counter({name: len(re.findall(pattern, text)) for name, pattern in _ENDS.items()})


def play_round(base: str, parts: list[Part], folder: Path, log: Path) -> list[str]:
    """Play a round; return what went wrong."""
    before = len(log.read_text(encoding="utf-8"))
    problems = asyncio.run(_play(base, parts, folder))
    wanted = Counter(end for part in parts for end in part.ends)
    until = time.monotonic() + _DEADLINE_S
    while (ends := _ends_in(log.read_text(encoding="utf-8")[before:])) != wanted and time.monotonic() < until:
        time.sleep(0.2)
    if ends != wanted:
        lines = [line for line in log.read_text(encoding="utf-8")[before:].splitlines() if re.search(_END, line)]
        problems += [f"ends {dict(ends)} instead of {dict(wanted)}:", *lines]
    if "Traceback" in log.read_text(encoding="utf-8"):
        problems.append("a traceback in the log")
    return problems


def main() -> None:
    """Play the rounds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pages", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if PROGRAM is None:
        sys.exit("Chromium is not installed")
    chance, has_failed = random.Random(options.seed), False
    with tempfile.TemporaryDirectory() as name, served(Path(name), options.pages) as (base, pid, log):
        warm: Resources | None = None
        for number in range(options.rounds):
            time.sleep(_LOGGED_S if number else 0.0)
            folder = Path(name, f"round{number}")
            parts = [draw_part(chance) for _ in range(options.pages)]
            problems = play_round(base, parts, folder, log)
            if warm is None:
                warm, text = resources_of(pid), "the first round's resources are the measure of the others"
            else:
                took_s, left = wait_for_release(pid, warm, _DEADLINE_S, _MARGIN_KIB)
                text = f"resources back after {took_s:.1f} s" if not left else f"kept {left}"
                problems += [text] if left else []
            counts = ", ".join(f"{count} {fate}" for fate, count in Counter(part.fate for part in parts).items())
            print(f"round {number + 1}: {counts}; {text}", *problems, sep="\n  ", flush=True)
            has_failed = has_failed or bool(problems)
    sys.exit(has_failed)


if __name__ == "__main__":
    main()
