"""The path of one direction over the tests of a peer: routes go in, and sometimes a changed path comes out. Pure.

Each test has ports of its own, so that routers with parallel links may send it another way each time. So a path is
a change only if it differs from all paths of the newest tests: two that take turns are told once. A hop that is
silent fits every router at its place.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from ..events import PathChanged, Route

REMEMBERED_TESTS: Final = 20
"""A path that none of so many tests has taken is forgotten: to come back to it is a change."""

_Hops = tuple[frozenset[str], ...]


@dataclass(slots=True)
class _KnownPath:
    """A path, with all addresses that its hops have answered with, and the number of the newest test on it."""

    hops: _Hops
    last: int

    def fits(self, hops: _Hops) -> bool:
        """Return whether a route may be this path: no hop has answered with other addresses only."""
        return len(self.hops) == len(hops) and all(map(_fit, self.hops, hops))

    def likeness(self, hops: _Hops) -> int:
        """Return how many hops have answered with the same address."""
        return sum(bool(own & other) for own, other in zip(self.hops, hops, strict=True))

    def take(self, hops: _Hops, number: int) -> None:
        """Note a test on this path."""
        self.hops, self.last = tuple(own | other for own, other in zip(self.hops, hops, strict=True)), number


def _fit(own: frozenset[str], other: frozenset[str]) -> bool:
    return not own or not other or bool(own & other)


class PathWatch:
    """Takes the route of one direction after each test. The same routes give the same changes."""

    def __init__(self, peer: str) -> None:
        self._peer = peer
        self._known: list[_KnownPath] = []
        self._newest: _KnownPath | None = None
        self._tests = 0

    def take_route(self, at_s: float, route: Route) -> PathChanged | None:
        """Return the change that a route is, compared with the path of the test before it; None for no change."""
        self._tests += 1
        self._known = [each for each in self._known if self._tests - each.last <= REMEMBERED_TESTS]
        hops = tuple(map(frozenset, route.hops))
        fitting = [each for each in self._known if each.fits(hops)]
        if fitting:
            self._newest = max(fitting, key=lambda each: each.likeness(hops))
            self._newest.take(hops, self._tests)
            return None
        before, self._newest = self._newest, _KnownPath(hops, self._tests)
        self._known.append(self._newest)
        if before is None:
            return None
        return PathChanged(at_s, self._peer, Route(route.direction, _sorted(before.hops)), route)


def _sorted(hops: _Hops) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(sorted(addresses)) for addresses in hops)


def first_difference(before: Sequence[Sequence[str]], after: Sequence[Sequence[str]]) -> int | None:
    """Return the number of the first hop that has another router, from 1; None if only silent hops differ."""
    pairs = enumerate(zip(before, after, strict=False), 1)
    return next((ttl for ttl, (old, new) in pairs if not _fit(frozenset(old), frozenset(new))), None)
