"""What a page says to its app. Whole sessions: tests/end_to_end/test_web.py and test_web_server.py."""

import pytest

pytest.importorskip("aiohttp", reason="the extra linkgauge[web] is not installed")

from linkgauge.tui.cli.web.browser_session import clamp_cells


@pytest.mark.parametrize(
    ("value", "cells"),
    [("100", 100), (100, 100), ("-3", 1), ("0", 1), (10**9, 1_000), ("x", 80), (None, 80), ("", 80)],
)
def test_a_size_that_a_browser_names_is_one_of_a_screen(value: object, cells: int) -> None:
    """A larger one would take the memory of its cells."""
    assert clamp_cells(value, 80) == cells
