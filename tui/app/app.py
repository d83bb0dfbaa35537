"""The apps of the cockpit, an endpoint, a mesh and a watch: they share preferences, palette and opened screens."""

import asyncio
import os
import time
from asyncio import to_thread
from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from textual.app import SystemCommand
from textual.filter import LineFilter
from textual.screen import Screen

from ...engine.model.errors import PreferencesNotSaved
from ...presets.verdict import DEFAULT_PASS_PERCENT
from ..kit.drawing.charset import CharacterFilter, GroundFilter, translation_table
from ..kit.drawing.line_breaks import respect_no_break_spaces
from ..kit.drawing.redacted_lines import RedactionFilter
from ..kit.drawing.styles import OWN_THEMES, TERMINAL, own_theme
from ..kit.key_map import KeyMap
from ..kit.screens.base_screen import ActionScreen
from ..kit.screens.feature_app import FeatureApp
from ..session.preferences import Preferences
from ..session.user_presets import problem_lines
from ..words.numbers import sanitize
from ..words.redaction import REDACTION

if TYPE_CHECKING:
    from ...engine.model.peer import Peer
    from ...engine.results.run_log import RunEntry, RunLog
    from ...observe.observation import Observation
    from ...watch.watch_plan import WatchPlan
    from ..endpoint.served_endpoint import ServedEndpoint
    from ..kit.screens.feature_app import StoredServices
    from ..mesh.mesh_session import MeshSession
    from ..mesh.stored_mesh import StoredMeshes
    from ..observe.observed_records import ObservedRecords
    from ..run.run_services import RunServices
    from ..session.run_spec import RunSpec
    from ..sweep.sweep_session import StoredSweeps
    from ..watch.watch_screen import Watch

# The breakpoints of app.tcss and of the screens: classes by columns and lines.
_WIDTHS: Final = [(0, "-narrow"), (110, "-wide"), (160, "-huge")]
_HEIGHTS: Final = [(0, "-tiny"), (12, "-short"), (32, "-tall"), (50, "-towering")]
_TEXTUAL_COMMANDS: Final = frozenset({"Screenshot"})

NO_PREFERENCES: Final = Preferences()
# Saves preferences, in a thread. Raises PreferencesNotSaved.
SavePreferences = Callable[[Preferences], None]


def discard_preferences(_preferences: Preferences) -> None:
    """Save nothing."""


class BaseApp(FeatureApp):
    """An app with actions from the registry; `home` is its bottom screen.

    Args:
        preferences: The preferences that hold.
        save: Saves changed preferences.
    """

    TITLE = "linkgauge"
    CSS_PATH = "app.tcss"
    HORIZONTAL_BREAKPOINTS = _WIDTHS
    VERTICAL_BREAKPOINTS = _HEIGHTS

    home: ActionScreen

    def __init__(self, preferences: Preferences, save: SavePreferences) -> None:
        super().__init__()
        respect_no_break_spaces()
        table = translation_table(os.environ)
        self._character_filter = None if table is None else CharacterFilter(table)
        self._redaction_filter = RedactionFilter()
        self._save = save
        self._saved = self.preferences = preferences
        self.key_map = KeyMap(preferences.keys)
        for theme in OWN_THEMES.values():
            self.register_theme(theme)
        if preferences.colours:
            self.register_theme(own_theme(preferences.colours))
        self.theme = self._theme_of(preferences)

    def on_mount(self) -> None:
        """Bind the keys of the user."""
        self.set_keymap(self.key_map.textual)

    def open_run(self, entry: "RunEntry", log: "RunLog", services: "StoredServices") -> None:
        """Show a run of the log in the gauges."""
        from ..history.stored_run_screen import StoredRunScreen

        self.push_screen(StoredRunScreen(entry, log, services))

    def open_history(self, log: "RunLog", services: "StoredServices", filter_text: str = "") -> None:
        """Show the list of runs."""
        from ..history.history_screen import HistoryScreen

        self.push_screen(HistoryScreen(log, services, filter_text=filter_text))

    def open_new_sweep(self, services: "StoredServices", peer: "Peer", preset_id: str, direction: str) -> None:
        """Show the form of a sweep against a peer, then the sweep."""
        from ..sweep.sweep_screen import open_new_sweep

        sweeps = self.stored_sweeps(services)
        if sweeps is not None:
            open_new_sweep(self, services, sweeps, peer, preset_id, direction)

    def open_group(self, group: str, services: "StoredServices") -> bool:
        """Show the stored sweep or mesh of a name. Return False if it is neither."""
        from ...mesh.plan import GROUP_PREFIX as MESH_PREFIX
        from ..mesh.mesh_screen import open_stored_mesh
        from ..sweep.sweep_screen import open_stored_sweep
        from ..sweep.sweep_session import GROUP_PREFIX as SWEEP_PREFIX

        sweeps, meshes = self.stored_sweeps(services), self.stored_meshes(services)
        screen = self.screen
        if not isinstance(screen, ActionScreen):
            return False
        if sweeps is not None and group.startswith(SWEEP_PREFIX):
            opening = open_stored_sweep(screen, services, sweeps, group)
        elif meshes is not None and group.startswith(MESH_PREFIX):
            opening = open_stored_mesh(screen, services, meshes, group)
        else:
            return False
        screen.run_worker(opening, group="open group", exclusive=True, exit_on_error=False)
        return True

    def open_observe(self, services: "StoredServices") -> None:
        """Show the connections of other programs."""
        from ...observe.observer import observe
        from ...observe.request import ObserveRequest
        from ..observe.observe_screen import ObserveScreen, screen_request
        from ..observe.observed_records import ObservedRecords

        request = screen_request(ObserveRequest(pass_percent=self.preferences.pass_mark))
        records = ObservedRecords(services.open_log)
        self.push_screen(ObserveScreen(observe(request, services.catalog), records=records))

    def stored_sweeps(self, services: "StoredServices") -> "StoredSweeps | None":
        """Return the stored sweeps; None if this app starts no runs, or does not store them."""
        from ..run.run_services import RunServices
        from ..sweep.sweep_session import StoredSweeps

        if services.history is None or not isinstance(services, RunServices):
            return None
        return StoredSweeps(services.history, services.start_run, services.variant_of)

    def stored_meshes(self, services: "StoredServices") -> "StoredMeshes | None":
        """Return the stored meshes; None if runs are not stored."""
        from ..mesh.stored_mesh import StoredMeshes

        return None if services.history is None else StoredMeshes(services.history)

    def apply(self, preferences: Preferences) -> None:
        """Apply preferences to the app and its bottom screen."""
        self.preferences = preferences
        self.theme = self._theme_of(preferences)
        self.home.apply(preferences)

    def _theme_of(self, preferences: Preferences) -> str:
        """Return the theme: without colours every ground is the terminal's."""
        return TERMINAL.name if self.no_color else preferences.theme

    def action_settings(self) -> None:
        """Edit the preferences; they apply at once and are saved when the dialog closes."""
        from .settings import SettingsScreen

        self.push_screen(SettingsScreen(self.preferences, self.apply), self._save_if_changed)

    def _save_if_changed(self, _answer: None) -> None:
        if self.preferences != self._saved:
            self.run_worker(self._save_in_thread(self.preferences), group="preferences", exit_on_error=False)

    async def _save_in_thread(self, preferences: Preferences) -> None:
        try:
            await to_thread(self._save, preferences)
        except PreferencesNotSaved as error:
            self.notify(sanitize(str(error)), title="settings", severity="error", markup=False)
            return
        self._saved = preferences

    def action_redact(self) -> None:
        """Hide or show addresses and names, on the screen and in exports from now on."""
        REDACTION.is_on = not REDACTION.is_on
        for screen in self.screen_stack:
            for widget in screen.walk_children(with_self=True):
                widget.refresh()
        text = "are hidden, also in exports" if REDACTION.is_on else "are shown again"
        self.notify(f"Addresses and names {text}.")

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Return Textual's filters, then those for stand-ins and for a terminal that lacks characters.

        Without colours another one is first: Textual's would only remove the ground of bars.
        """
        own = (self._redaction_filter if REDACTION.is_on else None, self._character_filter)
        ground = [GroundFilter()] if self.no_color else []
        return [*ground, *super().get_line_filters(), *filter(None, own)]

    def get_default_screen(self) -> Screen[Any]:
        """Return the bottom screen."""
        return self.home

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Yield the actions of the screen, or for a dialog of the bottom screen; then some of Textual's."""
        target = screen if isinstance(screen, ActionScreen) else self.home
        for action in self.key_map.actions_of(target.SCREEN_KIND):
            title = f"{action.title}  ({action.key_names})"
            yield SystemCommand(title, action.help, partial(self.run_action, action.id, target))
        commands = super().get_system_commands(screen)  # pyright: ignore[reportUnknownMemberType] (Screen of what)
        for command in commands:
            if command.title in _TEXTUAL_COMMANDS:
                yield command


class LinkgaugeApp(BaseApp):
    """The cockpit against one peer.

    Args:
        services: The presets; opens runs, queries far ends, exports and stores.
        spec: The first run.
        language: The language of preset names.
        is_preset_auto: Select the preset by both ends' interfaces as soon as the far end answers.
        preferences: The preferences that hold.
        save: Saves changed preferences.
    """

    def __init__(
        self,
        services: "RunServices",
        spec: "RunSpec",
        *,
        language: str = "en",
        is_preset_auto: bool = False,
        preferences: Preferences = NO_PREFERENCES,
        save: SavePreferences = discard_preferences,
    ) -> None:
        from ..run.cockpit_screen import CockpitScreen

        super().__init__(preferences, save)
        self._preset_problems = problem_lines(services.catalog)
        self.home = self.cockpit = CockpitScreen(
            services, spec, preferences, language=language, is_preset_auto=is_preset_auto
        )

    def on_mount(self) -> None:
        """Notify of the first problem in the user's own presets; the preset picker lists them."""
        if self._preset_problems:
            first, *others = self._preset_problems
            key = self.key_map.name_of("presets")
            more = f", and {len(others)} more: press {key} to see them" if others else ""
            self.notify(f"{sanitize(first)}{more}", title="your own presets", severity="warning", markup=False)

    async def ask(self, question: str) -> str | None:
        """Show a question of ssh and return the answer; None if the user cancels."""
        from ..kit.screens.prompts import SecretPrompt

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


class ReplayApp(BaseApp):
    """One screen that plays a stored run, until the user leaves it."""

    def __init__(
        self,
        run_id: str,
        log: "RunLog",
        services: "StoredServices",
        *,
        speed: float = 1.0,
        preferences: Preferences = NO_PREFERENCES,
        save: SavePreferences = discard_preferences,
    ) -> None:
        from ..history.replay_screen import ReplayScreen

        super().__init__(preferences, save)
        self.home = self.replay = ReplayScreen(run_id, log, services, speed)


class EndpointApp(BaseApp):
    """One screen with an endpoint's clients, limits and log, until the endpoint has ended."""

    def __init__(
        self,
        endpoint: "ServedEndpoint",
        *,
        preferences: Preferences = NO_PREFERENCES,
        save: SavePreferences = discard_preferences,
    ) -> None:
        from ..endpoint.endpoint_screen import EndpointScreen

        super().__init__(preferences, save)
        self.home = self.endpoint = EndpointScreen(endpoint, self.preferences)

    async def action_quit(self) -> None:
        """Shut the endpoint down in order, also when one of Textual's own keys asks to quit."""
        self.endpoint.action_finish()


class MeshApp(BaseApp):
    """One screen with a mesh in progress, until the user leaves it."""

    def __init__(
        self,
        session: "MeshSession",
        services: "StoredServices",
        *,
        pass_percent: float = DEFAULT_PASS_PERCENT,
        preferences: Preferences = NO_PREFERENCES,
        save: SavePreferences = discard_preferences,
    ) -> None:
        from ..mesh.mesh_screen import MeshScreen

        super().__init__(preferences, save)
        self.home = self.mesh = MeshScreen(
            services, session, meshes=self.stored_meshes(services), pass_percent=pass_percent
        )

    async def action_quit(self) -> None:
        """Stop the mesh in order, also when one of Textual's own keys asks to quit."""
        self.mesh.action_leave_mesh()


class ObserveApp(BaseApp):
    """One screen with the connections of other programs, until the user leaves it."""

    def __init__(
        self,
        observations: "AsyncIterable[Observation]",
        target: str | None = None,
        *,
        records: "ObservedRecords | None" = None,
        preferences: Preferences = NO_PREFERENCES,
        save: SavePreferences = discard_preferences,
    ) -> None:
        from ..observe.observe_screen import ObserveScreen

        super().__init__(preferences, save)
        self.home = self.observing = ObserveScreen(observations, target, records=records)


class WatchApp(BaseApp):
    """One screen with a watch in progress, until it has ended or the user leaves it."""

    def __init__(
        self,
        session: "Watch",
        services: "StoredServices",
        *,
        read_plan: "Callable[[], WatchPlan] | None" = None,
        clock: Callable[[], float] = time.time,
        preferences: Preferences = NO_PREFERENCES,
        save: SavePreferences = discard_preferences,
    ) -> None:
        from ..watch.watch_screen import WatchScreen

        super().__init__(preferences, save)
        self.home = self.watching = WatchScreen(session, services, read_plan=read_plan, clock=clock)

    async def action_quit(self) -> None:
        """End the watch in order, also when one of Textual's own keys asks to quit."""
        self.watching.action_leave_watch()
