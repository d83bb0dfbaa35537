"""From evidence to findings: every rule in turn takes what it explains of the gap, the rest says so."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final, cast

from ...engine.model.errors import DecodeError
from ...engine.model.serialization import decode
from ...engine.results.json_document import round_figure
from ..number_text import format_rate
from . import remedies
from .budget import FlowView, flow_views
from .evidence import Evidence
from .finding import Finding, rank_findings
from .rules.link import find_link_limits
from .rules.path import find_path_limits
from .rules.processor import describe_core_load, find_core_limits, find_processor_limits, has_full_core
from .rules.window import find_remaining_window_limits, find_window_limits

# Near what this machine does with no link at all, the tester is what is measured.
_NEAR_CEILING: Final = 0.8
_NEXT_LIMIT: Final = 0.9
_LEFT_OVER: Final = 0.3
_RULES: Final = (
    find_link_limits,
    find_window_limits,
    find_processor_limits,
    find_remaining_window_limits,
    find_path_limits,
)
# What loopback can be: there is no link and no path.
_HOST_RULES: Final = (find_window_limits, find_processor_limits, find_remaining_window_limits)


def diagnose(evidence: Evidence) -> tuple[Finding, ...]:
    """Return what keeps a run from being faster, the finding that explains most of the gap first.

    A run that reaches the pass mark has one finding, which says so; so has one that no such link can carry. Where
    nothing is expected, findings tell what limits, and their share is None.
    """
    if evidence.beyond_bit_s is not None:
        return (_another_link(evidence, evidence.beyond_bit_s),)
    if evidence.is_as_expected:
        return (_as_expected(evidence),)
    if evidence.bit_s <= 0:
        return (_no_payload(evidence),)
    gap = sum(view.gap_bit_s for view in flow_views(evidence))
    found: list[Finding] = []
    for view in flow_views(evidence):
        part = view.gap_bit_s / gap if gap else 1 / len(evidence.flows)
        if part > 0:
            found += [_weighed(one, part, evidence) for one in _explained(view)]
    answer = rank_findings(_joined(found))
    return answer or (_unexplained(evidence),)


def findings_json(findings: tuple[Finding, ...]) -> list[dict[str, Any]]:
    """Return findings for programs; `share` is null where nothing is expected or nothing is missing."""
    return [
        {
            "code": one.code,
            "end": None if one.end is None else one.end.value,
            "share": None if one.share is None else round_figure(one.share),
            "confidence": round_figure(one.confidence),
            "text": one.text,
            "evidence": one.evidence,
            "remedy": one.remedy,
        }
        for one in findings
    ]


def read_findings(value: object) -> tuple[Finding, ...]:
    """Return findings as they were kept; none where what was kept is damaged: events can make them again."""
    if not isinstance(value, list):
        return ()
    try:
        return tuple(decode(Finding, one) for one in cast("list[object]", value))
    except DecodeError:
        return ()


def _explained(view: FlowView) -> Iterator[Finding]:
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


def _weighed(one: Finding, part: float, evidence: Evidence) -> Finding:
    """Return a finding of one direction as one of the whole run."""
    share = (one.share or 0.0) * part
    return replace(one, share=None if evidence.expected_bit_s is None else share, weight=share)


def _joined(found: list[Finding]) -> Iterator[Finding]:
    """Give findings of the same kind and end, of both directions, as one."""
    kinds = dict.fromkeys((one.code, one.end) for one in found)
    for kind in kinds:
        same = [one for one in found if (one.code, one.end) == kind]
        most = max(same, key=lambda one: one.rank)
        weight = min(1.0, sum(one.weight for one in same))
        yield replace(most, share=None if most.share is None else weight, weight=weight)


def _tester(view: FlowView) -> Iterator[Finding]:
    ceiling = view.evidence.ceiling_bit_s
    if ceiling is None or view.evidence.bit_s < _NEAR_CEILING * ceiling:
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
    """Give what is left of transactions: each waits for the one before it, and that is no fault of a window."""
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
    shown = f"{format_rate(evidence.bit_s)} are {share:.1f} % of {format_rate(evidence.expected_bit_s or 0.0)}"
    for end in (evidence.near, evidence.far):
        if max((core.busy for core in end.cores), default=0.0) >= _NEXT_LIMIT:
            shown += f"; next limit at the {end.end} end: {describe_core_load(end)}"
            break
    return Finding("at-expected", None, 1.0, text, shown, "nothing to do", weight=1.0)


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
    """Return whether an end has a core that is full, though it be one that other processes fill."""
    return has_full_core(evidence.near) or has_full_core(evidence.far)


def _unexplained(evidence: Evidence) -> Finding:
    shows = "no window, loss or queue shows"
    if not _has_full_core(evidence):
        shows = f"no core is full and {shows}"
    return Finding(
        "unexplained",
        None if evidence.expected_bit_s is None else 1.0,
        _LEFT_OVER,
        "Neither end sees what limits.",
        f"{shows}; {describe_core_load(evidence.near)} (near)",
        "test longer and the other way: linkgauge … --seconds 60 --direction in",
        weight=1.0,
    )
