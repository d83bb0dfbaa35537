"""The wire model: known rates by hand, and what must hold of every link."""

from dataclasses import replace
from fractions import Fraction
from typing import Any, get_args

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from linkgauge.engine.model.errors import PlanError
from linkgauge.presets.preset import Framing, LinkSpec, Tunnel
from linkgauge.presets.wire import (
    DEFAULT_VARIANT,
    Derivation,
    LayerRates,
    Variant,
    derive,
    derive_datagrams,
    largest_datagram,
    layer_rates,
)

GIGABIT = LinkSpec("ethernet", 1_000_000_000, 1500, "full")
TEN_GIGABIT = LinkSpec("ethernet", 10_000_000_000, 1500, "full", timestamps=True)
OC3 = LinkSpec("atm", 155_520_000, 9180, "full")
OC12 = LinkSpec("atm", 622_080_000, 9180, "full")

framings = st.sampled_from([f for f in get_args(Framing) if f != "none"])
tunnels = st.none() | st.sampled_from(get_args(Tunnel))
links = st.builds(
    LinkSpec,
    framing=framings,
    line_rate_bit_s=st.integers(1_000_000, 800_000_000_000),
    mtu_bytes=st.integers(576, 65_536),
    duplex=st.sampled_from(["full", "half"]),
    timestamps=st.booleans(),
    tunnel=tunnels,
)
variants = st.builds(
    Variant,
    ip=st.sampled_from([4, 6]),
    timestamps=st.none() | st.booleans(),
    tcp_option_bytes=st.sampled_from(range(0, 29, 4)),
    outer_ip=st.sampled_from([4, 6]),
)
flows = st.sampled_from(["simplex", "out", "in", "duplex"])


def rate(link: LinkSpec, flow: Any = "simplex", variant: Variant = DEFAULT_VARIANT) -> Derivation:
    """Derive a rate that there must be."""
    derived = derive(link, flow, variant)
    assert derived is not None
    return derived


@pytest.mark.parametrize(
    ("link", "variant", "mbit_s"),
    [
        (TEN_GIGABIT, DEFAULT_VARIANT, 9414.8),
        (TEN_GIGABIT, Variant(timestamps=False), 9492.8),
        (replace(TEN_GIGABIT, mtu_bytes=9000), DEFAULT_VARIANT, 9900.4),
        (GIGABIT, DEFAULT_VARIANT, 949.3),
        (GIGABIT, Variant(timestamps=True), 941.5),
        (GIGABIT, Variant(timestamps=True, vlan_tags=1), 939.0),
        (GIGABIT, Variant(timestamps=True, vlan_tags=2), 936.6),
        (GIGABIT, Variant(ip=6, timestamps=True), 928.5),
        (GIGABIT, Variant(line_rate_bit_s=100_000_000, timestamps=True), 94.1),
        (GIGABIT, Variant(mtu_bytes=9000), 991.4),
        (OC3, DEFAULT_VARIANT, 134.5),
        (OC3, Variant(timestamps=True), 134.3),
        (replace(OC3, mtu_bytes=1500), Variant(timestamps=True), 127.9),
        (OC12, DEFAULT_VARIANT, 538.1),
        (LinkSpec("atm-lane", 155_520_000, 4528, "full"), DEFAULT_VARIANT, 133.5),
        (LinkSpec("atm-lane", 155_520_000, 1500, "full"), DEFAULT_VARIANT, 128.9),
        (LinkSpec("fddi", 100_000_000, 4352, "half", timestamps=True), DEFAULT_VARIANT, 97.0),
    ],
)  # fmt: skip
def test_rates_that_can_be_worked_out_by_hand(link: LinkSpec, variant: Variant, mbit_s: float) -> None:
    """Documented, measured on emulated links, or done with a pencil."""
    assert round(rate(link, "simplex", variant).bit_s / 1e6, 1) == mbit_s


@pytest.mark.parametrize(
    ("tunnel", "outer_ip", "mtu", "wire"),
    [
        ("vxlan", 4, 1450, 1538),
        ("vxlan", 6, 1430, 1538),
        ("wireguard", 4, 1440, 1538),
        ("wireguard", 6, 1420, 1538),
        ("gre", 4, 1476, 1538),
        ("pppoe", 4, 1492, 1538),
    ],
)
def test_a_tunnel_inside_a_link_fills_its_mtu(tunnel: Any, outer_ip: Any, mtu: int, wire: int) -> None:
    """The well-known MTUs of tunnels over Ethernet follow from their headers."""
    derived = rate(GIGABIT, "simplex", Variant(tunnel=tunnel, outer_ip=outer_ip))
    assert (derived.mtu_bytes, derived.wire_bytes) == (mtu, wire)


def test_a_tunnel_with_its_own_mtu_is_not_squeezed_again() -> None:
    """WireGuard's 1420 inside 1500 over IPv4 leaves 20 bytes of the outer MTU unused."""
    derived = rate(replace(GIGABIT, mtu_bytes=1420, tunnel="wireguard"))
    assert (derived.mtu_bytes, derived.wire_bytes) == (1420, 1518)
    assert derived.tunnel_overhead == ()


def test_duplex_carries_an_acknowledgement_for_every_two_packets_each_way() -> None:
    """2 x 1460 bytes of every 2 x 1538 + 84, in both directions."""
    derived = rate(GIGABIT, "duplex")
    assert derived.ack_bytes == 84
    assert derived.bit_s == round(2e9 * 2 * 1460 / (2 * 1538 + 84))


def test_half_duplex_shares_one_wire() -> None:
    """Both directions together get what one gets, acknowledgements and all."""
    link = replace(GIGABIT, duplex="half")
    assert rate(link, "duplex").bit_s == rate(link, "simplex").bit_s == round(1e9 * 2920 / 3160)


@pytest.mark.parametrize(
    "link",
    [
        LinkSpec("none", 1_000_000_000, 1500, "full"),
        LinkSpec("ethernet", None, 1500, "full"),
        LinkSpec("ethernet", 1_000_000_000, None, "full"),
    ],
)
def test_a_link_that_lacks_a_fact_has_no_computed_rate(link: LinkSpec) -> None:
    """Unknown stays unknown."""
    assert derive(link, "simplex") is None
    assert derive_datagrams(link, "simplex") is None
    assert largest_datagram(link) is None


def test_an_exchange_of_transactions_has_no_computed_rate() -> None:
    """Its rate is one of round trips."""
    assert derive(GIGABIT, "exchange") is None


@pytest.mark.parametrize(
    ("link", "variant", "match"),
    [
        (OC3, Variant(vlan_tags=1), "VLAN tags"),
        (replace(GIGABIT, tunnel="gre"), Variant(tunnel="vxlan"), "already"),
        (TEN_GIGABIT, Variant(tcp_option_bytes=32), "room for 28"),
        (GIGABIT, Variant(mtu_bytes=40), "headers take all of it"),
        (GIGABIT, Variant(mtu_bytes=80, tunnel="vxlan"), "headers take all of it"),
    ],
)
def test_options_that_a_link_cannot_have_are_refused(link: LinkSpec, variant: Variant, match: str) -> None:
    """With what was given, and why not."""
    with pytest.raises(PlanError, match=match):
        derive(link, "simplex", variant)


@pytest.mark.parametrize(
    ("link", "variant", "payload", "wire"),
    [
        (GIGABIT, DEFAULT_VARIANT, 1472, 1538),
        (GIGABIT, Variant(ip=6), 1452, 1538),
        (GIGABIT, Variant(timestamps=True, tcp_option_bytes=8), 1472, 1538),  # TCP's options are not UDP's
        (GIGABIT, Variant(vlan_tags=1), 1472, 1542),
        (GIGABIT, Variant(ip=6, vlan_tags=2), 1452, 1546),
        (GIGABIT, Variant(tunnel="vxlan"), 1422, 1538),
        (GIGABIT, Variant(tunnel="vxlan", outer_ip=6), 1402, 1538),
        (GIGABIT, Variant(tunnel="wireguard"), 1412, 1538),
        (GIGABIT, Variant(tunnel="gre"), 1448, 1538),
        (GIGABIT, Variant(ip=6, tunnel="gre"), 1428, 1538),
        (GIGABIT, Variant(tunnel="pppoe"), 1464, 1538),
        (replace(GIGABIT, mtu_bytes=9000), DEFAULT_VARIANT, 8972, 9038),
        (replace(GIGABIT, mtu_bytes=65_536), DEFAULT_VARIANT, 65_507, 65_573),  # IPv4's length field
        (replace(GIGABIT, mtu_bytes=1420, tunnel="wireguard"), DEFAULT_VARIANT, 1392, 1518),
        (OC3, DEFAULT_VARIANT, 9152, 192 * 53),  # 9180 + 16 bytes are 191.6 cells
        (replace(OC3, framing="atm-lane"), DEFAULT_VARIANT, 9152, 192 * 53),
        (LinkSpec("fddi", 100_000_000, 4352, "half"), DEFAULT_VARIANT, 4324, 4388),
    ],
)  # fmt: skip
def test_the_largest_datagrams_fill_the_packets_of_their_link(
    link: LinkSpec, variant: Variant, payload: int, wire: int
) -> None:
    """Their payload is the MTU without an IP header and 8 bytes; nothing acknowledges them."""
    derived = derive_datagrams(link, "simplex", variant)
    assert derived
    assert (derived.payload_bytes, derived.wire_bytes, derived.ack_parts) == (payload, wire, ())
    assert largest_datagram(link, variant) == payload
    usable = (link.line_rate_bit_s or 0) * (Fraction(26, 27) if link.framing.startswith("atm") else 1)
    assert derived.bit_s == round(usable * Fraction(payload, wire))


@pytest.mark.parametrize(
    ("link", "ip", "size", "wire"),
    [
        (GIGABIT, 4, 24, 24 + 28 + 38),
        (GIGABIT, 6, 24, 24 + 48 + 38),
        (GIGABIT, 4, 1, 84),  # the shortest frame
        (GIGABIT, 4, 18, 84),
        (GIGABIT, 4, 19, 85),
        (GIGABIT, 4, 64, 64 + 28 + 38),
        (OC3, 4, 52, 2 * 53),  # 80 + 16 bytes fill two cells
        (OC3, 4, 53, 3 * 53),
        (replace(OC3, framing="atm-lane"), 4, 24, 2 * 53),
        (replace(GIGABIT, tunnel="wireguard"), 4, 24, 24 + 28 + 12 + 60 + 38),  # padded to 64
    ],
)
def test_a_small_datagram_has_the_whole_overhead_of_its_packet(
    link: LinkSpec, ip: Any, size: int, wire: int
) -> None:
    """Padding of short frames and of cells included."""
    derived = derive_datagrams(link, "simplex", Variant(ip=ip), size)
    assert derived
    assert (derived.payload_bytes, derived.wire_bytes) == (size, wire)


@pytest.mark.parametrize("size", [0, -1, 1473, 65_507])
def test_a_datagram_that_fits_in_no_packet_is_refused(size: int) -> None:
    """Fragments are not measured."""
    with pytest.raises(PlanError, match="1 to 1472 bytes"):
        derive_datagrams(GIGABIT, "simplex", DEFAULT_VARIANT, size)


@pytest.mark.parametrize("duplex", ["full", "half", None])
@pytest.mark.parametrize("size", [None, 64])
def test_udp_in_both_directions_has_twice_the_rate_unless_they_share_the_line(
    duplex: Any, size: int | None
) -> None:
    """No acknowledgements take a share of the other direction."""
    link = replace(OC3, duplex=duplex)
    one, both = (derive_datagrams(link, flow, DEFAULT_VARIANT, size) for flow in ("simplex", "duplex"))  # type: ignore[arg-type]
    assert one
    assert both
    assert both.usable_bit_s * both.directions == one.usable_bit_s * (1 if duplex == "half" else 2)
    assert abs(both.bit_s - one.bit_s * both.directions) <= 1  # each is rounded


@given(links, variants, st.integers(1, 500), st.integers(1, 500))
def test_a_larger_datagram_never_needs_more_overhead_for_a_byte_than_padding_explains(
    link: LinkSpec, variant: Variant, size: int, more: int
) -> None:
    """Every byte between payload and line has a name, and the packet on the line never shrinks."""
    assume(size + more <= (largest_datagram(link, variant) or 0))
    small, large = (derive_datagrams(link, "out", variant, each) for each in (size, size + more))
    assert small
    assert large
    assert small.wire_bytes <= large.wire_bytes
    for derived in (small, large):
        named = sum(part.bytes for part in (*derived.headers, *derived.framing_overhead))
        assert derived.payload_bytes + named == derived.wire_bytes


@given(links, variants, st.integers(1, 400))
def test_a_rate_at_the_link_s_own_payload_rate_fills_its_line(link: LinkSpec, variant: Variant, size: int) -> None:
    """The rates of the layers and the model of the line agree."""
    derived = derive_datagrams(link, "simplex", variant, size)
    assert derived
    rates = layer_rates(derived.bit_s, size, link, variant)
    assert rates.wire_bit_s
    assert abs(rates.wire_bit_s - derived.usable_bit_s) <= derived.wire_bytes / size
    assert derived.bit_s < rates.ip_bit_s < rates.wire_bit_s


@pytest.mark.parametrize(
    ("link", "ip", "ip_bit_s", "wire_bit_s"),
    [
        (None, 4, 1500e5, None),
        (None, 6, 1520e5, None),
        (GIGABIT, 4, 1500e5, 1538e5),
        (GIGABIT, 6, 1520e5, None),  # in fragments
        (replace(GIGABIT, mtu_bytes=9000), 6, 1520e5, 1558e5),
        (LinkSpec("none", mtu_bytes=65_536), 4, 1500e5, None),
    ],
)
def test_a_measured_rate_is_given_in_ip_packets_and_on_the_line(
    link: LinkSpec | None, ip: Any, ip_bit_s: float, wire_bit_s: float | None
) -> None:
    """147.2 Mb/s of 1472 bytes each."""
    assert layer_rates(1472e5, 1472, link, Variant(ip=ip)) == LayerRates(ip_bit_s, wire_bit_s)


@pytest.mark.parametrize(
    "options",
    [
        {"tcp_option_bytes": 3},
        {"tcp_option_bytes": 44},
        {"tcp_option_bytes": 32, "timestamps": True},
        {"tcp_option_bytes": -4},
        {"vlan_tags": 3},
        {"vlan_tags": -1},
        {"line_rate_bit_s": 0},
    ],
)
def test_options_that_no_packet_can_have_are_refused(options: dict[str, Any]) -> None:
    """TCP has room for 40 bytes of options, QinQ for two tags."""
    with pytest.raises(PlanError):
        Variant(**options)


def test_the_description_names_every_option() -> None:
    """They stand behind the source of a rate."""
    variant = Variant(6, False, 8, 2, "vxlan", 6, 2_500_000_000, 9000)
    assert variant.description == (
        "IPv6, no TCP timestamps, 8 bytes of TCP options, QinQ, VXLAN, outer IPv6, "
        "line rate 2\u00a0500 Mb/s, MTU 9000"
    )
    assert DEFAULT_VARIANT.description == ""


@given(links, flows, variants)
def test_the_payload_never_exceeds_the_line(link: LinkSpec, flow: Any, variant: Variant) -> None:
    """Nor the rate that the line leaves for cells; a duplex total may have twice that."""
    derived = rate(link, flow, variant)
    assert link.line_rate_bit_s
    assert 0 < derived.bit_s < derived.usable_bit_s * derived.directions
    assert derived.usable_bit_s <= link.line_rate_bit_s


@given(links, flows, variants, st.integers(1, 9000))
def test_the_rate_rises_with_the_mtu(link: LinkSpec, flow: Any, variant: Variant, more: int) -> None:
    """Strictly, if a packet is not cut into cells: the same headers carry more payload."""
    assume(link.framing in {"ethernet", "fddi"})
    assert link.mtu_bytes
    larger = replace(link, mtu_bytes=link.mtu_bytes + more)
    low, high = rate(link, flow, variant), rate(larger, flow, variant)
    assert low.payload_bytes * high.wire_bytes < high.payload_bytes * low.wire_bytes
    assert low.bit_s <= high.bit_s


@given(links, flows, st.integers(12, 1300), st.integers(1, 60))
def test_the_rate_rises_with_an_mtu_that_fills_its_cells(link: LinkSpec, flow: Any, cells: int, more: int) -> None:
    """Over ATM one byte may cost a cell, so that only MTUs that leave no padding compare."""
    assume(link.framing in {"atm", "atm-lane"} and link.tunnel is None)
    around = 16 if link.framing == "atm" else 24
    low = rate(replace(link, mtu_bytes=48 * cells - around), flow)
    high = rate(replace(link, mtu_bytes=48 * (cells + more) - around), flow)
    assert low.bit_s <= high.bit_s
    assert low.payload_bytes * high.wire_bytes < high.payload_bytes * low.wire_bytes


@given(links, flows, variants)
def test_the_rate_falls_with_each_header(link: LinkSpec, flow: Any, variant: Variant) -> None:
    """A larger IP header, timestamps, options, a tag, a tunnel: each takes its share of payload."""
    assume(variant.ip == 4 and not variant.timestamps and variant.tcp_option_bytes <= 24)
    plain = replace(variant, timestamps=False)
    heavier = [
        replace(plain, ip=6),
        replace(plain, timestamps=True),
        replace(plain, tcp_option_bytes=plain.tcp_option_bytes + 4),
    ]
    if link.framing == "ethernet":
        heavier += [replace(plain, vlan_tags=1), replace(plain, vlan_tags=2)]
    if link.tunnel is None and link.framing in {"ethernet", "fddi"}:
        heavier += [replace(plain, tunnel=tunnel) for tunnel in get_args(Tunnel)]
    base = rate(link, flow, plain)
    for option in heavier:
        heavy = rate(link, flow, option)
        assert heavy.payload_bytes * base.wire_bytes < base.payload_bytes * heavy.wire_bytes, option
        assert heavy.bit_s <= base.bit_s, option


@given(links, variants)
def test_duplex_carries_more_than_one_direction_and_less_than_twice(link: LinkSpec, variant: Variant) -> None:
    """On a full duplex wire, since each direction carries the other's acknowledgements."""
    assume(link.duplex == "full")
    one_way, both = rate(link, "simplex", variant).bit_s, rate(link, "duplex", variant).bit_s
    assert one_way < both < 2 * one_way


@given(links, flows, variants)
def test_the_arithmetic_adds_up(link: LinkSpec, flow: Any, variant: Variant) -> None:
    """Every byte between payload and wire has a name."""
    derived = rate(link, flow, variant)
    named = sum(part.bytes for part in (*derived.headers, *derived.framing_overhead))
    assert derived.payload_bytes + named == derived.wire_bytes
    assert all(
        part.bytes > 0 and part.name for part in (*derived.headers, *derived.framing_overhead, *derived.ack_parts)
    )


@given(st.integers(40, 65_536), st.booleans())
def test_atm_sends_whole_cells(mtu: int, lane: bool) -> None:
    """53 bytes each, whatever the packet."""
    link = LinkSpec("atm-lane" if lane else "atm", 155_520_000, mtu + 20, "full")
    assert rate(link, "duplex").wire_bytes % 53 == 0
    assert rate(link, "duplex").ack_bytes % 53 == 0


def test_options_equal_to_the_links_own_values_change_nothing() -> None:
    """Then the documents' rates still hold."""
    same = Variant(timestamps=True, line_rate_bit_s=10_000_000_000, mtu_bytes=1500, outer_ip=6)
    assert not same.changes(TEN_GIGABIT)
    assert Variant(timestamps=False).changes(TEN_GIGABIT)
    assert same.changes(GIGABIT)


def test_requested_options_override_detected_ones() -> None:
    """Options that were not requested stay as found."""
    found = Variant(timestamps=True, line_rate_bit_s=2_500_000_000, mtu_bytes=1400)
    requested = Variant(ip=6, timestamps=False, mtu_bytes=9000)
    assert requested.with_defaults(found) == Variant(
        ip=6, timestamps=False, line_rate_bit_s=2_500_000_000, mtu_bytes=9000
    )
    assert DEFAULT_VARIANT.with_defaults(found) == found
