"""The base of a screen with the gauges, plot and panels of a run: their keys."""

from typing import TYPE_CHECKING

from ..kit.screens.base_screen import ActionScreen

if TYPE_CHECKING:
    from .instruments import Instruments


class InstrumentScreen(ActionScreen):
    """A screen with the gauges, plot and panels of a run, live or stored; app.tcss lays them out."""

    @property
    def instruments(self) -> "Instruments":
        """The gauges, plot and panels."""
        from .instruments import Instruments

        return self.query_one(Instruments)

    def action_plot(self) -> None:
        """Show the next plot."""
        self.instruments.show_next_plot()

    def action_maximize(self) -> None:
        """Show one panel alone, or the next one."""
        self.instruments.maximize_next()

    def action_fewer_panels(self) -> None:
        """Show fewer panels."""
        self.instruments.show_fewer()

    def action_more_panels(self) -> None:
        """Show more panels."""
        self.instruments.show_more()

    def action_events(self) -> None:
        """Open or close the event log."""
        self.instruments.toggle_log()
