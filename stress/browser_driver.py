"""A Chromium that carries out one test with the page of an endpoint; prints the run's id, and what it cost.

Usage: .venv/bin/python stress/browser_driver.py URL FOLDER down|up|both SESSIONS SECONDS PRESET [--slow]

The cost is CPU time in seconds for each kind of process of the browser, as JSON.
It is a command of its own, because the browser's DevTools are reached in its network namespace alone. With --slow
the page's reader waits at each message that it receives, so that the device reads slowly.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import asyncio
import contextlib
import json
import os
import re
import sys
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from end_to_end.chromium import Page, open_page

_DEADLINE_S: Final = 100.0
_LOOK_S: Final = 0.3
_MOVER: Final = Path(__file__).parents[1] / "tui" / "endpoint" / "browser" / "page" / "mover.js"
_SLOW_READER: Final = """
const memory = new WebAssembly.Memory({initial: 1, maximum: 1, shared: true});
const own = WebSocket, nobody = new Int32Array(memory.buffer);
WebSocket = class extends own {
  set onmessage(react) { super.onmessage = event => { Atomics.wait(nobody, 0, 0, 100); react(event); }; }
};
"""  # each wait is one of 100 ms in the thread that reads, without work for a core
_STATE: Final = "document.getElementById('state').textContent"


def descendants(pid: int) -> list[int]:
    """Return the processes below a process."""
    children: list[int] = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):  # a browser starts processes from other threads, too
        with contextlib.suppress(OSError):
            children += [int(each) for each in task.read_text().split()]
    return [each for child in children for each in (child, *descendants(child))]


def browser_cpu_s() -> dict[str, float]:
    """Return the CPU time of the browser's processes so far, by their kind."""
    spent: dict[str, float] = {}
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            kind = re.search(r"--utility-sub-type=([\w.]+)", words) or re.search(r"--type=([\w-]+)", words)
            text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
            user, system = text.rpartition(")")[2].split()[11:13]
            name = "browser" if kind is None else kind[1].split(".")[0]
            spent[name] = spent.get(name, 0.0) + (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    return spent


async def _until(page: Page, expression: str) -> None:
    async with asyncio.timeout(_DEADLINE_S):
        while not await page.evaluate(f"!!({expression})"):  # noqa: ASYNC110 - the state of another process
            await asyncio.sleep(_LOOK_S)


async def carry_out(options: argparse.Namespace) -> tuple[str, dict[str, float]]:
    """Carry out the test; return the id of its run, and its CPU time by kinds of processes."""
    async with open_page(options.folder, watches_network=False) as page:
        if options.slow:
            await page.replace_script(_MOVER.name, _SLOW_READER + _MOVER.read_text(encoding="utf-8"))
        await page.open(options.url)
        await _until(page, "document.getElementById('start') && !document.getElementById('start').disabled")
        await page.evaluate(
            f"document.querySelector('input[value={options.way}]').click();"
            f"for (const [id, value] of [['sessions', '{options.sessions}'], ['seconds', '{options.seconds}']]) {{"
            "const box = document.getElementById(id); box.add(new Option(value, value)); box.value = value }"
            f"document.getElementById('preset').value = '{options.preset}';"
            "document.getElementById('start').click()"
        )
        before = browser_cpu_s()
        await _until(page, f"{_STATE} === 'Finished.' || {_STATE}.startsWith('Not possible')")
        spent = {name: round(after - before.get(name, 0.0), 2) for name, after in browser_cpu_s().items()}
        text = await page.evaluate("document.body.innerText")
        found = re.search(r"run (\d{8}-\d{6}-\w+)", text)
        if found is None:
            raise RuntimeError(text)
        return found[1], spent


def main() -> None:
    """Print the id of the run, and the browser's CPU time."""
    parser = argparse.ArgumentParser()
    parser.add_argument("url")
    parser.add_argument("folder", type=Path)
    parser.add_argument("way")
    parser.add_argument("sessions", type=int)
    parser.add_argument("seconds", type=int)
    parser.add_argument("preset")
    parser.add_argument("--slow", action="store_true")
    run_id, spent = asyncio.run(carry_out(parser.parse_args()))
    print(run_id, json.dumps(spent))


if __name__ == "__main__":
    main()
