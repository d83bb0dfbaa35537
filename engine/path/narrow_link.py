"""Between which hops of one direction packets become too long: probes of two lengths, with TTL 1 to N. Pure.

A short packet is answered by each hop that its TTL reaches, a long one only by hops before the narrow link.
"""

from ..model.counters.path_trace import MAX_HOPS
from ..protocol.path_probe import NarrowLink


class NarrowLinkSearch:
    """Collects answers, and says which probes are still to be sent."""

    def __init__(self) -> None:
        self._short: dict[int, str] = {}
        self._long: dict[int, str] = {}
        self._end: int | None = None

    @property
    def last_ttl(self) -> int:
        """The TTL that reaches the other end; the maximum until that is known."""
        return MAX_HOPS if self._end is None else self._end

    def note_expired(self, ttl: int, router: str, *, is_long: bool) -> None:
        """Note that a router has used up a probe's TTL."""
        (self._long if is_long else self._short)[ttl] = router

    def note_reached(self, ttl: int) -> None:
        """Note that the other end has answered a short probe."""
        self._end = min(ttl, self.last_ttl)

    def is_answered(self, ttl: int, *, is_long: bool) -> bool:
        """Return whether a probe need not be sent again."""
        if is_long:
            return ttl in self._long or ttl >= self.last_ttl
        return ttl in self._short or (self._end is not None and ttl >= self._end)

    def result(self, refusing: str | None = None) -> NarrowLink | None:
        """Return the link; None if the other end was not reached. `refusing` is a router that has reported it."""
        if self._end is None:
            return None
        known = {ttl: router for ttl, router in (self._short | self._long).items() if ttl < self._end}
        named = [ttl for ttl, router in known.items() if router == refusing]
        after = max(named or [ttl for ttl in self._long if ttl < self._end], default=0)
        before = min([ttl for ttl in self._short if after < ttl < self._end], default=self._end)
        return NarrowLink(after, before, known.get(after), known.get(before))
