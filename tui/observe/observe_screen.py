"""The screen of `linkgauge observe`: the connections of other programs by goodput, and why each is slow.

Below the table is the connection at the cursor: its findings with evidence and remedy. Enter opens it in gauges.
"""

from collections.abc import AsyncIterable
from dataclasses import replace
from typing import ClassVar, Final

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import ScrollableContainer
from textual.content import Content
from textual.widgets import Input, Static

from ...observe.observation import Observation
from ...observe.request import DEFAULT_TOP, ObserveRequest
from ..kit.actions import Marks, ScreenKind, bindings
from ..kit.screens.export import prompt_export
from ..kit.screens.feature_app import app_of
from ..kit.screens.progress_screen import ProgressScreen
from ..kit.widgets.typed_input import Debounce, TextField
from ..words.redaction import REDACTION
from .connection_readings import Histories
from .connection_screen import ConnectionScreen, toggle_saving
from .connection_table import ConnectionTable
from .connection_words import STATUS_MARKS, STATUS_WORDS, empty_text
from .observe_lines import TableState, connection_head, connection_lines, head_line, state_line
from .observed_records import LEFT, ObservedRecords
from .observed_rows import SORTS, ObservedRows

_TOP: Final = 256
"""So many connections the table has if the user gave no number: as many as are read four times a second."""
_FILTER_AFTER_S: Final = 0.04
_DETAIL_AFTER_S: Final = 0.04
_MAXIMIZED: Final = ("", "-only-table", "-only-detail")
_MARKS: Final[Marks] = (
    *((STATUS_MARKS[status], f"why: {words}") for status, words in STATUS_WORDS.items()),
    ("→ ←", "the main direction: this host sends, or receives"),
    ("% exp", "the rate in percent of the expected rate of the interface"),
    ("retx", "segments that were sent again in the last 3 seconds"),
    ("in flight", "bytes that were sent and not yet acknowledged"),
)


def screen_request(request: ObserveRequest) -> ObserveRequest:
    """Return a request with as many rows as a table that scrolls can have, unless the user gave a number."""
    return replace(request, top=_TOP) if request.top == DEFAULT_TOP else request


class ObserveScreen(ProgressScreen):
    """The connections of other programs, until the user leaves.

    Args:
        observations: An observation an interval. Only this screen iterates over it.
        target: The target of the command line, for the head.
        records: Saves connections to the run log; None if there is none.
    """

    AUTO_FOCUS = "ConnectionTable"
    SCREEN_KIND: ClassVar[ScreenKind] = ScreenKind.OBSERVE
    MARKS: ClassVar[Marks] = _MARKS
    BINDINGS: ClassVar[list[BindingType]] = bindings(ScreenKind.OBSERVE)
    DEFAULT_CSS = """
    ObserveScreen {
        & #filter { border: none; height: 1; padding: 0 1; background: $background; }
        & #filter:focus { background: $panel; }
        & #detail { height: 7; }
        & #detail-text { height: auto; }
        &.-tall #detail { height: 11; }
        &.-towering #detail { height: 14; }
        &.-tiny #detail, &.-tiny KeyFooter { display: none; }
        &.-only-table #detail, &.-only-detail ConnectionTable { display: none; }
        &.-only-detail #detail { height: 1fr; display: block; }
    }
    """

    def __init__(
        self,
        observations: AsyncIterable[Observation],
        target: str | None = None,
        *,
        records: ObservedRecords | None = None,
    ) -> None:
        super().__init__()
        self._observations = observations
        self._records = ObservedRecords(lambda: None) if records is None else records
        self._target = target
        self._observation: Observation | None = None
        self._rows = ObservedRows()
        self._histories = Histories()
        self._opened: ConnectionScreen | None = None
        self._problem: str | None = None
        self._maximized = ""
        self._filter_soon = Debounce(self, _FILTER_AFTER_S, self._filter)
        self._detail_soon = Debounce(self, _DETAIL_AFTER_S, self._show_detail)

    def compose(self) -> ComposeResult:
        """Compose the totals, the filter, the table and the connection at the cursor."""
        yield Static(id="head", markup=False)
        yield Static(id="now", markup=False)
        field = TextField(placeholder="filter: nginx 443 peer:10.1 why:loss …", compact=True, id="filter")
        field.display = False
        yield field
        yield ConnectionTable()
        with ScrollableContainer(id="detail", classes="panel") as detail:
            detail.can_focus = False
            yield Static(id="detail-text", markup=False)
        yield self.footer()

    def on_mount(self) -> None:
        """Follow the observations."""
        self.follow(self._observations)
        self.draw()

    # Message handlers.

    def take(self, event: Observation) -> None:
        """Take the next observation."""
        self._observation = event
        for row in event.connections:
            REDACTION.learn_user(row.user)
        self._rows.update(event)
        self._records.take(event)
        opened = self._opened
        kept = self._rows.keys
        self._histories.update(event, kept if opened is None else {*kept, opened.key})
        if opened is not None:
            points = self._histories.of(opened.key)
            is_new = bool(points) and points[-1].elapsed_ns == event.elapsed_ns
            opened.take(self._rows.find(opened.key), points[-1] if is_new else None)

    def finish(self, problem: str | None) -> None:
        """Note why the observations ended: they have no end of their own."""
        self._problem = problem

    @on(Input.Changed, "#filter")
    def _schedule_filter(self) -> None:
        self._filter_soon.schedule()

    @on(Input.Submitted, "#filter")
    def _leave_filter(self) -> None:
        self._filter_soon.flush()
        self._show_filter()
        self.query_one(ConnectionTable).focus()

    @on(ConnectionTable.Moved)
    def _follow_cursor(self) -> None:
        self._detail_soon.schedule()

    @on(ConnectionTable.Selected)
    def _open_selected(self) -> None:
        self.action_open_connection()

    @on(ConnectionTable.HeaderClicked)
    def _sort_by_clicked(self, message: ConnectionTable.HeaderClicked) -> None:
        if message.title in SORTS:
            self._rows.order = self._rows.order.by(message.title)
            self._sort()

    def on_unmount(self) -> None:
        """End the entries of the run log: nothing more comes."""
        self._records.end_all(LEFT)

    def on_resize(self) -> None:
        """Fill the new size."""
        self.draw()

    def on_screen_resume(self) -> None:
        """Show what came since another screen came above this one."""
        self.draw()

    # Drawing.

    def draw(self) -> None:
        """Draw everything, unless another screen is above this one."""
        if not self.is_current:
            return
        rows, width = self._rows, self.size.width - 2
        state = TableState(
            len(rows.rows),
            rows.total,
            self._target,
            rows.filter_text,
            rows.is_frozen,
            self._problem,
            len(self._records.saved_keys),
        )
        self.query_one("#head", Static).update(head_line(self._observation, state, width), layout=False)
        self.query_one("#now", Static).update(state_line(self._observation, state, width), layout=False)
        empty = empty_text(self._observation, target=self._target, filter_text=rows.filter_text, total=rows.total)
        table = self.query_one(ConnectionTable)
        table.show_rows(rows.rows, rows.order, "" if self._problem else empty, self._records.saved_keys)
        self._show_detail()

    def _show_detail(self) -> None:
        row = self._rows.find(self.query_one(ConnectionTable).key_at_cursor)
        detail, text = self.query_one("#detail", ScrollableContainer), self.query_one("#detail-text", Static)
        width = max(self.size.width - 4, 10)
        detail.border_title = Content("why") if row is None else connection_head(row, width - 4)
        lines = [] if row is None else connection_lines(row, width)
        text.update(Content("\n").join(lines))

    def _filter(self) -> None:
        self._rows.filter_text = self.query_one("#filter", TextField).value.strip()
        self._rows.arrange()
        self.draw()

    def _show_filter(self) -> None:
        """Show the field while it has a text or the focus."""
        field = self.query_one("#filter", TextField)
        field.display = bool(field.value) or field.has_focus

    def _sort(self) -> None:
        self._rows.is_frozen = False
        self._rows.arrange()
        self.draw()

    def _maximize(self, name: str) -> None:
        self._maximized = name
        for each in _MAXIMIZED[1:]:
            self.set_class(each == name, each)

    # Actions of the registry.

    def action_open_connection(self) -> None:
        """Open the connection at the cursor in gauges."""
        self._filter_soon.flush()
        row = self._rows.find(self.query_one(ConnectionTable).key_at_cursor)
        if row is None:
            return
        self._opened = ConnectionScreen(row, self._histories.of(row.key), self._records)
        app_of(self).push_screen(self._opened, self._forget_opened)

    def _forget_opened(self, _answer: None) -> None:
        self._opened = None

    def action_save_connection(self) -> None:
        """Save the connection at the cursor, or end its entry."""
        row = self._rows.find(self.query_one(ConnectionTable).key_at_cursor)
        if row is not None:
            toggle_saving(self, self._records, row)
            self.draw()

    def action_filter(self) -> None:
        """Focus the filter."""
        field = self.query_one("#filter", TextField)
        field.display = True
        self.set_focus(field)  # now: the next key is part of the text

    def action_clear_filter(self) -> None:
        """Show all parts and all connections; without anything hidden, go back if there is a screen below."""
        field = self.query_one("#filter", TextField)
        if self._maximized:
            self._maximize("")
        elif field.value or field.has_focus:
            field.value = ""
            self._filter_soon.cancel()
            self._filter()
            self.query_one(ConnectionTable).focus()
            field.display = False
        elif app_of(self).screen_stack[0] is not self:
            self.close_screen()

    def action_sort_rows(self) -> None:
        """Sort by the next column."""
        self._rows.order = self._rows.order.by_next()
        self._sort()

    def action_reverse_rows(self) -> None:
        """Reverse the order."""
        self._rows.order = self._rows.order.reversed()
        self._sort()

    def action_freeze(self) -> None:
        """Freeze or release the order."""
        self._rows.is_frozen = not self._rows.is_frozen
        self._rows.arrange()
        self.draw()

    def action_maximize_next(self) -> None:
        """Show the table alone, then the connection at the cursor alone, then both."""
        self._maximize(_MAXIMIZED[(_MAXIMIZED.index(self._maximized) + 1) % len(_MAXIMIZED)])

    def action_export(self) -> None:
        """Export a picture of the screen."""
        prompt_export(self)

    def action_leave_observe(self) -> None:
        """Leave the screen."""
        self.close_screen()
