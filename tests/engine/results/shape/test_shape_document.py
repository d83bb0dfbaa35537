"""The result for programs: the same names in JSON and CSV, and nothing that was not measured."""

import json

from linkgauge.engine.model.directions import Direction
from linkgauge.engine.results.shape.shape_document import shape_document, shape_rows
from linkgauge.engine.results.shape.shape_result import ShapeResult, judge_direction

from .test_shape_result import POLICED, SHAPED, SIZES


def result_of_both() -> ShapeResult:
    """Return a policer on the way out, and nothing measured on the way in."""
    ways = (
        judge_direction(Direction.OUT, [POLICED] * 10, **SIZES),
        judge_direction(Direction.IN, [], **SIZES),
    )
    return ShapeResult("db-02", 4, 3_000_000, ways)


def test_the_document_has_both_directions() -> None:
    """An unknown figure is null, and so is a direction that was not asked for."""
    document = json.loads(json.dumps(shape_document(result_of_both())))
    assert document["round_trip_ms"] == 3
    out = document["out"]
    assert (out["limit"], out["cir_mbit_s"], out["cbs_bytes"], out["holds_round_trip"]) == (
        "policer",
        100,
        50_000,
        True,
    )
    assert (out["queue_bytes"], out["queue_is_full"]) == (None, None)
    assert document["in"]["limit"] == "unknown"
    assert document["in"]["cir_mbit_s"] is None
    shaped = ShapeResult("db-02", 6, None, (judge_direction(Direction.IN, [SHAPED] * 10, **SIZES),))
    document = shape_document(shaped)
    assert document["out"] is None
    assert document["in"]["queue_ms"] == 10
    assert document["in"]["holds_round_trip"] is None


def test_a_row_for_each_direction_has_the_document_s_figures() -> None:
    """Below their names; what is unknown is empty."""
    names, out, in_ = shape_rows(result_of_both())
    row = dict(zip(names, out, strict=True))
    assert (row["peer"], row["direction"], row["limit"], row["cir_mbit_s"]) == ("db-02", "out", "policer", "100")
    assert row["holds_round_trip"] == "true"
    assert dict(zip(names, in_, strict=True))["cir_mbit_s"] == ""
