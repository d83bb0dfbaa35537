"""On which cores workers keep, in words."""

import pytest
from linkgauge.engine.model.plan import Plan
from linkgauge.tui.text.plan import core_affinity_text


@pytest.mark.parametrize(
    ("near", "far", "words"),
    [
        (None, None, ""),
        ((1, 0), (1, 0), "cores 0-1 at both ends"),
        ((3,), (3,), "core 3 at both ends"),
        ((0, 2), None, "cores 0, 2 at the near end"),
        ((0,), (5, 6, 7), "core 0 at the near end, cores 5-7 at the far end"),
    ],
)
def test_cores_are_told_by_end(near: tuple[int, ...] | None, far: tuple[int, ...] | None, words: str) -> None:
    """Ascending, a row of them as a range; nothing where the kernel chooses."""
    assert core_affinity_text(Plan(near_cores=near, far_cores=far)).replace("\N{NO-BREAK SPACE}", " ") == words
