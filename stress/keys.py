"""The latency of keys in the app, while a run over loopback keeps every core busy.

Usage: .venv/bin/python stress/keys.py [--keys 24] [--kept 200]

The app runs in a pseudo-terminal, and a terminal in memory renders its output. Every kind of key is pressed:
settings, help, letters in both filters, arrows in both lists. The latency is from the key's byte to the frame that
shows its effect, printed with the time that the app's main thread worked and waited for a core meanwhile.
"""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import argparse
import asyncio
import os
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterable
from itertools import cycle, islice
from pathlib import Path
from statistics import median, quantiles

sys.path.insert(0, str(Path(__file__).parents[1] / "bench"))

from linkgauge.engine.far.loopback import embedded_endpoint
from linkgauge.engine.model.events import Event
from linkgauge.engine.model.peer import LOOPBACK
from linkgauge.engine.model.plan import SECOND_NS, Plan
from linkgauge.engine.near.run import open_run
from linkgauge.engine.results.meter import replay
from linkgauge.engine.results.run_log import RunLog
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.verdict import judge
from linkgauge.tui.session.run_recorder import Outcome
from terminal import Terminal, open_app, thread_times_ms

_TARGET_MS = 50.0
Key = tuple[str, Callable[[str], bool]]
Latency = tuple[float, float, float]  # ms until the effect is visible, of these at work and waiting for a core


def _shows(words: str) -> Callable[[str], bool]:
    return lambda text: words in text


def _lacks(words: str) -> Callable[[str], bool]:
    return lambda text: words not in text


_TOGGLES: list[Key] = [
    ("+", _shows("sessions 1 [2]")),
    ("-", _shows("sessions [1]")),
    ("]", _shows("[16K]")),
    ("[", _shows("[auto]")),
    ("d", _shows("[in]")),
    ("d", _shows("[duplex]")),
    ("d", _shows("[out]")),
    ("t", _shows("[5 s]")),
    ("t" * 5, _shows("[until stopped]")),
    ("p", _shows("FROZEN")),
    ("p", _lacks("FROZEN")),
]
_LISTS = (("presets", "n", "type to filter", 5), ("history", "h", "runs kept", 3))
_HELP: list[Key] = [("?", _shows("keys and marks")), ("\x1b", _lacks("keys and marks"))]


def _measure(terminal: Terminal, keys: Iterable[Key]) -> list[Latency]:
    """Press each key at a random phase of the refresh."""
    chance, latencies = random.Random(1), list[Latency]()
    for key, is_there in keys:
        worked, waited = thread_times_ms(terminal.pid)
        took_s = terminal.press_and_time(key, is_there)
        work, wait = thread_times_ms(terminal.pid)
        latencies.append((1e3 * took_s, work - worked, wait - waited))
        terminal.follow(0.25 + 0.25 * chance.random())
    return latencies


def _letters(count: int) -> Iterable[Key]:
    """Type a word letter by letter, then delete it letter by letter."""
    word = "ethernet"
    typed = [(letter, word[: at + 1]) for at, letter in enumerate(word)]
    rubbed = [("\x7f", word[:at]) for at in range(len(word) - 1, 0, -1)]
    for key, left in islice(cycle([*typed, *rubbed, ("\x7f", "filter: .*")]), count):
        line = re.compile(rf"\W*{left}\W*$")
        yield key, lambda text, line=line: any(map(line.match, text.splitlines()[:6]))


def _arrows(terminal: Terminal, first: int, count: int) -> Iterable[Key]:
    """Go down and up a list; the line with the cursor's background changes."""
    for key in islice(cycle(["\x1b[B"] * 6 + ["\x1b[A"] * 6), count):
        before = _at_cursor(terminal, first)
        yield key, lambda _text, before=before: _at_cursor(terminal, first) not in {before, ""}


def _at_cursor(terminal: Terminal, first: int) -> str:
    """Return the line of the list whose background differs from its neighbours'."""
    screen = terminal.screen
    backgrounds = [screen.buffer[y][6].bg for y in range(screen.lines)]
    rows = range(first, len(backgrounds) - 2)
    matches = (y for y in rows if backgrounds[y - 1] == backgrounds[y + 1] != backgrounds[y])
    return next((screen.display[y] for y in matches), "")


def _all_kinds(
    terminal: Terminal, keys: int, lists: Iterable[tuple[str, str, str, int]]
) -> dict[str, list[Latency]]:
    terminal.until(_shows("READY"))
    terminal.press("t" * 3)  # from 30 s to no end
    terminal.until(_shows("until stopped"))
    terminal.press(" ")
    terminal.until(_shows("RUNNING 00:03"))
    found = {
        "toggles": _measure(terminal, islice(cycle(_TOGGLES), max(keys, len(_TOGGLES)))),
        "help and back": _measure(terminal, islice(cycle(_HELP), keys // 2 * 2)),
    }
    for name, key, is_there, first in lists:
        terminal.press(key)
        terminal.until(_shows(is_there))
        terminal.follow(1.0)
        found[f"arrows in the {name}"] = _measure(terminal, _arrows(terminal, first, keys))
        if name == "history":
            terminal.press("/")
            terminal.follow(0.5)
        found[f"letters in the {name}"] = _measure(terminal, _letters(keys))
        terminal.press("\x1b")
        terminal.follow(0.7)
        if name == "history":
            terminal.press("\x1b")
        terminal.until(_shows("RUNNING"))
    return found


async def _events() -> list[Event]:
    """Return the events of a short run."""
    async with embedded_endpoint() as far, open_run(Plan(duration_ns=SECOND_NS), far) as run:
        return [event async for event in run]


def _fill_log(folder: Path, runs: int) -> None:
    """Fill a run log with copies of one real run."""
    preset = load_catalog().find("loopback")
    events = asyncio.run(_events())
    meter = replay(events)
    verdict = judge(meter.summary())
    with RunLog.open(folder) as log:
        for number in range(runs):
            run_id = f"20261121-{number // 60:02d}{number % 60:02d}00-{number:04x}"
            log.begin(run_id, preset.id, str(LOOPBACK), label=f"{'ethernet' if number % 3 else 'fddi'} {number}")
            for event in events:
                log.append_event(run_id, event)
            document = Outcome.of(meter, verdict, run_id=run_id, preset=preset.id).document
            log.finish(run_id, verdict.word, document)
            log.flush()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="How long a key takes to be seen under load.")
    parser.add_argument("--keys", type=int, default=24)
    parser.add_argument("--kept", type=int, default=200)
    parser.add_argument("--without", choices=[list_kind[0] for list_kind in _LISTS])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LINKGAUGE_DATA_DIR"] = folder
        _fill_log(Path(folder), options.kept)
        with open_app() as terminal:
            found = _all_kinds(
                terminal, options.keys, [list_kind for list_kind in _LISTS if list_kind[0] != options.without]
            )
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores, {options.kept} runs kept")
    for name, pressed in found.items():
        took, worked, waited = zip(*pressed, strict=True)
        late = quantiles(took, n=20)[-1]
        print(
            f"{name:>22}: median {median(took):4.0f} ms, 95 % within {late:5.0f} ms, of {len(pressed)} keys"
            f"  (at work {median(worked):3.0f} ms, waiting for a core {median(waited):3.0f} ms)"
        )
    print(f"to be within {_TARGET_MS:.0f} ms")


if __name__ == "__main__":
    main()
