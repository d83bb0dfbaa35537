"""The choice of slow cells to measure again alone, which tells a short network from slow hosts and paths. Pure."""

from collections.abc import Iterator
from itertools import chain, zip_longest
from typing import Final

from ..figures import MeshFindingCode, MeshMatrix
from ..plan import Cell, MeshMode
from .findings import Reading, SlowPart, read_matrix

MAX_RECHECKS: Final = 24
"""So many cells are measured again at most: each takes a test's time, one after the other."""
_OF_EACH: Final = 3


def cells_to_recheck(matrix: MeshMatrix) -> tuple[Cell, ...]:
    """Return the cells to measure again, at most MAX_RECHECKS: some of each cause, and paths that may be slow.

    None for a mesh whose cells were each measured alone. Cells that were measured again already are left out.
    """
    reading = None if matrix.mode is MeshMode.ISOLATED else read_matrix(matrix)
    if reading is None:
        return ()
    in_turn = zip_longest(*(list(_examples(part, reading)) for part in (*reading.parts, *reading.doubtful)))
    places = dict.fromkeys(place for place in chain.from_iterable(in_turn) if place is not None)
    again = reading.rates.isolated_logs
    cells = [reading.rates.cells[place] for place in places if again[place] is None]
    return tuple(cells[:MAX_RECHECKS])


def _examples(part: SlowPart, reading: Reading) -> Iterator[int]:
    """Yield some cells of a part: those nearest to its own slowness, of different hosts where there are such."""
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
