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
        return f"{self.workload} {self.direction} with {peer}: {self.kind} at {self.start_s} s for {self.length_s} s"

    @property
    def missed_s(self) -> float:
        """How much of the measured time the outage takes."""
        return max(0.0, min(SECONDS, self.start_s + self.length_s) - max(WARMUP_S, self.start_s))

    @property
    def is_over_before(self) -> bool:
        """Whether TCP carries payload again well before the test is over."""
        return self.length_s <= max(LENGTHS_S[:2]) and self.start_s + self.length_s + _RECOVERS_S < SECONDS

    @property
    def is_after(self) -> bool:
        """Whether the test was over before the outage began."""
        return self.start_s > SECONDS + _OVER_S


def all_cases() -> Iterator[OutageCase]:
    """Return the whole grid."""
    tests = [(workload, direction, False) for workload in WORKLOADS for direction in DIRECTIONS]
    tests += [(workload, direction, True) for workload in IPERF3_WORKLOADS for direction in DIRECTIONS]
    for test, kind, start_s, length_s in product(tests, KINDS, STARTS_S, LENGTHS_S):
        yield OutageCase(*test, kind, start_s, length_s)


def find_lies(case: OutageCase, result: dict[str, Any]) -> list[str]:
    """Return what a result claims that cannot be true."""
    if "error" in result:
        return [] if case.start_s <= 0.5 else [f"error: {result['error']}"]
    lies: list[str] = []
    reason, is_pass = result["reason"], result["verdict"] == "pass"
    if is_pass and _is_missed(case):
        lies.append(f"a pass, though {case.missed_s:g} s are missing: {result['text']}")
    if case.is_after and not is_pass:
        lies.append(f"no pass, though the outage came after the test: {reason}, {result['text']}")
    # An iperf3 server whose own interface is down may end the test by itself.
    if case.is_over_before and reason != "completed" and not case.is_iperf3:
        lies.append(f"{reason}, though the outage ended early: {result['detail']}")
    if case.kind != "stopped" and case.length_s < max(LENGTHS_S):  # at the end of a longer one payload does move
        said = {"payload still moves", "local clock"}
        lies += [f"warned: {words}" for words in said if any(words in text for text in result["warnings"])]
    rates = result["mbit_s"]
    if case.kind == "link down" and case.workload == "stream" and case.length_s == max(LENGTHS_S):
        apart = abs(rates.get("out", 0) - rates.get("in", 0)) / (max(rates.values(), default=0) or 1)
        if len(rates) > 1 and case.start_s >= 2 and case.missed_s > 1 and apart > _LOST_AT_ONCE:
            lies.append(f"two rates of one outage: {rates}")
    return lies + _find_lies_about_loss(case, result)


def _is_missed(case: OutageCase) -> bool:
    """Return whether the receiver got clearly less than the test carries without an outage.

    The kernel of a stopped far end goes on receiving: what it took counts if the far end has read it in time.
    """
    if case.kind == "stopped" and case.start_s + case.length_s <= SECONDS + _OVER_S:
        return False
    return case.missed_s > _EXCUSED_S and bool(_flows_away(case))


def _flows_away(case: OutageCase) -> set[str]:
    """Return the directions whose payload cannot pass: of TCP all, which needs its acknowledgements."""
    flows = {"out", "in"} if case.direction == "duplex" else {case.direction}
    one_way = {"no way there": "out", "no way back": "in"}.get(case.kind)
    return flows & {one_way} if case.workload == "udp" and one_way is not None else flows


def _find_lies_about_loss(case: OutageCase, result: dict[str, Any]) -> list[str]:
    """Return directions whose datagrams were not lost, though the link was away in a test that completed."""
    if case.workload != "udp" or case.kind == "stopped" or result["reason"] != "completed":
        return []
    shares = {name: share for name, share in result["lost_percent"].items() if name in _flows_away(case)}
    return [
        f"{name}: {share} % lost"
        for name, share in shares.items()
        if share is not None and share < 1 and case.missed_s > _EXCUSED_S
    ]
