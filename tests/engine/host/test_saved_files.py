"""Files replaced in one step, and those that are their owner's alone."""

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from linkgauge.engine.host.saved_files import (
    check_output_path,
    create_private_directory,
    create_private_file,
    read_secret,
    restrict_to_owner,
    write_atomically,
    written_whole,
)
from linkgauge.engine.model.errors import InvalidKeyError, PlanError

NOBODY = 65_534


def test_a_file_is_created_and_then_replaced(tmp_path: Path) -> None:
    """And no draft stays in its directory."""
    path = tmp_path / "kept.toml"
    for text in ("first\n", "µ\n"):
        write_atomically(path, text)
        assert path.read_text(encoding="utf-8") == text
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("-", "file of this name"),
        ("missing/a.csv", "its directory does not exist"),
        ("kept/a.csv", "its directory does not exist"),
        ("a\0b", "not a path"),
        ("a" * 300, "too long"),
        (f"{'a' * 300}/b", "too long"),
    ],
)
def test_a_path_that_no_file_can_have_is_refused(tmp_path: Path, name: str, problem: str) -> None:
    """Before anything is measured for it."""
    (tmp_path / "kept").touch()
    path = Path(name) if name == "-" else tmp_path / name
    with pytest.raises(PlanError, match=problem):
        check_output_path("file", path)


def test_a_file_may_be_new_kept_or_where_a_link_leads(tmp_path: Path) -> None:
    """Its content does not matter."""
    (tmp_path / "kept").touch()
    (tmp_path / "link").symlink_to(tmp_path / "new")
    for name in ("kept", "link", "new"):
        check_output_path("file", tmp_path / name)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another user")
def test_a_directory_that_may_not_be_entered_is_an_error() -> None:
    """With the kernel's reason, not with a traceback."""
    with tempfile.TemporaryDirectory() as folder:  # only root may enter it
        os.seteuid(NOBODY)
        try:
            with pytest.raises(PlanError, match="permission denied"):
                check_output_path("file", Path(folder) / "a.csv")
        finally:
            os.seteuid(0)


def test_a_symbolic_link_stays_a_link(tmp_path: Path) -> None:
    """The file that it points to is the one that is replaced."""
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


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


@pytest.mark.parametrize("text", ["whole", None])
def test_an_output_is_whole_or_as_it_was(tmp_path: Path, text: str | None) -> None:
    """A file that is replaced keeps its permissions."""
    path = tmp_path / "out.csv"
    path.write_text("earlier")
    path.chmod(0o640)
    with suppress(ValueError), written_whole(path) as stream:
        stream.write("whole")
        if text is None:
            raise ValueError("it breaks off")
    assert path.read_text() == (text or "earlier")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_an_output_to_what_is_open_already_is_written_in_place(tmp_path: Path) -> None:
    """A pipe, a device, and /dev/stdout: whoever has opened a file by that name waits for the text there."""
    path = tmp_path / "opened"
    with path.open("w") as opened, written_whole(Path(f"/proc/self/fd/{opened.fileno()}")) as stream:
        inode = path.stat().st_ino
        stream.write("text")
    assert path.read_text() == "text"
    assert path.stat().st_ino == inode
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with written_whole(pipe) as stream:
        stream.write("text")
    assert os.read(reader, 10) == b"text"
    os.close(reader)
    with pytest.raises(OSError, match="a device or a pipe"):
        write_atomically(pipe, "text")
    assert pipe.is_fifo()
    with pytest.raises(OSError, match="No space left"), written_whole(Path("/dev/full")) as stream:
        stream.write("text")
    assert Path("/dev/full").is_char_device()


def test_a_directory_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """It is not created: some callers must leave no trace."""
    with pytest.raises(FileNotFoundError):
        write_atomically(tmp_path / "none" / "file", "text")


@contextmanager
def umask(mask: int) -> Iterator[None]:
    """Set the umask for the block."""
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


def mode_of(path: Path) -> int:
    """Return the permissions of a file."""
    return path.stat().st_mode & 0o777


@pytest.mark.parametrize("mask", [0, 0o022, 0o077])
def test_a_file_has_the_mode_that_it_is_given_or_what_the_umask_leaves(tmp_path: Path, mask: int) -> None:
    """Settings are their owner's alone; other programs read metrics, also those of a service with UMask=0077."""
    with umask(mask):
        for name, mode in (("private", 0o600), ("public", 0o644), ("usual", None)):
            write_atomically(tmp_path / name, "text", mode=mode)
    assert [mode_of(tmp_path / name) for name in ("private", "public", "usual")] == [0o600, 0o644, 0o666 & ~mask]


def test_new_private_files_and_directories_are_their_owners_alone(tmp_path: Path) -> None:
    """Whatever the umask is. Existing ones stay as they are, with their content."""
    with umask(0):
        create_private_directory(tmp_path / "a" / "b")
        create_private_file(tmp_path / "a" / "b" / "file")
    assert mode_of(tmp_path / "a") == mode_of(tmp_path / "a" / "b") == 0o700
    assert mode_of(tmp_path / "a" / "b" / "file") == 0o600
    (tmp_path / "a" / "b" / "file").write_text("text")
    create_private_directory(tmp_path / "a" / "b")
    create_private_file(tmp_path / "a" / "b" / "file")
    assert (tmp_path / "a" / "b" / "file").read_text() == "text"


@pytest.mark.parametrize(("mode", "restricted"), [(0o644, 0o600), (0o666, 0o600), (0o444, 0o400), (0o600, 0o600)])
def test_other_users_lose_their_permissions_and_the_owner_keeps_them(
    tmp_path: Path, mode: int, restricted: int
) -> None:
    """A missing file is not a problem."""
    path = tmp_path / "file"
    path.touch()
    path.chmod(mode)
    restrict_to_owner(path)
    assert mode_of(path) == restricted
    restrict_to_owner(tmp_path / "none")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make another user's link")
def test_another_users_link_in_everybodys_directory_is_not_followed(tmp_path: Path) -> None:
    """It would have a file of this user's replaced. One's own link there, and any link elsewhere, is followed."""
    shared, victim = tmp_path / "shared", tmp_path / "victim"
    shared.mkdir()
    shared.chmod(0o1777)
    os.chown(shared, NOBODY - 1, -1)
    victim.write_text("old")
    trap = shared / "report.html"
    trap.symlink_to(victim)
    os.chown(trap, NOBODY, -1, follow_symlinks=False)
    way = tmp_path / "way"
    way.symlink_to(trap)
    for path in (trap, way):
        with pytest.raises(PermissionError, match="another user's symbolic link"):
            write_atomically(path, "new")
    assert victim.read_text() == "old"
    assert sorted(shared.iterdir()) == [trap]
    for owner, mode in ((0, 0o1777), (NOBODY, 0o755)):
        os.chown(trap, owner, -1, follow_symlinks=False)
        shared.chmod(mode)
        write_atomically(trap, f"new {owner}")
        assert victim.read_text() == f"new {owner}"


def test_links_that_lead_in_a_circle_are_an_error(tmp_path: Path) -> None:
    """The system's own words name it."""
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(OSError, match="symbolic links"):
        write_atomically(tmp_path / "a", "text")


@pytest.fixture
def home_of_another(tmp_path: Path) -> Path:
    """Give root a home of another user."""
    home = tmp_path / "home"
    home.mkdir()
    try:
        os.chown(home, 12_345, 23_456)
    except OSError:
        pytest.skip("only root writes files for other users")
    return home


def test_what_root_creates_in_the_home_of_another_user_belongs_to_that_user(home_of_another: Path) -> None:
    """`sudo -E` leaves HOME as it is: the user could not write settings and caches any more."""
    directory = home_of_another / ".config" / "linkgauge"
    create_private_directory(directory)
    create_private_file(directory / "keys")
    write_atomically(directory / "settings.toml", "text", mode=0o600)
    created = [directory.parent, directory, *directory.iterdir()]
    assert len(created) == 4
    assert {(path.stat().st_uid, path.stat().st_gid) for path in created} == {(12_345, 23_456)}


def test_root_gives_nothing_away_that_another_user_links_to(home_of_another: Path, tmp_path: Path) -> None:
    """Neither the target of a link, nor files from before."""
    of_root = tmp_path / "root"
    of_root.mkdir()
    (of_root / "file").touch()
    (home_of_another / "directory").symlink_to(of_root)
    (home_of_another / "file").symlink_to(of_root / "file")
    create_private_directory(home_of_another / "directory")
    create_private_file(home_of_another / "file")
    create_private_file(home_of_another / "directory" / "new")
    write_atomically(home_of_another / "file", "text")
    assert {path.stat().st_uid for path in (of_root, *of_root.iterdir())} == {0}


KEY_TEXT = "a-key-of-this-test\n"


def write_secret(path: Path, mode: int) -> Path:
    """Write the secret into a file with this mode."""
    path.write_text(KEY_TEXT)
    path.chmod(mode)
    return path


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
def test_a_key_file_that_others_can_read_is_refused_with_what_to_do(tmp_path: Path, mode: int) -> None:
    """It names the file and the command that mends it."""
    path = write_secret(tmp_path / "key", mode)
    with pytest.raises(InvalidKeyError, match=rf"can be read by others .*mode {mode:o}.*: chmod 600 {path}"):
        read_secret(path, 100, "")


def test_what_a_service_manager_lends_is_read_with_the_permissions_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder is the service's alone; no other folder is."""
    path = write_secret(tmp_path / "key", 0o440)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path / "other"))
    with pytest.raises(InvalidKeyError):
        read_secret(path, 100, "")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert read_secret(path, 100, "") == KEY_TEXT


def test_a_file_that_is_too_long_missing_or_not_text_is_refused_with_the_remedy(tmp_path: Path) -> None:
    """What is in it is not repeated."""
    with pytest.raises(InvalidKeyError, match=r"longer than 1 KiB, from line 54 on: cut it"):
        read_secret(_written(tmp_path / "long", KEY_TEXT.encode() * 90), 1_024, "cut it")
    with pytest.raises(InvalidKeyError, match=r"cannot be read: no such file"):
        read_secret(tmp_path / "none", 100, "")
    with pytest.raises(InvalidKeyError, match="line 1, is not text: save it as text"):
        read_secret(_written(tmp_path / "bytes", b"\xff\xfe" * 20), 100, "save it as text")


def _written(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    path.chmod(0o600)
    return path
