"""Findings of a run in progress: stable enough to be read, and forgotten with a change."""

from dataclasses import replace
from typing import Any

from linkgauge.engine.model.events import Changed, Expectation, ExpectedRate
from linkgauge.engine.model.plan import SECOND_NS, Settings
from linkgauge.presets.diagnosis.finding import Finding
from linkgauge.presets.diagnosis.live import LiveDiagnosis, StableFindings

from .sampled_run import EXPECTED, QUARTER_NS, fed, started


def test_what_no_such_link_carries_is_the_one_finding() -> None:
    """Not that nothing limits: the preset is another link's."""
    watch = LiveDiagnosis()
    bound = Expectation(out=ExpectedRate(10_000_000, "documented", "a table", most_bit_s=9_400_000))
    watch.feed(replace(started(), expectation=bound))
    fed(watch, 0, 8)
    (finding,) = watch.final_findings
    assert (finding.code, finding.share) == ("another-link", None)
    assert finding.evidence == "50 Mb/s came through, and its wire carries 9.4 Mb/s at most"
    assert "check auto" in finding.remedy


def finding(code: Any, share: float = 1.0, evidence: str = "") -> Finding:
    """Return a finding of a code."""
    return Finding(code, share, 0.9, code, evidence, "do")


def test_what_is_shown_changes_only_when_it_has_stayed() -> None:
    """A flutter of a second changes no reason; its numbers are always the newest."""
    steady = StableFindings()
    loss, slow = finding("loss"), finding("path-slow")
    assert steady.update(0, (loss,))[0].code == "loss"
    assert steady.update(1 * SECOND_NS, (slow, finding("loss", 0.4, "newer")))[0].evidence == "newer"
    assert steady.update(2 * SECOND_NS, (loss,))[0].code == "loss"
    for second in (3, 4):
        assert steady.update(second * SECOND_NS, (slow,))[0].code == "loss"
    assert steady.update(5 * SECOND_NS, (slow,))[0].code == "path-slow"


def test_a_run_is_watched_once_a_second_and_forgets_with_a_change() -> None:
    """While it settles after a change there is nothing to say."""
    watch = LiveDiagnosis()
    assert watch.current_findings == watch.final_findings == ()
    watch.feed(started())
    fed(watch, 0, 8)
    found = watch.current_findings
    assert found[0].share is not None
    fed(watch, 8, 10, rwnd_limited_us=0)
    assert watch.current_findings is found
    fed(watch, 10, 13, rwnd_limited_us=0)
    assert watch.current_findings is not found
    watch.feed(Changed(13 * QUARTER_NS, Settings(sessions=5), EXPECTED))
    fed(watch, 13, 18, Settings(sessions=5), warmup=True)
    assert watch.current_findings == ()
    assert watch.final_findings[0].share is not None
