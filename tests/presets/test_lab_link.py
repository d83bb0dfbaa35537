"""The link that a lab builds for a preset is the preset's, to the byte, with the requested faults alone."""

import pytest
from linkgauge.engine.lab.link_spec import ETHERNET_HEADER_BYTES, RELAY_MAX_BIT_S
from linkgauge.engine.model.errors import PlanError
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.lab_link import Faults, Slow, plan_lab_hosts, plan_lab_link
from linkgauge.presets.preset import Preset
from linkgauge.presets.wire import derive

PRESETS = {preset.id: preset for preset in load_catalog().presets}


def buildable() -> list[Preset]:
    """Return the presets that a lab can build as they are."""
    rates = [(preset, derive(preset.link, "out")) for preset in PRESETS.values()]
    return [
        preset
        for preset, derived in rates
        if derived is not None and (preset.link.duplex != "half" or derived.usable_bit_s <= RELAY_MAX_BIT_S)
    ]


def test_a_full_packet_has_the_same_size_in_the_lab_and_in_the_wire_model() -> None:
    """For every preset with a wire: same line, same bytes around the packet, padding and cells included."""
    for preset in buildable():
        derived, link = derive(preset.link, "out"), plan_lab_link(preset)
        assert derived is not None
        assert link.rate_bit_s == derived.usable_bit_s
        assert link.wire_bytes(link.mtu_bytes + ETHERNET_HEADER_BYTES) == derived.wire_bytes
        assert link.half_duplex == (preset.link.duplex == "half")
        assert link.burst_bytes > link.mtu_bytes + ETHERNET_HEADER_BYTES + link.overhead_bytes
        assert link.buffer_bytes >= link.burst_bytes


@pytest.mark.parametrize("preset_id", ["loopback", "lpar-1500", "zvm-hipersockets-1500"])
def test_a_preset_without_a_line_is_refused_with_an_example(preset_id: str) -> None:
    """There is no rate to build."""
    with pytest.raises(PlanError, match=rf"{preset_id} is invalid; .* such as 100mb-fd"):
        plan_lab_link(PRESETS[preset_id])


def test_a_slow_link_loses_a_share_of_its_line_rate() -> None:
    """Ten per cent off, framing unchanged; ATM's line is what SONET leaves of it."""
    assert plan_lab_link(PRESETS["100mb-fd"], Faults(slow_percent=10)).rate_bit_s == 90_000_000
    assert plan_lab_link(PRESETS["atm155-1500"], Faults(slow_percent=50)).rate_bit_s == 74_880_000


def test_a_wrong_mtu_is_that_of_the_far_end() -> None:
    """As if only one end had been set up."""
    link = plan_lab_link(PRESETS["gbe-fd-9000"], Faults(wrong_mtu_bytes=1500))
    assert (link.mtu_bytes, link.far_mtu_bytes) == (9000, 1500)


def test_a_delayed_link_has_a_buffer_for_packets_in_flight() -> None:
    """With a smaller one TCP could never fill the link."""
    prompt, late = (plan_lab_link(PRESETS["100mb-fd"], Faults(delay_ms=ms)) for ms in (0, 50))
    assert late.delay_ns == 50_000_000
    assert late.buffer_bytes - prompt.buffer_bytes == 100_000_000 * 0.1 / 8


def test_slow_links_take_single_packets_and_fast_ones_keep_their_offloads() -> None:
    """The CPU of a small machine allows no more."""
    grains = {plan_lab_link(PRESETS[each]).grain: each for each in ("10gbe-fd-1500", "gbe-fd-1500", "atm155-1500")}
    assert grains == {"offload": "10gbe-fd-1500", "batch": "gbe-fd-1500", "packet": "atm155-1500"}


@pytest.mark.parametrize("faults", [Faults(delay_ms=1), Faults(loss_percent=1)], ids=["delay", "loss"])
def test_delay_and_loss_are_refused_where_the_relay_could_not_keep_up(faults: Faults) -> None:
    """It would be the relay's rate that is measured."""
    with pytest.raises(PlanError, match=r"up to 200 Mb/s, not 1.000 Mb/s; choose a slower preset"):
        plan_lab_link(PRESETS["gbe-fd-1500"], faults)


@pytest.mark.parametrize(
    ("fault", "value"),
    [
        ("wrong_mtu_bytes", 575),
        ("wrong_mtu_bytes", 65_536),
        ("slow_percent", -1.0),
        ("slow_percent", 100.0),
        ("slow_percent", float("nan")),
        ("delay_ms", -0.1),
        ("delay_ms", float("inf")),
        ("loss_percent", 100.1),
    ],
)
def test_faults_that_no_link_can_have_are_refused(fault: str, value: float) -> None:
    """Before anything is built."""
    with pytest.raises(PlanError, match="is invalid; give"):
        Faults(**{fault: value})


def test_each_host_has_the_link_of_the_preset_in_both_directions() -> None:
    """One rack has no trunk."""
    spec = plan_lab_hosts(PRESETS["100mb-fd"], 3)
    assert [host.name for host in spec.hosts] == ["host-1", "host-2", "host-3"]
    assert {host.rack for host in spec.hosts} == {"rack-1"}
    assert {link for host in spec.hosts for link in (host.sends, host.receives)} == {
        plan_lab_link(PRESETS["100mb-fd"])
    }
    assert spec.trunks == ()


def test_racks_are_of_about_the_same_size() -> None:
    """Their names sort by their numbers."""
    spec = plan_lab_hosts(PRESETS["100mb-fd"], 10, 3)
    assert [host.rack[-1] for host in spec.hosts] == list("1111222333")
    assert [host.name for host in spec.hosts] == sorted(host.name for host in spec.hosts)


def test_a_trunk_carries_more_than_all_hosts_of_a_rack() -> None:
    """So that it is never the limit: four hosts of a rack, and as much again for each rack."""
    spec = plan_lab_hosts(PRESETS["100mb-fd"], 8, 2)
    assert [(trunk.rack, trunk.sends.rate_bit_s) for trunk in spec.trunks] == [
        ("rack-1", 800_000_000),
        ("rack-2", 800_000_000),
    ]
    assert {trunk.sends.grain for trunk in spec.trunks} == {"packet"}


def test_slow_hosts_and_trunks_are_slow_in_the_direction_that_was_asked_for() -> None:
    """A trunk's share is in rates of one host's link."""
    spec = plan_lab_hosts(PRESETS["100mb-fd"], 4, 2, {"host-2": Slow(receives=0.5), "rack-2": Slow(sends=0.3)})
    assert [(host.sends.rate_bit_s, host.receives.rate_bit_s) for host in spec.hosts[:2]] == [
        (100_000_000, 100_000_000),
        (100_000_000, 50_000_000),
    ]
    assert [(trunk.sends.rate_bit_s, trunk.receives.rate_bit_s) for trunk in spec.trunks] == [
        (400_000_000, 400_000_000),
        (30_000_000, 400_000_000),
    ]


@pytest.mark.parametrize(
    ("preset", "hosts", "racks", "slow", "problem"),
    [
        ("100mb-hd", 4, 1, {}, "full duplex"),
        ("loopback", 4, 1, {}, "such as 100mb-fd"),
        ("100mb-fd", 4, 5, {}, "as many as there are hosts"),
        ("100mb-fd", 4, 0, {}, "as many as there are hosts"),
        ("100mb-fd", 1, 1, {}, "2 to 64 hosts"),
        ("100mb-fd", 4, 1, {"host-5": Slow()}, "host-1 … and rack-1"),
    ],
)
def test_what_cannot_be_built_is_refused(
    preset: str, hosts: int, racks: int, slow: dict[str, Slow], problem: str
) -> None:
    """The error says what can be built."""
    with pytest.raises(PlanError, match=problem):
        plan_lab_hosts(PRESETS[preset], hosts, racks, slow)
