"""`linkgauge presets new`: a kept run made into a preset, that later runs are held against."""

import json
import re
import shlex
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.model.events import Event
from linkgauge.engine.model.peer import LOOPBACK
from linkgauge.engine.model.plan import SECOND_NS, Plan, Settings
from linkgauge.engine.results.run_log import RunLog
from linkgauge.presets.catalog import load_catalog
from linkgauge.tui.session.user_presets import load_presets

DEADLINE_S = 40.0
RUN_ID = "20261121-014629-7f3a"

Cli = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def cli(cli: Cli, tmp_path: Path) -> Cli:
    """Give the command line, with data and configuration directories of the test's own."""
    folders = {"LINKGAUGE_DATA_DIR": str(tmp_path / "data"), "LINKGAUGE_CONFIG_DIR": str(tmp_path / "config")}
    return lambda *arguments: cli(*arguments, **folders)


def keep_run(
    world: Any, data_dir: Path, *, preset: str = "10gbe-fd-1500", peer: str = LOOPBACK.host, ended: bool = True
) -> None:
    """Keep a scripted run: ten seconds of one session, then ten of five with a window of 256K."""
    found = world.catalog.find(preset if preset in {p.id for p in world.catalog.presets} else "loopback")
    script = world.script_of(found, Plan(Settings(window_bytes=262_144), duration_ns=20 * SECOND_NS))
    script.run_for(40, 6.9e9)
    script.change_settings(script.settings.with_changes(sessions=5))
    script.run_for(40, 9.38e9)
    if ended:
        script.end()
    events: list[Event] = []
    while not script.queue.empty():
        events.append(script.queue.get_nowait())
    with RunLog.open(data_dir) as log:
        log.begin(RUN_ID, preset, peer)
        for event in events:
            log.append_event(RUN_ID, event)
        if ended:
            log.finish(RUN_ID, "pass", {})


def test_a_run_becomes_a_preset_with_the_link_of_the_runs_own(world: Any, tmp_path: Path, cli: Cli) -> None:
    """The path is what comes out; what to do with it is told beside."""
    keep_run(world, tmp_path / "data")
    made = cli("presets", "new", "uplink", "--from-run", RUN_ID[:12])
    path = tmp_path / "config" / "presets" / "uplink.toml"
    assert (made.returncode, made.stdout) == (0, f"{path}\n")
    assert "linkgauge check uplink loopback" in made.stderr
    catalog = load_catalog([path.parent])
    assert catalog.problems == ()
    mine = catalog.find("uplink")
    assert mine.link == catalog.find("10gbe-fd-1500").link
    assert mine.suggested_window_bytes == 262_144
    assert [(rate.flow, rate.sessions, round((mine.rate_bit_s(rate) or 0) / 1e9)) for rate in mine.rates] == [
        ("out", 1, 7),
        ("out", 5, 9),
    ]
    assert [entry.name for entry in path.parent.iterdir()] == ["uplink.toml"]


def test_the_peer_of_a_run_is_one_word_of_the_command_to_paste(world: Any, tmp_path: Path, cli: Cli) -> None:
    """Somebody may have sent the run log, and no name in it begins a command of its own."""
    peer = """x;touch${IFS}`id`'"[1]"""
    keep_run(world, tmp_path / "data", peer=peer)
    made = cli("presets", "new", "uplink", "--from-run", RUN_ID)
    (command,) = re.findall(r"compare the link with it: (.*)", made.stderr)
    assert shlex.split(command) == ["linkgauge", "check", "uplink", peer]
    assert load_catalog([tmp_path / "config" / "presets"]).problems == ()


@pytest.mark.every
def test_a_check_against_a_user_preset_is_judged_by_it(cli: Cli) -> None:
    """Of a real run over loopback, which the next one is held against."""
    short = ("--seconds", "1", "--interval", "100ms", "--rate", "100M")
    run_id = json.loads(cli("run", "loopback", *short, "--json").stdout)["run_id"]
    assert cli("presets", "new", "here", "--from-run", run_id).returncode == 0
    checked = cli("check", "here", "loopback", *short, "--pass-mark", "1", "--json")
    document = json.loads(checked.stdout)
    assert (checked.returncode, document["verdict"], document["preset"]) == (0, "pass", "here")
    assert f"run {run_id}" in document["expected"]["out"]["source"]


def test_a_preset_is_replaced_only_by_force(world: Any, tmp_path: Path, cli: Cli) -> None:
    """A slip does not destroy the user's edits."""
    keep_run(world, tmp_path / "data")
    path = tmp_path / "config" / "presets" / "uplink.toml"
    path.parent.mkdir(parents=True)
    path.write_text("# mine\n")
    refused = cli("presets", "new", "uplink", "--from-run", RUN_ID)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert f"{path} exists already" in refused.stderr
    assert "--force" in refused.stderr
    assert path.read_text() == "# mine\n"
    made = cli("presets", "new", "uplink", "--from-run", RUN_ID, "--force", "--json")
    assert json.loads(made.stdout) == {"id": "uplink", "path": str(path)}
    assert tomllib.loads(path.read_text())["preset"][0]["id"] == "uplink"


def test_a_name_or_a_run_that_will_not_do_exits_2_and_makes_nothing(world: Any, tmp_path: Path, cli: Cli) -> None:
    """The directory is not made either."""
    keep_run(world, tmp_path / "data")
    for arguments, problem in (
        (["../up", "--from-run", RUN_ID], "small letters"),
        (["auto", "--from-run", RUN_ID], "small letters"),
        (["gbe-fd-1500", "--from-run", RUN_ID, "--force"], "a built-in preset"),
        (["uplink", "--from-run", "nope"], "runs list"),
        (["uplink"], "--from-run"),
    ):
        done = cli("presets", "new", *arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert problem in done.stderr
        assert not (tmp_path / "config").exists()


def test_an_id_used_by_another_user_preset_is_refused(world: Any, tmp_path: Path, cli: Cli) -> None:
    """Two files with one id would be a problem from then on."""
    keep_run(world, tmp_path / "data")
    made = cli("presets", "new", "uplink", "--from-run", RUN_ID)
    path = Path(made.stdout.strip())
    path.rename(path.with_name("renamed.toml"))
    refused = cli("presets", "new", "uplink", "--from-run", RUN_ID)
    assert refused.returncode == 2
    assert "already has a preset uplink" in refused.stderr
    assert not path.exists()


def test_a_run_whose_preset_is_gone_gives_no_link_and_says_so(world: Any, tmp_path: Path, cli: Cli) -> None:
    """The rates are measured all the same."""
    keep_run(world, tmp_path / "data", preset="no-more")
    made = cli("presets", "new", "uplink", "--from-run", RUN_ID)
    assert made.returncode == 0
    assert "no-more no longer exists" in made.stderr
    assert tomllib.loads(Path(made.stdout.strip()).read_text())["preset"][0]["link"] == {"framing": "none"}


def test_a_directory_that_cannot_be_created_exits_3(world: Any, tmp_path: Path, cli: Cli) -> None:
    """With the path and the reason."""
    keep_run(world, tmp_path / "data")
    (tmp_path / "config").write_text("")
    done = cli("presets", "new", "uplink", "--from-run", RUN_ID)
    assert (done.returncode, done.stdout) == (3, "")
    assert str(tmp_path / "config") in done.stderr


def test_a_file_of_presets_that_cannot_be_read_is_reported_and_keeps_no_other_from_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line for each problem."""
    monkeypatch.setenv("LINKGAUGE_CONFIG_DIR", str(tmp_path))
    (tmp_path / "presets").mkdir()
    (tmp_path / "presets" / "mine.toml").write_text("[[preset")
    reports: list[str] = []
    assert load_presets(reports.append).find("gbe-fd-1500")
    assert len(reports) == 1
    assert "mine.toml" in reports[0]
