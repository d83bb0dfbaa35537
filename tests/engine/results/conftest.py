"""Fixtures of the tests of results."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from linkgauge.engine.results.run_log import RunLog


@pytest.fixture
def log(tmp_path: Path) -> Iterator[RunLog]:
    """Give a log in a directory that does not exist yet."""
    with RunLog.open(tmp_path / "data" / "linkgauge") as opened:
        yield opened
