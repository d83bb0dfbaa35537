"""The debug log: off by default, on stderr by level, in a file otherwise, and never on an app's screen."""

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from linkgauge.engine.host.debug_log import (
    LOG_VARIABLE,
    configure_debug_log,
    debug_log_problem,
    disable_stderr_log,
    flush_debug_log,
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
    """What finds room is there when the reader comes; the number of the other lines follows."""
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
