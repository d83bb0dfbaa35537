"""Calls that wait until the user pauses."""

from collections.abc import Callable
from typing import Any

from linkgauge.tui.kit.widgets.typed_input import Debounce


class Timers:
    """Stands for a widget: its timers fire when the test says so."""

    def __init__(self) -> None:
        self.running: list[Callable[[], object]] = []

    def set_timer(self, _delay_s: float, callback: Callable[[], object]) -> "Timer":
        """Start a timer."""
        self.running.append(callback)
        return Timer(self)


class Timer:
    """The newest timer."""

    def __init__(self, timers: Timers) -> None:
        self._timers = timers

    def stop(self) -> None:
        """Stop it."""
        self._timers.running.pop()


def debounce() -> tuple[Timers, list[str], Debounce]:
    """Return timers, the calls so far, and a debounced call."""
    owner: Any = Timers()
    calls: list[str] = []
    return owner, calls, Debounce(owner, 0.2, lambda: calls.append("call"))


def test_several_schedules_make_one_call() -> None:
    """Only the timer of the last one is left."""
    timers, calls, debounced = debounce()
    for _ in range(3):
        debounced.schedule()
    (fire,) = timers.running
    assert debounced.is_pending
    assert calls == []
    fire()
    assert calls == ["call"]
    assert not debounced.is_pending


def test_a_flush_calls_at_once_and_only_if_a_call_is_pending() -> None:
    """The timer is then stopped."""
    timers, calls, debounced = debounce()
    debounced.flush()
    assert calls == []
    debounced.schedule()
    debounced.flush()
    assert calls == ["call"]
    assert timers.running == []


def test_a_cancelled_call_is_dropped() -> None:
    """A flush does not bring it back."""
    timers, calls, debounced = debounce()
    debounced.schedule()
    debounced.cancel()
    debounced.flush()
    assert calls == []
    assert timers.running == []
