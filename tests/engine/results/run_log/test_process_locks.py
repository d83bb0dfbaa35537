"""Names that only one process at a time holds."""

import fcntl
import os
from pathlib import Path

import pytest
from linkgauge.engine.model.errors import RunLogError
from linkgauge.engine.results.run_log.process_locks import claim, claimed, is_claimed


def test_a_name_is_claimed_once_until_it_is_given_back(tmp_path: Path) -> None:
    """Two claims of one process exclude each other as those of two processes do. Other names do not matter."""
    first = claim(tmp_path, "watch-office")
    assert first is not None
    assert fcntl.fcntl(first, fcntl.F_GETFD) & fcntl.FD_CLOEXEC  # else a child would hold it
    assert claim(tmp_path, "watch-office") is None
    other = claim(tmp_path, "watch-home/../x")
    assert other is not None
    os.close(first)
    again = claim(tmp_path, "watch-office")
    assert again is not None
    os.close(again)
    os.close(other)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["watch-home_.._x.lock", "watch-office.lock"]


def test_a_claim_is_seen_and_not_taken(tmp_path: Path) -> None:
    """Looking leaves no file behind."""
    folder = tmp_path / "locks"
    assert not is_claimed(folder, "office")
    assert not folder.exists()
    held = claim(folder, "office")
    assert held is not None
    assert is_claimed(folder, "office")
    os.close(held)
    assert not is_claimed(folder, "office")


def test_a_claim_for_a_block_leaves_no_file(tmp_path: Path) -> None:
    """A claim that fails does not end the other claim."""
    with claimed(tmp_path, "mesh-a") as is_ours:
        assert is_ours
        with claimed(tmp_path, "mesh-a") as is_ours_again:
            assert not is_ours_again
        assert is_claimed(tmp_path, "mesh-a")
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be_made_is_an_error_with_its_path(tmp_path: Path) -> None:
    """A file is in its place."""
    (tmp_path / "locks").write_text("", encoding="utf-8")
    with pytest.raises(RunLogError, match="locks"):
        claim(tmp_path / "locks", "office")
