"""The metrics of observed connections, read from the last observation. Pure.

A series for each pair of process and remote host, of the fastest connections only; the rest are summed as `other`.
A pair that is no longer among them has no series any more, so that a day of strangers makes no more of them than a
moment.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from .. import __version__
from ..engine.model.directions import Direction
from ..observe.observation import Observation, ObservedConnection
from . import families
from .families import Reading

OTHER: Final = "other"
_UNKNOWN: Final = ""


@dataclass(slots=True)
class _Pair:
    """The connections of one process with one remote host; `first` is the fastest of them."""

    first: ObservedConnection
    connections: int = 0
    bit_s: dict[Direction, float] = field(default_factory=lambda: dict.fromkeys(Direction.DUPLEX.flows, 0.0))

    def add(self, row: ObservedConnection) -> None:
        self.connections += 1
        self.bit_s[Direction.OUT] += row.out.bit_s
        self.bit_s[Direction.IN] += row.in_.bit_s


class ObservedMetrics:
    """Reads the newest observation. `clean` returns a text as it may be shown: with stand-ins for addresses."""

    def __init__(self, clean: Callable[[str], str] = str) -> None:
        self._clean = clean
        self.newest: Observation | None = None
        self._ended = 0

    def add(self, observation: Observation) -> None:
        """Take in the next observation."""
        self.newest = observation
        self._ended += observation.totals.ended

    def read(self) -> Iterator[Reading]:
        """Yield every reading that is known now."""
        yield Reading(families.BUILD_INFO, 1, (__version__,))
        if self.newest is None:
            return
        totals = self.newest.totals
        yield Reading(families.OBSERVED_SOCKETS, totals.sockets)
        yield Reading(families.OBSERVED_MOVING, totals.moving)
        yield Reading(families.OBSERVED_ENDED, self._ended)
        pairs = self._pairs(self.newest)
        yield from self._goodput(pairs, {Direction.OUT: totals.out_bit_s, Direction.IN: totals.in_bit_s})
        for labels, pair in pairs.items():
            yield Reading(families.OBSERVED_CONNECTIONS, pair.connections, labels)
            sample, findings = pair.first.out.sample, pair.first.findings
            if sample is not None and sample.rtt_us is not None:
                yield Reading(families.OBSERVED_RTT, sample.rtt_us / 1e6, labels)
            yield Reading(families.OBSERVED_STATUS, 1, (*labels, pair.first.status.value))
            if findings:
                yield Reading(families.OBSERVED_FINDING, 1, (*labels, findings[0].code))

    def _pairs(self, observation: Observation) -> dict[tuple[str, str], _Pair]:
        pairs: dict[tuple[str, str], _Pair] = {}
        for row in observation.connections:  # the fastest first
            process = _UNKNOWN if row.owner is None else row.owner.name
            labels = self._clean(process), self._clean(row.key.remote.host)
            pairs.setdefault(labels, _Pair(row)).add(row)
        return pairs

    @staticmethod
    def _goodput(pairs: dict[tuple[str, str], _Pair], totals: dict[Direction, float]) -> Iterator[Reading]:
        named: dict[Direction, float] = defaultdict(float)
        for labels, pair in pairs.items():
            for flow, bit_s in pair.bit_s.items():
                named[flow] += bit_s
                yield Reading(families.OBSERVED_GOODPUT, bit_s / 8, (*labels, flow.value))
        for flow, bit_s in totals.items():
            rest = max(0.0, bit_s - named[flow]) / 8
            yield Reading(families.OBSERVED_GOODPUT, rest, (OTHER, OTHER, flow.value))
