"""Base classes of the screens and dialogs."""

import logging
from typing import Any, ClassVar, TypeVar, cast

from textual import on
from textual.binding import Binding, BindingType
from textual.notifications import SeverityLevel
from textual.screen import ModalScreen
from textual.widgets import Input
from textual.worker import Worker, WorkerState

from ....engine.host.debug_log import LOG_VARIABLE
from ...session.preferences import Preferences
from ...words import numbers
from ..actions import TEXT_ACTIONS, Marks, ScreenKind
from ..drawing.screen_diff import DiffScreen
from ..widgets.key_footer import KeyFooter
from .feature_app import app_of

_log = logging.getLogger(__name__)
T = TypeVar("T")


def internal_error_text(error: BaseException | None) -> str:
    """Return the text for an error in linkgauge itself, and log its details."""
    _log.debug("internal error", exc_info=error)
    return f"internal error ({type(error).__name__}); set {LOG_VARIABLE}=FILE to log its details"


class ActionScreen(DiffScreen):
    """A screen with actions in the registry. A subclass has a method `action_<id>` for each further one.

    Start background tasks with `exit_on_error=False`: an unforeseen exception then does not end the app, and
    `task_failed` shows it.
    """

    DEFAULT_CSS = """
    ActionScreen {
        background: $background;
        & #head { height: 1; background: $panel; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
        & #now, & #legend { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
        & .panel {
            padding: 0 1;
            border-top: solid $foreground 22%;
            border-title-color: $foreground 80%;
            border-title-style: bold;
            scrollbar-size: 1 1;
            overflow-x: hidden;
        }
        & .panel:focus { border-title-color: $text-primary; }
    }
    """

    SCREEN_KIND: ClassVar[ScreenKind]
    MARKS: ClassVar[Marks] = ()
    """The marks of the screen, if its help page has only its own actions."""

    def footer(self) -> KeyFooter:
        """Return the last line: the keys of the screen, as the user has them."""
        return KeyFooter(self.SCREEN_KIND, app_of(self).key_map.actions_of(self.SCREEN_KIND))

    def key_of(self, action_id: str) -> str:
        """Return the key of an action, as texts name it."""
        return app_of(self).key_map.name_of(action_id)

    def apply(self, preferences: Preferences) -> None:
        """Apply changed preferences. The bottom screen of an app extends this."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Leave the keys of actions that take a text to a focused field: there they are part of the text."""
        if action in TEXT_ACTIONS and isinstance(self.focused, Input):
            return False
        return super().check_action(action, parameters)

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Show a message. It is plain text, because parts of it may come from a peer or a file."""
        super().notify(message, title=title, severity=severity, timeout=timeout, markup=markup)

    def report(self, error: object, title: str) -> None:
        """Show an error."""
        self.notify(numbers.sanitize(str(error)), title=title, severity="error")

    @on(Worker.StateChanged)
    def _note_failure(self, message: Worker.StateChanged) -> None:
        if message.state is WorkerState.ERROR:
            self.task_failed(cast("Worker[Any]", message.worker))  # pyright: ignore[reportUnknownMemberType] (of what)

    def task_failed(self, task: Worker[Any]) -> None:
        """Show that a background task has ended with an unforeseen exception."""
        self.notify(internal_error_text(task.error), severity="error")

    def action_help(self) -> None:
        """Explain every key."""
        from .help import HelpScreen

        app_of(self).push_screen(HelpScreen(self.SCREEN_KIND, self.MARKS) if self.MARKS else HelpScreen())

    async def action_settings(self) -> None:
        """Edit the preferences."""
        await app_of(self).run_action("app.settings")

    async def action_redact(self) -> None:
        """Hide or show addresses and names."""
        await app_of(self).run_action("app.redact")

    async def action_suspend(self) -> None:
        """Suspend the app to the shell."""
        await app_of(self).run_action("app.suspend_process")

    async def action_redraw(self) -> None:
        """Draw the whole screen again."""
        await app_of(self).run_action("app.redraw")


class Dialog(ModalScreen[T]):
    """A framed box over the screen below. It answers None if the user leaves it with Escape."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "back", "back")]
    DEFAULT_CSS = """
    Dialog {
        align: center middle;
        & > Vertical {
            width: 72;
            max-width: 94%;
            height: auto;
            padding: 0 1;
            border: round $primary;
            background: $surface;
            border-title-style: bold;
        }
    }
    """

    def action_back(self) -> None:
        """Close the dialog without an answer."""
        self.dismiss(None)
