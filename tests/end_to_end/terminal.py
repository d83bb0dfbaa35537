"""A pseudo-terminal for the real app: the screen is one in memory, the keys are typed.

Nothing here waits for time to pass: it waits for words on the screen, for bytes of the terminal or for the end of a
process, each with a deadline.
"""

import fcntl
import os
import re
import select
import struct
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyte

from ..command_process import COMMAND, CommandProcess

DEADLINE_S = 20.0
SMALL, LARGE = (80, 24), (120, 40)
ENTER, CTRL_C, UP = "\r", "\x03", "\x1b[A"
RUNNING = re.compile(r"RUNNING +(\d\d):(\d\d)")

OpenTerminal = Callable[..., "Terminal"]


class Terminal:
    """A terminal with the app in it: keys go in, what a person would see comes out.

    Args:
        arguments: the command line after `linkgauge`.
        size: columns and lines.
        environment: of the app.
        folder: where it is started.
        within: a command that starts it.
    """

    def __init__(
        self,
        arguments: list[str],
        size: tuple[int, int],
        environment: dict[str, str],
        folder: Path,
        within: Sequence[str] = (),
    ) -> None:
        columns, lines = size
        self._screen = pyte.Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        self._fd, inside = os.openpty()
        self._name = os.ttyname(inside)
        self._is_open = True
        self.drawn = b""
        self._set_size(columns, lines)
        self.modes_before = termios.tcgetattr(self._fd)
        self.process = CommandProcess(
            [*within, *COMMAND, *arguments], stdin=inside, stdout=inside, stderr=inside,
            cwd=folder, env=environment, start_new_session=True, is_login=True,
        )  # fmt: skip
        os.close(inside)

    @property
    def text(self) -> str:
        """What stands on the screen, line by line."""
        return "\n".join(self._screen.display)

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._fd, keys.encode())

    def until(self, is_there: Callable[[str], object], what: object) -> None:
        """Follow the screen until it shows what is waited for."""
        deadline = time.monotonic() + DEADLINE_S
        while not is_there(self.text):
            assert self._feed(deadline), f"waited in vain for {what!r} on\n{self.text}"

    def see(self, *words: str) -> None:
        """Follow the screen until all these words are on it."""
        self.until(lambda text: all(word in text for word in words), words)

    def lose(self, *words: str) -> None:
        """Follow the screen until none of these words is on it."""
        self.until(lambda text: not any(word in text for word in words), f"nothing of {words}")

    def run_until(self, seconds: int) -> None:
        """Follow a run until its stopwatch has gone so far."""
        self.until(lambda text: (shown := stopwatch(text)) is not None and shown >= seconds, f"{seconds} s")

    def resize(self, columns: int, lines: int) -> None:
        """Change the terminal's size; the kernel tells the app with SIGWINCH."""
        self._screen.resize(lines, columns)
        self._screen.reset()
        self._set_size(columns, lines)

    def stop_output(self) -> None:
        """Stop the terminal's output, as a multiplexer or a sleeping ssh connection does: writes to it block."""
        inside = os.open(self._name, os.O_RDWR | os.O_NOCTTY)
        termios.tcflow(inside, termios.TCOOFF)
        os.close(inside)

    def continue_output(self) -> None:
        """Let the terminal's output go on."""
        inside = os.open(self._name, os.O_RDWR | os.O_NOCTTY)
        termios.tcflow(inside, termios.TCOON)
        os.close(inside)

    def finish(self) -> int:
        """Follow the screen to the app's end; return its exit status."""
        deadline = time.monotonic() + DEADLINE_S
        while self._feed(deadline):
            pass
        return self.process.wait(timeout=DEADLINE_S)

    def is_restored(self) -> bool:
        """Tell whether the app gave the terminal back as it was: screen, cursor, mouse and line modes."""
        given_back = all(code in self.drawn for code in (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1003l"))
        return given_back and termios.tcgetattr(self._fd) == self.modes_before

    def hang_up(self) -> None:
        """Close the terminal, as a lost SSH connection does."""
        if self._is_open:
            self._is_open = False
            os.close(self._fd)

    def close(self) -> None:
        """End and reap the app, if it is still there."""
        if self.process.poll() is None:
            self.process.kill()
        self.hang_up()
        self.process.wait(timeout=DEADLINE_S)

    def _set_size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def _feed(self, deadline: float) -> bool:
        """Take in what the app draws next; return False at its end, or when it is too late."""
        ready, _, _ = select.select([self._fd], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return False
        try:
            part = os.read(self._fd, 65_536)
        except OSError:  # Linux says so when nobody is left inside
            return False
        self.drawn += part
        self._stream.feed(part)
        return bool(part)


def stopwatch(text: str) -> int | None:
    """Return the seconds that a running run has gone on by the screen; None while none does."""
    shown = RUNNING.search(text)
    return None if shown is None else 60 * int(shown[1]) + int(shown[2])
