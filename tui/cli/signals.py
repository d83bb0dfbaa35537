"""SIGINT, SIGTERM and SIGHUP in the event loop: one handler for every command, and the stop of a run."""

import asyncio
import logging
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final, Protocol

from ...engine.model.events import Reason

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_log = logging.getLogger(__name__)


@contextmanager
def handle_signals(receive: Callable[[signal.Signals], object]) -> Generator[None]:
    """Call `receive` in the running loop for each of the three signals, until the context ends."""
    loop = asyncio.get_running_loop()

    def deliver(number: signal.Signals) -> None:
        _log.debug("received %s", number.name)
        receive(number)

    for number in _SIGNALS:
        loop.add_signal_handler(number, deliver, number)
    try:
        yield
    finally:
        for number in _SIGNALS:
            loop.remove_signal_handler(number)


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

    Set `run` while one is in progress. `received` counts the signals. Pass `receive` to `handle_signals`.
    """

    def __init__(self, explain: Callable[[signal.Signals], tuple[Reason, str]] = interruption) -> None:
        self.run: StoppableRun | None = None
        self.received = 0
        self._explain = explain
        self._task = asyncio.current_task()

    def receive(self, number: signal.Signals) -> None:
        """Take a signal."""
        self.received += 1
        if self.run is not None and self.received == 1:
            self.run.stop(*self._explain(number))
        elif self._task is not None:
            self._task.cancel()
