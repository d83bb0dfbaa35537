"""The debug log: off by default, on stderr by level, in a file otherwise, and never on an app's screen."""

import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from linkgauge.engine.host.background_writer import all_writers
from linkgauge.engine.host.debug_log import (
    LOG_VARIABLE,
    configure_debug_log,
    debug_log_problem,
    disable_stderr_log,
    flush_debug_log,
    lost_lines_problem,
)

LOGGER = logging.getLogger("linkgauge.somewhere")


@pytest.fixture(autouse=True)
def restored_logger() -> Iterator[None]:
    """Give the logger back as it was."""
    logger = logging.getLogger("linkgauge")
    before = logger.handlers[:], logger.level, logger.propagate
    yield
    for handler in set(logger.handlers) - set(before[0]):
        handler.close()
    logger.handlers[:], logger.level, logger.propagate = before


def test_nothing_is_logged_by_default(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither without the variable nor with an empty one."""
    for environment in ({}, {LOG_VARIABLE: ""}):
        configure_debug_log(environment)
        LOGGER.debug("a transition")
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("level", "messages"), [("debug", 2), ("INFO", 1)])
def test_a_level_logs_on_stderr(level: str, messages: int, capsys: pytest.CaptureFixture[str]) -> None:
    """With the module that logs."""
    configure_debug_log({LOG_VARIABLE: level})
    LOGGER.debug("a transition")
    LOGGER.info("a transition")
    assert capsys.readouterr().err.count("linkgauge.somewhere: a transition") == messages


def test_a_process_without_a_stderr_of_its_own_logs_to_files_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A worker's stderr is read as the reason of its end."""
    configure_debug_log({LOG_VARIABLE: "debug"}, has_stderr=False)
    LOGGER.debug("a transition")
    assert capsys.readouterr().err == ""
    path = tmp_path / "log"
    configure_debug_log({LOG_VARIABLE: str(path)}, has_stderr=False)
    LOGGER.debug("a transition")
    assert "a transition" in path.read_text(encoding="utf-8")


def test_a_file_is_appended_to_and_created_with_the_first_message(tmp_path: Path) -> None:
    """Several processes write to the same file."""
    path = tmp_path / "log"
    configure_debug_log({LOG_VARIABLE: str(path)})
    assert not path.exists()
    path.write_text("before\n", encoding="utf-8")
    LOGGER.debug("a transition")
    assert path.read_text(encoding="utf-8").startswith("before\n")


def test_a_named_pipe_without_a_reader_holds_nothing_up(tmp_path: Path) -> None:
    """The lines that found room are there when the reader comes; the number of the others follows."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    configure_debug_log({LOG_VARIABLE: str(path)}, has_stderr=False)
    for number in range(2_000):
        LOGGER.debug("transition %d", number)
    with path.open(encoding="utf-8") as pipe:
        assert "transition 0" in pipe.readline()
        assert any("lines lost: the log was not read" in line for line in pipe)


def test_a_full_disk_loses_lines_and_causes_no_others(capsys: pytest.CaptureFixture[str]) -> None:
    """Neither an error of the caller nor a traceback on stderr."""
    configure_debug_log({LOG_VARIABLE: "/dev/full"})
    for _ in range(3):
        LOGGER.debug("a transition")
        flush_debug_log()
    assert capsys.readouterr().err == ""
    assert lost_lines_problem() == "the log in /dev/full lacks lines: no space left on device"


def test_the_end_of_a_process_does_not_wait_for_a_log_that_nobody_reads(tmp_path: Path) -> None:
    """A command and its workers wait once each: it took a test of a second 13 s to end."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    configure_debug_log({LOG_VARIABLE: str(path)})
    assert lost_lines_problem() is None
    LOGGER.debug("a transition")
    assert lost_lines_problem() == f"the log in {path} lacks lines: nobody reads it"
    began = time.monotonic()
    for _ in range(40):
        flush_debug_log()
    assert time.monotonic() - began < 10
    assert str(path) not in [writer.name for writer in all_writers()]
    with path.open(encoding="utf-8") as pipe:
        assert "a transition" in pipe.readline()


def test_a_file_whose_name_a_pipe_has_taken_holds_nothing_up(tmp_path: Path) -> None:
    """The first message opens it, and waits for no reader."""
    path = tmp_path / "log"
    configure_debug_log({LOG_VARIABLE: str(path)})
    os.mkfifo(path)
    LOGGER.debug("a transition")
    problem = lost_lines_problem()
    assert problem is not None
    assert problem.startswith(f"the log in {path} lacks lines: ")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's link")
@pytest.mark.parametrize("owner", [0, 12_345], ids=["own", "another user's"])
def test_a_log_follows_no_link_of_another_user_in_everybodys_directory(tmp_path: Path, owner: int) -> None:
    """Whether or not the kernel has that rule. Its own one is followed."""
    shared, victim, link = tmp_path / "shared", tmp_path / "victim", tmp_path / "shared" / "log"
    shared.mkdir()
    shared.chmod(0o1777)
    victim.write_text("")
    link.symlink_to(victim)
    os.lchown(link, owner, owner)
    configure_debug_log({LOG_VARIABLE: str(link)})
    problem = debug_log_problem({LOG_VARIABLE: str(link)})
    LOGGER.debug("a transition")
    if owner:
        assert problem == f"no log: cannot write to {link}: another user's symbolic link has its name"
    assert (problem is None) == ("a transition" in victim.read_text()) == (owner == 0)
    assert lost_lines_problem() is None  # the user knows already


def test_a_file_that_cannot_be_opened_breaks_no_caller_and_has_a_reason(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing folder and a folder are reported; a level, a file that can be made and a device are not."""
    for path, reason in (
        (tmp_path / "missing" / "log", "no such file or directory"),
        (tmp_path, "is a directory"),
    ):
        environment = {LOG_VARIABLE: str(path)}
        configure_debug_log(environment)
        LOGGER.debug("a transition")
        assert debug_log_problem(environment) == f"no log: cannot write to {path}: {reason}"
    for target in ("debug", str(tmp_path / "log"), "/dev/null"):
        assert debug_log_problem({LOG_VARIABLE: target}) is None
    assert not (tmp_path / "log").exists()  # the first message makes it, if there ever is one
    assert debug_log_problem({}) is None
    assert capsys.readouterr().err == ""


def test_an_app_turns_a_log_on_stderr_off_for_its_children_too(capsys: pytest.CaptureFixture[str]) -> None:
    """And leaves one in a file as it is."""
    environment = {LOG_VARIABLE: "debug"}
    configure_debug_log(environment)
    assert disable_stderr_log(environment)
    assert environment == {}
    LOGGER.debug("a transition")
    assert capsys.readouterr().err == ""
    assert not disable_stderr_log({LOG_VARIABLE: "/tmp/log"})
