"""Evidence of the expected link, and the sources of a run's evidence."""

from dataclasses import fields

from linkgauge.presets.catalog import load_catalog
from linkgauge.presets.diagnosis.evidence import EndEvidence, Evidence, FlowEvidence, link_evidence
from linkgauge.presets.wire import DEFAULT_VARIANT, Variant


def test_the_expected_link_includes_its_options() -> None:
    """Another line rate, MTU or timestamps change the payload of a packet."""
    preset = load_catalog().find("gbe-fd-1500")
    found = link_evidence(preset, Variant(timestamps=True, line_rate_bit_s=2_500_000_000, mtu_bytes=9_000))
    assert (found.line_rate_bit_s, found.mtu_bytes, found.timestamps) == (2_500_000_000, 9_000, True)
    assert (found.payload_bytes, found.wire_bytes) == (8_948, 9_038)
    assert link_evidence(load_catalog().find("loopback"), DEFAULT_VARIANT).payload_bytes is None


def test_all_fields_but_the_callers_are_read_from_sums() -> None:
    """A field without a source would be unknown in every run."""
    given = {
        each.name: kind
        for kind in (Evidence, FlowEvidence, EndEvidence)
        for each in fields(kind)
        if "read" not in each.metadata
    }
    of_caller = {"pass_percent", "link", "ceiling_bit_s", "beyond_bit_s", "has_ended"}
    assert set(given) == {"bit_s", "flows", "expected_bit_s", *of_caller}
