"""The place of the queue, on made-up links of known queues."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.counters.samples import CoreTimes, LatencyCounts, ProbeSample
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Event, Sampled, Started
from linkgauge.engine.model.expected_rate import Expectation, ExpectedRate
from linkgauge.engine.model.host_info import NicInfo
from linkgauge.engine.model.plan import ResponsivenessTest
from linkgauge.engine.model.serialization import decode, encode
from linkgauge.engine.results.meter import Meter
from linkgauge.presets.diagnosis.evidence import Evidence
from linkgauge.presets.diagnosis.finding import Finding
from linkgauge.presets.diagnosis.live import EvidenceCollector, LiveDiagnosis
from linkgauge.presets.diagnosis.rules.queue import find_queues

from ....engine.results.responsiveness_runs import MS, Link, Queue, steady, times, with_datagrams, with_probes
from ..evidence_cases import check_sentences, probed, unseen_sender

OUT, IN, DUPLEX = Direction.OUT, Direction.IN, Direction.DUPLEX


def find(events: list[Event]) -> tuple[Finding, ...]:
    """Return the findings of a run that has ended."""
    meter = Meter()
    watch = LiveDiagnosis(meter)
    for event in events:
        meter.feed(event)
    return check_sentences(watch.final_findings)


def places(findings: tuple[Finding, ...]) -> set[tuple[str, End | None, Direction | None]]:
    """Return the code, the end and the direction of each finding."""
    return {(finding.code, finding.end, finding.direction) for finding in findings}


def sawtooth(out_ms: float) -> Queue:
    """Return a queue that TCP drains to three quarters and fills again."""
    return lambda flow, at_s: out_ms * (0.75 + 0.25 * (at_s % 1.6) / 1.6) if flow is OUT else 0.0


@given(
    sessions=st.sampled_from([1, 16]),
    mbit_s=st.sampled_from([9.4, 941.0]),
    size_ms=st.sampled_from([10, 50, 200, 400]),
    place=st.sampled_from(["sender", "middle"]),
    direction=st.sampled_from([OUT, IN]),
    has_datagrams=st.sampled_from([True, False]),
)
def test_a_queue_is_found_at_its_place(
    direction: Direction, place: str, size_ms: float, mbit_s: float, sessions: int, has_datagrams: bool
) -> None:
    """By direction, and at the sender's host or in the path; with UDP and without it."""
    link = Link(
        steady(size_ms if direction is OUT else 0.0, size_ms if direction is IN else 0.0),
        mbit_s,
        local=1.0 if place == "sender" else 0.0,
        sessions=sessions,
        has_datagrams=has_datagrams,
    )
    findings = find(link.events())
    end = End.NEAR if direction is OUT else End.FAR
    code = {End.NEAR: "queue-local", End.FAR: "queue-remote"}[end] if place == "sender" else "queue-path"
    assert places(findings) == {(code, end if place == "sender" else None, direction)}
    [finding] = findings
    assert finding.share == pytest.approx(1.0, abs=0.02)
    assert finding.confidence >= 0.7
    assert f"latency rose by {size_ms}" in finding.evidence
    assert "eth0" in finding.remedy


def test_both_ends_can_have_a_queue_at_once() -> None:
    """Each has a finding, the longer queue first."""
    findings = find(Link(steady(20, 90), local=1.0).events())
    assert [(finding.code, finding.direction) for finding in findings] == [
        ("queue-remote", IN),
        ("queue-local", OUT),
    ]


def test_one_direction_may_have_a_queue_in_the_path_and_the_other_one_none() -> None:
    """As on a home line, whose uplink has the long queue."""
    assert places(find(Link(steady(180, 2)).events())) == {("queue-path", None, OUT)}


@pytest.mark.parametrize(
    ("local", "code"), [(0.3, "queue-path"), (0.45, "queue-path"), (0.55, "queue-local"), (0.9, "queue-local")]
)
def test_of_two_queues_one_after_the_other_the_longer_one_counts(local: float, code: str) -> None:
    """The share is its part of the rise, and the evidence has both."""
    [finding] = find(Link(steady(100, 0), local=local).events())
    assert finding.code == code
    assert finding.share == pytest.approx(local if code == "queue-local" else 1 - local, abs=0.02)
    assert f"a packet waited {round(100 * local)} ms at the local end" in finding.evidence


@pytest.mark.parametrize(
    "link",
    [
        Link(),
        Link(steady(0.8, 0.3)),
        Link(steady(4.5, 4.5)),
        Link(steady(0.8, 0.3), has_datagrams=False),
        Link(has_queue_readings=False),
        Link(has_queue_readings=False, has_datagrams=False, has_handshakes=False),
        Link(steady(0.4, 0.4), local=1.0),
    ],
)
def test_a_healthy_link_has_no_queue(link: Link) -> None:
    """An interface's burst is not a queue, and neither is the unknown queue of a host."""
    [finding] = find(link.events())
    assert (finding.code, finding.end, finding.direction) == ("no-queue", None, None)
    assert finding.remedy == "nothing to do"


def test_sessions_that_wait_in_queues_of_their_own_delay_no_other_traffic() -> None:
    """Fair queueing: TCP's round trips rise, and the probes' do not, for any queue of the interface."""
    for local in (0.0, 1.0):
        [finding] = find(Link(steady(50, 50), local=local, has_own_queues=True, qdisc="fq").events())
        assert finding.code == "no-queue"
        assert "rose by 50" in finding.evidence
        assert "queues of their own" in finding.evidence


def test_a_queue_that_saws_is_found() -> None:
    """Its mean counts."""
    assert places(find(Link(sawtooth(200)).events())) == {("queue-path", None, OUT)}


def test_a_queue_that_is_still_filling_is_found_with_less_confidence() -> None:
    """The test ended before it was full."""
    [finding] = find(Link(lambda flow, at_s: 46 * at_s if flow is OUT else 0.0).events())
    assert finding.code == "queue-path"
    steady_one = find(Link(steady(200, 0)).events())[0]
    assert finding.confidence < steady_one.confidence


def slow_answers(events: list[Event], slow_ms: float) -> list[Event]:
    """Return a run whose requests under load wait for a process that has no core, and whose cores are full."""
    full = (CoreTimes(200_000_000, 0, 0, 0, 0),)
    late = with_probes(events, lambda _, probe: replace(probe, latency=times(round(slow_ms * MS), 8)))
    return [
        replace(event, sample=replace(event.sample, cores=full)) if isinstance(event, Sampled) else event
        for event in late
    ]


def test_a_busy_host_that_answers_late_is_not_a_queue() -> None:
    """The kernels' round trips do not rise; the cores show the reason."""
    [finding] = find(slow_answers(Link(has_datagrams=False).events(), 25))
    assert finding.code == "no-queue"
    assert finding.confidence < 0.75
    assert "a host was busy" in finding.text
    assert "100 % busy" in finding.evidence
    assert "ps -eo" in finding.remedy


@pytest.mark.parametrize(("handshake_ms", "code"), [(3.0, "no-queue"), (24.0, "queue-path")])
def test_handshakes_tell_a_device_that_answers_late_from_a_queue(handshake_ms: float, code: str) -> None:
    """The device alone sends, and its TCP is not seen: a kernel times the handshakes of new connections."""
    case = probed(unseen_sender(90.0), 25.0, handshake_ms=handshake_ms)
    assert [finding.code for finding in find_queues(case)] == [code]


def test_a_busy_host_does_not_hide_a_queue() -> None:
    """The kernels' round trips rise as well."""
    findings = find(slow_answers(Link(steady(50, 0), has_datagrams=False).events(), 60))
    assert ("queue-path", None, OUT) in places(findings)


@pytest.mark.parametrize("place", ["sender", "middle"])
def test_without_samples_of_the_far_end_its_queue_is_somewhere_in_the_path(place: str) -> None:
    """Its queue is unknown: the evidence says so, and the confidence is lower."""
    local = 1.0 if place == "sender" else 0.0
    events = Link(steady(0, 60), local=local).events()
    kept = [
        event
        for event in events
        if not (isinstance(event, Sampled) and event.sample.end is End.FAR and event.settings.direction is IN)
    ]
    [finding] = find(kept)
    assert (finding.code, finding.direction) == ("queue-path", IN)
    assert finding.confidence <= 0.7
    assert "the queue in the interface of the remote end is unknown" in finding.evidence


def test_a_jittery_path_needs_a_longer_rise() -> None:
    """10 ms mean nothing if one probe in fifty takes 20 ms without any load."""
    events = Link(steady(10, 0)).events()
    first = events[0]
    assert isinstance(first, Started)
    assert first.idle is not None
    assert first.idle.datagrams is not None
    buckets = (times(round(0.4 * MS), 1).buckets[0], times(20 * MS, 1).buckets[0])
    latency = LatencyCounts(OUT, buckets, (195, 5))
    idle = replace(first.idle, datagrams=replace(first.idle.datagrams, latency=latency))
    [finding] = find([replace(first, idle=idle), *events[1:]])
    assert finding.code == "no-queue"
    assert "varies as much without load" in finding.text


def test_acknowledgements_of_a_download_can_fill_the_uplink() -> None:
    """The rise is on the way out while the load is in."""

    def turn(_: Sampled, probe: ProbeSample) -> ProbeSample:
        datagrams = probe.datagrams
        assert datagrams is not None
        return with_datagrams(probe, rise_out=datagrams.rise_in, rise_in=datagrams.rise_out)

    changed = with_probes(Link(steady(0, 60), phases=(IN,)).events(), turn)
    [finding] = find(changed)
    assert (finding.code, finding.direction) == ("queue-path", OUT)
    assert "with load in" in finding.evidence


@pytest.mark.parametrize("has_datagrams", [True, False])
@pytest.mark.parametrize("local", [0.0, 1.0])
def test_a_load_both_ways_alone_tells_the_direction_if_a_reading_does(has_datagrams: bool, local: float) -> None:
    """One-way delays do, and a sender's own queue; else it is in the path of either."""
    [finding] = find(Link(steady(80, 0), phases=(DUPLEX,), has_datagrams=has_datagrams, local=local).events())
    assert finding.code == ("queue-local" if local else "queue-path")
    assert finding.direction is (OUT if has_datagrams or local else None)


def test_a_queue_whose_direction_is_unknown_has_a_remedy_of_neither() -> None:
    """With load both ways and round trips alone, a command for what one end sends would be a guess."""
    for out_ms, in_ms in ((80, 0), (0, 80)):
        link = Link(steady(out_ms, in_ms), phases=(DUPLEX,), has_datagrams=False, local=0.0)
        [finding] = find(link.events())
        assert (finding.code, finding.direction) == ("queue-path", None)
        assert "one direction at a time" in finding.remedy
        assert not {"eth0", "local", "remote"} & set(finding.remedy.split())


def alongside(link: Link, expected_bit_s: int | None) -> list[Event]:
    """Return a run in one direction beside the plan's own load."""
    first, *rest = replace(link, phases=(OUT,)).events()
    assert isinstance(first, Started)
    rate = None if expected_bit_s is None else ExpectedRate(expected_bit_s, "documented", "table 1")
    plan = replace(first.plan, responsiveness=ResponsivenessTest.ALONGSIDE)
    return [replace(first, plan=plan, expectation=Expectation(out=rate)), *rest]


def test_a_check_has_the_findings_about_its_rate_and_those_about_queues() -> None:
    """At the expected rate there can be a queue."""
    findings = find(alongside(Link(steady(80, 0)), 94_000_000))
    assert [finding.code for finding in findings] == ["at-expected", "queue-path"]
    assert [finding.code for finding in find(alongside(Link(steady(80, 0)), None))] == ["queue-path"]


@pytest.mark.parametrize(
    ("qdisc", "command"),
    [
        ("pfifo_fast", "tc qdisc replace dev eth0 root fq_codel"),
        ("tbf", "tc qdisc replace dev eth0 root cake bandwidth 94.8mbit"),
        ("htb", "tc qdisc replace dev eth0 root cake bandwidth 94.8mbit"),
    ],
)
def test_the_remedy_for_a_senders_own_queue_is_one_that_manages_it(qdisc: str, command: str) -> None:
    """A shaper is replaced by one with a short queue, at 95 % of what the interface sent."""
    [finding] = find(Link(steady(40, 0), local=1.0, qdisc=qdisc).events())
    assert finding.remedy == f"at the local end: {command}"


def test_the_remedy_for_a_queue_in_the_path_is_to_send_a_little_less() -> None:
    """At the sender, or before the slow link."""
    [finding] = find(Link(steady(0, 40)).events())
    assert finding.remedy.startswith("at the remote end: tc qdisc replace dev eth0 root cake bandwidth 94.8mbit")
    assert "router before the slow link" in finding.remedy


def test_names_from_the_other_end_cannot_become_commands() -> None:
    """An interface may have any name, and the user pastes the line as root."""
    nic = NicInfo("a;reboot", "device", "x", 10**9, "full", 1_500)
    for local in (0.0, 1.0):
        [finding] = find(Link(steady(0, 40), local=local, nic=nic, qdisc="$(reboot)").events())
        assert "'a;reboot'" in finding.remedy
        assert "$(" not in finding.remedy + finding.evidence


def test_the_evidence_can_be_stored() -> None:
    """A later rule can judge a recorded run."""
    meter = Meter()
    collector = EvidenceCollector(meter)
    for event in Link(steady(40, 8), local=1.0).events():
        meter.feed(event)
    evidence = collector.period_evidence()
    assert evidence is not None
    assert decode(Evidence, json.loads(json.dumps(encode(evidence)))) == evidence


def test_nothing_is_found_before_a_load_was_measured() -> None:
    """Neither a queue, nor none."""
    assert find(Link().events()[:6]) == ()
