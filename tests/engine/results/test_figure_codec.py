"""The JSON document of a run."""

import json
from dataclasses import replace
from typing import Literal

import pytest
from linkgauge.engine.model.counters.session_counters import SocketInfo
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.model.events import Changed, Ended, Opened, Sampled, Warned
from linkgauge.engine.model.expected_rate import Expectation, ExpectedRate
from linkgauge.engine.model.host_info import HostInfo, NicInfo
from linkgauge.engine.model.plan import MIB, Mode, Plan, Settings
from linkgauge.engine.model.run_end import Reason, RunEnd
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.figure_codec import encode, round_figure
from linkgauge.engine.results.meter import replay
from linkgauge.engine.results.run_result import RunResult, SubjectFigures

from ... import json_schemas
from .datagram_runs import DATAGRAM_BYTES, draw_datagram_run
from .log_entries import HOST
from .simple_run import DUPLEX, GIGABIT, OUT, TICK, simplex, started


@pytest.mark.parametrize("mode", [None, Mode.COPY, Mode.SENDFILE, Mode.DISCARD])
def test_a_mode_is_automatic_where_the_plan_names_none(mode: Mode | None) -> None:
    """Whatever the sockets say of it."""
    workload = Workload.UDP if mode is not None and mode.is_for_datagrams else Workload.STREAM
    summary = replace(replay(simplex()).summary(), plan=Plan(mode=mode, workload=workload))
    document = encode(RunResult.of_run(summary))
    assert document["tcp"]["mode_choice"] == ("automatic" if mode is None else "requested")


def test_the_document_has_every_promised_key() -> None:
    """Programs read this one."""
    window = replace(OUT, window_bytes=65_536)
    facts = SocketInfo(End.NEAR, Direction.OUT, 1, "cubic", 60_000, 1448, True, True, True)
    near, far = simplex()[1:3]
    events = [
        started(window, Expectation(out=GIGABIT)),
        Opened(facts),
        Warned("the window is smaller than asked for"),
        *(replace(event, settings=window) for event in (near, far) if isinstance(event, Sampled)),
        Ended(RunEnd(Reason.STOPPED, "by you")),
    ]
    made = encode(
        RunResult.of_run(replay(events).summary(), run_id="r1", preset="gbe-fd-1500", verdict="short", label="a")
    )
    rate = {"mbit_s": 941.482, "basis": "documented", "source": "table 1"}
    measured = {
        "bytes": 25 * MIB,
        "seconds": 0.25,
        "mbit_s": 838.861,
        "mib_s": 100.0,
        "percent_of_expected": 89.1,
        "transactions_s": None,
        "latency_us": None,
        "ci95_mbit_s": None,  # one interval tells nothing of its error
        "ci95_percent": None,
        "ci95_transactions_s": None,
        **dict.fromkeys(("packets_s", "ip_mbit_s", "wire_mbit_s", "udp")),  # of datagrams
        "counted_by": "receiver",
    }
    stretch = {
        "direction": "out",
        "sessions": 1,
        "window_bytes": 65_536,
        **dict.fromkeys(("rate", "rate_mbit_s", "datagram_bytes")),
        "start_s": 0.0,
        "warmup_s": 0.0,
        "measured": {"out": measured, "in": None, "total": measured},
    }
    assert json.loads(json.dumps(made)) == {
        "schema": 1,
        "run_id": "r1",
        "dialect": "linkgauge",
        "preset": "gbe-fd-1500",
        "verdict": "short",
        "plan": {
            "workload": "stream",
            "direction": "out",
            "sessions": 1,
            "window_bytes": 65_536,
            "duration_s": 10.0,
            "warmup": "fixed",
            "warmup_s": 1.0,
            "probe": False,
            "responsiveness": None,
            **dict.fromkeys(("rate", "rate_mbit_s", "datagram_bytes")),
            "bytes": None,
            "exclusive": False,
        },
        "expected": {"out": rate, "in": None, "total": rate},
        "measured": {"out": measured, "in": None, "total": measured},
        "latency": None,
        "responsiveness": None,
        "stretches": [stretch],
        "cpu": {
            "near": {
                "host_percent": 75.0,
                "hottest_core_percent": 100.0,
                "process_percent": 100.0,
                "msec_per_mib": 10.0,
                "msec_per_transaction": None,
            },
            "far": dict.fromkeys(
                (
                    "host_percent",
                    "hottest_core_percent",
                    "process_percent",
                    "msec_per_mib",
                    "msec_per_transaction",
                )
            ),
        },
        "tcp": {
            "retransmits": 2,
            "rtt_us": 200,
            "mss_bytes": 1448,
            "congestion": "cubic",
            "mode": "copy",
            "mode_choice": "automatic",
            "window_granted_bytes": {"near": 60_000, "far": None},
            "transfer_time_ratio": None,  # the document's link has no line
            "efficiency_percent": None,  # the bytes of two retransmits are unknown
            "buffer_delay_percent": None,
            "buffer_delay_ms": None,
        },
        "other_tests": None,
        "warnings": ["the window is smaller than asked for"],
        "ended": {"reason": "stopped", "detail": "by you"},
        "label": "a",
        "note": None,
        "group": None,
        "why": [],
        **dict.fromkeys(("started_utc", "peer", "address", "ip_version", "near", "far")),
    }


def test_a_run_that_measured_nothing_is_a_document_of_nulls() -> None:
    """Unknown is null, not zero."""
    made = encode(RunResult.of_run(replay([started(DUPLEX, Expectation())]).summary()))
    assert made["measured"] == made["expected"] == {"out": None, "in": None, "total": None}
    assert made["tcp"]["retransmits"] is None
    assert made["ended"]["reason"] == "failed"


def test_a_run_until_it_is_stopped_has_no_duration() -> None:
    """Its warm-up is a second."""
    start = replace(started(OUT, Expectation()), plan=Plan(duration_ns=None))
    made = encode(RunResult.of_run(replay([start]).summary()))
    assert (made["plan"]["duration_s"], made["plan"]["warmup_s"]) == (None, 1.0)


def test_the_requested_rate_and_number_of_bytes_are_in_the_plan() -> None:
    """Without them a reader could not tell why a test was slow, or why it ended. The schema describes both."""
    for plan in (Plan(), Plan(rate_bit_s=100_500_000, bytes_limit=5 << 20)):
        start = replace(started(OUT, Expectation()), plan=plan)
        made = encode(RunResult.of_run(replay([start]).summary(), run_id="r"))
        json_schemas.check("run.schema.json", made)
    assert (made["plan"]["rate_mbit_s"], made["plan"]["bytes"]) == (100.5, 5_242_880)


def test_a_run_of_several_settings_has_a_verdict_for_each_period_and_the_results_of_the_newest_one() -> None:
    """The measurements of the run are those of its newest settings."""
    events = simplex()
    far = events[2]
    assert isinstance(far, Sampled)
    later = replace(far, sample=replace(far.sample, index=1, elapsed_ns=2 * TICK), settings=DUPLEX)
    both = ExpectedRate(1_800_000_000, "documented", "table 2")
    events[3:3] = [Changed(TICK, DUPLEX, Expectation(total=both)), later]
    made = encode(RunResult.of_run(replay(events).summary(), verdicts=("short", "fail")))
    assert made["expected"]["total"]["source"] == "table 2"
    assert made["measured"] == made["stretches"][1]["measured"]
    assert [stretch["verdict"] for stretch in made["stretches"]] == ["short", "fail"]
    assert [stretch["measured"]["total"]["percent_of_expected"] for stretch in made["stretches"]] == [89.1, 46.603]


@pytest.mark.parametrize("direction", list(Direction))
def test_the_document_of_datagrams_has_every_figure_and_none_of_tcp(direction: Direction) -> None:
    """Sums of the measurement are sums here, and the schema has every key."""
    events, fates = draw_datagram_run(1, direction)
    events[0] = replace(events[0], ip_version=6, near=_host("veth"), far=_host("ixgbe", "device"))
    document = encode(RunResult.of_run(replay(events).summary(), run_id="r1"))
    json_schemas.check("run.schema.json", json.loads(json.dumps(document)))
    assert {key: document["plan"][key] for key in ("rate", "rate_mbit_s", "datagram_bytes")} == {
        "rate": "fixed",
        "rate_mbit_s": 1.0,
        "datagram_bytes": None,
    }
    for key, name in (("out", Direction.OUT), ("in", Direction.IN)):
        measured = document["measured"][key]
        if name not in direction.flows:
            assert measured is None
            continue
        counts = measured["udp"]
        assert (counts["sent"], counts["lost"]) == (fates[name].sent, fates[name].lost)
        assert counts["lost_percent"] == round_figure(100 * counts["lost"] / counts["sent"])
        assert sum(counts["lost_at"].values()) == counts["lost"]
        assert (counts["mode"], counts["dscp"], counts["ce_marks"]) == ("quality", {"sent": 0, "received": 0}, 0)
        assert counts["jitter_ms"] == {"mean": 0.003, "max": 0.009}
        packets_s = measured["packets_s"]
        assert measured["mbit_s"] == pytest.approx(packets_s * DATAGRAM_BYTES * 8 / 1e6, rel=1e-3)
        assert measured["ip_mbit_s"] == pytest.approx(packets_s * (DATAGRAM_BYTES + 48) * 8 / 1e6, rel=1e-3)
        assert measured["wire_mbit_s"] == pytest.approx(packets_s * (DATAGRAM_BYTES + 48 + 38) * 8 / 1e6, rel=1e-3)


def _host(kind: str, sort: Literal["virtual", "device"] = "virtual") -> HostInfo:
    return replace(HOST, nic=NicInfo("eth0", sort, kind))


@pytest.mark.parametrize(
    ("settings", "rate"), [(Settings(), "max"), (Settings(rate_bit_s=10**6, searches_rate=True), "search")]
)
def test_a_rate_without_a_limit_and_a_search_are_named(settings: Settings, rate: str) -> None:
    """A null rate alone would be unknown."""
    plan = Plan(workload=Workload.UDP, settings=settings)
    document = encode(RunResult.of_run(replace(replay(simplex()).summary(), plan=plan), run_id="r1"))
    assert document["plan"]["rate"] == rate
    json_schemas.check("run.schema.json", document)


def test_a_result_names_what_was_measured() -> None:
    """A run that did not start has nulls."""
    begun = replace(started(OUT, Expectation()), address="2001:db8::7", ip_version=6)
    document = encode(SubjectFigures.of(begun))
    assert (document["peer"], document["address"], document["ip_version"]) == ("db-02:5820", "2001:db8::7", 6)
    assert document["far"]["hostname"] == HOST.hostname
    assert encode(SubjectFigures.of(None)) == dict.fromkeys(document)
