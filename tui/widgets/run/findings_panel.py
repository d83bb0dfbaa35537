"""The findings: reasons for a rate below the expected one, the most important first, with its remedy."""

from textual.content import Content
from textual.widgets import Static

from ....presets.diagnosis.finding import Finding
from ...rendering.styles import GOOD, MUTED, SHORT
from ...text import numbers


class FindingsPanel(Static):
    """Shows findings in as many rows as they need; hidden if there are none."""

    DEFAULT_CSS = """
    FindingsPanel { height: auto; padding: 0 1 0 0; }
    """

    def __init__(self) -> None:
        super().__init__(id="why", markup=False)
        self._findings: tuple[Finding, ...] | None = None
        self.display = False

    def show(self, findings: tuple[Finding, ...]) -> None:
        """Show these findings."""
        if findings == self._findings:
            return
        self._findings = findings
        self.display = bool(findings)
        self.update(Content("\n").join(finding_lines(findings)))


def finding_lines(findings: tuple[Finding, ...]) -> list[Content]:
    """Return the first finding with its remedy and evidence, and the headlines of the others."""
    lines: list[Content] = []
    for number, finding in enumerate(findings):
        lines.append(_headline(finding))
        if number == 0:
            if finding.code != "at-expected":
                lines.append(Content.assemble(("→ ", "bold"), numbers.sanitize(finding.remedy)))
            lines.append(Content.styled(numbers.sanitize(finding.evidence), MUTED))
    return lines


def _headline(finding: Finding) -> Content:
    text = numbers.sanitize(finding.text)
    if finding.code == "at-expected":
        return Content.assemble(("● ", GOOD), text)
    share = numbers.share_of_gap(finding.share)
    return Content.assemble(("◆ ", f"bold {SHORT}"), (f"{share}: " if share else "", ""), (text, "bold"))
