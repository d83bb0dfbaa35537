"""Lost datagrams: the host or the network that lost them, the pattern, and the remedy."""

from dataclasses import replace
from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.host_info import TcpSysctls
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.udp.loss_location import LossCauses
from linkgauge.presets.diagnosis.diagnose import diagnose
from linkgauge.presets.diagnosis.evidence import DatagramEvidence, Evidence
from linkgauge.presets.diagnosis.finding import Finding

from ..evidence_cases import FULL, IDLE, run, unseen

NONE = {"send_queue": 0, "send_nic": 0, "network": 0, "receive_nic": 0, "backlog": 0, "socket": 0}
LARGE_BUFFERS = TcpSysctls(rmem_max_bytes=64 << 20)
MBIT_S = 940.0


def udp(
    lost: int,
    causes: dict[str, int],
    mbit_s: float = MBIT_S,
    *,
    ends: dict[str, Any] | None = None,
    **datagrams: Any,
) -> Evidence:
    """Return a UDP run of 5 s out over a 1 Gb link, of which datagrams were lost for these causes."""
    sent = lost + round(mbit_s * 1e6 * 5 / 8 / 1_472)
    values = {"datagram_bytes": 1_472, "buffer_bytes": 4 << 20} | datagrams
    evidence = DatagramEvidence(sent, lost, LossCauses(**(NONE | causes)), **values)
    tcp = {"retransmits": None, "retransmitted": None, "rtt_us": None, "min_rtt_us": None, "mss_bytes": None}
    return run(mbit_s, workload=Workload.UDP, busy=None, timestamps=None, datagrams=evidence, **tcp, **(ends or {}))


def first(evidence: Evidence) -> Finding:
    """Return the first finding."""
    return diagnose(evidence)[0]


@pytest.mark.parametrize(
    ("causes", "code", "end", "words"),
    [
        (
            {"socket": 4_000},
            "socket-buffer-full",
            End.FAR,
            "remote end: sysctl -w net.core.rmem_max=8388608",
        ),
        ({"backlog": 4_000}, "backlog-full", End.FAR, "sysctl -w net.core.netdev_max_backlog=10000"),
        ({"receive_nic": 4_000}, "nic-drops", End.FAR, "at the remote end: ethtool -G eth0 rx 4096"),
        ({"send_nic": 4_000}, "nic-drops", End.NEAR, "at the local end: ip link set dev eth0 txqueuelen 10000"),
        ({"send_queue": 4_000}, "send-queue-full", End.NEAR, "linkgauge … --rate 893M"),
        ({"network": 4_000}, "loss", None, "at the remote end: ip -s -s link show eth0"),
    ],
)
@pytest.mark.parametrize("mbit_s", [700.0, MBIT_S])
def test_a_loss_is_named_by_its_place(
    causes: dict[str, int], code: str, end: End | None, words: str, mbit_s: float
) -> None:
    """At the expected rate as well as below it, with the command that helps."""
    finding = first(udp(4_000, causes, mbit_s))
    assert (finding.code, finding.end) == (code, end)
    assert words.replace("893M", f"{int(0.95 * mbit_s)}M") in finding.remedy
    assert "4 000 datagrams lost" in finding.evidence.replace("\u00a0", " ")
    assert (finding.share is None) == (mbit_s == MBIT_S)


@pytest.mark.parametrize(
    ("pattern", "more", "code", "words"),
    [
        ("random", {}, "loss", "one by one on the path"),
        (None, {}, "loss", "lost on the path"),
        ("bursts", {"bursts": 100, "longest_burst": 60}, "loss-bursts", "a short queue or a policer"),
        ("periodic", {"period_ns": 1_500_000_000}, "loss-periodic", "at regular intervals"),
        ("periodic", {}, "loss-periodic", "at regular intervals"),
    ],
)
def test_the_pattern_of_the_networks_losses_is_named(
    pattern: str | None, more: dict[str, Any], code: str, words: str
) -> None:
    """A queue and a cable lose datagrams in different patterns."""
    finding = first(udp(4_000, {"network": 4_000}, pattern=pattern, **more))
    assert finding.code == code
    assert words in finding.text
    assert ("a loss every 1.5 s" in finding.evidence) is ("period_ns" in more)
    if "bursts" in more:
        assert "in runs of 40.0 on average, 60 at most" in finding.evidence


def test_several_causes_are_named_by_their_part_of_the_losses() -> None:
    """The largest first; a twentieth is too little to be named."""
    findings = diagnose(udp(10_000, {"network": 6_000, "socket": 3_900, "send_queue": 100}))
    assert [finding.code for finding in findings] == ["loss", "socket-buffer-full"]
    assert [finding.weight for finding in findings] == pytest.approx([0.6, 0.39])


@pytest.mark.parametrize("lost", [0, 9, 200])
def test_a_few_lost_datagrams_are_not_a_finding(lost: int) -> None:
    """Below a thousandth."""
    assert first(udp(lost, {"network": lost})).code == "at-expected"


@pytest.mark.parametrize(
    ("far", "words"),
    [
        ({"tcp": LARGE_BUFFERS, "busiest_worker": 0.97, "cores": FULL}, "one session can use one core"),
        ({"tcp": LARGE_BUFFERS, "busiest_worker": 0.5, "waiting": 0.4}, "ps -eo pid,psr,pcpu,comm"),
        ({"tcp": LARGE_BUFFERS, "busiest_worker": 0.3, "waiting": 0.01}, "see what stops it (T stopped"),
        ({"tcp": None, "busiest_worker": 0.3, "waiting": 0.01}, "see what stops it (T stopped"),
    ],
)
def test_a_receiver_that_reads_too_late_has_the_remedy_for_its_cause(far: dict[str, Any], words: str) -> None:
    """If the kernel allows a larger buffer, the buffer is not the reason."""
    assert words in first(udp(4_000, {"socket": 4_000}, ends={"far": far})).remedy


def test_a_receiver_that_is_too_slow_for_small_datagrams_may_get_larger_ones() -> None:
    """Small ones cost it as much as large ones."""
    slow = {"far": {"tcp": LARGE_BUFFERS, "busiest_worker": 0.97}}
    assert "--datagram auto" in first(udp(90_000, {"socket": 90_000}, datagram_bytes=64, ends=slow)).remedy
    assert "--datagram" not in first(udp(90_000, {"socket": 90_000}, ends=slow)).remedy


def test_a_rate_below_the_expected_one_is_the_users_own() -> None:
    """A loss on top of it has a finding of its own."""
    slow = udp(0, {}, 500.0, asked_bit_s=500_000_000)
    assert [finding.code for finding in diagnose(slow)] == ["rate-limited"]
    lossy = udp(8_000, {"network": 8_000}, 480.0, asked_bit_s=500_000_000)
    assert [finding.code for finding in diagnose(lossy)] == ["rate-limited", "loss"]


def test_a_sender_that_cannot_send_the_expected_rate_is_limited_by_its_core() -> None:
    """The link could carry more."""
    full = {"near": {"cores": FULL, "busiest_worker": 0.98}, "far": {"cores": IDLE}}
    finding = first(udp(0, {}, 500.0, ends=full, asked_bit_s=950_000_000))
    assert (finding.code, finding.end) == ("core-saturated", End.NEAR)


def test_losses_inwards_are_those_of_the_other_ends() -> None:
    """Then the far end sends."""
    evidence = udp(4_000, {"socket": 4_000})
    (flow,) = evidence.flows
    inwards = replace(evidence, direction=Direction.IN, flows=(replace(flow, direction=Direction.IN),))
    assert first(inwards).end is End.NEAR
    assert first(inwards).remedy.startswith("at the local end: ")


def test_datagrams_of_which_none_arrives_may_be_too_large() -> None:
    """The handshake's datagrams were small; the words of TCP would not help."""
    finding = first(udp(4_000, {"network": 4_000}, 0.0))
    assert finding.code == "no-payload"
    assert finding.evidence.replace("\u00a0", " ").startswith("4 000 datagrams of 1 472 bytes lost; MTU 1500 local")
    assert finding.remedy == "linkgauge … --datagram 1200; linkgauge mtu PEER finds the largest packet"


def test_datagrams_without_arrivals_or_losses_need_not_be_smaller() -> None:
    """The test was too short."""
    finding = first(udp(0, {}, 0.0))
    assert finding.code == "no-payload"
    assert "0 datagrams lost" in finding.evidence.replace("\u00a0", " ")
    assert "--datagram" not in finding.remedy


def test_losses_against_an_iperf3_are_on_the_path_or_in_its_host() -> None:
    """The local kernel's drops have a finding of their own; the place of the rest is unknown."""
    causes = LossCauses(send_queue=100, send_nic=0)
    evidence = udp(1_000, {}, 900.0)
    (flow,) = evidence.flows
    assert flow.datagrams is not None
    flow = replace(flow, datagrams=replace(flow.datagrams, causes=causes))
    rest, own = diagnose(unseen(replace(evidence, flows=(flow,))))[:2]
    assert (rest.code, rest.end, own.code, own.end) == ("loss", None, "send-queue-full", End.NEAR)
    assert rest.text == "Datagrams are lost on the path or in the remote host."
    assert "900 of 1" in rest.evidence


@pytest.mark.parametrize("expected_bit_s", [None, 948e6])
def test_a_sender_that_skipped_datagrams_was_held_up(expected_bit_s: float | None) -> None:
    """The summary has the number of unsent ones: a longer test does not find another cause."""
    ends = {"near": {"waiting": 0.03, "busiest_worker": 0.4}, "expected_bit_s": expected_bit_s}
    finding = first(udp(0, {}, 500.0, ends=ends, skipped=27_856, asked_bit_s=948_000_000))
    assert finding.code == "sender-starved"
    assert finding.end is End.NEAR
    assert finding.evidence.replace("\u00a0", " ") == (
        "27 856 datagrams not sent in time, 12 % of those due; its worker used 40 % of a core, "
        "and waited 3 % of the time for one"
    )
    assert finding.share == (None if expected_bit_s is None else 1.0)


def test_a_few_skipped_datagrams_do_not_matter() -> None:
    """Each sender is late at times."""
    finding = first(udp(0, {}, 800.0, skipped=300, asked_bit_s=948_000_000))
    assert finding.code == "unexplained"


def test_a_constant_rate_in_spite_of_many_losses_is_a_slow_path() -> None:
    """Losses by chance leave a rate that varies; a full queue or a policer lets a constant rate pass."""
    lossy = udp(12_000, {"network": 12_000}, mbit_s=28.7, pattern="random", bursts=11_000)

    def spread(share: float) -> Evidence:
        return replace(lossy, flows=tuple(replace(each, intervals=28, rate_spread=share) for each in lossy.flows))

    limited = first(spread(0.002))
    assert (limited.code, limited.trial is not None) == ("path-slow", True)
    assert first(spread(0.03)).code == "loss"
