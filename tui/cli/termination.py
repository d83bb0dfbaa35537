"""The end of a command: its exit status, and SIGINT, SIGTERM and SIGHUP in the event loop.

Exit status 0 PASS, or no expected rate; 1 SHORT or FAIL; 2 wrong command line; 3 the test could not run, or broke
off; 128 + N ended by signal N, as shells count: 130 after Ctrl-C.
"""

import asyncio
import logging
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, Protocol

from ...engine.host.end_signals import end_signals
from ...engine.model.errors import LinkgaugeError
from ...engine.model.events import Reason
from ...engine.results.summary import Summary
from ...presets.verdict import Verdict
from .output import note_signal

PASS: Final = 0
SHORT: Final = 1
INCOMPLETE: Final = LinkgaugeError.exit_status
_handlers: Final[list[dict[signal.Signals, Callable[[signal.Signals], None]]]] = []
"""Those of the contexts in force, the innermost last."""
_log = logging.getLogger(__name__)


@contextmanager
def handle_signals(receive: Callable[[signal.Signals], object], *, draws: bool = False) -> Generator[None]:
    """Call `receive` in the running loop for each of the three signals, until the context ends.

    What this process was started to ignore stays ignored; not so SIGHUP with `draws`, for what has a terminal. A
    context within another one takes its signals, and gives them back: what is closed after a screen still hears of
    Ctrl-C.
    """
    loop = asyncio.get_running_loop()
    numbers = end_signals(draws=draws)
    ignored = {number for number in numbers if signal.getsignal(number) is signal.SIG_IGN}

    def deliver(number: signal.Signals) -> None:
        _log.debug("received %s", number.name)
        note_signal(number)
        receive(number)

    own = dict.fromkeys(numbers, deliver)
    for number in numbers:
        loop.add_signal_handler(number, deliver, number)
    _handlers.append(own)
    try:
        yield
    finally:
        _handlers.remove(own)
        outer = _handlers[-1] if _handlers else {}
        for number in numbers:
            if number in outer:
                loop.add_signal_handler(number, outer[number], number)
            else:
                loop.remove_signal_handler(number)
        for number in ignored:
            signal.signal(number, signal.SIG_IGN)


class StoppableRun(Protocol):
    """A run that a signal can stop."""

    def stop(self, reason: Reason, detail: str = "") -> None:
        """Begin to end the run in order."""
        ...


def interruption(number: signal.Signals) -> tuple[Reason, str]:
    """Return the reason for the end of a run that a signal interrupts, and its detail."""
    return Reason.INTERRUPTED, f"interrupted by {number.name}"


class RunStopper:
    """Stops the current run in order at the first signal; cancels the current task at any other.

    Set `run` while one is in progress. Pass `receive` to `handle_signals`. `received` counts the signals, and
    `first` is the first of them.
    """

    def __init__(self, explain: Callable[[signal.Signals], tuple[Reason, str]] = interruption) -> None:
        self.run: StoppableRun | None = None
        self.received = 0
        self.first: signal.Signals | None = None
        self._explain = explain
        self._task = asyncio.current_task()

    def receive(self, number: signal.Signals) -> None:
        """Take a signal."""
        self.received += 1
        self.first = self.first or number
        if self.run is not None and self.received == 1:
            self.run.stop(*self._explain(number))
        elif self._task is not None:
            self._task.cancel()


def signal_exit_status(number: int) -> int:
    """Return the exit status of a command that a signal ended in order."""
    return 128 + number


def unfinished_exit_status(signal_number: int | None) -> int:
    """Return the exit status of a command that has no whole result, because of a signal or for another reason."""
    return INCOMPLETE if signal_number is None else signal_exit_status(signal_number)


def mesh_exit_status(word: str, signal_number: int | None) -> int:
    """Return the exit status of a mesh by the word of its verdict, and by the signal that ended it, if any."""
    if signal_number is not None or word == "none":
        return unfinished_exit_status(signal_number)
    return PASS if word == "pass" else SHORT


def verdict_exit_status(summary: Summary, verdict: Verdict, signal_number: int | None = None) -> int:
    """Return the exit status of a test that started; `signal_number` is that of a signal that came during it."""
    if summary.end.reason is Reason.INTERRUPTED and signal_number is not None:
        return signal_exit_status(signal_number)
    if not summary.end.reason.is_regular:
        return INCOMPLETE
    if verdict.word in {"short", "fail"}:
        return SHORT
    # Without a sample after the warm-up there is no result, and a script must not take that for a pass.
    return PASS if summary.measured.total is not None else INCOMPLETE
