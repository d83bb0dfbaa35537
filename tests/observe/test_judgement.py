"""Results of connections: limits by the figures of one end, and no finding if nothing limits it."""

import re
from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.expected_rate import ExpectedRate
from linkgauge.observe.judgement import Circumstances, Judgement, judge
from linkgauge.observe.observation import Status
from linkgauge.observe.thread_loads import ThreadLoad
from linkgauge.presets.diagnosis.diagnose import diagnose
from linkgauge.presets.diagnosis.evidence import HoldShares
from linkgauge.presets.diagnosis.finding import Finding

from ..presets.diagnosis.evidence_cases import LINK, NIC, WANTED_BIT_S, run
from .made_sockets import Socket
from .tracked import OBSERVED, RATE, evidence_of, follow

STEP = 250_000  # a quarter of a second at 8 Mb/s
BUSY_US = 250_000
# Options of a test, placeholders of its command, and what only two ends of linkgauge know.
OF_A_TEST = re.compile(r"(?<!\w)--[a-z]|linkgauge …|preset|other direction|both ends|PEER|iperf3|\btests?\b")
LIMITS: list[dict[str, Any]] = [
    {},
    {"rtt_us": 30_000, "cwnd_bytes": 2_000_000, "holds": HoldShares(20, congestion=1.0)},
    {"rtt_us": 8_000, "min_rtt_us": 7_900, "cwnd_bytes": 300_000, "unacked_bytes": 290_000},
    {"rwnd_limited": 0.9},
    {
        "rwnd_limited": 0.9,
        "holds": HoldShares(20, window=1.0),
        "unacked_bytes": 60_000,
        "peer_window_bytes": 62_000,
    },
    {
        "rwnd_limited": 0.9,
        "holds": HoldShares(20, window=1.0),
        "window_scaling": False,
        "peer_window_bytes": 65_000,
    },
    {"sndbuf_limited": 0.9},
    {"sndbuf_limited": 0.9, "holds": HoldShares(20, buffer=1.0), "send_buffer_bytes": 90_000},
    {"sndbuf_limited": 0.9, "holds": HoldShares(20, buffer=1.0), "send_buffer_bytes": 4_194_304},
    {"retransmits": 4_000, "retransmitted": 0.02, "lossy": 0.9, "intervals": 20, "rate_spread": 0.4},
    {"retransmits": 4_000, "retransmitted": 0.02, "lossy": 0.9, "intervals": 20, "rate_spread": 0.001},
    {"pacing_bit_s": 505_000_000},
    {"max_pacing_bit_s": 505_000_000},
    {"mss_bytes": 536},
    {"timestamps": False},
]
_RISING = {"busy_us", "rwnd_us", "sndbuf_us"}


def around(socket: Socket | None = None, **more: object) -> Circumstances:
    """Return the circumstances of a connection to a host of the documentation's network."""
    info = (socket or Socket()).reading().info
    return Circumstances("192.0.2.9", info, **more)  # pyright: ignore[reportArgumentType]


def sending(rate: ExpectedRate | None = None, **figures: int) -> Judgement:
    """Return the result for a sender of 8 Mb/s with these figures; the clocks' are rises of each sample."""

    def at(n: int) -> Socket:
        now = {name: value * n if name in _RISING else value for name, value in figures.items()}
        return Socket(acked=n * STEP).later(**{"busy_us": n * BUSY_US} | now)

    return judge(evidence_of(follow(at), rate=rate), around(at(12)))


def codes(result: Judgement) -> list[str]:
    """Return the codes of the findings."""
    return [finding.code for finding in result.findings]


def test_a_sender_that_lacks_data_and_uses_a_whole_core_is_limited_by_it() -> None:
    """By its busiest thread; it is no limit of TCP's, and has no finding."""
    track = follow(lambda n: Socket(acked=n * STEP, busy_us=n * BUSY_US // 10))
    results = [
        judge(evidence_of(track), around(program="ssh", thread_load=load))
        for load in (ThreadLoad(0.97, 0.01), ThreadLoad(0.6, 0.36), ThreadLoad(0.3, 0.01), None)
    ]
    assert {(each.status, each.findings) for each in results} == {(Status.APP_LIMITED, ())}
    assert results[0].reason == (
        "The sending program is limited by its CPU core: a thread of ssh uses 97 % of one."
    )
    assert "uses 60 % of one, and waits for one 36 % of the time" in results[1].reason
    assert all(each.reason.startswith("The sending program sets the rate") for each in results[2:])


def test_a_connection_at_the_expected_rate_is_healthy() -> None:
    """Whatever its windows are."""
    result = sending(ExpectedRate(8_000_000, "computed", "a test"), rwnd_us=BUSY_US)
    assert (result.status, result.findings) == (Status.HEALTHY, ())


def test_a_share_of_a_full_interface_is_healthy() -> None:
    """The other transfers have the rest."""
    more = {"unacked": 14, "unsent": 90_000}
    evidence = evidence_of(follow(lambda n: Socket(acked=n * STEP, busy_us=n * BUSY_US, **more)), rate=RATE)
    result = judge(evidence, around(interface="eth0", interface_bit_s=95e6))
    assert (result.status, result.findings) == (Status.HEALTHY, ())
    assert "eth0" in result.reason


def test_a_program_that_sets_its_own_rate_does_so_on_a_full_interface_too() -> None:
    """The other transfers do not slow it down."""
    evidence = evidence_of(follow(lambda n: Socket(acked=n * STEP, busy_us=n * BUSY_US // 5)), rate=RATE)
    result = judge(evidence, around(interface="eth0", interface_bit_s=95e6))
    assert (result.status, result.findings) == (Status.APP_LIMITED, ())


@pytest.mark.parametrize("rate", [None, RATE])
def test_a_constant_window_that_is_full_is_the_limit(rate: ExpectedRate | None) -> None:
    """With an expected rate and without: the kernel's clocks say so, and the samples."""
    window = 20_000
    result = sending(rate, peer_window=window, unacked=13, unsent=50_000, cwnd=40, rwnd_us=BUSY_US)
    assert codes(result)[:1] == ["window-below-bdp"]
    assert result.findings[0].end is End.FAR
    assert result.findings[0].confidence <= 0.7
    assert "the remote host is not seen" in result.findings[0].evidence
    assert "linkgauge check 192.0.2.9" in result.findings[0].remedy
    assert "--window" not in result.findings[0].remedy


def test_a_full_send_buffer_that_does_not_grow_is_this_ends_limit() -> None:
    """Its size is known, so it is more certain."""
    memory = (0, 131_072, 0, 40_000, 0, 36_000, 0, 0, 0)
    evidence = evidence_of(
        follow(
            lambda n: Socket(
                acked=n * STEP, busy_us=n * BUSY_US, sndbuf_us=n * BUSY_US, unacked=14, cwnd=40, memory=memory
            )
        )
    )
    result = judge(evidence, around())
    assert codes(result)[:1] == ["window-below-bdp"]
    assert result.findings[0].end is End.NEAR


def test_a_sender_without_data_has_no_finding() -> None:
    """TCP would send more."""
    result = sending(RATE, busy_us=BUSY_US // 5, unacked=0, unsent=0)
    assert (result.status, result.findings) == (Status.APP_LIMITED, ())
    assert "80 %" in result.reason


@pytest.mark.parametrize("expected_bit_s", [None, WANTED_BIT_S])
def test_no_finding_speaks_of_options_of_a_test_or_of_the_far_ends_figures(expected_bit_s: float | None) -> None:
    """An observed connection has neither: all rules that it can reach, with two links, interfaces and controls."""
    found: list[Finding] = []
    links = (LINK, replace(LINK, timestamps=not LINK.timestamps), None)
    nics = (NIC, replace(NIC, sort="loopback"))
    unseen = {"nic": None, "tcp": None, "cores": (), "process": None, "busiest_worker": None}
    for limit, link, nic, congestion in product(LIMITS, links, nics, ("cubic", "bbr")):
        evidence = run(
            near={"nic": nic},
            far=unseen,
            link=link,
            expected_bit_s=expected_bit_s,
            observed=OBSERVED,
            unseen_end=End.FAR,
            **{"congestion": congestion} | limit,
        )
        result = judge(evidence, around())
        found += result.findings
        assert not OF_A_TEST.search(" ".join(each.evidence + each.text for each in diagnose(evidence))), limit
    texts = {
        text.split("; linkgauge check")[0] for each in found for text in (each.text, each.evidence, each.remedy)
    }
    assert [text for text in texts if OF_A_TEST.search(text)] == []
    reached = {"window-below-bdp", "receive-window", "pacing", "policer"}
    if expected_bit_s is not None:
        reached |= {"path-slow", "loss", "congestion-window", "mss-small", "timestamps-off"}
    assert reached <= {each.code for each in found}


def test_losses_without_a_queue_are_the_limit_and_missing_sack_is_told() -> None:
    """It makes them worse."""
    acked = (0, 3, 4, 8, 9, 14, 15, 17, 23, 24, 28, 29, 35)  # chance lets the rate vary

    def at(n: int) -> Socket:
        rising = {"acked": acked[n] * STEP // 3, "busy_us": n * BUSY_US, "retransmits": n * 2}
        return Socket(unacked=14, unsent=90_000, cwnd=15, options=5).later(**rising)

    result = judge(evidence_of(follow(at), rate=RATE), around(at(12)))
    assert codes(result)[:2] == ["loss", "sack-off"]
    assert "tcp_sack=1" in result.findings[1].remedy


def test_late_segments_are_named_if_they_slow_the_sender_down_and_losses_do_not() -> None:
    """As many as TCP sent again had arrived."""
    acked = (0, 3, 4, 8, 9, 14, 15, 17, 23, 24, 28, 29, 35)

    def at(n: int) -> Socket:
        rising = {"acked": acked[n] * STEP // 3, "busy_us": n * BUSY_US, "retransmits": n * 2}
        rising |= {"needless": min(22, n * 2), "reordered": min(9, n)}
        return Socket(unacked=14, unsent=90_000, cwnd=15).later(**rising)

    late = judge(evidence_of(follow(at), rate=RATE), around(at(12)))
    assert codes(late)[0] == "reordering"
    assert "and 2 had not; the sender saw 9" in late.findings[0].evidence
    assert late.findings[0].confidence <= 0.7


def test_segments_sent_again_that_had_arrived_are_no_losses() -> None:
    """Packets change their order, or answers are late: the window remains the reason."""
    figures = {"peer_window": 20_000, "unacked": 13, "unsent": 50_000, "cwnd": 40}

    def at(n: int) -> Socket:
        rising = {"acked": n * STEP, "busy_us": n * BUSY_US, "rwnd_us": n * BUSY_US, "retransmits": n}
        return Socket().later(**figures, **rising)

    def again(n: int) -> Socket:
        return at(n).later(needless=n)

    lossy, needless = (judge(evidence_of(follow(each), rate=RATE), around(each(12))) for each in (at, again))
    assert "loss" in codes(lossy)
    assert codes(needless) == ["window-below-bdp"]


def test_a_full_path_without_an_expected_rate_is_healthy() -> None:
    """Nobody knows what it should carry."""
    result = sending(None, rtt_us=60_000, unacked=40, unsent=90_000, cwnd=41)
    assert (result.status, result.findings) == (Status.HEALTHY, ())
    assert "--line-rate" in result.reason


def test_a_full_buffer_behind_a_full_queue_is_no_limit() -> None:
    """More in flight would wait in the queue. A full window may be a slow reader's, and stays a finding."""
    result = sending(None, rtt_us=60_000, unacked=40, cwnd=80, sndbuf_us=BUSY_US)
    assert "send-buffer" not in codes(result)
    result = sending(None, rtt_us=60_000, unacked=40, unsent=90_000, cwnd=80, peer_window=58_000, rwnd_us=BUSY_US)
    assert codes(result) == ["receive-window"]


def test_a_slow_path_is_a_finding_with_an_expected_rate() -> None:
    """The words are about this host's interface, because no link was named."""
    result = sending(RATE, rtt_us=60_000, unacked=40, unsent=90_000, cwnd=41)
    assert codes(result)[:1] == ["path-slow"]
    assert result.findings[0].confidence <= 0.7
    assert "this host's interface" in result.findings[0].text


@pytest.mark.parametrize(
    ("socket", "code"),
    [(Socket(probes=3, idle_ms=400), "receive-window"), (Socket(timeouts=4, idle_ms=9_000), "no-payload")],
)
def test_a_transfer_that_stands_still_says_why(socket: Socket, code: str) -> None:
    """A closed window has probes; a broken path has timeouts."""
    result = judge(None, around(socket, stalled=5_000))
    assert (result.status, codes(result)) == (Status.LIMITED, [code])
    assert "5\u00a0000 bytes" in result.findings[0].evidence


def test_a_new_and_an_idle_connection_have_no_finding() -> None:
    """Too short a time, and no payload."""
    assert judge(None, around()).status is Status.NEW
    evidence = evidence_of(follow(lambda n: Socket(acked=min(n, 2) * STEP), samples=30))
    assert judge(evidence, around()).status is Status.IDLE


def test_a_receiver_that_takes_all_says_that_the_sender_decides() -> None:
    """Its window and its losses are seen at the far end."""
    result = judge(evidence_of(follow(lambda n: Socket(received=n * STEP)), Direction.IN), around())
    assert (result.status, result.findings) == (Status.UNKNOWN, ())
    assert "linkgauge observe" in result.reason
