"""The screen of a watch in progress: its peers, the one at the cursor, the newest events.

A background task follows the watch and only posts messages; the handlers own all state. The screen is drawn each
second, for the times on it, and soon after an event.
"""

import logging
import time
from asyncio import Event, to_thread
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, ScrollableContainer
from textual.content import Content
from textual.events import Resize
from textual.message import Message
from textual.widgets import Static
from textual.worker import Worker

from ....engine.model.errors import LinkgaugeError
from ....watch.events import WatchEvent
from ....watch.watch_plan import WatchPlan
from ...actions import ScreenKind, bindings
from ...interfaces import WatchHandle
from ...state.watch import WatchEventLines, WatchView, watch_view
from ...text import numbers
from ...widgets.common.key_footer import KeyFooter
from ...widgets.common.typed_input import Debounce
from ...widgets.watch.peer_table import PeerTable
from ...widgets.watch.watch_lines import head_line, peer_lines, status_line
from ...widgets.watch.watch_log import WatchLog
from ..app_services import StoredServices
from ..base_screen import ActionScreen, app_of, internal_error_text
from ..dialogs.export import prompt_export
from ..dialogs.help import HelpScreen
from ..history.history_screen import HistoryScreen

_log = logging.getLogger(__name__)

_DRAW_AFTER_S: Final = 0.1
_CLOCK_EVERY_S: Final = 1.0
_QUIT_TIMEOUT_S: Final = 30.0
_FRAME_LINES: Final = 3  # head, status, footer
_TALL: Final = 32
_MARKS: Final = (
    ("✓ ▼ ✗", "PASS: the pass mark or more; SHORT: less; FAIL: less than half of the expected rate"),
    ("•", "a test without an expected rate: measured, and not judged"),
    ("!", "a test without a result; in the last day the time when it was"),
    ("▁▄█", "the last 24 hours: the lowest rate of each part, in percent of the expected rate; empty: no test"),
    ("▼ ▲", "in the last 24 hours: another level begins, for the worse or for the better"),
    ("●", "the peer is tested now"),
    ("◆", "a change of a level, in the list of events"),
)


class WatchScreen(ActionScreen):
    """One watch, until it has ended.

    Args:
        session: The watch, which nobody else iterates over.
        services: The run log and export.
        read_plan: Reads the file of the watch again, in a thread, and raises LinkgaugeError; None without a file.
        clock: Returns seconds since 1970, UTC.
    """

    AUTO_FOCUS = "PeerTable"
    SCREEN_KIND: ClassVar[ScreenKind] = ScreenKind.WATCH
    BINDINGS: ClassVar[list[BindingType]] = bindings(ScreenKind.WATCH)
    DEFAULT_CSS = """
    WatchScreen {
        background: $background;
        & #head { height: 1; background: $panel; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
        & #now { height: 1; padding: 0 1; text-wrap: nowrap; text-overflow: ellipsis; }
        & #panels { height: 1fr; layout: vertical; }
        & #peer, & #events {
            width: 1fr;
            padding: 0 1;
            border-top: solid $foreground 22%;
            border-title-color: $foreground 80%;
            border-title-style: bold;
            scrollbar-size: 1 1;
            overflow-x: hidden;
        }
        & #peer { height: 1fr; }
        & #events { height: 5; }
        & #peer:focus { border-title-color: $text-primary; }
        & #peer-text { height: auto; }
        &.-wide #panels, &.-huge #panels { layout: horizontal; }
        &.-wide #events, &.-huge #events { height: 100%; }
        &.-wide #peer, &.-huge #peer { width: 3fr; }
        &.-wide #events, &.-huge #events { width: 2fr; }
        &.-towering.-narrow #events, &.-tall.-narrow #events { height: 10; }
        &.-tiny #panels, &.-tiny KeyFooter { display: none; }
    }
    """

    @dataclass
    class Happened(Message):
        """Something happened in the watch."""

        event: WatchEvent

    @dataclass
    class WatchOver(Message):
        """The watch has ended, or failed."""

        problem: str | None = None

    @dataclass
    class PlanRead(Message):
        """The file of the watch was read, or why it was not."""

        plan: WatchPlan | None
        problem: str = ""

    def __init__(
        self,
        session: WatchHandle,
        services: StoredServices,
        *,
        read_plan: Callable[[], WatchPlan] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__()
        self._session = session
        self._services = services
        self._read_plan = read_plan
        self._clock = clock
        self._lines = WatchEventLines()
        self._view = WatchView()
        self.over = Event()
        """Set when the watch is over."""
        self._problem: str | None = None
        self._is_closing = False
        self._draw_soon = Debounce(self, _DRAW_AFTER_S, self._draw)

    def compose(self) -> ComposeResult:
        """Compose the progress, the table and the panels."""
        yield Static(id="head", markup=False)
        yield Static(id="now", markup=False)
        yield PeerTable()
        with Container(id="panels"):
            with ScrollableContainer(id="peer") as peer:
                peer.border_title = Content("peer")
                yield Static(id="peer-text", markup=False)
            yield WatchLog()
        yield KeyFooter(self.SCREEN_KIND)

    def on_mount(self) -> None:
        """Follow the watch."""
        self.run_worker(self._follow(), group="watch", exit_on_error=False)
        self.set_interval(_CLOCK_EVERY_S, self._draw)
        unavailable = {"reload_watch"} if self._read_plan is None else set[str]()
        if self._session.is_elsewhere:
            unavailable.add("check_now")
        self.query_one(KeyFooter).show(frozenset(unavailable))
        self._draw()

    # Background work: it posts messages and changes no state.

    async def _follow(self) -> None:
        try:
            async for event in self._session:
                self.post_message(self.Happened(event))
        except LinkgaugeError as error:
            self.post_message(self.WatchOver(str(error)))
        else:
            self.post_message(self.WatchOver())

    async def _read_file(self, read_plan: Callable[[], WatchPlan]) -> None:
        try:
            self.post_message(self.PlanRead(await to_thread(read_plan)))
        except LinkgaugeError as error:
            self.post_message(self.PlanRead(None, str(error)))

    # Message handlers.

    @on(Happened)
    def _take(self, message: Happened) -> None:
        self._lines.feed(message.event, self._session.plan)
        if not self._draw_soon.is_pending:
            self._draw_soon.schedule()

    @on(WatchOver)
    def _finish(self, message: WatchOver) -> None:
        _log.debug("watch %s is over: %s", self._session.plan.name, message.problem)
        self._problem = message.problem
        self.over.set()
        if self._is_closing:
            app_of(self).exit()
        else:
            self._draw()

    def task_failed(self, task: Worker[Any]) -> None:
        """End with the reason where the task that follows it has failed."""
        if task.group == "watch":
            self.post_message(self.WatchOver(internal_error_text(task.error)))
        else:
            super().task_failed(task)

    @on(PlanRead)
    def _reload(self, message: PlanRead) -> None:
        if message.plan is None:
            self.notify(numbers.sanitize(message.problem), title="reload", severity="error", markup=False)
        elif not self.over.is_set():
            self._session.reload(message.plan)
            self.notify("The file of the watch was read again.", title="reload", markup=False)
            self._draw()

    @on(PeerTable.Moved)
    def _follow_cursor(self) -> None:
        self._show_peer()

    @on(PeerTable.Selected)
    def _open_selected(self) -> None:
        self.action_open_peer()

    def on_resize(self, event: Resize) -> None:
        """Give the table its share of the new height."""
        self._arrange(event.size.height)
        self._draw()

    def on_screen_resume(self) -> None:
        """Show what has happened while another screen was above this one."""
        self._draw()

    # Drawing.

    def _draw(self) -> None:
        self._view = replace(
            watch_view(self._session.plan, self._session.statuses, self._clock()),
            is_stopping=self._is_closing,
            is_over=self.over.is_set(),
            is_elsewhere=self._session.is_elsewhere,
            problem=self._problem,
        )
        self._arrange(self.size.height)
        self.query_one("#head", Static).update(head_line(self._view, self.size.width - 2), layout=False)
        self.query_one("#now", Static).update(status_line(self._view), layout=False)
        self.query_one(PeerTable).show(self._view)
        self._show_peer()
        self.query_one(WatchLog).show(self._lines.lines, self._lines.written)

    def _show_peer(self) -> None:
        name = self.query_one(PeerTable).name_at_cursor
        row = next((row for row in self._view.rows if row.name == name), None)
        lines = [] if row is None else peer_lines(row, self._session.plan, self._view.now_s)
        self.query_one("#peer-text", Static).update(Content("\n").join(lines))

    def _arrange(self, height: int) -> None:
        """Give the table as many lines as it has rows, and at most a half of the screen, or what is left of it."""
        rows, room = len(self._session.plan.peers) + 1, height - _FRAME_LINES
        most = room // 2 if height >= _TALL else room * 2 // 5
        self.query_one(PeerTable).styles.height = "1fr" if self.has_class("-tiny") else min(rows, max(most, 4))

    # Actions of the registry.

    def action_check_now(self) -> None:
        """Make a test of the peer at the cursor due now."""
        name = self.query_one(PeerTable).name_at_cursor
        if name is None or self.over.is_set() or self._is_closing:
            return
        if self._session.is_elsewhere:
            self.notify(
                "Another process carries this watch out; it alone begins tests.", title="test now", markup=False
            )
            return
        status = self._session.statuses.get(name)
        if status is not None and status.running_since_s is not None:
            self.notify(f"{name} is tested already.", title="test now", markup=False)
            return
        self._session.check_now(name)
        self.notify(f"{name} is tested as soon as its interface is free.", title="test now", markup=False)

    def action_open_peer(self) -> None:
        """Open the history with the runs of the peer at the cursor."""
        name, services = self.query_one(PeerTable).name_at_cursor, self._services
        if name is None:
            return
        if services.history is None:
            self.notify("Runs are not saved: there is no run log.", severity="warning", markup=False)
            return
        wanted = f"label={name} group={self._session.plan.group}"
        app_of(self).push_screen(HistoryScreen(services.history, services, filter_text=wanted))

    def action_reload_watch(self) -> None:
        """Read the file of the watch again."""
        read_plan = self._read_plan
        if read_plan is None:
            self.notify("This watch was started without a file.", title="reload", markup=False)
        else:
            self.run_worker(self._read_file(read_plan), group="reload", exclusive=True, exit_on_error=False)

    def action_export(self) -> None:
        """Export the runs of the last day of the peer at the cursor."""
        status = self._session.statuses.get(self.query_one(PeerTable).name_at_cursor or "")
        ids = [] if status is None else [check.result.run_id for check in status.day]
        prompt_export(self, [run_id for run_id in ids if run_id is not None], self._services.export)

    def action_leave_watch(self) -> None:
        """End the watch, and leave when it has ended; a second request leaves at once."""
        if self._is_closing or self.over.is_set():
            app_of(self).exit()
            return
        self._is_closing = True
        self._session.stop()
        self.set_timer(_QUIT_TIMEOUT_S, app_of(self).exit)
        self._draw()

    def action_help(self) -> None:
        """Explain every key and mark of this screen."""
        app_of(self).push_screen(HelpScreen(self.SCREEN_KIND, _MARKS))
