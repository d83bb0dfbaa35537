"""The file that `--csv` names: looked at before a test begins, and never robbed of what it holds."""

import contextlib
import os
import stat
from pathlib import Path
from typing import Final, TextIO

from ...engine.model.errors import PlanError, RunLogError
from ...engine.results.csv_export import COLUMNS, CsvWriter

_LONGEST_HEADER: Final = 4_096


def open_csv(path: Path) -> CsvWriter:
    """Return a writer of a new file, or one that continues a file of earlier runs.

    Raises PlanError where the path cannot be written, or holds something that is no run.
    """
    try:
        stream = path.open("a", encoding="utf-8", newline="")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise PlanError("CSV file", repr(str(path)), f"{why}: name a file that can be written") from error
    try:
        continues = _continues(path, stream)
        return CsvWriter(stream, str(path), header=not continues)
    except BaseException as error:
        with contextlib.suppress(OSError):
            stream.close()
        if isinstance(error, RunLogError):
            raise PlanError("CSV file", repr(str(path)), f"{error}: name another file") from error
        raise


def _continues(path: Path, stream: TextIO) -> bool:
    """Return whether the file begins with our header; raise PlanError where it holds something else."""
    status = os.fstat(stream.fileno())
    if not stat.S_ISREG(status.st_mode) or status.st_size == 0:
        return False
    with path.open("rb") as content:
        first = content.readline(_LONGEST_HEADER)
        content.seek(-1, os.SEEK_END)
        last = content.read(1)
    if first.decode("utf-8", "replace").strip() != ",".join(COLUMNS):
        raise PlanError("CSV file", repr(str(path)), "it holds something else than runs: name another file")
    if last != b"\n":  # a row that was cut off must not swallow the next one
        stream.write("\r\n")
    return True
