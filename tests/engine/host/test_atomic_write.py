"""Files that are replaced whole or not at all."""

import os
from pathlib import Path

import pytest
from linkgauge.engine.host.atomic_write import write_atomically


def test_a_file_is_created_and_then_replaced(tmp_path: Path) -> None:
    """And no draft stays in its directory."""
    path = tmp_path / "kept.toml"
    for text in ("first\n", "µ\n"):
        write_atomically(path, text)
        assert path.read_text(encoding="utf-8") == text
    assert list(tmp_path.iterdir()) == [path]


def test_a_symbolic_link_stays_a_link(tmp_path: Path) -> None:
    """The file that it points to is the one that is replaced."""
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


@pytest.mark.parametrize("mode", [0o600, 0o666])
def test_a_new_file_has_the_mode_less_the_umask(tmp_path: Path, mode: int) -> None:
    """A file of settings is the person's alone."""
    before = os.umask(0o022)
    try:
        write_atomically(tmp_path / "file", "text", mode=mode)
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == mode & ~0o022


def test_a_failed_rename_leaves_neither_a_draft_nor_another_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old text stays."""
    path = tmp_path / "file"
    path.write_text("old")

    def refuse(_self: Path, _target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, "new")
    assert [(entry, entry.read_text()) for entry in tmp_path.iterdir()] == [(path, "old")]


def test_a_directory_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """It is not created: some callers must leave no trace."""
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "none" / "file", "text")
