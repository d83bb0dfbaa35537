"""The preset that is selected by the interfaces of both ends."""

from dataclasses import replace

import pytest
from linkgauge.engine.model.directions import Direction
from linkgauge.engine.model.host_info import NicInfo
from linkgauge.engine.model.plan import Settings
from linkgauge.presets.auto_select import PresetSelection, fitting_interfaces, select_preset
from linkgauge.presets.catalog import Catalog, load_catalog
from linkgauge.presets.expectation import find_expectation
from linkgauge.presets.preset import LinkSpec
from linkgauge.presets.wire import DEFAULT_VARIANT, Variant

GBIT_S = 1_000_000_000
NIC = NicInfo("eth0", "device", "ixgbe", 10 * GBIT_S, "full", 1500, tso=True, gso=True, gro=True, lro=False)
VETH = NicInfo("left", "virtual", "veth", None, "full", 1500)
LO = NicInfo("lo", "loopback", mtu_bytes=65_536)
_NIC_KINDS = {None: "ixgbe", "vxlan": "vxlan", "wireguard": "wireguard", "gre": "gre"}


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    """Give linkgauge's own presets."""
    return load_catalog()


def _nic(rate_bit_s: int | None, mtu_bytes: int | None = 1500, duplex: str | None = "full") -> NicInfo:
    return replace(NIC, line_rate_bit_s=rate_bit_s, mtu_bytes=mtu_bytes, duplex=duplex)


def _line(link: LinkSpec) -> tuple[int | None, int | None, str | None, str | None]:
    return link.line_rate_bit_s, link.mtu_bytes, link.duplex, link.tunnel


def _expected_bit_s(picked: PresetSelection) -> int | None:
    out = find_expectation(picked.preset, Settings(Direction.OUT), variant=picked.variant).out
    return None if out is None else out.bit_s


@pytest.mark.parametrize(
    ("rate_bit_s", "mtu_bytes", "duplex", "preset_id"),
    [
        (10_000_000, 1500, "half", "10mb-hd"),
        (100_000_000, 1500, "full", "100mb-fd"),
        (100_000_000, 1500, "half", "100mb-hd"),
        (GBIT_S, 1500, "full", "1gbe-1500"),
        (GBIT_S, 9000, "full", "1gbe-9000"),
        (10 * GBIT_S, 9000, "full", "10gbe-9000"),
        (2_500_000_000, 1500, "full", "2.5gbe-1500"),
        (25 * GBIT_S, 9000, "full", "25gbe-9000"),
        (10 * GBIT_S, 9001, "full", "cloud-10g-9001"),
        (GBIT_S, 1500, None, "1gbe-1500"),
    ],
)
def test_two_equal_ends_select_the_preset_of_exactly_that_link(
    catalog: Catalog, rate_bit_s: int, mtu_bytes: int, duplex: str | None, preset_id: str
) -> None:
    """A computed one if there is one. An unknown duplex counts as full."""
    nic = _nic(rate_bit_s, mtu_bytes, duplex)
    picked = select_preset(catalog, nic, nic)
    assert picked.preset.id == preset_id
    assert picked.variant == DEFAULT_VARIANT
    assert picked.warnings == ()


def test_every_link_of_the_catalog_selects_its_computed_preset_and_marks_it_alone(catalog: Catalog) -> None:
    """A document's preset is selected only for a link without a computed one: 10 and 100 Mb/s, and half duplex."""
    ethernet = [p for p in catalog.presets if p.link.framing == "ethernet" and p.source.id in {"aix", "wire"}]
    for preset in ethernet:
        if preset.link.tunnel not in _NIC_KINDS:
            continue  # PPPoE, whose interface is not that of a tunnel
        same = [each for each in ethernet if _line(each.link) == _line(preset.link)]
        line_rate_bit_s, mtu_bytes, duplex, tunnel = _line(preset.link)
        nic = replace(_nic(line_rate_bit_s, mtu_bytes, duplex), kind=_NIC_KINDS[tunnel])
        picked = select_preset(catalog, nic, nic)
        assert [picked.preset] == ([each for each in same if each.computed] or same)
        assert picked.warnings == ()
        assert fitting_interfaces(catalog, [nic]) == {picked.preset.id: ["eth0"]}


@pytest.mark.parametrize("is_near_slower", [True, False])
def test_the_slower_end_the_smaller_mtu_and_half_duplex_decide(catalog: Catalog, is_near_slower: bool) -> None:
    """Whichever end it is; the reason names it."""
    slow, fast = replace(_nic(GBIT_S, 9000), name="slow0"), replace(_nic(10 * GBIT_S, 1500), name="fast0")
    near, far = (slow, fast) if is_near_slower else (fast, slow)
    picked = select_preset(catalog, near, far)
    assert picked.preset.id == "1gbe-1500"
    assert f"{'local' if is_near_slower else 'remote'} slow0" in picked.reason
    assert f"MTU 1500 ({'remote' if is_near_slower else 'local'} fast0)" in picked.reason
    half = replace(_nic(100_000_000), duplex="half")
    assert select_preset(catalog, half, _nic(100_000_000)).preset.id == "100mb-hd"


def test_an_mtu_that_no_preset_has_falls_back_to_the_nearest_and_is_computed(catalog: Catalog) -> None:
    """1348 of 1438 bytes on the wire are payload, with timestamps; and it says so."""
    picked = select_preset(catalog, _nic(GBIT_S, 1400), _nic(GBIT_S, 1500))
    assert picked.preset.id == "1gbe-1500"
    assert _expected_bit_s(picked) == round(GBIT_S * 1348 / 1438)
    (text,) = picked.warnings
    assert "1gbe-1500" in text
    assert "MTU 1500" in text
    assert "MTU 1400" in picked.reason


def test_a_documented_preset_for_another_link_is_computed_with_timestamps(catalog: Catalog) -> None:
    """At 100 Mb/s there is no other preset. Its document has no timestamps."""
    picked = select_preset(
        catalog, VETH, replace(VETH, mtu_bytes=1400), requested=Variant(line_rate_bit_s=100_000_000)
    )
    assert picked.preset.id == "100mb-fd"
    assert _expected_bit_s(picked) == round(100_000_000 * 1348 / 1438)


def test_an_unusual_line_rate_is_computed_from_the_nearest_preset(catalog: Catalog) -> None:
    """A shaped line may carry anything."""
    picked = select_preset(catalog, VETH, VETH, requested=Variant(line_rate_bit_s=300_000_000))
    assert _expected_bit_s(picked) == round(300_000_000 * 1448 / 1538)
    assert len(picked.warnings) == 1


def test_half_duplex_at_another_mtu_is_compared_with_the_document(catalog: Catalog) -> None:
    """The model does not cover half duplex."""
    nic = _nic(100_000_000, 1400, "half")
    picked = select_preset(catalog, nic, nic)
    assert picked.preset.id == "100mb-hd"
    assert _expected_bit_s(picked) is not None
    assert "100mb-hd" in picked.warnings[0]


@pytest.mark.parametrize(
    ("near", "far", "parts"),
    [
        (VETH, NIC, ["local left (virtual, veth)"]),
        (NIC, VETH, ["remote left (virtual, veth)"]),
        (VETH, replace(VETH, name="right"), ["local left", "remote right"]),
        (NIC, replace(VETH, name="wlan0", sort="wireless", kind="iwlwifi"), ["remote wlan0 (Wi-Fi, iwlwifi)"]),
        (replace(NIC, kind="virtio_net", line_rate_bit_s=None), NIC, ["local eth0 (virtio_net)"]),
        (NIC, LO, ["remote lo (loopback)"]),
        (NIC, None, ["the remote end does not report"]),
        (None, None, ["the local end does not report", "the remote end does not report"]),
    ],
)
def test_without_a_speed_no_preset_is_selected_and_the_reason_names_the_end_and_the_remedy(
    catalog: Catalog, near: NicInfo | None, far: NicInfo | None, parts: list[str]
) -> None:
    """The test measures all the same. Requested options of the link have nothing to change, and are reported."""
    picked = select_preset(catalog, near, far, requested=Variant(mtu_bytes=1400))
    assert picked.chosen is None
    assert picked.variant == DEFAULT_VARIANT
    (text, unused) = picked.notices
    for part in [*parts, "no expected rate: ", "name a preset", "--line-rate 1G"]:
        assert part in text
    assert unused == "MTU 1400: not used, without a line rate"


def test_a_far_end_that_cannot_report_its_interface_leaves_the_choice_to_this_one_and_says_so(
    catalog: Catalog,
) -> None:
    """An iperf3 server: the near end's rate is the link's, unless it has none either."""
    picked = select_preset(catalog, _nic(GBIT_S), None, is_far_unknown=True)
    assert picked.preset.id == "1gbe-1500"
    assert any("the local one decides" in warning for warning in picked.warnings)
    silent = select_preset(catalog, VETH, None, is_far_unknown=True)
    assert (silent.chosen, silent.reason) == (None, "no interface reports a speed: local left (virtual, veth)")


def test_a_requested_line_rate_replaces_an_unknown_one(catalog: Catalog) -> None:
    """Even if both ends are unknown."""
    assert (
        select_preset(catalog, VETH, VETH, requested=Variant(line_rate_bit_s=2_500_000_000)).preset.id
        == "2.5gbe-1500"
    )
    picked = select_preset(catalog, None, None, requested=Variant(line_rate_bit_s=GBIT_S))
    assert picked.preset.id == "1gbe-1500"
    assert "assumed: neither end reports one" in picked.reason


def test_a_requested_line_rate_overrides_a_reported_one_and_warns_of_a_slower_end(catalog: Catalog) -> None:
    """A line may be slower than its ends, and never faster than the slower one."""
    assert select_preset(catalog, NIC, NIC, requested=Variant(line_rate_bit_s=GBIT_S)).warnings == ()
    picked = select_preset(catalog, NIC, _nic(GBIT_S), requested=Variant(line_rate_bit_s=10 * GBIT_S))
    assert picked.preset.id == "10gbe-1500"
    (text,) = picked.warnings
    assert "remote eth0 reports 1\u00a0000 Mb/s" in text


def test_loopback_has_its_own_preset(catalog: Catalog) -> None:
    """It has no line, whatever rate is given."""
    assert select_preset(catalog, LO, LO).preset.id == "loopback"
    assert select_preset(catalog, LO, None).preset.id == "loopback"
    picked = select_preset(catalog, LO, LO, requested=Variant(line_rate_bit_s=GBIT_S))
    assert picked.preset.id == "loopback"
    assert len(picked.warnings) == 1


def test_a_tunnel_has_the_preset_of_its_kind(catalog: Catalog) -> None:
    """The given rate is the rate of the line beneath it."""
    tunnel = NicInfo("wg0", "virtual", "wireguard", None, None, 1420)
    assert (
        select_preset(catalog, tunnel, tunnel, requested=Variant(line_rate_bit_s=GBIT_S)).preset.id
        == "1gbe-wireguard-1420"
    )
    odd = select_preset(catalog, tunnel, replace(tunnel, mtu_bytes=1380), requested=Variant(line_rate_bit_s=GBIT_S))
    assert odd.preset.id == "1gbe-wireguard-1420"
    assert odd.variant.mtu_bytes == 1380


@pytest.mark.parametrize(("kind", "frame_bytes"), [("tun", 0), ("ppp", 0), ("ipip", 0), ("tap", 38), ("veth", 38)])
def test_an_interface_without_frames_has_none_in_its_expected_rate(
    catalog: Catalog, kind: str, frame_bytes: int
) -> None:
    """Its line rate is that of IP packets: 1448 of 1500 bytes are payload."""
    nic = replace(VETH, kind=kind)
    picked = select_preset(catalog, nic, nic, requested=Variant(line_rate_bit_s=20_000_000))
    assert _expected_bit_s(picked) == round(20_000_000 * 1_448 / (1_500 + frame_bytes))
    assert ("no frames (local left)" in picked.reason) is not bool(frame_bytes)
