"""Files that outlive a process: replaced in one step, the owner's alone, never through another user's link.

Everyone may write to directories such as /tmp: another user could put a link there under the name of a file,
and so have a different file replaced. Linux has a rule against that (fs.protected_symlinks, proc_sys_fs(5)). A
program that resolves a path itself gets around it, so the same rule is applied here.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, TextIO

from ..model.errors import InvalidKeyError, PlanError, explain_os_error
from ..model.texts.shell_commands import shell_command

PRIVATE_FILE_MODE: Final = 0o600
_PRIVATE_DIRECTORY_MODE: Final = 0o700
_OF_OTHERS: Final = 0o077
_SYSTEMD_CREDENTIALS: Final = "CREDENTIALS_DIRECTORY"
_KIB: Final = 1_024
_MAX_LINKS: Final = 40  # as path_resolution(7)


def check_output_path(field: str, path: Path) -> None:
    """Raise PlanError if no file can be written, for example because its directory does not exist.

    `-` is refused as well: it is stdout to other programs, and would become a file of this name.
    """
    if str(path) == "-":
        raise PlanError(field, path, "it would become a file of this name; give a file, or /dev/stdout")
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        if not path.parent.is_dir():
            raise PlanError(field, path, "its directory does not exist; make it, or give another") from None
    except ValueError:
        raise PlanError(field, ascii(str(path)), "not a path; give a file that can be written") from None
    except OSError as error:
        raise PlanError(field, path, f"{explain_os_error(error)}; give a file that can be written") from error


def write_atomically(
    path: Path, text: str, *, mode: int | None = None, owner: tuple[int, int] | None = None
) -> None:
    """Write a text file as a draft in the same directory, and rename the draft over the file.

    A symbolic link stays one: the file that it points to is replaced. The draft is on disk before the rename, so
    that a crash leaves no empty file. The file gets `mode`, whatever the umask is; without a mode, the umask
    decides. If root writes it, it gets `owner`, a user and a group. Raises OSError, and leaves no draft, if the
    file cannot be written, is a device or a pipe, or another user's link leads to it.
    """
    target = follow_links(path)
    status = _status_of(target)
    if status is not None and not stat.S_ISREG(status.st_mode):
        raise OSError("it is a device or a pipe; name a file")  # without a number: no text of errno's
    with _replaced(target, mode, owner) as stream:
        stream.write(text)


@contextmanager
def written_whole(path: Path, *, newline: str | None = None) -> Generator[TextIO]:
    """Yield a stream of an output's text. A file becomes this text at the end of the block, or stays as it was.

    So an output that breaks off, as on a full disk, costs no earlier one, and leaves nothing half made. A file that
    is replaced keeps its permissions. A device, a pipe, and a file in a directory that takes no new one are written
    in place. Raises OSError if the text cannot be written.
    """
    target = follow_links(path)
    earlier = _status_of(path)
    if earlier is None:
        with _replaced(target, None, None, newline) as stream:
            yield stream
    elif _is_written_in_place(path, earlier):
        with _closed(path.open("w", encoding="utf-8", newline=newline)) as stream:
            yield stream
    else:
        owner = (earlier.st_uid, earlier.st_gid)
        with _replaced(target, stat.S_IMODE(earlier.st_mode), owner, newline) as stream:
            yield stream


def _status_of(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _is_written_in_place(path: Path, status: os.stat_result) -> bool:
    # /dev/stdout is a link of the kernel's: whoever opened it waits for the text there, also in a file.
    folder = path.parent.resolve()
    is_opened = folder == Path("/dev") or folder.is_relative_to("/proc")
    return is_opened or not stat.S_ISREG(status.st_mode) or not os.access(folder, os.W_OK)


@contextmanager
def _closed(stream: TextIO) -> Generator[TextIO]:
    """Yield a stream and close it. An error of the block stays the error: closing would repeat its last write."""
    try:
        yield stream
        stream.close()
    finally:
        with suppress(OSError):
            stream.close()


@contextmanager
def _replaced(
    target: Path, mode: int | None, owner: tuple[int, int] | None, newline: str | None = None
) -> Generator[TextIO]:
    """Yield a draft of a file, which is renamed over it at the end of the block; after an error it is removed."""
    draft = target.with_name(f".{target.name}.{os.urandom(8).hex()}")
    try:
        created = create_file(draft, 0o666 if mode is None else mode)
        with _closed(os.fdopen(created, "w", encoding="utf-8", newline=newline)) as stream:
            if mode is not None and stat.S_IMODE(os.fstat(stream.fileno()).st_mode) != mode:
                os.fchmod(stream.fileno(), mode)
            if owner is not None and os.geteuid() == 0:
                os.fchown(stream.fileno(), *owner)
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(target)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise


def follow_links(path: Path) -> Path:
    """Return the file that a path leads to; raise OSError for a link of another user in everybody's directory."""
    for _ in range(_MAX_LINKS):
        try:
            link = path.lstat()
        except FileNotFoundError:
            return path
        if not stat.S_ISLNK(link.st_mode):
            return path
        folder = path.parent.stat()
        is_shared = folder.st_mode & stat.S_ISVTX and folder.st_mode & stat.S_IWOTH
        if is_shared and link.st_uid not in {os.geteuid(), folder.st_uid}:
            raise PermissionError(
                "another user's symbolic link has its name"
            )  # without a number: no text of errno's
        path = path.parent / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))


def create_private_directory(path: Path) -> None:
    """Create a directory that only its owner may enter, if it is missing; raise OSError if that fails.

    Missing directories above it are made in the same way: a user who may write there could replace it.
    """
    create_directory(path, _PRIVATE_DIRECTORY_MODE)


def create_directory(path: Path, mode: int = 0o777) -> None:
    """Create a directory and those above it, if they are missing, with a mode that the umask reduces.

    Each belongs to the owner of the one above it, as `create_file` says. Raises OSError if that fails.
    """
    for missing in [*reversed([parent for parent in path.parents if not parent.exists()]), path]:
        with _opened_by_root(missing.parent) as folder:
            name = missing if folder is None else missing.name or "."
            try:
                os.mkdir(name, mode, dir_fd=folder)
            except FileExistsError:
                if not missing.is_dir():
                    raise
                continue
            if folder is not None:
                made = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
                _give_to_owner_of(folder, made)
                os.close(made)


def create_file(path: Path, mode: int) -> int:
    """Create a file that must not exist, with a mode that the umask reduces; return its descriptor for writing.

    A file that root creates in another user's directory belongs to that user, who could not write it later
    otherwise: sudo and su may leave HOME as it is. Raises OSError if that fails.
    """
    with _opened_by_root(path.parent) as folder:
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
        fd = os.open(path if folder is None else path.name, flags, mode, dir_fd=folder)
        if folder is not None:
            _give_to_owner_of(folder, fd)
        return fd


@contextmanager
def _opened_by_root(folder: Path) -> Generator[int | None]:
    """Yield the descriptor of a directory, or None for a user who cannot give files away.

    Its owner may put a link in its place meanwhile: files that are created by the descriptor stay in it.
    """
    if os.geteuid() != 0:
        yield None
        return
    descriptor = os.open(folder, getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _give_to_owner_of(folder: int, created: int) -> None:
    owner = os.fstat(folder)
    if owner.st_uid != 0:
        with suppress(OSError):  # root of a container may lack the right, or the user is not in its namespace
            os.fchown(created, owner.st_uid, owner.st_gid)


def create_private_file(path: Path) -> None:
    """Create an empty file that only its owner may read, if it is missing; raise OSError if that fails."""
    with suppress(FileExistsError):
        os.close(create_file(path, PRIVATE_FILE_MODE))


def claim_private_file(path: Path) -> int | None:
    """Return the descriptor that locks a private file, which is created if it is missing; None if it is locked.

    None as well if it was removed or replaced meanwhile. The kernel releases a lock however its process ends
    (flock(2)): the file of a killed process is free. No link is followed. Raises OSError.
    """
    create_private_file(path)
    with ExitStack() as stack:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, PRIVATE_FILE_MODE)
        stack.callback(os.close, descriptor)
        with suppress(BlockingIOError, FileNotFoundError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(descriptor), path.stat()):
                stack.pop_all()
                return descriptor
    return None


def restrict_to_owner(path: Path) -> None:
    """Take the permissions of other users from this user's file or directory, if possible.

    The file is not opened: SQLite would lose its locks when it is closed.
    """
    with suppress(OSError):
        status = path.stat()
        if status.st_uid == os.geteuid() and status.st_mode & _OF_OTHERS:
            path.chmod(stat.S_IMODE(status.st_mode) & ~_OF_OTHERS)


def explain_exposure(path: Path, mode: int) -> str | None:
    """Return why a file of this mode is no place for a secret, with the remedy; None if only its owner reads it.

    A credential of systemd is for its service alone, whatever its mode (systemd.exec(5)).
    """
    mode = stat.S_IMODE(mode)
    directory = os.environ.get(_SYSTEMD_CREDENTIALS)
    if not mode & _OF_OTHERS or (directory and path.absolute().parent == Path(directory)):
        return None
    return (
        f"{path} can be read by others than its owner (mode {mode:03o}): {shell_command('chmod', 600, str(path))}"
    )


def read_secret(path: Path, limit_bytes: int, remedy: str) -> str:
    """Return the text of a file that only its owner may read; raise InvalidKeyError, which ends with the remedy."""
    try:
        with path.open("rb") as file:
            exposure = explain_exposure(path, os.fstat(file.fileno()).st_mode)
            if exposure is not None:
                raise InvalidKeyError(exposure)
            data = file.read(limit_bytes + 1)
    except OSError as error:
        raise InvalidKeyError(f"{path} cannot be read: {explain_os_error(error)}") from error
    if len(data) > limit_bytes:
        line = data.count(b"\n") + 1
        raise InvalidKeyError(f"{path} is longer than {limit_bytes // _KIB} KiB, from line {line} on: {remedy}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidKeyError(f"{path}, line {line}, is not text: {remedy}") from error
