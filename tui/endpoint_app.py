"""The app of an endpoint: one screen with its clients, limits and log."""

from .actions import ScreenKind
from .base_app import BaseApp, SavePreferences, discard_preferences
from .screens.endpoint.endpoint_status import EndpointHandle, EndpointScreen
from .services.preferences import NO_SAVED_PREFERENCES, LoadedPreferences, Preferences


class EndpointApp(BaseApp):
    """Shows an endpoint until it has ended."""

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
        """Apply preferences to the app and its screen."""
        super().apply(preferences)
        self.endpoint.apply(preferences)

    async def action_quit(self) -> None:
        """Shut the endpoint down in order, also when one of Textual's own keys asks to quit."""
        self.endpoint.action_finish()
