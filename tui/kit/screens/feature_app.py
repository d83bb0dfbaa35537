"""How screens of one feature open those of another: the app does it, so that features do not know each other."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from textual.screen import Screen

from ....engine.model.peer import Peer
from ...session.preferences import Preferences
from ..drawing.message_line import MessageApp
from ..key_map import KeyMap

if TYPE_CHECKING:
    from ....engine.results.run_log import RunEntry, RunLog
    from ....presets.catalog import Catalog
    from ...session.run_exports import ExportRuns


def _no_log() -> None:
    """Return None: runs are not stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredServices:
    """What screens of stored runs are given.

    `open_log` returns the run log, or None if runs are not stored. The first call opens it.
    `clock` counts nanoseconds. It limits how often gauges are drawn, and estimates the remaining time.
    """

    catalog: "Catalog"
    export: "ExportRuns"
    open_log: "Callable[[], RunLog | None]" = _no_log
    clock: Callable[[], int] = time.monotonic_ns

    @property
    def history(self) -> "RunLog | None":
        """The run log; None if runs are not stored."""
        return self.open_log()


class FeatureApp(MessageApp):
    """An app whose screens open each other. `tui/app` has the apps."""

    preferences: Preferences = Preferences()
    key_map: KeyMap = KeyMap()

    def open_run(self, entry: "RunEntry", log: "RunLog", services: StoredServices) -> None:
        """Show a run of the log in the gauges."""
        raise NotImplementedError

    def open_history(self, log: "RunLog", services: StoredServices, filter_text: str = "") -> None:
        """Show the list of runs."""
        raise NotImplementedError

    def open_new_sweep(self, services: StoredServices, peer: Peer, preset_id: str, direction: str) -> None:
        """Show the form of a sweep against a peer, then the sweep."""
        raise NotImplementedError

    def open_group(self, group: str, services: StoredServices) -> bool:
        """Show the stored sweep or mesh with this name. Return False if there is neither."""
        raise NotImplementedError

    def open_observe(self, services: StoredServices) -> None:
        """Show the connections of other programs."""
        raise NotImplementedError


def app_of(screen: Screen[Any]) -> FeatureApp:
    """Return the app of a screen. Textual leaves its type open."""
    return cast("FeatureApp", screen.app)  # pyright: ignore[reportUnknownMemberType]


def preferences_of(screen: Screen[Any]) -> Preferences:
    """Return the preferences in force in the app of a screen."""
    return app_of(screen).preferences
