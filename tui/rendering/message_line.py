"""Messages to the user: one line above the keys, until the next key or a newer message.

Textual's toasts pile up over the keys, and cover them for as long as each one lasts.
"""

from math import inf
from typing import Any, Final

from textual.app import ScreenStackError
from textual.content import Content
from textual.events import Event, Key
from textual.notifications import Notification, Notify
from textual.screen import Screen
from textual.widgets import Static

from .diff_compositor import DiffApp
from .styles import BAD, GOOD, SHORT

_MARKS: Final = {"information": ("•", GOOD), "warning": ("▲", SHORT), "error": ("✗", BAD)}


class MessageLine(Static):
    """Shows one message above the last line of its screen. A message too long for a line has up to three."""

    DEFAULT_CSS = """
    MessageLine {
        layer: _toastrack;
        dock: bottom;
        width: 100%;
        height: auto;
        max-height: 3;
        margin-bottom: 1;
        padding: 0 1;
        background: $panel;
        color: $foreground;
    }
    """
    DEFAULT_CLASSES = "-textual-system"
    ALLOW_SELECT = False

    def __init__(self) -> None:
        super().__init__(markup=False)

    def show(self, message: Notification) -> None:
        """Show this message."""
        mark, style = _MARKS[message.severity]
        text = Content.from_text(message.message, markup=message.markup)
        title = (f"{message.title}: ", "bold") if message.title else ""
        self.update(Content.assemble((f"{mark} ", f"bold {style}"), title, text))


class MessageApp(DiffApp):
    """An app whose notifications are shown in a MessageLine of the current screen."""

    NOTIFICATION_TIMEOUT = inf  # a key ends it

    def _on_notify(self, event: Notify) -> None:
        """Show a notification in place of the one before."""
        self._notifications.clear()
        super()._on_notify(event)

    def _refresh_notifications(self) -> None:
        """Show the newest notification on the current screen, and on no other."""
        try:
            current = self.screen
        except ScreenStackError:
            return
        message = next(iter(self._notifications), None)
        for screen in self.screen_stack:
            lines = list(screen.query(MessageLine))
            if screen is current and message is not None and screen.is_attached:
                _show(screen, lines, message)
            elif lines:
                for line in lines:
                    line.remove()

    async def on_event(self, event: Event) -> None:
        """Take the message away before a key has its effect, which may be the next message."""
        if isinstance(event, Key) and not event.is_forwarded and len(self._notifications):
            self.clear_notifications()
        await super().on_event(event)


def _show(screen: Screen[Any], lines: list[MessageLine], message: Notification) -> None:
    if lines:
        lines[0].show(message)
        return
    line = MessageLine()
    screen.mount(line)
    line.show(message)
