"""Files of secrets: only their owner may read them, and they have a greatest length."""

import os
from pathlib import Path
from typing import Final

from ...engine.host.saved_files import explain_exposure
from ...engine.model.errors import InvalidKeyError, explain_os_error

_KIB: Final = 1_024


def read_secret(path: Path, limit_bytes: int, remedy: str) -> str:
    """Return the text of a file that only its owner may read; raise InvalidKeyError, which ends with the remedy."""
    try:
        with path.open("rb") as file:
            exposure = explain_exposure(path, os.fstat(file.fileno()).st_mode)
            if exposure is not None:
                raise InvalidKeyError(exposure)
            data = file.read(limit_bytes + 1)
    except OSError as error:
        raise InvalidKeyError(f"the key file {path} cannot be read: {explain_os_error(error)}") from error
    if len(data) > limit_bytes:
        line = data.count(b"\n") + 1
        raise InvalidKeyError(f"{path} is longer than {limit_bytes // _KIB} KiB, from line {line} on: {remedy}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidKeyError(f"{path}, line {line}, is not text: {remedy}") from error
