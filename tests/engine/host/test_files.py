"""Files in memory, the engine's archive, which a child inherits, and files replaced in one step."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from linkgauge.engine.host import files
from linkgauge.engine.host.files import InheritedBundle, create_memory_file, descriptor_path, write_atomically


@pytest.mark.parametrize("has_memfd", [True, False])
def test_a_memory_file_holds_its_bytes_and_is_not_inherited(
    monkeypatch: pytest.MonkeyPatch, has_memfd: bool
) -> None:
    """An unlinked temporary file does as well, where the system has no memfd_create."""
    if not has_memfd:
        monkeypatch.delattr(os, "memfd_create")
    fd = create_memory_file("linkgauge-test", b"some bytes")
    try:
        assert os.pread(fd, 100, 0) == b"some bytes"
        assert not os.get_inheritable(fd)
    finally:
        os.close(fd)


def test_the_path_of_a_descriptor_leads_to_the_file() -> None:
    """Python imports the engine from such a path."""
    fd = create_memory_file("linkgauge-test", b"some bytes")
    try:
        assert Path(descriptor_path(fd)).read_bytes() == b"some bytes"
    finally:
        os.close(fd)


@pytest.mark.parametrize(
    ("arrived", "digest", "message"),
    [
        (b"half", hashlib.sha256(b"half of it").hexdigest(), "the engine did not arrive whole"),
        (b"spoilt!!!!", hashlib.sha256(b"half of it").hexdigest(), "the engine arrived damaged"),
    ],
)
def test_an_engine_that_did_not_arrive_whole_is_not_run(arrived: bytes, digest: str, message: str) -> None:
    """The module's source alone runs on the other host."""
    module = Path(files.__file__).read_text(encoding="utf-8")
    source = f"{module}\nrun_bundle(10, {digest!r})\n"
    child = subprocess.run([sys.executable, "-c", source], input=arrived, capture_output=True, check=False)
    assert (child.returncode, child.stderr.decode().strip()) == (1, message)


def test_an_installed_program_hands_no_archive_to_its_children() -> None:
    """They find linkgauge where their parent did."""
    bundle = InheritedBundle()
    assert (bundle.fds, bundle.environment) == ((), None)
    bundle.close()


def test_a_program_in_memory_hands_its_archive_to_its_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a descriptor, and by the path that Python imports from."""

    class Loader:
        archive = "/proc/self/fd/7"

    monkeypatch.setattr(files, "__loader__", Loader)
    monkeypatch.setattr(sys, "platform", "linux")
    bundle = InheritedBundle()
    assert bundle.fds == (7,)
    assert bundle.environment is not None
    assert bundle.environment["PYTHONPATH"] == "/proc/self/fd/7"


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
