"""The text of a preset's sheet, for tests."""

from linkgauge.presets.sheet import Section, Sheet


def section(of: Sheet, title: str) -> Section:
    """Return the section whose title begins so."""
    return next(s for s in of.sections if s.title.startswith(title))


def lines(of: Section) -> list[str]:
    """Return the lines as text, cells behind labels."""
    return [" | ".join(filter(None, (line.label, *line.cells))) for line in of.lines]
