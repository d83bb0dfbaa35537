"""Why it is not faster: the findings, the one that explains most first, with what to do about it."""

from textual.content import Content
from textual.widgets import Static

from ....presets.diagnosis.finding import Finding
from ...rendering.styles import GOOD, MUTED, SHORT
from ...text import numbers


class FindingsPanel(Static):
    """Shows findings; as high as they are long, and gone where there are none."""

    DEFAULT_CSS = """
    FindingsPanel { height: auto; padding: 0 1 0 0; }
    """

    def __init__(self) -> None:
        super().__init__(id="why", markup=False)
        self._findings: tuple[Finding, ...] | None = None
        self.display = False

    def show(self, findings: tuple[Finding, ...]) -> None:
        """Show these findings from the next frame on."""
        if findings == self._findings:
            return
        self._findings = findings
        self.display = bool(findings)
        self.update(Content("\n").join(finding_lines(findings)))


def finding_lines(findings: tuple[Finding, ...]) -> list[Content]:
    """Return the first finding whole, and what the others say."""
    lines: list[Content] = []
    for number, one in enumerate(findings):
        lines.append(_headline(one))
        if number == 0:
            if one.code != "at-expected":
                lines.append(Content.assemble(("→ ", "bold"), numbers.sanitize(one.remedy)))
            lines.append(Content.styled(numbers.sanitize(one.evidence), MUTED))
    return lines


def _headline(one: Finding) -> Content:
    text = numbers.sanitize(one.text)
    if one.code == "at-expected":
        return Content.assemble(("● ", GOOD), text)
    share = numbers.share_of_gap(one.share)
    return Content.assemble(("◆ ", f"bold {SHORT}"), (f"{share}: " if share else "", ""), (text, "bold"))
