"""Root with the HOME of another user, as `sudo -E` and `su` leave it."""

import os
from pathlib import Path
from typing import Any

import pytest
from linkgauge.engine.results.run_log import RunLog

_USER = 12_345


@pytest.fixture
def home_of_user(tmp_path: Path) -> Path:
    """Give the home of a user."""
    path = tmp_path / "home_of_user"
    path.mkdir()
    try:
        os.chown(path, _USER, _USER)
    except OSError:
        pytest.skip("only root writes files for other users")
    return path


def strangers_in(folder: Path) -> list[Path]:
    """Return what is in a folder and belongs to someone else."""
    return [path for path in folder.rglob("*") if path.lstat().st_uid != _USER]


def test_the_files_of_a_run_log_belong_to_the_owner_of_its_directory(home_of_user: Path) -> None:
    """Those that SQLite adds as well."""
    with RunLog.open(home_of_user / "data") as log:
        log.begin("20261121-014629-7f3a", "", "loopback")
        assert log.list_runs()
        assert len(list((home_of_user / "data").iterdir())) > 1  # -wal and -shm, or -journal
        assert strangers_in(home_of_user) == []


@pytest.mark.every
def test_a_run_of_root_leaves_nothing_that_the_user_of_the_home_cannot_write(
    linkgauge: Any, home_of_user: Path
) -> None:
    """Run log, cache, a sweep's definition and a preset of the run."""
    names = ("LINKGAUGE_DATA_DIR", "LINKGAUGE_CONFIG_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")
    environment = {name: value for name, value in linkgauge.environment.items() if name not in names}
    environment["HOME"] = str(home_of_user)
    answer = linkgauge.in_process("run", "loopback", "--seconds", "0.5", env=environment)
    assert answer.status == 0, answer
    sweep = ("sweep", "loopback", "--window", "64K,128K", "--seconds", "0.5")
    assert linkgauge.in_process(*sweep, env=environment).status == 0
    made = linkgauge.in_process("presets", "new", "mine", "--from-run", answer.err.split()[-1], env=environment)
    assert made.status == 0, made
    assert len(list(home_of_user.rglob("*"))) >= 10
    assert strangers_in(home_of_user) == []
