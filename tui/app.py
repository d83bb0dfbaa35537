"""The app: themes, command palette, and the cockpit as its screen."""

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from textual.app import SystemCommand
from textual.filter import LineFilter
from textual.screen import Screen

from ..engine.plan import Peer, Plan
from ..presets.catalog import Catalog
from ..presets.model import Preset
from ..presets.verdict import DEFAULT_PASS_PERCENT
from .actions import Place, actions_of
from .charset import Plainer, table_for
from .known import problem_lines
from .pace import DEFAULT_REFRESH_HZ
from .ports import Export, History, Ports, Probe, StartRun
from .screens.ask import SecretScreen
from .screens.cockpit import CockpitScreen
from .thrifty import ThriftyApp

_PROBLEM_SHOWN_S: Final = 15.0
# Classes that app.tcss places things by.
_WIDTHS: Final = [(0, "-narrow"), (110, "-wide"), (160, "-huge")]
_HEIGHTS: Final = [(0, "-tiny"), (12, "-short"), (32, "-tall"), (50, "-towering")]
_KEPT_COMMANDS: Final = frozenset({"Theme", "Screenshot"})


class LinkgaugeApp(ThriftyApp):
    """The cockpit against one peer.

    `start_run`, `probe`, `export` and `history` are all it knows of the world (see ports.py); `clock` counts
    nanoseconds and only bounds how often the gauges are drawn, at most `refresh_hz` times a second. `language`
    is the one that presets are named in.
    """

    TITLE = "linkgauge"
    CSS_PATH = "app.tcss"
    HORIZONTAL_BREAKPOINTS = _WIDTHS
    VERTICAL_BREAKPOINTS = _HEIGHTS

    def __init__(
        self,
        catalog: Catalog,
        peer: Peer,
        *,
        start_run: StartRun,
        probe: Probe,
        export: Export,
        history: History | None = None,
        initial_plan: Plan,
        initial_preset: Preset,
        clock: Callable[[], int] = time.monotonic_ns,
        refresh_hz: float = DEFAULT_REFRESH_HZ,
        pass_percent: float = DEFAULT_PASS_PERCENT,
        language: str = "en",
    ) -> None:
        super().__init__()
        table = table_for(os.environ)
        self._plainer = None if table is None else Plainer(table)
        self._preset_problems = problem_lines(catalog)
        self.cockpit = CockpitScreen(
            catalog,
            peer,
            Ports(start_run, probe, export, history),
            plan=initial_plan,
            preset=initial_preset,
            clock=clock,
            refresh_hz=refresh_hz,
            pass_percent=pass_percent,
            language=language,
        )

    def on_mount(self) -> None:
        """Tell what of a person's own presets could not be used; the list of presets keeps it."""
        problems = self._preset_problems
        if problems:
            more = "" if len(problems) == 1 else f", and {len(problems) - 1} more: n lists them"
            self.notify(
                f"{problems[0]}{more}",
                title="your own presets",
                severity="warning",
                timeout=_PROBLEM_SHOWN_S,
                markup=False,
            )

    async def ask(self, question: str) -> str | None:
        """Ask a person what ssh wants to know; None where they go back without an answer."""
        answered: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

        def take(answer: str | None) -> None:
            if not answered.done():
                answered.set_result(answer)

        screen = SecretScreen(question)
        await self.push_screen(screen, take)
        try:
            return await answered
        finally:
            if screen.is_current:  # nobody waits for it any more
                screen.dismiss(None)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return Textual's own, and last the one for a terminal that cannot show every character."""
        own = super().get_line_filters()
        return own if self._plainer is None else [*own, self._plainer]

    def get_default_screen(self) -> Screen[Any]:
        """Return the cockpit: it stays below every other screen."""
        return self.cockpit

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Yield the actions of the screen, or of the cockpit below it, then what Textual has to offer here."""
        place = getattr(screen, "PLACE", None)
        target = screen if isinstance(place, Place) else self.cockpit
        for action in actions_of(place if isinstance(place, Place) else Place.COCKPIT):
            yield SystemCommand(action.title, action.help, partial(self.run_action, action.id, target))
        own = super().get_system_commands(screen)  # pyright: ignore[reportUnknownMemberType] (Screen of what)
        for command in own:
            if command.title in _KEPT_COMMANDS:
                yield command
