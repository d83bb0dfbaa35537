"""The document and the rows of a test of many flows."""

import json

from linkgauge.engine.model.directions import Direction
from linkgauge.engine.results.flows.flow_document import flow_rows, flows_document
from linkgauge.engine.results.flows.flow_result import FlowsResult, judge_flows

from .simulated_flows import simulate

RESULT = FlowsResult(
    "db-02",
    4,
    5820,
    256,
    8e6,
    14.0,
    (judge_flows(Direction.OUT, simulate([0.1] * 16 + [0.0] * 48, seed=1, rounds=2)),),
    (50_001,),
)


def test_the_document_has_each_flow_and_what_was_found() -> None:
    """A direction that was not measured is null."""
    document = json.loads(json.dumps(flows_document(RESULT)))
    assert document["in"] is None
    assert document["silent_ports"] == [50_001]
    out = document["out"]
    assert (out["losses"], out["lossy_members"], len(out["flows"])) == ("apart", None, 64)
    assert out["lossy_share"] == 0.25
    assert {flow["class"] for flow in out["flows"]} == {"lossy", "good"}


def test_the_rows_have_a_cell_for_each_column() -> None:
    """The silent flows are among them, without figures."""
    names, *rows = list(flow_rows(RESULT))
    assert len(rows) == 65
    assert {len(row) for row in rows} == {len(names)}
    assert rows[-1][names.index("class")] == "silent"
