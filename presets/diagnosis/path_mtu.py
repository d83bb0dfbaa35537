"""A measured path MTU as the cause of a finding: small segments, or no payload at all."""

from typing import Final

from ...engine.model.directions import Direction, End
from ...engine.protocol.path_probe import DirectionMtu, MtuBound, PathMtu
from . import remedies
from .evidence import Evidence
from .finding import Finding, FindingCode

PATH_MTU_SYMPTOMS: Final[frozenset[FindingCode]] = frozenset({"mss-small", "no-payload"})
"""The findings that the MTU of the path may cause, rather than the MTU of an interface."""

_ICMP: Final = {4: "ICMP type 3 code 4", 6: "ICMPv6 type 2"}


def name_path_mtu(findings: tuple[Finding, ...], path: PathMtu, evidence: Evidence) -> tuple[Finding, ...]:
    """Return the findings with the path's MTU in place of its symptom, if it is smaller than the link's."""
    symptom = next((finding for finding in findings if finding.code in PATH_MTU_SYMPTOMS), None)
    cause = None if symptom is None else _explain(symptom, path, evidence)
    return tuple(cause if cause is not None and finding is symptom else finding for finding in findings)


def _explain(symptom: Finding, path: PathMtu, evidence: Evidence) -> Finding | None:
    known = [
        each for each in path.directions if each.mtu_bytes is not None and each.bound is not MtuBound.INTERFACE
    ]
    if not known:
        return None
    narrow = min(known, key=lambda each: each.mtu_bytes or 0)
    mtu = narrow.mtu_bytes or 0
    expected = narrow.interface_bytes if evidence.link is None else evidence.link.mtu_bytes
    if expected is None or mtu >= expected:
        return None
    way = "to the remote host" if narrow.direction is Direction.OUT else "from the remote host"
    return Finding(
        "path-mtu",
        symptom.share,
        0.95,
        f"The path {way} carries only smaller packets than the link should.",
        f"packets of {mtu} bytes instead of {expected}; {_bound_words(narrow)}; {symptom.evidence}",
        _remedy(narrow, path.ip_version, mtu, expected, evidence),
        weight=symptom.weight,
    )


def _bound_words(narrow: DirectionMtu) -> str:
    if narrow.bound is MtuBound.ROUTER:
        return f"router {narrow.router} refuses longer packets"
    return "longer packets disappear, and no router says so (a black hole)"


def _remedy(narrow: DirectionMtu, ip_version: int, mtu: int, expected: int, evidence: Evidence) -> str:
    if narrow.bound is MtuBound.ROUTER:
        return f"raise the MTU of the link behind router {narrow.router} to {expected}; linkgauge mtu PEER shows it"
    sender = evidence.of_end(End.NEAR if narrow.direction is Direction.OUT else End.FAR)
    setting = remedies.set_mtu(sender, mtu)
    return f"allow {_ICMP[ip_version]} in every firewall on the way, raise the MTU of the link, or: {setting}"
