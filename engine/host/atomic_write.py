"""Replacement of a small file in one step: a reader sees the old text or the new one, never a part."""

import os
from contextlib import suppress
from pathlib import Path


def write_atomically(path: Path, text: str, *, mode: int = 0o666) -> None:
    """Write a text file as a draft in the same directory, and rename the draft over the file.

    A symbolic link stays one: the file that it points to is replaced. The draft is on disk before the rename, so
    that a crash leaves no empty file. The file gets `mode`, reduced by the umask. Raises OSError, and leaves no
    draft, where the file cannot be written.
    """
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".{target.name}.{os.getpid()}-{os.urandom(4).hex()}")
    try:
        with open(draft, "x", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, mode)) as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        draft.replace(target)
    except BaseException:
        with suppress(OSError):
            draft.unlink()
        raise
