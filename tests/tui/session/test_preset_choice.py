"""The choice of the preset: the requested one, or by both ends' interfaces."""

import pytest
from linkgauge.engine.far.endpoint import Endpoint
from linkgauge.engine.far.listener import listen
from linkgauge.engine.model.errors import PeerError, UnknownPreset
from linkgauge.engine.model.peer import LOOPBACK, Peer
from linkgauge.engine.model.plan import Plan
from linkgauge.engine.model.workload import Workload
from linkgauge.presets.auto_select import NO_PRESET
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.expectation import find_expectation
from linkgauge.presets.wire import Variant
from linkgauge.tui.session.preset_choice import choose_preset, find_initial_preset, pick_preset, with_sending_rate
from linkgauge.tui.session.run_spec import Judging, RunSpec

pytestmark = pytest.mark.usefixtures("fork_server")

CATALOG = load_catalog()


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
    assert (await pick_preset(CATALOG, LOOPBACK, None)).preset.id == "loopback"


async def test_a_host_that_does_not_answer_has_no_preset() -> None:
    """The error names the host; the caller decides what follows."""
    with pytest.raises(PeerError, match=r"127\.0\.0\.1"):
        await pick_preset(CATALOG, Peer("127.0.0.1", 1), None)


async def test_link_options_that_the_detected_preset_has_no_use_for_are_reported() -> None:
    """Loopback has no line, so that no option changes its rate."""
    choice = await choose_preset(RunSpec(Plan(), LOOPBACK, Judging(CATALOG, Variant(ip=6))), LOOPBACK)
    assert choice.judging.preset_id == "loopback"
    assert choice.record.notices[0].startswith("preset loopback: ")
    assert "not used, loopback has no line" in choice.record.notices[-1]


async def test_a_named_preset_keeps_its_link_options_without_a_query() -> None:
    """There is nothing to detect."""
    spec = RunSpec(Plan(), LOOPBACK, Judging(CATALOG.find("gbe-fd-1500"), Variant(vlan_tags=1)))
    assert await choose_preset(spec, LOOPBACK) == spec


@pytest.mark.parametrize(("host", "version"), [("127.0.0.1", 4), ("::1", 6)])
async def test_datagrams_are_sent_at_the_expected_rate_of_the_ip_version_in_use(host: str, version: int) -> None:
    """At the rate of the other version, a full line would lose some."""
    plan, preset = Plan(workload=Workload.UDP), CATALOG.find("gbe-fd-1500")
    async with Endpoint(listen(host, 0)) as endpoint:
        peer = Peer(*endpoint.address)
        paced = await with_sending_rate(RunSpec(plan, peer, Judging(preset)), peer)
    expected = find_expectation(preset, plan.settings, plan.workload, ip_version=version).out
    assert expected is not None
    assert paced.plan.settings.rate_bit_s == expected.bit_s
    assert paced.record.notices
