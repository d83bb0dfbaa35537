"""The app of an endpoint: its screen, and what it has in common with the other app."""

from .actions import ScreenKind
from .base_app import BaseApp, SavePreferences, discard_preferences
from .screens.endpoint.endpoint import EndpointHandle, EndpointScreen
from .services.preferences import NO_SAVED_PREFERENCES, LoadedPreferences, Preferences


class EndpointApp(BaseApp):
    """Shows what an endpoint serves, until that has ended."""

    home_screen_kind = ScreenKind.ENDPOINT

    def __init__(
        self,
        endpoint: EndpointHandle,
        *,
        loaded: LoadedPreferences = NO_SAVED_PREFERENCES,
        save: SavePreferences = discard_preferences,
    ) -> None:
        super().__init__(loaded, save)
        self.home = self.endpoint = EndpointScreen(endpoint, self.preferences)

    def apply(self, preferences: Preferences) -> None:
        """Put into force what is set, on the screen as well."""
        super().apply(preferences)
        self.endpoint.apply(preferences)

    async def action_quit(self) -> None:
        """End in order, whichever of Textual's own keys asks for it."""
        self.endpoint.action_finish()
