"""The findings of a diagnosis in a terminal: cause, evidence and remedy."""

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ....presets.diagnosis.finding import Finding
from ...text import numbers


def findings_part(findings: tuple[Finding, ...]) -> Padding:
    """Return the findings as a grid, in their order."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="dim", no_wrap=True, min_width=7)
    grid.add_column(no_wrap=True, justify="right")
    grid.add_column(overflow="fold")
    for number, finding in enumerate(findings):
        grid.add_row(
            "why" if number == 0 else "",
            numbers.share_of_gap(finding.share),
            Text(numbers.sanitize(finding.text), "bold"),
        )
        grid.add_row("", "", Text(numbers.sanitize(finding.evidence)))
        if finding.code != "at-expected":
            grid.add_row("", "", Text.assemble(("do ", "bold"), numbers.sanitize(finding.remedy)))
    return Padding(grid, (0, 0, 0, 2), expand=False)
