"""The findings of a mesh: slow hosts, groups and paths, a network without capacity. Each cause is named once.

Pure. `read_matrix` finds the usual rate and the causes of slower cells. Single cells that these do not explain are
paths. Cells that were measured again alone tell a slow path from a network that is short of capacity, and from
chance. Parts that are lossy without being slow come last.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import exp, log, sqrt
from statistics import median
from typing import Final

from ...presets.verdict import LimitName
from ..events import CellFailure, FailureCode
from ..figures import MeshFinding, MeshFindingCode, MeshMatrix
from ..plan import Cell, MeshMode
from .explanation import LEAST_SLOWNESS, Explanation, explain
from .losses import Losses, LossyPart
from .relative_rates import RelativeRates, relative_rates
from .usual_rate import find_spread, slowness_beyond_chance, usual_rates

_AS_EXPECTED: Final = log(0.95)
_ERRORS_OF_USUAL: Final = 2.5  # standard errors by which the usual rate must be below the expected one
_MEDIAN_ERROR: Final = 1.25  # a median's standard error, in standard errors of a mean
# If more hosts are slow, they are the usual ones and the others are fast. With expected rates more can be slow.
_MOST_SLOW_HOSTS: Final = 0.5
_MOST_BELOW_EXPECTED: Final = 0.75
_FAR: Final = 5.0  # standard deviations
_DOUBTFUL: Final = 3.5
_LEAST_PATH: Final = 0.16  # a difference of logarithms: 15 % less
_LEAST_DOUBTFUL: Final = 0.12
_MOST_DOUBTFUL: Final = 8  # paths
_MOST_UNEXPLAINED: Final = 0.1  # of the cells
_RECOVERED: Final = 2 / 3  # of the cells that were measured again
# If fewer paths, in all or as a share of the cells, are fast when measured again, they were slow by chance.
_LEAST_PATHS: Final = 3
_LEAST_SHARE_OF_PATHS: Final = 0.02


@dataclass(frozen=True, slots=True)
class SlowPart:
    """A cause or a path, before the second measurements are considered.

    `cells` are places in the rates. `slowness` is a negative difference of logarithms from the usual rate, or for
    ALL from the expected one. `explained` is the part of a path's slowness that its hosts or groups explain. If
    `is_shared`, the cells differ by the number of pairs that shared the part: `slowness` is that of the fastest.
    """

    code: MeshFindingCode
    sender: str | None
    receiver: str | None
    slowness: float
    cells: tuple[int, ...]
    explained: float = 0.0
    is_shared: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """The measured cells of a mesh, and its slow parts.

    Args:
        rates: the cells.
        usual: the logarithm of the rate of healthy cells.
        parts: the slow parts, the largest cause first.
        doubtful: paths that may be slow by chance: they become findings only after a second measurement.
        least_again: the minimum slowness of a doubtful path in its second measurement.
    """

    rates: RelativeRates
    usual: float
    parts: tuple[SlowPart, ...]
    doubtful: tuple[SlowPart, ...]
    least_again: float


def find_faults(matrix: MeshMatrix) -> tuple[MeshFinding, ...]:
    """Return hosts without results, slow parts, lossy parts, causes before single paths; then the broken limits.

    A mesh in progress has the findings of its cells so far. There are none if no host, group or path is slower or
    loses more than the others beyond chance, and the rates are as expected or no rate is expected.
    """
    findings = list(_hosts_down(matrix))
    reading = read_matrix(matrix)
    if reading is not None:
        parts = list(reading.parts)
        if matrix.mode is not MeshMode.ISOLATED:
            parts = _with_recheck(reading)
        findings += [_finding(part, reading.rates, matrix) for part in parts]
        losses = Losses(matrix, reading.rates)
        lossy = losses.confirm(losses.find(explained_cells(parts)))
        findings += [_finding_of_loss(part, reading.rates, matrix) for part in lossy]
    return (*findings, *_beyond_limits(matrix))


def explained_cells(parts: Iterable[SlowPart]) -> set[int]:
    """Return the cells that slow parts explain, without ALL: there a lossy cell still stands out."""
    return {place for part in parts if part.code is not MeshFindingCode.ALL for place in part.cells}


def read_matrix(matrix: MeshMatrix) -> Reading | None:
    """Return the slow parts by the first measurement of each cell; None without a measured cell."""
    rates = relative_rates(matrix)
    levels = usual_rates(rates.logs, is_absolute=rates.is_absolute)
    if not levels:
        return None
    spread = min(find_spread(rates.logs, level) for level in levels)
    best = _choose([explain(rates, level, spread) for level in levels], rates, spread)
    parts = [
        SlowPart(
            cause.suspect.code,
            cause.suspect.sender,
            cause.suspect.receiver,
            cause.slowness,
            cause.suspect.cells,
            is_shared=cause.depth > 0,
        )
        for cause in best.causes
    ]
    least = max(_LEAST_PATH, slowness_beyond_chance(best.residuals, spread))
    paths = _paths(best, rates, max(_LEAST_DOUBTFUL, _DOUBTFUL * spread))
    clear = [path for path in paths if path.slowness - path.explained < -least]
    doubtful = [path for path in paths if path not in clear]
    everything = _everything(best, rates, spread)
    again = max(LEAST_SLOWNESS, slowness_beyond_chance(best.residuals, spread, _MOST_DOUBTFUL))
    return Reading(rates, best.usual, (*everything, *parts, *clear), tuple(doubtful[:_MOST_DOUBTFUL]), again)


def _choose(explanations: Sequence[Explanation], rates: RelativeRates, spread: float) -> Explanation:
    """Return the explanation of the lowest cost, of those that do not call most hosts slow.

    If rates are expected, one that finds cells at the expected rate comes first: the rest is slow, however much.
    """
    hosts = len({place for pair in rates.pairs for place in pair})
    slow = {each.usual: len(_slow_hosts(each, rates)) / hosts for each in explanations}
    limited = [each for each in explanations if slow[each.usual] <= _MOST_BELOW_EXPECTED]
    limited = limited or [min(explanations, key=lambda each: slow[each.usual])]
    if rates.is_absolute:
        # If it needs more paths than there are cells at the expected rate, it takes a few fast cells for usual.
        most = min(_MOST_UNEXPLAINED, sum(value > _AS_EXPECTED for value in rates.logs) / len(rates.logs))
        as_expected = [
            each
            for each in limited
            if abs(each.usual) <= -_AS_EXPECTED and _unexplained(each, spread, is_any=True) <= most
        ]
        return min(as_expected or limited, key=lambda each: each.cost)
    possible = [each for each in limited if slow[each.usual] <= _MOST_SLOW_HOSTS]
    # If that leaves many slow cells without a cause, most hosts are slow after all.
    if all(_unexplained(each, spread) > _MOST_UNEXPLAINED for each in possible):
        possible = limited
    return min(possible, key=lambda each: each.cost)


def _unexplained(explanation: Explanation, spread: float, *, is_any: bool = False) -> float:
    """Return the share of cells that are far slower than the causes explain; with `is_any` also far faster."""
    far = sum(
        residual < -_FAR * spread or (is_any and residual > _FAR * spread) for residual in explanation.residuals
    )
    return far / len(explanation.residuals)


def _slow_hosts(explanation: Explanation, rates: RelativeRates) -> set[str | None]:
    """Return the hosts that an explanation calls slow, including the hosts of a group that is slow throughout."""
    suspects = [cause.suspect for cause in explanation.causes]
    groups = {each.sender for each in suspects if each.code is MeshFindingCode.GROUP and each.receiver is None}
    of_groups = {host.name for host in rates.hosts if host.group is not None and host.group in groups}
    return {each.sender for each in suspects if each.is_host} | of_groups


def _everything(best: Explanation, rates: RelativeRates, spread: float) -> Iterator[SlowPart]:
    """Yield ALL, with the cells below the expected rate, if even the usual rate is below it."""
    error = _MEDIAN_ERROR * spread / sqrt(len(rates.logs))
    if rates.is_absolute and best.usual < _AS_EXPECTED - _ERRORS_OF_USUAL * error:
        slow = tuple(place for place, value in enumerate(rates.logs) if value < _AS_EXPECTED)
        yield SlowPart(MeshFindingCode.ALL, None, None, best.usual, slow)


def _paths(best: Explanation, rates: RelativeRates, least: float) -> list[SlowPart]:
    """Return the cells that are slower than the causes explain by `least` or more, the slowest first."""
    paths = [
        SlowPart(MeshFindingCode.PATH, *cell, value - best.usual, (place,), floor)
        for place, (cell, value, floor, residual) in enumerate(
            zip(rates.cells, rates.logs, best.floors, best.residuals, strict=True)
        )
        if residual < -least
    ]
    return sorted(paths, key=lambda path: path.slowness - path.explained)


def _with_recheck(reading: Reading) -> list[SlowPart]:
    """Return the slow parts. Those that were fast when measured alone become one: the network's capacity."""
    structured = [part for part in reading.parts if part.code is not MeshFindingCode.PATH]
    paths = [part for part in reading.parts if part.code is MeshFindingCode.PATH]
    inside = [part for part in structured if _has_recovered(part, reading)]
    kept = [_as_alone(part, reading) for part in structured if part not in inside]
    fast_now = [path for path in paths if _has_recovered(path, reading)]
    measured = [path for path in paths if _recoveries(path, reading)]
    are_many = len(paths) >= max(_LEAST_PATHS, _LEAST_SHARE_OF_PATHS * len(reading.rates.logs))
    if are_many and measured and len(fast_now) >= _RECOVERED * len(measured):
        # Paths without a second measurement are probably of the same kind. Pairs that share a slow part share it
        # unequally: one of four on 47 Mb/s had 6 Mb/s instead of 12, and 47 Mb/s when alone.
        shared = {place for part in kept if part.is_shared for place in part.cells}
        inside += [
            path for path in paths if (path in fast_now or path not in measured) and path.cells[0] not in shared
        ]
        paths = [path for path in paths if path in measured]
    paths = [path for path in paths if path not in fast_now]
    paths += [path for path in reading.doubtful if _is_slow_again(path, reading)]
    fabric = [_fabric(inside, reading)] if inside else []
    return [*fabric, *kept, *paths]


def _has_recovered(part: SlowPart, reading: Reading) -> bool:
    if part.is_shared:
        alone = _slowness_alone(part, reading)
        return alone is not None and alone > max(part.slowness / 2, -_LEAST_PATH)
    # With random loss, a path may have twice the rate the second time and still be far from healthy.
    if part.code is MeshFindingCode.PATH and _is_slow_alone(part, reading, max(_LEAST_PATH, reading.least_again)):
        return False
    recoveries = _recoveries(part, reading)
    return bool(recoveries) and sum(recoveries) >= _RECOVERED * len(recoveries)


def _is_slow_alone(path: SlowPart, reading: Reading, least: float) -> bool:
    """Return whether a second measurement was slower than the path's hosts or groups explain by `least`."""
    again = reading.rates.isolated_logs[path.cells[0]]
    return again is not None and again - reading.usual < path.explained - least


def _slowness_alone(part: SlowPart, reading: Reading) -> float | None:
    """Return how slow a part is for one pair alone; None if no cell was measured again."""
    isolated = reading.rates.isolated_logs
    again = [value for cell in part.cells if (value := isolated[cell]) is not None]
    return median(again) - reading.usual if again else None


def _as_alone(part: SlowPart, reading: Reading) -> SlowPart:
    """Return a shared part with its slowness for one pair."""
    alone = _slowness_alone(part, reading) if part.is_shared else None
    return part if alone is None else replace(part, slowness=alone)


def _is_slow_again(path: SlowPart, reading: Reading) -> bool:
    """Return whether a doubtful path was slow both times: that is hardly chance."""
    return _is_slow_alone(path, reading, reading.least_again) and not _has_recovered(path, reading)


def _recoveries(part: SlowPart, reading: Reading) -> list[bool]:
    """Return for each cell with a second measurement whether that was nearer to healthy than to slow."""
    healthy = 0.0 if part.code is MeshFindingCode.ALL else reading.usual + part.explained / 2
    logs = reading.rates.logs
    return [
        again > healthy + part.slowness / 2 and again > logs[cell] + LEAST_SLOWNESS
        for cell in part.cells
        if (again := reading.rates.isolated_logs[cell]) is not None
    ]


def _fabric(parts: Sequence[SlowPart], reading: Reading) -> SlowPart:
    """Return several parts as one. It names groups if all parts are between the same groups."""
    cells = tuple(sorted({cell for part in parts for cell in part.cells}))
    slowness = sum(part.slowness * len(part.cells) for part in parts) / sum(len(part.cells) for part in parts)
    names = {
        (part.sender, part.receiver)
        if part.code in {MeshFindingCode.GROUPS, MeshFindingCode.GROUP}
        else _groups_of(part, reading.rates)
        for part in parts
    }
    sender, receiver = names.pop() if len(names) == 1 else (None, None)
    return SlowPart(MeshFindingCode.FABRIC, sender, receiver, slowness, cells)


def _groups_of(part: SlowPart, rates: RelativeRates) -> tuple[str | None, str | None]:
    """Return the groups of a path's hosts; two None for other parts and without groups."""
    if part.code is not MeshFindingCode.PATH:
        return None, None
    sender, receiver = (rates.hosts[place].group for place in rates.pairs[part.cells[0]])
    return (sender, receiver) if sender is not None and receiver is not None else (None, None)


def _finding(part: SlowPart, rates: RelativeRates, matrix: MeshMatrix) -> MeshFinding:
    cells = tuple(rates.cells[place] for place in part.cells)
    less_percent = 100 * (1 - exp(part.slowness))
    why = _usual_why(cells, matrix)
    return MeshFinding(
        part.code, part.sender, part.receiver, less_percent, cells, why, is_of_transactions=rates.adds_up
    )


def _finding_of_loss(part: LossyPart, rates: RelativeRates, matrix: MeshMatrix) -> MeshFinding:
    cells = tuple(rates.cells[place] for place in part.cells)
    why = _usual_why(cells, matrix)
    return MeshFinding(part.code, part.sender, part.receiver, cells=cells, why=why, lost_percent=100 * part.loss)


def _usual_why(cells: Iterable[Cell], matrix: MeshMatrix) -> str | None:
    """Return the most frequent first finding of the cells' runs; None if most have none."""
    return Counter(matrix.figures[cell].why for cell in cells).most_common(1)[0][0]


def _beyond_limits(matrix: MeshMatrix) -> Iterator[MeshFinding]:
    """Yield each limit that cells break, with these cells."""
    broken: dict[LimitName, list[Cell]] = {}
    for cell in sorted(matrix.figures):
        for name in matrix.check_limits(cell).broken:
            broken.setdefault(name, []).append(cell)
    for name, cells in broken.items():
        beyond = matrix.limits.describe(name)
        yield MeshFinding(MeshFindingCode.LIMIT, cells=tuple(cells), limit=name, beyond=beyond)


def _hosts_down(matrix: MeshMatrix) -> Iterator[MeshFinding]:
    """Yield the hosts whose cells have all failed, unless the other hosts of these cells are the reason."""
    failures: dict[str, dict[Cell, CellFailure]] = {host.name: {} for host in matrix.hosts}
    alive: set[str] = set()
    for cell, figure in matrix.figures.items():
        if figure.failure is None:
            alive.update(cell)
        elif figure.failure.code is not FailureCode.STOPPED:
            for name in cell:
                failures.setdefault(name, {})[cell] = figure.failure
    down: set[str] = set()
    silent = {name: cells for name, cells in failures.items() if cells and name not in alive}
    while silent:
        # First comes the host that most failures name, then the host with most unexplained failures: it may be the
        # reason why others have no results.
        open_cells = {
            name: {cell: failure for cell, failure in cells.items() if not down.intersection(cell)}
            for name, cells in silent.items()
        }
        blamed = {name: _blame(name, cells) for name, cells in open_cells.items()}
        name = max(silent, key=lambda each: (blamed[each], len(open_cells[each])))
        del silent[name]
        has_live_peer = any(peer in alive for cell in open_cells[name] for peer in cell)
        if open_cells[name] and (blamed[name] or has_live_peer):
            down.add(name)
            own = tuple(failures[name])
            yield MeshFinding(MeshFindingCode.HOST_DOWN, name, cells=own, failure=_reason(name, failures[name]))


def _blame(name: str, cells: dict[Cell, CellFailure]) -> int:
    return sum(failure.host == name for failure in cells.values())


def _reason(name: str, cells: dict[Cell, CellFailure]) -> CellFailure:
    """Return the most frequent failure that names the host, or of all."""
    own = [failure for failure in cells.values() if failure.host == name]
    ((failure, _),) = Counter(own or list(cells.values())).most_common(1)
    return failure
