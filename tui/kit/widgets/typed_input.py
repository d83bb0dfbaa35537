"""Typed input: a text field, and work that waits until the user pauses."""

from collections.abc import Callable

from textual.message_pump import MessagePump
from textual.reactive import reactive
from textual.timer import Timer
from textual.widgets import Input


class TextField(Input):
    """An input whose cursor does not blink: blinking costs bytes over ssh, and changes an idle screen."""

    cursor_blink = reactive(False, init=False)


class Debounce:
    """Calls `callback` once, `delay_s` after the last `schedule`.

    The timer belongs to `owner`: when `owner` ends, a pending call is dropped.
    """

    def __init__(self, owner: MessagePump, delay_s: float, callback: Callable[[], object]) -> None:
        self._owner = owner
        self._delay_s = delay_s
        self._callback = callback
        self._timer: Timer | None = None

    @property
    def is_pending(self) -> bool:
        """Whether a call is scheduled."""
        return self._timer is not None

    def schedule(self) -> None:
        """Call back after the delay, counted from now."""
        self.cancel()
        self._timer = self._owner.set_timer(self._delay_s, self.run_now)

    def run_now(self) -> None:
        """Call back now, and not again later."""
        self.cancel()
        self._callback()

    def flush(self) -> None:
        """Call back now if a call is scheduled."""
        if self.is_pending:
            self.run_now()

    def cancel(self) -> None:
        """Drop the scheduled call."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
