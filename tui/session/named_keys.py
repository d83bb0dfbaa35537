"""The named keys of a key file: read, added and removed.

A line is `NAME KEY`; a word with `#` begins a comment. Two lines may have one name while a new key takes the place
of an old one. A file with a key alone has one key without a name. A file with a wrong line is refused as a whole,
and no error repeats a word of it: any word may be a key.
"""

import os
import re
import stat
import time
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from ...engine.host.saved_files import (
    PRIVATE_FILE_MODE,
    claim_private_file,
    follow_links,
    read_secret,
    write_atomically,
)
from ...engine.model.errors import InvalidKeyError, explain_os_error
from ...engine.model.shared_key import MAX_KEYS, SharedKey
from .storage import config_dir

FORMER_NAME: Final = "default"
"""The name that a key without one gets when a second key is added."""
_MAX_BYTES: Final = 64 * 1_024
_COMMENT: Final = re.compile(r"(?:^|\s)#.*")
_ADDED: Final = re.compile(r"\sadded (\d{4}-\d\d-\d\d)\b", re.ASCII)
_FORM: Final = "a line is NAME KEY, with # before a comment"
_LOCK_DEADLINE_S: Final = 10.0
_LOCK_PAUSE_S: Final = 0.05


@dataclass(frozen=True, slots=True)
class KeyLine:
    """A line of a key file with its key, None if it is empty or a comment. `added` is the date in its comment."""

    text: str
    key: SharedKey | None = None
    added: str | None = None


def default_key_file() -> Path:
    """Return the key file of endpoints that are given no other. It may not exist."""
    return config_dir() / "endpoint-keys"


def read_named_keys(path: Path) -> list[SharedKey]:
    """Return the keys of a file, one at least; raise InvalidKeyError, also if others can read it."""
    return [line.key for line in read_key_lines(path) if line.key is not None]


def read_key_file(path: Path) -> SharedKey:
    """Return the only key of a file, with or without a name. Raises InvalidKeyError, also if others can read it."""
    keys = read_named_keys(path)
    if len(keys) > 1:
        raise InvalidKeyError(
            f"{path} has {len(keys)} keys, and a client proves one: give a file with its key alone"
        )
    return keys[0]


def read_key_lines(path: Path, *, may_be_empty: bool = False) -> list[KeyLine]:
    """Return the lines of a key file. Raises InvalidKeyError for a wrong one, and if a key is missing."""
    lines = _parse(
        path, read_secret(path, _MAX_BYTES, "put a line of NAME KEY for each key in it and nothing else")
    )
    count = sum(line.key is not None for line in lines)
    if count > MAX_KEYS:
        raise InvalidKeyError(f"{path} has {count} keys; an endpoint tries {MAX_KEYS} at most: remove some")
    if not count and not may_be_empty:
        raise InvalidKeyError(f"{path} has no key; make one with: linkgauge endpoint key add NAME --key-file FILE")
    return lines


def add_key(path: Path, name: str) -> tuple[SharedKey, bool]:
    """Add a new key to a file, which is made if it is missing; return the key, and whether `FORMER_NAME` is new.

    Raises InvalidKeyError for a name that is taken or cannot be used, and for a file that cannot be changed.
    """
    key = SharedKey.generate(name=name)
    with _changing(path) as lines:
        former = [number for number, line in enumerate(lines) if line.key is not None and not line.key.name]
        for number in former:
            lines[number] = _name_key(path, lines[number])
        if any(line.key is not None and line.key.name == name for line in lines):
            raise InvalidKeyError(
                f"{path} has a key of {name} already: give another name, or remove that one first"
            )
        lines.append(_parse_line(f"{name} {key.reveal()}  # added {datetime.now(UTC):%Y-%m-%d}"))
        if sum(line.key is not None for line in lines) > MAX_KEYS:
            raise InvalidKeyError(f"{path} has {MAX_KEYS} keys, and that is the most: remove one first")
    return key, bool(former)


def remove_key(path: Path, name: str) -> int:
    """Remove the keys of a name; return their number.

    Raises InvalidKeyError without such a key, for the last one, and for a file that cannot be changed.
    """
    read_key_lines(path)  # a file that is missing is not made
    with _changing(path) as lines:
        kept = [line for line in lines if line.key is None or line.key.name != name]
        removed = len(lines) - len(kept)
        if not removed:
            raise InvalidKeyError(f"{path} has no key of that name; linkgauge endpoint key list shows the names")
        if not any(line.key is not None for line in kept):
            raise InvalidKeyError(
                f"{path} would have no key left: add another one first, or end the endpoint and delete the file"
            )
        lines[:] = kept
    return removed


@contextmanager
def _changing(path: Path) -> Generator[list[KeyLine]]:
    """Yield the lines of a file, and write them back in one step at the end of the block.

    The file is locked meanwhile, and keeps its owner: root may change the file of a service.
    """
    try:
        target = follow_links(path)
        with ExitStack() as stack:
            descriptor = _wait_for_lock(target)
            stack.callback(os.close, descriptor)
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):  # as root, /dev/null would be removed or replaced
                raise InvalidKeyError(f"{path} is a device or a pipe: name a file for the keys")
            if not status.st_size:  # made for the lock: an endpoint refuses a file without a key
                stack.callback(_remove_if_empty, target)
            lines = read_key_lines(target, may_be_empty=True)
            yield lines
            text = "".join(f"{line.text}\n" for line in lines)
            write_atomically(target, text, mode=PRIVATE_FILE_MODE, owner=(status.st_uid, status.st_gid))
    except OSError as error:
        raise InvalidKeyError(f"the key file {path} cannot be changed: {explain_os_error(error)}") from error


def _remove_if_empty(path: Path) -> None:
    """Remove a file that is still empty, while its lock is held."""
    with suppress(OSError):
        if not path.stat().st_size:
            path.unlink()


def _wait_for_lock(path: Path) -> int:
    """Return the descriptor that locks a file, which is made if it is missing."""
    deadline_s = time.monotonic() + _LOCK_DEADLINE_S
    while (descriptor := claim_private_file(path)) is None:
        if time.monotonic() > deadline_s:
            raise InvalidKeyError(f"another program is changing {path}; try again")
        time.sleep(_LOCK_PAUSE_S)
    return descriptor


def _name_key(path: Path, line: KeyLine) -> KeyLine:
    """Return the line of a key without a name, with a name."""
    key = "" if line.key is None else line.key.reveal()
    if _COMMENT.match(key):
        raise InvalidKeyError(
            f"the key in {path} begins with #, where a name would make it a comment: make another"
        )
    return _parse_line(f"{FORMER_NAME} {key}")


def _parse(path: Path, text: str) -> list[KeyLine]:
    """Return the lines of a text; a key alone may begin with `#`."""
    alone = text.strip()
    if alone and not any(map(str.isspace, alone)):
        try:
            return [KeyLine(alone, SharedKey(alone))]
        except InvalidKeyError as error:
            raise InvalidKeyError(f"{path}: {error}") from error
    lines: list[KeyLine] = []
    for number, line in enumerate(text.splitlines(), 1):
        try:
            lines.append(_parse_line(line))
        except InvalidKeyError as error:
            raise InvalidKeyError(f"{path}, line {number}: {error}") from error
    _check_together(path, lines)
    return lines


def _check_together(path: Path, lines: Sequence[KeyLine]) -> None:
    """Raise InvalidKeyError for a key that is there twice, and for one without a name beside others."""
    numbers: dict[str, int] = {}
    keys = [(number, line.key) for number, line in enumerate(lines, 1) if line.key is not None]
    for number, key in keys:
        if not key.name and len(keys) > 1:
            raise InvalidKeyError(f"{path}, line {number}: {_FORM}")
        first = numbers.setdefault(key.reveal(), number)
        if first != number:
            raise InvalidKeyError(f"{path}, line {number}: it has the key of line {first} again")


def _parse_line(text: str) -> KeyLine:
    words = _COMMENT.sub("", text).split()
    if not words:
        return KeyLine(text)
    if len(words) > 2:
        raise InvalidKeyError(_FORM)
    added = _ADDED.search(text)
    name, key = words if len(words) > 1 else ("", words[0])
    return KeyLine(text, SharedKey(key, name), None if added is None else added[1])
