"""A user whom the user database does not know, without HOME or with a useless one, as containers have them."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

_UNKNOWN_USER = ("unshare", "--user", "--map-user=12345", "--map-group=12345", "env")
_SHORT = ("--seconds", "0.5", "--rate", "100M")
_NO_HOME = "this user has no home directory: set HOME, or LINKGAUGE_DATA_DIR to a directory"
_HOMES = (
    "HOME",
    "XDG_DATA_HOME",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "LINKGAUGE_DATA_DIR",
    "LINKGAUGE_CONFIG_DIR",
)


@pytest.fixture
def homeless(linkgauge: Any, tmp_path: Path) -> Any:
    """Give a function that carries a command out as such a user, in an empty folder, with these variables."""
    if (
        not shutil.which("unshare")
        or subprocess.run([*_UNKNOWN_USER, "true"], capture_output=True, check=False).returncode
    ):
        pytest.skip("user namespaces are needed, and unshare of util-linux")
    folder = tmp_path / "empty"
    folder.mkdir()
    environment = {name: value for name, value in linkgauge.environment.items() if name not in _HOMES}

    def carry_out(*arguments: str, **variables: str) -> Any:
        answer = linkgauge.in_process(
            *arguments, within=_UNKNOWN_USER, env={**environment, **variables}, cwd=folder
        )
        assert list(folder.iterdir()) == []
        return answer

    return carry_out


@pytest.mark.every
@pytest.mark.parametrize(
    "variables",
    [{}, *(pytest.param(each, marks=pytest.mark.every) for each in ({"HOME": ""}, {"HOME": "rel"}))],
    ids=str,
)
def test_a_run_of_a_user_without_a_home_says_once_that_it_is_not_saved(
    homeless: Any, variables: dict[str, str]
) -> None:
    """Relative paths do not count: nothing is left where the command was started."""
    answer = homeless("run", "loopback", *_SHORT, **variables)
    assert (answer.status, answer.err) == (0, f"linkgauge: this run is not saved: {_NO_HOME}\n")
    assert "completed" in answer.out


@pytest.mark.every
def test_a_named_data_directory_is_used_without_a_home(homeless: Any, tmp_path: Path) -> None:
    """Nothing else is missed."""
    answer = homeless("run", "loopback", *_SHORT, LINKGAUGE_DATA_DIR=str(tmp_path / "data"))
    assert answer.status == 0
    assert answer.err.startswith("linkgauge: saved as run ")
    assert len(answer.err.splitlines()) == 1


def test_a_command_that_needs_no_home_does_not_mention_it(homeless: Any) -> None:
    """Reading presets looks for the user's own."""
    answer = homeless("presets", "list")
    assert (answer.status, answer.err) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("runs", "list"), _NO_HOME),
        *(
            pytest.param(*each, marks=pytest.mark.every)
            for each in (
                (("watch", "loopback", "--once"), _NO_HOME),
                (("watch", "loopback", "--follow"), _NO_HOME),
                (
                    ("endpoint", "--port", "0"),
                    f"the new key cannot be saved: {_NO_HOME}; or give one with --key-file",
                ),
            )
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_a_command_that_needs_a_home_says_so_in_one_line(homeless: Any, arguments: tuple[str], words: str) -> None:
    """It could not run: exit status 3."""
    answer = homeless(*arguments)
    assert (answer.status, answer.out, answer.err) == (3, "", f"linkgauge: {words}\n")


@pytest.mark.every
def test_a_ceiling_that_cannot_be_saved_is_shown(homeless: Any) -> None:
    """The measurement was not in vain."""
    answer = homeless("ceiling", "--seconds", "0.5")
    assert answer.status == 0
    assert f"linkgauge: this result is not saved: {_NO_HOME}\n" in answer.err
    assert "the ceiling of" in answer.out


def test_a_tilde_without_a_home_is_a_wrong_command_line(homeless: Any) -> None:
    """Exit status 2."""
    answer = homeless("runs", "list", LINKGAUGE_DATA_DIR="~/data")
    assert answer.status == 2
    assert answer.err == (
        "linkgauge: LINKGAUGE_DATA_DIR ~/data is invalid; this user has no home directory; give a path without ~\n"
    )


@pytest.mark.every
def test_a_home_that_is_a_file_brings_one_warning(homeless: Any) -> None:
    """There are no settings in it, and no presets."""
    answer = homeless("run", "loopback", *_SHORT, HOME="/dev/null")
    assert answer.status == 0
    assert len(answer.err.splitlines()) == 1
    assert "this run is not saved: the run log cannot be used: /dev/null/.local/share/linkgauge" in answer.err


@pytest.mark.every
def test_a_report_is_written_without_a_home_and_without_words_of_a_library(homeless: Any, tmp_path: Path) -> None:
    """The library of plots would keep its cache there."""
    named = {"LINKGAUGE_DATA_DIR": str(tmp_path / "data")}
    run_id = homeless("run", "loopback", *_SHORT, **named).err.split()[-1]
    page = tmp_path / "page.html"
    answer = homeless("runs", "report", run_id, "--html", str(page), **named)
    assert (answer.status, page.exists()) == (0, True)
    assert answer.err.split() == ["linkgauge:", *["report", "of", "1", "run", "written", "to"], str(page)]
