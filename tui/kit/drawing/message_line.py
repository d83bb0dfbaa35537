"""Messages to the user: one line above the keys, until the next key or a newer message.

Textual's toasts pile up over the keys, and cover them until they expire. A message takes 6.6 ms of CPU and 25 bytes
here, and 32 ms and 427 bytes as a toast (bench/own_widgets.py).
"""

# Textual's types leave the type parameter of Screen unknown.
# pyright: reportUnknownMemberType=false

from typing import Any, Final

from textual.app import ScreenStackError
from textual.content import Content
from textual.events import Event, Key
from textual.notifications import Notification, Notify
from textual.screen import Screen
from textual.widgets import Static

from .screen_diff import DiffApp
from .styles import BAD, GOOD, SHORT

_MARKS: Final = {"information": ("•", GOOD), "warning": ("▲", SHORT), "error": ("✗", BAD)}


class MessageLine(Static):
    """Shows one message above the last line of its screen. A long message has up to three lines."""

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

    def show_message(self, message: Notification) -> None:
        """Show this message."""
        mark, style = _MARKS[message.severity]
        text = Content.from_text(message.message, markup=message.markup)
        title = (f"{message.title}: ", "bold") if message.title else ""
        self.update(Content.assemble((f"{mark} ", f"bold {style}"), title, text))


class MessageApp(DiffApp):
    """An app whose notifications are shown in a MessageLine of the current screen, until a key is pressed."""

    def __init__(self) -> None:
        super().__init__()
        self.shown_message: Notification | None = None  # the newest one, on any screen

    def on_mount(self) -> None:
        """Move the message to each screen that becomes the current one."""
        self.screen_change_signal.subscribe(self, self._move_message)

    def _move_message(self, _screen: object) -> None:
        self._show_message()

    def on_notify(self, event: Notify) -> None:
        """Show a notification in place of the one before it, without a toast."""
        event.prevent_default()
        self.shown_message = event.notification
        self._show_message()

    def clear_notifications(self) -> None:
        """Remove the message."""
        self.shown_message = None
        self._show_message()

    def _show_message(self) -> None:
        """Show the message on the current screen, and on no other."""
        try:
            current = self.screen
        except ScreenStackError:
            return
        for screen in self.screen_stack:
            lines = list(screen.query(MessageLine))
            if screen is current and self.shown_message is not None and screen.is_attached:
                _show(screen, lines, self.shown_message)
            else:
                for line in lines:
                    line.remove()

    async def on_event(self, event: Event) -> None:
        """Remove the message before a key has its effect: that may be the next message."""
        if isinstance(event, Key) and not event.is_forwarded and self.shown_message is not None:
            self.clear_notifications()
        await super().on_event(event)


def _show(screen: Screen[Any], lines: list[MessageLine], message: Notification) -> None:
    if lines:
        lines[0].show_message(message)
        return
    line = MessageLine()
    screen.mount(line)
    line.show_message(message)
