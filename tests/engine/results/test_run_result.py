"""Results read from documents: of this version, of an earlier one, and of a damaged run log."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.plan import Plan, Settings
from linkgauge.engine.model.run_end import Reason
from linkgauge.engine.model.workload import Workload
from linkgauge.engine.results.figure_codec import encode
from linkgauge.engine.results.meter import replay
from linkgauge.engine.results.run_result import FindingFigures, LimitFigures, PrecisionFigures, RunResult

from .datagram_runs import draw_datagram_run
from .drawn_runs import draw_run
from .responsiveness_runs import Link, steady

EARLIER = json.loads((Path(__file__).parent / "data" / "earlier_version.json").read_text(encoding="utf-8"))
_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=4,
)


def test_the_document_of_an_earlier_version_has_its_result() -> None:
    """Members that it did not write are unknown."""
    result = RunResult.of(EARLIER)
    total = EARLIER["measured"]["total"]
    assert result.total is not None
    assert (result.total.bytes, result.total.bit_s) == (total["bytes"], total["mbit_s"] * 1e6)
    assert (result.total.is_datagrams, result.total.loss, result.other_tests) == (False, None, None)
    assert result.verdict == EARLIER["verdict"]
    assert result.reason is Reason(EARLIER["ended"]["reason"])


@given(
    st.integers(0, 2**32),
    st.sampled_from([Workload.STREAM, Workload.RR, Workload.CRR, Workload.UDP]),
    st.sampled_from(list(Direction)),
    st.sampled_from(list(Reason)),
)
def test_a_result_that_is_written_and_read_is_the_same(
    seed: int, workload: Workload, direction: Direction, reason: Reason
) -> None:
    """Watches, meshes and lists have the same figures before and after the run was stored."""
    chance = random.Random(seed)  # noqa: S311 (no secret)
    plan = Plan(Settings(direction, 2), workload, warmup_auto=chance.random() < 0.5)
    meter = replay(draw_run(chance, plan, chance.randrange(1, 20), reason=reason, changes=chance.randrange(3)))
    found = FindingFigures("loss", "far", "out", 0.5, 0.9, "Packets are lost.", "2 %", "...")
    names = {"run_id": "r1", "preset": "gbe", "verdict": "short", "label": "a", "group": "b", "findings": (found,)}
    rare = {
        "until_ci": PrecisionFigures(1.5, True),
        "cell": {"near": "a"},
        "latency_limit": LimitFigures(30.0, "B"),
    }
    verdicts = [chance.choice(["pass", "fail"]) for _ in meter.summary().periods]
    check_round_trip(RunResult.of_run(meter.summary(), meter.started, verdicts=verdicts, **names, **rare))


def test_a_result_with_datagrams_or_latency_under_load_is_the_same_too() -> None:
    """So is a result without measurements."""
    for events in (draw_datagram_run(3, Direction.DUPLEX)[0], Link(steady(out_ms=45.0)).events(), []):
        meter = replay(events)
        check_round_trip(RunResult.of_run(meter.summary(), meter.started))


def check_round_trip(result: RunResult) -> None:
    """Check that a result is the same after it was written and read."""
    assert RunResult.of(json.loads(json.dumps(encode(result)))) == result


@pytest.mark.parametrize(
    ("transactions_s", "udp", "efficiency_percent", "loss"),
    [
        (None, None, 99.0, 0.01),
        (None, None, 100.0, 0.0),
        (None, None, None, None),
        (None, {"lost_percent": 2.5}, None, 0.025),
        (None, {"lost_percent": None}, 99.0, None),
        (41_000.0, None, 99.0, None),
    ],
)
def test_a_run_lost_what_tcp_sent_again_or_the_datagrams_that_are_missing(
    transactions_s: float | None, udp: dict[str, Any] | None, efficiency_percent: float | None, loss: float | None
) -> None:
    """Unknown for transactions, and if a kernel counts nothing."""
    total = {"mbit_s": 940.0, "transactions_s": transactions_s, "udp": udp}
    result = RunResult.of({"measured": {"total": total}, "tcp": {"efficiency_percent": efficiency_percent}})
    assert result.loss == (None if loss is None else pytest.approx(loss))


@given(st.sampled_from(sorted(EARLIER)), _ANY)
def test_a_damaged_document_is_a_result_with_less_in_it(name: str, value: object) -> None:
    """With any value in place of a member."""
    RunResult.of({**EARLIER, name: value, "measured": {"total": {name: value, "udp": value, "bytes": value}}})
