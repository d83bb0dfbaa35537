"""Diagnosis: each rule in turn explains a share of the gap between the measured and the expected rate."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from ...engine.model.plan import MAX_RESPONSE_BYTES
from ...engine.results.rate_and_loss import percent_of
from ..number_text import format_bytes, format_percent, format_quantity, format_rate, format_time
from . import remedies
from .core_load import describe_core_load, has_full_core, hottest_busy
from .cross_checks import weigh
from .evidence import MIN_SHARE, Evidence, describe_unseen, end_name
from .finding import NOT_IDENTIFIED, Finding, rank_findings
from .flow_view import FlowView, flow_views
from .rules.datagram_loss import find_datagram_losses, find_held_sender, find_sending_limits
from .rules.link import find_link_limits, find_nic_limits
from .rules.loss import find_loss_limits
from .rules.outage import find_outages
from .rules.path import find_host_pacing, find_path_limits
from .rules.processor import OTHER_PROCESSES, find_core_limits, find_processor_limits, find_ssh_limit
from .rules.queue import find_queues
from .rules.shared_endpoint import find_other_tests
from .rules.two_way import find_waiting_acknowledgements
from .rules.window import find_remaining_window_limits, find_window_limits
from .trial import Trial

# A rate this close to the one over loopback measures the tester.
_NEAR_CEILING: Final = 0.8
_NEXT_LIMIT: Final = 0.9
_SMALL_DATAGRAMS: Final = Trial(datagram_bytes=1_200)  # the payload of IPv6's smallest MTU
# The ends of one machine have these in common.
_CORE_CODES: Final = {"core-saturated", "steal", "sessions-few"}
_UNEXPLAINED_CONFIDENCE: Final = 0.3
_UNLIMITED: Final = Trial(without_rate=True)
# A response this many round trips long leaves hardly any pause.
_LONG_TRANSFER: Final = 50
_RULES: Final = (
    find_outages,
    find_link_limits,
    find_window_limits,
    find_processor_limits,
    find_remaining_window_limits,
    find_loss_limits,
    find_waiting_acknowledgements,
    find_path_limits,
)
# Loopback has neither link nor path.
_HOST_RULES: Final = (
    find_window_limits,
    find_processor_limits,
    find_remaining_window_limits,
    find_host_pacing,
)


def diagnose(evidence: Evidence) -> tuple[Finding, ...]:
    """Return the findings of a run, the one that explains most of the gap first.

    A run that reaches the pass mark has only the finding `at-expected`. A run faster than its link has only
    `another-link`. Without an expected rate, findings name the limits, and their share is None. A run that measures
    latency under load has findings about queues as well, or nothing else if the load is its only purpose.
    """
    if evidence.is_latency_test:
        return diagnose_untargeted(evidence) if evidence.bit_s > 0 else (_no_payload(evidence),)
    return (*_diagnose_rate(evidence), *find_queues(evidence))


def diagnose_untargeted(evidence: Evidence) -> tuple[Finding, ...]:
    """Return the findings of a run whose rate has no target: its queues, and the other tests of the endpoint."""
    views = flow_views(evidence)
    shared: list[Finding] = []
    for view in views:
        if not list(_rate_limit(view)):
            shared += [_scale(finding, 1 / len(views), evidence) for finding in find_other_tests(view)]
    return (*find_queues(evidence), *rank_findings(_merge(shared)))


def _diagnose_rate(evidence: Evidence) -> tuple[Finding, ...]:
    """Return the findings about the rate."""
    if evidence.beyond_bit_s is not None:
        return (_another_link(evidence, evidence.beyond_bit_s),)
    if evidence.workload.is_datagram and evidence.bit_s > 0:
        return _diagnose_datagrams(evidence)
    if evidence.is_as_expected:
        return (_as_expected(evidence),)
    if evidence.bit_s <= 0:
        return (_no_payload(evidence),)
    gap = sum(view.gap_bit_s for view in flow_views(evidence))
    findings: list[Finding] = []
    for view in flow_views(evidence):
        part = view.gap_bit_s / gap if gap else 1 / len(evidence.flows)
        if part > 0:
            findings += [_scale(weigh(view, finding), part, evidence) for finding in _apply_rules(view)]
    merged = list(_merge(findings))
    merged = list(_join_ends(merged, evidence)) if evidence.shares_cores else merged
    return rank_findings(merged) or (_unexplained(evidence),)


def _diagnose_datagrams(evidence: Evidence) -> tuple[Finding, ...]:
    """Return the findings of a UDP run: its losses, and the other limits of its rate.

    A loss is a result of its own: it is named even if it explains little of the missing rate.
    """
    views = flow_views(evidence)
    gap, lost = sum(view.gap_bit_s for view in views), sum(_lost(view) for view in views)
    losses: list[Finding] = []
    others: list[Finding] = []
    for view in views:
        part = view.gap_bit_s / gap if gap else 1 / len(views)
        if part > 0 and not evidence.is_as_expected:
            others += [_scale(finding, part, evidence) for finding in find_other_tests(view)]
        for finding in find_datagram_losses(view):
            share = None if evidence.is_as_expected else _scale(finding, part, evidence).share
            losses.append(replace(finding, share=share, weight=finding.weight * _lost(view) / max(1, lost)))
        if part > 0 and not evidence.is_as_expected:
            others += [_scale(finding, part, evidence) for finding in _apply_datagram_rules(view)]
    merged = list(_merge(others))
    merged = list(_join_ends(merged, evidence)) if evidence.shares_cores else merged
    findings = (*_merge(losses), *rank_findings(merged))
    usual = _as_expected(evidence) if evidence.is_as_expected else _unexplained(evidence)
    return tuple(sorted(findings, key=lambda finding: -finding.rank)) or (usual,)


def _lost(view: FlowView) -> int:
    return 0 if view.flow.datagrams is None else view.flow.datagrams.lost


def _apply_datagram_rules(view: FlowView) -> Iterator[Finding]:
    """Yield the limits of a sender of datagrams, or of the link that carries them."""
    yield from find_nic_limits(view)
    yield from find_sending_limits(view)
    yield from _tester(view)
    yield from find_core_limits(view)
    yield from find_held_sender(view)


def _apply_rules(view: FlowView) -> Iterator[Finding]:
    evidence = view.evidence
    if evidence.is_data_through_ssh:
        yield from find_ssh_limit(view)
        return
    yield from _rate_limit(view)
    yield from find_other_tests(view)
    yield from _tester(view)
    if evidence.workload.is_transactional and not evidence.workload.is_bulk:
        yield from find_core_limits(view)
        yield from _round_trips(view)
        return
    if evidence.workload.is_transactional:
        yield from _pauses(view)
    link = evidence.link
    nic = view.sender.nic if evidence.unseen_end is None else evidence.of_end(evidence.unseen_end.other).nic
    is_host_only = nic is not None and nic.sort == "loopback"
    is_host_only = is_host_only or (link is not None and link.framing == "none" and evidence.is_same_host)
    for rule in _HOST_RULES if is_host_only else _RULES:
        yield from rule(view)


def _scale(finding: Finding, part: float, evidence: Evidence) -> Finding:
    """Return a finding of one direction with its share of the whole run's gap."""
    share = (finding.share or 0.0) * part
    return replace(finding, share=None if evidence.expected_bit_s is None else share, weight=share)


def _merge(findings: list[Finding]) -> Iterator[Finding]:
    """Yield the findings of both directions; findings of the same code and end become one."""
    for key in dict.fromkeys((finding.code, finding.end) for finding in findings):
        same = [finding for finding in findings if (finding.code, finding.end) == key]
        strongest = max(same, key=lambda finding: finding.rank)
        weight = min(1.0, sum(finding.weight for finding in same))
        share = min(1.0, sum(finding.share or 0.0 for finding in same))
        yield replace(strongest, share=None if strongest.share is None else share, weight=weight)


def _join_ends(findings: list[Finding], evidence: Evidence) -> Iterator[Finding]:
    """Yield the findings of two ends that share their cores: findings of both about them are one cause."""
    for code in dict.fromkeys(finding.code for finding in findings):
        same = [finding for finding in findings if finding.code == code]
        if code in _CORE_CODES and len(same) > 1:
            yield _of_both_ends(same, evidence)
        else:
            yield from same


def _of_both_ends(findings: list[Finding], evidence: Evidence) -> Finding:
    """Return the findings of both ends as one, with the numbers and the remedy of the stronger one."""
    strongest = max(findings, key=lambda finding: finding.rank)
    are, takes = evidence.tense("are", "were"), evidence.tense("takes", "took")
    text = f"Both ends share this machine, and its cores {are} the limit."
    shared = [finding.text for finding in findings if finding.end is None]
    if shared:
        text = shared[0]
    elif all(finding.text.startswith(OTHER_PROCESSES) for finding in findings):
        take = evidence.tense("take", "took")
        text = f"{OTHER_PROCESSES} {take} the cores of this machine, which both ends share."
    elif strongest.code == "steal":
        text = f"The hypervisor {takes} CPU time from this machine, which both ends share."
    elif strongest.code == "sessions-few":
        text = strongest.text
    weight = min(1.0, sum(finding.weight for finding in findings))
    share = None if strongest.share is None else weight
    where = "" if strongest.end is None else f"{end_name(strongest.end)}: "
    return replace(
        strongest, share=share, weight=weight, text=text, evidence=f"{where}{strongest.evidence}", end=None
    )


def _rate_limit(view: FlowView) -> Iterator[Finding]:
    """Yield the limit that the user set with --rate, if the flow has reached it."""
    limit_bit_s = view.evidence.rate_bit_s
    if limit_bit_s is None or view.flow.bit_s < _NEXT_LIMIT * limit_bit_s:
        return
    yield Finding(
        "rate-limited",
        view.budget.take("starved", "receiver", "buffer", "network"),
        0.95,
        f"--rate {view.evidence.tense('limits', 'limited')} the test to less than the expected rate.",
        f"{format_rate(view.flow.bit_s)} of the requested {format_rate(limit_bit_s)} in this direction",
        f"linkgauge … {_UNLIMITED}",
        trial=_UNLIMITED,
    )


def _tester(view: FlowView) -> Iterator[Finding]:
    """Yield a finding if the rate is close to the ceiling; a ceiling below the rate is out of date."""
    evidence, ceiling = view.evidence, view.evidence.ceiling_bit_s
    if ceiling is None or not _NEAR_CEILING * ceiling <= evidence.bit_s <= ceiling:
        return
    mode = remedies.cheaper_mode(evidence)
    yield Finding(
        "tester-limited",
        view.budget.take("starved", "receiver", "buffer", "network"),
        0.8,
        f"This machine, not the link, {evidence.tense('is', 'was')} the bottleneck.",
        f"{format_rate(evidence.bit_s)} of the {format_rate(ceiling)} that it reaches over loopback",
        f"linkgauge … {f'{mode}, ' if mode else ''}more --sessions and --workers, or a faster machine",
        trial=mode,
    )


def _round_trips(view: FlowView) -> Iterator[Finding]:
    """Yield the usual limit of small transactions: each waits for its response."""
    evidence = view.evidence
    trials = (remedies.more_sessions(evidence.sessions, 10), remedies.larger_burst(evidence))
    options = [each for each in trials if each]
    remedy = "a path with a shorter round trip"
    if options:
        remedy = f"linkgauge … {' or '.join(map(str, options))}, to have more requests in flight"
    rtt_us = view.flow.rtt_us
    is_or_was = evidence.tense("is", "was")
    trip = f"TCP's round trip {is_or_was} {'unknown' if rtt_us is None else format_time(rtt_us)}"
    yield Finding(
        "round-trip",
        view.budget.take("starved", "receiver", "buffer", "network"),
        0.6,
        evidence.tense(
            "Each request waits for the response before it: latency is the limit.",
            "Each request waited for the response before it: latency was the limit.",
        ),
        f"{trip}{'' if _has_full_core(evidence) else f'; no core {is_or_was} full'}",
        remedy,
        trial=options[0] if options else None,
    )


def _pauses(view: FlowView) -> Iterator[Finding]:
    """Yield the limit of large transactions: a round trip without payload between two responses."""
    waiting, evidence = view.round_trip_share, view.evidence
    if waiting is None or waiting < MIN_SHARE:
        return
    missing_bit_s = view.flow.bit_s * waiting / (1 - waiting) if waiting < 1 else view.target_bit_s
    share = min(1.0, missing_bit_s / view.gap_bit_s) if view.gap_bit_s > 0 else waiting
    trip = format_time((view.base_rtt_s or 0) * 1e6)
    size = remedies.round_window(_LONG_TRANSFER * evidence.response_bytes * waiting)
    larger = Trial(response_bytes=size) if size <= MAX_RESPONSE_BYTES else None
    options = [each for each in (larger, remedies.more_sessions(evidence.sessions, 4)) if each]
    yield Finding(
        "round-trip",
        view.budget.take("starved", "network", "receiver", "buffer", limit=share),
        0.8,
        f"Each session {evidence.tense('pauses', 'paused')} for a round trip between two responses.",
        f"a round trip of {trip} {evidence.tense('takes', 'took')} {format_percent(waiting)} of the time "
        f"with responses of {format_bytes(evidence.response_bytes)}",
        f"linkgauge … {' or '.join(map(str, options))}" if options else "a path with a shorter round trip",
        trial=options[0] if options else None,
    )


def _as_expected(evidence: Evidence) -> Finding:
    percent = percent_of(evidence.bit_s, evidence.expected_bit_s) or 0.0
    text = evidence.tense("Running at the expected rate.", "Ran at the expected rate.")
    reason = f"{format_rate(evidence.bit_s)} is {percent:.1f} % of {format_rate(evidence.expected_bit_s or 0.0)}"
    for end in (evidence.near, evidence.far):
        if hottest_busy(end) >= _NEXT_LIMIT:
            reason += f"; next limit at {end_name(end.end)}: {describe_core_load(evidence, end)}"
            break
    return Finding("at-expected", None, 1.0, text, reason, "nothing to do", weight=1.0)


def _another_link(evidence: Evidence, most_bit_s: int) -> Finding:
    return Finding(
        "another-link",
        None,
        0.95,
        "Faster than this kind of link allows: choose another preset.",
        f"{format_rate(evidence.bit_s)} arrived; such a link can carry at most {format_rate(most_bit_s)}",
        "linkgauge check auto PEER, or another preset (linkgauge presets lists all)",
        weight=1.0,
    )


def _no_datagrams(evidence: Evidence) -> Finding:
    """Return the finding about UDP sessions whose handshake arrived, and none of whose payload did."""
    datagrams = [flow.datagrams for flow in evidence.flows if flow.datagrams is not None]
    lost = sum(part.lost for part in datagrams)
    if datagrams and not lost:
        return _nothing_sent(evidence, f"{format_quantity(lost, 'datagram')} lost")
    sizes = {part.datagram_bytes for part in datagrams if part.datagram_bytes}
    of_size = f" of {format_bytes(max(sizes))}" if sizes else ""
    return _nothing_arrived(
        evidence,
        evidence.tense(
            "Sessions open, but no datagram arrives: large ones are lost.",
            "Sessions opened, but no datagram arrived: large ones were lost.",
        ),
        f"{format_quantity(lost, 'datagram')}{of_size} lost; {_describe_mtus(evidence)}",
        f"linkgauge … {_SMALL_DATAGRAMS}; linkgauge mtu PEER finds the largest packet",
        _SMALL_DATAGRAMS,
    )


def _no_payload(evidence: Evidence) -> Finding:
    if evidence.workload.is_datagram:
        return _no_datagrams(evidence)
    known = [flow.retransmits for flow in evidence.flows if flow.retransmits is not None]
    retransmits = sum(known)
    if known and not retransmits:
        return _nothing_sent(evidence, format_quantity(retransmits, "retransmit"))
    near, far = evidence.near.mtu_bytes, evidence.far.mtu_bytes
    end = evidence.near if (near or 0) >= (far or 0) else evidence.far
    least = min((mtu for mtu in (near, far) if mtu is not None), default=1_500)
    return _nothing_arrived(
        evidence,
        evidence.tense(
            "Sessions open, but no payload arrives: large packets are lost.",
            "Sessions opened, but no payload arrived: large packets were lost.",
        ),
        f"{format_quantity(retransmits, 'retransmit')}; {_describe_mtus(evidence)}",
        f"ping -M do -s {least - 28} PEER finds the largest packet; {remedies.set_mtu(end, min(least, 1_500))}",
    )


def _describe_mtus(evidence: Evidence) -> str:
    return f"MTU {evidence.near.mtu_bytes or 'unknown'} local, {evidence.far.mtu_bytes or 'unknown'} remote"


def _nothing_sent(evidence: Evidence, without_loss: str) -> Finding:
    """Return the finding about a run without payload, none of which was lost either: it was too short."""
    longer = remedies.longer_run(evidence)
    return _nothing_arrived(
        evidence,
        evidence.tense("No payload has arrived, and none was lost.", "No payload arrived, and none was lost."),
        f"{without_loss}: {evidence.tense('the test is', 'the test was')} too short for its rate or for the path",
        f"test for longer: linkgauge … {longer}",
        longer,
    )


def _nothing_arrived(
    evidence: Evidence, text: str, reason: str, remedy: str, trial: Trial | None = None
) -> Finding:
    share = None if evidence.expected_bit_s is None else 1.0
    return Finding("no-payload", share, 0.7, text, reason, remedy, weight=1.0, trial=trial)


def _has_full_core(evidence: Evidence) -> bool:
    """Return whether an end has a full core, even one that other processes fill."""
    return has_full_core(evidence.near) or has_full_core(evidence.far)


def _unexplained(evidence: Evidence) -> Finding:
    signs = "no sign of a window, loss or queue limit"
    if evidence.unseen_end is not None:
        unseen = describe_unseen(evidence, evidence.unseen_end)
        signs = f"{unseen}; {signs} at the {evidence.unseen_end.other.label} end"
    elif not _has_full_core(evidence):
        signs = f"no core {evidence.tense('is', 'was')} full; {signs}"
    other = evidence.direction.opposite
    return Finding(
        "unexplained",
        None if evidence.expected_bit_s is None else 1.0,
        _UNEXPLAINED_CONFIDENCE,
        NOT_IDENTIFIED,
        f"{signs}; local {describe_core_load(evidence, evidence.near)}",
        "test for longer, and the other direction: "
        f"linkgauge … {remedies.longer_run(evidence)} --direction {other}",
        weight=1.0,
    )
