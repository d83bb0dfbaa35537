"""The app as a whole: its language, and the modules that its first frame needs."""

import subprocess
import sys
from typing import Any


async def test_the_app_names_presets_in_its_language(world: Any) -> None:
    """Above the gauges as well as in the list."""
    app = world.app("gbe-fd-1500")
    app.cockpit._language = "ja"
    async with world.cockpit((120, 40), app=app) as cockpit:
        assert world.catalog.find("gbe-fd-1500").name_ja in cockpit.text()


def test_the_first_frame_needs_no_dialog_and_no_other_screen() -> None:
    """Keys import them: together they take a tenth of the time to the first frame. Plots are not needed either."""
    code = (
        "import sys, linkgauge.tui.cli.terminal_app, linkgauge.tui.run.cockpit_screen\n"
        "print(*(name for name in sys.modules))"
    )
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    packages = ("app.settings", "endpoint", "history", "mesh", "sweep", "watch")
    late = (*(f"linkgauge.tui.{name}" for name in packages), "matplotlib", "jinja2")
    assert [name for name in output.split() if name.startswith(late)] == []
