"""Choose a far end: type one, or go to one that is known with the arrows; each is asked whether it is there."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from ....engine.model.errors import LinkgaugeError
from ....engine.model.peer import Peer
from ....engine.results.run_log import RunRecord
from ...interfaces import AppServices
from ...rendering.styles import BAD, GOOD, MUTED
from ...services.known_peers import KnownPeer, known_peers, read_ssh_config
from ...text import numbers
from ...widgets.common.input_line import TextField
from .ask import AskScreen, validate_peer

_PATIENCE_S: Final = 3.0
_HINT: Final = (
    "host or host:port, where `linkgauge endpoint` runs; ssh://host, which needs only Python 3.11 there; loopback"
)


class PeerScreen(AskScreen):
    """Answers a peer as text; None where the person goes back."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", "back"),
        Binding("up", "go(-1)", show=False, priority=True),
        Binding("down", "go(1)", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    PeerScreen {
        & > Vertical { width: 86; }
        & OptionList { height: auto; max-height: 12; border: none; background: $surface; padding: 0;
                       margin: 0 0 1 0; scrollbar-size-vertical: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    }
    """

    def __init__(self, peer: Peer, ports: AppServices) -> None:
        value = "loopback" if peer.is_loopback else str(peer)
        super().__init__("connect to a far end", value, _HINT, validate_peer)
        self._ports = ports
        self._known: list[KnownPeer] = []

    def compose(self) -> ComposeResult:
        """Lay out the line, what belongs into it, and what is known."""
        with Vertical() as box:
            box.border_title = Content(self._title)
            box.border_subtitle = Content("↑ ↓ known ones   enter   esc")
            yield TextField(self._value, select_on_focus=True, compact=False)
            yield OptionList(markup=False)
            yield Static(Content(self._hint), markup=False)

    def on_mount(self) -> None:
        """Look for what is known, and ask it; a person need not wait for either."""
        self.query_one(OptionList).can_focus = False
        self.run_worker(self._find(), exit_on_error=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Answer what was pointed at."""
        self.dismiss(self._known[event.option_index].text)

    def action_go(self, by: int) -> None:
        """Go to the next known one, and write it into the line."""
        options = self.query_one(OptionList)
        if self._known:
            at = options.highlighted
            at = (0 if by > 0 else -1) if at is None else at + by
            options.highlighted = at % len(self._known)
            field = self.query_one(TextField)
            field.value = self._known[options.highlighted].text
            field.cursor_position = len(field.value)

    async def _find(self) -> None:
        known = await asyncio.to_thread(_known, self._ports)
        self._known = known
        options = self.query_one(OptionList)
        options.add_options([Option(_line(one, "◌" if one.can_query else " ", MUTED)) for one in known])
        async with asyncio.TaskGroup() as group:
            for number, one in enumerate(known):
                if one.can_query:
                    group.create_task(self._ask(number, one, options.replace_option_prompt_at_index))

    async def _ask(self, number: int, one: KnownPeer, show: Callable[[int, Content], object]) -> None:
        """Ask a peer who it is, and mark it by what it says."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                facts = await self._ports.query_host_info(Peer.parse(one.text))
        except (LinkgaugeError, TimeoutError):
            line = _line(one, "✗", BAD, "does not answer")
        else:
            line = _line(one, "✓", GOOD, f"answers, {numbers.quantity(facts.cores, 'core')}")
        if self.is_attached:
            show(number, line)


def _known(ports: AppServices) -> list[KnownPeer]:
    try:
        rows: Sequence[RunRecord] = () if ports.history is None else ports.history.list_runs()
    except LinkgaugeError:
        rows = ()
    return known_peers(rows, read_ssh_config(Path.home()))


def _line(one: KnownPeer, mark: str, style: str, said: str = "") -> Content:
    beside = "  ".join(part for part in (one.source, said) if part)
    return Content.assemble((f" {mark} ", style), (f"{one.text:<28}", "bold"), "  ", (beside, MUTED))
