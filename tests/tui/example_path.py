"""An example of a traced path: a silent router, one that limits its answers, and a queue behind both."""

from dataclasses import replace

from linkgauge.engine.model.directions import Direction
from linkgauge.engine.results.path.path_result import HopResult, PathResult, QueuePlace, Way

MS = 1_000_000
FIRST = HopResult(1, ("10.0.1.1",), 150_000, 180_000, 30_000, 20_000, 0.0, "all")
SILENT = HopResult(2, (), None, None, None, None, None, "silent")
THIRD = HopResult(3, ("10.0.2.1", "10.0.2.5"), 200_000, 41 * MS, 41 * MS, 41 * MS, 90.0, "limited")
LAST = HopResult(4, ("10.0.9.9",), 300_000, 41 * MS, 41 * MS, 41 * MS, 1.0, "all", is_end=True)
QUEUE = QueuePlace(2, 3, 41 * MS, 1.0)
OUT = Way(Direction.OUT, Direction.OUT, (FIRST, SILENT, THIRD, LAST), True, (QUEUE,))
IN = replace(OUT, direction=Direction.IN, load=Direction.IN)
PATH = PathResult((OUT, replace(IN, queues=())))


def plain(text: str) -> str:
    """Return text with plain spaces."""
    return text.replace("\N{NO-BREAK SPACE}", " ")
