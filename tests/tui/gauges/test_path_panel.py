"""The strip of a path in cells: rows of nodes with their figures, and what a narrow screen shows."""

from dataclasses import replace

import pytest
from linkgauge.engine.results.path.path_result import LossPlace, PathResult, QueuePlace, Way
from linkgauge.tui.gauges.path_panel import PathPanel, strip_rows, way_to_show

from ..example_path import FIRST, IN, LAST, MS, OUT, PATH, plain

MANY = tuple(replace(FIRST, ttl=ttl) for ttl in range(1, 18))
LONG = replace(OUT, hops=(*MANY, replace(LAST, ttl=18)), queues=(QueuePlace(8, 9, 41 * MS, 1.0),))


def lines(way: Way, width: int, *, has_addresses: bool = False) -> list[list[str]]:
    """Return the rows of a strip as text."""
    rows = strip_rows(way, width, has_addresses=has_addresses)
    return [[plain(line.plain) for line in row] for row in rows]


def test_figures_stand_below_their_hop() -> None:
    """The queue is before its hop, and a silent hop has no figures."""
    ((head, idle, loaded),) = lines(OUT, 78)
    assert head.split()[:3] == ["out", "→", "local"]
    assert "(2) ▓ +41.0 ms ▓" in head
    assert idle.split() == ["idle", "150", "µs", "–", "200", "µs", "300", "µs"]
    assert loaded.split() == ["loaded", "180", "µs", "–", "41.0", "ms", "41.0", "ms"]
    for name, figure in ((" 1 ", "150 µs"), ("(2)", "–"), ("remote", "300 µs")):
        assert head.index(name) + len(name.rstrip()) == idle.index(figure) + len(figure)


def test_the_way_in_has_the_figures_of_the_local_end_on_the_left() -> None:
    """Its hops are counted from the remote end, which has none."""
    ((head, addresses, idle, _loaded),) = lines(IN, 78, has_addresses=True)
    assert head.split()[:3] == ["in", "←", "local"]
    assert head.endswith("remote")
    assert addresses.split() == ["10.0.9.9", "10.0.2.1", "10.0.1.1"]
    assert idle.split()[:3] == ["idle", "300", "µs"]


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_a_long_path_goes_on_below_and_nothing_is_cut(width: int) -> None:
    """Each row but the last says that it goes on; addresses are left out."""
    rows = lines(LONG, width, has_addresses=True)
    text = " ".join(line for row in rows for line in row)
    assert [str(ttl) for ttl in range(1, 18)] == [
        word for word in text.split() if word in set(map(str, range(1, 18)))
    ]
    assert all(len(line) <= width for row in rows for line in row)
    assert [row[0].endswith(" …") for row in rows] == [True] * (len(rows) - 1) + [False]
    assert [len(row) for row in rows] == [3] * len(rows)
    assert text.count("+41.0 ms") == 1
    assert text.count("150 µs") == 17


def test_a_low_panel_shows_the_row_with_the_queue_of_the_direction_that_has_it() -> None:
    """Else the first row of the first direction."""
    panel = PathPanel()
    both = [plain(line.plain) for line in panel.draw(PATH, 78, 6)]
    assert [line.split()[0] for line in both] == ["out", "idle", "loaded", "in", "idle", "loaded"]
    one = panel.draw(PathResult((replace(IN, queues=()), LONG)), 60, 3)
    assert "+41.0 ms" in plain(one[0].plain)
    assert len(one) == 3
    lossy = replace(IN, queues=(), loss=LossPlace(0, 1, 12.0, True))
    healthy = replace(OUT, queues=())
    assert way_to_show(PathResult((healthy, lossy))) is lossy
    assert way_to_show(PathResult((healthy, replace(IN, queues=())))) is healthy
