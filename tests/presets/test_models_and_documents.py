"""Documented rates beside computed ones, and the links of today."""

import pytest
from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.expectation import model_deviation_percent
from linkgauge.presets.preset import Preset, Rate
from linkgauge.presets.wire import Variant, derive

CATALOG = load_catalog()
AGREES_PERCENT = 1.5


def off_by(preset: Preset, rate: Rate) -> float:
    """Return the percent by which a documented rate differs from the computed one; 0 if none is computed."""
    return abs(model_deviation_percent(preset, rate) or 0.0)


def test_every_rate_that_differs_from_the_model_has_a_reason() -> None:
    """More than 1.5 %, on whatever link and in whatever direction."""
    silent = [
        (p.id, r.flow) for p in CATALOG.presets for r in p.rates if off_by(p, r) > AGREES_PERCENT and not r.why
    ]
    assert silent == []


def test_no_rate_that_agrees_with_the_model_has_a_reason() -> None:
    """A reason beside a number that needs none would be wrong."""
    excuses = [(p.id, r.flow) for p in CATALOG.presets for r in p.rates if off_by(p, r) <= AGREES_PERCENT and r.why]
    assert excuses == []


def test_the_full_duplex_ethernet_peaks_of_aix_agree_with_the_model() -> None:
    """Simplex, the peak if there is one: within 0.2 %, from 10 Mb to 10 Gb."""
    for preset in CATALOG.presets:
        if (preset.source.id, preset.link.framing, preset.link.duplex) == ("aix", "ethernet", "full"):
            peak = max((r for r in preset.rates if r.flow == "simplex"), key=lambda rate: rate.sessions)
            assert off_by(preset, peak) < 0.2, preset.id


def test_the_outbound_rates_of_hp_on_155_agree_with_the_model() -> None:
    """Classical IP and LAN emulation, cell by cell: within half a percent."""
    for preset in CATALOG.presets:
        if preset.id.startswith("hp-atm155"):
            assert off_by(preset, preset.rates[0]) < 0.5, preset.id


def test_modern_ethernet_has_presets_at_both_mtus() -> None:
    """From 1 to 800 Gb, with timestamps as Linux has them."""
    for gigabits in ["1", "2.5", "5", "10", "25", "40", "50", "100", "200", "400", "800"]:
        for mtu in [1500, 9000]:
            preset = CATALOG.find(f"{gigabits}gbe-{mtu}")
            assert preset.link.line_rate_bit_s == float(gigabits) * 1e9
            derived = derive(preset.link, "simplex")
            assert derived
            assert derived.bit_s == round(float(gigabits) * 1e9 * (mtu - 52) / (mtu + 38))


@pytest.mark.parametrize("mtu", [1450, 1420, 1476, 1492, 1460, 8896, 9001])
def test_tunnels_and_clouds_have_presets_at_their_mtus(mtu: int) -> None:
    """VXLAN, WireGuard, GRE, PPPoE; Google Cloud and AWS."""
    assert any(p.link.mtu_bytes == mtu and p.source.id == "wire" for p in CATALOG.presets)


def test_no_computed_preset_is_a_copy_for_ipv6_or_vlan() -> None:
    """They are options of every Ethernet link there is."""
    for preset in CATALOG.presets:
        if preset.source.id == "wire":
            plain = derive(preset.link, "simplex")
            heavy = derive(preset.link, "simplex", Variant(ip=6, vlan_tags=2))
            assert plain
            assert heavy
            assert heavy.bit_s < plain.bit_s
            assert "IPv6" not in preset.name
