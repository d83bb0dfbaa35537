"""A run as it is asked for: what contradicts itself is refused, and the far end completes the rest."""

import pytest
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.model.errors import PeerError, PlanError, UnknownPreset, UsageError
from linkgauge.engine.model.peer import LOOPBACK, Peer
from linkgauge.engine.model.plan import Plan
from linkgauge.engine.model.workload import Workload
from linkgauge.presets.auto_select import NO_PRESET
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.expectation import find_expectation
from linkgauge.presets.wire import DEFAULT_VARIANT, Variant
from linkgauge.tui.session.run_spec import (
    Judging,
    Outputs,
    Record,
    RunSpec,
    complete_spec,
    find_initial_preset,
    find_preset,
    pick_preset,
)

pytestmark = pytest.mark.usefixtures("fork_server")

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


def test_auto_is_the_whole_catalog_and_an_id_one_preset() -> None:
    """Without either there is nothing to hold a run against."""
    preset = CATALOG.find("gbe-fd-1500")
    assert find_preset("gbe-fd-1500", CATALOG) == preset
    assert find_preset("auto", CATALOG) is CATALOG
    assert find_preset(None, CATALOG) is None
    with pytest.raises(UnknownPreset):
        find_preset("nonsense", CATALOG)


def test_link_options_without_a_preset_or_against_its_framing_are_refused() -> None:
    """Before anything is opened."""
    Judging(None, DEFAULT_VARIANT).check_link_options()
    Judging(CATALOG, Variant(vlan_tags=1)).check_link_options()
    with pytest.raises(PlanError, match="--preset auto"):
        Judging(None, Variant(vlan_tags=1)).check_link_options()
    with pytest.raises(PlanError, match="VLAN"):
        Judging(CATALOG.find("atm155-9180"), Variant(vlan_tags=1)).check_link_options()


@pytest.mark.parametrize("requested", [None, "auto"])
def test_an_unknown_link_has_no_target_until_the_host_answers(requested: str | None) -> None:
    """A wrong guess would give a wrong verdict. Loopback is known, and has no target either."""
    assert find_initial_preset(CATALOG, requested, LOOPBACK).preset.id == "loopback"
    assert find_initial_preset(CATALOG, requested, Peer("db-02")).preset is NO_PRESET


def test_a_requested_preset_is_used_on_every_link() -> None:
    """An unknown id is an error before anything is opened."""
    assert find_initial_preset(CATALOG, "10mb-fd", LOOPBACK).preset.id == "10mb-fd"
    with pytest.raises(UnknownPreset):
        find_initial_preset(CATALOG, "nonsense", LOOPBACK)


async def test_loopback_needs_no_answer() -> None:
    """Its far end starts with the first run."""
    assert (await pick_preset(CATALOG, LOOPBACK)).preset.id == "loopback"


async def test_a_host_that_does_not_answer_has_no_preset() -> None:
    """The error names the host; the caller decides what follows."""
    with pytest.raises(PeerError, match=r"127\.0\.0\.1"):
        await pick_preset(CATALOG, Peer("127.0.0.1", 1))


async def test_link_options_that_the_detected_preset_has_no_use_for_are_reported() -> None:
    """Loopback has no line, so that no option changes its rate."""
    choice = await complete_spec(RunSpec(Plan(), LOOPBACK, Judging(CATALOG, Variant(ip=6))), LOOPBACK)
    assert choice.judging.preset_id == "loopback"
    assert choice.record.notices[0].startswith("preset loopback: ")
    assert "not used, loopback has no line" in choice.record.notices[-1]


async def test_a_named_preset_keeps_its_link_options_without_a_query() -> None:
    """There is nothing to detect."""
    spec = RunSpec(Plan(), LOOPBACK, Judging(CATALOG.find("gbe-fd-1500"), Variant(vlan_tags=1)))
    assert await complete_spec(spec, LOOPBACK) == spec


@pytest.mark.parametrize(("host", "version"), [("127.0.0.1", 4), ("::1", 6)])
async def test_datagrams_are_sent_at_the_expected_rate_of_the_ip_version_in_use(host: str, version: int) -> None:
    """At the rate of the other version, a full line would lose some."""
    plan, preset = Plan(workload=Workload.UDP), CATALOG.find("gbe-fd-1500")
    async with Endpoint(listen(host, 0)) as endpoint:
        peer = Peer(*endpoint.address)
        paced = await complete_spec(RunSpec(plan, peer, Judging(preset)), peer)
    expected = find_expectation(preset, plan.settings, plan.workload, ip_version=version).out
    assert expected is not None
    assert paced.plan.settings.rate_bit_s == expected.bit_s
    assert paced.record.notices
