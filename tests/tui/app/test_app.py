"""The app as a whole: its language, and the modules that its first frame needs."""

import os
import pty
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


_AT_FIRST_FRAME = """
import os, pathlib, sys
from linkgauge.tui.kit.drawing.screen_diff import DiffApp
write = DiffApp._write_changes
def write_first(self, screen):
    write(self, screen)
    if self.first_frame.is_set():
        pathlib.Path(os.environ["MODULES"]).write_text(" ".join(sys.modules))
        os._exit(0)
DiffApp._write_changes = write_first
from linkgauge.__main__ import main
main()
"""


def test_the_first_frame_needs_neither_a_run_nor_another_screen(tmp_path: Path) -> None:
    """The engine, the run log, the diagnosis and the dialogs come after it: they take longer than Textual."""
    modules = tmp_path / "modules"
    folders = dict.fromkeys(("LINKGAUGE_DATA_DIR", "LINKGAUGE_CONFIG_DIR"), str(tmp_path))
    environment = {**os.environ, **folders, "TERM": "xterm-256color", "MODULES": str(modules)}
    master, slave = pty.openpty()
    try:
        command = [sys.executable, "-c", _AT_FIRST_FRAME]
        subprocess.run(command, check=True, stdin=slave, stdout=slave, stderr=slave, env=environment, timeout=30)
    finally:
        os.close(master)
        os.close(slave)
    engine = ("far", "near", "ssh", "workers", "workloads", "control", "results.meter", "results.run_log")
    screens = ("app.settings", "endpoint", "history", "mesh", "sweep", "watch", "report", "kit.screens.help")
    late = (
        *(f"linkgauge.engine.{name}" for name in engine),
        *(f"linkgauge.tui.{name}" for name in screens),
        *("linkgauge.mesh", "linkgauge.watch", "linkgauge.presets.diagnosis", "linkgauge.discovery.finder"),
        *("sqlite3", "matplotlib", "jinja2", "zeroconf"),
    )
    loaded = modules.read_text().split()
    assert "linkgauge.tui.run.cockpit_screen" in loaded
    assert [name for name in loaded if name.startswith(late)] == []


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
