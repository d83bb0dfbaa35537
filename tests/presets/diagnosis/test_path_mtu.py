"""A measured path MTU replaces its symptom, with the router that refused and a remedy for the right end."""

from dataclasses import replace

import pytest
from linkgauge.engine.model.directions import Direction, End
from linkgauge.engine.protocol.path_probe import DirectionMtu, MtuBound, PathMtu
from linkgauge.presets.diagnosis.diagnose import diagnose
from linkgauge.presets.diagnosis.finding import Finding
from linkgauge.presets.diagnosis.path_mtu import name_path_mtu

from .evidence_cases import check_sentences, run

WHOLE = DirectionMtu(Direction.OUT, 1_500, 1_500, MtuBound.INTERFACE)
SMALL = Finding("mss-small", 0.4, 0.85, "The path clamps the MSS.", "segments of 1348 bytes", "look for a tunnel")
OTHER = Finding("loss", 0.2, 0.9, "Packets are lost.", "1 %", "look for it")


def path(in_: DirectionMtu) -> PathMtu:
    """Return a path that is narrow in one direction at most."""
    return PathMtu("db-02:5820", 4, WHOLE, in_)


def test_a_router_that_refuses_is_the_cause_of_small_segments() -> None:
    """In the symptom's place, with its share; other findings stay."""
    narrow = DirectionMtu(Direction.IN, 1_400, 1_500, MtuBound.ROUTER, "192.0.2.1")
    first, second = name_path_mtu((SMALL, OTHER), path(narrow), run())
    assert (first.code, first.share, second) == ("path-mtu", 0.4, OTHER)
    assert first.text == "The path from the remote host carries only smaller packets than the link should."
    check_sentences((first,))
    assert (
        first.evidence
        == "packets of 1400 bytes instead of 1500; router 192.0.2.1 refuses longer packets; segments of 1348 bytes"
    )
    assert "behind router 192.0.2.1 to 1500" in first.remedy


def test_a_black_hole_has_the_command_of_the_sending_end() -> None:
    """And the kind of ICMP that firewalls must pass."""
    narrow = DirectionMtu(Direction.IN, 1_400, 1_500, MtuBound.BLACK_HOLE)
    evidence = run()
    (finding,) = name_path_mtu((replace(SMALL, code="no-payload"),), path(narrow), evidence)
    assert "black hole" in finding.evidence
    assert "ICMP type 3 code 4" in finding.remedy
    assert "mtu 1400" in finding.remedy
    assert End.FAR.label in finding.remedy


@pytest.mark.parametrize(
    "in_",
    [
        replace(WHOLE, direction=Direction.IN),
        DirectionMtu(Direction.IN, 1_500, 9_000, MtuBound.ROUTER, "192.0.2.1"),
        DirectionMtu(Direction.IN, None, None, MtuBound.BLACK_HOLE),
    ],
)
def test_a_path_as_wide_as_the_link_changes_nothing(in_: DirectionMtu) -> None:
    """An unknown one, or findings of another kind, change nothing either."""
    assert name_path_mtu((SMALL, OTHER), path(in_), run()) == (SMALL, OTHER)
    narrow = DirectionMtu(Direction.IN, 1_400, 1_500, MtuBound.ROUTER, "192.0.2.1")
    assert name_path_mtu((OTHER,), path(narrow), run()) == (OTHER,)
    assert diagnose(run())
