"""Other tests on the same endpoint: they share its link, its cores and the path to it.

Measured: the payload that the endpoint received and sent for its other tests in the time of this one, iperf3
clients included.

Meaning: payload that the endpoint received for them takes a part of the rate at which this test could send to it,
and payload that it sent a part of the rate at which this test could receive. They explain at most their own rate,
and nothing if a window limits this test.

Finding: `other-tests`.
"""

from collections.abc import Iterator
from typing import Final

from ....engine.model.directions import End
from ...number_text import format_quantity, format_rate
from ..finding import Finding
from ..flow_view import FlowView
from ..window_bounds import find_reached_bound

_CONFIDENCE: Final = 0.85


def find_other_tests(view: FlowView) -> Iterator[Finding]:
    """Yield the finding about the other tests of the endpoint that share a direction."""
    others, other_bit_s = view.evidence.others, other_tests_bit_s(view)
    if others is None or not other_bit_s:
        return
    datagrams = view.flow.datagrams
    if datagrams is not None and not datagrams.lost:
        return  # all sent datagrams arrived
    is_network_only = datagrams is not None or find_reached_bound(view) is not None
    states = ("network",) if is_network_only else ("network", "starved", "receiver", "buffer")
    missing_bit_s = view.gap_bit_s or view.flow.bit_s + other_bit_s
    share = view.budget.take(*states, limit=min(1.0, other_bit_s / missing_bit_s))
    if share <= 0:
        return
    evidence = view.evidence
    subject = "Another test" if others.most_tests == 1 else "Other tests"
    verb = evidence.tense("shares" if others.most_tests == 1 else "share", "shared")
    words = ("receives", "received") if view.receiver.end is End.FAR else ("sends", "sent")
    does = evidence.tense(*words)
    counts = f"{format_quantity(others.most_tests, 'test')}, {format_quantity(others.most_sessions, 'session')}"
    them = "it" if others.most_tests == 1 else "them"
    yield Finding(
        "other-tests",
        share,
        _CONFIDENCE,
        f"{subject} on this endpoint {verb} its link.",
        f"{counts}: the endpoint {does} {format_rate(other_bit_s)} in {them}, "
        f"{format_rate(view.flow.bit_s)} in this one",
        "wait until they end, or linkgauge … --exclusive --wait 60",
    )


def other_tests_bit_s(view: FlowView) -> float:
    """Return the payload rate of the endpoint's other tests in a direction; 0 if it is unknown, too."""
    others = view.evidence.others
    if others is None:
        return 0.0
    return others.received_bit_s if view.receiver.end is End.FAR else others.sent_bit_s
