"""`linkgauge presets`: a person's own presets, links that are not quite the preset's, Japanese names."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from linkgauge.tui.cli.main import run_command_line
from rich.cells import cell_len

DEADLINE_S = 30.0
Cli = Callable[..., subprocess.CompletedProcess[str]]
OWN = """
[source]
id = "own"
title = "the office"

[[preset]]
id = "{id}"
name = "The office's uplink"
family = "Own"
computed = ["simplex", "duplex"]

[preset.link]
framing = "{framing}"
line_rate_bit_s = 500_000_000
mtu_bytes = 1500
duplex = "full"
"""


def test_the_list_of_presets_has_a_line_for_each_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    """A program finds a whole preset in each line that does not begin with a space: long names do not wrap."""
    assert run_command_line(["presets", "list", "--json"]) == 0
    presets = json.loads(capsys.readouterr().out)
    assert run_command_line(["presets", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()[2:]
    listed = [line.split()[0] for line in lines if not line.startswith(" ")]
    assert sorted(listed) == sorted(preset["id"] for preset in presets)


@pytest.fixture
def cli(cli: Cli) -> Cli:
    """Give the command line, with a configuration directory where one is named."""

    def carry_out(
        *arguments: str, config: Path | None = None, **environment: str
    ) -> subprocess.CompletedProcess[str]:
        output = {} if config is None else {"LINKGAUGE_CONFIG_DIR": str(config)}
        return cli(*arguments, **output, **environment)

    return carry_out


def write_own(config: Path, name: str, text: str) -> Path:
    """Write a file of presets into a configuration directory."""
    path = config / "presets" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def flows(document: Any) -> dict[str, Any]:
    """Return a preset's expectations by flow."""
    return {expectation["flow"]: expectation for expectation in document["expectations"]}


def test_a_file_in_the_configuration_directory_is_a_preset_like_any_other(cli: Cli, tmp_path: Path) -> None:
    """Listed after linkgauge's own, shown, and computed."""
    write_own(tmp_path, "office.toml", OWN.format(id="office", framing="ethernet"))
    listed = json.loads(cli("presets", "--json", config=tmp_path).stdout)
    assert listed[-1]["id"] == "office"
    shown = cli("presets", "show", "office", config=tmp_path)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert "474.6 Mb/s" in shown.stdout


def test_an_error_in_a_file_is_reported_once_on_stderr_and_the_rest_is_used(cli: Cli, tmp_path: Path) -> None:
    """File, key and what was expected; stdout stays one JSON document."""
    bad = write_own(tmp_path, "bad.toml", OWN.format(id="bad", framing="ether"))
    taken = write_own(tmp_path, "taken.toml", OWN.format(id="loopback", framing="ethernet"))
    torn = write_own(tmp_path, "torn.toml", "[source")
    write_own(tmp_path, "well.toml", OWN.format(id="office", framing="ethernet"))
    done = cli("presets", "list", "--json", config=tmp_path)
    assert done.returncode == 0
    assert json.loads(done.stdout)[-1]["id"] == "office"
    output = done.stderr.splitlines()
    assert len(output) == 3
    assert f"{bad}: bad.link.framing: expected one of ethernet" in output[0]
    assert f"{taken}: loopback: expected a new id" in output[1]
    assert f"{torn}: expected TOML" in output[2]


def test_a_file_in_place_of_a_directory_is_one_error(cli: Cli, tmp_path: Path) -> None:
    """Linkgauge's own presets do not need it."""
    (tmp_path / "presets").write_text("")
    done = cli("presets", config=tmp_path)
    assert done.returncode == 0
    assert "gbe-fd-1500" in done.stdout
    assert f"{tmp_path / 'presets'}: cannot be read" in done.stderr


def test_control_characters_in_a_file_do_not_reach_the_terminal(cli: Cli, tmp_path: Path) -> None:
    """Neither from a preset's name nor from what is wrong."""
    text = OWN.format(id="office", framing="ethernet").replace("uplink", "\\u001b[2Juplink")
    write_own(tmp_path, "a.toml", text)
    write_own(tmp_path, "b.toml", text.replace('framing = "ethernet"', 'framing = "\\u001b[2J"'))
    for arguments in (["presets"], ["presets", "show", "office"]):
        done = cli(*arguments, config=tmp_path)
        assert done.returncode == 0
        assert "uplink" in done.stdout
        assert done.stderr
        assert "\x1b" not in done.stdout + done.stderr


def test_a_check_names_the_problems_before_it_says_that_the_preset_is_not_known(cli: Cli, tmp_path: Path) -> None:
    """For it is most likely in the file with the problem."""
    write_own(tmp_path, "office.toml", OWN.format(id="office", framing="ether"))
    done = cli("check", "office", "loopback", config=tmp_path)
    assert done.returncode == 2
    assert "office.link.framing" in done.stderr.splitlines()[0]
    assert "'office' is not known" in done.stderr.splitlines()[1]


def test_presets_are_searched_by_the_words_that_people_type(cli: Cli) -> None:
    """With and without `list`; a search without a match is an error with a hint."""
    for arguments in (("25gbe", "jumbo"), ("list", "25g", "9k")):
        lines = cli("presets", *arguments).stdout.splitlines()
        assert [line.split()[0] for line in lines[2:] if not line.startswith(" ")] == [
            "25gbe-9000", "cloud-25g-8896", "cloud-25g-9001",
        ]  # fmt: skip
    assert len(json.loads(cli("presets", "oc-3", "--json").stdout)) == 6
    missing = cli("presets", "wifi")
    assert missing.returncode == 2
    assert "no preset matches 'wifi'" in missing.stderr
    assert "--line-rate" in missing.stderr


def test_japanese_names_are_shown_on_request_or_under_a_japanese_locale(cli: Cli) -> None:
    """Only the AIX document has them; others keep their English ones."""
    for done in (cli("presets", "--lang", "ja"), cli("presets", LC_ALL="ja_JP.UTF-8")):
        assert "10 Mb イーサネット、半二重" in done.stdout
        assert "10 Mb Ethernet, half duplex" not in done.stdout
        assert "ATM 155, LANE, MTU 9218" in done.stdout
    assert "イーサネット" not in cli("presets", "--lang", "en", LC_ALL="ja_JP.UTF-8").stdout
    shown = cli("presets", "show", "10gbe-fd-1500", "--lang", "ja").stdout
    assert shown.startswith("10gbe-fd-1500  10 Gb イーサネット、全二重、MTU 1500")


def test_columns_after_japanese_names_stay_aligned(cli: Cli) -> None:
    """An East Asian character takes two cells."""
    lines = cli("presets", "--lang", "ja").stdout.splitlines()
    ends = {cell_len(line) for line in lines if line.endswith(" documented")}
    assert len(ends) == 1


def test_a_link_with_options_is_computed_and_says_which_they_are(cli: Cli) -> None:
    """1390 bytes of payload in 1546 on the wire, of which 8 are two VLAN tags."""
    options = ("--ipv6", "--vlan", "2", "--tunnel", "vxlan", "--no-timestamps")
    shown = cli("presets", "show", "10gbe-fd-1500", *options).stdout
    assert "8\u00a0990.9 Mb/s" in shown
    assert "computed, the wire model (IPv6, no TCP timestamps, QinQ, VXLAN)" in shown
    assert "QinQ tags" in shown
    assert "7\u00a0200 Mb/s" not in shown
    document = json.loads(cli("presets", "show", "10gbe-fd-1500", *options, "--json").stdout)
    assert document["options"] == "IPv6, no TCP timestamps, QinQ, VXLAN"
    assert flows(document)["simplex"]["bit_s"] == 8_990_944_373
    assert {expectation["basis"] for expectation in document["expectations"]} == {"computed"}


def test_options_that_a_link_has_anyhow_leave_it_as_documented(cli: Cli) -> None:
    """10gbe-fd-1500 has timestamps and an MTU of 1500."""
    options = ("--timestamps", "--mtu", "1500", "--vlan", "0", "--line-rate", "10G")
    assert (
        cli("presets", "show", "10gbe-fd-1500", *options).stdout == cli("presets", "show", "10gbe-fd-1500").stdout
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["presets", "show", "loopback", "--ipv6"], "does not come from a line rate"),
        (["presets", "show", "fddi-4352", "--vlan", "1"], "only Ethernet has them, and this link has FDDI"),
        (["presets", "show", "1gbe-1500", "--vlan", "3"], "QinQ"),
        (["presets", "show", "1gbe-1500", "--vlan", "x"], "QinQ"),
        (["presets", "show", "1gbe-1500", "--tunnel", "ipip"], "wireguard"),
        (["presets", "show", "1gbe-vxlan-1450", "--tunnel", "gre"], "already a VXLAN tunnel"),
        (["presets", "show", "1gbe-1500", "--mtu", "67"], "68 to 65536"),
        (
            ["presets", "show", "1gbe-1500", "--mtu", "100", "--tunnel", "vxlan"],
            "headers take all of it; give at least 103",
        ),
        (["presets", "list", "--lang", "de"], "en or ja"),
        (["run", "loopback", "--ipv6"], "--preset auto"),
        (["check", "loopback", "loopback", "--vlan", "1"], "does not come from a line rate"),
        (["check", "10mb-hd", "loopback", "--ipv6"], "half duplex"),
        (["check", "atm155-9180", "loopback", "--vlan", "1"], "this link has ATM, Classical IP"),
    ],
)
def test_options_that_a_link_cannot_have_exit_2_before_anything_is_begun(
    cli: Cli, arguments: list[str], problem: str, tmp_path: Path
) -> None:
    """One line on stderr; no run log is made."""
    done = cli(*arguments, LINKGAUGE_DATA_DIR=str(tmp_path / "data"))
    assert (done.returncode, done.stdout) == (2, "")
    assert problem in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "data").exists()


def test_a_check_with_options_says_which_its_expected_rate_was_computed_with(cli: Cli, tmp_path: Path) -> None:
    """In the document as in the text."""
    short = ("--seconds", "0.5", "--interval", "100ms", "--json")
    done = cli("check", "gbe-fd-1500", "loopback", "--vlan", "1", *short, LINKGAUGE_DATA_DIR=str(tmp_path))
    expected = json.loads(done.stdout)["expected"]["out"]
    assert expected == {"mbit_s": 946.822, "basis": "computed", "source": "the wire model (VLAN)"}


@pytest.mark.every
def test_options_are_of_no_use_to_a_preset_that_picks_a_link_without_a_line(cli: Cli, tmp_path: Path) -> None:
    """Told, and no reason not to test."""
    short = ("--seconds", "0.5", "--interval", "100ms", "--json")
    done = cli("check", "auto", "loopback", "--ipv6", *short, LINKGAUGE_DATA_DIR=str(tmp_path))
    assert done.returncode == 0
    assert "IPv6: not used, loopback has no line" in done.stderr
