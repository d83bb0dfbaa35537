"""The cells to measure again alone, to tell slow hosts and paths from a network without capacity. Pure."""

from collections.abc import Iterator
from itertools import chain, zip_longest
from typing import Final

from ..figures import MeshFindingCode, MeshMatrix
from ..plan import Cell, MeshMode
from .findings import Reading, SlowPart, explained_cells, read_matrix
from .losses import Losses

MAX_RECHECKS: Final = 24
"""The maximum number of cells to measure again: they take a test's time each, one after the other."""
_OF_EACH: Final = 3


def cells_to_recheck(matrix: MeshMatrix) -> tuple[Cell, ...]:
    """Return the cells to measure again, at most MAX_RECHECKS.

    These are some cells of each cause, and paths that may be slow or lossy, without cells that have a second
    measurement already. A mesh whose cells were all measured alone has none.
    """
    reading = None if matrix.mode is MeshMode.ISOLATED else read_matrix(matrix)
    if reading is None:
        return ()
    lossy = Losses(matrix, reading.rates).find(explained_cells(reading.parts))
    in_turn = zip_longest(
        *(list(_examples(part, reading)) for part in (*reading.parts, *reading.doubtful)),
        *(part.cells[:_OF_EACH] for part in lossy),
    )
    places = dict.fromkeys(place for place in chain.from_iterable(in_turn) if place is not None)
    again = reading.rates.isolated_logs
    cells = [reading.rates.cells[place] for place in places if again[place] is None]
    return tuple(cells[:MAX_RECHECKS])


def _examples(part: SlowPart, reading: Reading) -> Iterator[int]:
    """Yield some cells of a part: the nearest to its own slowness, of different hosts if possible."""
    slowness, logs = reading.usual + part.slowness, reading.rates.logs
    if part.code is MeshFindingCode.ALL:
        slowness = reading.usual
    ordered = sorted(part.cells, key=lambda cell: abs(logs[cell] - slowness))
    used: set[int] = set()
    picked: list[int] = []
    for cell in ordered:
        sender, receiver = reading.rates.pairs[cell]
        if sender not in used or receiver not in used:
            picked.append(cell)
            used.update((sender, receiver))
        if len(picked) == _OF_EACH:
            break
    yield from picked
