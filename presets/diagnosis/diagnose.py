"""Diagnosis: each rule in turn explains a share of the gap between the measured and the expected rate."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from ..number_text import format_rate
from . import remedies
from .evidence import Evidence, FlowView, flow_views
from .finding import Finding, rank_findings
from .rules.link import find_link_limits
from .rules.loss import find_loss_limits
from .rules.path import find_path_limits
from .rules.processor import describe_core_load, find_core_limits, find_processor_limits, has_full_core
from .rules.window import find_remaining_window_limits, find_window_limits

# A rate this close to the one over loopback measures the tester.
_NEAR_CEILING: Final = 0.8
_NEXT_LIMIT: Final = 0.9
_UNEXPLAINED_CONFIDENCE: Final = 0.3
_RULES: Final = (
    find_link_limits,
    find_window_limits,
    find_processor_limits,
    find_remaining_window_limits,
    find_loss_limits,
    find_path_limits,
)
# Loopback has neither link nor path.
_HOST_RULES: Final = (find_window_limits, find_processor_limits, find_remaining_window_limits)


def diagnose(evidence: Evidence) -> tuple[Finding, ...]:
    """Return the findings of a run, the one that explains most of the gap first.

    A run that reaches the pass mark has the one finding `at-expected`, and one that is faster than its link can be,
    `another-link`. If nothing is expected, findings name the limits and their share is None.
    """
    if evidence.beyond_bit_s is not None:
        return (_another_link(evidence, evidence.beyond_bit_s),)
    if evidence.is_as_expected:
        return (_as_expected(evidence),)
    if evidence.bit_s <= 0:
        return (_no_payload(evidence),)
    gap = sum(view.gap_bit_s for view in flow_views(evidence))
    findings: list[Finding] = []
    for view in flow_views(evidence):
        part = view.gap_bit_s / gap if gap else 1 / len(evidence.flows)
        if part > 0:
            findings += [_scale(finding, part, evidence) for finding in _apply_rules(view)]
    return rank_findings(_merge(findings)) or (_unexplained(evidence),)


def _apply_rules(view: FlowView) -> Iterator[Finding]:
    yield from _tester(view)
    if view.evidence.workload.is_transactional:
        yield from find_core_limits(view)
        yield from _round_trips(view)
        return
    link = view.evidence.link
    is_host_only = view.sender.nic is not None and view.sender.nic.sort == "loopback"
    is_host_only = is_host_only or (link is not None and link.framing == "none" and view.evidence.is_same_host)
    for rule in _HOST_RULES if is_host_only else _RULES:
        yield from rule(view)


def _scale(finding: Finding, part: float, evidence: Evidence) -> Finding:
    """Return a finding of one direction with its share of the whole run's gap."""
    share = (finding.share or 0.0) * part
    return replace(finding, share=None if evidence.expected_bit_s is None else share, weight=share)


def _merge(findings: list[Finding]) -> Iterator[Finding]:
    """Yield the findings of both directions, those of the same code and end as one."""
    for key in dict.fromkeys((finding.code, finding.end) for finding in findings):
        same = [finding for finding in findings if (finding.code, finding.end) == key]
        strongest = max(same, key=lambda finding: finding.rank)
        weight = min(1.0, sum(finding.weight for finding in same))
        yield replace(strongest, share=None if strongest.share is None else weight, weight=weight)


def _tester(view: FlowView) -> Iterator[Finding]:
    ceiling = view.evidence.ceiling_bit_s
    # A run above the ceiling shows that the ceiling is out of date: it limits nothing.
    if ceiling is None or not _NEAR_CEILING * ceiling <= view.evidence.bit_s <= ceiling:
        return
    yield Finding(
        "tester-limited",
        view.budget.take("starved", "receiver", "buffer", "network"),
        0.8,
        "This machine does hardly more with no link at all: the tester is the limit.",
        f"{format_rate(view.evidence.bit_s)} of the {format_rate(ceiling)} that it carries over loopback",
        "linkgauge … --mode sendfile or discard, more --sessions and --workers, or a faster machine",
    )


def _round_trips(view: FlowView) -> Iterator[Finding]:
    """Yield the usual limit of transactions: each session waits for an answer before its next request."""
    rtt_us = view.flow.rtt_us
    trip = "unknown" if rtt_us is None else f"{rtt_us / 1_000:.3g} ms"
    yield Finding(
        "round-trip",
        view.budget.take("starved", "receiver", "buffer", "network"),
        0.6,
        "Each transaction waits for its answer: round trips are the limit.",
        f"TCP's round trip is {trip}{'' if _has_full_core(view.evidence) else '; no core is full'}",
        "linkgauge … --sessions 10, or --burst 10 with rr, to have more of them on the way",
    )


def _as_expected(evidence: Evidence) -> Finding:
    share = 100 * evidence.bit_s / (evidence.expected_bit_s or 1.0)
    text = "Nothing limits: at the expected rate."
    reason = f"{format_rate(evidence.bit_s)} are {share:.1f} % of {format_rate(evidence.expected_bit_s or 0.0)}"
    for end in (evidence.near, evidence.far):
        if max((core.busy for core in end.cores), default=0.0) >= _NEXT_LIMIT:
            reason += f"; next limit at the {end.end} end: {describe_core_load(end)}"
            break
    return Finding("at-expected", None, 1.0, text, reason, "nothing to do", weight=1.0)


def _another_link(evidence: Evidence, most_bit_s: int) -> Finding:
    return Finding(
        "another-link",
        None,
        0.95,
        "This is not such a link: more comes through than one can carry.",
        f"{format_rate(evidence.bit_s)} came through, and its wire carries {format_rate(most_bit_s)} at most",
        "linkgauge check auto PEER picks the preset by both ends' interfaces; linkgauge presets lists them all",
        weight=1.0,
    )


def _no_payload(evidence: Evidence) -> Finding:
    near, far = (None if end.nic is None else end.nic.mtu_bytes for end in (evidence.near, evidence.far))
    retransmits = sum(flow.retransmits or 0 for flow in evidence.flows)
    end = evidence.near if (near or 0) >= (far or 0) else evidence.far
    least = min((mtu for mtu in (near, far) if mtu is not None), default=1_500)
    return Finding(
        "no-payload",
        None if evidence.expected_bit_s is None else 1.0,
        0.7,
        "Sessions open, and no payload arrives: large packets do not get through.",
        f"{retransmits} retransmits; MTU {near or 'unknown'} near, {far or 'unknown'} far",
        f"ping -M do -s {least - 28} PEER tells the largest packet; {remedies.set_mtu(end, min(least, 1_500))}",
        weight=1.0,
    )


def _has_full_core(evidence: Evidence) -> bool:
    """Return whether an end has a full core, even one that other processes fill."""
    return has_full_core(evidence.near) or has_full_core(evidence.far)


def _unexplained(evidence: Evidence) -> Finding:
    signs = "no window, loss or queue shows"
    if not _has_full_core(evidence):
        signs = f"no core is full and {signs}"
    return Finding(
        "unexplained",
        None if evidence.expected_bit_s is None else 1.0,
        _UNEXPLAINED_CONFIDENCE,
        "Neither end sees what limits.",
        f"{signs}; {describe_core_load(evidence.near)} (near)",
        "test longer and the other way: linkgauge … --seconds 60 --direction in",
        weight=1.0,
    )
