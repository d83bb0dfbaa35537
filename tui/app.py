"""The main app: the cockpit against one peer, and the prompts of ssh."""

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
from .screens.dialogs.text_prompt import SecretPrompt
from .screens.run.cockpit_screen import CockpitScreen
from .services.preferences import NO_SAVED_PREFERENCES, LoadedPreferences, Preferences
from .services.user_presets import problem_lines


class LinkgaugeApp(BaseApp):
    """The cockpit against one peer.

    Args:
        catalog: The presets.
        peer: The far end.
        start_run: Opens a run.
        query_host_info: Asks a far end for its description.
        export: Writes runs to a file.
        history: The run log; None if runs are not stored.
        sweeps: Stores and carries out sweeps; None if runs are not stored.
        initial_plan: The plan of the first run.
        initial_preset: The preset of the first run.
        clock: Counts nanoseconds; it only bounds how often the gauges are drawn.
        language: The language of preset names.
        loaded: The preferences saved before, with the problems of their file.
        save: Saves changed preferences.
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
        """Notify of problems in the person's own presets; the preset picker lists them."""
        self.notify_problems("your own presets", self._preset_problems, "n lists them")

    def apply(self, preferences: Preferences) -> None:
        """Apply preferences to the app and the cockpit."""
        super().apply(preferences)
        self.cockpit.apply(preferences)

    async def ask(self, question: str) -> str | None:
        """Show a question of ssh and return the answer; None if the person gives none."""
        answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

        def resolve(text: str | None) -> None:
            if not answer.done():
                answer.set_result(text)

        prompt = SecretPrompt(question)
        await self.push_screen(prompt, resolve)
        try:
            return await answer
        finally:
            if prompt.is_current:  # the caller was cancelled
                prompt.dismiss(None)
