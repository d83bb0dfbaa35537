"""The end of a command: its exit status, and SIGINT, SIGTERM and SIGHUP in the event loop.

Exit status 0 PASS, or no expected rate; 1 SHORT or FAIL; 2 wrong command line; 3 the test could not run, or broke
off; 128 + N ended by signal N, as shells count: 130 after Ctrl-C.
"""

import asyncio
import logging
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from ...engine.host.end_signals import end_signals
from ...engine.model.errors import LinkgaugeError
from ...engine.model.run_end import Reason
from .output import note_signal

if TYPE_CHECKING:
    from ...engine.results.run_result import RunResult

PASS: Final = 0
SHORT: Final = 1
INCOMPLETE: Final = LinkgaugeError.exit_status
_handlers: Final[list[dict[signal.Signals, Callable[[signal.Signals], None]]]] = []
"""The handlers of the contexts in force, the innermost last."""
_log = logging.getLogger(__name__)


@contextmanager
def handle_signals(receive: Callable[[signal.Signals], object], *, draws: bool = False) -> Generator[None]:
    """Call `receive` in the running loop for each of the three signals, until the context ends.

    A signal that this process was started to ignore stays ignored, except SIGHUP with `draws`, for a command with a
    terminal. A context within another one takes its signals, and gives them back: after a screen has closed, the
    outer one still hears of Ctrl-C.
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


def interruption(number: signal.Signals) -> tuple[Reason, str]:
    """Return the reason for the end of a run that a signal interrupts, and its detail."""
    return Reason.INTERRUPTED, f"interrupted by {number.name}"


class RunStopper:
    """Stops the current run in order at the first signal; cancels the task at any other.

    Set `stop` while a run is in progress: it begins to end the run in order. `received` counts the signals, and
    `first` is the first of them.
    """

    def __init__(self, explain: Callable[[signal.Signals], tuple[Reason, str]] = interruption) -> None:
        self.stop: Callable[[Reason, str], object] | None = None
        self.received = 0
        self.first: signal.Signals | None = None
        self._explain = explain
        self._task: asyncio.Task[Any] | None = None

    @contextmanager
    def in_force(self) -> Generator[None]:
        """Take the signals of this task until the context ends. A signal may end it."""
        self._task = asyncio.current_task()
        with handle_signals(self.receive):
            try:
                yield
            except asyncio.CancelledError:
                if not self.received:
                    raise

    def receive(self, number: signal.Signals) -> None:
        """Take a signal."""
        self.received += 1
        self.first = self.first or number
        if self.stop is not None and self.received == 1:
            self.stop(*self._explain(number))
        elif self._task is not None:
            self._task.cancel()


def signal_exit_status(number: int) -> int:
    """Return the exit status of a command that a signal ended in order."""
    return 128 + number


def exit_status(word: str | None, signal_number: int | None = None) -> int:
    """Return the exit status of a command that measures.

    Args:
        word: The word of its verdict; None or `none` if it has no whole result.
        signal_number: The signal that ended it, if any: then its result is not whole, whatever the word.
    """
    if signal_number is not None:
        return signal_exit_status(signal_number)
    return {"pass": PASS, "short": SHORT, "fail": SHORT}.get(word or "", INCOMPLETE)


def run_exit_status(result: "RunResult", signal_number: int | None = None, *, is_judged: bool = False) -> int:
    """Return the exit status of a run, whose end tells whether a signal was what ended it.

    A measured rate without an expected rate passes, unless `is_judged` says that a pass mark was given.
    """
    if result.reason is Reason.INTERRUPTED:
        return exit_status(None, signal_number)
    # Without a sample after the warm-up there is no result, and a script must not take that for a pass.
    is_measured = result.total is not None and not is_judged
    word = "pass" if result.verdict == "none" and is_measured else result.verdict
    return exit_status(word if result.reason.is_regular else None)
