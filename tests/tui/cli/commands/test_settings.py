"""`linkgauge settings`, and the defaults that the user's settings give to the options of other commands."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from linkgauge.tui.kit.key_map import keys_template
from linkgauge.tui.session.settings_file import FILE_NAME, settings_template

Cli = Callable[..., subprocess.CompletedProcess[str]]


def test_each_value_has_its_source(cli: Cli, tmp_path: Path) -> None:
    """For the user and for programs."""
    (tmp_path / FILE_NAME).write_text("seconds = 20\n")
    folders = {"LINKGAUGE_CONFIG_DIR": str(tmp_path), "LINKGAUGE_SESSIONS": "4"}
    rows = {row["name"]: row for row in json.loads(cli("settings", "--json", **folders).stdout)}
    assert rows["seconds"] == {"name": "seconds", "value": "20", "source": f"{tmp_path / FILE_NAME}, line 1"}
    assert rows["sessions"]["source"] == "LINKGAUGE_SESSIONS"
    assert rows["window"]["source"] == "built-in"
    lines = cli("settings", **folders).stdout.splitlines()
    assert [line.split()[:2] for line in lines][2:4] == [["seconds", "20"], ["sessions", "4"]]
    template = cli("settings", "--template", **folders).stdout
    assert template == f"{settings_template()}\n{keys_template()}"


@pytest.mark.parametrize(
    "words", [("check", "loopback"), ("run", "loopback"), ("settings",), ("mesh", "a", "b"), ()]
)
def test_a_broken_file_ends_every_command_that_uses_it(cli: Cli, tmp_path: Path, words: tuple[str, ...]) -> None:
    """With its line; help, version and the template are for mending it."""
    path = tmp_path / FILE_NAME
    path.write_text("seconds = 20\nsesions = 4\n")
    folders = {"LINKGAUGE_CONFIG_DIR": str(tmp_path)}
    done = cli(*words, **folders)
    assert done.returncode == 2
    assert done.stderr.startswith(f"linkgauge: {path}, line 2: 'sesions' is not a setting; known: preset, ")
    for further in ((*words, "--help"), ("--version",), ("settings", "--template")):
        assert cli(*further, **folders).returncode == 0


def test_a_default_of_the_settings_gives_way_to_the_command_line(cli: Cli, tmp_path: Path) -> None:
    """Also to an option that would exclude it if both were typed."""
    (tmp_path / FILE_NAME).write_text('seconds = 1.5\nfamily = 6\nkey_file = "none"\nsessions = 3\ninterval = 2\n')
    folders = {"LINKGAUGE_CONFIG_DIR": str(tmp_path)}
    refused = cli("run", "loopback", **folders).stderr
    assert "--interval 2 is invalid; a test of 1.5 s" in refused
    assert "--interval 3 is invalid" in cli("run", "loopback", "--interval", "3", **folders).stderr
    for typed in (("--until-ci", "1%", "-4"), ("-n", "10G", "--family", "any"), ("--seconds", "9")):
        assert cli("run", "iperf3://127.0.0.1", *typed, "--mss", "x", **folders).stderr.startswith(
            "linkgauge: --mss 'x' is"
        )
    done = cli("run", "127.0.0.1", "--seconds", "9", **folders)
    assert (done.returncode, "none" in done.stderr) == (2, True)  # its key file is read
