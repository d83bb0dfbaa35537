"""The app in a pseudo-terminal, and a terminal in memory that renders its output."""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import pyte

_DEADLINE_S = 20.0
# Parsing must not delay reading: a frame is timed when it is read.
_PARSED_AT_ONCE = 256


class Terminal:
    """Takes keys and renders the screen. `written` counts the bytes of the app's output."""

    def __init__(self, pid: int, master: int, size: tuple[int, int]) -> None:
        columns, lines = size
        self.pid = pid
        self.screen = pyte.Screen(columns, lines)
        self.written = 0
        self._stream = pyte.ByteStream(self.screen)
        self._master = master
        self._waiting: list[tuple[float, bytes]] = []

    @property
    def text(self) -> str:
        """The text of the screen, with plain spaces."""
        return "\n".join(self.screen.display).replace("\N{NO-BREAK SPACE}", " ")

    def press(self, keys: str) -> None:
        """Press keys."""
        os.write(self._master, keys.encode())

    def until(self, is_there: Callable[[str], bool], within_s: float = _DEADLINE_S) -> float:
        """Follow the screen until `is_there` accepts it; return when that frame came, on the monotonic clock.

        Raises TimeoutError if it does not come, and OSError if the app has ended.
        """
        came = time.monotonic()
        deadline = came + within_s
        while not is_there(self.text):
            if not self._waiting and not self._read(max(deadline - time.monotonic(), 0)):
                raise TimeoutError(f"waited in vain on\n{self.text}")
            came = self._show_all()
        return came

    def follow(self, seconds: float) -> None:
        """Follow the screen for some seconds, or until the app has ended."""
        until = time.monotonic() + seconds
        with suppress(OSError):
            while (left := until - time.monotonic()) > 0:
                if self._read(left):
                    self._show_all()

    def press_and_time(self, keys: str, is_there: Callable[[str], bool]) -> float:
        """Press keys; return the seconds until their effect is visible."""
        began = time.monotonic()
        self.press(keys)
        return self.until(is_there) - began

    def _read(self, within_s: float) -> bool:
        """Read pending output with its time; return whether there was any."""
        if not select.select([self._master], [], [], within_s)[0]:
            return False
        part = os.read(self._master, 65_536)
        self.written += len(part)
        self._waiting.append((time.monotonic(), part))
        return True

    def _show_all(self) -> float:
        """Render the output read so far; return when the last of it came."""
        came = 0.0
        while self._waiting:
            came, part = self._waiting.pop(0)
            for start in range(0, len(part), _PARSED_AT_ONCE):
                self._stream.feed(part[start : start + _PARSED_AT_ONCE])
                self._read(0)
        return came


@contextmanager
def open_app(
    *arguments: str,
    size: tuple[int, int] = (120, 40),
    program: Sequence[str] = ("-m", "linkgauge"),
    environment: Mapping[str, str] | None = None,
) -> Generator[Terminal]:
    """Yield the app in a terminal; quit it by its keys, and wait for its end.

    `program` is what Python runs: another app than linkgauge, to compare with.
    """
    variables = {
        "LANG": "C.UTF-8",
        **(os.environ if environment is None else environment),
        "TERM": "xterm-256color",
    }
    pid, master = pty.fork()
    if pid == 0:
        os.execve(sys.executable, [sys.executable, *program, *arguments], variables)
    try:
        fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", size[1], size[0], 0, 0))
        terminal = Terminal(pid, master, size)
        yield terminal
        with suppress(OSError):
            for key in ("\x1b", "\x1b", "q"):
                terminal.press(key)
                terminal.follow(0.7)
            terminal.follow(2.0)
    finally:
        os.close(master)
        _wait(pid)


def _wait(pid: int) -> None:
    """Wait until the app has ended: closing its terminal ends it. Kill it if that does not."""
    ended = os.pidfd_open(pid)
    try:
        if not select.select([ended], [], [], _DEADLINE_S)[0]:
            signal.pidfd_send_signal(ended, signal.SIGKILL)
    finally:
        os.close(ended)
        os.waitpid(pid, 0)


def thread_times_ms(pid: int) -> tuple[float, float]:
    """Return the ms that a process's main thread has worked, and waited for a core."""
    with suppress(OSError):
        worked, waited, _ = Path(f"/proc/{pid}/task/{pid}/schedstat").read_text(encoding="ascii").split()
        return int(worked) / 1e6, int(waited) / 1e6
    return 0.0, 0.0
