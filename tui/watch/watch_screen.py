"""The screen of a watch in progress: its peers, the details of the peer at the cursor, the newest events.

It is drawn each second, because it shows times, and soon after an event.
"""

import time
from asyncio import to_thread
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, ScrollableContainer
from textual.content import Content
from textual.events import Resize
from textual.message import Message
from textual.widgets import Static

from ...engine.model.errors import LinkgaugeError
from ...watch.events import WatchEvent
from ...watch.watch_plan import WatchPlan
from ..kit.actions import Marks, ScreenKind, bindings
from ..kit.screens.export import prompt_export
from ..kit.screens.feature_app import StoredServices, app_of
from ..kit.screens.progress_screen import ProgressScreen
from ..kit.widgets.key_footer import KeyFooter
from ..kit.widgets.log_view import LogView
from .peer_table import PeerTable
from .watch_lines import head_line, peer_lines, status_line
from .watch_view import WatchEventLine, WatchEventLines, WatchView, watch_view
from .watch_words import at_words

if TYPE_CHECKING:
    from .running.followed_watch import FollowedWatch
    from .running.watch_session import WatchSession

    Watch = WatchSession | FollowedWatch

_EVENT_MARKS: Final = {"plain": "·", "good": "·", "warning": "▲", "bad": "✗", "change": "◆"}
_FRAME_LINES: Final = 3  # head, status, footer
_TALL: Final = 32
_MARKS: Final[Marks] = (
    ("✓ ▼ ✗", "PASS: the pass mark or more; SHORT: less; FAIL: less than half of the expected rate"),
    ("•", "a test without an expected rate: measured, and not judged"),
    ("!", "a test without a result; in the last day, its time"),
    ("▁▄█", "the last 24 hours: the lowest rate of each part, in percent of the expected rate; empty: no test"),
    ("▼ ▲", "in the last 24 hours: another level begins, for the worse or for the better"),
    ("●", "the peer is tested now"),
    ("◆", "a change of a level, in the list of events"),
)


class WatchLog(LogView[WatchEventLine]):
    """Shows the events of a watch."""

    def __init__(self) -> None:
        super().__init__(widget_id="events")
        self.border_title = "events"
        self.can_focus = False
        self.add_class("panel")

    def line_text(self, line: WatchEventLine) -> Text:
        """Return the time, a mark for the kind of event, and the text. A change stands out."""
        is_loud = line.tone == "change"
        return Text.assemble(
            (f"{at_words(line.at_s, line.at_s)} ", "dim"),
            (f"{_EVENT_MARKS[line.tone]} ", "bold"),
            (line.text, "bold" if is_loud else ""),
        )


class WatchScreen(ProgressScreen):
    """One watch, until it has ended.

    Args:
        session: The watch, of this process or of another one. Only this screen iterates over it.
        services: The run log and export.
        read_plan: Reads the file of the watch again, in a thread, and raises LinkgaugeError; None without a file.
        clock: Returns seconds since 1970, UTC.
    """

    AUTO_FOCUS = "PeerTable"
    SCREEN_KIND: ClassVar[ScreenKind] = ScreenKind.WATCH
    MARKS: ClassVar[Marks] = _MARKS
    BINDINGS: ClassVar[list[BindingType]] = bindings(ScreenKind.WATCH)
    DEFAULT_CSS = """
    WatchScreen {
        & #panels { height: 1fr; layout: vertical; }
        & .panel { width: 1fr; }
        & #peer { height: 1fr; }
        & #events { height: 5; }
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
    class PlanRead(Message):
        """The file of the watch was read, or why it was not."""

        plan: WatchPlan | None
        problem: str = ""

    def __init__(
        self,
        session: "Watch",
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
        self._problem: str | None = None

    def compose(self) -> ComposeResult:
        """Compose the progress, the table and the panels."""
        yield Static(id="head", markup=False)
        yield Static(id="now", markup=False)
        yield PeerTable()
        with Container(id="panels"):
            with ScrollableContainer(id="peer", classes="panel") as peer:
                peer.border_title = Content("peer")
                yield Static(id="peer-text", markup=False)
            yield WatchLog()
        yield self.footer()

    def on_mount(self) -> None:
        """Follow the watch."""
        self.follow(self._session, self.draw)
        unavailable = {"reload_watch"} if self._read_plan is None else set[str]()
        if self._session.is_elsewhere:
            unavailable.add("check_now")
        self.query_one(KeyFooter).show(frozenset(unavailable))
        self.draw()

    async def _read_file(self, read_plan: Callable[[], WatchPlan]) -> None:
        try:
            self.post_message(self.PlanRead(await to_thread(read_plan)))
        except LinkgaugeError as error:
            self.post_message(self.PlanRead(None, str(error)))

    # Message handlers.

    def take(self, event: WatchEvent) -> None:
        """Add a line for an event."""
        self._lines.add_event(event, self._session.plan)

    def finish(self, problem: str | None) -> None:
        """Note why the watch failed, if it did."""
        self._problem = problem

    @on(PlanRead)
    def _reload(self, message: PlanRead) -> None:
        if message.plan is None:
            self.report(message.problem, "reload")
        elif not self.over.is_set():
            self._session.reload(message.plan)
            self.notify("The file of the watch was read again.", title="reload")
            self.draw()

    @on(PeerTable.Moved)
    def _follow_cursor(self) -> None:
        self._show_peer()

    @on(PeerTable.Selected)
    def _open_selected(self) -> None:
        self.action_open_peer()

    def on_resize(self, event: Resize) -> None:
        """Give the table its share of the new height."""
        self._arrange(event.size.height)
        self.draw()

    def on_screen_resume(self) -> None:
        """Show the events since another screen came above this one."""
        self.draw()

    # Drawing.

    def draw(self) -> None:
        """Draw the present state."""
        self._view = replace(
            watch_view(self._session.plan, self._session.statuses, self._session.use, self._clock()),
            is_stopping=self.is_closing,
            is_over=self.over.is_set(),
            is_elsewhere=self._session.is_elsewhere,
            problem=self._problem,
        )
        self._arrange(self.size.height)
        self.query_one("#head", Static).update(head_line(self._view, self.size.width - 2), layout=False)
        self.query_one("#now", Static).update(status_line(self._view), layout=False)
        self.query_one(PeerTable).show_peers(self._view)
        self._show_peer()
        self.query_one(WatchLog).show_lines(self._lines.lines, self._lines.written)

    def _show_peer(self) -> None:
        name = self.query_one(PeerTable).name_at_cursor
        row = next((row for row in self._view.rows if row.name == name), None)
        lines = [] if row is None else peer_lines(row)
        self.query_one("#peer-text", Static).update(Content("\n").join(lines))

    def _arrange(self, height: int) -> None:
        """Give the table a line for each row, up to half of a tall screen or two fifths of another one."""
        rows, room = len(self._session.plan.peers) + 1, height - _FRAME_LINES
        most = room // 2 if height >= _TALL else room * 2 // 5
        self.query_one(PeerTable).styles.height = "1fr" if self.has_class("-tiny") else min(rows, max(most, 4))

    # Actions of the registry.

    def action_check_now(self) -> None:
        """Make a test of the peer at the cursor due now."""
        name = self.query_one(PeerTable).name_at_cursor
        if name is None or self.over.is_set() or self.is_closing:
            return
        if self._session.is_elsewhere:
            self.notify("Another process carries this watch out; it alone begins tests.", title="test now")
            return
        status = self._session.statuses.get(name)
        if status is not None and status.running_since_s is not None:
            self.notify(f"{name} is tested already.", title="test now")
            return
        self._session.check_now(name)
        self.notify(f"{name} is tested as soon as its interface is free.", title="test now")

    def action_open_peer(self) -> None:
        """Open the history with the runs of the peer at the cursor."""
        name, services = self.query_one(PeerTable).name_at_cursor, self._services
        if name is None:
            return
        if services.history is None:
            self.notify("Runs are not saved: there is no run log.", severity="warning")
            return
        wanted = f"label={name} group={self._session.plan.group}"
        app_of(self).open_history(services.history, services, wanted)

    def action_reload_watch(self) -> None:
        """Read the file of the watch again."""
        read_plan = self._read_plan
        if read_plan is None:
            self.notify("This watch was started without a file.", title="reload")
        else:
            self.run_worker(self._read_file(read_plan), group="reload", exclusive=True, exit_on_error=False)

    def action_export(self) -> None:
        """Export the runs of the last day of the peer at the cursor."""
        status = self._session.statuses.get(self.query_one(PeerTable).name_at_cursor or "")
        ids = [] if status is None else [check.result.run_id for check in status.day]
        prompt_export(self, [run_id for run_id in ids if run_id is not None], self._services.export)

    def action_leave_watch(self) -> None:
        """End the watch, and leave when it has ended; a second request leaves at once."""
        self.leave(is_running=not self.over.is_set(), stop=self._session.stop)
        self.draw()
