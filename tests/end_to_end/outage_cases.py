"""Tests during which the link or the far end is away: the cases, and what no result may claim of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

SECONDS: Final = 5
WARMUP_S: Final = 1.0
KINDS: Final = ("link down", "no way there", "no way back", "stopped")
WORKLOADS: Final = ("stream", "rr", "crr", "fetch", "udp")
IPERF3_WORKLOADS: Final = ("stream", "udp")
DIRECTIONS: Final = ("out", "in", "duplex")
LENGTHS_S: Final = (0.5, 1.5, 4.0)
STARTS_S: Final = tuple(step / 2 for step in range(2 * (SECONDS + 4)))
_RECOVERS_S: Final = 2.0  # the longest wait of TCP between two tries, after an outage of 1.5 s at most
_OVER_S: Final = 0.75  # after its duration a test exchanges its last samples
_EXCUSED_S: Final = 0.3  # of an outage: an interval, and what had been sent before
_LOST_AT_ONCE: Final = 0.25  # of two directions that the same outage stopped


@dataclass(frozen=True)
class OutageCase:
    """A test of `SECONDS`, and an outage of some kind that begins `start_s` after its start."""

    workload: str
    direction: str
    is_iperf3: bool
    kind: str
    start_s: float
    length_s: float

    def __str__(self) -> str:
        """Return the case in one line."""
        peer = "iperf3" if self.is_iperf3 else "linkgauge"
        return f"{self.workload} {self.direction} with {peer}: {self.kind} at {self.start_s}, {self.length_s} s"

    @property
    def is_over_before(self) -> bool:
        """Whether TCP carries payload again well before the test is over."""
        return self.length_s <= max(LENGTHS_S[:2]) and self.start_s + self.length_s + _RECOVERS_S < SECONDS

    @property
    def is_after(self) -> bool:
        """Whether the test was over before the outage began."""
        return self.start_s > SECONDS + _OVER_S

    @property
    def flows_away(self) -> set[str]:
        """The directions whose payload cannot pass: of TCP all, which needs its acknowledgements."""
        flows = {"out", "in"} if self.direction == "duplex" else {self.direction}
        one_way = {"no way there": "out", "no way back": "in"}.get(self.kind)
        return flows & {one_way} if self.workload == "udp" and one_way is not None else flows


def all_cases() -> Iterator[OutageCase]:
    """Return the whole grid."""
    tests = [(workload, direction, False) for workload in WORKLOADS for direction in DIRECTIONS]
    tests += [(workload, direction, True) for workload in IPERF3_WORKLOADS for direction in DIRECTIONS]
    for test, kind, start_s, length_s in product(tests, KINDS, STARTS_S, LENGTHS_S):
        yield OutageCase(*test, kind, start_s, length_s)


def find_lies(case: OutageCase, result: dict[str, Any]) -> list[str]:
    """Return what a result claims that cannot be true."""
    if "error" in result:
        return [] if case.start_s <= _EXCUSED_S else [f"error: {result['error']}"]
    missed_s, reason = _missed_s(case, result), result["reason"]
    lies: list[str] = []
    if result["verdict"] == "pass" and missed_s > _EXCUSED_S:
        lies.append(f"a pass, though {missed_s:.2f} s are missing: {result['text']}")
    if case.is_after and reason != "completed":
        lies.append(f"{reason}, though the outage came after the test: {result['detail']}")
    # An iperf3 server whose own interface is down may end the test by itself.
    if case.is_over_before and reason != "completed" and not case.is_iperf3:
        lies.append(f"{reason}, though the outage ended early: {result['detail']}")
    if case.kind != "stopped" and case.length_s < max(LENGTHS_S):  # at the end of a longer one payload does move
        said = {"payload still moves", "local clock"}
        lies += [f"warned: {words}" for words in said if any(words in text for text in result["warnings"])]
    if missed_s > _EXCUSED_S:
        lies += _find_lies_about_loss(case, result) + _find_lies_of_two_rates(case, result)
    return lies


def _missed_s(case: OutageCase, result: dict[str, Any]) -> float:
    """Return how much of the measured time the receivers got nothing, as the outage really began and ended.

    The kernel of a stopped far end goes on receiving: what it took counts if the far end has read it in time.
    """
    begin_s, end_s = result["away_s"]
    if not case.flows_away or (case.kind == "stopped" and end_s <= SECONDS + _OVER_S):
        return 0.0
    return max(0.0, min(SECONDS, end_s) - max(WARMUP_S, begin_s))


def _find_lies_about_loss(case: OutageCase, result: dict[str, Any]) -> list[str]:
    """Return directions whose datagrams were not lost, though the link was away in a test that completed."""
    if case.workload != "udp" or case.kind == "stopped" or result["reason"] != "completed":
        return []
    shares = {name: share for name, share in result["lost_percent"].items() if name in case.flows_away}
    return [f"{name}: {share} % lost" for name, share in shares.items() if share is not None and share < 1]


def _find_lies_of_two_rates(case: OutageCase, result: dict[str, Any]) -> list[str]:
    """Return two rates that differ, though the same outage stopped both directions for good."""
    rates = result["mbit_s"]
    is_told = case.kind == "link down" and case.workload == "stream" and case.length_s == max(LENGTHS_S)
    if not is_told or case.is_iperf3 or case.start_s < 2 or len(rates) < 2:
        return []
    apart = abs(rates["out"] - rates["in"]) / (max(rates.values()) or 1)
    return [f"two rates of one outage: {rates}"] if apart > _LOST_AT_ONCE else []
