"""The app as a whole: its language, and the modules that its first frame needs."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from linkgauge.engine.results.run_log import RunLog

from ..secret_run import secrets_in, store_secret_run
from ..stored_runs import open_history, until


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


async def test_a_key_hides_addresses_and_names_on_every_screen_and_in_exports(world: Any, tmp_path: Path) -> None:
    """Also on the screens below, and in a picture; again, and they are back."""
    with RunLog.open(tmp_path / "log") as log:
        store_secret_run(world, log)
        world.history = log
        async with world.cockpit((120, 40)) as cockpit:
            await open_history(cockpit)
            listed = cockpit.text()
            assert secrets_in(listed, ("db-77", "alice")) == ["db-77", "alice"]
            await cockpit.press("a")
            assert secrets_in(cockpit.text()) == []
            await cockpit.press("enter")
            await until(cockpit, lambda: "MiB/s" in cockpit.text() or "Mb/s" in cockpit.text())
            assert secrets_in(cockpit.text()) == []
            assert secrets_in(cockpit.app.export_screenshot()) == []
            await cockpit.press("escape", "a", "down")
            assert secrets_in(cockpit.text(), ("db-77", "alice")) == ["db-77", "alice"]
