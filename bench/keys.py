"""How long a key takes to be seen, while a run over loopback keeps every core busy.

Usage: .venv/bin/python bench/keys.py [--keys 60]

The app runs in a real pseudo-terminal, and a terminal in memory shows what it draws. Sessions and the preset's
filter are typed into; the time is from the key's byte to the frame in which what it does can be read.
"""

import argparse
import fcntl
import os
import pty
import select
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from statistics import median, quantiles

import pyte

_COLUMNS, _LINES = 120, 40
_DEADLINE_S = 20.0
_TARGET_MS = 50.0


class Terminal:
    """The app's terminal: keys go in, what a person would see comes out."""

    def __init__(self, master: int) -> None:
        self.screen = pyte.Screen(_COLUMNS, _LINES)
        self._stream = pyte.ByteStream(self.screen)
        self._master = master

    def press(self, key: str) -> None:
        """Press a key."""
        os.write(self._master, key.encode())

    def until(self, is_there: Callable[[str], bool], within_s: float = _DEADLINE_S) -> float:
        """Follow the screen until it shows something; return in how many seconds it did."""
        began = time.monotonic()
        while not is_there("\n".join(self.screen.display)):
            left = began + within_s - time.monotonic()
            if left <= 0 or not select.select([self._master], [], [], left)[0]:
                raise SystemExit("waited in vain on\n" + "\n".join(self.screen.display))
            self._stream.feed(os.read(self._master, 65_536))
        return time.monotonic() - began

    def rest(self, seconds: float) -> None:
        """Follow the screen for a while."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if select.select([self._master], [], [], left)[0]:
                try:
                    self._stream.feed(os.read(self._master, 65_536))
                except OSError:  # the app has left
                    return

    def timed(self, key: str, is_there: Callable[[str], bool]) -> float:
        """Press a key; return the milliseconds until what it does is seen."""
        self.press(key)
        return 1e3 * self.until(is_there)


@contextmanager
def _app() -> Generator[Terminal]:
    pid, master = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "xterm-256color"
        os.execvp(sys.executable, [sys.executable, "-m", "linkgauge"])
    try:
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", _LINES, _COLUMNS, 0, 0))
        terminal = Terminal(master)
        yield terminal
        for key in ("\x1b", "q"):
            terminal.press(key)
            terminal.rest(1.5)
    finally:
        os.close(master)
        os.waitpid(pid, 0)


def _measure(terminal: Terminal, keys: int) -> dict[str, list[float]]:
    terminal.until(lambda text: "READY" in text)
    terminal.press("t" * 3)  # from 30 s to no end
    terminal.until(lambda text: "until stopped" in text)
    terminal.press(" ")
    terminal.until(lambda text: "RUNNING 00:03" in text)
    steps: list[float] = []
    for number in range(keys // 2):
        key, shown = ("+", "sessions 1 [2]") if number % 2 == 0 else ("-", "sessions [1]")
        steps.append(terminal.timed(key, lambda text, shown=shown: shown in text))
        terminal.rest(0.3)
    terminal.press("n")
    terminal.until(lambda text: "type to filter" in text)
    typed: list[float] = []
    word = ""
    for number in range(keys // 2):
        letter = "ethernet"[number % 8]
        word += letter
        typed.append(terminal.timed(letter, lambda text, word=word: word[-40:] in text))
        terminal.rest(0.15)
    return {"+ and -": steps, "typing a filter": typed}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="How long a key takes to be seen under load.")
    parser.add_argument("--keys", type=int, default=60)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LINKGAUGE_DATA_DIR"] = folder
        with _app() as terminal:
            found = _measure(terminal, options.keys)
    for name, times in found.items():
        late = quantiles(times, n=20)[-1]
        print(f"{name}: median {median(times):.0f} ms, 95 % within {late:.0f} ms, of {len(times)} keys")
    print(f"to be within {_TARGET_MS:.0f} ms")


if __name__ == "__main__":
    main()
