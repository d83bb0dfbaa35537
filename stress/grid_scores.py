"""The grades of the grid's cases: by family, by the confidence of the first finding, and against bounds."""

# The repository root is the package, which pyright cannot resolve by its name from here.
# pyright: basic, reportMissingImports=false

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from grid_cases import Case
from linkgauge.engine.model.serialization import encode
from linkgauge.presets.diagnosis.diagnose import diagnose
from linkgauge.presets.diagnosis.evidence import Evidence
from linkgauge.presets.diagnosis.finding import Finding

Grade = Literal["right", "second", "silent", "wrong", "no effect", "void"]

GRADES: Final[tuple[Grade, ...]] = ("right", "second", "silent", "wrong", "no effect", "void")
MISSES: Final = GRADES[1:4]
_COUNTED: Final = GRADES[:4]
_MOST_STOLEN: Final = 0.05
_EFFECT: Final = 0.9  # of the expected rate: above it the cause costs too little to be sought
_SILENT: Final = {"unexplained", "at-expected"}
_BANDS: Final = (0.9, 0.8, 0.7, 0.6, 0.5, 0.0)
_CONFIDENT: Final = 0.7
# A busy machine is a cause as well, and some cases make a busy machine on purpose.
_LEAST_RIGHT: Final = 0.9
_MOST_CONFIDENT_MISSES: Final = 0.05


@dataclass(frozen=True)
class GradedCase:
    """One case with its evidence, what the rules as they are now find in it, and their grade."""

    case: Case
    evidence: Evidence
    findings: tuple[Finding, ...]
    grade: Grade

    def __str__(self) -> str:
        first = ", ".join(f"{each.code} {each.share or 0:.2f}/{each.confidence:.2f}" for each in self.findings[:3])
        share = 100 * self.evidence.bit_s / (self.evidence.expected_bit_s or 1)
        return f"{self.case.number:>4} {self.grade:<9} {share:5.1f} %  {self.case}: {first}"


def grade_case(case: Case, evidence: Evidence) -> GradedCase:
    """Return the findings about a case and their grade; void or no effect if it does not count."""
    findings = diagnose(evidence)
    return GradedCase(case, evidence, findings, _grade(case, evidence, findings))


def _grade(case: Case, evidence: Evidence, findings: tuple[Finding, ...]) -> Grade:
    cores = (*evidence.near.cores, *evidence.far.cores)
    if max((core.steal for core in cores), default=0.0) > _MOST_STOLEN:
        return "void"
    has_effect = evidence.bit_s < _EFFECT * (evidence.expected_bit_s or 0.0)
    if case.family == "healthy":
        code = findings[0].code
        is_right = code in case.wanted and (has_effect or code in _SILENT)
        return "right" if is_right else "silent" if code in _SILENT else "wrong"
    if not has_effect:
        return "no effect"
    is_right = [finding.code in case.wanted and case.at in {None, finding.end} for finding in findings]
    if any(is_right):
        causes = {*case.wanted, *case.also} & {finding.code for finding in findings}
        has_both = not case.also or len(causes) > 1
        return "right" if is_right[0] and has_both else "second"
    return "silent" if findings[0].code in _SILENT or findings[0].confidence < 0.5 else "wrong"


@dataclass
class Scores:
    """The grades of the cases so far."""

    cases: list[GradedCase] = field(default_factory=list[GradedCase])

    def report(self) -> None:
        """Print the grades by family and by maker, and how often a first finding is right by its confidence."""
        self._print_table("family", lambda case: case.family)
        if len({each.case.maker for each in self.cases}) > 1:
            self._print_table("maker", lambda case: case.maker)
        for line in self._calibration():
            print(line)
        if counted := self._counted():
            right = sum(each.grade == "right" for each in counted)
            print(f"first finding right: {right} of {len(counted)}, {100 * right / len(counted):.1f} %")

    def _print_table(self, title: str, group: Callable[[Case], str]) -> None:
        print(f"\n{title:<12}" + "".join(f"{word:>11}" for word in GRADES))
        for name in [*dict.fromkeys(group(each.case) for each in self.cases), "all"]:
            counts = Counter(each.grade for each in self.cases if name in {group(each.case), "all"})
            print(f"{name:<12}" + "".join(f"{counts[word]:>11}" for word in GRADES))

    def problems(self) -> list[str]:
        """Return the broken bounds: few confident misses, most cases right, no finding about a good link."""
        counted = self._counted()
        missed = [each for each in counted if each.grade in MISSES]
        wrong = [each for each in missed if each.grade != "silent"]
        confident = [each for each in wrong if each.findings[0].confidence >= _CONFIDENT]
        problems = [f"a finding about a good link: {each}" for each in wrong if each.case.family == "healthy"]
        if len(confident) > _MOST_CONFIDENT_MISSES * len(counted):
            problems += [f"wrong with a confidence of {_CONFIDENT} or more: {each}" for each in confident]
        if not counted:
            problems.append("no case counts")
        elif len(missed) > (1 - _LEAST_RIGHT) * len(counted):
            problems += [f"missed: {each}" for each in missed]
        return problems

    def _counted(self) -> list[GradedCase]:
        return [each for each in self.cases if each.grade in _COUNTED]

    def _calibration(self) -> list[str]:
        """Return a line for each band of confidence. A good link has no confidence: its finding names no cause."""
        lines: list[str] = []
        faults = [each for each in self._counted() if each.findings[0].code not in _SILENT]
        for least in _BANDS:
            band = [each for each in faults if _band(each) == least]
            if band:
                right = sum(each.grade == "right" for each in band)
                mean = sum(each.findings[0].confidence for each in band) / len(band)
                lines.append(
                    f"said with {least or 0.0:.1f} or more: {right} of {len(band)} right, "
                    f"{100 * right / len(band):.0f} %, while {100 * mean:.0f} % were claimed"
                )
        return lines


def _band(graded: GradedCase) -> float:
    return next(least for least in _BANDS if graded.findings[0].confidence >= least)


def record_case(folder: Path, graded: GradedCase) -> None:
    """Add a case to its family's file of recorded cases, which tests/presets/diagnosis replays."""
    case, evidence = graded.case, graded.evidence
    near, far = (replace(end, hostname="lab", system="Linux 6") for end in (evidence.near, evidence.far))
    line = {
        "title": str(case),
        "wanted": list(case.wanted),
        "at": case.at,
        "evidence": _compact(encode(replace(evidence, near=near, far=far))),
    }
    with (folder / f"{case.family}.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, separators=(",", ":")) + "\n")


def _compact(value: Any) -> Any:
    """Return a document without unknown values, its numbers with five digits."""
    if isinstance(value, dict):
        return {key: _compact(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_compact(item) for item in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value
