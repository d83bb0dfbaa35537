"""The app as a whole: its language."""

from typing import Any


async def test_the_app_names_presets_in_its_language(world: Any) -> None:
    """Above the gauges as well as in the list."""
    app = world.app("gbe-fd-1500")
    app.cockpit._language = "ja"
    async with world.cockpit((120, 40), app=app) as cockpit:
        assert world.catalog.find("gbe-fd-1500").name_ja in cockpit.text()
