"""Things that can wait until a person has looked: they are done once nobody has asked for them for a moment."""

from collections.abc import Callable

from textual.message_pump import MessagePump
from textual.timer import Timer


class Debounce:
    """Does one thing when `delay_s` have passed since it was last asked for; never twice for two wishes.

    `of` is whose timer it is: what ends with it is not done any more.
    """

    def __init__(self, owner: MessagePump, delay_s: float, callback: Callable[[], object]) -> None:
        self._of = owner
        self._delay_s = delay_s
        self._do = callback
        self._timer: Timer | None = None

    @property
    def is_pending(self) -> bool:
        """Whether it is still to be done."""
        return self._timer is not None

    def schedule(self) -> None:
        """Have it done, in a while."""
        self.cancel()
        self._timer = self._of.set_timer(self._delay_s, self.run_now)

    def run_now(self) -> None:
        """Do it at once, and not again later."""
        self.cancel()
        self._do()

    def flush(self) -> None:
        """Do it at once where it was asked for."""
        if self.is_pending:
            self.run_now()

    def cancel(self) -> None:
        """Do not do it."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
