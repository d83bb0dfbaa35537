"""The app of an endpoint: its screen, and what it has in common with the other app."""

from .actions import Place
from .base_app import HouseApp, Keep, keep_nothing
from .screens.endpoint.endpoint import EndpointScreen, Serving
from .services.preferences import NOTHING_KEPT, Found, Preferences


class EndpointApp(HouseApp):
    """Shows what an endpoint serves, until that has ended."""

    home_place = Place.ENDPOINT

    def __init__(self, serving: Serving, *, found: Found = NOTHING_KEPT, keep: Keep = keep_nothing) -> None:
        super().__init__(found, keep)
        self.home = self.endpoint = EndpointScreen(serving, self.preferences)

    def apply(self, preferences: Preferences) -> None:
        """Put into force what is set, on the screen as well."""
        super().apply(preferences)
        self.endpoint.apply(preferences)

    async def action_quit(self) -> None:
        """End in order, whichever of Textual's own keys asks for it."""
        self.endpoint.action_finish()
