"""Why a connection of another program is slow, at the end that sends: the rules of a run, by one end's figures.

Pure. A run knows more: the far end's host and its options. So a finding that the far end could refute is less
certain here, and its remedy names what would decide. A remedy that starts a test with other options has another one
in its place: linkgauge cannot start the program again.

No finding without a limit: a sender that lacks data, or that fills its path, is as fast as it can be. Without an
expected rate a full path is not a slow path.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from ..engine.model.directions import Direction, End
from ..engine.model.texts.shell_commands import shell_command
from ..presets.diagnosis import remedies
from ..presets.diagnosis.diagnose import diagnose
from ..presets.diagnosis.evidence import Evidence
from ..presets.diagnosis.finding import Finding, FindingCode
from ..presets.diagnosis.flow_view import FlowView, flow_views
from ..presets.number_text import format_quantity

_EMPTY: Final = 0.5  # of the samples, or of the time: a sender that lacks data so often
_BUFFERED: Final = 0.2  # of the time: a full send buffer that is small has nothing unsent either
_FAR_CONFIDENCE: Final = 0.7
# What these say is about linkgauge's own ends, or about a sender that lacks data: no limit of TCP's.
_NOT_OBSERVED: Final[set[FindingCode]] = {
    "at-expected",
    "another-link",
    "sender-starved",
    "core-saturated",
    "steal",
    "cpu-quota",
    "sessions-few",
    "tester-limited",
    "unexplained",
    "no-payload",
}
_ON_FULL_PATH: Final[set[FindingCode]] = {"path-slow", "congestion-window", "acks-queued"}
# A larger buffer would only make the queue longer. A slow reader delays acknowledgements, which looks like a queue.
_WITH_FULL_QUEUE: Final[set[FindingCode]] = {"send-buffer", "window-below-bdp"}
_LOSSES: Final[set[FindingCode]] = {"loss", "retransmission-storm", "policer"}
_OF_FAR_END: Final[set[FindingCode]] = {
    "receive-window",
    "loss",
    "retransmission-storm",
    "policer",
    "path-slow",
    "pacing",
    "mss-small",
    "reordering",
}


def diagnose_observed(evidence: Evidence) -> tuple[Finding, ...]:
    """Return the findings of a connection that this host sends on, the strongest first.

    None for one that reaches its expected rate, that lacks data, or that this host receives on: what the receiver's
    kernel shows is not part of the evidence.
    """
    view = flow_views(evidence)[0]
    if evidence.direction is not Direction.OUT or evidence.is_as_expected or lacks_data(view):
        return ()
    findings = [_adapt(view, each) for each in diagnose(evidence) if each.code not in _NOT_OBSERVED]
    if evidence.expected_bit_s is None:
        spared = _ON_FULL_PATH | _WITH_FULL_QUEUE if view.fills_queue else _ON_FULL_PATH
        findings = [each for each in findings if each.code not in spared]
    return tuple(findings)


def lacks_data(view: FlowView) -> bool:
    """Return whether the sending program gives TCP less than it could send.

    A program that writes little and often always has something in flight on a long path, so that TCP is busy all
    the time. The kernel notes then that it lacked data, unless packets still wait in this host. But data that waits
    for the peer's window most of the time is not lacking, though a small buffer runs empty for moments.
    """
    flow, budget, holds = view.flow, view.budget, view.flow.holds
    if (flow.rwnd_limited or 0.0) >= _EMPTY:
        return False
    if holds is not None and holds.empty >= _EMPTY:
        return True
    buffered = max(flow.sndbuf_limited or 0.0, 0.0 if holds is None else holds.buffer)
    if (flow.app_limited or 0.0) >= _EMPTY and buffered < _BUFFERED:
        return True
    return budget.starved >= max(budget.receiver, budget.buffer, budget.network)


def describe_decision(remote_host: str) -> str:
    """Return the test that decides what one end alone cannot."""
    return f"{shell_command('linkgauge', 'check', remote_host)} would decide, with linkgauge endpoint there"


def _adapt(view: FlowView, finding: Finding) -> Finding:
    """Return a run's finding in words for a connection that linkgauge did not make."""
    observed = view.evidence.observed
    remote = "PEER" if observed is None else observed.remote_host
    remedy = _REMEDIES.get(finding.code, finding.remedy)
    if finding.code in _COMMANDS:
        remedy = _COMMANDS[finding.code](view)
    evidence, confidence = finding.evidence, finding.confidence
    if finding.code in _OF_FAR_END or finding.end is End.FAR:
        confidence = min(confidence, _FAR_CONFIDENCE)
        remedy = f"{remedy}; {describe_decision(remote)}"
    if finding.code in _LOSSES and view.flow.needless:
        evidence += f"; {format_quantity(view.flow.needless, 'more segment')} sent again had arrived (RFC 2883)"
    text = finding.text.replace("a link of this kind", "this host's interface")
    remedy = remedy.replace("PEER", remote)
    return replace(finding, text=text, evidence=evidence, confidence=confidence, remedy=remedy, trial=None)


def _show_losses(view: FlowView) -> str:
    return f"{remedies.show_nic_errors(view.sender)}; then check cable, optics and switch ports"


def _larger_buffer(view: FlowView) -> str:
    size_bytes = remedies.round_window(2 * (view.needed_window_bytes or 0))
    return remedies.raise_autotuning_limit(view.sender, size_bytes, is_sender=True)


# In place of remedies that are options of a test.
_REMEDIES: Final[dict[FindingCode, str]] = {
    "receive-window": "at the remote end: see whether its program reads in time; ss -tm shows Recv-Q",
    "policer": "ask for the policer's rate and burst, and send below it",
    "congestion-window": "wait: it grows; or use several connections",
    "timestamps-on": "nothing to do",
}
_COMMANDS: Final[dict[FindingCode, Callable[[FlowView], str]]] = {
    "send-buffer": _larger_buffer,
    "loss": _show_losses,
    "retransmission-storm": _show_losses,
    "path-slow": lambda view: f"{remedies.show_queue(view.sender)}; then check port speeds and shapers",
}
