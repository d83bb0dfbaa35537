"""Timestamps of the preset and of the sessions."""

from dataclasses import replace

from linkgauge.presets.diagnosis.diagnose import diagnose

from ..evidence_cases import LINK, first, run


def test_missing_timestamps_come_after_a_stronger_finding() -> None:
    """It comes after the finding that explains more."""
    link = replace(LINK, timestamps=True, payload_bytes=1_448)
    codes = [each_finding.code for each_finding in diagnose(run(link=link, timestamps=False, rtt_us=9_000))]
    assert codes == ["path-slow", "timestamps-off"]


def test_additional_timestamps_explain_the_last_percent() -> None:
    """Here 12 bytes of 1460 make the run miss the pass mark."""
    finding = first(replace(run(940, rtt_us=9_000), pass_percent=100.0))
    assert finding.code == "timestamps-on"
    assert (finding.share or 0) > 0.9
