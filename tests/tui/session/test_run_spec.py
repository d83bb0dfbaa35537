"""A run as it is asked for: what contradicts itself is refused before anything starts."""

import pytest
from linkgauge.engine.model.errors import UsageError
from linkgauge.engine.model.peer import LOOPBACK
from linkgauge.engine.model.plan import Plan
from linkgauge.presets.catalog import load_catalog
from linkgauge.tui.session.run_spec import Judging, Outputs, Record, RunSpec

CATALOG = load_catalog()


def test_a_run_without_an_end_has_no_confirmation() -> None:
    """The second run would never begin."""
    with pytest.raises(UsageError, match="--seconds"):
        RunSpec(Plan(duration_ns=None), LOOPBACK, confirm=True)
    assert RunSpec(Plan(), LOOPBACK, confirm=True).confirm


def test_a_catalog_is_no_preset_until_one_is_chosen() -> None:
    """A run that starts without the choice has no verdict, instead of a wrong one."""
    assert Judging(CATALOG).preset_id is None
    assert Judging(CATALOG.find("gbe-fd-1500")).preset_id == "gbe-fd-1500"


def test_stdout_has_one_kind_of_json() -> None:
    """Two documents would not be one."""
    with pytest.raises(UsageError, match="exclude each other"):
        Outputs(as_json=True, as_json_stream=True)
    assert not Outputs().is_for_programs


def test_further_notices_follow_those_that_are_there() -> None:
    """The label and the group stay."""
    spec = RunSpec(Plan(), LOOPBACK, record=Record(label="one", notices=("a",))).with_notices("b")
    assert spec.record == Record(label="one", notices=("a", "b"))
