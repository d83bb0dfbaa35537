"""The file of a new key, or of a link with one, that is not printed: only its owner may read it.

It lasts as long as the endpoint.
"""

import os
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

from ...engine.host.saved_files import PRIVATE_FILE_MODE, claim_private_file, create_private_directory
from ...engine.model.errors import EndpointError, RunLogError, explain_os_error
from ...engine.model.shared_key import SharedKey
from ..session.storage import data_dir, open_data_dir


@contextmanager
def saved_key(key: SharedKey, port: int) -> Generator[Path]:
    """Save the key of an endpoint at a port while the block lasts, and yield its file; raise as `_saved` does."""
    with _saved(key.reveal(), port, "key", "the new key", "; or give one with --key-file") as path:
        yield path


@contextmanager
def saved_link(link: str, port: int) -> Generator[Path]:
    """Save the link to the page of an endpoint at a port, as `saved_key` does."""
    with _saved(link, port, "link", "the link to the page") as path:
        yield path


@contextmanager
def _saved(secret: str, port: int, suffix: str, name: str, remedy: str = "") -> Generator[Path]:
    """Save a secret of an endpoint at a port while the block lasts, and yield its file.

    Others may have the same port, at another address or in another network namespace: each has a file of its own.
    Raises EndpointError if it cannot be saved.
    """
    with ExitStack() as stack:
        try:
            path, descriptor = _claim_file(open_data_dir(), port, suffix)
            stack.callback(os.close, descriptor)
            stack.callback(path.unlink, missing_ok=True)
            os.fchmod(descriptor, PRIVATE_FILE_MODE)
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{secret}\n".encode())
        except (RunLogError, OSError) as error:
            is_of_disk = isinstance(error, OSError)
            reason = f" in {data_dir()}: {explain_os_error(error)}" if is_of_disk else f": {error}"
            raise EndpointError(f"{name} cannot be saved{reason}{remedy}") from error
        yield path


def _claim_file(folder: Path, port: int, suffix: str) -> tuple[Path, int]:
    """Return the first file for a port that no other endpoint has, and the descriptor that locks it."""
    create_private_directory(folder)
    names = (f"endpoint-{port}{'' if number == 1 else f'-{number}'}.{suffix}" for number in count(1))
    return next(
        (folder / name, descriptor)
        for name in names
        if (descriptor := claim_private_file(folder / name)) is not None
    )
