"""The app, with the cockpit as its screen."""

import asyncio
import time
from collections.abc import Callable

from ..engine.model.peer import Peer
from ..engine.model.plan import Plan
from ..presets.catalog import Catalog
from ..presets.preset import Preset
from .actions import ScreenKind
from .base_app import BaseApp, SavePreferences, discard_preferences
from .interfaces import AppServices, ExportRuns, History, QueryHostInfo, StartRun, Sweeps
from .screens.dialogs.ask import SecretScreen
from .screens.run.cockpit import CockpitScreen
from .services.preferences import NO_SAVED_PREFERENCES, LoadedPreferences, Preferences
from .services.user_presets import problem_lines


class LinkgaugeApp(BaseApp):
    """The cockpit against one peer.

    `start_run`, `probe`, `export`, `history` and `sweeps` are all it knows of the world (see ports.py); `clock`
    counts nanoseconds and only bounds how often the gauges are drawn. `language` is the one that presets are
    named in.
    """

    home_screen_kind = ScreenKind.COCKPIT

    def __init__(
        self,
        catalog: Catalog,
        peer: Peer,
        *,
        start_run: StartRun,
        query_host_info: QueryHostInfo,
        export: ExportRuns,
        history: History | None = None,
        sweeps: Sweeps | None = None,
        initial_plan: Plan,
        initial_preset: Preset,
        clock: Callable[[], int] = time.monotonic_ns,
        language: str = "en",
        loaded: LoadedPreferences = NO_SAVED_PREFERENCES,
        save: SavePreferences = discard_preferences,
    ) -> None:
        super().__init__(loaded, save)
        self._preset_problems = problem_lines(catalog)
        self.home = self.cockpit = CockpitScreen(
            catalog,
            peer,
            AppServices(start_run, query_host_info, export, history, sweeps),
            plan=initial_plan,
            preset=initial_preset,
            clock=clock,
            preferences=self.preferences,
            language=language,
        )

    def on_mount(self) -> None:
        """Tell what of a person's own presets could not be used; the list of presets keeps it."""
        self.notify_problems("your own presets", self._preset_problems, "n lists them")

    def apply(self, preferences: Preferences) -> None:
        """Put into force what is set, in the cockpit as well."""
        super().apply(preferences)
        self.cockpit.apply(preferences)

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
