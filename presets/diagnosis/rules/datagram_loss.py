"""Lost datagrams of a UDP run: the place of the losses, and the pattern of losses in the network.

Measured: the numbers that never arrived; the kernels' drops at the session's own sockets (ENOBUFS at the sender,
SO_MEMINFO at the receiver); and the drops of the interface's queueing discipline, of the interface
(/proc/net/dev), and of the queue of a core (/proc/net/softnet_stat). The network dropped the rest.

Meaning: a full socket buffer is a receiver that reads too late, or a buffer too small for its pauses. A full queue
of the sender is a rate above the line's. In the network, single losses at random are noise, as with a bad cable or
radio. Bursts come from a queue or a policer that is full for a moment. Regular losses have one regular cause. If
many are lost, and what arrives is constant, the path is slower than the sender.

A sender that is held up skips datagrams (pacing.py), and they are missing from the rate as well. Its processor is
too busy, or the rate is too high for one thread.

Findings: `sender-starved` for skipped datagrams; `send-queue-full`, `nic-drops`, `backlog-full` and
`socket-buffer-full` for losses within a host; `loss`, `loss-bursts`, `loss-periodic` and `path-slow` for losses in
the network.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Final

from ....engine.model.directions import End
from ....engine.model.plan import MIB, SECOND_NS
from ....engine.results.rate_and_loss import bits_per_second
from ...number_text import (
    format_bytes,
    format_percent,
    format_quantity,
    format_rate,
    format_time,
    group_digits,
)
from .. import remedies
from ..core_load import describe_worker
from ..evidence import DatagramEvidence, EndEvidence, describe_unseen, end_name, nic_name
from ..finding import Finding, FindingCode
from ..flow_view import FlowView
from ..trial import Trial

_MIN_LOSS: Final = 0.001  # 1/1000: the most that acceptance tests of services allow
_MIN_LOST: Final = 10
_MIN_SKIPPED: Final = 0.01
_MIN_PART: Final = 0.05  # of the losses
_EXCESS: Final = 0.02
_CONSTANT: Final = 0.5
_MIN_INTERVALS: Final = 8
_CONFIDENCE: Final = 0.9
_AS_EXPECTED: Final = 0.99
_AS_ASKED: Final = 0.95
_BUFFER_NS: Final = SECOND_NS // 20  # of the rate: a session requests so much for its socket, and at least 4 MiB
_MIN_BUFFER_BYTES: Final = 4 * MIB
_FULL_WORKER: Final = 0.85
_MIN_WAIT: Final = 0.1


def find_datagram_losses(view: FlowView) -> Iterator[Finding]:
    """Yield the findings about lost datagrams, each with the share of the losses that it explains as its weight."""
    datagrams = view.flow.datagrams
    if datagrams is None or datagrams.lost < _MIN_LOST or datagrams.loss < _MIN_LOSS:
        return
    causes = datagrams.causes
    makers: list[tuple[int | None, Callable[[_Part], Finding]]] = [
        (causes.socket, _socket_buffer),
        (causes.backlog, _backlog),
        (causes.receive_nic, _receive_nic),
        (causes.network, _network),
        (causes.send_nic, _send_nic),
        (causes.send_queue, _send_queue),
    ]
    if view.evidence.unseen_end is not None and causes.network is None:
        makers.append((datagrams.lost - sum(count or 0 for count, _ in makers), _beyond_host))
    for count, make in makers:
        if count is not None and count / datagrams.lost >= _MIN_PART:
            yield make(_Part(view, datagrams, count))


def find_sending_limits(view: FlowView) -> Iterator[Finding]:
    """Yield the rate that the user chose, if it is below the expected one and the sender reached it."""
    datagrams, expected_bit_s = view.flow.datagrams, view.flow.expected_bit_s
    asked_bit_s = None if datagrams is None else datagrams.asked_bit_s
    if datagrams is None or asked_bit_s is None or expected_bit_s is None or datagrams.loss >= 1:
        return
    sent_bit_s = view.flow.bit_s / (1 - datagrams.loss)
    if asked_bit_s >= _AS_EXPECTED * expected_bit_s or sent_bit_s < _AS_ASKED * asked_bit_s:
        return
    yield Finding(
        "rate-limited",
        view.budget.take("starved"),
        _CONFIDENCE,
        f"--rate {view.evidence.tense('limits', 'limited')} the test to less than the expected rate.",
        f"{format_rate(sent_bit_s)} of the requested {format_rate(asked_bit_s)} in this direction",
        "linkgauge … --rate expected",
    )


def find_held_sender(view: FlowView) -> Iterator[Finding]:
    """Yield the datagrams that the sender skipped, if nothing else explains its low rate."""
    datagrams, sender = view.flow.datagrams, view.sender
    skipped = 0 if datagrams is None else datagrams.skipped or 0
    if datagrams is None or skipped < max(_MIN_LOST, _MIN_SKIPPED * (datagrams.sent + skipped)):
        return
    share = view.budget.take("starved")
    numbers = f"{format_quantity(skipped, 'datagram')} not sent in time, "
    numbers += f"{format_percent(skipped / (datagrams.sent + skipped))} of those due"
    if sender.busiest_worker is not None:
        numbers += f"; its worker used {format_percent(sender.busiest_worker)} of a core"
    if sender.waiting is not None:
        numbers += f", and waited {format_percent(sender.waiting)} of the time for one"
    slower = remedies.lower_rate(view.flow.bit_s)
    yield Finding(
        "sender-starved",
        share,
        _CONFIDENCE,
        f"The {sender.end.label} sender {view.evidence.tense('is', 'was')} held up: it sent less than requested.",
        numbers,
        f"{remedies.show_processes(sender)}; end them, or linkgauge … {slower}",
        sender.end,
    )


def _share_of_gap(view: FlowView, count: int) -> float:
    """Return the share of the missing rate that lost datagrams are."""
    datagrams = view.flow.datagrams
    if datagrams is None or not datagrams.datagram_bytes or not view.gap_bit_s:
        return 0.0
    lost_bit_s = bits_per_second(count * datagrams.datagram_bytes, view.evidence.span_ns)
    return min(1.0, (lost_bit_s or 0.0) / view.gap_bit_s)


@dataclass(frozen=True, slots=True)
class _Part:
    """The lost datagrams of one cause."""

    view: FlowView
    datagrams: DatagramEvidence
    count: int

    def find(
        self, code: FindingCode, text: str, evidence: str, remedy: remedies.Remedy, end: EndEvidence | None = None
    ) -> Finding:
        """Return the finding about these losses; its weight is their share of all losses."""
        share = self.view.budget.take("network", limit=_share_of_gap(self.view, self.count))
        part = self.count / self.datagrams.lost
        where = None if end is None else end.end
        return Finding(
            code, share, _CONFIDENCE, text, evidence, remedy.text, where, weight=part, trial=remedy.trial
        )

    @property
    def numbers(self) -> str:
        """The number of losses, in words."""
        datagrams, count = self.datagrams, self.count
        share = format_percent(datagrams.loss)
        if count == datagrams.lost:
            return f"{format_quantity(count, 'datagram')} lost, {share} of all"
        lost = format_quantity(datagrams.lost, "lost datagram")
        return f"{group_digits(count)} of {lost}; {share} of all were lost"

    def tense(self, present: str, past: str) -> str:
        """Return the words for an active run, or those for an ended one."""
        return self.view.evidence.tense(present, past)


def _describe_bursts(datagrams: DatagramEvidence) -> str:
    if not datagrams.bursts or datagrams.longest_burst is None:
        return ""
    mean = datagrams.lost / datagrams.bursts
    return f"; in runs of {mean:.1f} on average, {datagrams.longest_burst} at most"


def _socket_buffer(lost: _Part) -> Finding:
    """Return the finding about a receiver that reads too late for its buffer, with the load of its host."""
    end, datagrams, numbers = lost.view.receiver, lost.datagrams, lost.numbers
    if datagrams.buffer_bytes is not None:
        numbers += f"; the socket's buffer {lost.tense('holds', 'held')} {format_bytes(datagrams.buffer_bytes)}"
    numbers += describe_worker(end, ", ")
    was_full = f"The buffer of the {end.end.label} receiver's socket {lost.tense('is', 'was')} full."
    return lost.find("socket-buffer-full", was_full, numbers, _mend_receiver(lost.view, datagrams), end)


def _mend_receiver(view: FlowView, datagrams: DatagramEvidence) -> remedies.Remedy:
    """Return the remedy for a receiver that reads too late: a larger buffer only if the kernel cut it."""
    end = view.receiver
    needed = _needed_buffer_bytes(view)
    allowed = None if end.tcp is None else end.tcp.rmem_max_bytes
    is_cut = allowed is not None and allowed < needed
    if is_cut and (datagrams.buffer_bytes is None or datagrams.buffer_bytes < needed):
        return remedies.Remedy(remedies.raise_buffer_limit(end, needed, is_sender=False))
    trial = remedies.lower_rate(view.flow.bit_s)
    slower = f"linkgauge … {trial}"
    if (end.busiest_worker or 0.0) >= _FULL_WORKER:
        larger = ", or larger datagrams (--datagram auto)" if (datagrams.datagram_bytes or 0) < 1_000 else ""
        return remedies.Remedy(f"{slower}{larger}: one session can use one core", trial)
    if (end.waiting or 0.0) >= _MIN_WAIT:
        return remedies.Remedy(f"{remedies.show_processes(end)}; end them, or {slower}", trial)
    return remedies.Remedy(f"{remedies.show_states(end)}; or {slower}", trial)


def _needed_buffer_bytes(view: FlowView) -> int:
    """Return the buffer that each session requests: 50 ms of its rate, and at least 4 MiB."""
    rate_bit_s = max(view.target_bit_s, view.flow.bit_s) / view.evidence.sessions
    return remedies.round_window(max(_MIN_BUFFER_BYTES, rate_bit_s / 8 * _BUFFER_NS / SECOND_NS) / 1.5)


def _backlog(lost: _Part) -> Finding:
    end, is_or_was = lost.view.receiver, lost.tense("is", "was")
    text = f"A CPU core of {end_name(end.end)} {is_or_was} too slow for its packets."
    numbers = f"{lost.numbers}; the queue before that core {is_or_was} full"
    return lost.find("backlog-full", text, numbers, remedies.Remedy(remedies.lengthen_backlog(end)), end)


def _receive_nic(lost: _Part) -> Finding:
    end = lost.view.receiver
    text = f"{nic_name(end)} drops frames because the host takes them too slowly."
    return lost.find("nic-drops", text, lost.numbers, remedies.Remedy(remedies.enlarge_receive_ring(end)), end)


def _send_nic(lost: _Part) -> Finding:
    end = lost.view.sender
    longer = f"{remedies.show_nic_errors(end)}; longer queue, {remedies.lengthen_send_queue(end)}"
    text = f"{nic_name(end)} drops frames that it should send."
    return lost.find("nic-drops", text, lost.numbers, remedies.Remedy(longer), end)


def _send_queue(lost: _Part) -> Finding:
    end, rate_bit_s, asked_bit_s = lost.view.sender, lost.view.flow.bit_s, lost.datagrams.asked_bit_s
    numbers = lost.numbers
    if asked_bit_s is not None:
        numbers += f"; {format_rate(asked_bit_s)} requested, {format_rate(rate_bit_s)} arrived"
    text = f"{end_name(end.end).capitalize()} sends more than its queue holds: its own kernel drops the rest."
    slower = remedies.lower_rate(rate_bit_s)
    remedy = remedies.Remedy(f"linkgauge … {slower}; to see the queue, {remedies.show_queue(end)}", slower)
    return lost.find("send-queue-full", text, numbers, remedy, end)


def _beyond_host(lost: _Part) -> Finding:
    """Return the finding about losses in the network, or in a host without counters."""
    unseen = lost.view.evidence.unseen_end or End.FAR
    slower = remedies.lower_rate(lost.view.flow.bit_s)
    return lost.find(
        "loss",
        f"Datagrams {lost.tense('are', 'were')} lost on the path or in the {unseen.label} host.",
        f"{lost.numbers}; {describe_unseen(lost.view.evidence, unseen)}",
        remedies.Remedy(f"linkgauge … {slower}; or linkgauge endpoint there, to tell the two apart", slower),
    )


def _network(lost: _Part) -> Finding:
    """Return the finding about losses outside both hosts, by their pattern."""
    datagrams, bursts = lost.datagrams, f"{lost.numbers}{_describe_bursts(lost.datagrams)}"
    slower = remedies.lower_rate(lost.view.flow.bit_s)
    are = lost.tense("are", "were")
    if _exceeds_path(lost.view, datagrams):
        return _slow_path(lost, slower)
    if datagrams.pattern == "bursts":
        overflows = lost.tense("overflows", "overflowed")
        text = f"Datagrams {are} lost in bursts on the path: a short queue or a policer {overflows}."
        below = f"linkgauge … {slower}, to stay below its rate"
        look = f"{below}; then look for policers and queue drops at switches and routers"
        return lost.find("loss-bursts", text, bursts, remedies.Remedy(look, slower))
    if datagrams.pattern == "periodic":
        period = datagrams.period_ns
        text = f"Datagrams {are} lost at regular intervals on the path: the cause is regular."
        bursts += "" if period is None else f"; a loss every {format_time(period / 1e3)}"
        look = "look for what happens so often: a policer, a scan of a wireless interface, a table that is aged out"
        return lost.find("loss-periodic", text, bursts, remedies.Remedy(look))
    chance = " one by one" if datagrams.pattern == "random" else ""
    faults = f"{remedies.show_nic_errors(lost.view.receiver)}; then check cable, optics, radio and switch ports"
    full = f"{faults}, or test for a full queue: linkgauge … {slower}"
    return lost.find(
        "loss", f"Datagrams {are} lost{chance} on the path.", lost.numbers, remedies.Remedy(full, slower)
    )


def _exceeds_path(view: FlowView, datagrams: DatagramEvidence) -> bool:
    """Return whether much is lost, and yet what arrives is constant: the path has room for no more.

    Losses by chance leave a rate that spreads by sqrt(p / (1 - p) / n), with a loss of p and n datagrams in each
    interval.
    """
    flow, loss = view.flow, datagrams.loss
    if not _EXCESS <= loss < 1 or flow.rate_spread is None or flow.intervals < _MIN_INTERVALS:
        return False
    by_chance = sqrt(loss / (1 - loss) * flow.intervals / max(1, datagrams.sent))
    return datagrams.period_ns is None and flow.rate_spread <= _CONSTANT * by_chance


def _slow_path(lost: _Part, slower: Trial) -> Finding:
    """Return the finding about a full queue or a policer that lets a constant rate pass."""
    evidence, bit_s = lost.view.evidence, lost.view.flow.bit_s
    is_short = evidence.expected_bit_s is not None and not evidence.is_as_expected
    numbers = f"{lost.numbers}; {format_rate(bit_s)} {lost.tense('arrives', 'arrived')} at any time"
    return lost.find(
        "path-slow" if is_short else "loss-bursts",
        f"The path {lost.tense('carries', 'carried')} less than was sent, and {lost.tense('drops', 'dropped')} the "
        "rest.",
        numbers,
        remedies.Remedy(
            f"linkgauge … {slower}, to stay below its rate; then check port speeds and shapers on the path "
            f"({remedies.SHOW_BUCKET})",
            slower,
        ),
    )
