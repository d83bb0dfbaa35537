"""A responsiveness test over paths with known queues: its rise is what the queue held, and it says where that is.

Truth is what `tc -s qdisc` read there meanwhile. `stress/queues.py` has the whole grid.
"""

import os
import shutil
from collections.abc import Iterator

import pytest
from linkgauge.engine.model.directions import Direction

from .conftest import CommandLine
from .queue_cells import Cell, healthy_cells, one_queue, two_queues
from .queue_judge import report
from .queue_run import run_cell
from .queued_path import Place

pytestmark = [
    pytest.mark.alone,
    pytest.mark.skipif(
        os.geteuid() != 0 or not all(map(shutil.which, ("ip", "tc", "ethtool", "nsenter", "unshare", "sysctl"))),
        reason="paths with queues need root, iproute2, ethtool, nsenter and unshare",
    ),
]

PLAIN = (one_queue(Place.ROUTER, Direction.OUT, 50, 100),)
FURTHER = (
    one_queue(Place.FAR, Direction.IN, 200, 10),
    one_queue(Place.NEAR, Direction.OUT, 50, 10),
    two_queues((Place.ROUTER, Place.ROUTER), (200, 50), 50),
)


def _every(cells: tuple[Cell, ...]) -> Iterator[object]:
    for cell in cells:
        yield pytest.param(cell, marks=pytest.mark.every, id=cell.name)


@pytest.mark.parametrize("cell", [*(pytest.param(cell, id=cell.name) for cell in PLAIN), *_every(FURTHER)])
def test_latency_under_load_is_what_the_queue_held_and_its_place_is_named(
    linkgauge: CommandLine, cell: Cell
) -> None:
    """In each direction alone and in both at once, with the end and the direction of each queue."""
    judgement = run_cell(cell, linkgauge.start)
    assert not judgement.problems, report([judgement])


@pytest.mark.parametrize("cell", _every(tuple(healthy_cells())[1:2]))
def test_no_queue_is_found_on_a_healthy_link(linkgauge: CommandLine, cell: Cell) -> None:
    """A buffer of a millisecond is none that anybody has to mend."""
    judgement = run_cell(cell, linkgauge.start)
    assert not judgement.problems, report([judgement])
