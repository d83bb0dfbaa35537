"""The screen of a session in progress, such as a mesh or a watch: it follows its events until the session is over.

A background task follows the session and only posts messages. The handlers own all state. The screen is drawn soon
after an event, but only a few times a second: many events come together.
"""

import asyncio
import logging
from collections.abc import AsyncIterable, Callable
from dataclasses import dataclass
from typing import Any, Final

from textual import on
from textual.message import Message
from textual.worker import Worker

from ....engine.model.errors import LinkgaugeError
from ..widgets.typed_input import Debounce
from .base_screen import ActionScreen, internal_error_text
from .feature_app import app_of

_log = logging.getLogger(__name__)

_DRAW_AFTER_S: Final = 0.1
_CLOCK_EVERY_S: Final = 1.0
_QUIT_TIMEOUT_S: Final = 30.0


class ProgressScreen(ActionScreen):
    """Follows a session. A subclass has `take`, `finish` and `draw`."""

    @dataclass
    class Happened(Message):
        """Something happened in the session."""

        event: Any

    @dataclass
    class SessionOver(Message):
        """The session is over, or it failed."""

        problem: str | None = None

    def __init__(self) -> None:
        super().__init__()
        self.over = asyncio.Event()
        """Set when no session is in progress any more."""
        self.is_closing = False
        self._draw_soon = Debounce(self, _DRAW_AFTER_S, self.draw)

    def follow(self, session: AsyncIterable[Any], draw_clock: Callable[[], object] | None = None) -> None:
        """Follow a session, and draw the times on the screen every second, if it has some."""
        self.run_worker(self._follow(session), group="session", exit_on_error=False)
        if draw_clock is not None:
            self.set_interval(_CLOCK_EVERY_S, draw_clock)

    async def _follow(self, session: AsyncIterable[Any]) -> None:
        try:
            async for event in session:
                self.post_message(self.Happened(event))
        except LinkgaugeError as error:
            self.post_message(self.SessionOver(str(error)))
        else:
            self.post_message(self.SessionOver())

    def task_failed(self, task: Worker[Any]) -> None:
        """If the task that follows the session has failed, end with the reason."""
        if task.group == "session":
            self.post_message(self.SessionOver(internal_error_text(task.error)))
        else:
            super().task_failed(task)

    @on(Happened)
    def _take(self, message: Happened) -> None:
        self.take(message.event)
        if not self._draw_soon.is_pending:
            self._draw_soon.schedule()

    @on(SessionOver)
    def _end(self, message: SessionOver) -> None:
        _log.debug("the session is over: %s", message.problem)
        self.over.set()
        self.finish(message.problem)
        if self.is_closing:
            self.close_screen()
        else:
            self.draw()

    def leave(self, *, is_running: bool, stop: Callable[[], None]) -> None:
        """Leave the screen. A session in progress is stopped first. A second request leaves at once."""
        if self.is_closing or not is_running:
            self.close_screen()
            return
        self.is_closing = True
        stop()
        self.set_timer(_QUIT_TIMEOUT_S, self.close_screen)

    def close_screen(self) -> None:
        """Return to the screen below, or end the app if there is none."""
        app = app_of(self)
        if app.screen_stack[0] is self:
            app.exit()
        else:
            app.pop_screen()

    def take(self, event: Any) -> None:
        """Note an event of the session."""
        raise NotImplementedError

    def finish(self, problem: str | None) -> None:
        """Note the end of the session, and why it failed if it did."""
        raise NotImplementedError

    def draw(self) -> None:
        """Draw everything."""
        raise NotImplementedError
