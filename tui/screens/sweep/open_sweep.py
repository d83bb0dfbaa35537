"""How a sweep comes on the screen: out of the form, or as it was kept."""

from asyncio import to_thread

from textual.screen import Screen

from ....engine.model.errors import LinkgaugeError
from ....engine.model.peer import Peer
from ....engine.results.sweep import Sweep
from ....presets.catalog import Catalog
from ...interfaces import ExportRuns, Sweeps
from ...state.cockpit import CockpitState
from ...text import numbers
from ..layout import app_of
from .sweep import SweepScreen
from .sweep_form import SweepForm


def ask_sweep(
    screen: Screen[None], sweeps: Sweeps, export: ExportRuns, catalog: Catalog, state: CockpitState
) -> None:
    """Ask what to try against the cockpit's peer, and try it."""

    def asked(sweep: Sweep | None) -> None:
        if sweep is not None:
            preset = None if sweep.preset is None else catalog.find(sweep.preset)
            app_of(screen).push_screen(SweepScreen(sweep, sweeps, export, preset=preset, peer=state.peer))

    peer = state.peer.host if state.peer.is_loopback else str(state.peer)
    form = SweepForm(catalog, peer, state.preset.id, state.plan.settings.direction.value)
    app_of(screen).push_screen(form, asked)


async def open_stored_sweep(
    screen: Screen[None], sweeps: Sweeps, group: str, export: ExportRuns, catalog: Catalog
) -> None:
    """Open a sweep that is kept, with what was measured of it; it can be gone on with there."""
    try:
        sweep, cells = await to_thread(sweeps.find, group)
        preset = None if sweep.preset is None else catalog.find(sweep.preset)
        peer = Peer.parse(sweep.peer)
    except LinkgaugeError as error:
        screen.notify(numbers.sanitize(str(error)), title="sweep", severity="error", markup=False)
        return
    shown = SweepScreen(sweep, sweeps, export, preset=preset, peer=peer, cells=cells, autostart=False)
    await app_of(screen).push_screen(shown)
