"""The file that `--csv` names: new, continued, or refused."""

import os
from pathlib import Path

import pytest
from linkgauge.engine.model.errors import PlanError
from linkgauge.engine.results.csv_export import COLUMNS
from linkgauge.tui.services.csv_file import open_csv

HEADER = (",".join(COLUMNS) + "\r\n").encode()


@pytest.mark.parametrize("exists", [True, False])
def test_a_new_or_empty_file_begins_with_the_header(tmp_path: Path, exists: bool) -> None:
    """It is written at once."""
    path = tmp_path / "rows.csv"
    if exists:
        path.touch()
    open_csv(path).close()
    assert path.read_bytes() == HEADER


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (HEADER, HEADER),
        (HEADER + b"a,b\r\n", HEADER + b"a,b\r\n"),
        (HEADER.replace(b"\r", b"") + b"a,b\n", HEADER.replace(b"\r", b"") + b"a,b\n"),
        (HEADER + b"a,b\r\nc", HEADER + b"a,b\r\nc\r\n"),
    ],
    ids=["header only", "rows", "line feeds", "a row cut off"],
)
def test_a_file_of_earlier_runs_is_continued_without_a_second_header(
    tmp_path: Path, content: bytes, expected: bytes
) -> None:
    """And a row that was cut off in a crash does not swallow the next one."""
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    open_csv(path).close()
    assert path.read_bytes() == expected


@pytest.mark.parametrize("content", [b"x", b"\n", HEADER[:-10], b"\xff\xfe", b"x" * 10_000])
def test_a_file_of_anything_else_is_refused_and_stays_as_it_was(tmp_path: Path, content: bytes) -> None:
    """A slip of the hand costs nothing."""
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    with pytest.raises(PlanError, match="something else"):
        open_csv(path)
    assert path.read_bytes() == content


def test_a_path_that_cannot_be_written_is_a_plan_error(tmp_path: Path) -> None:
    """A directory, a missing directory, a name that no file can have, a full device."""
    for path in (tmp_path, tmp_path / "no" / "rows.csv", tmp_path / "a\0b", Path("/dev/full")):
        with pytest.raises(PlanError, match="CSV file"):
            open_csv(path)


def test_a_device_is_written_as_it_is() -> None:
    """There is nothing in it to continue."""
    open_csv(Path(os.devnull)).close()
